"""The flow is pure: its library asks for nothing that could do I/O, read a
clock, allocate or throw dice. Looked at where nobody can cheat: in the symbols
the compiled library leaves for others to define."""

import os
import subprocess

import pytest
import tree

ALLOWED = set("""
    memcpy memmove memset memcmp memchr memrchr
    strlen strnlen strcmp strncmp strchr strrchr strstr strcspn
    snprintf vsnprintf
    __stack_chk_fail __assert_fail
    _GLOBAL_OFFSET_TABLE_
""".split())

LIBRARY = tree.ROOT / os.environ.get("STOKER_BUILD", "build/clang") / "libstoker_flow.a"


def symbols(*options):
    listed = subprocess.run(["nm", "--format=posix", *options, LIBRARY], capture_output=True,
                            text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if len(line.split()) >= 2}


def test_flow_links_with_nothing_that_does_io():
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is not there: run 'cmake --preset clang && "
                    f"cmake --build --preset clang'", pytrace=False)
    defined = symbols("--defined-only")
    assert "flow_apply" in defined, "the library does not hold the flow"
    foreign = symbols("--undefined-only") - defined - ALLOWED
    if foreign:
        pytest.fail(f"jobs/flow calls {', '.join(sorted(foreign))}: have the driver do it and pass "
                    f"the result in with the event", pytrace=False)
