"""Runs on SageMaker: the one-second trainer in training jobs, with everything on S3. Its
agent comes through an input channel, whatever the image."""

import os
import signal

import pytest
import stoker as cli
from sagemaker_job import SagemakerJob

LEASE = ("--lease", "3s")


@pytest.fixture
def make(aws, tmp_path):
    made = []

    def build(**changes):
        made.append(SagemakerJob(tmp_path / "project", aws, **changes))
        return made[-1]
    yield build
    for job in made:
        job.stop()


def test_phases_share_a_warm_pool_which_is_given_back_and_the_next_run_is_one_job(make, aws):
    job = make(sagemaker={"warm_pool": "10m"})
    job.run("--id", "one")
    assert job.submitted() == [("precompile", 1), ("train", 1)]
    first, second = job.described("stk-one-precompile-1"), job.described("stk-one-train-1")
    assert (first["WarmPoolStatus"]["Status"], first["WarmPoolStatus"]["ReusedByJob"]) == ("Reused", "stk-one-train-1")
    assert second["WarmPoolStatus"]["Status"] == "Terminated" and aws.effects("UpdateTrainingJob") == 1
    assert [row["billable"] for row in job.rows(kind="attempt.ended")] == [
        1000 * each["BillableTimeInSeconds"] for each in (first, second)]
    assert "step: 25" in job.ok("logs", "one", env=job.elsewhere()).out
    job.run("--id", "two", env=job.elsewhere())
    assert job.submitted("two") == [("train", 1)]
    assert aws.effects("CreateTrainingJob") == 3 and aws.effects("UpdateTrainingJob") == 2


def test_two_instances_one_of_which_loses_its_trainer(make, aws):
    aws.settings(infra_check=False)
    job = make(nodes=2, compile=None, hyperparameters={"max_steps": 80}, sagemaker={"infra_check": True})
    job.also("if attempt == ('train', 1) and rank() == 1:\n    threading.Timer(2.0, os.kill, (os.getpid(), 9)).start()")
    job.write(env={**job.spec["env"], "STEP_SECONDS": "0.15"})
    job.run("--id", "one")
    assert job.submitted() == [("train", 1), ("train", 2)]
    first, _ = job.rows(kind="attempt.ended")
    assert (first["exit"], first["node"]) == (137, 1)
    # The service refuses its own check of the machines: without it, and said so.
    warned = job.rows(kind="attempt.submitted")[0]["reason"]
    assert "without SageMaker's own check" in warned and "not supported" in warned
    assert {row["rank"] for row in job.effects("end")} == {0, 1}
    again = [row for row in job.effects("start") if row["attempt"] == 2]
    assert len(again) == 2 and all(row["resumed_from"] for row in again)
    assert "step: 80" in job.ok("logs", "one", "--node", 1, env=job.elsewhere()).out


def test_spot_takes_a_machine_away_and_the_same_job_goes_on(make, aws):
    job = make(compile=None, sagemaker={"spot": True, "max_runtime": "1h"})
    job.write(env={**job.spec["env"], "STEP_SECONDS": "0.6"})
    aws.fault("job_interrupted", operation="CreateTrainingJob", after=14, hard=True)
    job.run("--id", "one")
    assert job.submitted() == [("train", 1)] and job.ended() == [("none", 0)]
    done = job.described("stk-one-train-1")
    assert [each["Status"] for each in done["SecondaryStatusTransitions"]].count("Starting") == 2
    assert done["StoppingCondition"] == {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 3600}
    # The steps are in order in the log of both of its lives.
    assert job.effects("end")[0]["learned"] == 25 * 26 // 2 and len(job.effects("start")) == 2
    # The second goes on from what the first one has saved.
    resumed = [row["resumed_from"] for row in job.effects("start")]
    assert resumed[0] is None and os.path.basename(resumed[1]).startswith("checkpoint-")
    ended, = job.rows(kind="attempt.ended")
    assert ended["billable"] == 1000 * done["BillableTimeInSeconds"] < 1000 * done["TrainingTimeInSeconds"]


def test_no_machines_twice_then_some(make, aws):
    job = make(compile=None)
    aws.fault("job_fails", operation="CreateTrainingJob", count=2)
    aws.fault("throttle", operation="CreateTrainingJob", count=3)
    job.run("--id", "one")
    assert job.ended() == [("capacity", None)] * 2 + [("none", 0)]
    assert "CapacityError: Unable to provision" in job.rows(kind="attempt.ended")[0]["evidence"]


REFUSALS = [  # what goes wrong, its class, the exit code, words of the evidence
    ({"kind": "job_fails", "reason": "ClientError: Cannot pull non-existent repository or image "
      "123456789012.dkr.ecr.eu-west-1.amazonaws.com/trainer:1 (or pull access was denied)"}, "user-config", 1,
     "Cannot pull"),
    ({"kind": "denied"}, "quota-permission", 4, "AccessDenied"),
    ({"kind": "error", "code": "ResourceLimitExceeded", "message": "The account-level service limit "
      "'ml.c5.xlarge for training job usage' is 0 Instances, with current utilization of 0 Instances and a request delta "
      "of 1 Instances."}, "quota-permission", 4, "training job usage"),
    ({"kind": "error", "code": "ValidationException", "message": "RoleArn: Cross-account pass role is not allowed."},
     "user-config", 1, "Cross-account"),
]


def test_what_a_retry_does_not_cure_is_named_and_ends_the_run(make, aws):
    job = make(compile=None)
    for number, (fault, kind, code, words) in enumerate(REFUSALS):
        aws.fault(operation="CreateTrainingJob", **fault)
        result = job.run("--id", f"r{number}", code=code)
        ended, = job.rows(f"r{number}", "attempt.ended")
        assert ended["class"] == kind and words in ended["evidence"], (fault, ended)
        assert "cure" in result.out


def test_a_lost_reply_and_looks_without_an_answer_double_nothing(make, aws):
    job = make(compile=None)
    job.hold("train", 5)
    aws.fault("lost", operation="CreateTrainingJob")
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    job.wait_for_effect("holds")
    aws.fault("reset_before", operation="DescribeTrainingJob", count=7)
    job.wait_for(lambda: aws.struck() == 8, 120)
    job.gate.touch()
    assert cli.finish(driver).code == 0
    assert aws.effects("CreateTrainingJob") == 1 and len(job.effects("start")) == 1
    assert len(job.rows(kind="attempt.uncertain")) == 1 and job.submitted() == [("train", 1)]


def test_a_killed_driver_s_job_is_adopted_and_stopped_from_elsewhere(make, aws):
    job = make(compile=None, limits={"grace": "1s"})
    job.write(checkpoint={**job.spec["checkpoint"], "grace": "1s"})
    job.hold("train", 5)
    driver = job.start("--json", "run", job.spec_path, "--id", "one", *LEASE)
    job.wait_for_effect("holds")
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    second = job.start("--json", "resume", "one", *LEASE, env=job.elsewhere())
    job.wait_for(lambda: any(row["event"] == "driver.took_over" and row["epoch"] == 2 for row in job.rows()))
    job.ok("stop", "one", env=job.elsewhere())
    assert cli.finish(second).code == 6
    assert aws.effects("CreateTrainingJob") == 1 and [each[0] for each in job.ended()] == ["stopped"]
    assert job.described("stk-one-train-1")["TrainingJobStatus"] in ("Stopped", "Failed")


def test_stopped_in_the_console(make, aws):
    job = make(compile=None)
    job.hold("train", 5)
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    job.wait_for_effect("holds")
    job.client.stop_training_job(TrainingJobName="stk-one-train-1")
    assert cli.finish(driver).code != 0
    ended, = job.rows(kind="attempt.ended")
    assert ended["class"] == "stopped" and "Training job stopped" in ended["evidence"]
    assert aws.effects("CreateTrainingJob") == 1


def test_an_agent_that_never_comes_up_is_heard_in_the_service_s_own_log(make, aws):
    job = make(compile=None)
    aws.fault("job_pending", operation="CreateTrainingJob", seconds=5)
    aws.fault("error", service="logs", code="ResourceNotFoundException", count=2,
              message="The specified log group does not exist.")
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    starts = job.wait_for(lambda: [key for key in aws.objects("bucket") if key.endswith("/start")]
                          if aws.effects("CreateTrainingJob") else None)
    aws.client().put_object(Bucket="bucket", Key=starts[0], Body=b"echo it is not what it was >&2; exit 99\n")
    assert cli.finish(driver).code == 1
    ended = job.rows(kind="attempt.ended")[0]
    assert ended["exit"] == 99 and "it is not what it was" in ended["evidence"]
    assert "it is not what it was" in job.ok("logs", "one", env=job.elsewhere()).out
