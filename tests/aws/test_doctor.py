"""stoker doctor on AWS: where nothing is wrong it finds nothing; a missing right to look is not known, with its name; and
no probe is left. What is wrong is in test_doctor_faults.py."""

import signal

import pytest
import stoker as cli
from batch_job import IMAGE
from bucket_job import BUCKET
from examined import FOLDER, Examined, bad, of

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

@pytest.mark.parametrize("operation", LOOKS)
def test_a_missing_right_to_look_is_not_known_and_named(job, operation):
    check, right = LOOKS[operation]
    job.aws.fault("denied", operation=operation, count=0)
    findings = job.doctor()
    unknown = [row for row in findings if row["check"] == check]
    assert unknown and all(row["state"] == "unknown" and right in row["cure"] and row["code"] for row in unknown), unknown
    kind = check.split(".")[0]
    asked = {"batch": ("batch", "network", "quota"), "aws": ("aws", "role")}.get(kind, (kind,))
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


def test_an_image_for_other_machines_that_has_no_index(job):
    wrong = job.found("image.platform", image_platforms={IMAGE: "arm64"})
    assert "made for arm64, the machines are amd64" in wrong["seen"] and "linux/amd64" in wrong["cure"]
    job.aws.settings(image_platforms={IMAGE: "amd64"})
    assert "1.5 GiB in 1 layers" in of(job.doctor("--only", "image.*"), "image.platform", state="ok")["seen"]


@pytest.mark.parametrize("operation, right", [("ListMultipartUploads", "s3:ListBucketMultipartUploads"),
                                              ("ListParts", "s3:ListMultipartUploadParts")])
def test_what_only_finds_parts_that_were_left_is_warned_of(job, operation, right):
    job.aws.fault("denied", operation=operation, count=0)
    findings = bad(job.doctor("--only", "bucket.*"))
    assert {(row["check"], row["state"]) for row in findings} == {("bucket.multipart", "warn")}
    assert all(f"takes {right}" in row["seen"] and f'"{right}"' in row["cure"] and row["code"] for row in findings), findings
    assert job.probes() == []
    job.aws.clear_faults()
    assert job.uploads() == [] and bad(job.doctor("--only", "bucket.*")) == []


def test_the_key_of_a_bucket_is_told(job):
    key = "arn:aws:kms:eu-west-1:123456789012:key/of-the-bucket"

    def seen():
        return {row["seen"].partition("aborted")[2] for row in job.doctor("--only", "bucket.multipart", "--strict")}
    assert seen() == {""}
    job.aws.settings(bucket_keys={BUCKET: key})
    assert seen() == {f"; S3 encrypts it by {key}, which aws.kms_keys does not name, so that the policies that --policy prints "
                      "lack it"}
    for named in (key, "of-the-bucket", "alias/any"):
        job.write(aws={"kms_keys": [named]})
        assert seen() == {f"; S3 encrypts it by {key}"}


# --- doctors that die ---

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
