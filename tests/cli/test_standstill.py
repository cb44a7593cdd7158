"""A training that does not go forward: status and the block say what it waits for, and for how long, instead of a
speed that is over."""

import time
from datetime import datetime, timedelta

import pytest
import stoker as cli
from terminal import Terminal

TENSORS = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
WHOLE = len(TENSORS).to_bytes(8, "little") + TENSORS + bytes(8)
# Step 30 waits for the gate, deaf to what would end it, and saves when it is told to.
HOLDS = """
import os, pathlib, signal, time

for number in {deaf!r}:
    signal.signal(number, lambda *_: None)


def step(number, args):
    time.sleep(0.1)
    while os.environ["STOKER_PHASE"] == "train" and number == 30 and not pathlib.Path({gate!r}).exists():
        time.sleep(0.02)
        folder = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"]) / "checkpoint-30"
        if pathlib.Path({gate!r} + "-save").exists() and not folder.exists():
            folder.mkdir()
            (folder / "model.safetensors").write_bytes({whole!r})
"""


@pytest.fixture
def hold(project):
    gate = project.root / "go"

    def write(deaf=(), **spec):
        project.extra(HOLDS.format(gate=str(gate), deaf=list(deaf), whole=WHOLE))
        project.write(compile=None, hyperparameters={"max_steps": 40}, **spec)
        return gate
    yield write
    gate.touch()
    if project.state.exists():
        project.stoker("stop", "one")


def status_until(project, reached, seconds=180):
    end = time.monotonic() + seconds
    while True:
        result = project.stoker("--json", "status", "one")
        if result.code == 0 and reached(result.lines[0]):
            return result.lines[0]
        assert time.monotonic() < end, result
        time.sleep(0.2)


def holds(status):
    return status.get("progress", {}).get("step") == 25


def line(project, label):
    found = [row for row in project.ok("status", "one").out.splitlines() if row.startswith(label + ":")]
    return found[0] if found else None


def test_stopping_says_what_it_waits_for(project, hold):
    gate = hold(deaf=(10, 15), checkpoint={"grace": "10m"}, limits={"grace": "10m"})
    process = project.start("run", project.spec_path, "--id", "one")
    status_until(project, holds)
    assert "/s" in line(project, "progress") and line(project, "stopping") is None
    stop = project.start("stop", "one", "--reason", "enough")
    status = status_until(project, lambda status: "stopping" in status)
    stopping = status["stopping"]
    assert stopping["waits_for"] == "a checkpoint" and stopping["reason"] == "enough" and stopping["seconds"] >= 0
    until = datetime.fromisoformat(stopping["until"]) - datetime.fromisoformat(stopping["since"])
    assert timedelta(minutes=10) <= until <= timedelta(minutes=11)
    assert status["state"] == "running" and "stalled" not in status
    assert "stopping" in line(project, "state") and "waits for a checkpoint until " in line(project, "stopping")
    assert "/s" not in line(project, "progress") and "step 25 of 40" in line(project, "progress")
    # Once it has saved, only its end is left.
    gate.with_name("go-save").touch()
    status = status_until(project, lambda status: status.get("stopping", {"waits_for": ""})["waits_for"] != "a checkpoint")
    assert status["stopping"]["waits_for"] == "the command to end" and "until" not in status["stopping"]
    assert status["stopping"]["since"] == stopping["since"]
    gate.touch()
    cli.finish(process), cli.finish(stop)
    status = project.status("one")
    assert "stopping" not in status and line(project, "stopping") is None, status


def test_stalled_says_when_it_is_restarted_and_takes_it_back(project, hold):
    gate = hold(limits={"stall": "90s"})
    process = project.start("run", project.spec_path, "--id", "one")
    status = status_until(project, lambda status: "until" in status.get("stalled", {}))
    stalled = status["stalled"]
    limit = datetime.fromisoformat(stalled["until"]) - datetime.fromisoformat(stalled["since"])
    assert abs(limit - timedelta(seconds=90)) < timedelta(seconds=2) and stalled["seconds"] >= 45, stalled
    assert "no step for " in line(project, "stalled") and ", restart at " + stalled["until"][:19] + "Z" in line(project, "stalled")
    assert "stalled" in line(project, "state") and "/s" not in line(project, "progress")
    gate.touch()
    assert cli.finish(process).code == 0
    assert "stalled" not in project.status("one") and project.attempts("one") == [("train", 1)]


def test_it_is_restarted_when_that_was_said(project, hold):
    hold(limits={"stall": "6s"}, retry={"attempts": 2, "backoff": {"first": "0s", "max": "0s"}})
    process = project.start("run", project.spec_path, "--id", "one")
    status_until(project, lambda status: any(row["phase"] == "train" and row["attempt"] == 2 for row in status["attempts"]))
    row, = [row for row in project.events("one", "attempt.stalled") if row["attempt"] == 1]
    end, = [row for row in project.events("one", "attempt.ended") if row["attempt"] == 1]
    assert end["class"] == "timeout-hang" and row["reason"] == "no step"
    finished, until, since = map(datetime.fromisoformat, (end["finished"], row["until"], row["since"]))
    assert abs((finished - until).total_seconds()) < 60 and (until - since).total_seconds() == 6, (row, end)
    project.stoker("stop", "one")
    cli.finish(process)


def test_the_block_says_it_too(project, hold):
    gate = hold(deaf=(10, 15), checkpoint={"grace": "10m"}, limits={"stall": "60s"})
    one = Terminal("run", project.spec_path, "--id", "one", env=project.env(TERM="xterm-256color"), cwd=project.source)
    try:
        one.until("speed:")
        one.until("stalled:")
        assert "no step for" in one.screen.text and "speed:" not in one.screen.text and "restart at" in one.screen.text
        stop = project.start("stop", "one")
        one.until("waits for a checkpoint until")
        assert "stopping" in one.screen.text and "speed:" not in one.screen.text and "\nstalled:" not in one.screen.text
        gate.touch()
        assert one.finish() in (0, 6), "it may come to its end before it is ended"
        cli.finish(stop)
    finally:
        one.__exit__()
