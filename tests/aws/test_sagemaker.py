"""Runs on SageMaker: the one-second trainer in training jobs, with everything on S3. Its
agent comes through an input channel, whatever the image."""

import json
import os
import signal
import time
from datetime import datetime, timedelta

import pytest
import stoker as cli
from bucket_job import BUCKET
from sagemaker_job import SagemakerJob

LEASE = ("--lease", "3s")
NOT_FOUND = {"code": "ValidationException", "message": "Requested resource not found."}


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
        each["BillableTimeInSeconds"] for each in (first, second)]
    assert "step: 25" in job.ok("logs", "one", env=job.elsewhere()).out
    job.run("--id", "two", env=job.elsewhere())
    assert job.submitted("two") == [("train", 1)]
    assert aws.effects("CreateTrainingJob") == 3 and aws.effects("UpdateTrainingJob") == 2


def test_machines_are_given_back_when_a_node_is_sick_and_when_no_job_follows(make, aws):
    """The sick one is not taken over; and it is the last job that had machines which keeps them,
    not one that was refused. What may not be given back is told, with what it costs."""
    job = make(sagemaker={"warm_pool": "10m"})
    job.write(resources={**job.spec["resources"], "price": 36})
    job.also("if attempt == ('train', 1):\n    print({'one': 'NEURON_HW_ERR=1'}.get(os.environ['STOKER_RUN'], 'oh'), flush=True)"
             "\n    sys.exit(1)")
    job.run("--id", "one")
    assert job.ended() == [("none", 0), ("hardware-node", 1), ("none", 0)]
    pools = [job.described(f"stk-one-{name}")["WarmPoolStatus"] for name in ("precompile-1", "train-1", "train-2")]
    assert [(each["Status"], each.get("ReusedByJob")) for each in pools] == [
        ("Reused", "stk-one-train-1"), ("Terminated", None), ("Terminated", None)]
    aws.fault("denied", operation="CreateTrainingJob", nth=2)
    aws.fault("denied", operation="UpdateTrainingJob")
    done = job.run("--id", "two", code=4)
    assert [row["class"] for row in job.rows("two", "attempt.ended")] == ["unknown", "quota-permission"]
    assert job.described("stk-two-train-1")["WarmPoolStatus"]["Status"] == "Available"
    told, = job.rows("two", "attempt.kept")
    assert (told["phase"], told["attempt"], told["seconds"]) == ("train", 1, 600)
    assert "AccessDenied" in told["reason"] and "UpdateTrainingJob" in told["hint"] and told["reason"] in done.err
    assert job.status("two")["cost"]["kept"] == pytest.approx(6)


def test_two_instances_one_of_which_loses_its_trainer(make, aws):
    aws.settings(infra_check=False, interface="eth9")
    job = make(nodes=2, compile=None, hyperparameters={"max_steps": 60}, sagemaker={"infra_check": True})
    # Not before one is marked: of what it may have been about to save itself nobody knows.
    job.hold("train", 20)
    job.also("def fall():\n    while not os.path.exists(os.environ['HOLD'].split(':', 2)[2]):\n        time.sleep(0.01)"
             "\n    os.kill(os.getpid(), 9)"
             "\n\n\nif attempt == ('train', 1) and rank() == 1:\n    threading.Thread(target=fall, daemon=True).start()")
    job.write(env={**job.spec["env"], "STEP_SECONDS": "0.1"})
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_marks("one", [15], seconds=180)
    job.gate.touch()
    assert driver.communicate(timeout=cli.SECONDS) and driver.returncode == 0
    assert job.submitted() == [("train", 1), ("train", 2)]
    first, _ = job.rows(kind="attempt.ended")
    assert (first["exit"], first["node"]) == (137, 1)
    # The service refuses its own check of the machines: without it, and said so.
    warned = job.rows(kind="attempt.submitted")[0]["reason"]
    assert "without SageMaker's own check" in warned and "not supported" in warned
    assert {row["rank"] for row in job.effects("end")} == {0, 1}
    # The interface that the service names is not there: node 1 would seek node 0 on its own machine.
    claims = [body for key, body in aws.objects(BUCKET).items() if key.endswith("/runs/one/claim/train")]
    assert [json.loads(body)["master_addr"] for body in claims] not in ([], ["127.0.0.1"])
    again = [row for row in job.effects("start") if row["attempt"] == 2]
    assert len(again) == 2 and all(row["resumed_from"] for row in again)
    assert "step: 60" in job.ok("logs", "one", "--node", 1, env=job.elsewhere()).out


def test_spot_takes_a_machine_away_and_the_same_job_goes_on(make, aws):
    job = make(compile=None, sagemaker={"spot": True, "max_runtime": "1h"})
    job.hold("train", 12)
    taken = job.root / "taken"
    aws.fault("job_interrupted", operation="CreateTrainingJob", when=str(taken), hard=True)
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_marks("one", [5, 10])
    # The service's seconds are whole ones: what it bills has to be fewer than all.
    time.sleep(2)
    taken.touch()
    job.wait_for(lambda: len(job.effects("start")) == 2)
    job.gate.touch()
    assert cli.finish(driver).code == 0
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
    assert ended["billable"] == done["BillableTimeInSeconds"] < done["TrainingTimeInSeconds"]


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
    job.write(sagemaker={**job.spec["sagemaker"], "max_runtime": "6d"})
    result = job.run("--id", "long", code=4)
    assert "'Longest run time for a training job' is 432000" in result.out and "lower sagemaker.max_runtime" in result.out


@pytest.mark.long
def test_a_lost_reply_and_looks_without_an_answer_double_nothing(make, aws):
    job = make(compile=None)
    job.hold("train", 5)
    # What may have been taken has time to show: a service that is out of order is not asked in a row.
    aws.fault("internal", operation="CreateTrainingJob")
    lost = aws.fault("lost", operation="CreateTrainingJob")
    # It does not show at once, and uses up the quota.
    aws.fault("error", operation="DescribeTrainingJob", behind=lost, count=2, **NOT_FOUND)
    aws.fault("error", operation="CreateTrainingJob", code="ResourceLimitExceeded", message="The account-level service limit "
              "'ml.c5.xlarge for training job usage' is 1 Instances, with current utilization of 1 Instances and a request "
              "delta of 1 Instances.")
    driver = job.start("--json", "run", job.spec_path, "--id", "one", env={"AWS_MAX_ATTEMPTS": "4"})
    job.wait_for_effect("holds", seconds=300)  # twenty of which nothing is asked
    job.wait_for(lambda: aws.struck() == 5)
    job.wait_for(lambda: job.submitted() == [("train", 1)])  # it has been seen
    aws.fault("hang", operation="DescribeTrainingJob", count=25, seconds=0.1)
    job.wait_for(lambda: aws.struck() == 30, 400)
    # From now on nobody knows it, as in another region; its agent is at work and says so.
    aws.fault("error", operation="DescribeTrainingJob", count=0, **NOT_FOUND)
    job.wait_for(lambda: aws.struck() >= 31, 400)  # a service that does not answer is asked seldom
    job.gate.touch()
    assert cli.finish(driver).code == 0
    assert aws.effects("CreateTrainingJob") == 1 and len(job.effects("start")) == 1
    first, second = job.rows(kind="attempt.uncertain")
    assert datetime.fromisoformat(second["at"]) - datetime.fromisoformat(first["at"]) > timedelta(seconds=5)
    assert job.submitted() == [("train", 1)]
    assert job.ended() == [("none", 0)]


def test_spot_that_waits_too_long_is_waited_for_until_the_deadline(make, aws):
    aws.settings(time_scale=0.01)
    job = make(compile=None, limits={"deadline": "25s"}, sagemaker={"spot": True, "max_runtime": "90s", "max_wait": "2m"})
    job.write(checkpoint={**job.spec["checkpoint"], "grace": "0s"})  # it is not stopped before its time
    aws.fault("job_pending", operation="CreateTrainingJob", seconds=60, count=0)
    job.run("--id", "one", code=5)
    ended = job.rows(kind="attempt.ended")
    assert ended[0]["class"] == "capacity" and "MaxWaitTimeExceeded" in ended[0]["evidence"]
    assert {row["action"] for row in job.rows(kind="retry.scheduled")} == {"wait"}
    assert job.described("stk-one-train-1")["SecondaryStatus"] == "MaxWaitTimeExceeded" and len(ended) > 1
    assert job.rows(kind="limit.reached")[0]["limit"] == "deadline"


def test_a_killed_driver_s_job_is_adopted_and_stopped_from_elsewhere(make, aws):
    job = make(compile=None, limits={"grace": "1s"})
    job.write(checkpoint={**job.spec["checkpoint"], "grace": "1s"})
    job.hold("train", 5)
    driver = job.start("--json", "run", job.spec_path, "--id", "one", *LEASE)
    job.wait_for_effect("holds")
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    # A name means something in one region and account alone: those that the run began in.
    refused = job.stoker("--region", "us-east-1", "resume", "one", *LEASE)
    assert refused.code == 4 and "are in region eu-west-1" in refused.err
    aws.add_key("AKIDFOREIGN", "secret", account="999999999999")
    refused = job.stoker("resume", "one", *LEASE, env={"AWS_ACCESS_KEY_ID": "AKIDFOREIGN", "AWS_SECRET_ACCESS_KEY": "secret"})
    assert refused.code == 4 and "are in account 123456789012" in refused.err and "--profile" in refused.cure
    other = {**job.elsewhere(), "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"}
    # Where STS cannot be asked, the region has to do.
    aws.fault("denied", operation="GetCallerIdentity", count=0)
    second = job.start("--json", "resume", "one", *LEASE, env=other)
    job.wait_for(lambda: any(row["event"] == "driver.took_over" and row["epoch"] == 2 for row in job.rows()))
    job.ok("stop", "one", env=other)
    assert cli.finish(second).code == 6 and not job.rows(kind="attempt.lost")
    assert job.stoker("run", job.spec_path, "--id", "one", env=other).code == 6
    assert {row["region"] for row in aws.ledger(service="sagemaker")} == {"eu-west-1"}
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
    aws.fault("job_pending", operation="CreateTrainingJob", seconds=8)
    aws.fault("error", service="logs", code="ResourceNotFoundException", count=2,
              message="The specified log group does not exist.")
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    job.wait_for(lambda: aws.effects("CreateTrainingJob"))
    agent = aws.client().list_objects_v2(Bucket="bucket", Prefix=f"{job.prefix}/stoker/agents/")["Contents"]
    start, = (row["Key"] for row in agent if row["Key"].endswith("/start"))
    # At first it goes well, but without an agent: that is no end of a training.
    once = job.root / "once"
    script = f"echo it is not what it was >&2; test -e {once} && exit 99; touch {once}\n"
    aws.client().put_object(Bucket="bucket", Key=start, Body=script.encode())
    assert cli.finish(driver).code == 1
    well, *_, ended = job.rows(kind="attempt.ended")
    assert "exit" not in well and "1 of 1 agents did not report" in well["evidence"] and well["class"] != "none"
    assert ended["exit"] == 99 and "it is not what it was" in ended["evidence"]
    assert "it is not what it was" in job.ok("logs", "one", env=job.elsewhere()).out
