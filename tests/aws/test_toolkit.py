"""Runs on SageMaker with `launcher: toolkit`: the plain Estimator shape, without our agent."""

import json
from pathlib import Path

import pytest
from bucket_job import BUCKET
from neuron_standin.install import Installation
from project import Project

KEPT = json.loads((Path(__file__).parent / "data/estimator.json").read_text())
ROLE = "arn:aws:iam::123456789012:role/sagemaker"
IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training-neuronx:2.1"


class ToolkitJob(Project):
    """The neuron stand-in's script; everything in S3."""

    def __init__(self, root, aws, neuron, **changes):
        self.aws, self.neuron = aws, neuron
        super().__init__(root)
        aws.make_bucket(BUCKET)
        neuron.train_script(self.source / "train.py")
        (root / "home").mkdir()
        self.write(**{
            "engine": "sagemaker", "image": IMAGE, "command": ["torchrun", "train.py"],
            "workspace": f"s3://{BUCKET}/stoker",
            "resources": {"instance": "ml.trn1.2xlarge", "nodes": 1},
            "sagemaker": {"role": ROLE, "launcher": "toolkit"},
            "hyperparameters": {"lr": 0.1, "max_steps": 8, "save_steps": 4},
            "compile": {"kind": "neuron", "cache_url": f"s3://{BUCKET}/cache", "max_steps": 4, "quiet_period": "0s"},
            "metrics": [{"name": "loss", "regex": "loss: ([0-9.eE+-]+)"}, {"name": "step", "regex": "step: ([0-9]+)"}],
            "retry": {"attempts": 2, "backoff": {"first": "0s", "max": "0s"}}, **changes})

    def env(self, **more):
        return self.aws.env(**{"HOME": str(self.root / "home"), "STOKER_STATE": f"s3://{BUCKET}/state", **more})


@pytest.fixture
def neuron(aws, tmp_path):
    """What is in the image."""
    made = Installation(tmp_path / "neuron", STANDIN_INSTANCE="trn1.2xlarge")
    aws.settings(job_env={"PATH": made.path})
    return made


@pytest.fixture
def far(aws, neuron, tmp_path):
    return ToolkitJob(tmp_path / "project", aws, neuron)


def submitted(job, run):
    return [(row["phase"], row["attempt"]) for row in job.events(run, "attempt.submitted")]


@pytest.mark.parametrize("nodes", [1, 2])
def test_both_phases_run_and_the_second_run_is_warm(far, nodes):
    far.write(resources={"instance": "ml.trn1.2xlarge", "nodes": nodes})
    far.run("--id", "one")
    assert submitted(far, "one") == [("precompile", 1), ("train", 1)]
    said, = far.events("one", "cache.verified")
    assert said["complete"] and said["graphs"] == said["done"] > 0 and said["sources"]["log"]["misses"] > 0, said
    status = far.status("one")
    assert status["jit"]["graphs"] == 0 and status["progress"]["step"] == 8 and "loss" in status["metrics"]
    assert [(row["class"], row["exit"]) for row in status["attempts"]] == [("none", 0)] * 2
    far.run("--id", "two")
    assert submitted(far, "two") == [("train", 1)]
    for node in range(nodes):
        log = far.ok("logs", "one", "--phase", "train", "--node", str(node)).out
        assert f"--node_rank {node}" in log or nodes == 1, log
        assert log.rstrip().endswith("Reporting training SUCCESS"), log
    assert not [key for key in far.aws.objects(BUCKET) if key.startswith("stoker/agents/")], "nobody needs an agent"


def test_a_hang_is_stopped_and_tried_again(far):
    script = far.source / "train.py"
    script.write_text(script.read_text().replace(
        "            crash(number)\n", "            crash(number)\n"
        "            if number == 3 and os.environ['TRAINING_JOB_NAME'].endswith('-train-1'):\n"
        "                time.sleep(600)\n"))
    far.write(compile=None, limits={"stall": "1s"})
    far.run("--id", "hangs")
    first, second = far.status("hangs")["attempts"]
    assert (first["class"], first["action"]) == ("timeout-hang", "retry"), first
    assert "no progress for" in first["evidence"] and "last seen at: step" in first["evidence"], first
    assert second["class"] == "none"
    ended = far.events("hangs", "attempt.ended")[0]
    assert ended["stopped"] == "stall" and ended["hang"] >= 1000, ended
    assert far.aws.effects("StopTrainingJob") == 1
    kept = json.loads(far.aws.objects(BUCKET)["stoker/runs/hangs/train-1/stopped.json"])
    assert kept["stopped"] == "stall" and kept["stall"]["doing"] == "step", kept


def test_phase_1_has_its_time_and_no_more(far):
    far.neuron.set(STANDIN_COMPILE_SECONDS=600)
    far.write(retry={"attempts": 1, "backoff": {"first": "0s", "max": "0s"}},
              compile={**far.spec["compile"], "timeout": "3s"})
    far.run("--id", "slow", code=1)
    attempt, = far.status("slow")["attempts"]
    assert attempt["class"] == "timeout-hang" and "compile.timeout" in attempt["evidence"], attempt


def test_a_script_that_fails_is_told_by_its_own_words(far):
    script = far.source / "train.py"
    script.write_text("raise ValueError('shapes (3,4) and (5,6) not aligned')\n")
    far.write(compile=None)
    far.run("--id", "wrong", code=1)
    attempt, = far.status("wrong")["attempts"]
    assert (attempt["class"], attempt["exit"], attempt["action"]) == ("user-code", 1, "stop"), attempt
    assert "shapes (3,4) and (5,6) not aligned" in attempt["evidence"], attempt


def test_what_does_not_hold_is_said_and_what_cannot_be_is_refused(far):
    plan = far.ok("plan", far.spec_path).out
    assert "without stoker's agent" in plan and "no claim" in plan and "no checkpoint is marked" in plan
    assert "no health checks" in "\n".join(far.plan()["not_held"])
    far.write(health={"timeout": "5m"})
    refused = far.stoker("validate", far.spec_path)
    assert refused.code == 3 and "'health' needs stoker's agent" in refused.err, str(refused)
    assert far.aws.requests("CreateTrainingJob") == 0
