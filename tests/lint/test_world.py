"""The simulated world (tests/world) runs the boxes unchanged. It can only do so if it knows every
function by which they touch the outside, and if nothing of a process outlives it in a variable."""

import os
import re
import subprocess

import pytest
import tree

BUILD = tree.ROOT / os.environ.get("STOKER_BUILD", "build/clang")
BOXES = ("base", "store", "engine", "cache", "checkpoint", "model", "source", "run", "node")
# Without a mutable static: what they know lies in what they are given. Those of base, source and aws
# are swapped with the process.
STATELESS = ("run", "node", "engine", "store", "cache", "checkpoint", "model")


def symbols(library, *options):
    """(name, type) of each symbol that nm lists."""
    path = BUILD / f"libstoker_{library}.a"
    if not path.exists():
        pytest.fail(f"{path} is not built: run 'cmake --preset clang && cmake --build --preset clang'",
                    pytrace=False)
    listed = subprocess.run(["nm", "--format=posix", *options, path], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        fields = line.split()
        if len(fields) >= 2 and not line.endswith(":"):
            yield fields[0], fields[1]


def is_known(name, rows, pure):
    return name in rows or any(name == word or (word.endswith("*") and name.startswith(word[:-1])) for word in pure)


def test_every_function_of_the_outside_is_a_row_or_pure():
    rows = set(re.findall(r"^CALL\((\w+)", tree.text("tests/world/calls.def"), re.MULTILINE))
    text = re.sub(r"^#.*", "", tree.text("tests/world/pure.txt"), flags=re.MULTILINE)
    pure = set(text.split())
    both = rows & pure
    assert len(rows) > 100 and len(pure) > 50, "the tables are not read"
    assert not both, f"a row and pure: {sorted(both)}"
    own = {name for path in BUILD.glob("libstoker_*.a") for name, _ in
           symbols(path.name.removeprefix("libstoker_").removesuffix(".a"), "--extern-only", "--defined-only")}
    unknown = sorted({f"jobs/{box}: {name}()" for box in BOXES for name, kind in symbols(box, "--extern-only")
                      if kind == "U" and name not in own and not is_known(name, rows, pure)})
    if unknown:
        pytest.fail("make it a row of tests/world/calls.def with a wrapper, or add it to tests/world/pure.txt:\n"
                    + "\n".join(unknown), pytrace=False)


def test_no_box_of_the_driver_or_agent_has_a_mutable_static():
    wrong, seen = [], 0
    for box in STATELESS:
        listed = subprocess.run(["objdump", "--syms", BUILD / f"libstoker_{box}.a"],
                                capture_output=True, text=True, check=True).stdout
        member = ""
        for line in listed.splitlines():
            if (heading := re.match(r"(\S+\.o): +file format", line)):
                member = heading[1]
            symbol = re.match(r"[0-9a-f]+ .{6}O (\S+)\s+[0-9a-f]+ +(?:\.hidden )?(\S+)", line)
            if not symbol:
                continue
            seen += 1
            section, name = symbol.groups()
            if re.match(r"\.(data|bss|tdata|tbss)", section) and not section.startswith(".data.rel.ro") \
                    and not name.startswith("__odr_asan"):
                wrong.append(f"jobs/{box}, {member}: {name}")
    assert seen > 100, "objdump shows nothing"
    if wrong:
        pytest.fail("not const, and so shared by all processes of tests/world:\n" + "\n".join(wrong), pytrace=False)
