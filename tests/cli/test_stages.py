"""What follows a training: the candidate is evaluated and judged. A no ends the run with 5, keeps the
candidate, and says metric, value and limit; what is done is not done again."""

import pytest

TENSORS = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
WHOLE = len(TENSORS).to_bytes(8, "little") + TENSORS + bytes(8)
SAVES = """
import os, pathlib

def step(number, args):
    if number == args.max_steps and SAVED:
        path = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"]) / f"step-{number}.safetensors"
        path.write_bytes(WHOLE)
"""
# What it tells, and at which start of which task it dies, is in the environment.
EVALUATES = """
import os, pathlib, sys

root = pathlib.Path(__file__).parent
name = f'{os.environ["STOKER_MODEL_ROLE"]}-{os.environ["STOKER_REPEAT"]}'
with open(os.environ["STARTS"], "a") as starts:
    starts.write(name + "\\n")
assert os.environ["STOKER_PHASE"] == "evaluate" and pathlib.Path(os.environ["STOKER_MODEL"]).stat().st_size > 8
if name == os.environ.get("DIES") and open(os.environ["STARTS"]).read().count(name) == 1:
    os.kill(os.getpid(), 9)
told = os.environ["TOLD"]
if told.startswith("log:"):
    print("accuracy:", told[4:], flush=True)
elif told != "nothing":
    (pathlib.Path(os.environ["STOKER_OUTPUT_DIR"]) / "metrics.json").write_text(told)
"""


@pytest.fixture
def evaluated(project, tmp_path):
    def go(told, code=0, saves=True, gate=None, **evaluate):
        project.extra(SAVES + f"\nSAVED, WHOLE = {saves}, {WHOLE!r}\n")
        (project.source / "evaluate.py").write_text(EVALUATES)
        env = {"TOLD": told, "STARTS": str(tmp_path / "starts"), **evaluate.pop("env", {})}
        project.write(compile=None, hyperparameters={"max_steps": 3},
                      evaluate={"command": ["/usr/bin/python3", "evaluate.py"], "env": env, **evaluate},
                      gate=gate or [{"metric": "accuracy", "at_least": 0.9}])
        return project.run("--id", "one", code=code)
    go.starts = lambda: (tmp_path / "starts").read_text().split()
    return go


def test_a_candidate_that_is_good_enough_is_left(project, evaluated):
    shown = evaluated('{"accuracy": 0.95, "loss": 0.1}', repeat=2)
    status = project.status("one")
    assert status["state"] == "succeeded" and status["phase"] == "gate"
    assert status["candidate"]["step"] == 3 and status["candidate"]["url"] == status["checkpoint"]["url"]
    assert status["evaluate"]["tasks"] == status["evaluate"]["done"] == 2
    assert [row["metrics"] for row in status["evaluate"]["values"]] == [{"accuracy": 0.95, "loss": 0.1}] * 2
    assert status["gate"]["passed"] and status["gate"]["entries"][0]["candidate"] == 0.95
    assert status["gate"]["candidate"] == status["candidate"]["url"] and status["gate"]["generation"] == 0
    assert "promoted" not in status and "accuracy 0.95" in shown.text
    assert status["ledger"]["evaluate"] > 0
    assert evaluated.starts() == ["candidate-1", "candidate-2"]


@pytest.mark.parametrize("told, said", [
    ('{"accuracy": 0.8}', "0.8"), ("nothing", "missing"), ('{"accuracy": NaN}', "no number"), ("log:nan", "no number")])
def test_a_no_ends_the_run_with_5_and_keeps_the_candidate(project, evaluated, told, said):
    shown = evaluated(told, code=5)
    status = project.status("one")
    assert status["state"] == "refused" and not status["gate"]["passed"]
    assert said in status["reason"] and "accuracy" in status["reason"] and said in shown.text, status["reason"]
    candidate = project.root / status["candidate"]["url"]
    assert candidate.read_bytes() == WHOLE and "promoted" not in status
    # The step of a pipeline is repeated: the same answer, and nothing is done again.
    evaluated(told, code=5)
    assert evaluated.starts() == ["candidate-1"]


def test_values_of_the_log_count_where_no_file_tells_them(project, evaluated):
    evaluated("log:0.97")
    assert project.status("one")["evaluate"]["values"] == [
        {"task": "candidate-1", "role": "candidate", "repeat": 1, "metrics": {"accuracy": 0.97}, "metrics_from": "log"}]


def test_a_later_attempt_does_what_is_not_done(project, evaluated):
    evaluated('{"accuracy": 0.95}', repeat=3, env={"DIES": "candidate-2"})
    assert evaluated.starts() == ["candidate-1", "candidate-2", "candidate-2", "candidate-3"]
    assert project.attempts("one") == [("train", 1), ("evaluate", 1), ("evaluate", 2)]
    assert [row["task"] for row in project.events("one", "task.done")] == ["candidate-1", "candidate-2", "candidate-3"]
    assert project.status("one")["state"] == "succeeded"


def test_without_a_checkpoint_there_is_no_candidate(project, evaluated):
    evaluated('{"accuracy": 0.95}', code=1, saves=False)
    status = project.status("one")
    assert "no complete checkpoint" in status["reason"] and "output:PATH" in status["hint"]
    assert project.attempts("one") == [("train", 1)]


def test_evaluation_and_gate_are_steps_of_their_own(project, evaluated, tmp_path):
    evaluated('{"accuracy": 0.8}', code=5)
    for phase, code, kinds in (("train", 0, []), ("evaluate", 0, ["evaluate"]), ("gate", 5, ["evaluate"])):
        result = project.run("--id", "two", "--until", phase, code=code)
        assert [name for name, _ in project.attempts("two") if name != "train"] == kinds, str(result)
    assert project.status("two")["state"] == "refused"
