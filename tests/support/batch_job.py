"""The one-second trainer on AWS Batch, as the stand-in runs it: a queue, and a machine on
which jobs find stoker's agent as in an image that holds it."""

import os
from pathlib import Path

import stoker as cli
from bucket_job import BucketJob
from project import SUPPORT

QUEUE = "trn1"
ROLE = "arn:aws:iam::123456789012:role/batch-job"
IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/trainer:1"


class BatchJob(BucketJob):
    def __init__(self, root: Path, aws, **changes):
        changes.setdefault("resources", {"instance": "trn1.2xlarge"})
        super().__init__(root, aws, **{
            "engine": "batch", "image": IMAGE, "health": {"device": False},
            "batch": {"job_queue": QUEUE, "agent": str(cli.BINARY.parent / "agent")},
            **changes})
        self.write(**{"aws": {"region": "eu-west-1"}})
        self.batch = aws.client("batch")
        self.machines = root / "machines"
        self.image_env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.machines),
                          "STOKER_WORK": str(self.machines / "work"), **self.sanitizer()}
        aws.settings(image_env={"*": self.image_env}, job_seconds=0.1, stop_seconds=30,
                     image_entries={IMAGE: ["bash", "-m", str(SUPPORT / "entry_point.sh")]})
        aws.push(IMAGE)
        self.machines.mkdir(parents=True)
        self.make_queue(QUEUE)

    def write(self, **changes) -> Path:
        """A job has a role unless it says otherwise."""
        if changes.get("batch"):
            changes["batch"] = {"job_role": ROLE, **changes["batch"]}
        return super().write(**changes)

    @staticmethod
    def sanitizer() -> dict:
        return {name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
                if name in os.environ}

    def make_queue(self, name: str, kind: str = "EC2", **more) -> None:
        self.batch.create_compute_environment(
            computeEnvironmentName=f"{name}-env", type="MANAGED",
            computeResources={"type": kind, "maxvCpus": 1024, "instanceTypes": ["optimal"], "subnets": ["subnet-1"],
                              "instanceRole": "ecsInstanceRole"})
        self.batch.create_job_queue(jobQueueName=name, priority=1, **more, computeEnvironmentOrder=[
            {"order": 1, "computeEnvironment": f"{name}-env"}])

    def jobs(self, name: str = "*") -> list:
        """All jobs of the queue, as DescribeJobs has them, in order."""
        rows = self.batch.list_jobs(jobQueue=QUEUE, filters=[{"name": "JOB_NAME", "values": [name]}])
        ids = [row["jobId"] for row in reversed(rows["jobSummaryList"])]
        found = {row["jobId"]: row for row in self.batch.describe_jobs(jobs=ids)["jobs"]} if ids else {}
        return [found[each] for each in ids]

    def is_ours(self, environ: bytes) -> bool:
        return f"STOKER_WORK={self.machines}".encode() in environ

    def agent_of(self, node: int) -> int:
        pid, = [pid for pid in self.agents()
                if f"AWS_BATCH_JOB_NODE_INDEX={node}".encode() in Path(f"/proc/{pid}/environ").read_bytes()]
        return pid
