"""What every store promises, asked of one in a bucket: the C tests of tests/unit/store with
the stand-in behind them, on good days and on bad ones; then what may go wrong on the wire,
one thing at a time."""

import hashlib
import json
import re
import subprocess

import pytest
import stoker
from memory import exactly, peak
from s3_calls import Calls
from stoker import finish, start

TESTS = stoker.BINARY.parent / "tests"
SECONDS = 300
PART = 16 << 20


def run_contract(aws, name, **env):
    done = subprocess.run([str(TESTS / f"unit_{name}")], env=aws.env(STOKER_TEST_STORE="s3://bucket/of tests", **env),
                          capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"PASSED +\] (\d+) test", done.stderr + done.stdout)


@pytest.mark.parametrize("name", ["store_contract", "store_together"])
def test_every_promise_of_a_store_holds_in_a_bucket(aws, s3, name):
    run_contract(aws, name)


def test_every_promise_of_a_journal_holds_in_a_bucket(aws, s3, tmp_path):
    run_contract(aws, "run_journal", STOKER_WORK=tmp_path)


def test_they_hold_where_s3_is_busy(aws, s3):
    for operation in ("PutObject", "GetObject", "HeadObject", "ListObjectsV2", "DeleteObject"):
        for nth, kind in enumerate(("throttle", "internal", "unavailable", "bad_gateway", "reset_before")):
            aws.fault(kind, operation=operation, nth=3 + 4 * nth)
    run_contract(aws, "store_contract")
    assert aws.struck() > 20


@pytest.fixture
def calls(aws, s3):
    with Calls(aws.env()) as calls:
        yield calls


@pytest.fixture
def big(tmp_path):
    """A file of three parts and a bit."""
    path = tmp_path / "big"
    path.write_bytes(b"".join(hashlib.sha256(b"%d" % i).digest() * 1024 for i in range(1600)) + b"end")
    return path


# Conditional writes


def test_a_lost_reply_is_told_from_a_lost_race(aws, s3, calls):
    """The first attempt wrote it, its reply was lost, the second was refused: we won."""
    aws.fault("lost", operation="PutObject")
    assert calls("write", key="claim", text="mine", **{"if": "absent"}).n == 1
    assert aws.effects("PutObject") == 1
    aws.fault("lost", operation="PutObject")
    assert calls("write", key="claim", text="mine", **{"if": "absent"}).n == 0
    etag = calls("head", key="claim").etag
    aws.fault("lost", operation="PutObject")
    assert calls("write", key="claim", text="next", **{"if": etag}).n == 1
    aws.fault("lost", operation="PutObject")
    assert calls("write", key="claim", text="late", **{"if": etag}).n == 0
    assert s3.get_object(Bucket="bucket", Key="claim")["Body"].read() == b"next"


def test_who_has_the_same_bytes_is_not_who_won(aws, s3, calls):
    """Ours is reset before it has an effect, another one comes first with the same words."""
    s3.put_object(Bucket="bucket", Key="claim", Body=b"same")
    aws.fault("reset_before", operation="PutObject")
    assert calls("write", key="claim", text="same", **{"if": "absent"}).n == 0


def test_a_conflict_is_tried_again(aws, s3, calls):
    aws.fault("conflict", operation="PutObject", count=3)
    assert calls("write", key="a", text="x", **{"if": "absent"}).n == 1
    etag = calls("head", key="a").etag
    aws.fault("conflict", operation="PutObject", count=2)
    assert calls("write", key="a", text="y", **{"if": etag}).n == 1
    assert aws.effects("PutObject") == 2


def test_a_conflict_with_ourselves_is_a_race_won(aws, s3, calls):
    """The reply is lost, and the next attempt meets the first, which is not over yet."""
    aws.fault("lost", operation="PutObject")
    aws.fault("conflict", operation="PutObject", count=2)
    assert calls("write", key="a", text="x", **{"if": "absent"}).n == 1
    etag = calls("head", key="a").etag
    aws.fault("reset_before", operation="PutObject")
    aws.fault("conflict", operation="PutObject", count=3)
    assert calls("write", key="a", text="y", **{"if": etag}).n == 1
    assert aws.effects("PutObject") == 2


CURED = {"throttle": {}, "internal": {}, "unavailable": {}, "bad_gateway": {}, "reset_before": {}, "reset_body": {},
         "lost": {}, "delay": {}, "delay_after": {}, "slow": {"step": 8, "interval": 0.001},
         "slow_read": {"step": 1024, "interval": 0.001}, "date": {"seconds": -7200},
         "header": {"name": "x-amz-request-id", "value": None}}


@pytest.mark.parametrize("kind", CURED)
def test_what_fails_once_is_done_once(aws, s3, calls, kind):
    aws.fault(kind, operation="PutObject", **CURED[kind])
    assert calls("write", key="claim", text="x" * 20000, **{"if": "absent"}).n == 1
    etag = calls("head", key="claim").etag
    aws.fault(kind, operation="PutObject", **CURED[kind])
    assert calls("write", key="claim", text="y" * 20000, **{"if": etag}).n == 1
    for operation in ("GetObject", "HeadObject", "ListObjectsV2", "DeleteObject"):
        aws.fault(kind, operation=operation, **CURED[kind])
    assert calls("get", key="claim").text == "y" * 20000
    assert calls("head", key="claim").size == 20000
    assert [row["key"] for row in calls("list").rows] == ["claim"]
    assert calls("delete", key="claim").n == 0
    assert calls("head", key="claim").n == 0
    assert aws.effects("PutObject") == 2


UNCURED = {"denied": 4, "expired": 4, "internal": 75, "unavailable": 75, "throttle": 75, "reset_before": 75, "lost": 75,
           "bad_gateway": 75, "huge": 4, "garbage": 75}


@pytest.mark.parametrize("kind", UNCURED)
def test_what_fails_always_has_a_word_and_an_end(aws, s3, calls, kind):
    s3.put_object(Bucket="bucket", Key="there", Body=b"1234")
    for operation in ("PutObject", "ListObjectsV2", "GetObject"):
        if kind != "garbage" or operation == "ListObjectsV2":
            aws.fault(kind, operation=operation, count=0)
    if kind != "garbage":
        for do, more in (("write", {"text": "x", "if": "absent"}), ("get", {})):
            found = calls(do, key="there", **more)
            assert (found.n, found.code) == (-1, UNCURED[kind]) and "s3://bucket/there" in found.error, found
    found = calls("list")
    assert (found.n, found.code) == (-1, UNCURED[kind]) and "s3://bucket" in found.error, found
    assert len(found.error) < 4096


def test_a_conflict_that_does_not_end_is_told(aws, s3, calls):
    aws.fault("conflict", operation="PutObject", count=0)
    found = calls("write", key="a", text="x", **{"if": "absent"})
    assert found.n == -1 and found.code == 75 and "another process is writing" in found.error
    assert aws.objects("bucket") == {}


def test_what_is_gone_is_not_replaced(aws, s3, calls):
    calls("write", key="a", text="x")
    etag = calls("head", key="a").etag
    calls("delete", key="a")
    assert calls("write", key="a", text="y", **{"if": etag}).n == 0
    assert aws.objects("bucket") == {}


# Uploads in parts


def uploads(s3):
    return s3.list_multipart_uploads(Bucket="bucket").get("Uploads", [])


def test_a_file_goes_up_in_parts_and_comes_down_the_same(aws, s3, calls, big, tmp_path):
    found = calls("write", key="big", path=str(big), **{"if": "absent"})
    assert found.n == 1 and found.etag.endswith('-4"') and found.bytes == big.stat().st_size
    assert aws.requests("UploadPart") == 4
    assert s3.get_object(Bucket="bucket", Key="big")["Body"].read() == big.read_bytes()
    assert calls("write", key="big", path=str(big), **{"if": "absent"}).n == 0
    assert uploads(s3) == []
    down = tmp_path / "down"
    found = calls("download", key="big", path=str(down))
    assert found.n == 1 and found.checksum.endswith("-4")
    assert down.read_bytes() == big.read_bytes()


@pytest.mark.parametrize("kind", ["throttle", "internal", "reset_before", "reset_body", "lost", "truncate"])
@pytest.mark.parametrize("operation", ["CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"])
def test_what_fails_once_during_an_upload_is_cured(aws, s3, calls, big, operation, kind):
    aws.fault(kind, operation=operation)
    found = calls("write", key="big", path=str(big), **{"if": "absent"})
    assert (found.n, found.error) == (1, None)
    assert s3.head_object(Bucket="bucket", Key="big")["ContentLength"] == big.stat().st_size
    assert aws.effects("CompleteMultipartUpload") == 1


def test_an_error_behind_status_200_is_one(aws, s3, calls, big):
    aws.fault("error_200", operation="CompleteMultipartUpload", spaces=100)
    assert calls("write", key="big", path=str(big)).n == 1
    aws.fault("error_200", operation="CompleteMultipartUpload", count=0)
    found = calls("write", key="other", path=str(big))
    assert found.n == -1 and "InternalError" in found.error and uploads(s3) == []


def test_what_s3_put_together_otherwise_is_a_failure(aws, s3, calls, big):
    checksum = "<ChecksumSHA256>[^<]*</ChecksumSHA256>"
    other = f"<ChecksumSHA256>{'A' * 43}=-4</ChecksumSHA256>"
    aws.fault("replace", operation="CompleteMultipartUpload", pattern=checksum, text=other)
    found = calls("write", key="big", path=str(big), **{"if": "absent"})
    assert found.n == -1 and "another checksum" in found.error and "s3://bucket/big" in found.error, found
    assert uploads(s3) == []
    # One that is not told is no other one: the nonce and the size decide.
    aws.fault("replace", operation="CompleteMultipartUpload", pattern=checksum)
    assert calls("write", key="silent", path=str(big), **{"if": "absent"}).n == 1
    assert aws.struck() == 2


def test_what_cannot_be_completed_is_taken_back(aws, s3, calls, big):
    aws.fault("denied", operation="UploadPart", nth=3, count=0)
    found = calls("write", key="big", path=str(big))
    assert found.n == -1 and found.code == 4 and "s3://bucket/big" in found.error and "AccessDenied" in found.error
    assert uploads(s3) == []


def test_somebody_who_aborts_our_upload_does_not_stop_us(aws, s3, calls, big):
    aws.fault("error", code="NoSuchUpload", status=404, operation="UploadPart", nth=2)
    assert calls("write", key="big", path=str(big), **{"if": "absent"}).n == 1
    assert uploads(s3) == []


def test_of_two_uploads_at_once_one_wins(aws, s3, calls, big):
    aws.fault("delay", seconds=1, operation="CompleteMultipartUpload")
    with Calls(aws.env()) as others:
        others.send("write", key="big", path=str(big), **{"if": "absent"})
        found = [calls("write", key="big", path=str(big), **{"if": "absent"}).n]
        found.append(json.loads(others.process.stdout.readline())["n"])
    assert sorted(found) == [0, 1]
    assert uploads(s3) == []


def test_what_a_killed_upload_left_is_aborted_later(aws, s3, big):
    aws.fault("delay", seconds=20, operation="UploadPart", nth=3, count=0)
    killed = Calls(aws.env())
    killed.send("write", key="big", path=str(big))
    stoker.until(lambda: aws.effects("UploadPart") >= 2)
    killed.process.kill()
    killed.__exit__()
    aws.clear_faults()
    assert len(uploads(s3)) == 1
    s3.create_multipart_upload(Bucket="bucket", Key="bigger")
    with Calls(aws.env()) as calls:
        assert calls("leftovers", key="big", idle_ms=3600000).n == 0, "somebody may be at it"
        assert calls("write", key="big", path=str(big), **{"if": "absent"}).n == 1
        assert calls("leftovers", key="big", idle_ms=0).n == 1
    assert [upload["Key"] for upload in uploads(s3)] == ["bigger"], "only the very key is ours"


# Reading


def test_a_body_that_is_cut_off_or_reset_is_asked_for_again(aws, s3, calls, big, tmp_path):
    s3.put_object(Bucket="bucket", Key="small", Body=b"0123456789" * 1000)
    calls("write", key="big", path=str(big))
    for kind in ("truncate", "lost", "reset_before", "internal"):
        aws.fault(kind, operation="GetObject")
        assert calls("get", key="small").text == "0123456789" * 1000
        aws.fault(kind, operation="GetObject", nth=2)
        assert calls("download", key="big", path=str(tmp_path / "down")).n == 1
        assert (tmp_path / "down").read_bytes() == big.read_bytes()


@pytest.mark.parametrize("algorithm", ["SHA256", "CRC32", "CRC32C", "CRC64NVME"])
def test_a_changed_byte_is_found_by_the_checksum(aws, s3, calls, tmp_path, algorithm):
    s3.put_object(Bucket="bucket", Key="a", Body=b"0123456789" * 1000, ChecksumAlgorithm=algorithm)
    assert calls("get", key="a").n == 1
    aws.fault("corrupt", operation="GetObject", count=0)
    found = calls("get", key="a")
    assert found.n == -1 and found.text == "" and found.code == 75 and "checksum" in found.error
    found = calls("download", key="a", path=str(tmp_path / "down"))
    assert found.n == -1 and "checksum" in found.error


def test_a_changed_byte_is_found_in_an_object_of_parts(aws, s3, calls, big, tmp_path):
    calls("write", key="big", path=str(big))
    aws.fault("corrupt", operation="GetObject", nth=2)
    found = calls("download", key="big", path=str(tmp_path / "down"))
    assert found.n == -1 and "checksum" in found.error


def test_an_object_that_changes_during_the_download_is_not_mixed(aws, s3, calls, big, tmp_path):
    s3.put_object(Bucket="bucket", Key="big", Body=big.read_bytes())
    aws.fault("delay", seconds=10, operation="GetObject", nth=2, count=0)
    calls.send("download", key="big", path=str(tmp_path / "down"))
    stoker.until(lambda: aws.requests("GetObject") > 0)
    s3.put_object(Bucket="bucket", Key="big", Body=b"another")
    found = json.loads(calls.process.stdout.readline())
    assert found["n"] == -1 and "changed while it was read" in found["error"]


def test_memory_does_not_grow_with_the_object(aws, s3, tmp_path):
    path, down = tmp_path / "file", tmp_path / "down"
    with open(path, "wb") as file:
        file.truncate(1 << 20)
    with Calls(exactly(aws.env())) as calls:
        calls("write", key="small", path=str(path))
        assert calls("download", key="small", path=str(down)).n == 1
        before = peak(calls.process.pid)
        with open(path, "r+b") as file:
            file.truncate(256 << 20)
        assert calls("write", key="big", path=str(path)).n == 1
        assert calls("download", key="big", path=str(down)).n == 1
        more = peak(calls.process.pid) - before
    assert down.stat().st_size == 256 << 20
    # Six parts of 16 MiB are under way at once: not one of them lies in memory.
    assert before > 0 and more < 8 << 10, f"{more >> 10} MiB more"


# Time


def test_what_goes_to_and_from_files_has_time(aws, s3, tmp_path):
    """Whoever waits for a look or a few bytes, a driver say, soon gives up. A restore and a
    sync, of which each request takes as long here, live with it."""
    for bucket in ("there", "listed"):
        aws.make_bucket(bucket)
        aws.client("s3").put_object(Bucket=bucket, Key="x", Body=b"12345")
    (tmp_path / "up").mkdir()
    (tmp_path / "up/x").write_bytes(b"12345")
    for operation, where in (("GetObject", "there/"), ("PutObject", "bucket/"), ("ListObjectsV2", "listed")):
        aws.fault("delay", seconds=14, count=0, operation=operation, key=where)
    syncs = [start("cache", "push", tmp_path / "up", "s3://bucket", env=aws.env()),
             start("cache", "pull", "s3://listed", tmp_path / "down", env=aws.env())]
    with Calls(aws.env()) as restore, Calls(aws.env()) as driver:
        restore.send("download", bucket="there", key="x", path=str(tmp_path / "restored"))
        driver.send("get", bucket="there", key="x")
        given_up, restored = (json.loads(calls.process.stdout.readline()) for calls in (driver, restore))
    for sync in syncs:
        assert finish(sync).code == 0
    assert restored["n"] == 1 and (tmp_path / "restored").read_bytes() == b"12345"
    assert aws.objects("bucket") == {"x": b"12345"} and (tmp_path / "down/x").read_bytes() == b"12345"
    assert (given_up["n"], given_up["code"]) == (-1, 75)
