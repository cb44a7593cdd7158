"""A checkpoint that nobody will go on from is told of while the training runs, once, with the
cure; and where the newest one and the outputs are is said at the end."""

import json
import time

import pytest
import stoker as cli

TENSORS = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
WHOLE = len(TENSORS).to_bytes(8, "little") + TENSORS + bytes(8)

# What it saves at each step is in `plan`; after the last it waits for the gate.
SAVES = """
import json, os, pathlib, time

GATE = pathlib.Path({gate!r})
PLAN = json.loads(pathlib.Path({plan!r}).read_text())
RESUMED = os.environ.get("STOKER_RESUME_FROM")


def start(args):
    out = pathlib.Path(os.environ["STOKER_OUTPUT_DIR"])
    if os.environ["STOKER_PHASE"] == "train" and {output!r}:
        (out / "embeddings.bin").write_bytes(b"x" * 1000)


def step(number, args):
    if os.environ["STOKER_PHASE"] != "train":
        return
    root = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"])
    for name, size in PLAN.get(os.environ["STOKER_ATTEMPT"], PLAN.get("1")).get(str(number), {{}}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes({whole!r}[:size])
    if number == args.max_steps:
        if {dies!r} and os.environ["STOKER_ATTEMPT"] == "1":
            time.sleep(10)  # until the agent has marked what is there
            os.kill(os.getpid(), 9)
        while not GATE.exists():
            time.sleep(0.05)
"""


@pytest.fixture
def saves(project, tmp_path):
    """Start a training that saves so (step → file → bytes of it), and let it go on."""
    gate, plan = tmp_path / "gate", tmp_path / "plan.json"
    started = []

    def go(*attempts, output=True, **spec):
        plan.write_text(json.dumps({str(number): what for number, what in enumerate(attempts, 1)}))
        project.extra(SAVES.format(gate=str(gate), plan=str(plan), whole=WHOLE, output=output, dies=len(attempts) > 1))
        project.write(compile=None, hyperparameters={"max_steps": 10}, **spec)
        started.append(project.start("run", project.spec_path, "--id", "one"))
        return started[-1]
    go.gate = gate
    yield go
    gate.touch()
    for process in started:
        cli.finish(process)


def rejected(project, count, seconds=180):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = project.stoker("events", "one")
        rows = [row for row in result.lines if row["event"] == "checkpoint.rejected"] if result.code == 0 else []
        if len(rows) >= count:
            return rows
        time.sleep(0.3)
    raise AssertionError(project.stoker("events", "one").text)


def checkpoint(project, step, seconds=180):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = project.stoker("--json", "status", "one")
        if result.code == 0 and result.lines[0].get("checkpoint", {}).get("step") == step:
            return
        time.sleep(0.3)
    raise AssertionError(project.stoker("events", "one").text)


def model(step):
    return f"checkpoint-{step}/model.safetensors"


def test_one_that_is_not_whole_is_told_of_while_the_training_runs(project, saves):
    pager = project.source / "page-me"
    pager.write_text("#!/bin/sh\ncat >> told\n")
    pager.chmod(0o755)
    process = saves({"2": {model(2): 40}, "4": {model(4): 50}, "6": {model(6): len(WHOLE)}},
                    source={"path": ".", "include": ["*.py"]},
                    notify=[{"when": ["at_risk"], "command": ["./page-me"]}])
    rows = rejected(project, 2)
    assert [row["step"] for row in rows] == [2, 4] and process.poll() is None
    for row, step in zip(rows, (2, 4)):
        assert row["url"].endswith(f"/checkpoint-{step}") and "model.safetensors" in row["reason"] and row["hint"], row
    told = project.source / "told"
    end = time.monotonic() + 180
    while not told.exists() and time.monotonic() < end:
        time.sleep(0.1)
    once = json.loads(told.read_text())  # of the second alone
    assert once["event"] == "checkpoint.rejected" and once["step"] == 4 and once["occasion"] == "at_risk"
    status = project.status("one")
    assert [row["step"] for row in status["passed_over"]] == [2, 4]
    text = project.ok("status", "one").out
    assert "checkpoint-4" in text and "not used" in text and "cure" in text, text
    checkpoint(project, 6)
    saves.gate.touch()
    end = cli.finish(process)
    assert end.code == 0, end
    # Where things are, at the end and later.
    workspace = project.state / "stoker/workspace/runs/one"
    folder, outputs = workspace / "train-1", workspace / "outputs/train-1"
    for said in (end.text, project.ok("status", "one").out):
        assert f"step 6: {folder}/checkpoints/checkpoint-6" in said, said
        assert f"outputs:    {outputs}" in said, said
    assert len(rejected(project, 2)) == 2, "each is told of once"
    assert project.status("one")["outputs"]["url"] == str(outputs)


def test_the_last_one_is_told_of_when_it_stands_still_and_taken_back_when_it_is_whole(project, saves):
    saves({"2": {model(2): 40}}, output=False)
    row, = rejected(project, 1)
    assert row["step"] == 2
    found, = (project.state / "stoker/workspace/runs/one/train-1").rglob("model.safetensors")
    found.write_bytes(WHOLE)
    end = time.monotonic() + 180
    while "passed_over" in project.status("one") and time.monotonic() < end:
        time.sleep(0.3)
    status = project.status("one")
    assert "passed_over" not in status and status["checkpoint"]["step"] == 2 and "outputs" not in status


@pytest.mark.parametrize("name,kind,words", [
    ("model.pt", "auto", "the name has no step"), ("best/model.safetensors", "auto", "the name has no step"),
    ("state-7/model.safetensors", "megatron", "megatron")])
def test_what_no_checkpoint_is_named_like_is_told_of(project, saves, name, kind, words):
    saves({"2": {name: len(WHOLE), "notes.txt": 5, "latest.tmp": 3}}, checkpoint={"kind": kind})
    row, = rejected(project, 1)
    assert words in row["reason"] and row["hint"] and "step" not in row, row
    assert row["url"].endswith("/" + name.partition("/")[0])


def test_what_lies_beside_checkpoints_that_are_found_is_nobody_s_business(project, saves):
    process = saves({"2": {model(2): len(WHOLE), "model.safetensors": len(WHOLE)}})
    checkpoint(project, 2)
    time.sleep(3)  # a beat more
    saves.gate.touch()
    assert cli.finish(process).code == 0
    assert not project.events("one", "checkpoint.rejected")


def test_a_step_behind_the_one_resumed_from_is_told_of(project, saves):
    """A script that takes its checkpoint and counts from one all the same."""
    saves({"8": {model(800): len(WHOLE)}}, {"3": {model(3): len(WHOLE)}}, metrics=None)
    row, = rejected(project, 1)
    assert row["attempt"] == 2 and row["step"] == 3 and "800" in row["reason"], row
    assert "STOKER_RESUME_FROM" in row["hint"]


def test_one_that_cannot_be_copied_is_told_of_and_holds_up_no_other(project, saves, tmp_path):
    target = tmp_path / "kept"
    saves({"2": {model(2): len(WHOLE)}, "4": {model(4): len(WHOLE)}}, checkpoint={"url": str(target)})
    # A link in it: nothing outside a checkpoint is ever read.
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = list((project.state / "stoker/workspace/runs/one/train-1").rglob("checkpoint-2"))
        if found:
            (found[0] / "link").symlink_to("/etc/hostname")
            break
        time.sleep(0.02)
    row, = rejected(project, 1)
    assert row["step"] == 2 and row["hint"], row
    checkpoint(project, 4)


ENDS = """
import os, pathlib


def end(args):
    if os.environ["STOKER_PHASE"] == "train":
        root = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"])
        for name, size in {plan!r}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes({whole!r}[:size])
"""


@pytest.mark.parametrize("plan, names", [
    ({model(9): 40}, ["checkpoint-9"]),
    ({model(3): len(WHOLE), model(9): 40}, ["checkpoint-9"]),
    ({model(9): len(WHOLE), "checkpoint-9/optimizer.pt": 30}, ["checkpoint-9"]),
    ({"final/model.safetensors": len(WHOLE)}, ["final"]),
    ({model(9): len(WHOLE)}, [])])
def test_what_a_training_leaves_as_it_ends_well_is_told_of(project, plan, names):
    """Saved last of all: there is no time to stand still, and nothing comes behind it."""
    project.extra(ENDS.format(plan=plan, whole=WHOLE))
    project.write(compile=None)
    said = project.run("--id", "one")
    rows = project.events("one", "checkpoint.rejected")
    assert [row["url"].rpartition("/")[2] for row in rows] == names and all(row["hint"] for row in rows), rows
    for text in (said.text, project.ok("status", "one").out):
        assert all(name in text and "not used" in text for name in names), text
