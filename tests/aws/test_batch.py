"""The AWS Batch engine: runs of the one-second trainer whose every byte lies on S3, and whose
jobs the stand-in really runs."""

import os
import signal
import time

import pytest
import stoker as cli
from batch_job import IMAGE, QUEUE, BatchJob

LEASE = ("--lease", "3s")


@pytest.fixture
def job(aws, tmp_path):
    made = BatchJob(tmp_path / "project", aws)
    yield made
    made.stop()


@pytest.fixture
def train(job):
    """Training alone: what is tried there needs no phase 1."""
    job.write(compile=None)
    return job


def until(check, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = check()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not in {seconds} s")


def ended(job, run="one"):
    return [row for row in job.events(run, "attempt.ended")]


def test_a_cold_run_and_a_warm_one(job):
    job.write(tags={"team": "search"}, mounts=[{"source": "/data", "target": "/data"}])
    planned, = job.ok("--json", "plan", job.spec_path, "--requests").lines
    job.run("--id", "one")
    assert job.attempts("one") == [("precompile", 1), ("train", 1)]
    assert "step: 25" in job.ok("logs", "one").out
    status = job.status("one")
    assert (status["state"], status["progress"]["step"], status["jit"]["graphs"]) == ("succeeded", 25, 0)
    job.run("--id", "two")
    assert job.attempts("two") == [("train", 1)]
    assert (job.aws.effects("RegisterJobDefinition"), job.aws.effects("SubmitJob")) == (1, 3)
    # What the plan shows is what was sent.
    definition, submission = (row["body"] for row in planned["requests"][0]["sends"])
    found, = job.batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]
    assert found["jobDefinitionName"] == definition["jobDefinitionName"]
    assert definition["containerProperties"].items() <= found["containerProperties"].items()
    assert definition["containerProperties"]["logConfiguration"] == {
        "logDriver": "awslogs", "options": {"mode": "blocking"}}
    assert definition["retryStrategy"]["attempts"] == 1 and "timeout" not in definition
    unknown = job.ok("plan", job.spec_path, "--set", "resources.instance=m9.huge").out
    assert "m9.huge" in unknown and "no devices" in unknown
    jobs = job.jobs()
    assert [each["jobName"] for each in jobs] == ["stk-one-precompile-1", "stk-one-train-1", "stk-two-train-1"]
    assert jobs[0]["tags"] == {**submission["tags"], "stoker:run": "one"}
    assert all(each["tags"]["team"] == "search" for each in jobs)
    environment = {row["name"] for row in jobs[0]["container"]["environment"]}
    assert environment >= {"STOKER_ORDER", "STOKER_TOKEN", "AWS_REGION"}
    assert not {name for name in environment if "SECRET" in name or "KEY" in name}
    # Another machine sees the same, without a listing.
    since = job.aws.mark()
    other = job.elsewhere()
    assert job.ok("--json", "status", "one", env=other).lines[0]["state"] == "succeeded"
    assert job.aws.requests("ListJobs", since) == 0


def test_a_trainer_that_is_killed_is_tried_again_from_its_checkpoint(train):
    train.also("if attempt == ('train', 1): threading.Timer(0.6, lambda: os.kill(os.getpid(), 9)).start()")
    train.run("--id", "one")
    first, last = ended(train)
    assert (first["exit"], first["node"], first["class"]) == (137, 0, last and first["class"])
    assert train.attempts("one") == [("train", 1), ("train", 2)]
    assert last["class"] == "none"
    assert train.aws.effects("RegisterJobDefinition") == 1


def test_a_submit_whose_reply_is_lost_is_no_second_job(train):
    train.aws.fault("lost", operation="SubmitJob")
    train.run("--id", "one")
    assert [row["event"] for row in train.events("one") if row["event"] in
            ("attempt.uncertain", "attempt.submitted", "attempt.missing")] == ["attempt.uncertain",
                                                                              "attempt.submitted"]
    assert train.aws.effects("SubmitJob") == 1 and len(train.jobs()) == 1
    # One that never came is sent again, and a definition whose reply was lost is not made twice.
    train.write(tags={"more": "1"}, resources={"instance": "trn1.2xlarge", "shm": "1GiB"})
    train.aws.fault("reset_before", operation="SubmitJob")
    train.aws.fault("lost", operation="RegisterJobDefinition")
    train.run("--id", "two")
    assert [row["event"] for row in train.events("two") if row["event"].startswith("attempt.")][:4] == [
        "attempt.intended", "attempt.uncertain", "attempt.missing", "attempt.submitted"]
    assert len(train.jobs("stk-two-*")) == 1
    assert train.aws.effects("RegisterJobDefinition") == 2


def test_a_job_that_is_stopped_from_the_console_is_not_started_again(train):
    train.hold("train", 5)
    driver = train.start("--json", "run", train.spec_path, "--id", "one")
    train.wait_for_effect("holds")
    train.batch.terminate_job(jobId=train.jobs()[0]["jobId"], reason="too dear")
    result = cli.finish(driver)
    row, = ended(train)
    assert row["class"] == "stopped" and "too dear" in row["evidence"]
    assert result.code == 6 and len(train.jobs()) == 1


def test_a_stop_ends_the_job_with_a_checkpoint(train):
    train.write(hyperparameters={"max_steps": 4000})
    driver = train.start("--json", "run", train.spec_path, "--id", "one")
    train.wait_for_effect("saved")
    train.ok("stop", "one", env=train.elsewhere())
    assert cli.finish(driver).code == 6
    status = train.status("one")
    assert status["state"] == "stopped" and status["checkpoint"]["step"] >= 5
    assert train.agents() == [] and len(train.jobs()) == 1


def test_a_driver_that_is_killed_is_followed_by_one_that_goes_on(train):
    train.hold("train", 5)
    driver = train.start("--json", "run", train.spec_path, "--id", "one", *LEASE)
    train.wait_for_effect("holds")
    driver.kill()
    driver.communicate()
    other = train.elsewhere()
    since = train.aws.mark()
    resumed = train.start("--json", "resume", "one", *LEASE, env=other)
    until(lambda: train.aws.requests("DescribeJobs", since))
    train.gate.touch()
    assert cli.finish(resumed).code == 0
    assert train.aws.requests("ListJobs", since) == 0  # its note in the workspace has the id
    assert len(train.jobs()) == 1 and train.aws.effects("SubmitJob") == 1


def test_a_service_that_does_not_describe_is_not_a_job_that_ended(train):
    train.hold("train", 5)
    driver = train.start("--json", "run", train.spec_path, "--id", "one",
                         env={"AWS_MAX_ATTEMPTS": "1"})
    train.wait_for_effect("holds")
    train.aws.fault("unavailable", operation="DescribeJobs", count=25)
    until(lambda: train.aws.struck() >= 25, 120)
    train.gate.touch()
    assert cli.finish(driver).code == 0
    assert train.attempts("one") == [("train", 1)] and len(train.jobs()) == 1


WAITS = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested"
NEVER = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement (vCPU/memory/GPU) is higher"


def test_why_a_job_waits_is_told(train):
    train.aws.fault("job_pending", operation="SubmitJob", reason=WAITS, seconds=5)
    train.run("--id", "one")
    row, = train.events("one", "attempt.waiting")
    assert WAITS in row["reason"] and "goes on asking" in row["reason"]
    assert train.attempts("one") == [("train", 1)]
    # What can never run is not waited for.
    train.aws.fault("job_pending", operation="SubmitJob", reason=NEVER, seconds=600)
    train.run("--id", "two", code=1)
    row, = ended(train, "two")
    assert row["class"] == "user-config" and NEVER[:50] in row["evidence"]
    assert len(train.jobs("stk-two-*")) == 1


def test_a_host_that_is_lost_is_spot_and_an_image_that_is_missing_is_not_tried_again(train):
    train.hold("train", 12)
    train.aws.fault("job_interrupted", operation="SubmitJob", after=1.5, hard=True)
    driver = train.start("--json", "run", train.spec_path, "--id", "one")
    until(lambda: len(train.jobs()) == 2)
    train.gate.touch()
    assert cli.finish(driver).code == 0
    assert ended(train)[0]["class"] == "spot" and "Host EC2" in ended(train)[0]["evidence"]
    train.aws.fault("job_fails", operation="SubmitJob", reason="Task failed to start",
                    container_reason=f"CannotPullContainerError: manifest for {IMAGE} not found: manifest unknown")
    train.run("--id", "two", code=1)
    row, = ended(train, "two")
    assert row["class"] == "user-config" and "image" in row["hint"]


def test_what_is_not_allowed_or_not_there_is_named(train):
    train.aws.fault("denied", operation="SubmitJob", count=0)
    result = train.run("--id", "one", code=4)
    assert "SubmitJob" in result.text
    train.aws.clear_faults()
    assert train.aws.effects("SubmitJob") == 0
    since = train.aws.mark()
    train.aws.fault("error", operation="RegisterJobDefinition", code="ClientException", count=0,
                    message="Error executing request, Exception : something is wrong with it")
    train.write(tags=None, resources={"instance": "trn1.2xlarge", "shm": "2GiB"})
    assert "something is wrong with it" in train.run("--id", "refused", code=4).text
    assert train.aws.requests("RegisterJobDefinition", since) == 1
    train.aws.clear_faults()
    train.write(batch={**train.spec["batch"], "job_queue": "nonesuch"})
    result = train.run("--id", "two", code=4)
    assert "nonesuch" in result.text and "batch.job_queue" in result.text
    train.write(batch={**train.spec["batch"], "job_queue": QUEUE, "share_identifier": "a"})
    result = train.run("--id", "three", code=3)
    assert "batch.share_identifier" in result.text
    train.write(batch={"job_queue": QUEUE}, mounts=[{"source": "fsx:fs-1/data", "target": "/data"}])
    assert "fsx:fs-1/data" in train.run("--id", "four", code=3).text


@pytest.mark.parametrize("node", [1, 0])
def test_a_node_that_is_lost_ends_the_others_and_is_named(train, node):
    train.write(resources={"instance": "trn1.32xlarge", "nodes": 2}, checkpoint=None)
    train.hold("train", 5)
    driver = train.start("--json", "run", train.spec_path, "--id", "one")
    until(lambda: len(train.effects("holds")) == 2)
    first = train.jobs()[0]
    os.kill(train.agent_of(node), signal.SIGKILL)
    until(lambda: len(train.jobs()) == 2, 60)
    train.gate.touch()
    assert cli.finish(driver).code == 0
    row, last = ended(train)
    assert row["node"] == node and f"agent of node {node} died" in row["evidence"]
    assert train.attempts("one") == [("train", 1), ("train", 2)]
    assert train.aws.effects("TerminateJob") == (1 if node else 0)
    assert first["nodeProperties"]["numNodes"] == 2


def test_an_agent_that_never_came_up_is_read_from_cloudwatch(train):
    train.write(batch={"job_queue": QUEUE, "agent": "/nonesuch"}, retry={"attempts": 1})
    train.run("--id", "one", code=1)
    row, = ended(train)
    assert row["exit"] == 127
    assert "no whole agent in '/nonesuch'" in train.ok("logs", "one").out
