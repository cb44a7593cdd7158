"""Parity, from the outside: a run is held against the whole series of another one, step by step."""

import json

import pytest
from project import Project

# A reading at every fourth step of 40. WRONG replaces readings by step, null leaves one out; until the
# script has died once, all readings behind step 20 are other ones, which the next attempt makes again.
TRAIN = '''
import json, os, struct
from pathlib import Path

WRONG, DIES = json.loads(os.environ["WRONG"]), int(os.environ["DIES"])
FIRST_TIME = os.environ["STOKER_ATTEMPT"] == "1"


def save(number):
    folder = Path(os.environ["STOKER_CHECKPOINT_DIR"]) / f"tmp-checkpoint-{number}"
    folder.mkdir(parents=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1, 2))
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": number}))
    folder.rename(folder.with_name(f"checkpoint-{number}"))


source, first = os.environ.get("STOKER_RESUME_FROM"), 1
if source:
    first = json.loads((Path(source) / "trainer_state.json").read_text())["global_step"] + 1
for number in range(first, 41):
    value = WRONG.get(str(number), 1 / number)
    if DIES and FIRST_TIME and number > 20:
        value = 7
    print(f"step: {number}", *[f"gauge: {value}"] if number % 4 == 0 and value is not None else [], flush=True)
    if number % 20 == 0:
        save(number)
    if DIES and FIRST_TIME and number == DIES:
        os.kill(os.getpid(), 9)
'''


@pytest.fixture
def project(tmp_path):
    job = Project(tmp_path / "project")
    (job.source / "train.py").write_text(TRAIN)
    job.write(compile=None, hyperparameters=None, env={"WRONG": "{}", "DIES": "0"},
              metrics=[{"name": "step", "regex": "^step: ([0-9]+)"},
                       {"name": "gauge", "regex": r"gauge: (\S+)"}])
    job.run("--id", "first")
    job.write(gate=[{"metric": "gauge", "against": "run:first", "max_gap": "0.1%"}])
    return job


def judged(project, run, code, wrong=(), dies=0):
    """The verdict on a run with these wrong readings."""
    project.write(env={"WRONG": json.dumps(dict(wrong)), "DIES": str(dies)})
    shown = project.run("--id", run, code=code)
    status = project.status(run)
    assert status["state"] == ("refused" if code else "succeeded")
    assert [event["passed"] for event in project.events(run, "gate.judged")] == [code == 0]
    gate = status["gate"]
    assert len(gate["entries"]) == 1 and gate["passed"] is (code == 0)
    # Whoever reads the terminal alone learns why.
    assert code == 0 or gate["entries"][0]["reason"] in shown.text
    return gate["entries"][0]


def test_the_same_readings_pass_though_a_part_was_made_twice(project):
    entry = judged(project, "same", 0)
    assert (entry["verdict"], entry["points"], entry["gap"]) == ("passed", 10, 0)
    entry = judged(project, "twice", 0, dies=37)
    assert project.attempts("twice") == [("train", 1), ("train", 2)]
    assert (entry["verdict"], entry["points"], entry["gap"]) == ("passed", 10, 0)
    entry = judged(project, "near", 0, {"24": 1 / 24 * 1.000999, "28": 1 / 28 * 0.9995})
    assert (entry["verdict"], entry["step"]) == ("passed", 24)


def test_the_largest_gap_is_named_with_both_values(project):
    entry = judged(project, "far", 5, {"24": 1 / 24 * 1.001001, "28": 1 / 28 * 1.0005})
    assert (entry["verdict"], entry["step"], entry["points"]) == ("beyond", 24, 10)
    assert (entry["candidate"], entry["baseline"]) == (1 / 24 * 1.001001, 1 / 24)
    assert "step 24" in entry["reason"] and "run first" in entry["reason"] and "0.1%" in entry["reason"]
    # A refused candidate is kept.
    assert project.status("far")["checkpoint"]["step"] == 40


@pytest.mark.parametrize("value, verdict", [(None, "missing"), ("nan", "not_finite"), ("-inf", "not_finite")])
def test_a_point_that_is_none_never_passes(project, value, verdict):
    entry = judged(project, "one", 5, {"24": value})
    assert entry["verdict"] == verdict and "step 24" in entry["reason"]
    if value is None:
        assert (entry["missing_step"], entry["missing_in"], entry["points"]) == (24, "candidate", 9)


def test_a_run_that_is_not_there_is_no_yes(project):
    project.write(gate=[{"metric": "gauge", "against": "run:nobody", "max_gap": "0.1%"}])
    refused = project.run("--id", "one", code=4)
    assert "run nobody, which is not there" in refused.err
    assert "one" not in [row["run"] for row in project.ok("list", "--json").lines]
    # What goes later is met by the gate.
    project.write(gate=[{"metric": "gauge", "against": "run:first", "max_gap": "0.1%"}])
    project.run("--id", "one", "--until", "train")
    project.ok("rm", "first")
    entry = judged(project, "one", 5)
    assert entry["verdict"] == "missing" and "run first" in entry["reason"] and "gap" not in entry
