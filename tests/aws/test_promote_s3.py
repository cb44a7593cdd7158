"""Promotion with everything on S3: the model is copied by S3 itself, and a copy of the folder is verified without it."""

import hashlib
import json
import os
from collections import Counter

import pytest
import stoker as cli
from s3_calls import Calls

BIG = 20 << 20


@pytest.fixture
def calls(aws, s3):
    with Calls(aws.env()) as calls:
        yield calls


def content(size):
    return (hashlib.sha256(b"content").digest() * (size // 32 + 1))[:size]


@pytest.mark.parametrize("key", ["plain", "with blank+plus%25", "été/🚂/a=b&c"])
@pytest.mark.parametrize("size, whole_max", [(0, 0), (1000, 0), (BIG + 17, 0), (BIG + 17, 6 << 20)])
def test_s3_copies_an_object_whole_or_in_parts(aws, s3, calls, key, size, whole_max):
    body = content(size)
    etag = s3.put_object(Bucket="bucket", Key=key, Body=body)["ETag"]
    since = aws.mark()
    done = calls("copy", key=f"to/{key}", from_key=key, size=size, etag=etag, whole_max=whole_max)
    assert (done.n, done.size) == (1, size), done
    names = [row["operation"] for row in aws.ledger(since)]
    assert "GetObject" not in names and names.count("UploadPartCopy") == (4 if whole_max else 0)
    assert s3.get_object(Bucket="bucket", Key=f"to/{key}")["Body"].read() == body
    # S3's own digest of the whole; a copy in parts has none.
    assert done.sha256 == ("" if whole_max else hashlib.sha256(body).hexdigest())
    assert calls("copy", key=f"to/{key}", from_key=key, size=size, etag='"other"', whole_max=whole_max).n == 0
    assert calls("copy", key="none", from_key="absent", size=size, etag=etag, whole_max=whole_max).n == 0
    assert s3.list_multipart_uploads(Bucket="bucket").get("Uploads", []) == []


@pytest.mark.parametrize("fault", [{"kind": "error_200", "spaces": 10}, {"kind": "lost"}, {"kind": "truncate"}])
@pytest.mark.parametrize("operation", ["CopyObject", "UploadPartCopy"])
def test_a_copy_that_fails_behind_its_200_is_made_again(aws, s3, calls, operation, fault):
    body = content(BIG)
    etag = s3.put_object(Bucket="bucket", Key="a", Body=body)["ETag"]
    aws.fault(operation=operation, **fault)
    done = calls("copy", key="b", from_key="a", size=BIG, etag=etag,
                 whole_max=0 if operation == "CopyObject" else 6 << 20)
    assert done.n == 1, done
    assert s3.get_object(Bucket="bucket", Key="b")["Body"].read() == body


def promoted(job, run, **options):
    result = job.stoker("--json", "promote", run, **options)
    assert result.code == 0, str(result)
    return result.lines[-1]


def test_a_model_is_promoted_within_s3(job, tmp_path):
    job.run("--id", "one")
    job.run("--id", "two", "--set", "hyperparameters.lr=0.3")
    since = job.aws.mark()
    first = promoted(job, "one")
    copied = [row["name"] for row in job.aws.ledger(since, "CopyObject")]
    assert copied and all("/models/" in name for name in copied)
    read = [row["name"] for row in job.aws.ledger(since, "GetObject")]
    assert not [name for name in read if "/ckpt/" in name and "checkpoint-25/" in name], read
    # A second machine goes on, and the reply to each kind of write is lost once.
    for operation in ("CopyObject", "PutObject"):
        job.aws.fault("lost", operation=operation)
    second = promoted(job, "two", env=job.elsewhere())
    job.aws.clear_faults()
    assert (second["generation"], second["before"]) == (2, first["digest"])
    rows = job.ok("--json", "lineage", "fake").lines
    assert [row["run"] for row in rows] == ["two", "one"]
    url = f"{job.url['stoker']}/models/fake"
    assert job.ok("--json", "lineage", url, "--verify").lines[-1]["verified"]
    job.aws.cli("s3", "sync", "--quiet", url, tmp_path / "copy")
    alone = cli.stoker("--json", "lineage", tmp_path / "copy", "--verify", "--head", second["digest"],
                       env=cli.environment())
    assert alone.code == 0 and alone.lines[-1]["verified"], str(alone)
    pointer = json.loads((tmp_path / "copy/current.json").read_text())
    assert pointer["model"] == second["model"]["url"] and pointer["model"].startswith(url)


def test_two_machines_promote_at_once(job):
    job.run("--id", "one")
    job.run("--id", "two", "--set", "hyperparameters.lr=0.3")
    s3, prefix = job.aws.client("s3"), f"{job.prefix}/stoker/models/"
    met = Counter()
    for _ in range(int(os.environ.get("STOKER_TEST_PROMOTIONS", "2"))):
        for row in s3.list_objects_v2(Bucket="bucket", Prefix=prefix).get("Contents", []):
            s3.delete_object(Bucket="bucket", Key=row["Key"])
        both = [job.start("promote", "one"), job.start("promote", "two", env=job.elsewhere())]
        codes = sorted(cli.finish(process).code for process in both)
        rows = job.ok("--json", "lineage", "fake").lines
        # One wins, and the other exits with 5, or follows it in the chain.
        assert codes == [0, 0] and len(rows) == 2 or codes == [0, 5] and len(rows) == 1, (codes, rows)
        assert job.ok("--json", "lineage", "fake", "--verify").lines[-1]["verified"]
        met[tuple(codes)] += 1
    print(f"exit codes: {dict(met)}")


WRITES = ("PutObject", "CopyObject")


def test_the_reply_to_any_write_is_lost(job):
    """Each write of a promotion takes effect and its reply is lost: the run is promoted once."""
    job.run("--id", "one")
    s3, prefix = job.aws.client("s3"), f"{job.prefix}/stoker/models/"
    since = job.aws.mark()
    promoted(job, "one")
    made = {name: len([row for row in job.aws.ledger(since, name) if row["effect"] and prefix in row["name"]])
            for name in WRITES}
    assert min(made.values()) >= 2, made  # several files; journal, entry and pointer
    for operation, nth in [(name, nth) for name in WRITES for nth in range(1, made[name] + 1)]:
        for row in s3.list_objects_v2(Bucket="bucket", Prefix=prefix)["Contents"]:
            s3.delete_object(Bucket="bucket", Key=row["Key"])
        job.aws.fault("lost", operation=operation, nth=nth)
        assert promoted(job, "one")["generation"] == 1
        job.aws.clear_faults()
        rows = job.ok("--json", "lineage", "fake").lines
        assert [row["run"] for row in rows] == ["one"], (operation, nth)
        assert job.ok("--json", "lineage", "fake", "--verify").lines[-1]["verified"]
