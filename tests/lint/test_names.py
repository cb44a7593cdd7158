"""Names say where they live: an exported symbol begins with the name of its file, or of its box; a struct
has its tag alone."""

import collections
import os
import re
import subprocess

import pytest
import tree

BUILD = tree.ROOT / os.environ.get("STOKER_BUILD", "build/clang")
# (file, symbol): why it may be called otherwise.
SEAMS: dict[tuple[str, str], str] = {}


def objects():
    """(source without its suffix, object) of everything that the product is linked from."""
    for path in BUILD.glob("CMakeFiles/*.dir/**/*.c.o"):
        source = str(path).split(".dir/", 1)[1].removesuffix(".c.o")
        if source.split("/")[0] in ("aws", "cmd", "jobs") and (tree.ROOT / f"{source}.c").exists():
            yield source, path


def prefixes(source: str) -> set[str]:
    """`jobs/cache/graph_tally_json` → graph_tally_json, graph_tally, graph, cache."""
    parts = source.split("/")
    words = parts[-1].split("_")
    box = parts[1] if parts[0] == "jobs" else parts[0]
    return {box, *("_".join(words[:count]) for count in range(1, len(words) + 1))}


def carries(symbol: str, source: str) -> bool:
    return any(re.fullmatch(rf"{prefix.removesuffix('s')}s?(_\w+)?", symbol) for prefix in prefixes(source))


def test_exported_symbols_begin_with_their_files_or_their_boxes_name():
    exported = set()
    for source, path in objects():
        listed = subprocess.run(["nm", "--format=posix", "--extern-only", "--defined-only", path],
                                capture_output=True, text=True, check=True).stdout
        # A sanitizer adds names of its own, which begin with two underscores.
        exported |= {(source, line.split()[0]) for line in listed.splitlines() if not line.startswith("__")}
    if len(exported) < 1000:
        pytest.fail(f"{BUILD} shows {len(exported)} symbols: run 'cmake --preset clang && "
                    f"cmake --build --preset clang'", pytrace=False)
    wrong = [f"{source}.c: {symbol}: begin it with {' or '.join(sorted(prefixes(source), key=len)[-2:])}_"
             for source, symbol in sorted(exported)
             if symbol != "main" and not carries(symbol, source) and (source, symbol) not in SEAMS]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_a_struct_has_its_tag_alone():
    homes = collections.defaultdict(list)
    for name in tree.c_files():
        for match in re.finditer(r"^\s*(?:static |const |typedef )*(?:struct|union|enum) (\w+)\s*\{",
                                 tree.code(name), re.MULTILINE):
            homes[match[1]].append(name)
    assert len(homes) > 300, "no structs were found"
    wrong = [f"struct {tag}: {', '.join(where)}" for tag, where in sorted(homes.items()) if len(where) > 1]
    if wrong:
        pytest.fail("one tag, several meanings:\n" + "\n".join(wrong), pytrace=False)
