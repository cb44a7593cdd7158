"""stoker doctor on AWS: each planted fault is found, with its cure, and is gone once cured; a missing right to look is
not known, with its name; a service that says nothing costs its own findings alone; and no probe is left."""

import signal

import pytest
import stoker as cli
from batch_job import IMAGE
from bucket_job import BUCKET
from examined import FOLDER, Examined, bad, of

REFUSED = {"ListObjectsV2": ("bucket.list", "s3:ListBucket"), "PutObject": ("bucket.put", "s3:PutObject"),
           "GetObject": ("bucket.get", "s3:GetObject"), "DeleteObject": ("bucket.delete", "s3:DeleteObject"),
           "CreateMultipartUpload": ("bucket.multipart", "s3:PutObject"),
           "AbortMultipartUpload": ("bucket.multipart", "s3:AbortMultipartUpload")}
LOOKS = {"GetCallerIdentity": ("aws.account", "sts:GetCallerIdentity"),
         "HeadBucket": ("bucket.region", "s3:ListBucket"),
         "DescribeJobQueues": ("batch.queue", "batch:DescribeJobQueues"),
         "DescribeComputeEnvironments": ("batch.environments", "batch:DescribeComputeEnvironments")}


@pytest.fixture
def job(aws, tmp_path):
    made = Examined(tmp_path / "project", aws)
    yield made
    made.stop()


def test_all_is_well_and_nothing_is_left(job):
    since = job.aws.mark()
    findings = job.doctor()
    assert bad(findings) == []
    places = {job.url[key] for key in ("state", "stoker", "cache", "ckpt")}
    for check in ("region", "list", "put", "get", "multipart", "delete", "conditions"):
        assert {row["on"] for row in findings if row["check"] == f"bucket.{check}"} == places
    assert "sha256:" in of(findings, "image.tag")["seen"] and of(findings, "image.tag")["on"] == IMAGE
    assert "123456789012" in of(findings, "aws.account")["seen"]
    assert "environment" in of(findings, "aws.credentials")["seen"]
    done = [row for row in job.aws.ledger(since) if row["effect"]]
    assert done and all(f"/{FOLDER}" in row["name"] for row in done), "probes alone"
    assert job.probes() == [] and job.uploads() == []
    assert job.jobs() == []


def test_without_a_spec_it_is_the_account(job):
    findings = job.doctor(spec=False)
    assert bad(findings) == [] and "123456789012" in of(findings, "aws.account")["seen"]
    # The state of the runs is named by the environment.
    assert {row["on"] for row in findings if row["check"].startswith("bucket.")} == {job.url["state"]}


def test_read_only_writes_nothing(job):
    since = job.aws.mark()
    findings = job.doctor("--read-only")
    assert [row for row in job.aws.ledger(since) if row["effect"]] == []
    unknown = bad(findings)
    assert {row["seen"] for row in unknown} == {"--read-only"} and {row["state"] for row in unknown} == {"unknown"}
    assert {row["check"] for row in unknown} == {f"bucket.{one}" for one in ("put", "get", "multipart", "delete", "conditions")}
    job.doctor("--read-only", "--strict", code=4)


# --- rights ---

@pytest.mark.parametrize("operation", REFUSED)
def test_a_right_that_a_run_needs_is_missed_in_the_words_of_run(job, operation):
    check, right = REFUSED[operation]
    where = "prefix" if operation == "ListObjectsV2" else "key"
    job.aws.fault("denied", operation=operation, count=0, **{where: f"{job.prefix}/cache"})
    wrong = of(job.doctor(code=4), check, state="fail")
    assert wrong["on"] == job.url["cache"] and right in wrong["seen"] and wrong["cure"]
    assert wrong["code"] == "AccessDenied" and wrong["request_id"] and wrong["field"] == "compile.cache_url"
    if check not in ("bucket.multipart", "bucket.list"):
        words = wrong["seen"].split(", which takes")[0]
        assert words in job.run(code=None).err
    job.aws.clear_faults()
    assert bad(job.doctor()) == [] and job.probes() == [] and job.uploads() == []


@pytest.mark.parametrize("operation", LOOKS)
def test_a_missing_right_to_look_is_not_known_and_named(job, operation):
    check, right = LOOKS[operation]
    job.aws.fault("denied", operation=operation, count=0)
    findings = job.doctor()
    unknown = [row for row in findings if row["check"] == check]
    assert unknown and all(row["state"] == "unknown" and right in row["cure"] and row["code"] for row in unknown), unknown
    kind = check.split(".")[0]
    asked = ("batch", "network", "quota") if kind == "batch" else (kind,)
    assert {row["check"].split(".")[0] for row in bad(findings)} == set(asked), "the rest goes on"
    assert {row["state"] for row in bad(findings)} == {"unknown"}
    job.doctor("--strict", code=4)
    job.aws.clear_faults()
    assert bad(job.doctor("--strict", "--only", f"{kind}.*")) == []


def test_an_image_that_may_not_be_looked_at(job):
    for operation in ("BatchGetImage", "DescribeImages"):
        job.aws.fault("denied", operation=operation, count=0)
    findings = job.doctor()
    assert {(row["check"], row["state"]) for row in bad(findings)} == {("image.tag", "unknown"), ("image.platform", "unknown")}
    assert "ecr:BatchGetImage" in of(findings, "image.tag")["cure"]
    job.aws.clear_faults()
    job.aws.settings(image_platforms={IMAGE: "amd64"})
    job.aws.fault("denied", operation="GetDownloadUrlForLayer", count=0)
    unknown, = bad(job.doctor("--only", "image.*"))
    assert unknown["check"] == "image.platform" and "ecr:GetDownloadUrlForLayer" in unknown["cure"]


@pytest.mark.parametrize("platforms", [["arm64"], "arm64"])
def test_an_image_for_other_machines(job, platforms):
    wrong = job.found("image.platform", image_platforms={IMAGE: platforms})
    assert "made for arm64, the machines are amd64" in wrong["seen"] and "linux/amd64" in wrong["cure"]
    job.aws.settings(image_platforms={IMAGE: "amd64"})
    assert "1.5 GiB in 1 layers" in of(job.doctor("--only", "image.*"), "image.platform", state="ok")["seen"]


KMS = {"PutObject": ("bucket.put", "kms:GenerateDataKey"), "GetObject": ("bucket.get", "kms:Decrypt")}


@pytest.mark.parametrize("operation", KMS)
def test_a_bucket_whose_key_may_not_be_used(job, operation):
    check, action = KMS[operation]
    key = "arn:aws:kms:eu-west-1:123456789012:key/1234"
    job.aws.fault("error", operation=operation, key=f"{job.prefix}/cache", count=0, code="AccessDenied", status=403,
                  message=f"User: arn:aws:iam::123456789012:user/tester is not authorized to perform: {action} on resource: "
                          f"{key} because no identity-based policy allows the {action} action")
    wrong = of(job.doctor(code=4), check, state="fail")
    assert f'"Action":"{action}"' in wrong["cure"] and key in wrong["cure"], wrong
    job.aws.clear_faults()
    assert bad(job.doctor()) == []


def test_a_bucket_whose_key_is_disabled(job):
    job.aws.fault("error", operation="PutObject", key=f"{job.prefix}/cache", count=0, code="KMS.DisabledException",
                  message="key/1234 is disabled.")
    assert "enable the KMS key" in of(job.doctor(code=4), "bucket.put", state="fail")["cure"]


# --- what the spec names ---

def test_a_bucket_that_is_not_there(job):
    job.write(checkpoint={"url": "s3://nowhere-at-all/ckpt"})
    findings = job.doctor(code=4)
    wrong = {row["check"]: row for row in bad(findings)}
    assert wrong["bucket.region"]["state"] == "fail" and wrong["bucket.put"]["code"] == "NoSuchBucket"
    assert {row["on"] for row in wrong.values()} == {"s3://nowhere-at-all/ckpt"}
    job.aws.make_bucket("nowhere-at-all")
    assert bad(job.doctor()) == []


def test_a_bucket_in_another_region(job):
    job.aws.make_bucket("far-away", region="us-west-2")
    job.write(checkpoint={"url": "s3://far-away/ckpt"})
    warned, = bad(job.doctor())
    assert warned["check"] == "bucket.region" and warned["state"] == "warn" and "us-west-2" in warned["seen"]


@pytest.mark.parametrize("header", ["if-none-match", "if-match"])
def test_a_server_that_ignores_conditions(job, header):
    job.aws.fault("unconditional", operation="PutObject", header=header, count=0)
    wrong = [row for row in job.doctor(code=4) if row["state"] == "fail"]
    assert {row["check"] for row in wrong} == {"bucket.conditions"}
    assert all("cannot be trusted" in row["seen"] for row in wrong)
    job.aws.clear_faults()
    assert job.probes() == [] and bad(job.doctor()) == []


def test_an_image_that_is_not_there(job):
    job.write(image=IMAGE.replace("trainer:1", "trainer:2"))
    wrong = of(job.doctor(code=4), "image.tag", state="fail")
    assert "trainer" in wrong["seen"] and wrong["cure"] and wrong["field"] == "image"
    job.aws.push(IMAGE.replace("trainer:1", "trainer:2"))
    assert bad(job.doctor()) == []


def test_a_queue_that_is_not_there_or_takes_no_jobs(job):
    job.write(batch={**job.spec["batch"], "job_queue": "other"})
    wrong = of(job.doctor(code=4), "batch.queue", state="fail")
    assert "'other' not found" in wrong["seen"] and wrong["seen"] in job.run(code=4).err
    job.make_queue("other")
    job.batch.update_job_queue(jobQueue="other", state="DISABLED")
    wrong = of(job.doctor(code=4), "batch.queue", state="fail")
    assert "takes no jobs" in wrong["seen"] and wrong["seen"] in job.run(code=4).err
    job.batch.update_job_queue(jobQueue="other", state="ENABLED")
    assert bad(job.doctor()) == []


ENVIRONMENTS = {
    "types": ({"instanceTypes": ["optimal"]}, "batch.types", "trn1.2xlarge"),
    "too few vCPUs": ({"maxvCpus": 4}, "batch.vcpus", "needs 8 vCPUs, the compute environment has 4"),
    "machine image": ({"launchTemplate": {}, "ec2Configuration": [{"imageType": "ECS_AL2023"}]}, "batch.machine_image",
                      "ECS_AL2023"),
}


@pytest.mark.parametrize("what", ENVIRONMENTS)
def test_an_environment_that_cannot_run_the_job(job, what):
    changes, check, words = ENVIRONMENTS[what]
    body = {"type": "EC2", "maxvCpus": 64, "instanceTypes": ["trn1"], "subnets": ["subnet-1"],
            "securityGroupIds": ["sg-1"], "instanceRole": "ecsInstanceRole",
            "launchTemplate": {"launchTemplateName": "neuron"}, **changes}
    body = {key: value for key, value in body.items() if value != {}}
    job.batch.create_compute_environment(computeEnvironmentName="wrong-env", type="MANAGED", computeResources=body)
    job.batch.create_job_queue(jobQueueName="wrong", priority=1, computeEnvironmentOrder=[
        {"order": 1, "computeEnvironment": "wrong-env"}])
    job.write(batch={**job.spec["batch"], "job_queue": "wrong"})
    wrong, = bad(job.doctor(code=4))
    assert wrong["check"] == check and words in wrong["seen"] and wrong["cure"] and wrong["state"] == "fail", wrong
    assert bad(job.doctor("--set", "batch.job_queue=trn1")) == []


def test_an_environment_that_is_disabled_or_invalid(job):
    reason = "CLIENT_ERROR - Not authorized to perform sts:AssumeRole"
    job.aws.fault("replace", operation="DescribeComputeEnvironments", count=0,
                  pattern='"VALID", "statusReason": "ComputeEnvironment Healthy"',
                  text=f'"INVALID", "statusReason": "{reason}"')
    wrong = of(job.doctor(code=4), "batch.environments", state="fail")
    assert reason in wrong["seen"] and "INVALID" in wrong["seen"] and wrong["cure"]
    job.aws.clear_faults()
    assert bad(job.doctor()) == []


def test_several_nodes_on_spot(job):
    job.make_queue("spot", kind="SPOT")
    job.write(batch={**job.spec["batch"], "job_queue": "spot"}, resources={"instance": "trn1.2xlarge", "nodes": 2})
    wrong, = bad(job.doctor(code=4))
    assert wrong["check"] == "batch.spot" and wrong["seen"] in job.run(code=4).err
    assert bad(job.doctor("--set", "batch.job_queue=trn1")) == []


# --- credentials, account, clock ---

def test_no_credentials(job):
    findings = job.doctor(code=4, env={"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None})
    assert of(findings, "aws.credentials")["state"] == "fail"
    assert {row["state"] for row in bad(findings) if row["check"] != "aws.credentials"} == {"unknown"}


def test_another_account_than_the_spec_names(job):
    job.write(aws={"region": "eu-west-1", "account": "111111111111"})
    wrong, = bad(job.doctor(code=4))
    assert wrong["check"] == "aws.account" and wrong["field"] == "aws.account"
    assert "123456789012" in wrong["seen"] and "111111111111" in wrong["seen"]


def test_a_clock_that_is_off(job):
    job.aws.fault("date", operation="GetCallerIdentity", count=0, seconds=600)
    warned, = bad(job.doctor())
    assert warned["check"] == "aws.clock" and warned["state"] == "warn" and "behind" in warned["seen"]


# --- services that say nothing, and doctors that die ---

def test_a_silent_service_costs_its_own_findings_alone(job):
    job.aws.fault("hang", service="batch", count=0, seconds=3600)
    findings = job.doctor()
    asked = ("batch.", "network.", "quota.")
    assert {row["check"] for row in bad(findings)} == {
        row["check"] for row in findings if row["check"].startswith(asked)} - {"batch.memory"}
    assert {row["state"] for row in bad(findings)} == {"unknown"}
    assert job.probes() == []


@pytest.mark.parametrize("operation", ["GetObject", "CreateMultipartUpload", "AbortMultipartUpload", "DeleteObject"])
def test_a_doctor_that_is_killed_leaves_one_probe_a_place_which_the_next_removes(job, operation):
    job.aws.fault("delay_after" if operation == "CreateMultipartUpload" else "hang", operation=operation,
                  key=f"{job.prefix}/cache/{FOLDER}", count=0, seconds=3600)
    process = cli.start("doctor", job.spec_path, env=job.env(), cwd=job.source)
    cli.until(lambda: any(f"{job.prefix}/cache/{FOLDER}" in key for key in job.probes()) and job.aws.struck(), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = job.probes()
    assert len({key.split(FOLDER)[0] for key in left}) == len(left) >= 1
    job.aws.clear_faults()
    assert bad(job.doctor()) == []
    assert job.probes() == [] and job.uploads() == []


def test_a_probe_of_another_machine_is_left_until_it_is_old(job):
    client = job.aws.client()
    names = {"young": "0123456789abcdef-7-7", "old": "fedcba9876543210-7-7"}
    for name in names.values():
        client.put_object(Bucket=BUCKET, Key=f"{job.prefix}/cache/{FOLDER}{name}/probe", Body=b"")
    job.aws.fault("replace", operation="ListObjectsV2", count=0, text=r"\g<1>2026-01-01T00:00:00.000Z",
                  pattern=f"({names['old']}(?:/|%2F)probe</Key><LastModified>)[^<]*")
    assert bad(job.doctor()) == []
    assert [key.split("/")[-2] for key in job.probes()] == [names["young"]]


def test_two_at_once_do_not_meet(job):
    """Nor does one beside a run."""
    processes = [cli.start("--json", "doctor", job.spec_path, env=job.env(), cwd=job.source) for _ in range(3)]
    job.run("--id", "one")
    for process in processes:
        result = cli.finish(process)
        assert result.code == 0 and bad(result.lines) == [], str(result)
    assert job.probes() == []
