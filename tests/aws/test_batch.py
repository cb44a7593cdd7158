"""The AWS Batch engine: runs of the one-second trainer whose every byte lies on S3, and whose
jobs the stand-in really runs."""

import json
import os
import signal
from pathlib import Path

import pytest
import stoker as cli
from batch_job import IMAGE, QUEUE, BatchJob
from bucket_job import BUCKET
from neuron_standin.install import Installation

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
    jobs = job.jobs()
    assert [each["jobName"] for each in jobs] == ["stk-one-precompile-1", "stk-one-train-1", "stk-two-train-1"]
    first, second, third = (each["tags"]["stoker:nonce"] for each in jobs)
    assert len({first, second, third}) == 3
    assert jobs[0]["tags"] == {**submission["tags"], "stoker:run": "one", "stoker:nonce": first}
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


REFUSED = [("throttle", {}), ("error", {"code": "ThrottlingException", "message": "Rate exceeded"}),
           ("error", {"code": "RequestLimitExceeded", "status": 503}), ("garbage", {"status": 429})]


@pytest.mark.parametrize("kind, fields", REFUSED)
def test_what_is_refused_for_its_speed_is_sent_again_at_once(train, kind, fields):
    """It had no effect, so nothing is looked for; 3 tries are one round."""
    train.aws.fault(kind, operation="SubmitJob", count=4, **fields)
    train.aws.fault(kind, operation="RegisterJobDefinition", **fields)
    train.aws.fault(kind, operation="ListJobs", **fields)
    result = train.run("--id", "one")
    assert [row["event"] for row in train.events("one") if row["event"].startswith("attempt.")][:3] == [
        "attempt.intended", "attempt.submitted", "attempt.claimed"]
    assert train.aws.struck() == 6 and train.aws.effects("SubmitJob") == 1 and len(train.jobs()) == 1
    assert "trying again" not in result.err, result.err


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


def twin_of(job, first, note):
    """A second job of the attempt, as if it had been sent twice, and the note is of this one."""
    environment = [row for row in first["container"]["environment"] if row["name"] != "STOKER_TOKEN"]
    made = job.batch.submit_job(
        jobName=first["jobName"], jobQueue=QUEUE, jobDefinition=first["jobDefinition"], tags=first["tags"],
        containerOverrides={"environment": [*environment, {"name": "STOKER_TOKEN", "value": "twin"}]})["jobId"]
    job.aws.client("s3").put_object(Bucket=BUCKET, Key=note, Body=json.dumps(
        {"v": 1, "job": first["jobName"], "id": made}).encode())
    return made


def test_a_driver_that_is_killed_is_followed_by_one_that_goes_on(train):
    train.hold("train", 5)
    driver = train.start("--json", "run", train.spec_path, "--id", "one", *LEASE)
    train.wait_for_effect("holds")
    driver.kill()
    driver.communicate()
    other = train.elsewhere()
    since = train.aws.mark()
    driver = train.start("--json", "resume", "one", *LEASE, env=other)
    cli.until(lambda: train.aws.requests("DescribeJobs", since))
    assert train.aws.requests("ListJobs", since) == 0  # its note in the workspace has the id
    driver.kill()
    driver.communicate()
    # Of two that there are the one is followed that has the claim, and the other one spoils nothing.
    first, = train.jobs()
    folder = f"{train.prefix}/stoker/runs/one/train-1"
    twin = twin_of(train, first, f"{folder}/engine.json")
    cli.until(lambda: train.jobs()[1]["status"] == "FAILED")
    assert train.jobs()[1]["container"]["exitCode"] == 86
    driver = train.start("--json", "resume", "one", *LEASE, env=other)
    cli.until(lambda: twin.encode() not in train.aws.objects(BUCKET)[f"{folder}/engine.json"])
    train.gate.touch()
    assert cli.finish(driver).code == 0
    assert [row["class"] for row in ended(train)] == ["none"] and train.attempts("one") == [("train", 1)]
    assert len(train.effects("start")) == 1 and train.aws.effects("TerminateJob") == 0


def test_a_submit_of_which_only_the_service_knows_is_no_second_job(train):
    """The driver dies before the reply, and the job is not listed yet when another one looks."""
    here = {"STOKER_STATE": str(train.root / "state")}  # where a lease is taken over at once
    train.aws.settings(job_seconds=2)
    train.aws.fault("delay_after", operation="SubmitJob", seconds=60)
    driver = train.start("--json", "run", train.spec_path, "--id", "one", env=here)
    cli.until(train.jobs)
    driver.kill()
    driver.communicate()
    train.aws.fault("replace", operation="ListJobs", count=2, pattern=r"(?s)\{.*\}", text='{"jobSummaryList": []}')
    assert train.ok("--json", "resume", "one", env=here).lines[-1]["state"] == "succeeded"
    assert len(train.jobs()) == 1 and train.aws.struck() >= 2


def test_a_job_of_that_name_of_another_run_is_left_alone(train):
    """Two workspaces share a queue, and their pipelines choose the same id."""
    train.hold("train", 5)
    driver = train.start("--json", "run", train.spec_path, "--id", "one")
    train.wait_for_effect("holds")
    train.write(workspace=f"{train.url['stoker']}2", name="other")
    there = {**train.elsewhere(), "STOKER_STATE": f"{train.url['state']}2"}
    refused = train.run("--id", "one", code=1, env=there)
    assert "stk-one-train-1" in refused.text and "choose another --id" in refused.text
    train.stoker("stop", "one", env=there)
    only, = train.jobs()
    assert only["status"] == "RUNNING" and train.aws.effects("TerminateJob") == 0
    train.gate.touch()
    assert cli.finish(driver).code == 0 and train.aws.effects("SubmitJob") == 1


def test_a_service_that_does_not_describe_is_not_a_job_that_ended(train):
    train.hold("train", 5)
    driver = train.start("--json", "run", train.spec_path, "--id", "one",
                         env={"AWS_MAX_ATTEMPTS": "1"})
    train.wait_for_effect("holds")
    # Nothing is said for a while, then the connection is gone.
    train.aws.fault("hang", operation="DescribeJobs", count=25, seconds=0.2)
    cli.until(lambda: train.aws.struck() >= 25)
    train.gate.touch()
    assert cli.finish(driver).code == 0
    assert train.attempts("one") == [("train", 1)] and len(train.jobs()) == 1


WAITS = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested"
NEVER = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement (vCPU/memory/GPU) is higher"


def test_why_a_job_waits_is_told(train):
    found = train.root / "capacity"
    train.aws.fault("job_pending", operation="SubmitJob", reason=WAITS, until=str(found))
    driver = train.start("run", train.spec_path, "--id", "one")
    cli.until(train.jobs)  # the run is there
    cli.until(lambda: train.events("one", "attempt.waiting"))
    found.touch()
    assert cli.finish(driver).code == 0
    row, = train.events("one", "attempt.waiting")
    assert WAITS in row["reason"] and "AWS Batch retries" in row["reason"]
    assert train.attempts("one") == [("train", 1)]
    # What can never run is not waited for.
    train.aws.fault("job_pending", operation="SubmitJob", reason=NEVER, seconds=600)
    train.run("--id", "two", code=1)
    row, = ended(train, "two")
    assert row["class"] == "user-config" and NEVER[:50] in row["evidence"]
    assert len(train.jobs("stk-two-*")) == 1


def test_a_host_that_is_lost_is_spot_and_an_image_that_is_missing_is_not_tried_again(train):
    train.hold("train", 12)
    lost = train.root / "lost"
    train.aws.fault("job_interrupted", operation="SubmitJob", when=str(lost), hard=True)
    driver = train.start("--json", "run", train.spec_path, "--id", "one")
    train.wait_for_effect("holds")
    lost.touch()
    cli.until(lambda: len(train.jobs()) == 2)
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


def check_network(train, timeout):
    """What the commands of two machines with EFA were given; and, if there was a check-up, that no test of
    one node met the other there."""
    given = [json.loads(Path(f"{train.effects_path}-env-{node}").read_text()) for node in range(2)]
    for env in given:
        assert (env["FI_PROVIDER"], env["FI_EFA_USE_DEVICE_RDMA"]) == ("efa", "1"), env
        assert env["CCOM_SOCKET_IFNAME"] == env["GLOO_SOCKET_IFNAME"] and "NCCL_SOCKET_IFNAME" not in env, env
        assert env["NEURON_RT_ROOT_COMM_ID"] == f"{env['MASTER_ADDR']}:{int(env['MASTER_PORT']) + 1}", env
        assert env["NEURON_RT_EXEC_TIMEOUT"] == timeout, env
    assert given[0]["NEURON_RT_ROOT_COMM_ID"] == given[1]["NEURON_RT_ROOT_COMM_ID"]


@pytest.mark.parametrize("node", [1, 0])
def test_a_node_that_is_lost_ends_the_others_and_is_named(train, tmp_path, node):
    train.write(resources={"instance": "trn1.32xlarge", "nodes": 2}, checkpoint=None)
    if node:
        neuron = Installation(tmp_path / "neuron", STANDIN_INSTANCE="trn1.32xlarge")
        train.aws.settings(image_env={"*": {**train.image_env, "PATH": neuron.path}})
        train.write(health={"device": False, "timeout": "5m", "collectives": {"ops": ["all_reduce"], "size": "4MiB"}})
    else:
        train.write(env={**train.spec["env"], "NEURON_RT_EXEC_TIMEOUT": "120"})
    train.also("import json\nopen(f'{os.environ[\"EFFECTS\"]}-env-{os.environ[\"STOKER_NODE_RANK\"]}', 'w')"
               ".write(json.dumps(dict(os.environ)))")
    train.hold("train", 5)
    driver = train.start("--json", "run", train.spec_path, "--id", "one")
    cli.until(lambda: len(train.effects("holds")) == 2)
    check_network(train, "600" if node else "120")
    first = train.jobs()[0]
    os.kill(train.agent_of(node), signal.SIGKILL)
    cli.until(lambda: len(train.jobs()) == 2)
    train.gate.touch()
    assert cli.finish(driver).code == 0
    row, last = ended(train)
    assert row["node"] == node and f"agent of node {node} died" in row["evidence"]
    assert train.attempts("one") == [("train", 1), ("train", 2)]
    assert train.aws.effects("TerminateJob") == (1 if node else 0)
    assert first["nodeProperties"]["numNodes"] == 2
    checked = [row for row in train.events("one") if row["event"] == "health.checked"]
    assert [row["healthy"] for row in checked] == [True, True][:2 * node], checked
    assert all("all_reduce" in each["figures"] for row in checked for each in row["health"]["nodes"]), checked


def test_two_nodes_with_gpus_and_efa(train):
    """As AWS is asked for them, and what each node's command is told."""
    train.write(resources={"instance": "p4d.24xlarge", "nodes": 2}, checkpoint=None, batch={
        **train.spec["batch"], "ulimits": [{"name": "nofile", "soft": 1048576}]})
    train.also("import json\nopen(f'{os.environ[\"EFFECTS\"]}-env-{os.environ[\"STOKER_NODE_RANK\"]}', 'w')"
               ".write(json.dumps(dict(os.environ)))")
    train.run("--id", "one")
    job, = train.jobs()
    assert job["nodeProperties"]["numNodes"] == 2
    container = job["nodeProperties"]["nodeRangeProperties"][0]["container"]
    assert {row["type"]: row["value"] for row in container["resourceRequirements"]}["GPU"] == "8"
    assert [row["hostPath"] for row in container["linuxParameters"]["devices"]] == [
        f"/dev/infiniband/uverbs{card}" for card in range(4)]
    assert all(row["permissions"] == ["READ", "WRITE", "MKNOD"] for row in container["linuxParameters"]["devices"])
    assert container["ulimits"] == [{"name": "nofile", "softLimit": 1048576, "hardLimit": 1048576},
                                    {"name": "memlock", "softLimit": -1, "hardLimit": -1}]
    given = [json.loads(Path(f"{train.effects_path}-env-{node}").read_text()) for node in range(2)]
    for node, env in enumerate(given):
        assert (env["STOKER_NODE_RANK"], env["STOKER_NODES"], env["STOKER_CORES"]) == (str(node), "2", "8"), env
        assert (env["FI_PROVIDER"], env["NCCL_SOCKET_IFNAME"]) == ("efa", env["GLOO_SOCKET_IFNAME"]), env
        assert not {name for name in env if name.startswith(("NEURON_", "CCOM_"))}, env
        assert "FI_EFA_USE_DEVICE_RDMA" not in env, env
    assert given[0]["MASTER_ADDR"] == given[1]["MASTER_ADDR"]


def test_an_agent_that_never_came_up_is_read_from_cloudwatch(train):
    """Or is not: a log that may not be read keeps no run from its end."""
    train.write(batch={"job_queue": QUEUE, "agent": "/nonesuch"}, retry={"attempts": 1})
    train.run("--id", "one", code=1)
    row, = ended(train)
    assert row["exit"] == 127
    train.aws.fault("denied", operation="GetLogEvents", count=0)
    train.run("--id", "two", code=1)
    row, = ended(train, "two")
    assert row["exit"] == 127
    assert "cannot read the log: logs GetLogEvents was refused: AccessDenied" in row["evidence"]
    assert row["evidence"].count("cannot read the log") == 1
    assert "GetLogEvents was refused" in train.stoker("logs", "one").err
    train.aws.clear_faults()
    assert "no whole agent in '/nonesuch'" in train.ok("logs", "one").out
