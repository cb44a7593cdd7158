"""configs/live/conform against the stand-in: how it is started, what it may not leave, and how the stand-in is made
otherwise so that one row turns."""

import json
import os
import re
import subprocess
import sys

import stoker as cli
import yaml
from aws import REGION
from monitors import NEURON, NVIDIA
from neuron_standin.install import Installation

CONFORM = cli.ROOT / "configs/live/conform"
ROLE = "arn:aws:iam::123456789012:role/secret-role"
ROLES = ["--role", ROLE, "--states-role", f"{ROLE}-of-states", "--scheduler-role", f"{ROLE}-of-scheduler"]
BUCKET, QUEUE = "account-123456789012", "secret-queue"
SAGEMAKER_IMAGE = f"763104351884.dkr.ecr.{REGION}.amazonaws.com/pytorch-training:2.3.0-cpu-py311-ubuntu20.04-sagemaker"
NEURON_IMAGE = f"763104351884.dkr.ecr.{REGION}.amazonaws.com/pytorch-training-neuronx:" \
               "2.9.0-neuronx-py312-sdk2.29.1-ubuntu24.04"
STOKER_IMAGE = f"123456789012.dkr.ecr.{REGION}.amazonaws.com/stoker:0.1"
ENTRIES = {SAGEMAKER_IMAGE: ["sh", "-c", "echo from the entry point; exec \"$@\"", "sh"],
           NEURON_IMAGE: ["bash", "-m", str(cli.ROOT / "tests/support/entry_point.sh")]}
SDK = "amz-sdk-invocation-id"  # only boto3 sends it, and not the stoker whose doctor comes first


def rows():
    text = (cli.ROOT / "configs/live/rows.yaml").read_text()
    return {row["id"]: row["shape"] for group in yaml.safe_load(text)["groups"] for row in group["rows"]}


def trials():
    """The rows that have one."""
    files = (cli.ROOT / "configs/live").glob("trials_*.py")
    found = {row for file in files for row in re.findall(r'^@trial\("([a-z0-9-]+)"', file.read_text(), re.MULTILINE)}
    return sorted(found)


# Those that cost requests alone.
REQUESTS = ["batch-gone", "clock", "image-config", "link-end", "pipeline-limits", "rates", "s3-conditions",
            "s3-copy-checksum", "s3-parts-checksum", "s3-parts-condition", "s3-region", "sagemaker-unknown"]
# Those that wait for the whole time between SIGTERM and SIGKILL, or for lines that are late.
LONG = ["batch-grace", "sagemaker-grace", "sagemaker-late-lines"]
SPOT = ["batch-spot-nodes"]  # on another queue
# On machines with accelerators: a run of each kind, for these rows; arguments of make_device_queue.
DEVICES = {
    "neuron": (["batch-neuron", "neuron-monitor", "neuron-tools", "sagemaker-neuron"],
               {"kinds": ["inf2.xlarge"], "instance": "inf2.xlarge"}),
    "neuron-cache": (["neuron-cache-locks", "neuron-cache-names", "neuron-cache-role", "neuron-words"],
                     {"kinds": ["inf2.xlarge"], "instance": "inf2.xlarge", "tools": {"STANDIN_COMPILE_SECONDS": 8}}),
    "toolkit": (["toolkit-command"], {"kinds": ["inf2.xlarge"], "instance": "trn1.2xlarge"}),
    "gpus": (["batch-gpu", "gpu-tools", "sagemaker-efa", "sagemaker-gpu"], {"kinds": ["g4dn.xlarge", "g4dn.12xlarge"]}),
    "efa": (["batch-efa"], {"kinds": ["g6.8xlarge"], "efa": 1}),
    "neuron-efa": (["neuron-efa"], {"kinds": ["trn1.32xlarge"], "efa": 8, "instance": "trn1.32xlarge"}),
}
ON_DEVICES = {row: kind for kind, (names, _) in DEVICES.items() for row in names}
NAMED = [row for row in trials() if rows()[row].get("named") and row not in [*SPOT, *ON_DEVICES]]
JOBS = [row for row in trials() if row not in [*REQUESTS, *LONG, *NAMED, *SPOT, *ON_DEVICES]]
DEVICE_IMAGE = f"123456789012.dkr.ecr.{REGION}.amazonaws.com/devices:1"
LATER = "batch-forgotten"  # is judged by a second run
COUNTERS = ("mem_ecc_uncorrected", "sram_ecc_uncorrected")


def asked(names):
    """The options that choose these rows."""
    return [word for name in names for word in ("--rows", name)]


class Conform:
    """`folder` has its results."""

    def __init__(self, aws, tmp_path):
        self.aws, self.home, self.folder, self.watch, self.later = aws, tmp_path, tmp_path / "results", 2, 0
        aws.make_bucket(BUCKET)
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", **{name: os.environ[name] for name in (
            "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS") if name in os.environ}}
        for image in (SAGEMAKER_IMAGE, NEURON_IMAGE, STOKER_IMAGE):
            aws.push(image)
        aws.settings(job_seconds=0.1, stop_seconds=1, most_limited=512, image_env={"*": env}, image_entries=ENTRIES,
                     image_files={STOKER_IMAGE: {"/opt/stoker": str(cli.BINARY.parent / "agent")}}, imds={"role": "tester"},
                     ring_soon=300)
        batch = aws.client("batch")
        batch.create_compute_environment(
            computeEnvironmentName="env", type="MANAGED",
            computeResources={"type": "EC2", "maxvCpus": 64, "instanceTypes": ["m5", "c5.xlarge"], "subnets": ["subnet-1"],
                              "instanceRole": "ecsInstanceRole"})
        batch.create_job_queue(jobQueueName=QUEUE, priority=1, computeEnvironmentOrder=[
            {"order": 1, "computeEnvironment": "env"}])

    def make_spot_queue(self):
        batch = self.aws.client("batch")
        batch.create_compute_environment(computeEnvironmentName="spot", type="MANAGED", computeResources={
            "type": "SPOT", "maxvCpus": 64, "instanceTypes": ["m5"], "subnets": ["subnet-1"], "instanceRole": "r"})
        batch.update_job_queue(jobQueue=QUEUE, computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "spot"}])

    def make_device_queue(self, kinds, efa=0, instance=None, tools=None, broken=None, fault=None, **settings):
        """Its machines have accelerators, and the image their tools, so set: of Neuron, as on that instance, or of GPUs.
        `broken`: the one that ends at once. `fault`, `settings`: of the stand-in."""
        self.aws.client("batch").create_compute_environment(
            computeEnvironmentName="devices", type="MANAGED", computeResources={
                "type": "EC2", "maxvCpus": 512, "instanceTypes": kinds, "subnets": ["subnet-1"], "securityGroupIds": ["sg-1"],
                "instanceRole": "ecsInstanceRole", "placementGroup": "near",
                "launchTemplate": {"launchTemplateName": "devices"}})
        self.aws.client("batch").update_job_queue(jobQueue=QUEUE, computeEnvironmentOrder=[
            {"order": 1, "computeEnvironment": "devices"}])
        tools = Installation(self.home / "devices", STANDIN_TORCH_CUDA="" if instance else 1, **(tools or {})).with_xla()
        if instance:
            tools.with_boto3().set(STANDIN_INSTANCE=instance)
            programs = {"neuron-monitor": NEURON % ([90, 90], 14 << 30)}
        else:
            tools.with_gpus(STANDIN_GPUS=1, STANDIN_GPU_SAYS="Tesla T4: 0, [N/A], No, No")
            (tools.bin / "nvidia-smi").rename(tools.bin / "asked")
            programs = {"watched": NVIDIA % ([90], 12000), "nvidia-smi":
                        '#!/bin/sh\ncase " $* " in *" -l "*) exec watched "$@";; esac\nexec asked "$@"\n'}
        for name, text in programs.items():
            (tools.bin / name).write_text("#!/bin/sh\n" if name == broken else text)
            (tools.bin / name).chmod(0o755)
        for device in range(16):
            folder = self.home / f"sysfs/neuron{device}/stats/hardware"
            folder.mkdir(parents=True)
            for name in COUNTERS:
                (folder / name).write_text("0\n")
        self.aws.push(DEVICE_IMAGE)
        if fault:
            turn(self.aws, *fault)
        had = self.aws.control("GET", "settings")["image_env"]
        self.aws.settings(**settings, ec2={"templates": {"devices": {"efa": efa}}}, image_env={**had, DEVICE_IMAGE: {
            **had["*"], "PATH": tools.path, "NEURON_SYSFS_ROOT": str(self.home / "sysfs")}})

    def start(self, *words, yes=True):
        argv = [CONFORM, "--region", REGION, "--bucket", BUCKET, "--stoker", cli.BINARY, "--output", self.folder, *words]
        env = self.aws.env(HOME=str(self.home), CONFORM_PYTHON=sys.executable, PYTHONDONTWRITEBYTECODE="1",
                           CONFORM_WATCH=str(self.watch), CONFORM_LATER=str(self.later),
                           AWS_EC2_METADATA_SERVICE_ENDPOINT=self.aws.url)
        return subprocess.Popen([str(word) for word in argv + (["--yes"] if yes else [])], env=env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, yes=True):
        """Its exit code, and what it printed."""
        return ended(self.start(*words, yes=yes))

    def everything(self, names, *words):
        if "sagemaker-again" in names:
            self.aws.fault("job_interrupted", operation="CreateTrainingJob", key="-spot-train-1$", after=4, hard=True)
        options = [*ROLES, "--queue", QUEUE, "--stoker-image", STOKER_IMAGE, "--budget", "8", *words]
        found = self.run(*options, *asked(names))
        if LATER not in names:
            return found
        row, self.later = self.data()["rows"][LATER], 8 * 86400 + 60
        assert row["verdict"] == "not tried" and "run conform again after" in row["seen"], (row, found)
        self.aws.settings(batch_later=self.later)
        # A row that was not tried would be tried again, by a job that is forgotten as soon as it has ended.
        return self.run(*options, *asked([LATER]))

    def data(self):
        return json.loads((self.folder / "results.json").read_text())

    def tried(self):
        """The results of rows but those that rows.yaml says are not tried, or for which an option is missing."""
        return {name: row for name, row in self.data()["rows"].items()
                if "untried" not in rows()[name] and not row["seen"].startswith("it needs --")}

    def verdicts(self):
        return {name: row["verdict"] for name, row in self.tried().items()}

    def turned(self):
        """What was seen of the rows that are not as taken."""
        return {name: row["seen"] for name, row in self.tried().items() if row["verdict"] != "as taken"}

    def runs(self, part):
        """Whether a job whose name ends so is on a machine, or a pipeline is executed."""
        rows = self.aws.client("batch").list_jobs(jobQueue=QUEUE, filters=[{"name": "JOB_NAME", "values": ["*"]}])
        sagemaker = self.aws.client("sagemaker")
        others = [row["TrainingJobName"] for row in sagemaker.list_training_jobs(
            MaxResults=100, StatusEquals="InProgress")["TrainingJobSummaries"]]
        others += [row["ProcessingJobName"] for row in sagemaker.list_processing_jobs(
            StatusEquals="InProgress")["ProcessingJobSummaries"]]
        others += [row["PipelineName"] for row in sagemaker.list_pipelines()["PipelineSummaries"] if any(
            each["PipelineExecutionStatus"] == "Executing" for each in sagemaker.list_pipeline_executions(
                PipelineName=row["PipelineName"])["PipelineExecutionSummaries"])]
        return any(row["jobName"].endswith(part) and row["status"] == "RUNNING" for row in rows["jobSummaryList"]) or any(
            name.endswith(part) for name in others)

    def beginners(self):
        """What would begin jobs."""
        return [*(row["Name"] for row in self.aws.client("scheduler").list_schedules()["Schedules"]),
                *(row["name"] for row in self.aws.client("stepfunctions").list_state_machines()["stateMachines"])]

    def left(self):
        """All that it could have left."""
        aws = self.aws
        batch, sagemaker = aws.client("batch"), aws.client("sagemaker")
        jobs = [row for row in batch.list_jobs(jobQueue=QUEUE, filters=[{"name": "JOB_NAME", "values": ["*"]}])[
            "jobSummaryList"] if row["status"] not in ("SUCCEEDED", "FAILED")]
        training = [row for row in sagemaker.list_training_jobs(MaxResults=100)["TrainingJobSummaries"]
                    if row["TrainingJobStatus"] not in ("Completed", "Failed", "Stopped")]
        processing = [row for row in sagemaker.list_processing_jobs(MaxResults=100)["ProcessingJobSummaries"]
                      if row["ProcessingJobStatus"] not in ("Completed", "Failed", "Stopped")]
        return [*aws.objects(BUCKET), *self.beginners(), *(row["ProcessingJobName"] for row in processing),
                *(row["Key"] for row in aws.client("s3").list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])),
                *(row["PipelineName"] for row in sagemaker.list_pipelines()["PipelineSummaries"]),
                *(row["jobName"] for row in jobs), *(row["TrainingJobName"] for row in training),
                *(row["jobDefinitionName"] for row in batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"])]


def ended(process):
    out, err = process.communicate(timeout=cli.SECONDS)
    assert "Traceback" not in err, err
    return process.returncode, out, err


# ---- how the stand-in is otherwise: row → a fault, or settings

REPLACED = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
ALWAYS = 1e9


def replaced(operation, pattern, text="", **more):
    return "replace", {"operation": operation, "pattern": pattern, "text": text, **more}


OTHERWISE = [
    ("s3-conditions", "unconditional", {"operation": "PutObject", "key": "/conditions$"}),
    ("s3-conditions", "precondition", {"operation": "PutObject", "key": "/conditions$", "nth": 3, "count": 1}),
    ("s3-parts-condition", "unconditional", {"operation": "CompleteMultipartUpload", "key": "/parts-condition$"}),
    ("s3-parts-checksum", *replaced("CompleteMultipartUpload", "<ChecksumSHA256>[^<]*", f"<ChecksumSHA256>{REPLACED}",
                                    key="/parts-checksum$")),
    ("s3-copy-checksum", *replaced("CopyObject", "<ChecksumSHA256>[^<]*</ChecksumSHA256>")),
    ("s3-region", "header", {"operation": "HeadBucket", "name": "x-amz-bucket-region", "value": None}),
    ("clock", "date", {"operation": "GetCallerIdentity", "seconds": 3600, "header": SDK}),
    ("link-end", *replaced("GetObject", "Request has expired", key="/link$")),
    ("sagemaker-unknown", "error", {"operation": "DescribeTrainingJob", "code": "ResourceNotFound", "message": "no",
                                    "key": "stoker-conform-[0-9a-f]+$"}),
    ("batch-gone", "error", {"operation": "TerminateJob", "key": "^00000000-", "code": "ClientException",
                             "message": "no such job"}),
    ("pipeline-limits", "error", {"operation": "CreatePipeline", "key": "stoker-conform-[0-9a-f]+$",
                                  "code": "ValidationException", "message": "40 steps"}),
    ("rates", "throttle", {"operation": "DescribeTrainingJob", "key": "-rates$"}),
    ("image-config", "error", {"operation": "GetDownloadUrlForLayer", "header": SDK, "code": "LayersNotFoundException",
                               "message": "not for you"}),
    ("instance-role", *replaced("GetCallerIdentity", "assumed-role/tester", "assumed-role/another", header=SDK)),
    ("batch-environment", "settings", {"job_env": {"batch": {"CONFORM_GIVEN": None}}}),
    ("batch-shm", "settings", {"shm_mib": 64}),
    ("batch-main-node", "settings", {"any_node_fails": True}),
    ("batch-node-jobs", *replaced("DescribeJobs", '"exitCode": 42', '"exitCode": 1')),
    ("batch-node-address", *replaced("GetObject", ":[0-9]+$", ":1", key="/address$")),
    ("batch-listed", *replaced("ListJobs", '"jobId": "(?=[^}]*-single")', '"jobId": "0')),
    ("batch-tags", *replaced("DescribeJobs", '"stoker-conform-run"', '"another"')),
    ("batch-no-retry", "settings", {"batch_attempts": 2}),
    ("batch-stream", *replaced("DescribeJobs", "-single/default/", "-single/other/")),
    ("batch-overrides", "settings", {"most_overrides": 20000}),
    ("batch-reason", *replaced("DescribeJobs", "for a reason of 200 characters", "for a reason")),
    ("batch-two-reasons", "settings", {"first_reason": True}),
    ("batch-memory", "job_pending", {"operation": "SubmitJob", "key": "-memory$", "seconds": ALWAYS,
                                     "reason": "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - too much"}),
    ("batch-blocked", "settings", {"most_vcpus": 4000}),
    ("sagemaker-again", *replaced("DescribeTrainingJob", '"Status": "Interrupted"', '"Status": "Stopping"', key="-spot-train-1$",
                                  header=SDK)),
    ("batch-forgotten", "settings", {"known_seconds": 9 * 86400}),
    ("states-cause", "settings", {"job_cause": "Essential container in task exited"}),
    ("scheduler-target", "settings", {"scheduled_time": "%Y-%m-%d %H:%M:%S"}),
    ("batch-spot-nodes", "settings", {"spot_nodes": True}),
    ("container-memory", *replaced("GetLogEvents", r'(?<=after\\": )1', "0", key="^/aws/batch/job$")),
    ("batch-helper", "settings", {"helpers_first": False}),
    ("batch-entry-point", "settings", {"image_entries": {**ENTRIES, NEURON_IMAGE: ["true"]}}),
    ("batch-host", "settings", {"host_words": "Task stopped by somebody (instance {instance})."}),
    ("batch-grace", "settings", {"stop_seconds": 10}),
    ("sagemaker-grace", "settings", {"training_stop_seconds": 30}),
    ("batch-role", "settings", {"job_env": {"batch": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": None}}}),
    ("sagemaker-role", "settings", {"job_env": {"sagemaker": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": None}}}),
    ("sagemaker-environment", "settings", {"job_env": {"sagemaker": {"CONFORM_GIVEN": None}}}),
    ("sagemaker-host-names", "settings", {"host_names": False}),
    ("sagemaker-entry-point", "settings", {"entry_stays": True}),
    ("sagemaker-channel", "settings", {"channels": "input/elsewhere"}),
    ("sagemaker-completed", "settings", {"first_host_counts": True}),
    ("sagemaker-streams", *replaced("DescribeLogStreams", "/algo-", "/host-")),
    ("sagemaker-name", "error", {"operation": "CreateTrainingJob", "key": "-single$", "nth": 2, "count": 1,
                                 "code": "ValidationException", "message": "there is one"}),
    ("sagemaker-shown", "error", {"operation": "DescribeTrainingJob", "key": "-single$", "count": 25,
                                  "code": "ValidationException", "message": "Requested resource not found."}),
    ("sagemaker-deleted", "error", {"operation": "DeleteTrainingJob", "nth": 2, "count": 1, "code": "ResourceInUse",
                                    "message": "it is kept"}),
    ("sagemaker-longest", "settings", {"longest_run": 86400}),
    ("sagemaker-reason", *replaced("DescribeTrainingJob", "exit code: 42", "exit status 42")),
    ("sagemaker-times", *replaced("DescribeTrainingJob", '"BillableTimeInSeconds": [0-9]+',
                                  '"BillableTimeInSeconds": 9000')),
    ("sagemaker-checkpoints", "settings", {"checkpoints_return": False}),
    ("sagemaker-late-lines", "late", {"operation": "FilterLogEvents", "count": 9, "text": "hidden",
                                      "pattern": r'conform \{\\"line\\": 3,'}),
    ("toolkit-last-line", *replaced("FilterLogEvents", "Reporting training", "Telling of")),
    ("processing-write", "settings", {"processing_writable": False}),
    ("pipeline-conditions", "settings", {"chosen_files": False}),
    ("pipeline-conditions", "settings", {"execution_id": "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}),
    ("sagemaker-infra-check", "settings", {"infra_check": False}),
    ("sagemaker-warm-pool", *replaced("DescribeTrainingJob", '"Status": "Available"', '"Status": "InUse"')),
]


# What else is otherwise where rows on accelerators are: arguments of make_device_queue.
TOOLS = {
    "batch-neuron": {"job_env": {"batch": {"STANDIN_INSTANCE": "inf2.24xlarge"}}},
    "sagemaker-neuron": {"job_env": {"sagemaker": {"STANDIN_INSTANCE": "inf2.24xlarge"}}},
    "batch-gpu": {"more_gpus": 1},
    "sagemaker-gpu": {"job_env": {"sagemaker": {"STANDIN_GPUS": "2"}}},
    "neuron-tools": {"job_env": {"batch": {"NEURON_SYSFS_ROOT": "/nowhere"}}},
    "neuron-cache-role": {"job_env": {"batch": {"STANDIN_CACHE_KEYS": "none"}}},
    "neuron-cache-names": {"fault": replaced("ListObjectsV2", r"(?<=/model\.done</Key><LastModified>)\d{4}", "2001", header=SDK)},
    "neuron-cache-locks": {"job_env": {"batch": {"STANDIN_LOCK_SUFFIX": ".held"}}},
    "neuron-words": {"job_env": {"batch": {"STANDIN_OTHER_WORDS": "1"}}},
    "toolkit-command": {"fault": replaced("FilterLogEvents", r"torchrun --nnodes", "python3 -m torch.distributed.run --nnodes")},
    "neuron-monitor": {"broken": "neuron-monitor"},
    "gpu-tools": {"broken": "watched"},
    "batch-efa": {"job_env": {"batch": {"STANDIN_PROVIDER": "tcp"}}},
    "sagemaker-efa": {"job_env": {"sagemaker": {"STANDIN_PROVIDER": "tcp"}}},
    "neuron-efa": {"job_env": {"batch": {"STANDIN_TORCH_SECONDS": "1"}}},
}

# Rows of which nothing can be said where this one is otherwise.
SILENT = {"neuron-cache-role": ["neuron-cache-locks", "neuron-cache-names", "neuron-words"],
          "batch-role": ["batch-entry-point", "batch-helper"], "sagemaker-role": ["sagemaker-again"]}

# Which operation a setting is about, where a fault may be about the same.
SETTING_OF = {"sagemaker-longest": "CreateTrainingJob"}


def silences(one, other):
    return other in SILENT.get(one, [])


def groups():
    """All of them, so that those of a group can be at once: one fault strikes a request, and something can be said of each."""
    made = []
    for each in [each for each in OTHERWISE if each[0] not in LONG + SPOT]:
        about = each[2].get("operation", SETTING_OF.get(each[0], each[0]))
        group = next((group for group in made if about not in group and not any(
            silences(each[0], row) or silences(row, each[0]) for row, _, _ in group.values())), None)
        if group is None:
            made.append(group := {})
        group[about] = each
    return [list(group.values()) for group in made]


def turn(aws, kind, fields):
    if kind == "settings":
        had = aws.control("GET", "settings").get("job_env", {})
        if "job_env" in fields:
            fields = {"job_env": {**had, **{name: {**had.get(name, {}), **env} for name, env in fields["job_env"].items()}}}
        aws.settings(**fields)
    elif kind == "late":
        begun = aws.fault("delay", operation="CreateTrainingJob", key="-lines$", seconds=0)
        aws.fault("replace", behind=begun, **fields)
    else:
        aws.fault(kind, **{"count": 0, **fields})
