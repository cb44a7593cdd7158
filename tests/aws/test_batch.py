"""The AWS Batch engine: runs of the one-second trainer whose every byte lies on S3, and whose
jobs the stand-in really runs."""

import pytest
from batch_job import BatchJob


@pytest.fixture
def job(aws, tmp_path):
    made = BatchJob(tmp_path / "project", aws)
    yield made
    made.stop()


def test_a_cold_run_and_a_warm_one(job):
    job.run("--id", "one")
    assert job.attempts("one") == [("precompile", 1), ("train", 1)]
    job.run("--id", "two")
    assert job.attempts("two") == [("train", 1)]
    assert job.aws.effects("RegisterJobDefinition") == 1
    assert job.aws.effects("SubmitJob") == 3
