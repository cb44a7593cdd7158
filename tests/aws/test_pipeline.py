"""stoker as a step of a pipeline: a container of AWS Batch, as the stand-in runs one, that
carries another job of AWS Batch. No terminal, no home, no root; state on S3; the role of its
own job for credentials."""

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
from batch_job import QUEUE, BatchJob
from bucket_job import BUCKET

NOBODY = "65534"
DETACHED = 8
LEAVES = 30  # s between SIGTERM and SIGKILL, by AWS Batch


class Step(BatchJob):
    """The job that is carried, and the one that carries it."""

    def __init__(self, root, aws):
        super().__init__(root, aws)
        aws.settings(stop_seconds=LEAVES)
        self.image = root / "image"
        self.install()
        # What the image has beside stoker: the spec and what it packs.
        self.step = self.batch.register_job_definition(
            jobDefinitionName="step", type="container", containerProperties={
                "image": "stoker", "command": self.command(), "resourceRequirements": [
                    {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}],
                "environment": [{"name": "STOKER_STATE", "value": self.url["state"]},
                                {"name": "HOME", "value": "/nonexistent"},
                                {"name": "STOKER_WORK", "value": f"/tmp/stoker-step-{self.prefix}"}]})["jobDefinitionArn"]

    def install(self):
        """As the package lays it out, for everybody to read."""
        build = cli.BINARY.parent
        (self.image / "bin").mkdir(parents=True)
        shutil.copy(cli.BINARY, self.image / "bin/stoker")
        shutil.copytree(build / "agent", self.image / "lib/stoker/agent")
        for folder in (self.image, self.source):
            subprocess.run(["chmod", "-R", "a+rX", folder], check=True)

    def command(self):
        as_nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"] if os.geteuid() == 0 else []
        return [*as_nobody, str(self.image / "bin/stoker"), "--json", "run", str(self.spec_path), "--id", "nightly"]

    def stop(self, seconds: float = 20) -> None:
        super().stop(seconds)
        shutil.rmtree(f"/tmp/stoker-step-{self.prefix}", ignore_errors=True)

    def submit(self) -> str:
        return self.batch.submit_job(jobName="step", jobQueue=QUEUE, jobDefinition=self.step)["jobId"]

    def of(self, job: str) -> dict:
        return self.batch.describe_jobs(jobs=[job])["jobs"][0]

    def end_of(self, job: str, seconds: float = 120) -> dict:
        end = time.monotonic() + seconds
        while (found := self.of(job))["status"] not in ("SUCCEEDED", "FAILED"):
            assert time.monotonic() < end, found
            time.sleep(0.2)
        return found

    def wait_for_hold(self, job: str, seconds: float = 60) -> None:
        """The training waits, and its step is still there."""
        end = time.monotonic() + seconds
        while not self.effects("holds"):
            over = self.of(job)["status"] in ("SUCCEEDED", "FAILED")
            assert not over and time.monotonic() < end, "\n".join(self.lines(job))
            time.sleep(0.1)

    def lines(self, job: str) -> list:
        """What it printed, as CloudWatch has it."""
        stream = self.of(job)["container"]["logStreamName"]
        rows = self.aws.client("logs").get_log_events(logGroupName="/aws/batch/job", logStreamName=stream,
                                                      startFromHead=True)
        return [row["message"] for row in rows["events"]]


@pytest.fixture
def job(aws):
    # Not in pytest's own folder, which is nobody else's.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        made = Step(Path(folder) / "project", aws)
        yield made
        made.stop()


def test_a_step_that_is_ended_goes_on_when_it_is_started_again(job):
    job.hold("train", 8)
    first = job.submit()
    job.wait_for_hold(first)
    since = time.monotonic()
    job.batch.terminate_job(jobId=first, reason="the pipeline's own limit")
    ended = job.end_of(first)
    assert time.monotonic() - since < LEAVES
    assert ended["attempts"][-1]["container"]["exitCode"] == DETACHED, job.lines(first)
    left = job.ok("events", "nightly").lines[-1]
    assert (left["event"], left["reason"]) == ("driver.left", "interrupted: the job runs on")
    second = job.submit()  # does not wait for a lease to run out
    job.gate.touch()
    ended = job.end_of(second)
    assert (ended["status"], ended["attempts"][-1]["container"]["exitCode"]) == ("SUCCEEDED", 0), job.lines(second)
    lines = [json.loads(line) for line in job.lines(second)]  # each of them is JSON
    # Nothing twice, and nothing of the caller's credentials anywhere.
    carried = [name for name in (row["jobName"] for row in job.jobs()) if name != "step"]
    assert [row["event"] for row in lines].count("driver.took_over") == 1
    assert carried == ["stk-nightly-precompile-1", "stk-nightly-train-1"]
    assert not any(b"AKIDEXAMPLE" in body for body in job.aws.objects(BUCKET).values())


def test_the_recipe_of_the_image_holds_to_what_it_promises():
    """There is no engine here that builds images: what it says is looked at."""
    recipe = (cli.ROOT / "configs/container/Containerfile").read_text()
    steps = re.findall(r"^(FROM|COPY|RUN|USER|ENTRYPOINT|ARG|CMD|WORKDIR|ENV)\b *(.*)$", recipe, re.MULTILINE)
    words = [name for name, _ in steps]
    assert words[:2] == ["ARG", "FROM"]
    assert dict(steps)["USER"] == "10000:10000"
    assert words.index("USER") > words.index("RUN")  # what needs root is over by then
    assert json.loads(dict(steps)["ENTRYPOINT"]) == ["/usr/bin/stoker"]
    for program in re.findall(r"stoker_\*\.deb", recipe):
        assert program == "stoker_*.deb"
    # What batch.helper_image copies is where the package puts it.
    packaged = (cli.ROOT / "tests/package/test_package.py").read_text()
    assert "usr/lib/stoker/agent/start" in packaged
    assert "/usr/lib/stoker/agent" in (cli.ROOT / "jobs/engine/arrival.c").read_text()
