"""Runs on SageMaker: the one-second trainer in training jobs, with everything on S3."""

import pytest
import stoker as cli
from bucket_job import BucketJob

ROLE = "arn:aws:iam::123456789012:role/sagemaker"
IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/training:1"


@pytest.fixture
def far(aws, tmp_path):
    """The same job, run by SageMaker."""
    made = BucketJob(tmp_path / "project", aws, engine="sagemaker", image=IMAGE,
                     resources={"instance": "ml.c5.xlarge", "nodes": 1},
                     sagemaker={"role": ROLE, "work_dir": "/opt/ml/stoker"})
    yield made
    made.stop()


def submitted(rows):
    return [(row["phase"], row["attempt"]) for row in rows if row["event"] == "attempt.submitted"]


def test_the_second_run_is_warm_and_submits_one_job(far):
    far.run("--id", "one")
    rows = far.ok("events", "one").lines
    assert submitted(rows) == [("precompile", 1), ("train", 1)]
    far.run("--id", "two")
    assert submitted(far.ok("events", "two").lines) == [("train", 1)]
    assert far.aws.effects("CreateTrainingJob") == 3
