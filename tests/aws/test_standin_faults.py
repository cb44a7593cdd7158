"""Each kind of fault does what it says, to whom it says, as often as it says: tests that
rest on them would otherwise prove nothing."""

import contextlib
import http.client
import socket
import time
from email.utils import parsedate_to_datetime
from pathlib import Path

import botocore.exceptions
import pytest
from standin import faults


def code_of(call, **params):
    try:
        call(**params)
    except botocore.exceptions.ClientError as error:
        return error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    except (botocore.exceptions.BotoCoreError, http.client.HTTPException) as error:
        return type(error).__name__, 0
    return "", 200


def put(s3, body=b"content", key="key", **more):
    return code_of(s3.put_object, Bucket="bucket", Key=key, Body=body, **more)


@pytest.mark.parametrize("kind, expected", [
    ("throttle", ("SlowDown", 503)), ("internal", ("InternalError", 500)), ("unavailable", ("ServiceUnavailable", 503)),
    ("conflict", ("ConditionalRequestConflict", 409)), ("precondition", ("PreconditionFailed", 412)),
    ("expired", ("ExpiredToken", 400)), ("denied", ("AccessDenied", 403)),
    ("bad_gateway", ("502", 502)), ("reset_before", ("ConnectionClosedError", 0)),
    ("reset_body", ("ConnectionClosedError", 0))])
def test_a_request_is_turned_down_without_an_effect(aws, s3, kind, expected):
    aws.fault(kind, operation="PutObject")
    assert put(s3, b"x" * 100000) == expected
    assert aws.ledger()[-1]["fault"] == kind
    assert aws.effects("PutObject") == 0 and aws.objects("bucket") == {}
    assert put(s3) == ("", 200), "it strikes once"


@pytest.mark.parametrize("service, call, code", [
    ("logs", "describe_log_groups", ("ThrottlingException", 400)),
    ("sts", "get_caller_identity", ("Throttling", 400)),
    ("batch", "describe_job_queues", ("TooManyRequestsException", 429))])
def test_each_service_has_its_word_for_too_much(aws, service, call, code):
    aws.fault("throttle", service=service)
    assert code_of(getattr(aws.client(service), call)) == code
    assert code_of(getattr(aws.client(service), call)) == ("", 200)


def test_an_error_of_any_code_can_be_had(aws, s3):
    aws.fault("error", operation="PutObject", code="OperationAborted", status=409, message="words")
    assert put(s3) == ("OperationAborted", 409)


def test_a_client_is_sent_to_another_region(aws, s3):
    aws.fault("redirect", operation="PutObject", region="ap-south-1", count=0)
    assert put(s3) == ("PermanentRedirect", 301)
    assert {entry["status"] for entry in aws.ledger(operation="PutObject")} == {301}
    assert aws.ledger()[-1]["region"] == "ap-south-1", "botocore has followed it"


def test_success_may_hide_an_error(aws, s3):
    aws.fault("error_200", operation="CopyObject", spaces=50)
    s3.put_object(Bucket="bucket", Key="key", Body=b"x")
    assert code_of(s3.copy_object, Bucket="bucket", Key="copy", CopySource="bucket/key")[0] == "InternalError"
    assert sorted(aws.objects("bucket")) == ["key"]


def test_a_reply_is_lost_after_the_effect(aws, s3):
    aws.fault("lost", operation="PutObject")
    assert put(s3, IfNoneMatch="*")[1] == 0
    assert aws.ledger()[-1]["effect"] and aws.objects("bucket") == {"key": b"content"}
    assert put(s3, IfNoneMatch="*") == ("PreconditionFailed", 412)


def test_a_body_is_cut_off(aws, s3):
    s3.put_object(Bucket="bucket", Key="key", Body=b"x" * 1000)
    aws.fault("truncate", operation="GetObject", bytes=300)
    reply = s3.get_object(Bucket="bucket", Key="key")
    assert reply["ContentLength"] == 1000
    with pytest.raises(botocore.exceptions.ResponseStreamingError):
        reply["Body"].read()


def test_a_byte_of_a_body_is_another(aws, s3):
    s3.put_object(Bucket="bucket", Key="key", Body=b"x" * 1000)
    aws.fault("corrupt", operation="GetObject")
    with pytest.raises(botocore.exceptions.FlexibleChecksumError):
        s3.get_object(Bucket="bucket", Key="key", ChecksumMode="ENABLED")["Body"].read()


def test_words_of_a_body_are_others(aws, s3):
    s3.put_object(Bucket="bucket", Key="key", Body=b"x")
    aws.fault("replace", operation="ListObjectsV2", pattern="<ETag>[^<]*</ETag>")
    assert "ETag" not in s3.list_objects_v2(Bucket="bucket")["Contents"][0]
    aws.fault("replace", operation="ListObjectsV2", pattern="<Key>key</Key>", text="<Key>other</Key>")
    assert [row["Key"] for row in s3.list_objects_v2(Bucket="bucket")["Contents"]] == ["other"]


def test_bytes_come_slowly_in_both_directions(aws, s3):
    aws.fault("slow_read", operation="PutObject", step=1000, interval=0.02)
    start = time.monotonic()
    # pieces of the body arrive whole, so only a large body is seen to be slow
    s3.put_object(Bucket="bucket", Key="key", Body=b"x" * 20000)
    assert time.monotonic() - start > 0.3
    aws.fault("slow", operation="GetObject", step=1000, interval=0.02)
    start = time.monotonic()
    assert len(s3.get_object(Bucket="bucket", Key="key")["Body"].read()) == 20000
    assert time.monotonic() - start > 0.3


def test_nothing_is_said_for_a_while(aws):
    aws.make_bucket("bucket")
    aws.fault("hang", operation="GetObject", seconds=600)
    client = aws.client("s3", read_timeout=0.5)
    assert code_of(client.get_object, Bucket="bucket", Key="key") == ("ReadTimeoutError", 0)


def test_a_delay_comes_before_or_after_the_effect(aws, s3):
    for kind in ("delay", "delay_after"):
        aws.fault(kind, operation="PutObject", seconds=0.3)
        start = time.monotonic()
        assert put(s3) == ("", 200)
        assert time.monotonic() - start > 0.3


def test_the_clock_of_the_service_is_off_and_says_so(aws, s3):
    aws.fault("skew", seconds=-3600, count=0)
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        s3.list_buckets()
    assert caught.value.response["Error"]["Code"] == "RequestTimeTooSkewed"
    date = parsedate_to_datetime(caught.value.response["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()
    assert abs(date - time.time() + 3600) < 60


def test_only_the_date_of_a_reply_is_off(aws, s3):
    aws.fault("date", seconds=86400)
    date = s3.list_buckets()["ResponseMetadata"]["HTTPHeaders"]["date"]
    assert abs(parsedate_to_datetime(date).timestamp() - time.time() - 86400) < 60


@pytest.mark.parametrize("what", sorted(faults.GARBAGE))
def test_what_comes_is_no_reply(aws, s3, what):
    aws.fault("garbage", operation="ListObjectsV2", what=what, status=200)
    aws.fault("garbage", operation="DescribeLogGroups", what=what, status=200)
    for call, params in ((s3.list_objects_v2, {"Bucket": "bucket"}), (aws.client("logs").describe_log_groups, {})):
        with contextlib.suppress(Exception):  # whatever a client makes of it
            call(**params)
    assert aws.struck() == 2


def test_an_error_is_huge(aws, s3):
    aws.fault("huge", operation="PutObject", bytes=1 << 20)
    try:
        s3.put_object(Bucket="bucket", Key="key", Body=b"x")
    except botocore.exceptions.ClientError as error:
        assert len(error.response["Error"]["Message"]) == 1 << 20


def test_a_header_of_a_reply_is_changed_or_missing(aws, s3):
    aws.fault("header", operation="PutObject", name="ETag", value='"other"')
    assert s3.put_object(Bucket="bucket", Key="key", Body=b"x")["ETag"] == '"other"'
    aws.fault("header", operation="PutObject", name="ETag", value=None)
    assert "ETag" not in s3.put_object(Bucket="bucket", Key="key", Body=b"x")


def test_a_list_lags_behind(aws, s3):
    put(s3, key="old")
    time.sleep(1.2)
    put(s3, key="new")
    s3.delete_object(Bucket="bucket", Key="old")
    aws.fault("stale", operation="ListObjectsV2", lag=1)
    keys = [[row["Key"] for row in s3.list_objects_v2(Bucket="bucket").get("Contents", [])] for _ in range(2)]
    assert keys == [["old"], ["new"]]


def test_a_list_does_not_end(aws, s3):
    aws.settings(page_size=2)
    for key in "abc":
        put(s3, key=key)
    aws.fault("endless", operation="ListObjectsV2", count=0)
    pages, token = [], {}
    for _ in range(5):
        page = s3.list_objects_v2(Bucket="bucket", **token)
        pages.append([row["Key"] for row in page["Contents"]])
        token = {"ContinuationToken": page["NextContinuationToken"]}
        assert page["IsTruncated"]
    assert pages == [["a", "b"]] * 5
    aws.clear_faults()
    aws.fault("endless", operation="ListObjectsV2", count=0, fresh=True)
    tokens = [s3.list_objects_v2(Bucket="bucket")["NextContinuationToken"] for _ in range(3)]
    assert len(set(tokens)) == 3
    aws.clear_faults()
    aws.fault("repeat_token", operation="ListObjectsV2", count=0)
    first = s3.list_objects_v2(Bucket="bucket")["NextContinuationToken"]
    second = s3.list_objects_v2(Bucket="bucket", ContinuationToken=first)
    assert second["NextContinuationToken"] == first and [row["Key"] for row in second["Contents"]] == ["c"]


def test_a_rule_strikes_whom_when_and_how_often_it_says(aws, s3):
    aws.fault("throttle", operation="PutObject", key="/model/.*neff$", nth=2, count=2)
    codes = [put(s3, key=key)[1] for key in ("other", "model/a.neff", "model/b.neff", "model/c.neff", "model/d.neff")]
    assert codes == [200, 200, 503, 503, 200]
    assert aws.struck() == 2
    with pytest.raises(ValueError, match="no fault 'nonsense'"):
        aws.fault("nonsense")


def test_conditions_of_a_write_are_ignored_or_refused_although_they_hold(aws, s3):
    assert put(s3, b"first") == ("", 200)
    etag = s3.head_object(Bucket="bucket", Key="key")["ETag"]
    aws.fault("unconditional", operation="PutObject", header="if-none-match")
    assert put(s3, b"over it", IfNoneMatch="*") == ("", 200), "although it is there"
    assert put(s3, b"again", IfNoneMatch="*") == ("PreconditionFailed", 412), "it strikes once"
    aws.fault("unconditional", operation="PutObject", says=412)
    assert put(s3, b"all the same", IfMatch=etag)[1] == 412
    assert aws.objects("bucket") == {"key": b"all the same"}
    etag = s3.head_object(Bucket="bucket", Key="key")["ETag"]
    aws.fault("precondition", header="if-match")
    assert put(s3, b"without one") == ("", 200), "only whoever has the header"
    assert put(s3, b"without one", IfNoneMatch="*", key="other") == ("", 200)
    etag = s3.head_object(Bucket="bucket", Key="key")["ETag"]
    assert put(s3, b"right", IfMatch=etag) == ("PreconditionFailed", 412)
    assert put(s3, b"right", IfMatch=etag) == ("", 200)


def test_faults_do_not_hide_a_wrong_signature(aws, s3):
    aws.fault("throttle", count=0)
    assert put(aws.client("s3", secret="wrong"))[0] == "SignatureDoesNotMatch"


def test_what_is_no_http_is_shown_the_door(aws):
    for sent in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET /\r\n\r\n", b"GET / HTTP/1.1\r\nbroken\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", aws.port), timeout=10) as sock:
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)
            assert sock.recv(100) == b""
    assert aws.client("s3").list_buckets()["Buckets"] == []


def test_every_kind_of_fault_is_tested():
    folder = Path(__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("test_standin_*.py"))
    assert [kind for kind in faults.KINDS if f'"{kind}"' not in text] == []
