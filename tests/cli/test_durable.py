"""Files are durable before anything says that they are there; and a cache that lost something
since it was proved is found out before another attempt of the training."""

import re
import subprocess

import pytest

SAVES = """
import os
from pathlib import Path


def step(number, args):
    if number % 10 == 0 and os.environ["STOKER_PHASE"] == "train":
        folder = Path(os.environ["STOKER_CHECKPOINT_DIR"]) / f"step-{number}"
        folder.mkdir()
        (folder / "weights.bin").write_bytes(os.urandom(5000))
        (folder / "state.json").write_text('{"step": %d}' % number)
"""


def test_files_are_synced_before_a_mark_or_a_lock_names_them(project, tmp_path):
    trace = tmp_path / "trace"
    prefix = ("strace", "-f", "-y", "-s", "300", "-e", "trace=fsync,fdatasync,link,linkat,rename,renameat,renameat2",
              "-o", str(trace))
    works = subprocess.run([*prefix, "true"], capture_output=True)
    if works.returncode != 0:
        pytest.skip(f"strace does not work here: {works.stderr.decode()[:200]}")
    project.extra(SAVES)
    # the leak checker does not work beneath another tracer
    project.run(prefix=prefix, env={"ASAN_OPTIONS": "detect_leaks=0"})
    synced, marked, locked = set(), [], []
    for line in trace.read_text(errors="replace").splitlines():
        if found := re.search(r"f(?:data)?sync\(\d+<([^>]+)>", line):
            synced.add(found.group(1))
        elif found := re.search(r'"([^"]*step-(\d+))\.stoker\.json"', line):
            folder = next((path for path in synced if path.endswith(f"/step-{found.group(2)}")), None)
            assert folder, f"the folder of {found.group(1)} was not synced: {line}"
            assert {f"{folder}/weights.bin", f"{folder}/state.json"} <= synced, line
            marked.append(found.group(2))
        elif "/claims" not in line and re.search(r'"(?:[^"]*/)?[0-9a-f]{64}\.json"', line):
            missing = {str(entry) for entry in project.entries()} - synced
            assert not missing, f"{missing} were not synced before: {line}"
            locked.append(line)
    assert {"10", "20"} <= set(marked) and locked


FAILS_ONCE = """
import os
from pathlib import Path


def step(number, args):
    if number == 15 and os.environ["STOKER_PHASE"] == "train" and os.environ["STOKER_ATTEMPT"] == "1":
        for entry in Path(os.environ["JAX_COMPILATION_CACHE_DIR"]).glob("*-cache"):
            entry.write_bytes(b"")  # as a power cut leaves what was never synced
        raise ConnectionResetError("[Errno 104] Connection reset by peer")
"""


def test_a_cache_that_was_emptied_between_two_attempts_is_filled_again(project):
    project.extra(FAILS_ONCE)
    project.run()
    assert project.attempts() == [("precompile", 1), ("train", 1), ("precompile", 2), ("train", 2)]
    checked = [(event["verdict"], event.get("reason", "")) for event in project.events(kind="cache.checked")]
    assert [verdict for verdict, _ in checked] == ["cold", "cold"]
    assert "lost" in checked[1][1] and "0 bytes" in checked[1][1]
    assert all(entry.stat().st_size > 0 for entry in project.entries())


KEEPS = FAILS_ONCE.replace('entry.write_bytes(b"")', "pass")


def test_a_cache_that_is_as_it_was_costs_no_second_phase_1(project):
    project.extra(KEEPS)
    project.run()
    assert project.attempts() == [("precompile", 1), ("train", 1), ("train", 2)]
