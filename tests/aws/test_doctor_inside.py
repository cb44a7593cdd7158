"""stoker doctor --inside: a job of one node tries from where jobs run what they need, with the role of the jobs: what the
caller may do says nothing of it. It is told what it costs, nothing is begun unasked, and nothing stays."""

import pytest
import stoker as cli
from batch_job import BatchJob
from bucket_job import BUCKET
from sagemaker_job import SagemakerJob

PLACES = {"stoker": "workspace", "cache": "compile cache", "ckpt": "place for checkpoints"}
KINDS = {"batch": BatchJob, "sagemaker": SagemakerJob}
ALLOW_ALL = {"Version": "2012-10-17", "Statement": [{"Sid": "all", "Effect": "Allow", "Action": "*", "Resource": "*"}]}
SECRET = "secretsmanager:token"


@pytest.fixture(params=KINDS)
def job(request, aws, tmp_path):
    made = KINDS[request.param](tmp_path / "project", aws)
    yield made
    made.stop()


def role_of(job):
    settings = job.spec[job.spec["engine"]]
    return settings.get("job_role") or settings["role"]


def examine(job, *argv, code=0):
    result = cli.stoker("--json", "doctor", job.spec_path, "--only", "here.version", "--inside", "--yes", *argv,
                        env=job.env(), cwd=job.source)
    assert result.code == code, str(result)
    return [row for row in result.lines if row["check"].startswith("inside.")]


def of(findings, check, on=None):
    found, = [row for row in findings if row["check"] == check and on in (None, row.get("on"))]
    return found


def deny(job, action, resource="*"):
    """The role of the jobs may do everything else."""
    no = {"Sid": "no", "Effect": "Deny", "Action": action, "Resource": resource}
    job.aws.settings(policies={role_of(job): {**ALLOW_ALL, "Statement": [*ALLOW_ALL["Statement"], no]}})


def keys(job):
    pages = job.aws.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=job.prefix)
    return [row["Key"] for page in pages for row in page.get("Contents", [])]


def submitted(job, since):
    return [row for row in job.aws.ledger(since) if row["effect"] and row["operation"] in ("SubmitJob", "CreateTrainingJob")]


def test_all_is_tried_from_inside_and_nothing_stays(job):
    job.aws.client("secretsmanager").create_secret(Name="token", SecretString="hidden-words")
    job.write(resources={**job.spec["resources"], "nodes": 4}, secrets={"TOKEN": SECRET})
    since = job.aws.mark()
    findings = examine(job)
    assert {row["state"] for row in findings} == {"ok"}, findings
    for check in ("list", "put", "get", "delete"):
        assert {row["on"] for row in findings if row["check"] == f"inside.{check}"} == {job.url[key] for key in PLACES}
    assert of(findings, "inside.secret")["on"] == SECRET
    assert role_of(job).rpartition("/")[2] in of(findings, "inside.identity")["seen"]
    assert len(submitted(job, since)) == 1, "one job, of one node"
    assert job.ok("--json", "list").lines == [] and "hidden-words" not in str(findings)
    left = [key for key in keys(job) if "/agents/" not in key]
    assert not [key for key in left if "/runs/" in key or ".stoker-doctor/" in key], left


# What the jobs' role may not do; the check that finds it, and of which place.
WITHOUT = [("s3:PutObject", "cache", "inside.put", "compile.cache_url"),
           ("s3:DeleteObject", "ckpt", "inside.delete", "checkpoint.url"),
           ("secretsmanager:GetSecretValue", None, "inside.secret", "secrets.TOKEN")]


@pytest.mark.parametrize("action, place, check, field", WITHOUT)
def test_what_the_role_may_not_do_is_found_though_the_caller_may(job, action, place, check, field):
    job.aws.client("secretsmanager").create_secret(Name="token", SecretString="hidden-words")
    job.write(secrets={"TOKEN": SECRET})
    deny(job, action, f"arn:aws:s3:::{BUCKET}/{job.prefix}/{place}/*" if place else "*")
    bad = [row for row in examine(job, code=4) if row["state"] != "ok"]
    assert [row["check"] for row in bad] == [check] and bad[0]["field"] == field, bad
    assert bad[0]["code"].startswith("AccessDenied") and bad[0]["cure"], bad
    assert bad[0]["on"] == (job.url[place] if place else SECRET)
    job.aws.settings(policies={})
    assert {row["state"] for row in examine(job)} == {"ok"}


def test_a_job_that_cannot_begin_is_told_with_its_reason(job):
    job.aws.fault("denied", operation={"batch": "SubmitJob", "sagemaker": "CreateTrainingJob"}[job.spec["engine"]], count=0)
    failed, = examine(job, code=4)
    assert failed["check"] == "inside.job" and failed["state"] == "fail" and failed["cure"]
    assert "AccessDenied" in failed["seen"]


def test_nothing_is_begun_unasked(job):
    since = job.aws.mark()
    for argv in (("--json", "doctor", job.spec_path, "--inside"), ("doctor", job.spec_path, "--inside"),
                 ("doctor", "--inside", "--yes")):
        result = cli.stoker(*argv, env=job.env(), cwd=job.source)
        assert result.code == 2 and "--" in result.err + result.out, str(result)
    assert submitted(job, since) == []


def test_a_doctor_that_is_killed_leaves_a_run_that_can_be_stopped(job):
    since = job.aws.mark()
    job.aws.settings(job_seconds=30)
    doctor = job.start("doctor", job.spec_path, "--only", "here.version", "--inside", "--yes")
    job.wait_for(lambda: submitted(job, since))
    doctor.kill()
    doctor.communicate()
    run, = job.ok("--json", "list").lines
    job.aws.settings(job_seconds=0.1)
    assert cli.stoker("stop", run["run"], env=job.env(), cwd=job.source).code in (0, 1, 6)
    job.wait_for(lambda: job.ok("--json", "list").lines[0]["state"] not in ("running", "queued", "starting", "stopping"))
    assert len(submitted(job, since)) == 1
