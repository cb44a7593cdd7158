"""`cache.preload` with buckets: from S3 into a folder, from a folder to S3, and from bucket to bucket by a folder of
the state, whoever is killed."""

import signal

import pytest
import stoker as cli
from bucket_job import BUCKET


def cache_of(job, name="cache"):
    folder = f"{job.prefix}/{name}/"
    return {key.removeprefix(folder): body for key, body in job.aws.objects(BUCKET).items()
            if key.startswith(folder) and "/claims/" not in key}


@pytest.fixture
def other(job):
    """A full cache elsewhere in the bucket, and an empty one of our own."""
    job.run("--id", "theirs")
    client = job.aws.client()
    for name, body in cache_of(job).items():
        client.put_object(Bucket=BUCKET, Key=f"{job.prefix}/other/{name}", Body=body)
    for key in [key for key in job.aws.objects(BUCKET) if key.startswith(f"{job.prefix}/cache/")]:
        client.delete_object(Bucket=BUCKET, Key=key)
    assert not cache_of(job)
    return f"s3://{BUCKET}/{job.prefix}/other"


def preload(job, *urls, **more):
    job.write(compile={**job.spec["compile"], **more}, cache={"preload": [*urls]})


def submitted(job, run):
    return [row["phase"] for row in job.events(run, "attempt.submitted")]


def words(job, run):
    event, = job.events(run, "cache.preloaded")
    return event["reason"]


def test_from_bucket_to_bucket(job, other):
    preload(job, f"s3://{BUCKET}/{job.prefix}/typo", other)
    plan, = job.ok("--json", "plan", job.spec_path).lines
    assert [row.get("why") for row in plan["preload"]] == ["nothing is there", None]
    job.run("--id", "one")
    assert "typo': not preloaded: nothing is there; '" in words(job, "one")
    assert submitted(job, "one") == ["train"]
    assert cache_of(job) == cache_of(job, "other")
    assert not list(job.root.rglob("preload/*/*")), "the folder between is gone"
    assert not [key for key in job.aws.objects(BUCKET) if key.endswith("preload.begun")]


def test_what_the_folder_between_cannot_have_is_told(job, other):
    client = job.aws.client()
    for name in ("jit_x-cache", "jit_x-cache/below"):
        client.put_object(Bucket=BUCKET, Key=f"{job.prefix}/other/{name}", Body=b"x")
    preload(job, other)
    job.run("--id", "one")
    assert words(job, "one").endswith(", and 1 objects not"), words(job, "one")
    assert {*cache_of(job, "other")} - {*cache_of(job)} == {"jit_x-cache/below"} and submitted(job, "one") == ["train"]
    assert not list(job.root.rglob("preload/*/*")), "the folder between is gone"


def test_from_a_bucket_into_a_folder(job, other, tmp_path):
    preload(job, other, cache_url=str(tmp_path / "local"))
    job.run("--id", "one")
    assert submitted(job, "one") == ["train"], words(job, "one")
    assert {path.name for path in (tmp_path / "local").glob("*-cache")} == {name for name in cache_of(job, "other") if "/" not in name}


def test_from_a_folder_to_a_bucket(job, other, tmp_path):
    job.ok("cache", "pull", other, tmp_path / "local")
    preload(job, str(tmp_path / "local"))
    job.run("--id", "one")
    assert submitted(job, "one") == ["train"], words(job, "one")


def test_a_bucket_that_may_not_be_read_is_told(job, other):
    preload(job, "s3://nobody-has-this-bucket/x", other)
    job.run("--id", "one")
    assert "'s3://nobody-has-this-bucket/x': not preloaded: " in words(job, "one") and submitted(job, "one") == ["train"]
    plan, = job.ok("--json", "plan", job.spec_path).lines
    assert plan["preload"][0]["why"] and "why" not in plan["preload"][1]


def test_killed_between_the_buckets(job, other):
    client = job.aws.client()
    for i in range(60):
        client.put_object(Bucket=BUCKET, Key=f"{job.prefix}/other/jit_filler-{i:03d}-cache", Body=b"x" * 1000 + bytes([i]))
    preload(job, other)
    theirs = cache_of(job, "other")
    for nth in (1, 20, 20):
        # So many arrive, and nothing is said to the others.
        job.aws.fault("hang", operation="PutObject", key="/cache/jit_filler", nth=nth, count=0, seconds=300)
        process = job.start("run", job.spec_path, "--id", "one")
        cli.until(job.aws.struck, process)
        process.send_signal(signal.SIGKILL)
        cli.finish(process)
        job.aws.clear_faults()
        assert all(theirs[name] == body for name, body in cache_of(job).items())
        assert "jit_filler-059-cache" not in cache_of(job)
    job.run("--id", "one")
    assert submitted(job, "one") == ["train"] and cache_of(job) == theirs
