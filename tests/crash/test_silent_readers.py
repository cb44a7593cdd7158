"""A driver whose own output nobody reads (a terminal behind a dead connection, a pipeline's step that hangs) hears
stop, signals and limits; whoever reads again finds every event."""

import fcntl
import json
import os
import signal
import socket
import time

import pytest
from crash import LEFT, PATIENCE

F_SETPIPE_SZ = 1031


def pipe():
    theirs, ours = os.pipe()
    fcntl.fcntl(ours, F_SETPIPE_SZ, 4096)
    return theirs, ours


def sockets():
    theirs, ours = socket.socketpair()
    return theirs.detach(), ours.detach()


def terminal():
    return os.openpty()


def fill(fd):
    """It takes nothing more."""
    os.set_blocking(fd, False)
    try:
        while True:
            os.write(fd, b" " * 256 + b"\n")
    except BlockingIOError:
        pass
    os.set_blocking(fd, True)


@pytest.fixture(params=[pipe, sockets, terminal], ids=lambda make: make.__name__)
def ends(request):
    """To read from, and full."""
    theirs, ours = request.param()
    fill(ours)
    yield theirs, ours
    for fd in (theirs, ours):
        os.close(fd)


@pytest.fixture
def held(site):
    """A run whose training has begun and does not end; both streams of its driver go there."""
    started = []

    def start(fd, *words, json=True):
        site.write(**{**site.spec, "checkpoint": {"grace": "1s"}, "limits": {"grace": "1s"}})
        run = site.one("one", *words).hold("train", 3)
        started.append(site.start(*run.argv()[not json:], stdout=fd, stderr=fd, env={"TERM": "xterm-256color"}))
        run.wait_for_effect("holds")
        return run, started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("as_json", [True, False], ids=["events", "messages"])
def test_stop_is_heard_and_whoever_reads_again_has_all(held, ends, as_json):
    run, driver = held(ends[1], json=as_json)
    assert run.site.stoker("stop", run.id).code == 0, run.story()
    assert run.status()["state"] == "stopped" and not run.processes(), run.story()
    read, end = b"", time.monotonic() + LEFT
    os.set_blocking(ends[0], False)
    while time.monotonic() < end:
        over = driver.poll() is not None
        try:
            read += os.read(ends[0], 65536)
        except BlockingIOError:
            if over:
                break
            time.sleep(0.05)
    assert driver.wait(LEFT) == 6, run.story()
    lines = [line.strip() for line in read.decode().splitlines() if line.strip()]
    if as_json:
        rows = [json.loads(line) for line in lines]
        assert [row["seq"] for row in rows] == [row["seq"] for row in run.events()], lines
    else:
        assert any("stopped on request" in line for line in lines), lines


@pytest.mark.parametrize("as_json", [True, False], ids=["events", "messages"])
def test_sigterm_is_heard(held, ends, as_json):
    run, driver = held(ends[1], json=as_json)
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(LEFT) == 8, run.story()
    assert run.agents() and run.events("driver.left"), run.story()


def test_a_deadline_is_kept(held, ends):
    run, _ = held(ends[1], "limits.deadline=8s")
    run.wait_for(lambda: run.events("run.ended"))
    row, = run.events("limit.reached")
    assert row["limit"] == "deadline" and not run.processes(), run.story()


def test_who_only_follows_can_be_ended(held, ends):
    run, _ = held(os.open(os.devnull, os.O_WRONLY))
    other = run.site.start("--json", "attach", run.id, stdout=ends[1], stderr=ends[1])
    run.wait_for(lambda: is_waiting(other))
    other.send_signal(signal.SIGTERM)
    assert other.wait(LEFT) == 8


def is_waiting(process):
    """It catches SIGTERM by now."""
    row, = [row for row in open(f"/proc/{process.pid}/status") if row.startswith("SigBlk")]
    return int(row.split()[1], 16) & (1 << (signal.SIGTERM - 1))


def test_what_others_share_waits_as_it_did(held):
    theirs, ours = sockets()
    run, driver = held(ours)
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(PATIENCE) == 8
    assert os.get_blocking(ours)
    os.close(theirs)
    os.close(ours)
