"""stoker-node whose stdout nobody reads, or somebody slowly: the command is not held up, whoever
wants something of the agent is heard, and the log in the workspace is whole."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import time

import pytest
import stoker as cli

NODE = cli.BINARY.parent / "stoker-node"
PREFIX = "runs/r1/train-1/"
LINES = 250_000  # 12 MB
LINE = "a line of some words, with its number: "
F_SETPIPE_SZ = 1031

PRINTS = f"""
import os, signal, sys, time
from pathlib import Path
here = Path(os.environ["HERE"])
def told(signo, frame):
    (here / f"told-{{{{signo}}}}").touch()
    if signo == signal.SIGTERM:
        os._exit(143)
signal.signal(signal.SIGTERM, told)
signal.signal(signal.SIGUSR1, told)
for number in range({{lines}}):
    print("{LINE}", number)
sys.stdout.flush()
(here / "printed").touch()
while {{stays}}:
    time.sleep(0.1)
"""


class Agent:
    def __init__(self, root, script, **order):
        self.root = root
        self.folder = root / PREFIX
        self.folder.mkdir(parents=True)
        (self.folder / "order.json").write_text(json.dumps({
            "v": 1, "run": "r1", "phase": "train", "attempt": 1, "job": "stk-r1-train-1", "nonce": "n0nce",
            "nodes": 1, "workspace": str(root), "prefix": PREFIX, "run_prefix": "runs/r1/",
            "command": ["/usr/bin/python3", "-c", script], "env": {"HERE": str(root)}, "grace_ms": 60000,
            "heartbeat_ms": 50, **order}))
        self.process = None

    def start(self, stdout, stderr):
        env = cli.environment(STOKER_TOKEN="tok")
        self.process = subprocess.Popen([NODE, self.folder / "order.json", "0"], env=env, stdin=subprocess.DEVNULL,
                                        stdout=stdout, stderr=stderr)
        return self

    def wait_for(self, seen, seconds=cli.SECONDS):
        end = time.monotonic() + seconds
        while not (value := seen()):
            assert time.monotonic() < end, f"not seen in {seconds} s; the agent: {self.process.poll()}"
            time.sleep(0.02)
        return value

    def is_there(self, name):
        return (self.root / name).exists()

    def report(self):
        return json.loads((self.folder / "node-0/report.json").read_text())

    def log(self):
        return (self.folder / "node-0/log").read_text()


@pytest.fixture
def agent(tmp_path):
    made = []

    def make(lines=LINES, stays=True, **order):
        made.append(Agent(tmp_path / "place", PRINTS.format(lines=lines, stays=stays), **order))
        return made[-1]

    yield make
    for each in made:
        if each.process and each.process.poll() is None:
            each.process.kill()
            each.process.wait()


def pipe():
    """Its ends; the one to read from is kept open and never read."""
    return os.pipe()


def sockets():
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def terminal():
    return os.openpty()


@pytest.fixture(params=[pipe, sockets, terminal], ids=lambda make: make.__name__)
def ends(request):
    ours, theirs = request.param()
    yield ours, theirs
    for fd in (ours, theirs):
        os.close(fd)


def whole(log, lines):
    return [line for line in log.splitlines() if line.startswith(LINE)] == [f"{LINE} {n}" for n in range(lines)]


@pytest.mark.parametrize("apart", [False, True], ids=["one for both", "stdout and stderr apart"])
def test_the_command_goes_on_and_a_signal_is_heard(agent, ends, apart):
    other = pipe()
    node = agent().start(ends[1], other[1] if apart else ends[1])
    node.wait_for(lambda: node.is_there("printed"))
    node.process.send_signal(signal.SIGTERM)
    node.wait_for(lambda: node.is_there(f"told-{int(signal.SIGTERM)}"))
    assert node.process.wait(cli.SECONDS) == 143
    report = node.report()
    assert (report["state"], report["stopped"]) == ("ended", "signal")
    assert report["output_dropped_bytes"] > 9e6
    assert whole(node.log(), LINES)
    for fd in other:
        os.close(fd)


def test_it_is_drained_and_ends_by_itself(agent, ends):
    node = agent(checkpoint={"kind": "auto", "root": "", "sync": "none", "keep": "all", "signal": "USR1",
                             "grace_ms": 500}).start(ends[1], ends[1])
    node.wait_for(lambda: node.is_there("printed"))
    (node.folder / "drain.json").write_text(json.dumps({"v": 1, "reason": "test", "at": int(time.time() * 1000)}))
    node.wait_for(lambda: node.is_there(f"told-{int(signal.SIGUSR1)}"))
    node.wait_for(lambda: node.is_there(f"told-{int(signal.SIGTERM)}"))
    node.process.wait(cli.SECONDS)
    assert node.report()["stopped"] == "drain"
    assert whole(node.log(), LINES)


def test_a_stall_is_seen(agent, ends):
    node = agent(lines=50_000, stall={"mode": "fixed", "limit_ms": 2000}).start(ends[1], ends[1])
    node.process.wait(cli.SECONDS)
    assert node.report()["stopped"] == "stall"
    assert whole(node.log(), 50_000)


def test_a_command_that_ends_ends_the_agent(agent, ends):
    node = agent(lines=50_000, stays=False).start(ends[1], ends[1])
    assert node.process.wait(cli.SECONDS) == 0
    assert node.report()["state"] == "ended"
    assert whole(node.log(), 50_000)


def test_a_slow_reader_gets_whole_lines_and_is_told_what_is_missing(agent):
    ours, theirs = pipe()
    node = agent(lines=LINES, stays=False).start(theirs, theirs)
    os.close(theirs)
    node.wait_for(lambda: node.is_there("printed"))
    with os.fdopen(ours) as file:
        text = file.read()
    assert node.process.wait(cli.SECONDS) == 0
    lines = text.splitlines()
    told = [line for line in lines if "bytes of output were dropped here" in line]
    dropped = sum(int(line.split()[1]) for line in told)
    assert told and dropped == node.report()["output_dropped_bytes"]
    # A line that had gone out in part is cut where the rest of it is missing.
    known = set(node.log().splitlines())
    cut = [at for at, line in enumerate(lines) if line not in known and line not in told]
    assert all(lines[at + 1] in told for at in cut), [lines[at - 1:at + 2] for at in cut]
    assert dropped + len(text) - sum(len(line) + 1 for line in told) - len(cut) == len(node.log())
    assert '"state":"ended"' in lines[-1]


def test_the_pipe_of_others_keeps_its_mode(agent):
    """Who shares the pipe with the agent must not meet EAGAIN there."""
    ours, theirs = pipe()
    node = agent(lines=1, stays=False).start(theirs, theirs)
    assert node.process.wait(cli.SECONDS) == 0
    assert not fcntl.fcntl(theirs, fcntl.F_GETFL) & os.O_NONBLOCK
    os.close(ours)
    os.close(theirs)
