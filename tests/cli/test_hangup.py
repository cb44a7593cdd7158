"""A terminal that goes away: a driver in the background goes on with the run, or what --on-hangup says; and `list`
tells of a run that nobody drives."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time

import pytest
import stoker as cli
from shell_terminal import ShellTerminal
from terminal import Terminal

WAITS = """
import os, pathlib, time


def step(number, args):
    while os.environ["STOKER_PHASE"] == "train" and not pathlib.Path({gate!r}).exists():
        time.sleep(0.02)
"""


@pytest.fixture
def gate(project):
    path = project.root / "go"
    project.extra(WAITS.format(gate=str(path)))
    yield path
    path.touch()
    if project.state.exists():
        project.stoker("stop", "one")


def driver(project) -> dict:
    result = project.stoker("--json", "status", "one")
    return (result.lines[0].get("driver") or {}) if result.code == 0 else {}


def runs(project) -> bool:
    result = project.stoker("--json", "status", "one")
    return result.code == 0 and any((row["phase"], row["state"]) == ("train", "running")
                                    for row in result.lines[0]["attempts"])


def goes_on_without(project, gate, pid):
    """Another driver, the same job, and an end."""
    other = cli.until(lambda: driver(project).get("pid") not in (None, pid) and driver(project))
    assert os.path.exists(f"/proc/{other['pid']}") and os.getsid(other["pid"]) == other["pid"]
    row, = project.events("one", "driver.left")
    assert "hung up" in row["reason"], row
    gate.touch()
    cli.until(lambda: project.status("one")["state"] == "succeeded")
    assert project.attempts("one") == [("precompile", 1), ("train", 1)]


@contextlib.contextmanager
def on_a_terminal(project):
    one = Terminal("run", project.spec_path, "--id", "one", env=project.env(TERM="xterm-256color"), cwd=project.source)
    try:
        cli.until(lambda: one.read(0.05) and False or runs(project))
        yield one, one.process.pid
    finally:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def hang_up(one: Terminal):
    os.close(one.slave)
    os.close(one.master)


@pytest.mark.parametrize("asks", [False, True])
def test_a_terminal_that_is_closed(project, gate, asks):
    with on_a_terminal(project) as (one, pid):
        if asks:
            one.type("\x03")
            one.until("l/s/g")
        hang_up(one)
        goes_on_without(project, gate, pid)
        assert one.process.wait(cli.SECONDS) == 8


def test_a_shell_that_loses_its_terminal_tells_its_jobs_too(project, gate):
    words = shlex.join([str(cli.BINARY), "run", str(project.spec_path), "--id", "one"])
    with ShellTerminal(["/bin/bash", "--norc", "-i"], project.env(TERM="xterm", PS1="$ "), str(project.source)) as shell:
        shell.type(words + "\n")
        cli.until(lambda: runs(project))
        pid = driver(project)["pid"]
        os.close(shell.fd)
        shell.fd = os.open("/dev/null", os.O_RDONLY)
        goes_on_without(project, gate, pid)


@pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux")
def test_a_session_of_tmux_that_is_killed(project, gate):
    tmux = ["tmux", "-L", f"stoker-{os.getpid()}", "-f", "/dev/null"]
    words = shlex.join([str(cli.BINARY), "run", str(project.spec_path), "--id", "one"])
    subprocess.run([*tmux, "new-session", "-d", words], env=project.env(TERM="xterm", SHELL="/bin/sh"),
                   cwd=project.source, check=True, timeout=cli.SECONDS)
    try:
        cli.until(lambda: runs(project))
        pid = driver(project)["pid"]
    finally:
        subprocess.run([*tmux, "kill-server"], env=project.env(), check=True, timeout=cli.SECONDS)
    goes_on_without(project, gate, pid)


def start(project, *argv, **options):
    process = project.start("run", project.spec_path, "--id", "one", *argv, **options)
    cli.until(lambda: process.poll() is not None or runs(project))
    return process


def test_detach_leaves_the_job_alone_and_list_says_so(project, gate):
    process = start(project, "--on-hangup", "detach")
    process.send_signal(signal.SIGHUP)
    result = cli.finish(process)
    assert result.code == 8 and "resume one" in result.err
    row, = project.ok("--json", "list").lines
    assert row["driver"] is None and row["state"] == "waiting"
    said = project.ok("list")
    assert "no driver" in said.out and "stoker resume" in said.err, said
    project.ok("resume", "one", "--detach")
    said = project.ok("list")
    assert "no driver" not in said.out and "running" in said.out and "resume" not in said.err


def test_list_shows_a_run_whose_driver_was_killed(project, gate):
    process = start(project)
    process.kill()
    cli.finish(process)
    assert "no driver" in project.ok("list").out
    gate.touch()
    assert project.stoker("resume", "one").code == 0
    assert "succeeded" in project.ok("list").out and "no driver" not in project.ok("list").out


def test_stop_ends_the_run(project, gate):
    process = start(project, "--on-hangup", "stop")
    process.send_signal(signal.SIGHUP)
    assert cli.finish(process).code == 6
    assert project.status("one")["state"] == "stopped" and not project.events("one", "driver.left")


def test_under_nohup_nothing_happens(project, gate):
    """What ignores it from the beginning was told to."""
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start(project)
    finally:
        signal.signal(signal.SIGHUP, ignored)
    process.send_signal(signal.SIGHUP)
    time.sleep(1)
    gate.touch()
    assert cli.finish(process).code == 0
    assert not project.events("one", "driver.left")


def test_one_for_whom_no_other_can_be_started_goes_on_itself(project, gate):
    process = start(project)
    (project.state / "stoker/runs/one/driver.log").mkdir()
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGHUP)
    cli.until(lambda: len(project.events("one", "driver.took_over")) == 2)
    assert driver(project)["pid"] == process.pid
    process.send_signal(signal.SIGHUP)
    gate.touch()
    result = cli.finish(process)
    assert result.code == 0 and "driver.log" in result.err, result
    assert project.attempts("one") == [("precompile", 1), ("train", 1)]
