"""stoker as a step of a pipeline: a container of AWS Batch, or of SageMaker, as the stand-in
runs one, that carries another job of the same service. No terminal, no home, no root; state on
S3; the role of its own job for credentials."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import stoker as cli
from aws import REGION
from batch_job import QUEUE, BatchJob
from batch_job import ROLE as BATCH_ROLE
from bucket_job import BUCKET
from sagemaker_job import IMAGE, ROLE, SagemakerJob

NOBODY = "65534"
DETACHED = 8
TICK = 0.1


class Step:
    """The job that carries: `carried` is the one that is."""
    leaves = 120  # s between SIGTERM and SIGKILL

    def __init__(self, carried, aws):
        self.carried, self.aws = carried, aws
        aws.settings(stop_seconds=self.leaves)
        self.image = carried.root / "image"
        self.work = Path(f"/tmp/stoker-step-{carried.prefix}")
        self.install()

    def install(self):
        """As the package lays it out, for everybody to read; and what the image has beside
        stoker: the spec and what it packs."""
        build = cli.BINARY.parent
        (self.image / "bin").mkdir(parents=True)
        shutil.copy(cli.BINARY, self.image / "bin/stoker")
        shutil.copytree(build / "agent", self.image / "lib/stoker/agent")
        for folder in (self.image, self.carried.source):
            subprocess.run(["chmod", "-R", "a+rX", folder], check=True)

    def command(self):
        as_nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"] if os.geteuid() == 0 else []
        return [*as_nobody, str(self.image / "bin/stoker"), "--json", "run", str(self.carried.spec_path), "--id", "nightly"]

    def env(self):
        return {"STOKER_STATE": self.carried.url["state"], "HOME": "/nonexistent", "STOKER_WORK": str(self.work)}

    def clear(self):
        self.carried.stop()
        shutil.rmtree(self.work, ignore_errors=True)

    def end_of(self, step, seconds=300):
        """How the service says that it ended."""
        end = time.monotonic() + seconds
        while not (found := self.ended(step)):
            assert time.monotonic() < end, self.lines(step)
            time.sleep(TICK)
        return found

    def wait_for_hold(self, step, seconds=180):
        """The training waits, and its step is still there."""
        end = time.monotonic() + seconds
        while not self.carried.effects("holds"):
            assert not self.ended(step) and time.monotonic() < end, "\n".join(self.lines(step))
            time.sleep(TICK)

    def stream(self, group, name):
        """What it printed, as CloudWatch has it."""
        rows = self.aws.client("logs").get_log_events(logGroupName=group, logStreamName=name, startFromHead=True)
        return [row["message"] for row in rows["events"]]


class BatchStep(Step):
    stopped, well = ("FAILED", DETACHED), ("SUCCEEDED", 0)

    def __init__(self, root, aws):
        super().__init__(BatchJob(root, aws), aws)
        self.batch = self.carried.batch
        self.definition = self.batch.register_job_definition(
            jobDefinitionName="step", type="container", containerProperties={
                "image": "stoker", "jobRoleArn": BATCH_ROLE, "command": self.command(), "resourceRequirements": [
                    {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}],
                "environment": [{"name": name, "value": value}
                                for name, value in {"AWS_REGION": REGION, **self.env()}.items()]})["jobDefinitionArn"]

    def submit(self):
        return self.batch.submit_job(jobName="step", jobQueue=QUEUE, jobDefinition=self.definition)["jobId"]

    def stop(self, step):
        self.batch.terminate_job(jobId=step, reason="the pipeline's own limit")

    def of(self, step):
        return self.batch.describe_jobs(jobs=[step])["jobs"][0]

    def ended(self, step):
        found = self.of(step)
        return found["status"] in ("SUCCEEDED", "FAILED") and (
            found["status"], found["attempts"][-1]["container"]["exitCode"])

    def lines(self, step):
        return self.stream("/aws/batch/job", self.of(step)["container"]["logStreamName"])

    def jobs(self):
        return [row["jobName"] for row in self.carried.jobs() if row["jobName"] != "step"]


class SagemakerStep(Step):
    """A training job, as a pipeline makes one of a TrainingStep: no name comes twice."""
    stopped, well = "Stopped", "Completed"

    def __init__(self, root, aws):
        super().__init__(SagemakerJob(root, aws), aws)
        self.client, self.number = self.carried.client, 0
        aws.settings(stop_seconds=self.leaves)

    def submit(self):
        self.number += 1
        name = f"pipelines-step-{self.number}"
        self.client.create_training_job(
            TrainingJobName=name, RoleArn=ROLE, Environment=self.env(), StoppingCondition={"MaxRuntimeInSeconds": 3600},
            AlgorithmSpecification={"TrainingImage": IMAGE, "TrainingInputMode": "File", "ContainerEntrypoint": self.command()},
            OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/steps"},
            ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10})
        return name

    def stop(self, step):
        self.client.stop_training_job(TrainingJobName=step)

    def ended(self, step):
        status = self.carried.described(step)["TrainingJobStatus"]
        return status in ("Completed", "Failed", "Stopped") and status

    def lines(self, step):
        group = "/aws/sagemaker/TrainingJobs"
        rows = self.aws.client("logs").describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{step}/")
        return self.stream(group, rows["logStreams"][0]["logStreamName"])

    def jobs(self):
        rows = self.client.list_training_jobs(NameContains="stk-", SortBy="CreationTime", SortOrder="Ascending")
        return [row["TrainingJobName"] for row in rows["TrainingJobSummaries"]]


@pytest.fixture(params=[BatchStep, SagemakerStep], ids=["batch", "sagemaker"])
def step(request, aws):
    # Not in pytest's own folder, which is nobody else's.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        made = request.param(Path(folder) / "project", aws)
        yield made
        made.clear()


def test_a_step_that_is_ended_goes_on_when_it_is_started_again(step):
    job = step.carried
    job.hold("train", 8)
    first = step.submit()
    step.wait_for_hold(first)
    step.stop(first)
    assert step.end_of(first) == step.stopped, step.lines(first)
    # By itself, and not because the service's patience was over.
    left = job.ok("events", "nightly").lines[-1]
    assert (left["event"], left["reason"]) == ("driver.left", "interrupted: the job runs on")
    second = step.submit()  # does not wait for a lease to run out
    job.gate.touch()
    assert step.end_of(second) == step.well, step.lines(second)
    cli.check(["--json", "run"], "\n".join([*step.lines(second), ""]))  # each of them is JSON
    lines = [json.loads(line) for line in step.lines(second)]
    assert (lines[-1]["event"], lines[-1]["exit_code"]) == ("run.ended", 0)
    # The agent is the one that the image of the step holds, or has been brought by it.
    assert not any("reason" in row for row in lines if row["event"] == "attempt.claimed")
    # Nothing twice, and nothing of the caller's credentials anywhere.
    assert [row["event"] for row in lines].count("driver.took_over") == 1
    assert step.jobs() == ["stk-nightly-precompile-1", "stk-nightly-train-1"]
    assert [(row["phase"], row["attempt"]) for row in job.effects("start")] == [("precompile", 1), ("train", 1)]
    assert not any(b"AKIDEXAMPLE" in body for body in step.aws.objects(BUCKET).values())


def test_the_recipe_of_the_image_holds_to_what_it_promises():
    """It is built by hand (tests/soak/test_container.py); here it is looked at."""
    recipe = (cli.ROOT / "configs/container/Containerfile").read_text()
    steps = re.findall(r"^([A-Z]+)\b *(.*)$", recipe, re.MULTILINE)
    assert [name for name, _ in steps] == ["ARG", "FROM", "COPY", "RUN", "USER", "WORKDIR", "CMD"]
    # Neither the helper's container nor a step on AWS Batch could do without an entry point that
    # the image has; what needs root is over before it starts.
    assert dict(steps)["USER"] == "10000:10000"
    # What batch.helper_image copies, and what is copied in, is where the package puts it.
    packaged = (cli.ROOT / "tests/package/test_package.py").read_text()
    for file in ("usr/bin/stoker", "usr/lib/stoker/agent/start"):
        assert f"\n{file}\n" in packaged
    assert dict(steps)["COPY"].split()[0] == "stoker_*.deb" and '"build").glob("stoker_*.deb")' in packaged
    assert "/usr/lib/stoker/agent" in (cli.ROOT / "jobs/engine/delivery/agent_delivery.c").read_text()
