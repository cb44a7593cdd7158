"""Runs on AWS Batch to which the agent comes by a link, and by a container that runs before;
one node and several."""

import json
import shutil

import pytest
import stoker as cli
from batch_job import QUEUE, BatchJob
from bucket_job import BUCKET

AGENT = cli.BINARY.parent / "agent"
HELPER = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/stoker:0.1"


@pytest.fixture
def batch(aws, tmp_path):
    jobs = []

    def make(**changes):
        jobs.append(BatchJob(tmp_path / "project", aws, compile=None, hyperparameters={"max_steps": 3}, **changes))
        return jobs[-1]

    yield make
    for job in jobs:
        job.stop()


def definition_of(job):
    found, = job.batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]
    return found


def test_the_agent_comes_by_a_link(batch):
    """It is in the submission alone; the archive is brought once."""
    job = batch(batch={"job_queue": QUEUE})
    said = job.ok("--json", "plan", job.spec_path).lines[0]
    assert "over a link that is valid for 7 days" in said["agent"]
    job.ok("run", job.spec_path, "--id", "one")
    job.ok("run", job.spec_path, "--id", "two", "--set", "hyperparameters.max_steps=4")
    archives = [key for key in job.aws.objects(BUCKET) if key.endswith(".tar.gz") and "/agents/" in key]
    assert len(archives) == 1
    assert sum(row["effect"] for row in job.aws.ledger(operation="PutObject") if row["name"].endswith(archives[0])) \
        + sum(row["effect"] for row in job.aws.ledger(operation="CompleteMultipartUpload")
              if row["name"].endswith(archives[0])) == 1
    sent = json.dumps(job.jobs()[0]["container"]["environment"])
    assert "X-Amz-Signature" in sent
    assert "X-Amz-Signature" not in json.dumps(definition_of(job)["containerProperties"])
    # Journal, orders, reports, logs; the agent itself can make such links.
    holding = [key for key, body in job.aws.objects(BUCKET).items() if b"X-Amz-Signature" in body]
    assert [key for key in holding if "/agents/" not in key] == []


def test_the_agent_comes_with_a_container_that_runs_before(batch):
    job = batch(batch={"job_queue": QUEUE, "helper_image": HELPER},
                resources={"instance": "trn1.2xlarge", "nodes": 2})
    other = job.root / "other"
    shutil.copytree(AGENT, other)
    with (other / "stoker-node").open("ab") as program:
        program.write(b"another build")
    job.aws.settings(image_files={HELPER: {"/opt/stoker": str(other)}})
    assert job.ok("--json", "plan", job.spec_path).lines[0]["agent"] == f"from the image {HELPER}, in a container that runs before"
    job.ok("run", job.spec_path, "--id", "one")
    claimed, = (row for row in job.ok("events", "one").lines if row["event"] == "attempt.claimed")
    assert ("the agent in the image of batch.helper_image is of another build than this stoker (version"
            in claimed["reason"]), claimed
    node, = definition_of(job)["nodeProperties"]["nodeRangeProperties"]
    helper, main = node["ecsProperties"]["taskProperties"][0]["containers"]
    assert (helper["image"], helper["essential"]) == (HELPER, False)
    assert main["dependsOn"] == [{"containerName": helper["name"], "condition": "SUCCESS"}]
    job.aws.settings(image_files={HELPER: {"/opt/other": str(AGENT)}})
    result = job.stoker("run", job.spec_path, "--id", "two", "--set", "hyperparameters.max_steps=4")
    assert result.code == 1
    assert "there is no whole agent in" in json.dumps(job.status("two"))
