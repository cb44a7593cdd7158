"""Many jobs of AWS Batch and SageMaker that run without a process, watched or submitted through
one handle of an engine: the program tests/aws/many_jobs.c."""

import json
import subprocess
import sys
from pathlib import Path

import stoker
from aws import Aws

PROGRAM = stoker.BINARY.parent / "tests/many_jobs"
IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/trainer:1"
PLAN = {"nodes": 1, "limits": {}, "spec": {
    "image": IMAGE, "resources": {"instance": "trn1.32xlarge", "nodes": 1}, "tags": {},
    "batch": {"job_queue": "queue"},
    "sagemaker": {"role": "arn:aws:iam::123456789012:role/trainer", "launcher": "node"}}}
# What the services take in a second, as far as it is known: aws/rates.def says from where.
LIMITS = {"SubmitJob": 50, "ListTrainingJobs": 2, "DescribeJobs": 50, "DescribeTrainingJob": 20,
          "CreateTrainingJob": 5, "ListJobs": 25}


class Many:
    def __init__(self, root: Path, aws, count: int, bucket="bucket", **more):
        self.root, self.aws, self.count = root, aws, count
        self.names = [f"stk-many{number}-train-1" for number in range(count)]
        self.plan, self.list, self.workspace = root / "plan.json", root / "names", root / "workspace"
        root.mkdir(parents=True, exist_ok=True)
        self.workspace.mkdir(exist_ok=True)
        self.bucket = bucket
        self.plan.write_text(json.dumps({**PLAN, **more}))
        self.list.write_text("".join(f"{name} {self.prefix(name)}\n" for name in self.names))

    def prefix(self, name):
        return f"{name}/"

    def queue(self):
        batch = self.aws.client("batch")
        batch.create_compute_environment(computeEnvironmentName="machines", type="MANAGED")
        batch.create_job_queue(jobQueueName="queue", priority=1, computeEnvironmentOrder=[
            {"order": 1, "computeEnvironment": "machines"}])
        return batch

    def begin_batch(self):
        """Submitted by boto3; their ids are in the workspace, as the engine keeps them."""
        batch = self.queue()
        batch.register_job_definition(jobDefinitionName="trainer", type="container", containerProperties={
            "image": IMAGE, "command": ["train"], "environment": [
                {"name": f"VARIABLE_{number}", "value": "x" * 60} for number in range(8)],
            "resourceRequirements": [{"type": "VCPU", "value": "96"}, {"type": "MEMORY", "value": "500000"}],
            "linuxParameters": {"devices": [{"hostPath": f"/dev/neuron{number}", "permissions": ["READ", "WRITE"]}
                                            for number in range(16)]}})
        self.aws.settings(held=True)
        first = batch.submit_job(jobName=self.names[0], jobQueue="queue", jobDefinition="trainer")["jobId"]
        ids = self.aws.control("POST", "multiply", {"name": self.names[0], "names": self.names[1:]})
        for name, job in zip(self.names, [first, *ids], strict=True):
            folder = self.workspace / self.prefix(name)
            folder.mkdir(parents=True)
            (folder / "engine.json").write_text(json.dumps({"v": 1, "job": name, "id": job}))
        return batch

    def begin_submits(self):
        self.aws.make_bucket(self.bucket)
        self.queue().register_job_definition(jobDefinitionName="trainer", type="container", containerProperties={
            "image": IMAGE, "command": ["train"],
            "resourceRequirements": [{"type": "VCPU", "value": "96"}, {"type": "MEMORY", "value": "500000"}]})
        self.aws.settings(held=True)

    def begin_sagemaker(self):
        client = self.aws.client("sagemaker")
        self.aws.settings(held=True)
        client.create_training_job(
            TrainingJobName=self.names[0], RoleArn=PLAN["spec"]["sagemaker"]["role"],
            AlgorithmSpecification={"TrainingImage": IMAGE, "TrainingInputMode": "File"},
            Environment={f"VARIABLE_{number}": "x" * 60 for number in range(8)},
            HyperParameters={f"name_{number}": "value" for number in range(12)},
            OutputDataConfig={"S3OutputPath": f"s3://{self.bucket}/out"},
            ResourceConfig={"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 1, "VolumeSizeInGB": 100},
            StoppingCondition={"MaxRuntimeInSeconds": 86400})
        self.aws.control("POST", "multiply", {"name": self.names[0], "names": self.names[1:]})
        return client

    def run(self, what, engine, rounds=1, pause=0, workspace=None, seconds=600):
        """What the program says of each round."""
        argv = [PROGRAM, what, engine, workspace or self.workspace, self.plan, self.list, rounds, int(pause * 1000)]
        done = subprocess.run([str(word) for word in argv], env=self.aws.env(), text=True, capture_output=True,
                              timeout=seconds)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def begin(port: str, root: str, count: str, what: str):
    """For the bench, whose Python has no boto3: in the stand-in that listens there."""
    aws = Aws.__new__(Aws)
    aws.port, aws.url, aws.certificate, aws.connection = int(port), f"http://127.0.0.1:{port}", None, None
    many = Many(Path(root), aws, int(count))
    getattr(many, f"begin_{what}")()


def busiest_second(entries, operation):
    """The most requests of an operation in any second, by the stand-in's clock."""
    times = sorted(entry["at"] for entry in entries if entry["operation"] == operation)
    return max((sum(at <= other < at + 1 for other in times) for at in times), default=0)


if __name__ == "__main__":
    begin(*sys.argv[1:])
