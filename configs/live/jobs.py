"""Jobs of conform on AWS Batch and SageMaker, made by the official SDK: begun, watched, read, ended, and found again by
their names. Each runs far.py, and ends by itself after a quarter of an hour at the latest."""

import contextlib
import json
from pathlib import Path

import botocore.exceptions
from lab import PREFIX, NotTried, refusal

PROGRAM = (Path(__file__).resolve().parent / "far.py").read_text("utf-8")
# What is longer than SageMaker lets a word or a variable be comes in several of them.
START = 'import os;exec("".join(os.environ.get("CONFORM_PROGRAM_%d"%i,"")for i in range(40)))'
PIECE = 500
COMES = 1800  # seconds for which a machine is waited for
LASTS = 900  # seconds that a job lasts at most
ENDS = 600  # seconds until a job that was ended is over
LOG_COMES = 2  # times `watch`, until a line is in CloudWatch
# Images with python3, for either service; SageMaker takes those of ECR alone, in its own region.
BATCH_IMAGE = "public.ecr.aws/docker/library/python:3.12"
TRAINING_IMAGE = "pytorch-training:2.3.0-cpu-py311-ubuntu20.04-sagemaker"
# Whose they are where, by https://aws.github.io/deep-learning-containers/reference/region_availability, November 2026.
ACCOUNTS = {account: regions.split() for account, regions in {
    "763104351884": "us-east-1 us-east-2 us-west-1 us-west-2 ap-south-1 ap-northeast-1 ap-northeast-2 ap-southeast-1 "
                    "ap-southeast-2 ca-central-1 eu-central-1 eu-north-1 eu-west-1 eu-west-2 eu-west-3 sa-east-1",
    "626614931356": "af-south-1", "871362719292": "ap-east-1", "975050140332": "ap-east-2", "364406365360": "ap-northeast-3",
    "772153158452": "ap-south-2", "907027046896": "ap-southeast-3", "457447274322": "ap-southeast-4",
    "550225433462": "ap-southeast-5", "590183813437": "ap-southeast-7", "204538143572": "ca-west-1",
    "380420809688": "eu-central-2", "692866216735": "eu-south-1", "503227376785": "eu-south-2", "780543022126": "il-central-1",
    "914824155844": "me-central-1", "217643126080": "me-south-1", "637423239942": "mx-central-1"}.items()}
MACHINE = "m5.large"  # of SageMaker; a queue with "optimal" has it too
GROUP = "/aws/sagemaker/TrainingJobs"
BATCH_OVER, TRAINING_OVER = ("SUCCEEDED", "FAILED"), ("Completed", "Failed", "Stopped")


def aws_image(region, name=TRAINING_IMAGE):
    """AWS's own for training; None: nobody has published whose they are there."""
    account = next((account for account, regions in ACCOUNTS.items() if region in regions), None)
    return account and f"{account}.dkr.ecr.{region}.amazonaws.com/{name}"


def pieces(name, text):
    """As variables."""
    return {f"CONFORM_{name}_{number // PIECE}": text[number:number + PIECE] for number in range(0, len(text), PIECE)}


def variables(lab, part, do, **more):
    """Of a job's containers. GATE and ADDRESS are links of objects that are made meanwhile; THERE reads what the other
    one has written."""
    def link(call, name):
        return lab.s3.generate_presigned_url(call, Params=lab.at(f"{part}/{name}"), ExpiresIn=3600)
    found = {"CONFORM_DO": do, "CONFORM_GIVEN": lab.name, **pieces("PROGRAM", PROGRAM), **more}
    if do == "pair":
        found |= {**pieces("ADDRESS", link("put_object", "address")), **pieces("THERE", link("get_object", "address")),
                  **pieces("GATE", link("get_object", "gate"))}
    if do == "hosts":
        found |= {**pieces("GATE", link("put_object", "gate")), **pieces("THERE", link("get_object", "gate"))}
    if do == "waits":
        found |= pieces("GATE", link("get_object", "gate"))
    return found


def facts(lines):
    """What the program has said: each object."""
    return [json.loads(line.partition(" ")[2]) for line in lines if line.startswith("conform {")]


# ---- AWS Batch


class Queue:
    """A job queue: what its smallest type is. Raises NotTried if none can be told."""

    def __init__(self, lab, name, machines):
        batch, self.name = lab.client("batch"), name
        found = batch.describe_job_queues(jobQueues=[name])["jobQueues"]
        if not found:
            raise NotTried(f"there is no queue '{name}'")
        self.has_shares = bool(found[0].get("schedulingPolicyArn"))
        names = [row["computeEnvironment"] for row in found[0]["computeEnvironmentOrder"]]
        rows = [row["computeResources"] for row in batch.describe_compute_environments(
            computeEnvironments=names)["computeEnvironments"] if "computeResources" in row]
        rows = [row for row in rows if not row["type"].startswith("FARGATE")]
        self.is_spot = bool(rows) and all(row["type"] == "SPOT" for row in rows)
        words = {word for row in rows for word in row.get("instanceTypes", [])}
        words |= {MACHINE} if any(word.startswith("optimal") or word.startswith("default_") for word in words) else set()
        priced = [(row["price"], kind) for kind, row in machines.items()
                  if row.get("price") and (kind in words or kind.partition(".")[0] in words)]
        if not priced:
            raise NotTried(f"the catalogue has no type of the queue '{name}' with a price")
        self.smallest = min(priced)[1]
        self.memory = int(machines[self.smallest]["ram"].removesuffix("GiB")) << 10  # MiB


class BatchJob:
    """One of this run, called `part`. `nodes` of 0: a job of one container."""

    def __init__(self, lab, part, do, nodes=0, resources=(1, 512), kind=None, shm=None, given=None, **more):
        self.lab, self.name, self.batch = lab, f"{lab.name}-{part}", lab.client("batch")
        container = {"image": lab.image or BATCH_IMAGE, "command": ["python3", "-c", START],
                     "environment": [{"name": name, "value": value} for name, value in
                                     variables(lab, part, do, **(given or {})).items()],
                     "resourceRequirements": [{"type": "VCPU", "value": str(resources[0])},
                                              {"type": "MEMORY", "value": str(resources[1])}]}
        if shm:
            container["linuxParameters"] = {"sharedMemorySize": shm}
        if nodes:
            container |= {"instanceType": kind} if kind else {}
            what = {"type": "multinode", "nodeProperties": {"numNodes": nodes, "mainNode": 0, "nodeRangeProperties": [
                {"targetNodes": "0:", "container": container}]}}
        else:
            what = {"type": "container", "containerProperties": container}
        self.tags = {f"{PREFIX}run": lab.name}
        definition = self.batch.register_job_definition(
            jobDefinitionName=self.name, **what, platformCapabilities=["EC2"], tags=self.tags,
            timeout={"attemptDurationSeconds": LASTS},
            retryStrategy={"attempts": 1, "evaluateOnExit": [{"onReason": "*", "action": "EXIT"}]})["jobDefinitionArn"]
        more |= {"shareIdentifier": "stoker"} if lab.queue.has_shares else {}
        self.id = self.batch.submit_job(jobName=self.name, jobQueue=lab.queue.name, jobDefinition=definition,
                                        tags=self.tags, **more)["jobId"]

    def seen(self, node=None):
        found = self.batch.describe_jobs(jobs=[self.id if node is None else f"{self.id}#{node}"])["jobs"]
        return found[0] if found else {}

    def when(self, statuses, node=None, seconds=COMES):
        """Its description as soon as its status is one of these. A job that no machine takes is NotTried, with the
        service's words."""
        last = {}

        def look():
            last.update(self.seen(node))
            return dict(last) if last.get("status") in statuses else None
        try:
            return self.lab.until(look, seconds, f"{self.name} in {' or '.join(statuses)}")
        except NotTried as error:
            raise NotTried(f"{error}: it is {last.get('status')}, {last.get('statusReason')}") from error

    def end(self, reason="conform has seen enough"):
        self.batch.terminate_job(jobId=self.id, reason=reason)

    def when_over(self):
        return self.when(BATCH_OVER, seconds=LASTS + ENDS)

    def lines(self, described):
        """What its container has printed, by the stream that its description names; None: it names none."""
        stream = described.get("container", {}).get("logStreamName")
        return stream and lines_of(self.lab, "/aws/batch/job", stream)

    def facts(self, described, count=1):
        """At least so many, or as many as come."""
        return come(self.lab, lambda: facts(self.lines(described) or []), count)


def lines_of(lab, group, stream):
    logs, found, token = lab.client("logs"), [], None
    while True:
        more = {"nextToken": token} if token else {}
        seen = none_if_unknown(logs.get_log_events, logGroupName=group, logStreamName=stream, startFromHead=True, **more)
        if seen is None:
            return found
        found += [row["message"] for row in seen["events"]]
        if seen["nextForwardToken"] == token:
            return found
        token = seen["nextForwardToken"]


def none_if_unknown(call, **params):
    """What is not there yet is nothing."""
    try:
        return call(**params)
    except botocore.exceptions.ClientError as error:
        if error.response["Error"].get("Code") != "ResourceNotFoundException" and "not found" not in str(error):
            raise
        return None


def come(lab, found, count):
    """What is found as soon as it is so much, or what there is when nothing more comes."""
    last = []

    def look():
        last[:] = found()
        return len(last) >= count
    with contextlib.suppress(NotTried):
        lab.until(look, LOG_COMES * lab.watch, "a line")
    return last


# ---- SageMaker


def events(lab, group, name, since=0):
    """What all hosts of a job have printed: (stream, text, time in milliseconds), since then."""
    logs, found = lab.client("logs"), []
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group, logStreamNamePrefix=f"{name}/",
                                                             startTime=since)
    try:
        for page in pages:
            found += [(row["logStreamName"], row["message"], row["timestamp"]) for row in page["events"]
                      if row["logStreamName"].startswith(f"{name}/")]
    except botocore.exceptions.ClientError as error:
        if error.response["Error"].get("Code") != "ResourceNotFoundException":
            raise
    return found


class TrainingJob:
    """One of this run, called `part`."""

    def __init__(self, lab, part, do, hosts=1, words=(), given=None, seconds=LASTS, **more):
        self.lab, self.name, self.sagemaker = lab, f"{lab.name}-{part}", lab.client("sagemaker")
        self.request = {
            "TrainingJobName": self.name, "RoleArn": lab.role,
            "AlgorithmSpecification": {
                "TrainingImage": lab.image or aws_image(lab.region), "TrainingInputMode": "File",
                "ContainerEntrypoint": ["python3", "-c", START], **({"ContainerArguments": list(words)} if words else {})},
            "Environment": variables(lab, part, do, **(given or {})),
            "OutputDataConfig": {"S3OutputPath": f"s3://{lab.bucket}/{lab.name}/output"},
            "ResourceConfig": {"InstanceType": f"ml.{MACHINE}", "InstanceCount": hosts, "VolumeSizeInGB": 30},
            "StoppingCondition": {"MaxRuntimeInSeconds": seconds},
            "Tags": [{"Key": f"{PREFIX}run", "Value": lab.name}], **more}

    def create(self):
        self.sagemaker.create_training_job(**self.request)
        return self

    def refused(self):
        """Created, or how that was refused."""
        return refusal(self.sagemaker.create_training_job, **self.request)

    def seen(self):
        return self.sagemaker.describe_training_job(TrainingJobName=self.name)

    def when(self, found, seconds, what):
        """Its description as soon as it is so; a job that is not shown yet is waited for."""
        def look():
            seen = none_if_unknown(self.seen)
            return seen if seen and found(seen) else None
        return self.lab.until(look, seconds, f"{self.name}: {what}")

    def when_training(self):
        return self.when(lambda seen: seen["SecondaryStatus"] == "Training" or seen["TrainingJobStatus"] in TRAINING_OVER,
                         COMES, "its training")

    def when_over(self):
        return self.when(lambda seen: seen["TrainingJobStatus"] in TRAINING_OVER, COMES + LASTS + ENDS, "its end")

    def stop(self):
        refusal(self.sagemaker.stop_training_job, TrainingJobName=self.name)

    def streams(self):
        logs = self.lab.client("logs")
        found = none_if_unknown(logs.describe_log_streams, logGroupName=GROUP, logStreamNamePrefix=f"{self.name}/")
        return [row["logStreamName"] for row in (found or {}).get("logStreams", [])]

    def lines(self):
        """What all its hosts have printed: (stream, text)."""
        return [(stream, text) for stream, text, _ in self.events()]

    def events(self, since=0):
        """With the time in milliseconds, since then."""
        return events(self.lab, GROUP, self.name, since)

    def facts(self, count=1):
        return come(self.lab, lambda: facts(line for _, line in self.lines()), count)
