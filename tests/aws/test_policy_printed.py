"""What `doctor --policy` prints is enough, and no more: with exactly that, each for its own keys, whoever types, the
role of the jobs and that of their machines go through both phases, a takeover, a stop, all of `cache`, logs, and the
doctor, `--inside` too. No part of it can be taken away: the stand-in tells which rights were asked for."""

import copy
import json
import os
import subprocess
import sys

import hints
import pytest
import stoker as cli
from aws import OTHER_ACCESS, OTHER_SECRET
from batch_job import IMAGE, ROLE, BatchJob
from bucket_job import BUCKET, BucketJob
from project import SUPPORT
from sagemaker_job import ROLE as SAGEMAKER_ROLE
from sagemaker_job import SagemakerJob
from standin import iam
from test_retrain_s3 import FarTurns

NARROW = {"AWS_ACCESS_KEY_ID": OTHER_ACCESS, "AWS_SECRET_ACCESS_KEY": OTHER_SECRET}
DOCTOR = {"AWS_ACCESS_KEY_ID": "AKIDDOCTOR", "AWS_SECRET_ACCESS_KEY": "secret/of+the/doctor"}
EXECUTION_ROLE = "arn:aws:iam::123456789012:role/machine"
LEASE = ("--lease", "3s")
# What only a look needs, and whoever submits may lack.
SEEN = {f"ec2:Describe{what}" for what in ("InstanceTypes", "InstanceTypeOfferings", "LaunchTemplateVersions", "Subnets",
                                           "SecurityGroups", "PlacementGroups", "RouteTables", "VpcEndpoints")} | {
    "servicequotas:GetServiceQuota", "servicequotas:ListServiceQuotas"}
LOOKS = {"batch:DescribeJobQueues", "batch:DescribeComputeEnvironments", "iam:GetRole", "iam:SimulatePrincipalPolicy",
         "sts:AssumeRole", *SEEN}
# Actions without a type of resource, by AWS's Service Authorization Reference.
UNTYPED = {"batch:ListJobs", "batch:DescribeJobs", "batch:DescribeJobQueues", "batch:DescribeJobDefinitions",
           "batch:DescribeComputeEnvironments", "ecr:GetAuthorizationToken", "cloudwatch:PutMetricData",
           "ec2:DescribeDhcpOptions", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSecurityGroups",
           "ec2:DescribeSubnets", "ec2:DescribeVpcs", "scheduler:ListSchedules", *SEEN}
BUCKET_KEY = "arn:aws:kms:eu-west-1:123456789012:key/89ab-of-the-bucket"
GRAPH = f"jit_large-{'7' * 64}-cache"
LARGE = f"""
import pathlib, zlib
if attempt == ("train", 1):
    (pathlib.Path(os.environ["STOKER_OUTPUT_DIR"]) / "large.bin").write_bytes(bytes(17 << 20))
if attempt[0] == "precompile":
    folder = pathlib.Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "{GRAPH}").write_bytes(zlib.compress(bytes(17 << 20), 0))
"""


class Local(BucketJob):
    def __init__(self, root, aws):
        super().__init__(root, aws)
        self.write(secrets={"TOKEN": "secretsmanager:team/token#key"})

    principals = {"submitter": OTHER_ACCESS}


class Batch(BatchJob):
    def make_queue(self, name, kind="EC2"):
        """On which its jobs can run, as far as the doctor sees."""
        self.batch.create_compute_environment(
            computeEnvironmentName=f"{name}-env", type="MANAGED",
            computeResources={"type": kind, "maxvCpus": 64, "instanceTypes": ["trn1"], "subnets": ["subnet-1"],
                              "securityGroupIds": ["sg-1"], "placementGroup": "near", "instanceRole": "ecsInstanceRole",
                              "launchTemplate": {"launchTemplateName": "neuron"}})
        self.batch.create_job_queue(jobQueueName=name, priority=1, computeEnvironmentOrder=[
            {"order": 1, "computeEnvironment": f"{name}-env"}])

    def __init__(self, root, aws):
        super().__init__(root, aws, secrets={"TOKEN": "secretsmanager:team/token#key", "OTHER": "ssm:/team/other"})
        self.write(batch={**self.spec["batch"], "execution_role": EXECUTION_ROLE}, tags={"team": "x"})

    principals = {"submitter": OTHER_ACCESS, "job": ROLE, "execution": EXECUTION_ROLE}


class Network(SagemakerJob):
    """In a network of its own, with keys, warm machines and secrets."""

    def __init__(self, root, aws):
        super().__init__(root, aws, tags={"team": "x"}, secrets={"TOKEN": "secretsmanager:team/token#key"}, sagemaker={
            "vpc": {"subnets": ["subnet-1", "subnet-2"], "security_groups": ["sg-1"]}, "warm_pool": "10m",
            "kms": {"output": "0123-of-output", "volume": "arn:aws:kms:eu-west-1:123456789012:key/4567-of-volume"}})

    principals = {"submitter": OTHER_ACCESS, "job": SAGEMAKER_ROLE}


class Spot(SagemakerJob):
    def __init__(self, root, aws):
        super().__init__(root, aws, sagemaker={"spot": True})

    principals = {"submitter": OTHER_ACCESS, "job": SAGEMAKER_ROLE}


def encrypt(job, key=BUCKET_KEY):
    """The bucket encrypts by a key of its own, which the spec names."""
    job.aws.settings(bucket_keys={BUCKET: key})
    job.write(aws={**job.spec.get("aws", {}), "kms_keys": [key]})


@pytest.fixture(params=[Local, Batch, Network, Spot], ids=lambda kind: kind.__name__.lower())
def job(request, aws, tmp_path):
    made = request.param(tmp_path / "project", aws)
    made.write(checkpoint={**made.spec["checkpoint"], "keep": 2, "grace": "1s"})
    aws.client("secretsmanager").create_secret(Name="team/token", SecretString='{"key": "value"}')
    aws.client("ssm").put_parameter(Name="/team/other", Value="value", Type="SecureString")
    if request.param != Spot:
        encrypt(made)
    aws.settings(image_platforms={IMAGE: "amd64"})  # whose architecture stands in its config
    aws.add_key(DOCTOR["AWS_ACCESS_KEY_ID"], DOCTOR["AWS_SECRET_ACCESS_KEY"])
    yield made
    made.stop()


def printed(job, role):
    done = job.ok("--json", "doctor", "--policy", role, job.spec_path)
    policy, = done.lines
    return iam.check(policy)


def install(job):
    policies = {whose: printed(job, role) for role, whose in job.principals.items()}
    policies[DOCTOR["AWS_ACCESS_KEY_ID"]] = printed(job, "doctor")
    job.aws.settings(policies=policies)
    return policies


def asked(job):
    return job.aws.control("GET", "asked")


def actions(policy):
    return {action for each in policy["Statement"] for action in iam.listed(each["Action"])}


def without(policy):
    """(what, the policy without it): each statement, action, resource and prefix."""
    for number, statement in enumerate(policy["Statement"]):
        for path in (("Action",), ("Resource",), ("Condition", "StringLikeIfExists", "s3:prefix")):
            holder = statement
            for name in path[:-1]:
                holder = holder.get(name, {})
            values = iam.listed(holder.get(path[-1], []))
            for value in values:
                rest = copy.deepcopy(policy)
                if len(values) == 1:
                    del rest["Statement"][number]
                else:
                    inner = rest["Statement"][number]
                    for name in path[:-1]:
                        inner = inner[name]
                    inner[path[-1]] = [other for other in values if other != value]
                yield f"{statement['Sid']}: {value}", rest


def needless(policy, rights):
    """What can be taken away from a policy so that none of these rights is denied."""
    seen = {json.dumps(row[1:4]): row[1:4] for row in rights}.values()
    return [what for what, rest in without(policy)
            if all(iam.evaluate([rest], *row) == iam.ALLOWED for row in seen)]


def check(policy):
    for each in policy["Statement"]:
        assert each["Sid"] and each["Effect"] == "Allow"
        assert not any("*" in action for action in iam.listed(each["Action"])), each
        assert each["Resource"] != "*" or set(iam.listed(each["Action"])) <= UNTYPED, each
        assert ("iam:PassRole" in iam.listed(each["Action"])) == ("iam:PassedToService" in str(each)), each


def leave_uploads(job):
    """A doctor that was killed long ago on another machine has left a probe and an upload in each place; an agent, one
    of a large graph. That of a large output will fail."""
    client = job.aws.client()
    places = [job.url[key].removeprefix(f"s3://{BUCKET}/") for key in ("state", "stoker", "cache", "ckpt")]
    for key in (f"{place}/.stoker-doctor/fedcba9876543210-7-7/probe" for place in places):
        client.put_object(Bucket=BUCKET, Key=key, Body=b"")
        client.create_multipart_upload(Bucket=BUCKET, Key=key)
    client.create_multipart_upload(Bucket=BUCKET, Key=f"{places[2]}/{GRAPH}")
    job.aws.fault("error", operation="UploadPart", key="large.bin", count=1, code="InvalidRequest", status=400)
    for operation, name in (("ListObjectsV2", r"(7-7(?:/|%2F)probe</Key><LastModified>)"),
                            ("ListMultipartUploads", "(<Initiated>)")):
        job.aws.fault("replace", operation=operation, count=0, text=r"\g<1>2026-01-01T00:00:00.000Z", pattern=f"{name}[^<]*")


def types(job, *argv, code=0, env=NARROW, **options):
    process = job.start(*argv, env=env, **options)
    out, err = process.communicate()
    assert process.returncode == code, f"{argv}: {process.returncode}\n{out}{err}"
    return out


def held(job, name):
    """A run whose driver was killed while its training waits."""
    driver = job.start("--json", "run", job.spec_path, "--id", name, *LEASE, env=NARROW)
    job.wait_for(lambda: any(row["run"] == name and row["phase"] == "train" for row in job.effects("holds")))
    driver.kill()
    driver.communicate()


def mute(job):
    """No agent comes up from now on: what the container says is in the service's own log."""
    script = "echo no agent here >&2; exit 99\n"
    if isinstance(job, BatchJob):
        (job.root / "mute").mkdir()
        (job.root / "mute" / "start").write_text(script)
        job.write(batch={**job.spec["batch"], "agent": str(job.root / "mute")})
    client = job.aws.client()
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{job.prefix}/stoker/agents/")
    for key in [row["Key"] for page in pages for row in page.get("Contents", []) if row["Key"].endswith("/start")]:
        client.put_object(Bucket=BUCKET, Key=key, Body=script.encode())
    job.write(retry={**job.spec["retry"], "attempts": 1})


def walk(job):
    """Everything that is typed for a spec, by whoever may no more than what was printed."""
    leave_uploads(job)
    types(job, "doctor", job.spec_path)
    leave_uploads(job)
    findings = [json.loads(line) for line in types(job, "--json", "doctor", job.spec_path, env=DOCTOR).splitlines()]
    # Whether the doctor itself may pass roles is no matter: it submits nothing.
    assert {row["check"] for row in findings if "not authorized" in row["seen"] or "right" in row.get("cure", "")} <= {"role.pass"}
    if not isinstance(job, Local):
        types(job, "doctor", job.spec_path, "--only", "here.version", "--inside", "--yes")
    job.also(LARGE)
    types(job, "run", job.spec_path, "--id", "one", code=4)  # the large output cannot be uploaded
    job.hold("train", 5)
    for name in ("two", "three"):
        held(job, name)
    types(job, "stop", "two", *LEASE)
    job.gate.touch()
    types(job, "resume", "three", *LEASE)
    for argv in (("list", "--live"), ("status", "three"), ("events", "three"), ("logs", "three"), ("metrics", "three"),
                 ("cp", "three:checkpoint", job.root / "copy"), ("plan", job.spec_path), ("cache", "why", job.spec_path),
                 *(("cache", word, job.url["cache"]) for word in ("ls", "verify", "gc")),
                 ("rm", "three", "--with-checkpoints", *LEASE)):
        types(job, *argv)
    if not isinstance(job, Local):
        mute(job)
        types(job, "run", job.spec_path, "--id", "four", code=1)
        assert b"no agent here" in types(job, "logs", "four")


@pytest.mark.long
def test_what_is_printed_is_enough_and_nothing_of_it_is_too_much(job):
    policies = install(job)
    walk(job)
    rows = asked(job)
    assert {row[1] for row in rows if row[4] != iam.ALLOWED} <= LOOKS
    for whose, policy in policies.items():
        check(policy)
        left = needless(policy, [row for row in rows if row[0] == whose and row[4] == iam.ALLOWED])
        assert not left, f"{whose} does not need {left}"


ALL = os.environ.get("STOKER_TEST_POLICIES") == "all"
INSIDE = ("doctor", "SPEC", "--only", "here.version", "--inside", "--yes")
# The step in which an action is missed, where that is not the begin of a run.
CONFIG = "ecr:GetDownloadUrlForLayer"
DOCTOR_TELLS = ("s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:ListBucketMultipartUploads")
MISSED = {**dict.fromkeys(DOCTOR_TELLS, ("doctor", "SPEC")), "batch:TerminateJob": ("stop", "two", *LEASE),
          "sagemaker:StopTrainingJob": ("stop", "two", *LEASE), "logs:GetLogEvents": ("logs", "four"),
          "logs:DescribeLogStreams": ("logs", "four")}
# Of a job: without them old checkpoints, and parts that others left, stay; a run tells nothing of that.
MISSED_INSIDE = dict.fromkeys(("s3:DeleteObject", *DOCTOR_TELLS), INSIDE)
PREFIX = "s3:prefix"


def prefixes(statement):
    return next((keys[PREFIX] for keys in statement.get("Condition", {}).values() if PREFIX in keys), [])


class Less:
    """A policy without one action of a statement, or, of several, without one resource or prefix: `rest`; what it no
    longer allows: `taken`."""

    def __init__(self, policy, number, **taken):
        self.policy, self.rest = policy, copy.deepcopy(policy)
        statement, self.taken = self.rest["Statement"][number], copy.deepcopy(policy["Statement"][number])
        (key, value), = taken.items()
        self.what, self.key = f"{statement['Sid']}: {value}", key
        for of, is_rest in ((statement, True), (self.taken, False)):
            holder = of["Condition"]["StringLikeIfExists"] if key == PREFIX else of
            holder[key] = [each for each in iam.listed(holder[key]) if (each != value) == is_rest]
        if key == "Action" and not statement["Action"]:
            del self.rest["Statement"][number]
        self.actions = iam.listed(self.taken["Action"])
        self.action = value if key == "Action" else self.actions[0]

    def is_told(self, told):
        """Is that what was taken away: no more than the policy allowed, and some of it by what was taken?"""
        actions, resources = set(iam.listed(told["Action"])), iam.listed(told["Resource"])

        def within(resource, statements):
            return any(iam.is_resource(whole, resource) for each in statements if actions & {*iam.listed(each["Action"])}
                       for whole in iam.listed(each["Resource"]))
        return actions & {*self.actions} \
            and all(within(each, self.policy["Statement"]) for each in resources) \
            and any(within(each, [self.taken]) for each in resources) \
            and (self.key != PREFIX or set(iam.listed(prefixes(self.taken))) <= set(iam.listed(prefixes(told))))


def lesser(policy):
    for number, statement in enumerate(policy["Statement"]):
        for action in iam.listed(statement["Action"]):
            yield Less(policy, number, Action=action)
        for key, values in (("Resource", iam.listed(statement["Resource"])), (PREFIX, iam.listed(prefixes(statement)))):
            for value in values if ALL and len(values) > 1 else ():
                yield Less(policy, number, **{key: value})


def first(job, step):
    return hints.first(job, *(job.spec_path if word == "SPEC" else word for word in step), env=NARROW)


def vary(job, number):
    """Another definition, which has to be registered."""
    if isinstance(job, BatchJob):
        job.write(resources={**job.spec["resources"], "shm": f"{64 + number}MiB"})


def assert_named(job, policies, less, step):
    job.aws.settings(policies={**policies, OTHER_ACCESS: less.rest})
    told = first(job, step)
    assert told and less.is_told(told), f"{less.what}: {told}"


@pytest.mark.long
def test_the_step_that_misses_a_right_names_it(job):
    """Without each action; with STOKER_TEST_POLICIES=all, as in tests/soak, without each of several resources too."""
    policies = install(job)
    every = [*lesser(policies[OTHER_ACCESS])]
    if not isinstance(job, Local):
        # Of an image whose config may not be read, a variable of the machine is withheld.
        job.aws.settings(machine_env={"XLA_FLAGS": "--of-the-machine"})
        config, = [less for less in every if less.action == CONFIG and less.key == "Action"]
        assert_named(job, policies, config, ("run", "SPEC", "--id", "withheld"))
        every.remove(config)
        job.aws.settings(machine_env={}, policies=policies)
        job.hold("train", 5)
        held(job, "two")
        mute(job)
        types(job, "run", job.spec_path, "--id", "four", code=1)
    for number, less in enumerate(every):
        vary(job, number)
        step = MISSED.get(less.action) if less.key == "Action" else None
        assert_named(job, policies, less, step or ("run", "SPEC", "--id", f"without-{number}"))


def test_the_place_that_is_missed_is_named(aws, tmp_path):
    job = Local(tmp_path / "project", aws)
    job.write(secrets={})
    policies = install(job)
    whole = policies[OTHER_ACCESS]
    places = [f"{job.prefix}/{key}/*" for key in ("state", "stoker", "cache", "ckpt")]
    for number, place in enumerate(places):
        rest = copy.deepcopy(whole)
        objects, = (each for each in rest["Statement"] if each["Sid"] == "ReadAndWriteObject")
        objects["Resource"].remove(f"arn:aws:s3:::{BUCKET}/{place}")
        job.aws.settings(policies={OTHER_ACCESS: rest})
        told = hints.first(job, "run", job.spec_path, "--id", f"object{number}", env=NARROW)
        assert told["Resource"] == f"arn:aws:s3:::{BUCKET}/{place}", told
        rest = copy.deepcopy(whole)
        bucket, = (each for each in rest["Statement"] if each["Sid"] == "ReadAndWriteBucket")
        bucket["Condition"]["StringLikeIfExists"]["s3:prefix"].remove(place)
        job.aws.settings(policies={OTHER_ACCESS: rest})
        told = hints.first(job, "run", job.spec_path, "--id", f"bucket{number}", env=NARROW)
        assert told["Action"] == "s3:ListBucket" and told["Condition"] == {"StringLike": {"s3:prefix": place}}, told
    job.stop()


NOTHING = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def test_no_socket_is_opened_where_the_spec_says_account_and_region(job):
    job.write(aws={"account": "123456789012", "region": "eu-west-1"})
    env = job.env(**dict.fromkeys((*NOTHING, "AWS_REGION", "AWS_DEFAULT_REGION")))
    for words in (*(("--policy", role) for role in (*job.principals, "doctor")), ("--trust",)):
        if words == ("--trust",) and isinstance(job, Local):
            continue
        argv = ("--json", "doctor", *words, job.spec_path)
        alone = subprocess.run([sys.executable, SUPPORT / "no_sockets.py", cli.BINARY, *argv], env=env, cwd=job.source,
                               capture_output=True, text=True)
        assert alone.returncode == 0, f"{words}: {alone}"
        assert [json.loads(line) for line in alone.stdout.splitlines()] == job.ok(*argv).lines
    assert "arn:aws:" in alone.stdout


def test_the_account_is_that_of_the_credentials_or_not_known(aws, tmp_path):
    job = Local(tmp_path / "project", aws)
    job.write(secrets={"TOKEN": "ssm:/team/token"})
    assert "arn:aws:ssm:eu-west-1:123456789012:parameter/team/token" in str(printed(job, "submitter"))
    line, = job.ok("--json", "doctor", "--policy", "submitter", job.spec_path, env=dict.fromkeys(NOTHING)).lines
    assert "arn:aws:ssm:eu-west-1:*:parameter/team/token" in str(line)
    line, = job.ok("--json", "doctor", "--policy", "submitter", job.spec_path, "--region", "cn-north-1").lines
    assert "arn:aws-cn:ssm:cn-north-1:" in str(line) and "arn:aws-cn:s3:::bucket/" in str(line)
    job.stop()


class Retraining(FarTurns):
    principals = {"submitter": OTHER_ACCESS, "job": ROLE}


@pytest.mark.long
def test_a_retraining_needs_what_is_printed(aws, tmp_path):
    """From a base in a place of its own; then from what was promoted, evaluated beside it, to results."""
    job = Retraining(tmp_path / "project", aws)
    job.write(parent={"first": f"s3://{BUCKET}/{job.prefix}/base/m5", "kind": "files"})
    job.put("base/m5/state.json", "{}")
    policies = {whose: printed(job, role) for role, whose in job.principals.items()}
    aws.settings(policies=policies)
    for number in range(2):
        job.put(f"drops/{number}.csv", f"good {number}")
        types(job, "retrain", job.spec_path, "--id", f"week-{number}", "--at", f"203{number + 1}-01-07T03:00:00Z")
    types(job, "lineage", "--verify")
    rows = asked(job)
    assert {row[1] for row in rows if row[4] != iam.ALLOWED} <= LOOKS, [row for row in rows if row[4] != iam.ALLOWED]
    for whose, policy in policies.items():
        check(policy)
        left = needless(policy, [row for row in rows if row[0] == whose])
        # What large objects, dead processes, `--inside` and a parent that is one file take is not tried here.
        spared = [rf"ReadAndWriteObject: s3:{each}" for each in ("AbortMultipartUpload", "ListMultipartUploadParts", "DeleteObject")]
        spared += [f"ReadBucket: {job.prefix}/{each}/*" for each in ("drops", "held")]
        spared += [f"ReadObject: arn:aws:s3:::{BUCKET}/{job.prefix}/base/{each}" for each in ("m5", "marks/m5.stoker.json")]
        assert left == ([] if whose == OTHER_ACCESS else spared), left
    job.stop()


SAMPLE = {"s3:ListBucket", "s3:ListMultipartUploadParts", "secretsmanager:GetSecretValue", "ecr:BatchGetImage",
          "ec2:CreateNetworkInterface", "kms:CreateGrant", "kms:Decrypt"}


@pytest.mark.long
def test_a_job_that_misses_a_right_fails_and_says_so(job):
    """All of them with STOKER_TEST_POLICIES=all, and each of several resources."""
    policies = install(job)
    job.write(retry={**job.spec["retry"], "attempts": 1})
    roles = [whose for role, whose in job.principals.items() if role != "submitter"]
    every = [(whose, less) for whose in roles for less in lesser(policies[whose])
             if ALL or less.action in SAMPLE]
    for number, (whose, less) in enumerate(every):
        job.aws.settings(policies={**policies, whose: less.rest})
        told = None
        # What a run does without, as one with a warm cache does, is tried beforehand.
        for step in ((MISSED_INSIDE.get(less.action),) if less.key == "Action" and less.action in MISSED_INSIDE
                     else (("run", "SPEC", "--id", f"without-{number}"), INSIDE)):
            told = told or first(job, step)
        assert told and less.is_told(told), f"{whose}, {less.what}: {told}"


def test_a_right_that_jobs_lack_is_not_paid_for_twice(aws, tmp_path):
    """The agent itself says that it cannot read the claim."""
    job = Batch(tmp_path / "project", aws)
    job.write(secrets={}, retry={"attempts": 3, "backoff": {"first": "1s", "max": "1s"}})
    policies = install(job)
    less, = [each for each in lesser(policies[ROLE]) if each.key == "Action" and each.action == "s3:ListBucket"]
    job.aws.settings(policies={**policies, ROLE: less.rest})
    types(job, "run", job.spec_path, "--id", "one", code=4)
    events = [json.loads(line) for line in types(job, "events", "one").splitlines()]
    ended, = [each for each in events if each["event"] == "attempt.ended"]
    assert ended["class"] == "quota-permission" and "s3:ListBucket" in ended["hint"], ended
    job.stop()
