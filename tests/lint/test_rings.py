"""Within a box, files stand above one another: files that call each other in a ring cannot be read, tested or
changed one by one."""

import collections
import os
import subprocess

import pytest
import tree

BUILD = tree.ROOT / os.environ.get("STOKER_BUILD", "build/clang")
LARGEST = 2


def calls():
    """{source without its suffix: {another source of its box: the names it refers to there}}."""
    homes, wanted = {}, collections.defaultdict(set)
    for path in BUILD.glob("CMakeFiles/*.dir/**/*.c.o"):
        source = str(path).split(".dir/", 1)[1].removesuffix(".c.o")
        if source.split("/")[0] not in ("aws", "cmd", "jobs") or not (tree.ROOT / f"{source}.c").exists():
            continue
        listed = subprocess.run(["nm", "--format=posix", "--extern-only", path],
                                capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            name, kind = line.split()[:2]
            if kind in "TDBRC":
                homes[name] = source
            elif kind == "U":
                wanted[source].add(name)
    if len(homes) < 1000:
        pytest.fail(f"{BUILD} shows {len(homes)} symbols: run 'cmake --preset clang && "
                    f"cmake --build --preset clang'", pytrace=False)
    found = {source: collections.defaultdict(list) for source in {*homes.values(), *wanted}}
    for source, names in wanted.items():
        for name in sorted(names):
            home = homes.get(name)
            if home and home != source and box(home) == box(source):
                found[source][home].append(name)
    return found


def box(source: str) -> str:
    parts = source.split("/")
    return parts[1] if parts[0] == "jobs" else parts[0]


def reached(arrows, start):
    seen, rest = set(), [start]
    while rest:
        for target in arrows.get(rest.pop(), ()):
            if target not in seen:
                seen.add(target)
                rest.append(target)
    return seen


def rings(arrows):
    """Sets of sources each of which can be reached from each other one."""
    after = {source: reached(arrows, source) for source in arrows}
    return {frozenset([source, *(other for other in after[source] if source in after[other])])
            for source in arrows if source in after[source]}


def test_no_ring_of_files_within_a_box():
    arrows = calls()
    wrong = []
    for ring in sorted(rings(arrows), key=len, reverse=True):
        if len(ring) > LARGEST:
            wrong.append(f"{len(ring)} files call each other in a ring:")
            wrong += [f"  {source}.c calls {target}.c: {', '.join(names[:3])}" for source in sorted(ring)
                      for target, names in sorted(arrows[source].items()) if target in ring]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
