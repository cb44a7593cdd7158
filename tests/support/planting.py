"""How faults that doctor must find are planted, and how what it prints is followed: see planted.py."""

import json
import re
import shutil
import subprocess
import tempfile

import stoker as cli
from aws import ACCESS, SECRET
from bucket_job import BUCKET, KEYS
from project import SUPPORT


class Patient:
    """A job, the account that it runs in, and the environment of whoever looks at it."""

    def __init__(self, job):
        self.job, self.env, self.more, self.has, self.folders = job, {}, {}, {}, []

    def stop(self):
        self.job.stop()
        for folder in self.folders:
            shutil.rmtree(folder)

    def account(self, kind, *path, to):
        """The account has this: see `ec2`, `quotas` and others of the stand-in."""
        *above, last = (kind, *path)
        inner = self.has
        for name in above:
            inner = inner.setdefault(name, {})
        inner[last] = to
        self.job.aws.settings(**{kind: self.has[kind]})

    def field(self, name, value):
        """A field of the spec, by its path; None takes it out."""
        top, _, inner = name.partition(".")
        self.job.write(**{top: {key: each for key, each in {**self.job.spec[top], inner: value}.items() if each is not None}
                          if inner else value})

    def allow(self, statement):
        self.has["policies"][ACCESS]["Statement"].append(statement)
        self.job.aws.settings(policies=self.has["policies"])


# --- what cures: each takes the patient and the finding ---

def statement(patient, finding):
    """The statement that the cure prints is added to the policy of whoever asks."""
    patient.allow(json.JSONDecoder().raw_decode(finding["cure"], finding["cure"].index('{"'))[0])


def statement_is(action, cure):
    """A statement for the action is printed, though it is not by a policy that it is denied."""
    return lambda patient, finding: says(f'"Action":"{action}"', cure)(patient, finding)


def raised(patient, finding):
    """The command that the cure prints is given."""
    code, value = re.search(r"aws service-quotas request-service-quota-increase --service-code \w+ "
                            r"--quota-code (\S+) --desired-value (\d+)", finding["cure"]).groups()
    patient.account("quotas", code, to=int(value))


def unset(patient, finding):
    """A variable that the finding names is as it was."""
    named = {*re.findall(r"[A-Za-z_]{5,}", finding["seen"] + finding["cure"])} & {*patient.env}
    assert named, finding
    for name in named:
        del patient.env[name]


def field(value):
    """The field that the finding names has another value."""
    def cure(patient, finding):
        patient.field(finding["field"], value)
    return cure


def says(words, cure):
    """A cure in words, which somebody else than stoker follows."""
    def follow(patient, finding):
        assert words in finding["cure"], finding
        cure(patient)
    return follow


# --- what is planted ---

def other_env(**values):
    """The environment is another one; None takes a variable out."""
    return lambda patient: patient.env.update(values)


def state_below(folder):
    """The state is in a new folder there, which goes with the patient."""
    def plant(patient):
        patient.folders.append(tempfile.mkdtemp(prefix="stoker-state-", dir=folder))
        patient.env["STOKER_STATE"] = patient.folders[-1]
    return plant


def field_is(name, value):
    return lambda patient: patient.field(name, value)


def account_has(kind, *path, to):
    return lambda patient: patient.account(kind, *path, to=to)


def fault(kind, **fields):
    """A fault of the stand-in, which nobody but the service's owner can cure."""
    return lambda patient: patient.job.aws.fault(kind, **{"count": 0, **fields})


def both(*plants):
    return lambda patient: [plant(patient) for plant in plants] and None


def cleared(patient):
    patient.job.aws.clear_faults()


# --- this machine ---

def bare_folder(patient):
    folder = patient.job.root / "bare"
    folder.mkdir(exist_ok=True)
    return folder


def broken_library(patient):
    (bare_folder(patient) / "libcurl.so.4").write_text("")
    patient.env["LD_LIBRARY_PATH"] = bare_folder(patient)


def install(patient, finding):
    name = re.search(r"install (\S+\.so\.\d+)", finding["cure"])[1]
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    shutil.copy(re.search(rf"{re.escape(name)} .*=> (\S+)", known)[1], bare_folder(patient) / name)


def no_room(patient):
    """A disk with 10 MiB of room, as statvfs() tells."""
    library = patient.job.root / "no_room.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", library,
                    SUPPORT / "no_room.c"], check=True)
    linked = subprocess.run(["ldd", cli.BINARY], capture_output=True, text=True, check=True).stdout
    first = re.findall(r"=> (\S*libasan\S*)", linked)  # it wants to be the first library
    patient.env.update(LD_PRELOAD=" ".join([*first, str(library)]), NO_ROOM=10 << 20)


def make_room(patient):
    patient.env["NO_ROOM"] = 10 << 30


def not_a_folder(patient):
    (patient.job.root / "file").write_text("")
    return patient.job.root / "file"


def workspace_in_a_file(patient):
    patient.field("workspace", str(not_a_folder(patient) / "workspace"))


def state_in_a_file(patient):
    patient.env["STOKER_STATE"] = not_a_folder(patient) / "state"


def state_elsewhere(patient):
    patient.env["STOKER_STATE"] = patient.job.root / "state"


def agent_of_another_folder(patient):
    patient.env["STOKER_AGENT"] = bare_folder(patient)


def ends_soon(patient):
    """Credentials of a process that end in ten minutes, as the patient's clock has it."""
    config = patient.job.root / "config"
    config.write_text("[default]\ncredential_process = sh -c 'cat \"$HOME/keys\"'\n")
    patient.job.home.mkdir(exist_ok=True)
    keys(patient, "+10 minutes")
    patient.env.update(AWS_CONFIG_FILE=config, AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None)


def keys(patient, until):
    when = subprocess.run(["date", "-u", "-d", until, "+%Y-%m-%dT%H:%M:%SZ"], capture_output=True, text=True,
                          check=True).stdout.strip()
    (patient.job.home / "keys").write_text(json.dumps({
        "Version": 1, "AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "SessionToken": "", "Expiration": when}))


# --- rights and places in S3 ---

PLACES = ("ListBucket", "PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload")
SERVICES = ("batch", "ec2", "ecr", "iam", "servicequotas", "sts")


def rights_but(**missing):
    """Whoever asks may do everything but an action of S3 in a place: {action: place}."""
    def plant(patient):
        job = patient.job
        allowed = [{"Effect": "Allow", "Resource": "*", "Action": [
            *(f"{service}:*" for service in SERVICES), "s3:ListBucketMultipartUploads", "s3:ListMultipartUploadParts"]}]
        for action in PLACES:
            names = [f"{job.prefix}/{key}" for key in KEYS if missing.get(action) != key]
            where = {"Resource": f"arn:aws:s3:::{BUCKET}", "Condition": {"StringLikeIfExists": {
                "s3:prefix": [text for name in names for text in (name, f"{name}/*")]}}} if action == "ListBucket" else {
                    "Resource": [f"arn:aws:s3:::{BUCKET}/{name}/*" for name in names]}
            allowed.append({"Effect": "Allow", "Action": f"s3:{action}", **where})
        patient.account("policies", ACCESS, to={"Version": "2012-10-17", "Statement": allowed})
    return plant


def rights_without_keys(patient):
    """The same for keys of KMS, of which buckets have one each."""
    for number, name in enumerate(("key-one", "key-two", "key-three")):
        patient.job.aws.make_bucket(name)
        patient.account("bucket_keys", name, to=f"arn:aws:kms:eu-west-1:123456789012:key/{number}")
    patient.account("policies", ACCESS, to={"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Resource": "*", "Action": ["s3:*", *(f"{service}:*" for service in SERVICES)]},
        {"Effect": "Allow", "Action": "kms:Decrypt", "Resource": "arn:aws:kms:eu-west-1:123456789012:key/0"},
        {"Effect": "Allow", "Action": "kms:GenerateDataKey", "Resource": "arn:aws:kms:eu-west-1:123456789012:key/1"},
        {"Effect": "Allow", "Action": "kms:*", "Resource": "arn:aws:kms:eu-west-1:123456789012:key/2"}]})


def make_bucket(patient, finding):
    name = re.match("s3://([^/]+)", finding["on"])[1]
    if name not in patient.job.aws.control("GET", "buckets"):
        patient.job.aws.make_bucket(name)


def far_bucket(patient):
    patient.job.aws.make_bucket("far-away", region="us-west-2")
    patient.field("compile.cache_url", "s3://far-away/cache")


# --- queues, machines and networks ---

def queue(name, **more):
    """The job is for a queue of its own."""
    def plant(patient):
        patient.job.make_queue(name, **more)
        patient.field("batch.job_queue", name)
    return plant


def queue_changes(**changes):
    return lambda patient: patient.job.batch.update_job_queue(jobQueue=patient.job.spec["batch"]["job_queue"], **changes)


def environment_changes(state=None, **changes):
    """Another one, or other machines, of the queue's compute environment."""
    def plant(patient):
        more = {"state": state} if state else {}
        patient.job.batch.update_compute_environment(
            computeEnvironment=f"{patient.job.spec['batch']['job_queue']}-env", computeResources=changes, **more)
    return plant


def machines_without(*names, **changes):
    """The job's queue has a compute environment without these."""
    return queue("bare", machines={**dict.fromkeys(names), **changes})


def own_row(ram):
    """A catalogue of one's own says what a machine has."""
    def plant(patient):
        patient.env["STOKER_INSTANCES"] = patient.job.root / "mine.yaml"
        patient.env["STOKER_INSTANCES"].write_text(
            f"version: 1\ninstances:\n  {patient.job.spec['resources']['instance']}: {{ram: {ram}}}\n")
    return plant


def ram_as_seen(patient, finding):
    """The row is corrected by what EC2 says, as the finding tells it."""
    assert "correct 'ram'" in finding["cure"] and "STOKER_INSTANCES" in finding["cure"]
    own_row(re.search(r"a machine of \S+ has (\d+) MiB", finding["seen"])[1] + "MiB")(patient)


def fair_share(patient):
    arn = patient.job.batch.create_scheduling_policy(name="fair", fairsharePolicy={})["arn"]
    patient.job.make_queue("fair", schedulingPolicyArn=arn)
    patient.field("batch.job_queue", "fair")


def give_share(patient, finding):
    assert "batch: {share_identifier: " in finding["cure"]
    patient.field(finding["field"], "team")


def remove_field(patient, finding):
    assert finding["cure"] == "remove it"
    patient.field(finding["field"], None)


def push(patient, finding):
    patient.job.aws.push(finding["on"])


NEURON_IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training-neuronx"


def image_of_aws(patient):
    patient.job.aws.push(f"{NEURON_IMAGE}:2.1")
    patient.field("image", f"{NEURON_IMAGE}:2.1")


def whole_tag(patient, finding):
    tag, = re.search(r"such as (\S+)", finding["cure"]).groups()
    patient.job.aws.push(f"{NEURON_IMAGE}:{tag}")
    patient.field(finding["field"], f"{NEURON_IMAGE}:{tag}")
