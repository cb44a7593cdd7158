"""Two boxes must not define one name: the linker takes whichever library comes first, without a word,
and the callers of the other get a function of another meaning."""

import collections
import os
import subprocess

import pytest
import tree

BUILD = tree.ROOT / os.environ.get("STOKER_BUILD", "build/clang")


def test_no_name_is_defined_twice():
    libraries = sorted(BUILD.glob("libstoker_*.a"))
    if len(libraries) < 5:
        pytest.fail(f"there are no libraries in {BUILD}: run 'cmake --preset clang && "
                    f"cmake --build --preset clang'", pytrace=False)
    homes = collections.defaultdict(set)
    for library in libraries:
        listed = subprocess.run(["nm", "--format=posix", "--extern-only", "--defined-only", library],
                                capture_output=True, text=True, check=True).stdout
        member = ""
        for line in listed.splitlines():
            if line.endswith(":"):
                member = line.rsplit("[", 1)[-1].rstrip("]:")
            elif len(line.split()) >= 2 and line.split()[1] in "TDBRC":
                homes[line.split()[0]].add(f"{library.name} ({member})")
    assert len(homes) > 500, "nm shows nothing"
    twice = [f"{name}: {' and '.join(sorted(where))}" for name, where in sorted(homes.items()) if len(where) > 1]
    if twice:
        pytest.fail("defined twice:\n" + "\n".join(twice), pytrace=False)
