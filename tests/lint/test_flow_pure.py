"""Flow and calendar are pure: their libraries ask for nothing that could do I/O, read a
clock, allocate or throw dice. Looked at where nobody can cheat: in the symbols
the compiled library leaves for others to define."""

import os
import subprocess

import pytest
import tree

ALLOWED = set("""
    memcpy memmove memset memcmp memmem memchr memrchr
    strlen strnlen strcmp strncmp strchr strrchr strstr strcspn
    snprintf vsnprintf
    exp lgamma log log1p sqrt
    __stack_chk_fail __assert_fail
    _GLOBAL_OFFSET_TABLE_
""".split())

BUILD = tree.ROOT / os.environ.get("STOKER_BUILD", "build/clang")


def symbols(library, *options):
    listed = subprocess.run(["nm", "--format=posix", *options, library], capture_output=True,
                            text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if len(line.split()) >= 2}


@pytest.mark.parametrize(("box", "export"), [("flow", "flow_apply"), ("calendar", "due_next")])
def test_pure_boxes_link_with_nothing_that_does_io(box, export):
    library = BUILD / f"libstoker_{box}.a"
    if not library.exists():
        pytest.fail(f"{library} is not there: run 'cmake --preset clang && "
                    f"cmake --build --preset clang'", pytrace=False)
    defined = symbols(library, "--defined-only")
    assert export in defined, f"the library does not hold {box}"
    foreign = symbols(library, "--undefined-only") - defined - ALLOWED
    if foreign:
        pytest.fail(f"jobs/{box} calls {', '.join(sorted(foreign))}: have its caller do it and pass "
                    f"the result in", pytrace=False)
