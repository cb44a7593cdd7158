"""What services do to a run on both engines, and what it makes of that: storms of throttling,
keys that run out, no machine for a long time, a service that does not answer for a while."""

from types import SimpleNamespace

import pytest
import stoker as cli
from batch_job import BatchJob
from bucket_job import BucketJob

ROLE = "arn:aws:iam::123456789012:role/sagemaker"
IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/training:1"
NO_MACHINE = {"batch": "Canceled by JobStateTimeLimit action due to reason: CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - no",
              "sagemaker": "CapacityError: Unable to provision requested ML compute capacity. Please retry using a "
                           "different ML instance type."}
# Training alone: what precompiles fails no otherwise.
ONLY = {"compile": {"kind": "none"}, "hyperparameters": {"max_steps": 6},
        "retry": {"attempts": 2, "backoff": {"first": "0s", "max": "0s"}}}


@pytest.fixture(params=["batch", "sagemaker"])
def engine(request, aws, tmp_path):
    if request.param == "batch":
        job = BatchJob(tmp_path / "project", aws, **ONLY)
        words = {"submit": "SubmitJob", "describe": "DescribeJobs"}
    else:
        job = BucketJob(tmp_path / "project", aws, engine="sagemaker", image=IMAGE,
                        resources={"instance": "ml.c5.xlarge", "nodes": 1},
                        sagemaker={"role": ROLE, "work_dir": "/opt/ml/stoker"}, **ONLY)
        words = {"submit": "CreateTrainingJob", "describe": "DescribeTrainingJob"}
    yield SimpleNamespace(name=request.param, job=job, **words)
    job.stop()


def ends(job, run="one"):
    return [row["class"] for row in job.events(run, "attempt.ended")]


def test_a_storm_is_sat_out(engine, aws):
    """Throttled, broken and without the reply to its submit: one job, which ends well."""
    aws.fault("throttle", operation=engine.submit, count=2)
    aws.fault("lost", operation=engine.submit)
    aws.fault("throttle", operation=engine.describe, count=4)
    aws.fault("internal", operation=engine.describe, count=2)
    aws.fault("throttle", service="s3", nth=30, count=3)
    engine.job.run("--id", "one")
    assert aws.effects(engine.submit) == 1
    assert [(row["class"], row.get("evidence")) for row in engine.job.events("one", "attempt.ended")] == [("none", None)]
    assert aws.struck() == 12


def test_no_machine_for_the_first_20_submits(engine, aws):
    """Nothing of it counts: two attempts are all that may fail."""
    count = 20
    aws.settings(job_seconds=0)
    aws.fault("job_fails", operation=engine.submit, count=count, reason=NO_MACHINE[engine.name])
    engine.job.run("--id", "one")
    assert aws.effects(engine.submit) == count + 1
    assert ends(engine.job) == ["capacity"] * count + ["none"]
    first = engine.job.events("one", "attempt.ended")[0]
    assert first["evidence"] == NO_MACHINE[engine.name] or NO_MACHINE[engine.name] in first["evidence"]
    assert {row["action"] for row in engine.job.events("one", "retry.scheduled")} == {"wait"}


def keys_that_run_out(root, aws):
    """Whoever asks first gets the first of two pairs of keys. The environment that asks."""
    for name in ("FIRST", "SECOND"):
        aws.add_key(f"AKID{name}", f"secret/{name}", token=f"token/{name}", expires=None)
    root.mkdir(exist_ok=True)
    script = root / "keys"
    script.write_text(f"""#!/bin/sh
test -e {root}/expired && name=SECOND || name=FIRST
echo '{{"Version":1,"AccessKeyId":"AKID'$name'","SecretAccessKey":"secret/'$name'","SessionToken":"token/'$name'"}}'
""")
    script.chmod(0o755)
    (root / "config").write_text(f"[profile keys]\ncredential_process = {script}\nregion = eu-west-1\n")
    return {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_PROFILE": "keys",
            "AWS_CONFIG_FILE": str(root / "config"), "AWS_MAX_ATTEMPTS": "2"}


def test_what_is_not_seen_is_not_replaced(engine, aws, tmp_path):
    """The keys run out in the midst of a run and nobody has others yet, then the service does not
    answer for a while: the job runs on, and is seen again with other keys."""
    env = keys_that_run_out(tmp_path / "keys", aws)
    engine.job.hold("train", 3)
    run = engine.job.start("run", engine.job.spec_path, "--id", "one", env=env)
    engine.job.wait_for_effect("holds")
    aws.expire("AKIDFIRST")
    cli.until(lambda: sum("ExpiredToken" in (entry["code"] or "") for entry in aws.ledger()) >= 4)
    assert run.poll() is None
    (tmp_path / "keys/expired").touch()
    aws.fault("reset_before", operation=engine.describe, count=8)
    cli.until(lambda: aws.struck() == 8)
    engine.job.gate.touch()
    result = cli.finish(run)
    assert result.code == 0, str(result)
    assert "ExpiredToken" in result.err and "get fresh credentials" in result.err
    assert {entry["access_key"] for entry in aws.ledger(operation=engine.describe) if not entry["code"]} >= {"AKIDSECOND"}
    assert aws.effects(engine.submit) == 1
    assert ends(engine.job) == ["none"]
