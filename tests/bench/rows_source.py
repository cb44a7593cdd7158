"""Rows of the source: packing it, and finding it unchanged."""

import hashlib
import os
import subprocess
import sys
import sysconfig
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace

from harness import PEERS, Bench, Goal, Row, Wrong, expect, tool

FILES = 5000
BYTES = 36_600_000


def python_sources() -> bytes:
    """Real source text, enough of it, from this interpreter's own library."""
    found = b""
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        found += path.read_bytes()
        if len(found) > BYTES:
            break
    return found * (BYTES // len(found) + 1)


def git(folder: Path, *argv: str) -> str:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    return subprocess.run([tool("git"), "-c", "user.name=bench", "-c", "user.email=bench@localhost", *argv],
                          cwd=folder, env=environ, check=True, capture_output=True, text=True).stdout


def work_tree(bench: Bench) -> SimpleNamespace:
    """A committed work tree of 5,000 files, 36.6 MB, the sizes of real ones."""
    folder, text, at = bench.new("tree"), python_sources(), 0
    weights = [1 + (number * 7919) % 97 ** 2 // 97 for number in range(FILES)]
    digests = {}
    for number, weight in enumerate(weights):
        path = folder / f"package_{number % 50}/part_{number % 7}/module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        size = BYTES * weight // sum(weights)
        content = f"# module {number}\n".encode() + text[at:at + size]
        at += size
        path.write_bytes(content)
        digests[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all of it")
    git(folder, "status")
    os.sync()
    time.sleep(3)  # what has just been written is not remembered
    return SimpleNamespace(folder=folder, digests=digests, archive=bench.scratch / "peer.tar.gz", pin=None)


def prepare(bench: Bench) -> SimpleNamespace:
    return bench.once(work_tree)


def pack(bench, case):
    """All of it: nothing is remembered."""
    workspace = bench.new("workspace")
    wall, made = bench.json(bench.program("bench_source"), "pack", case.folder, workspace / "memory", workspace)
    return wall, SimpleNamespace(archive=workspace / made["bundle"], digest=made["digest"])


def archive_and_gzip(bench, case):
    return bench.process("/bin/sh", "-c", 'git archive HEAD | gzip -6 >"$1"', "sh", case.archive, cwd=case.folder)


def tar_with_python(bench, case):
    return bench.process(sys.executable, PEERS / "pack.py", case.folder, case.archive)


def archive_only(bench, case):
    return bench.process(tool("git"), "archive", "-o", "/dev/null", "--format=tar", "HEAD", cwd=case.folder)


def contents(path: Path) -> dict:
    with tarfile.open(path) as archive:
        return {os.path.normpath(member.name): hashlib.sha256(archive.extractfile(member).read()).hexdigest()
                for member in archive if member.isreg()}


def check_pack(bench, case, own, peer):
    for path, whose in ((own.archive, "ours"), (case.archive, "the peer's")):
        if contents(path) != case.digests:
            raise Wrong(f"{whose} holds other files")
    if own.archive.stat().st_size > 1.03 * case.archive.stat().st_size:
        raise Wrong(f"{own.archive.stat().st_size} bytes are more than {case.archive.stat().st_size}")
    own.archive.unlink()


def packed_once(bench: Bench) -> SimpleNamespace:
    """What the run before has left: a memory of digests."""
    case = prepare(bench)
    case.memory, workspace = bench.scratch / "memory", bench.new("workspace")
    _, case.pin = bench.json(bench.program("bench_source"), "pack", case.folder, case.memory, workspace)
    return case


def look(bench, case):
    return bench.json(bench.program("bench_source"), "pin", case.folder, case.memory)


def git_status(bench, case):
    return bench.process(tool("git"), "status", "--porcelain", cwd=case.folder)


def git_list(bench, case):
    return bench.process(tool("git"), "ls-tree", "-r", "HEAD", cwd=case.folder)


def check_look(bench, case, own, peer):
    expect((own["files"], own["dirty"], own["digest"]), (FILES, False, case.pin["digest"]), "the pin")
    expect(peer.text, "", "git status")


def check_change(bench, case):
    """Speed must not come from looking away: the same size, changed in place and its
    time of writing set back, is found."""
    path = case.folder / next(iter(case.digests))
    before = path.stat()
    text = path.read_bytes()
    path.write_bytes(text.replace(b"module", b"modulE", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    try:
        bench.process(bench.program("bench_source"), "pin", case.folder, case.memory, code=1)
    finally:
        path.write_bytes(text)
        git(case.folder, "status")


SOURCE_ROWS = [
    Row("pack", "pack 5,000 files", "git archive | gzip -6", "git archive", Goal(0.5), "s", prepare, pack,
        archive_and_gzip, archive_only, check_pack, pairs=5),
    Row("pack-tar", "pack 5,000 files", "Python's tarfile", "git archive", Goal(1 / 8), "s", prepare, pack,
        tar_with_python, archive_only, check_pack, pairs=5),
    Row("unchanged", "find 5,000 files unchanged", "git status", "git ls-tree", Goal(2.0), "s", packed_once, look,
        git_status, git_list, check_look, last=check_change),
]
