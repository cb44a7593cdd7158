"""Disks that are full or must not be written: a clear word, nothing lost."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(project):
    """mount(size): the state directory on a disk of its own, of that size."""
    mounted = []

    def mount(size, options="rw"):
        project.state.mkdir(exist_ok=True)
        how = ["-o", f"remount,{options},size={size}"] if mounted else ["-o", f"{options},size={size}"]
        done = subprocess.run(["mount", "-t", "tmpfs", *how, "tmpfs", str(project.state)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"cannot mount here: {done.stderr.strip()}")
        mounted.append(project.state)

    yield mount
    for _ in range(600):
        if not mounted or subprocess.run(["umount", str(project.state)], capture_output=True).returncode == 0:
            break
        time.sleep(0.1)


def refused(result, *words):
    assert result.code == 4, str(result)
    assert "error:" in result.err and "hint:" in result.err
    for word in words:
        assert word in result.err, str(result)
    assert "Traceback" not in result.err


def test_a_state_directory_on_a_full_disk_is_refused_with_a_clear_word(project, small_disk):
    small_disk("256k")
    ballast = os.open(project.state / "ballast", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(ballast, b"x" * 4096)
    except OSError:
        os.close(ballast)
    result = project.run("--id", "a", code=4)
    refused(result, "space", str(project.state))
    (project.state / "ballast").unlink()
    small_disk("512m")
    project.run("--id", "a")
    assert project.status("a")["state"] == "succeeded"


@pytest.mark.parametrize("size", ["200k", "2m", "6m"])
def test_a_disk_that_fills_up_on_the_way_loses_nothing(project, small_disk, size):
    small_disk(size)
    result = project.run("--id", "a", code=None)
    assert result.code == 4, str(result)
    refused(result, "space")
    small_disk("512m")
    project.run("--id", "a")
    assert project.status("a")["state"] == "succeeded"
    seqs = [row["seq"] for row in project.events("a")]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


def test_a_read_only_state_directory_is_refused_by_run_and_read_by_the_rest(project, small_disk):
    small_disk("512m")
    project.run("--id", "before")
    events = project.events("before")
    small_disk("512m", "ro")
    result = project.run("--id", "after", code=4)
    refused(result, str(project.state))
    assert "read-only" in result.err.lower() or "read only" in result.err.lower()
    assert project.events("before") == events
    assert project.status("before")["state"] == "succeeded"
    assert len(project.ok("--json", "list").lines) == 1
    assert "step: 20" in project.ok("logs", "before").out
    assert project.plan()["cache"]["verdict"] == "warm"
    project.ok("validate", project.spec_path)
    small_disk("512m")
    project.run("--id", "after")
    assert project.events("before") == events


def at_work(project):
    """Processes of this project's jobs: agents by their command line, what they start by
    what it was given as environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(project.root).encode() in (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes():
                yield folder.name


def killed_after(project, event, *argv):
    """A driver that is killed as soon as it has journalled this; its job goes on to its end."""
    driver = project.start("--json", "run", project.spec_path, *argv)
    for line in driver.stdout:
        if json.loads(line)["event"] == event:
            break
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    while list(at_work(project)):  # it writes to the same disk
        time.sleep(0.05)


@pytest.mark.parametrize("without", ["", "-shm"])
def test_what_only_the_log_of_a_killed_driver_holds_is_read_on_a_read_only_disk(project, small_disk, without):
    small_disk("512m")
    project.run("--id", "one")
    killed_after(project, "attempt.submitted", "--id", "two")
    folder = project.state / "stoker"
    assert (folder / "journal.db-wal").stat().st_size > 0
    if without:
        (folder / f"journal.db{without}").unlink()
    scratch = project.root / "scratch"
    scratch.mkdir()
    caller = {"TMPDIR": str(scratch)}
    small_disk("512m", "ro")
    listed = project.ok("--json", "list", env=caller).lines
    assert sorted(row["run"] for row in listed) == ["one", "two"]
    events = project.ok("events", "two", env=caller).lines
    assert "attempt.submitted" in [row["event"] for row in events]
    assert project.ok("--json", "status", "two", env=caller).lines[0]["run"] == "two"
    assert list(scratch.iterdir()) == []
    if without:
        result = project.stoker("list", env={"TMPDIR": str(project.root / "nowhere")})
        refused(result, "nowhere")
    small_disk("512m")
    assert project.ok("events", "two").lines[:len(events)] == events


@pytest.mark.parametrize("size", ["40k", "64k", "100k"])
def test_a_disk_that_was_full_at_the_first_run_and_is_read_only_now(project, small_disk, size):
    small_disk(size)
    refused(project.run("--id", "a", code=4), "space")
    small_disk(size, "ro")
    seen = [row["run"] for row in project.ok("--json", "list").lines]
    small_disk("512m")
    assert [row["run"] for row in project.ok("--json", "list").lines] == seen
    project.run("--id", "a")


def test_a_state_directory_that_may_not_be_looked_into_is_not_empty(project):
    project.run("--id", "one")
    state = project.state / "stoker"
    for path in [state.parent, *state.parents]:
        if path == Path("/tmp"):
            break
        path.chmod(0o755)
    modes = [(state, 0o000), (state / "journal.db", 0o200)]
    if os.geteuid() == 0:
        reader, how = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"), {"cwd": "/"}
        modes = [(state, 0o700), (state / "journal.db", 0o600)]
    else:
        reader, how = (), {}
    for path, mode in modes:
        path.chmod(mode)
        for argv in (["list"], ["status"], ["events", "one"], ["plan", project.spec_path],
                     ["run", project.spec_path]):
            result = project.stoker(*argv, prefix=reader, **how)
            refused(result, "ermission denied", str(state))
        path.chmod(0o755)


def test_a_state_directory_that_is_a_file_is_refused(project):
    project.state.write_text("")
    result = project.run(code=4)
    refused(result, str(project.state))


def test_a_state_directory_of_somebody_else_is_refused(project):
    if os.geteuid() != 0:
        project.state.mkdir(mode=0o500)
        refused(project.run(code=4), str(project.state))
        return
    result = project.run("--id", "x", code=4, env={"XDG_STATE_HOME": "/proc/nowhere"})
    refused(result, "/proc/nowhere")


def test_a_cache_that_cannot_be_written_ends_in_a_clear_word(project, small_disk):
    project.cache.write_text("a file in the way\n")
    result = project.run(code=None)
    assert result.code in (1, 4, 5), str(result)
    assert str(project.cache) in result.err and "hint:" in result.err


def test_state_may_be_named_in_three_ways(project):
    project.write(compile=None)
    project.ok("--state", project.root / "one", "run", project.spec_path, "--id", "a")
    project.ok("run", project.spec_path, "--id", "b", env={"STOKER_STATE": str(project.root / "two")})
    project.run("--id", "c")
    assert [row["run"] for row in project.ok("--state", project.root / "one", "--json", "list").lines] == ["a"]
    assert [row["run"] for row in
            project.ok("--json", "list", env={"STOKER_STATE": str(project.root / "two")}).lines] == ["b"]
    assert [row["run"] for row in project.ok("--json", "list").lines] == ["c"]
