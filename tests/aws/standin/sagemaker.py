"""SageMaker's training jobs, run as processes: what Describe says follows what they do.
moto would call them complete at once, drop half of the request and take a name twice."""

import contextlib
import hashlib
import io
import json
import os
import re
import signal
import socket
import tarfile
import time

from standin import behind, containers, given, processes, rules, toolkit
from standin.errors import Refusal
from standin.s3_store import Blob, Object
from standin.wire import Reply

GROUP = "/aws/sagemaker/TrainingJobs"
MESSAGES = {"Starting": "Preparing the instances for training", "Pending": "Training job waiting for capacity",
            "Downloading": "Downloading input data", "Training": "Training image download completed. Training in "
            "progress.", "Uploading": "Uploading generated training model", "Completed": "Training job completed",
            "Failed": "Training job failed", "Stopping": "Stopping the training job",
            "Stopped": "Training job stopped", "Interrupted": "Training job interrupted",
            "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
            "MaxWaitTimeExceeded": "Training job wait time exceeded MaxWaitTimeInSeconds provided"}
OVER = ("Completed", "Failed", "Stopped")
SPOT_PART = 0.3  # of the time that a spot instance trains is billed
KEPT_AFTER = ("AlgorithmError", "ClientError")  # a failure of the service's own keeps nothing


def reply(value=None):
    body = b"" if value is None else json.dumps(value).encode()
    return Reply(200, [("Content-Type", "application/x-amz-json-1.1")], body)


def put(store, bucket, key, data):
    """Writes an object, unless it is so already."""
    etag = f'"{hashlib.md5(data).hexdigest()}"'
    known = bucket.objects.get(key)
    if known is None or known.etag != etag:
        store.put(bucket, Object(key, [Blob(data)], etag, {"content-type": "application/octet-stream"}))


class Interrupted(Exception):
    """The job ends before it is done: how it is then called."""

    def __init__(self, status, secondary, reason=None):
        super().__init__(reason)
        self.status, self.secondary, self.reason = status, secondary, reason


class Job:
    def __init__(self, call, request, arn):
        self.front, self.region, self.account = call.front, call.region, call.who.account
        self.floor, self.store = call.front.floor, call.front.store
        self.name, self.arn, self.request = request["TrainingJobName"], arn, request
        self.plan = call.fault if call.fault and call.fault.kind.startswith("job_") else None
        self.created = self.changed = self.front.clock()
        self.status, self.transitions, self.reason = "InProgress", [], None
        self.started = self.finished = None
        self.asked_to_stop, self.interrupted, self.processes, self.metrics = False, False, [], {}
        self.pool = {"Status": "InUse"} if self.keep_alive() else None
        self.kept_until, self.trained, self.began, self.took_over = 0.0, 0.0, 0.0, False

    def resource(self, name, default=None):
        return self.request.get("ResourceConfig", {}).get(name, default)

    def keep_alive(self):
        return self.resource("KeepAlivePeriodInSeconds", 0)

    def grace(self):
        settings = self.front.settings
        return settings["training_stop_seconds"] or settings["stop_seconds"]

    # Machines that are kept for a next job

    def needs(self):
        """What a job must have in common with one whose machines it takes over."""
        return json.dumps([self.request.get("RoleArn"), self.request.get("VpcConfig"),
                           self.request.get("EnableNetworkIsolation", False),
                           self.request.get("EnableInterContainerTrafficEncryption", False),
                           *[self.resource(name) for name in ("InstanceType", "InstanceCount", "InstanceGroups",
                                                              "VolumeSizeInGB", "VolumeKmsKeyId")]], sort_keys=True)

    def keep(self, status, reason):
        if not self.pool:
            return
        if self.started and (status != "Failed" or (reason or "").startswith(KEPT_AFTER)):
            self.kept_until = self.finished + self.keep_alive() * self.front.settings["time_scale"]
            self.pool = {"Status": "Available"}
        else:
            self.pool = {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 0}

    def is_kept(self):
        if self.pool and self.pool["Status"] == "Available" and self.front.clock() > self.kept_until:
            self.let_go("Terminated", self.kept_until)
        return bool(self.pool) and self.pool["Status"] == "Available"

    def let_go(self, status, at, **more):
        self.pool = {"Status": status, "ResourceRetainedBillableTimeInSeconds": int(max(at - self.finished, 0)), **more}

    # What is told

    def enter(self, secondary, message=None):
        now = self.front.clock()
        if self.transitions:
            self.transitions[-1]["EndTime"] = now
        self.transitions.append({"Status": secondary, "StartTime": now,
                                 "StatusMessage": message or MESSAGES[secondary]})
        self.changed = now

    def describe(self):
        fields = {name: value for name, value in self.request.items() if name != "Tags"}
        fields |= {"TrainingJobArn": self.arn, "TrainingJobStatus": self.status,
                   "SecondaryStatus": self.transitions[-1]["Status"], "CreationTime": self.created,
                   "LastModifiedTime": self.changed, "SecondaryStatusTransitions": self.transitions,
                   "FinalMetricDataList": [{"MetricName": name, "Value": value, "Timestamp": at}
                                           for name, (value, at) in list(self.metrics.items())[:40]]}
        fields["ModelArtifacts"] = {"S3ModelArtifacts": self.artifact()}
        if self.started:
            fields["TrainingStartTime"] = self.started
        if self.finished:
            fields["TrainingEndTime"] = self.finished
            seconds = max(int(self.finished - (self.started or self.finished)), 1)
            part = SPOT_PART if self.request.get("EnableManagedSpotTraining") else 1.0
            fields["TrainingTimeInSeconds"] = seconds
            fields["BillableTimeInSeconds"] = max(int(min(self.trained, seconds) * part), 1) if self.started else 0
        self.is_kept()
        if self.pool and not (self.finished and self.front.clock() < self.finished + self.front.settings["pool_seconds"]):
            fields["WarmPoolStatus"] = self.pool
        if self.reason:
            fields["FailureReason"] = self.reason[:1024]
        return fields

    def artifact(self):
        base = self.request["OutputDataConfig"]["S3OutputPath"].rstrip("/")
        return f"{base}/{self.name}/output/model.tar.gz"

    def hear(self, line):
        for each in self.request.get("AlgorithmSpecification", {}).get("MetricDefinitions", []):
            with contextlib.suppress(re.error, ValueError, IndexError):
                if found := re.search(each["Regex"], line):
                    self.metrics[each["Name"]] = float(found[1]), self.front.clock()

    # What happens

    def run(self):
        try:
            again = True
            while again:
                again = self.attempt()
            self.finish("Completed", "Completed")
        except Interrupted as way:
            self.finish(way.status, way.secondary, way.reason)
        except Exception as error:  # noqa: BLE001 — a service does not die of a job
            self.front.broke()
            self.finish("Failed", "Failed", f"InternalServerError: {error}")

    def finish(self, status, secondary, reason=None):
        for each in self.processes:
            each.kill()
        self.finished, self.reason = self.front.clock(), reason
        self.end_of_training()
        self.enter(secondary, reason)
        self.keep(status, reason)
        self.status = status

    def end_of_training(self):
        if self.began:
            self.trained, self.began = self.trained + self.front.clock() - self.began, 0.0

    def attempt(self):
        """True: it was interrupted, and begins again."""
        if self.transitions[-1]["Status"] != "Starting":
            self.enter("Starting")
        if not self.took_over:
            self.pause(lambda began: time.monotonic() - began >= self.front.settings["job_seconds"])
        self.misfortune("job_pending", lambda: (self.enter("Pending"), self.pause(self.plan.is_over)))
        self.misfortune("job_fails", self.fail_unless_later)
        self.enter("Downloading")
        lacks = given.refused(self.front, self.request["RoleArn"],
                              given.of_training(self.region, self.account, self.request, GROUP))
        if lacks:
            raise Interrupted("Failed", "Failed", f"ClientError: {lacks}")
        trees = [self.prepare(number) for number in range(1, self.count() + 1)]
        self.enter("Training")
        self.began = self.front.clock()
        self.started = self.started or self.began
        self.processes = [self.launch(number, tree) for number, tree in enumerate(trees, 1)]
        if self.watch(trees):
            return True
        self.enter("Uploading")
        self.upload(trees[0])
        return False

    def count(self):
        return self.request.get("ResourceConfig", {}).get("InstanceCount", 1)

    def misfortune(self, kind, strike):
        if self.plan and self.plan.kind == kind:
            strike()

    def fail_unless_later(self):
        if not self.plan.waits():
            raise Interrupted("Failed", "Failed", self.plan.fields.get("reason", "CapacityError: Unable to provision "
                              "requested ML compute capacity. Please retry using a different ML instance type."))

    def pause(self, is_over):
        began = time.monotonic()
        while True:
            self.heed()
            if is_over(began):
                return
            time.sleep(0.02)

    def heed(self):
        """Whether somebody wants it to end."""
        if self.floor.ended:
            raise Interrupted("Stopped", "Stopped")
        wait = self.request.get("StoppingCondition", {}).get("MaxWaitTimeInSeconds")
        if wait and not self.began and self.front.clock() > self.created + wait * self.front.settings["time_scale"]:
            raise Interrupted("Stopped", "MaxWaitTimeExceeded")
        if self.asked_to_stop:
            self.status = "Stopping"
            self.enter("Stopping")
            processes.end(self.processes, self.grace())
            raise Interrupted("Stopped", "Stopped")

    def prepare(self, number):
        """The tree at /opt/ml of an instance."""
        tree = self.floor.folder(f"{self.name}-algo-{number}")
        for folder in ("input/config", "input/data", "model", "output/data", "checkpoints", "code"):
            os.makedirs(os.path.join(tree, folder))
        hosts = sorted(f"algo-{each}" for each in range(1, self.count() + 1))
        config = {"hyperparameters": self.request.get("HyperParameters", {}),
                  "inputdataconfig": {each["ChannelName"]: {"TrainingInputMode": "File"}
                                      for each in self.request.get("InputDataConfig", [])},
                  "resourceconfig": {"current_host": f"algo-{number}", "hosts": hosts,
                                     "network_interface_name": self.front.settings["interface"],
                                     "current_instance_type": self.request["ResourceConfig"].get("InstanceType")}}
        for name, value in config.items():
            with open(os.path.join(tree, "input/config", f"{name}.json"), "w", encoding="utf-8") as file:
                json.dump(value, file)
        with open(os.path.join(tree, "hosts"), "w", encoding="ascii") as file:
            known = hosts if self.front.settings["host_names"] or self.count() == 1 else []
            file.write(f"127.0.0.1 localhost\n127.0.0.{number} {socket.gethostname()}\n" +
                       "".join(f"127.0.0.{host[5:]} {host}\n" for host in known))
        for each in self.request.get("InputDataConfig", []):
            source = each["DataSource"].get("S3DataSource", {})
            place = self.front.settings["channels"] if self.count() > 1 else "input/data"
            self.fetch(source.get("S3Uri", ""), os.path.join(tree, place, each["ChannelName"]))
        if "CheckpointConfig" in self.request and self.front.settings["checkpoints_return"]:
            self.fetch(self.request["CheckpointConfig"]["S3Uri"], os.path.join(tree, "checkpoints"), missing_ok=True)
        return tree

    def fetch(self, uri, folder, missing_ok=False):
        name, _, prefix = uri.removeprefix("s3://").partition("/")
        bucket = self.store.buckets.get(name)
        things = list(bucket.keys_of(prefix, "")) if bucket else []
        if not things and not missing_ok:
            raise Interrupted("Failed", "Failed", f"ClientError: Data download failed:No S3 objects found under S3 URL "
                              f"\"{uri}\" given in input data source.")
        os.makedirs(folder, exist_ok=True)
        for thing in things:
            path = os.path.normpath(os.path.join(folder, thing.key[len(prefix):].lstrip("/") or
                                                 os.path.basename(thing.key)))
            if path.startswith(folder + os.sep) and not thing.key.endswith("/"):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.writelines(thing.read())

    def launch(self, number, tree):
        algorithm = self.request.get("AlgorithmSpecification", {})
        image = self.front.registry.named(algorithm.get("TrainingImage"))
        argv = algorithm.get("ContainerEntrypoint") or toolkit.command(self, tree) or self.front.settings[
            "images"].get(image, ["train"])
        if self.front.settings["entry_stays"]:
            argv = [*self.front.settings["image_entries"].get(image, []), *argv]
        host = f"algo-{number}"
        container = containers.Container(self.front, self.floor.folder(f"{self.name}-{host}"), image,
                                         self.request["RoleArn"], "sagemaker")
        env = container.env(**{"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region,
                               "TRAINING_JOB_NAME": self.name, "TRAINING_JOB_ARN": self.arn, "CURRENT_HOST": host,
                               "OPT_ML": tree, **self.request.get("Environment", {})})
        stream = f"{self.name}/{host}-{int(time.time() * 1000)}"
        logs = processes.Logs(self.account, self.region, GROUP, stream)
        return processes.Process([*argv, *algorithm.get("ContainerArguments", [])], env, logs, tree, tree,
                                 os.path.join(tree, "hosts"), self.hear, ended=container.end)

    def watch(self, trees):
        """Until all have ended well. True: a spot instance was taken away."""
        scale = self.front.settings["time_scale"]
        limit = self.request.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", 86400) * scale
        ends, began, mirrored = self.started + limit, time.monotonic(), 0
        while any(each.poll() is None for each in self.processes):
            self.heed()
            if self.front.clock() > ends:
                processes.end(self.processes, self.grace())
                self.mirror(trees)
                raise Interrupted("Stopped", "MaxRuntimeExceeded")
            for each, tree in self.that_count(trees):
                if each.poll():
                    self.fail(each.code, tree, trees)
            if self.plan and self.plan.waits() and self.plan.is_due(began) and not self.interrupted:
                self.interrupted = True
                for each in self.processes:
                    each.signal(signal.SIGKILL if self.plan.fields.get("hard") else signal.SIGTERM)
                processes.end(self.processes, self.grace())
                self.mirror(trees)
                if self.plan.kind == "job_interrupted":
                    self.end_of_training()
                    self.enter("Interrupted")
                    self.took_over = False
                    return True
                raise Interrupted("Failed", "Failed", self.plan.fields.get("reason", "InternalServerError: We "
                                  "encountered an internal error.  Please try again."))
            if time.monotonic() - mirrored > 1:
                self.mirror(trees)
                mirrored = time.monotonic()
            time.sleep(0.02)
        for each, tree in self.that_count(trees):
            if each.code:
                self.fail(each.code, tree, trees)
        self.mirror(trees)
        return False

    def that_count(self, trees):
        found = list(zip(self.processes, trees, strict=True))
        return found[:1] if self.front.settings["first_host_counts"] else found

    def fail(self, code, tree, trees):
        processes.end(self.processes, self.grace())
        self.mirror(trees)
        text = ""
        with contextlib.suppress(OSError), open(os.path.join(tree, "output/failure"), errors="replace",
                                                encoding="utf-8") as file:
            text = file.read(1024)
        raise Interrupted("Failed", "Failed", f"AlgorithmError: {text}, exit code: {code}")

    def mirror(self, trees):
        """Checkpoints go to S3 as they are, and what is gone here goes there."""
        config = self.request.get("CheckpointConfig")
        if not config:
            return
        name, _, prefix = config["S3Uri"].removeprefix("s3://").partition("/")
        bucket, prefix = self.store.buckets.get(name), prefix.rstrip("/") + "/"
        if bucket is None:
            return
        there, folder = set(), os.path.join(trees[0], "checkpoints")
        for base, _, files in os.walk(folder):
            for each in files:
                path = os.path.join(base, each)
                key = prefix + os.path.relpath(path, folder)
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                    there.add(key)
                    put(self.store, bucket, key, file.read())
        for thing in list(bucket.keys_of(prefix, "")):
            if thing.key not in there:
                bucket.remove(thing.key)

    def upload(self, tree):
        name, _, key = self.artifact().removeprefix("s3://").partition("/")
        bucket = self.store.buckets.get(name)
        if bucket is None:
            raise Interrupted("Failed", "Failed", f"ClientError: Artifact upload failed:The bucket {name} does not exist")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            archive.add(os.path.join(tree, "model"), ".")
        put(self.store, bucket, key, packed.getvalue())


# The operations

def jobs_of(call):
    return call.front.training.setdefault((call.who.account, call.region), {})


def find(call):
    job = jobs_of(call).get(call.params["TrainingJobName"])
    if job is None:
        raise Refusal("ValidationException", "Requested resource not found.", 400)
    return job


def check(call, request):
    """What the model does not say."""
    resources = request["ResourceConfig"]
    if request.get("EnableManagedSpotTraining") and resources.get("KeepAlivePeriodInSeconds"):
        raise Refusal("ValidationException", "KeepAlivePeriodInSeconds is not supported for managed spot training", 400)
    if request.get("InfraCheckConfig", {}).get("EnableInfraCheck") and not call.front.settings["infra_check"]:
        raise Refusal("ValidationException", "InfraCheckConfig is not supported for the instance type "
                      f"{resources.get('InstanceType')}", 400)
    for each in request.get("AlgorithmSpecification", {}).get("MetricDefinitions", []):
        try:
            re.compile(each["Regex"])
        except re.error as error:
            raise Refusal("ValidationException", f"Invalid regex {each['Regex']}: {error}", 400) from error
    names = [each["ChannelName"] for each in request.get("InputDataConfig", [])]
    if len(set(names)) < len(names):
        raise Refusal("ValidationException", "Duplicate channel names in InputDataConfig", 400)


def update(call):
    job = find(call)
    seconds = call.params.get("ResourceConfig", {}).get("KeepAlivePeriodInSeconds")
    if seconds is None:
        raise Refusal("ValidationException", "There is nothing to update", 400)
    with call.front.floor.lock:
        if not job.is_kept():
            raise Refusal("ValidationException", "KeepAlivePeriodInSeconds can only be updated for a training job "
                          "whose warm pool is Available", 400)
        call.effect = True
        if seconds == 0:
            job.let_go("Terminated", call.front.clock())
        else:
            job.kept_until = job.finished + seconds * call.front.settings["time_scale"]
    return reply({"TrainingJobArn": job.arn})


def create(call):
    request, jobs = call.params, jobs_of(call)
    name = request["TrainingJobName"]
    arn = f"arn:aws:sagemaker:{call.region}:{call.who.account}:training-job/{name}"
    for needed in ("AlgorithmSpecification", "ResourceConfig", "StoppingCondition"):
        if needed not in request:
            raise Refusal("ValidationException", f"{needed} is required for this training job", 400)
    rules.check_training(request)
    stop = request["StoppingCondition"]
    if request.get("EnableManagedSpotTraining") and stop.get("MaxWaitTimeInSeconds", 0) < stop.get(
            "MaxRuntimeInSeconds", 86400):
        raise Refusal("ValidationException", "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or "
                      "equal to MaxRuntimeInSeconds", 400)
    check(call, request)
    longest, wanted = call.front.settings["longest_run"], stop.get("MaxRuntimeInSeconds", 86400)
    if wanted > longest:
        raise Refusal("ResourceLimitExceeded", "The account-level service limit 'Longest run time for a training job' is "
                      f"{longest} Seconds, with current utilization of 0 Seconds and a request delta of {wanted} Seconds. "
                      "Please use AWS Service Quotas to request an increase for this quota.", 400)
    with call.front.floor.lock:
        if name in jobs:
            raise Refusal("ResourceInUse", "Training job names must be unique within an AWS account and region, and a "
                          f"training job with this name already exists ({arn})", 400)
        job = Job(call, request, arn)
        donor = next((other for other in jobs.values() if other.is_kept() and other.needs() == job.needs()), None)
        if donor:
            donor.let_go("Reused", call.front.clock(), ReusedByJob=name)
            job.took_over = True
        jobs[name] = job
    job.enter("Starting")
    call.effect = True
    call.front.floor.start(job.run)
    return reply({"TrainingJobArn": arn})


def stop(call):
    job = find(call)
    if job.status in OVER:
        raise Refusal("ValidationException", "The request was rejected because the training job is in status "
                      f"{job.status}.", 400)
    call.effect = not job.asked_to_stop
    job.asked_to_stop = True
    return reply()


def delete(call):
    """Only what has ended; nothing is known of it any more."""
    job = find(call)
    if job.status not in OVER:
        raise Refusal("ValidationException", "The request was rejected because the training job is in status "
                      f"{job.status}.", 400)
    del jobs_of(call)[job.name]
    call.effect = True
    return reply()


def listing(call):
    wanted = call.params
    size = wanted.get("MaxResults", 10)
    found = [job for job in list(jobs_of(call).values()) if wanted.get("NameContains", "") in job.name]
    key = {"Name": lambda job: job.name, "Status": lambda job: job.status}.get(
        wanted.get("SortBy"), lambda job: job.created)
    found.sort(key=key, reverse=wanted.get("SortOrder", "Descending") == "Descending")
    start = int(wanted.get("NextToken", "0"))
    page = found[start:start + size]
    rows = [{"TrainingJobName": job.name, "TrainingJobArn": job.arn, "CreationTime": job.created,
             "LastModifiedTime": job.changed, "TrainingJobStatus": job.status,
             "SecondaryStatus": job.transitions[-1]["Status"]} for job in page
            if wanted.get("StatusEquals") in (None, job.status)]  # after the page was cut, as AWS does
    more = {"NextToken": str(start + size)} if start + size < len(found) else {}
    return reply({"TrainingJobSummaries": rows, **more})


def tags(call):
    """Of jobs and pipelines."""
    front, whose = call.front, (call.who.account, call.region)
    found = [each for made in (front.training, front.processing, front.pipelines) for each in made.get(whose, {}).values()]
    job = next((each for each in found if each.arn == call.params["ResourceArn"]), None)
    if job is None:
        return behind.handle(call)
    return reply({"Tags": job.request.get("Tags", [])})


HANDLERS = {"CreateTrainingJob": create, "UpdateTrainingJob": update, "StopTrainingJob": stop, "DeleteTrainingJob": delete,
            "ListTrainingJobs": listing, "ListTags": tags,
            "DescribeTrainingJob": lambda call: reply(find(call).describe())}
