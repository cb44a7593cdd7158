"""Weeks of docs/retraining.md on Batch with everything on S3: the quickstart's real model, 1,437 images of digits in
drops, 360 held out. Every accuracy is the one that a script without stoker comes to, to the last digit."""

import hashlib
import json
import os

import pytest
from batch_job import BatchJob
from digit_weeks import PYTHON, Alone, copy_scripts

STEPS = {"lr": 3.0e-3, "warmup_steps": 5, "max_steps": 60, "batch_size": 32, "seed": 0, "eval_steps": 60, "save_steps": 60}
NO_GRAPHS = ["lr", "warmup_steps", "max_steps", "seed", "eval_steps", "save_steps"]


class FarWeeks(BatchJob):
    def __init__(self, root, aws):
        super().__init__(root, aws)
        self.source, self.alone = root / "digits", Alone(root / "alone", STEPS)
        copy_scripts(self.source)
        self.s3 = aws.client("s3")
        self.url |= {name: f"s3://bucket/{self.prefix}/{name}" for name in ("drops", "hold-out", "models", "found")}
        command = [str(PYTHON), "retrain.py"]
        self.write(source={"path": str(self.source), "include": ["*.py"]}, command=[*command, "train"], env=None,
                   hyperparameters=STEPS, metrics=[{"name": "step", "regex": "^step: ([0-9]+)"}],
                   compile={"kind": "jax", "cache_url": self.url["cache"], "quiet_period": "0s",
                            "overrides": {"hyperparameters": {"max_steps": 2, "eval_steps": 1, "save_steps": 1}},
                            "ignore": [f"hyperparameters.{name}" for name in NO_GRAPHS]},
                   data={"url": self.url["drops"], "fetch": True},
                   evaluate={"command": [*command, "evaluate"], "data": self.url["hold-out"]},
                   gate=[{"metric": "accuracy", "max_drop": "1%"}],
                   infer={"command": [*command, "infer"], "output": self.url["found"]},
                   promote={"url": self.url["models"]})
        self.drop("hold-out")

    def drop(self, *words):
        """As the tutorial's script writes it, and then uploaded."""
        for name, path in self.alone.drop(*words).items():
            self.s3.upload_file(str(path), "bucket", f"{self.prefix}/{name}")

    def turn(self, week):
        return self.stoker("retrain", self.spec_path, "--id", f"week-{week}", "--at", f"203{week}-01-07T03:00:00Z")

    def accuracy(self, run, role="candidate"):
        value, = [row["metrics"]["accuracy"] for row in self.status(run)["evaluate"]["values"] if row["role"] == role]
        return value

    def body(self, key):
        return self.s3.get_object(Bucket="bucket", Key=f"{self.prefix}/{key}")["Body"].read()

    def inferred(self, run):
        """{image file: how many digits were found}, after its manifest was held against what is there."""
        rows = json.loads(self.body(f"found/{run}/manifest.json"))["files"]
        bodies = {row["file"]: self.body(f"found/{run}/{row['file']}") for row in rows}
        assert all(hashlib.sha256(bodies[row["file"]]).hexdigest() == row["sha256"] for row in rows)
        return {os.path.basename(name): len(json.loads(body)) for name, body in bodies.items()}

    def phases(self, run):
        return [row["jobName"].removeprefix(f"stk-{run}-") for row in self.jobs(f"stk-{run}-*")]


@pytest.fixture
def far(aws, tmp_path):
    made = FarWeeks(tmp_path / "project", aws)
    yield made
    made.stop()


@pytest.mark.long
def test_weeks_of_digits_with_everything_on_s3(far):
    alone = far.alone.accuracy
    far.drop("1")
    assert (first := far.turn(1)).code == 0, first
    assert far.phases("week-1") == ["precompile-1", "train-1", "evaluate-1", "infer-1"]
    assert far.accuracy("week-1") == alone["week-1"] and far.inferred("week-1") == {"week-1.json": 287}
    far.drop("2")
    assert (second := far.turn(2)).code == 0, second
    assert far.phases("week-2") == ["train-1", "evaluate-1", "infer-1"]
    assert far.status("week-2")["jit"]["graphs"] == 0
    assert (far.accuracy("week-2"), far.accuracy("week-2", "baseline")) == (alone["week-2"], alone["week-1"])
    assert far.inferred("week-2") == {"week-1.json": 287, "week-2.json": 287}
    nothing = far.turn(3)
    assert nothing.code == 0 and nothing.out.startswith("nothing new: 0 of 2 objects") and far.phases("week-3") == []
    far.drop("4", "shuffled")
    pointer = far.body("models/current.json")
    refused = far.turn(4)
    assert refused.code == 5 and far.url["hold-out"] in refused.text, refused
    assert (far.accuracy("week-4"), far.accuracy("week-4", "baseline")) == (alone["week-4"], alone["week-2"])
    assert far.phases("week-4") == ["train-1", "evaluate-1"] and far.body("models/current.json") == pointer
    # The labels are mended, and a file with an old name comes late.
    for week in ("4", "3", "5"):
        far.drop(week)
    assert (mended := far.turn(5)).code == 0, mended
    assert far.accuracy("week-5") == alone["mended"] and far.phases("week-5") == far.phases("week-2")
    head, before, *_ = far.ok("--json", "lineage", far.url["models"]).lines
    assert (head["generation"], head["run"], head["data"]["objects"]) == (3, "week-5", 3)
    assert head["parent"]["url"] == before["model"]["url"] and before["run"] == "week-2"
    assert far.turn(6).out.startswith("nothing new: 0 of 5 objects")
    far.ok("lineage", far.url["models"], "--verify")
