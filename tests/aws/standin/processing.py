"""SageMaker's processing jobs, run as processes, as far as stoker and its trials need them: the files of an output folder go
to S3 when the job has ended with 0. Jobs with inputs, of several hosts or with a network of their own are not known."""

import os
import time

from standin import containers, processes
from standin.errors import Refusal
from standin.sagemaker import put, reply

GROUP = "/aws/sagemaker/ProcessingJobs"
OVER = ("Completed", "Failed", "Stopped")
UNKNOWN = ("ProcessingInputs", "NetworkConfig", "ExperimentConfig")


class Stopped(Exception):
    """Somebody wants it to end."""


class Job:
    """Of a request that the model allows. `run` returns when it is over."""

    def __init__(self, front, region, account, request):
        resources = request["ProcessingResources"]["ClusterConfig"]
        if any(request.get(name) for name in UNKNOWN) or resources["InstanceCount"] != 1:
            raise NotImplementedError(f"a processing job with {', '.join(request)}")
        self.front, self.region, self.account, self.request = front, region, account, request
        self.name = request["ProcessingJobName"]
        self.arn = f"arn:aws:sagemaker:{region}:{account}:processing-job/{self.name}"
        self.created = self.changed = front.clock()
        self.status, self.reason, self.started, self.finished = "InProgress", None, None, None
        self.asked_to_stop, self.process = False, None

    def describe(self):
        fields = {name: value for name, value in self.request.items() if name != "Tags"}
        times = {"ProcessingStartTime": self.started, "ProcessingEndTime": self.finished, "FailureReason": self.reason}
        return {**fields, "ProcessingJobArn": self.arn, "ProcessingJobStatus": self.status, "CreationTime": self.created,
                "LastModifiedTime": self.changed, **{name: value for name, value in times.items() if value is not None}}

    def row(self):
        found = self.describe()
        return {name: found[name] for name in ("ProcessingJobName", "ProcessingJobArn", "CreationTime", "LastModifiedTime",
                                               "ProcessingEndTime", "ProcessingJobStatus", "FailureReason") if name in found}

    def run(self):
        try:
            self.pause(lambda began: time.monotonic() - began >= self.front.settings["job_seconds"])
            code = self.work()
            self.end("Failed" if code else "Completed", f"AlgorithmError: , exit code: {code}" if code else None)
        except Stopped:
            self.end("Stopped")
        except Exception as error:  # noqa: BLE001 — a service does not die of a job
            self.front.broke()
            self.end("Failed", f"InternalServerError: {error}")

    def end(self, status, reason=None):
        if self.process:
            self.process.kill()
        self.finished = self.changed = self.front.clock()
        self.reason, self.status = reason, status

    def pause(self, is_over):
        began = time.monotonic()
        while True:
            self.heed()
            if is_over(began):
                return
            time.sleep(0.02)

    def heed(self):
        if self.asked_to_stop and not self.front.floor.ended:
            self.status = "Stopping"
            if self.process:
                processes.end([self.process], self.front.settings["stop_seconds"])
        if self.asked_to_stop or self.front.floor.ended:
            raise Stopped

    def outputs(self):
        return [each for each in self.request.get("ProcessingOutputConfig", {}).get("Outputs", []) if "S3Output" in each]

    def work(self):
        """The exit code of its container."""
        tree = self.front.floor.folder(self.name)
        folders = [self.folder(tree, each["S3Output"]["LocalPath"]) for each in self.outputs()]
        self.started = self.changed = self.front.clock()
        self.process = self.launch(tree)
        limit = self.request.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", 86400)
        self.pause(lambda began: self.process.poll() is not None or time.monotonic() - began > limit)
        code = self.process.poll()
        if code == 0:
            for each, folder in zip(self.outputs(), folders, strict=True):
                self.upload(each["S3Output"]["S3Uri"], folder)
        return 137 if code is None else code

    def folder(self, tree, path):
        """Where an output folder lies here."""
        if not path.startswith("/opt/ml/processing/"):
            raise NotImplementedError(f"an output folder {path}")
        folder = os.path.join(tree, path.removeprefix("/opt/ml/"))
        os.makedirs(folder)
        os.chmod(folder, 0o777 if self.front.settings["processing_writable"] else 0o755)
        return folder

    def launch(self, tree):
        program, hosts = self.request["AppSpecification"], os.path.join(tree, "hosts")
        with open(hosts, "w", encoding="ascii") as file:
            file.write("127.0.0.1 localhost\n")
        container = containers.Container(self.front, self.front.floor.folder(f"{self.name}-container"), program["ImageUri"],
                                         self.request["RoleArn"], "sagemaker")
        words = program.get("ContainerEntrypoint") or self.front.settings["image_entries"].get(container.image, [])
        logs = processes.Logs(self.account, self.region, GROUP, f"{self.name}/algo-1-{int(time.time() * 1000)}")
        env = container.env(AWS_REGION=self.region, **self.request.get("Environment", {}))
        return processes.Process([*words, *program.get("ContainerArguments", [])], env, logs, tree, tree, hosts,
                                 ended=container.end)

    def upload(self, uri, folder):
        name, _, prefix = uri.removeprefix("s3://").partition("/")
        for base, _, files in os.walk(folder):
            for each in files:
                path = os.path.join(base, each)
                with open(path, "rb") as file:
                    put(self.front.store, self.front.store.buckets[name],
                        f"{prefix.rstrip('/')}/{os.path.relpath(path, folder)}", file.read())


# The operations

def jobs_of(front, account, region):
    return front.processing.setdefault((account, region), {})


def find(call):
    job = jobs_of(call.front, call.who.account, call.region).get(call.params["ProcessingJobName"])
    if job is None:
        raise Refusal("ResourceNotFound", "Requested resource not found.", 400)
    return job


def begin(front, region, account, request):
    """The job, which `run` is for; refused if its name is taken."""
    jobs, job = jobs_of(front, account, region), Job(front, region, account, request)
    with front.floor.lock:
        if job.name in jobs:
            raise Refusal("ResourceInUse", "Job name must be unique within an AWS account and region, and a job with this "
                          f"name already exists ({job.arn})", 400)
        jobs[job.name] = job
    return job


def create(call):
    job = begin(call.front, call.region, call.who.account, call.params)
    call.effect = True
    call.front.floor.start(job.run)
    return reply({"ProcessingJobArn": job.arn})


def stop(call):
    job = find(call)
    if job.status in OVER:
        raise Refusal("ValidationException", "The request was rejected because the processing job is in status "
                      f"{job.status}.", 400)
    call.effect = not job.asked_to_stop
    job.asked_to_stop = True
    return reply()


def listing(call):
    wanted = call.params
    found = [job for job in list(jobs_of(call.front, call.who.account, call.region).values())
             if wanted.get("NameContains", "") in job.name and wanted.get("StatusEquals") in (None, job.status)]
    return page(call, "ProcessingJobSummaries", [job.row() for job in reversed(found)])


def page(call, name, rows):
    """Some of them, and where the next ones begin."""
    start, size = int(call.params.get("NextToken", "0")), call.params.get("MaxResults", 10)
    more = {"NextToken": str(start + size)} if start + size < len(rows) else {}
    return reply({name: rows[start:start + size], **more})


HANDLERS = {"CreateProcessingJob": create, "StopProcessingJob": stop, "ListProcessingJobs": listing,
            "DescribeProcessingJob": lambda call: reply(find(call).describe())}
