"""The stand-in's front: who may pass, and in which words the others are told."""

import hashlib
import urllib.request

import botocore.exceptions
import pytest
from aws import ACCESS, OTHER_ACCESS, OTHER_SECRET, REGION


def refused(call, *args, **kwargs):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(*args, **kwargs)
    error = caught.value.response
    return error["Error"]["Code"], error["ResponseMetadata"]["HTTPStatusCode"]


def test_whoever_signs_with_a_known_key_passes(aws):
    assert aws.client("s3").list_buckets()["Buckets"] == []
    assert aws.client("s3", OTHER_ACCESS, OTHER_SECRET).list_buckets()["Buckets"] == []
    assert aws.client("sts").get_caller_identity()["Account"] == "123456789012"


@pytest.mark.parametrize("service, call, code, status", [
    ("s3", "list_buckets", "SignatureDoesNotMatch", 403),
    ("sts", "get_caller_identity", "SignatureDoesNotMatch", 403),
    ("logs", "describe_log_groups", "InvalidSignatureException", 400),
    ("sagemaker", "list_training_jobs", "InvalidSignatureException", 400),
    ("batch", "describe_job_queues", "InvalidSignatureException", 403),
])
def test_a_wrong_secret_is_refused_in_the_words_of_each_service(aws, service, call, code, status):
    assert refused(getattr(aws.client(service, secret="wrong"), call)) == (code, status)
    assert aws.ledger()[-1]["code"] == code


@pytest.mark.parametrize("service, call, code", [
    ("s3", "list_buckets", "InvalidAccessKeyId"), ("sts", "get_caller_identity", "InvalidClientTokenId"),
    ("logs", "describe_log_groups", "UnrecognizedClientException")])
def test_an_unknown_key_is_refused(aws, service, call, code):
    assert refused(getattr(aws.client(service, access="AKIDNOBODY"), call))[0] == code


def test_keys_of_a_role_pass_with_their_token_only_until_they_expire(aws):
    keys = aws.client("sts").assume_role(RoleArn="arn:aws:iam::111122223333:role/worker",
                                         RoleSessionName="session")["Credentials"]
    pair = keys["AccessKeyId"], keys["SecretAccessKey"]
    who = aws.client("sts", *pair, keys["SessionToken"]).get_caller_identity()
    assert who["Arn"] == "arn:aws:sts::111122223333:assumed-role/worker/session"
    assert refused(aws.client("s3", *pair, "another token").list_buckets)[0] == "InvalidToken"
    assert refused(aws.client("s3", *pair).list_buckets)[0] == "InvalidToken"
    aws.expire(keys["AccessKeyId"])
    assert refused(aws.client("s3", *pair, keys["SessionToken"]).list_buckets)[0] == "ExpiredToken"
    assert refused(aws.client("logs", *pair, keys["SessionToken"]).describe_log_groups)[0] == "ExpiredTokenException"


def test_nobody_passes_without_a_signature(aws, s3):
    s3.put_object(Bucket="bucket", Key="key", Body=b"x")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{aws.url}/bucket/key")
    assert caught.value.code == 403 and b"<Code>AccessDenied</Code>" in caught.value.read()


def test_a_request_from_another_time_is_refused_and_told_the_time(aws):
    aws.settings(clock_offset=16 * 60)
    assert refused(aws.client("s3").list_buckets) == ("RequestTimeTooSkewed", 403)
    assert refused(aws.client("logs").describe_log_groups) == ("InvalidSignatureException", 400)
    aws.settings(clock_offset=14 * 60)
    assert aws.client("s3").list_buckets()["Buckets"] == []


def altered(client, event, change):
    """A client whose requests are changed after they have been signed."""
    client.meta.events.register(f"before-send.{event}", lambda request, **_: change(request))
    return client


def test_what_is_changed_on_the_way_is_noticed(aws, s3):
    def add_header(request):
        request.headers["x-amz-acl"] = "public-read"

    def other_body(request):
        request.body = b"others"

    def other_key(request):
        request.url = request.url.replace("/bucket/key", "/bucket/other")

    def no_digest(request):
        del request.headers["X-Amz-Content-SHA256"]

    for change, codes in ((add_header, ("AccessDenied",)), (other_body, ("XAmzContentSHA256Mismatch",)),
                          (other_key, ("SignatureDoesNotMatch",)),
                          (no_digest, ("MissingSecurityHeader", "SignatureDoesNotMatch"))):
        client = altered(aws.client("s3"), "s3.PutObject", change)
        assert refused(client.put_object, Bucket="bucket", Key="key", Body=b"secret")[0] in codes
    assert aws.effects("PutObject") == 0


def test_a_presigned_url_is_good_for_anybody_for_its_time(aws, s3):
    s3.put_object(Bucket="bucket", Key="a key", Body=b"content")
    url = s3.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "a key"}, 60)
    assert urllib.request.urlopen(url).read() == b"content"
    for changed in (url.replace("Expires=60", "Expires=61"), url.replace("a%20key", "akey")):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(changed)
        assert caught.value.code == 403
    aws.settings(clock_offset=90)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url)
    assert b"Request has expired" in caught.value.read()


def test_a_request_says_which_it_was(aws, s3):
    said = s3.put_object(Bucket="bucket", Key="key", Body=b"x")["ResponseMetadata"]
    assert aws.ledger()[-1]["request_id"] == said["RequestId"] and len(said["HostId"]) > 40
    said = aws.client("sts").get_caller_identity()["ResponseMetadata"]
    assert aws.ledger()[-1]["request_id"] == said["HTTPHeaders"]["x-amzn-requestid"]


def test_the_ledger_tells_requests_from_effects(aws, s3):
    start = aws.mark()
    s3.put_object(Bucket="bucket", Key="key", Body=b"x", IfNoneMatch="*")
    assert refused(s3.put_object, Bucket="bucket", Key="key", Body=b"y", IfNoneMatch="*") == ("PreconditionFailed", 412)
    s3.delete_object(Bucket="bucket", Key="nothing there")
    assert aws.requests("PutObject", start) == 2 and aws.effects("PutObject", start) == 1
    assert aws.requests("DeleteObject", start) == 1 and aws.effects("DeleteObject", start) == 0
    entry = aws.ledger(start)[0]
    assert (entry["name"], entry["access_key"], entry["region"], entry["payload"]) == (
        "bucket/key", ACCESS, REGION, hashlib.sha256(b"x").hexdigest())
