"""`resume RUN --salvage` on AWS Batch while the service does not say what became of the last job: nothing is
submitted before it does, the driver says what it waits for, and the command can be repeated."""

import pytest
import stoker as cli
from batch_job import BatchJob
from bucket_job import BUCKET

ONLY = {"compile": {"kind": "none"}, "hyperparameters": {"max_steps": 6}, "limits": {"unreachable": "5s"},
        "retry": {"attempts": 2, "backoff": {"first": "0s", "max": "0s"}}}
SAYS_NOTHING = ("DescribeJobs", "ListJobs")


@pytest.fixture
def job(aws, tmp_path):
    job = BatchJob(tmp_path / "project", aws, **ONLY)
    yield job
    job.stop()


def leave(job):
    """A run whose driver is dead; its job waits at the gate, and events tell of that."""
    job.hold("train", 3)
    driver = job.start("run", job.spec_path, "--id", "victim")
    job.wait_for_effect("holds")
    job.wait_for(lambda: job.events("victim", "attempt.started"))
    driver.kill()
    driver.communicate()


def damage(job, name):
    """The event of that name is gone, and the copies from which it could be read."""
    rows = job.ok("events", "victim").lines
    seq = next(row["seq"] for row in rows if row["event"] == name)
    folder = f"{job.prefix}/state/runs/victim"
    for key in job.aws.objects(BUCKET):
        if key == f"{folder}/events/{seq:012}.json" or key.startswith(f"{folder}/chunks/"):
            job.aws.client().delete_object(Bucket=BUCKET, Key=key)
    assert "victim --salvage" in job.stoker("status", "victim").cure


def silence(aws):
    for operation in SAYS_NOTHING:
        aws.fault("unavailable", operation=operation, count=0)


def waits(job):
    """The driver of a salvage gives up after limits.unreachable; it has submitted nothing, and says why. Its events."""
    gave_up = job.stoker("--json", "resume", "victim", "--salvage")
    assert gave_up.code == 75, str(gave_up)
    assert job.aws.requests("SubmitJob") == 1, str(gave_up)
    left, = [row["reason"] for row in gave_up.lines if row.get("event") == "driver.left"]
    assert "batch DescribeJobs" in left or "out of sight" in left, str(gave_up)
    return gave_up.lines


# Without its intention the run does not know the attempt; without the other event it knows it, and not the job.
@pytest.mark.parametrize("lost", ["attempt.intended", "attempt.submitted"])
def test_nothing_is_submitted_while_the_last_job_is_unknown(job, aws, lost):
    leave(job)
    damage(job, lost)
    silence(aws)
    rows = waits(job) + waits(job)  # it can be repeated
    settled = [row.get("event") for row in rows].count("journal.settled")
    assert settled == (lost == "attempt.submitted"), rows
    aws.clear_faults()
    job.gate.touch()
    done = job.stoker("--json", "resume", "victim", "--salvage")
    assert done.code == 0, str(done)
    kinds = [row["event"] for row in job.ok("events", "victim").lines]
    assert kinds.count("journal.salvaged") == kinds.count("journal.settled") == 1, kinds
    assert aws.effects("SubmitJob") == 1 and len(job.effects("start")) == 1, kinds


def test_a_job_that_ended_unseen_is_not_submitted_again(job, aws):
    """It ends while its service is silent: what it says later is its end."""
    leave(job)
    damage(job, "attempt.submitted")
    silence(aws)
    salvage = job.start("--json", "resume", "victim", "--salvage")
    job.gate.touch()
    job.wait_for_effect("end")
    assert cli.finish(salvage).code == 75
    assert aws.requests("SubmitJob") == 1
    aws.clear_faults()
    done = job.stoker("--json", "resume", "victim", "--salvage")
    assert done.code == 0, str(done)
    assert aws.effects("SubmitJob") == 1 and len(job.effects("start")) == 1
