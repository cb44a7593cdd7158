"""S3 as the stand-in has it, seen by the official clients: conditions, checksums, parts,
lists, regions, and names that are hard to carry."""

import base64
import hashlib
import io
import json
import os
import subprocess
import threading

import botocore.exceptions
import pytest
from aws import REGION
from boto3.s3.transfer import TransferConfig

HOSTILE = ["plain", "a b", "a+b", "a=b&c", "//double//", "../up/../..", "./.", "/lead", "trail/", "é", "e\u0301", "漢字",
           "😀", "a%2Fb", "%", "q'\"<>&", "-_.~!*()[]{}|\\^`:;@,$?#", "\n\r\t\x01\x7f", "\u202e", "x" * 1024]


def refused(call, *args, **kwargs):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(*args, **kwargs)
    error = caught.value.response
    return error["Error"]["Code"], error["ResponseMetadata"]["HTTPStatusCode"]


def keys_of(s3, **params):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="bucket", **params)
    return [row["Key"] for page in pages for row in page.get("Contents", [])]


def test_hostile_keys_are_carried_as_they_are(aws, s3):
    for key in HOSTILE:
        s3.put_object(Bucket="bucket", Key=key, Body=key.encode())
    assert keys_of(s3) == sorted(HOSTILE, key=lambda key: key.encode())
    assert aws.objects("bucket") == {key: key.encode() for key in HOSTILE}
    gone = s3.delete_objects(Bucket="bucket", Delete={"Objects": [
        {"Key": key} for key in HOSTILE if not set("\n\r\x01") & set(key)]})
    assert len(gone["Deleted"]) == len(HOSTILE) - 1 and len(keys_of(s3)) == 1
    assert refused(s3.put_object, Bucket="bucket", Key="x" * 1025, Body=b"")[0] == "KeyTooLongError"


def test_the_official_command_passes(aws, s3, tmp_path):
    tree = tmp_path / "tree"
    for name in ("a b.txt", "sub/é=+.bin", "sub/empty"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(os.urandom(1000) if "empty" not in name else b"")
    (tree / "big").write_bytes(os.urandom(20 << 20))
    aws.cli("s3", "sync", tree, "s3://bucket/tree")
    uploads = aws.requests("UploadPart")
    assert uploads >= 3 and aws.effects("CompleteMultipartUpload") == 1
    aws.cli("s3", "sync", "s3://bucket/tree", tmp_path / "back")
    subprocess.run(["diff", "-r", str(tree), str(tmp_path / "back")], check=True)
    mark = aws.mark()
    assert aws.cli("s3", "sync", tree, "s3://bucket/tree").stdout == ""
    assert aws.effects(since=mark) == 0
    aws.cli("s3", "cp", "s3://bucket/tree/big", "s3://bucket/copy")
    aws.cli("s3", "rm", "--recursive", "s3://bucket/tree")
    assert keys_of(s3) == ["copy"]


def test_writes_are_made_on_conditions(s3):
    put = {"Bucket": "bucket", "Key": "key"}
    first = s3.put_object(**put, Body=b"1", IfNoneMatch="*")["ETag"]
    assert refused(s3.put_object, **put, Body=b"2", IfNoneMatch="*") == ("PreconditionFailed", 412)
    second = s3.put_object(**put, Body=b"2", IfMatch=first)["ETag"]
    assert refused(s3.put_object, **put, Body=b"3", IfMatch=first) == ("PreconditionFailed", 412)
    assert refused(s3.put_object, Bucket="bucket", Key="none", Body=b"3", IfMatch=first) == ("NoSuchKey", 404)
    assert refused(s3.delete_object, **put, IfMatch=first) == ("PreconditionFailed", 412)
    assert refused(s3.get_object, **put, IfMatch=first) == ("PreconditionFailed", 412)
    assert refused(s3.get_object, **put, IfNoneMatch=second) == ("304", 304)
    s3.delete_object(**put, IfMatch=second)
    assert refused(s3.get_object, **put) == ("NoSuchKey", 404)


def test_of_many_who_create_at_once_one_wins(aws, s3):
    won, lost = [], []

    def create(number):
        client = aws.client("s3")
        for key in range(10):
            try:
                client.put_object(Bucket="bucket", Key=f"{key}", Body=b"%d" % number, IfNoneMatch="*")
                won.append(key)
            except botocore.exceptions.ClientError as error:
                lost.append(error.response["Error"]["Code"])

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(10)) and lost == ["PreconditionFailed"] * 70
    assert aws.effects("PutObject") == 10


def test_what_is_said_of_a_body_must_be_true(aws, s3):
    put = {"Bucket": "bucket", "Key": "key", "Body": b"content"}
    right = base64.b64encode(hashlib.sha256(b"content").digest()).decode()
    wrong = base64.b64encode(hashlib.sha256(b"other").digest()).decode()
    assert refused(s3.put_object, **put, ChecksumSHA256=wrong) == ("BadDigest", 400)
    assert refused(s3.put_object, **put, ChecksumCRC32="AAAAAA==") == ("BadDigest", 400)
    assert refused(s3.put_object, **put, ContentMD5=base64.b64encode(b"x" * 16).decode()) == ("BadDigest", 400)
    assert refused(s3.put_object, **put, ContentMD5="nonsense") == ("InvalidDigest", 400)
    assert aws.effects("PutObject") == 0
    said = s3.put_object(**put, ChecksumSHA256=right)
    assert said["ChecksumSHA256"] == right and said["ETag"] == f'"{hashlib.md5(b"content").hexdigest()}"'
    head = s3.head_object(Bucket="bucket", Key="key", ChecksumMode="ENABLED")
    assert (head["ChecksumSHA256"], head["ChecksumType"]) == (right, "FULL_OBJECT")
    assert "ChecksumSHA256" not in s3.head_object(Bucket="bucket", Key="key")


def test_s3_adds_a_checksum_of_its_own(aws):
    aws.make_bucket("bucket")
    s3 = aws.client("s3", request_checksum_calculation="when_required")
    s3.put_object(Bucket="bucket", Key="key", Body=b"123456789")
    head = s3.head_object(Bucket="bucket", Key="key", ChecksumMode="ENABLED")
    assert head["ChecksumCRC64NVME"] == base64.b64encode(bytes.fromhex("ae8b14860a799888")).decode()


def test_stretches_are_read(s3):
    s3.put_object(Bucket="bucket", Key="key", Body=b"0123456789")

    def read(stretch):
        reply = s3.get_object(Bucket="bucket", Key="key", Range=stretch)
        return reply["Body"].read(), reply.get("ContentRange")

    assert read("bytes=2-4") == (b"234", "bytes 2-4/10")
    assert read("bytes=7-") == (b"789", "bytes 7-9/10")
    assert read("bytes=-2") == (b"89", "bytes 8-9/10")
    assert read("bytes=5-99") == (b"56789", "bytes 5-9/10")
    assert read("bytes=1-2,4-5") == (b"0123456789", None)
    assert refused(s3.get_object, Bucket="bucket", Key="key", Range="bytes=10-") == ("InvalidRange", 416)


def upload(s3, parts, key="key", **begin):
    upload_id = s3.create_multipart_upload(Bucket="bucket", Key=key, **begin)["UploadId"]
    where = {"Bucket": "bucket", "Key": key, "UploadId": upload_id}
    rows = []
    for number, body in enumerate(parts, 1):
        more = {"ChecksumAlgorithm": begin["ChecksumAlgorithm"]} if "ChecksumAlgorithm" in begin else {}
        said = s3.upload_part(**where, PartNumber=number, Body=body, **more)
        rows.append({"PartNumber": number, "ETag": said["ETag"],
                     **{name: value for name, value in said.items() if name.startswith("Checksum")}})
    return where, rows


@pytest.mark.parametrize("algorithm, kind", [("SHA256", "COMPOSITE"), ("CRC32", "COMPOSITE"), ("CRC32", "FULL_OBJECT"),
                                             ("CRC64NVME", "FULL_OBJECT")])
def test_uploads_in_parts_are_verified_as_a_whole(s3, algorithm, kind):
    bodies = [os.urandom(5 << 20), os.urandom(5 << 20), b"end"]
    where, rows = upload(s3, bodies, ChecksumAlgorithm=algorithm, ChecksumType=kind)
    wrong = [dict(row) for row in rows]
    wrong[1]["ETag"] = rows[0]["ETag"]
    assert refused(s3.complete_multipart_upload, **where, MultipartUpload={"Parts": wrong})[0] == "InvalidPart"
    assert refused(s3.complete_multipart_upload, **where, MultipartUpload={"Parts": rows[::-1]})[0] == "InvalidPartOrder"
    assert refused(s3.complete_multipart_upload, **where, MultipartUpload={"Parts": rows},
                   MpuObjectSize=7)[0] == "InvalidRequest"
    assert keys_of(s3) == []
    done = s3.complete_multipart_upload(**where, MultipartUpload={"Parts": rows}, ChecksumType=kind)
    assert done["ETag"].endswith('-3"') and done[f"Checksum{algorithm}"].endswith("-3") == (kind == "COMPOSITE")
    reply = s3.get_object(Bucket="bucket", Key="key", ChecksumMode="ENABLED")
    assert reply["Body"].read() == b"".join(bodies) and reply["ChecksumType"] == kind
    assert refused(s3.complete_multipart_upload, **where, MultipartUpload={"Parts": rows})[0] == "NoSuchUpload"


def test_an_upload_is_invisible_until_it_is_complete_and_gone_when_aborted(aws, s3):
    where, rows = upload(s3, [b"x" * 100, b"y"])
    assert keys_of(s3) == [] and aws.control("GET", "buckets")["bucket"]["uploads"] == 1
    assert [part["Size"] for part in s3.list_parts(**where)["Parts"]] == [100, 1]
    assert [row["Key"] for row in s3.list_multipart_uploads(Bucket="bucket")["Uploads"]] == ["key"]
    assert refused(s3.complete_multipart_upload, **where, MultipartUpload={"Parts": rows})[0] == "EntityTooSmall"
    s3.abort_multipart_upload(**where)
    assert refused(s3.upload_part, **where, PartNumber=1, Body=b"x")[0] == "NoSuchUpload"
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="bucket")


def test_an_upload_is_completed_on_a_condition(s3):
    where, rows = upload(s3, [b"mine"])
    s3.put_object(Bucket="bucket", Key="key", Body=b"theirs")
    assert refused(s3.complete_multipart_upload, **where, MultipartUpload={"Parts": rows},
                   IfNoneMatch="*") == ("PreconditionFailed", 412)


def test_large_bodies_are_not_kept_in_memory(aws, s3):
    body = os.urandom(64 << 20)
    for _ in range(2):
        s3.upload_fileobj(io.BytesIO(body), "bucket", "big", Config=TransferConfig(multipart_threshold=1 << 30))
    s3.upload_fileobj(io.BytesIO(body), "bucket", "parts", Config=TransferConfig(multipart_chunksize=16 << 20))
    assert aws.objects("bucket") == {"big": body, "parts": body}
    with open(f"/proc/{aws.process.pid}/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    assert peak < 300 << 10, f"{peak} KiB"


def test_lists_come_in_pages_with_groups(aws, s3):
    aws.settings(page_size=3)
    names = ["a", "b/1", "b/2", "c", "d/1/x", "d/2", "e", "é", "😀"]
    for name in names:
        s3.put_object(Bucket="bucket", Key=name, Body=b"")
    mark = aws.mark()
    assert keys_of(s3) == names and aws.requests("ListObjectsV2", mark) == 3
    pages = list(s3.get_paginator("list_objects_v2").paginate(Bucket="bucket", Delimiter="/"))
    assert [row["Prefix"] for page in pages for row in page.get("CommonPrefixes", [])] == ["b/", "d/"]
    assert [row["Key"] for page in pages for row in page.get("Contents", [])] == ["a", "c", "e", "é", "😀"]
    assert keys_of(s3, Prefix="d/") == ["d/1/x", "d/2"] and keys_of(s3, StartAfter="d/2") == names[6:]
    old = s3.get_paginator("list_objects").paginate(Bucket="bucket", Delimiter="/")
    assert [row["Key"] for page in old for row in page.get("Contents", [])] == ["a", "c", "e", "é", "😀"]
    assert refused(s3.list_objects_v2, Bucket="bucket", ContinuationToken="nonsense")[0] == "InvalidArgument"


def test_a_bucket_of_another_region_says_where_it_is(aws):
    aws.make_bucket("far", region="us-west-2")
    start = aws.mark()
    s3 = aws.client("s3")  # of REGION; it follows by itself
    s3.put_object(Bucket="far", Key="key", Body=b"x")
    seen = [(entry["operation"], entry["region"], entry["status"]) for entry in aws.ledger(start)]
    assert ("PutObject", REGION, 301) in seen and ("PutObject", "us-west-2", 200) in seen
    assert refused(aws.client("s3").head_bucket, Bucket="none")[1] == 404
    aws.settings(wrong_region="malformed")
    start = aws.mark()
    aws.client("s3").list_objects_v2(Bucket="far")
    assert aws.ledger(start)[0]["code"] == "AuthorizationHeaderMalformed"


def test_a_bucket_of_somebody_else_is_refused(s3):
    assert refused(s3.list_objects_v2, Bucket="bucket", ExpectedBucketOwner="111111111111") == ("AccessDenied", 403)
    s3.list_objects_v2(Bucket="bucket", ExpectedBucketOwner="123456789012")


def test_bodies_in_chunks_are_taken_apart(aws):
    """As SDKs stream over TLS, and as they stream what they cannot rewind."""
    aws.make_bucket("bucket")

    class Stream(io.RawIOBase):
        def __init__(self):
            self.left = 200000

        def readable(self):
            return True

        def read(self, size=-1):
            piece = b"x" * min(self.left, size if size >= 0 else self.left)
            self.left -= len(piece)
            return piece

    s3 = aws.client("s3")
    s3.upload_fileobj(Stream(), "bucket", "key")
    assert len(aws.objects("bucket")["key"]) == 200000


def script(s3):
    """The same orders for whoever claims to be S3, and what it said."""
    said = []

    def note(call, *fields, **params):
        try:
            reply = getattr(s3, call)(**params)
            said.append([call, *(json.dumps(reply.get(field), default=str, sort_keys=True) for field in fields)])
            return reply
        except botocore.exceptions.ClientError as error:
            meta = error.response["ResponseMetadata"]["HTTPStatusCode"]
            said.append([call, error.response["Error"]["Code"], meta])
            return {}

    where = {"Bucket": "shared"}
    note("create_bucket", **where, CreateBucketConfiguration={"LocationConstraint": REGION})
    for key in ("a", "b/c", "b/d", "é +="):
        note("put_object", "ETag", **where, Key=key, Body=key.encode() * 10, Metadata={"m": "v"}, ContentType="text/x")
    note("put_object", **where, Key="a", Body=b"", IfNoneMatch="*")
    note("put_object", "ETag", **where, Key="a", Body=b"", IfMatch='"nonsense"')
    note("get_object", "ETag", "ContentLength", "ContentType", "Metadata", **where, Key="a")
    note("get_object", "ContentRange", "ContentLength", **where, Key="a", Range="bytes=1-3")
    note("get_object", **where, Key="none")
    note("head_object", **where, Key="none")
    note("head_object", "ETag", "ContentLength", "Metadata", **where, Key="b/c")
    note("list_objects_v2", "KeyCount", "IsTruncated", "CommonPrefixes", **where, Delimiter="/")
    note("list_objects_v2", "KeyCount", "IsTruncated", "MaxKeys", "Prefix", **where, MaxKeys=2, Prefix="b/")
    note("list_objects_v2", "KeyCount", **where, StartAfter="b/c")
    note("delete_object", **where, Key="none")
    upload_id = note("create_multipart_upload", "Bucket", "Key", **where, Key="big").get("UploadId")
    part = {**where, "Key": "big", "UploadId": upload_id}
    first = note("upload_part", "ETag", **part, PartNumber=1, Body=b"x" * (5 << 20))
    second = note("upload_part", "ETag", **part, PartNumber=2, Body=b"y")
    rows = [{"PartNumber": number, "ETag": each.get("ETag")} for number, each in ((1, first), (2, second))]
    note("complete_multipart_upload", **part, MultipartUpload={"Parts": [{"PartNumber": 3, "ETag": "x"}]})
    note("complete_multipart_upload", "ETag", "Key", **part, MultipartUpload={"Parts": rows})
    note("get_object", "ContentLength", **where, Key="big")
    note("copy_object", **where, Key="copy", CopySource="shared/a")
    note("get_object", "ETag", "Metadata", **where, Key="copy")
    note("delete_bucket", **where)
    note("delete_objects", "Deleted", **where, Delete={"Objects": [{"Key": "b/c"}, {"Key": "none"}]})
    note("get_object", Bucket="nowhere", Key="a")
    note("list_objects_v2", Bucket="nowhere")
    return said


def test_what_moto_knows_too_is_answered_alike(aws, monkeypatch):
    import boto3
    from moto import mock_aws
    ours = script(aws.client("s3"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with mock_aws():
        theirs = script(boto3.client("s3", region_name=REGION))
    assert [(mine, other) for mine, other in zip(ours, theirs, strict=True) if mine != other] == []
