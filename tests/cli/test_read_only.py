"""Commands that only look change nothing, anywhere."""

import hashlib
import os
import subprocess

import pytest
import stoker as cli


def picture(*folders):
    """Every file with content, mode and times; not the atime, which looking changes."""
    found = {}
    # SQLite's shared memory comes and goes in the journal's folder.
    timeless = {folder / "state" / "stoker" for folder in folders}
    for folder in folders:
        for path in [folder, *sorted(folder.rglob("*"))]:
            stat = os.lstat(path)
            content = hashlib.sha256(path.read_bytes()).hexdigest() \
                if path.is_file() and not path.is_symlink() else ""
            if path in timeless:
                found[str(path)] = (stat.st_mode,)
                continue
            found[str(path)] = (stat.st_mode, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, content)
    return found


LOOKS = [
    ("validate", "SPEC"), ("plan", "SPEC"), ("plan", "--requests", "SPEC"), ("run", "--dry-run", "SPEC"),
    ("status",), ("status", "one"), ("list",), ("events", "one"), ("logs", "one"), ("schema",),
    ("version",), ("help",), ("cache", "ls", "CACHE"), ("cache", "verify", "CACHE"),
    ("cache", "why", "SPEC"), ("cache", "gc", "CACHE", "--older-than", "1d"),
    ("cache", "pull", "CACHE", "COPY", "--dry-run"), ("cache", "push", "CACHE", "COPY", "--dry-run"), ("init", "--list"),
]


@pytest.mark.parametrize("argv", LOOKS, ids=" ".join)
def test_looking_changes_nothing(project, argv):
    project.run("--id", "one")
    before = picture(project.root)
    words = {"SPEC": str(project.spec_path), "CACHE": str(project.cache), "COPY": str(project.root / "copy")}
    project.ok(*[words.get(word, word) for word in argv])
    assert picture(project.root) == before


@pytest.mark.parametrize("argv", [argv for argv in LOOKS if "one" not in argv and "CACHE" not in argv
                                  and argv != ("status",)], ids=" ".join)
def test_looking_where_nothing_is_creates_nothing(project, argv):
    before = picture(project.root)
    project.ok(*[str(project.spec_path) if word == "SPEC" else word for word in argv])
    assert picture(project.root) == before


def test_plan_starts_no_program_but_a_shim(project):
    """Heavy things are started only by the commands that need them."""
    trace = project.root / "trace"
    prefix = ("strace", "-f", "-e", "trace=execve,connect", "-o", str(trace))
    works = subprocess.run([*prefix, "true"], capture_output=True)
    if works.returncode != 0:
        pytest.skip(f"strace does not work here: {works.stderr.decode()[:200]}")
    result = project.ok("plan", project.spec_path, prefix=prefix,
                        env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert "cold" in result.out
    lines = trace.read_text().splitlines()
    assert [line for line in lines if "execve(" in line and cli.BINARY.name not in line] == []
    assert [line for line in lines if "connect(" in line and "AF_INET" in line] == []
