"""stoker against Ceph's S3 gateway, which verifies signatures and is neither AWS's nor
ours: started by tests/soak/radosgw."""

import hashlib
import itertools
import json
import os
import random
import subprocess
import sys

import pytest
import stoker

boto3 = pytest.importorskip("boto3")  # the soak's other tests run without
from botocore.config import Config  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402

CALLS = stoker.BINARY.parent / "tests/s3_calls"
BUCKET = "bucket"
MANY = 1200  # more than a page of a listing

pytestmark = pytest.mark.skipif("AWS_ENDPOINT_URL" not in os.environ, reason="run tests/soak/radosgw")

KEYS = ["plain", "a b", "a+b", "a=b", "a//b", "//", "a/../b", "..", "./a", "a%20b", "%2F", "%zz", "q?x=1&y", "h#x",
        "*'()!$,;:@", "[a]{b}<c>|\\^`\"~", "tab\there", "line\nbreak", "é", "e\u0301", "漢字", "עברית\u202e", "😀",
        "👩‍🚀", "\U0010ffff", "a/", "/a", "k" * 1024, "MODULE_12+a1b2/model.neff"]


def environment(**more):
    """No more of the machine's own than where the gateway is."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    return {**stoker.environment(HOME="/nonexistent", AWS_EC2_METADATA_DISABLED="true"), **kept, **more}


def calls(*asked, **more):
    lines = "".join(json.dumps({"bucket": BUCKET, **each}) + "\n" for each in asked)
    done = subprocess.run([CALLS], input=lines, capture_output=True, text=True, check=False, env=environment(**more))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def by_aws(*argv):
    done = subprocess.run([sys.executable, "-m", "awscli", *argv], capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def s3():
    """The official client."""
    client = boto3.client("s3", config=Config(s3={"addressing_style": "path"}))
    client.create_bucket(Bucket=BUCKET)
    return client


@pytest.fixture
def empty(s3):
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for row in page.get("Contents", []):
            s3.delete_object(Bucket=BUCKET, Key=row["Key"])
    return s3


def test_the_right_secret_is_accepted_for_every_key(empty):
    written = calls(*({"do": "write", "key": key, "text": f"content of {key}"} for key in KEYS))
    assert [(key, reply) for key, reply in zip(KEYS, written, strict=True) if reply["n"] < 0] == []
    for key, reply in zip(KEYS, calls(*({"do": "get", "key": key} for key in KEYS)), strict=True):
        assert (reply["n"], reply["text"]) == (1, f"content of {key}"), key
    for key in KEYS:  # theirs reads what ours wrote, under the same name
        assert empty.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode() == f"content of {key}"
    [listed] = calls({"do": "list"})
    assert [row["key"] for row in listed["rows"]] == sorted(KEYS, key=str.encode)
    assert {row["key"]: row["size"] for row in listed["rows"]} == {key: len(f"content of {key}".encode()) for key in KEYS}
    assert all(reply["n"] >= 0 for reply in calls(*({"do": "delete", "key": key} for key in KEYS)))
    assert calls({"do": "list"})[0]["rows"] == []


def test_a_wrong_secret_is_refused_and_nothing_happens(empty):
    empty.put_object(Bucket=BUCKET, Key="there", Body=b"untouched")
    asked = ({"do": "write", "key": "new", "text": "x"}, {"do": "write", "key": "there", "text": "x"},
             {"do": "get", "key": "there"}, {"do": "head", "key": "there"}, {"do": "list"}, {"do": "delete", "key": "there"})
    wrong = os.environ["AWS_SECRET_ACCESS_KEY"][:-1] + "!"
    for which, reply in zip(asked, calls(*asked, AWS_SECRET_ACCESS_KEY=wrong), strict=True):
        assert reply["n"] < 0 and reply["code"] == 4, (which, reply)  # EXIT_REFUSED
        assert "403" in reply["error"] and wrong not in json.dumps(reply), reply
    assert empty.get_object(Bucket=BUCKET, Key="there")["Body"].read() == b"untouched"
    with pytest.raises(ClientError):
        empty.head_object(Bucket=BUCKET, Key="new")


def test_each_reads_the_others_object_of_many_parts(empty, tmp_path):
    content = random.Random(6).randbytes(40 << 20)
    (tmp_path / "ours").write_bytes(content)
    [reply] = calls({"do": "write", "key": "from us", "path": str(tmp_path / "ours")})
    assert reply["n"] >= 0, reply
    assert "-" in empty.head_object(Bucket=BUCKET, Key="from us")["ETag"], "one part"
    by_aws("s3", "cp", f"s3://{BUCKET}/from us", str(tmp_path / "got by them"))
    assert (tmp_path / "got by them").read_bytes() == content
    by_aws("s3", "cp", str(tmp_path / "ours"), f"s3://{BUCKET}/from them +=é")
    assert "-" in empty.head_object(Bucket=BUCKET, Key="from them +=é")["ETag"], "one part"
    [reply] = calls({"do": "download", "key": "from them +=é", "path": str(tmp_path / "got by us")})
    assert reply["n"] == 1, reply
    assert hashlib.sha256((tmp_path / "got by us").read_bytes()).digest() == hashlib.sha256(content).digest()


def test_a_long_listing_is_whole_and_in_order(empty):
    names = [f"many/{n:05} +é" for n in range(MANY)]
    written = calls(*({"do": "write", "key": name, "text": ""} for name in names))
    assert all(reply["n"] >= 0 for reply in written)
    [listed] = calls({"do": "list", "prefix": "many/"})
    assert [row["key"] for row in listed["rows"]] == names
    assert all(row["size"] == 0 for row in listed["rows"])
    assert all(a < b for a, b in itertools.pairwise(row["key"] for row in listed["rows"]))
