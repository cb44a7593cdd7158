"""Whatever arrives, the stand-in answers or closes, and none of its own mistakes passes
for a fault of AWS."""

import json
import random
import socket

from aws import ACCESS, REGION, SECRET
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

REQUESTS = 1500
PIECES = [b"\x00", b"\xff", b"\r\n", b"\n", b" ", b"%", b"%zz", b"%ff", b"&", b"=", b"?", b"/", b"..", b"99999999999",
          b"-1", b"<", b"]]>", b"&#x0;", b"{", b"[" * 2000, b"\"", b"\xed\xa0\x80", b";", b",", b"*", b"aws4_request",
          b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"x-amz-meta-a: b\r\n"]


def good_requests(aws, upload):
    """One of each kind, signed: what is changed in them comes far."""
    who = Credentials(ACCESS, SECRET)

    def s3(method, path, body=b"", **headers):
        return S3SigV4Auth(who, "s3", REGION), method, path, body, headers

    def other(service, method, path, body, **headers):
        return SigV4Auth(who, service, REGION), method, path, body, headers

    chunked = b"5;chunk-signature=" + b"0" * 64 + b"\r\nhello\r\n0\r\n\r\n"
    kinds = [
        s3("PUT", "/bucket/key", b"hello"), s3("GET", "/bucket/key", **{"Range": "bytes=1-2"}), s3("GET", "/"),
        s3("GET", "/bucket?list-type=2&prefix=a&max-keys=2"), s3("POST", "/bucket/key?uploads"),
        s3("PUT", f"/bucket/key?partNumber=1&uploadId={upload}", b"part"),
        s3("POST", f"/bucket/key?uploadId={upload}", b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
           b"<ETag>x</ETag></Part></CompleteMultipartUpload>"),
        s3("POST", "/bucket?delete", b"<Delete><Object><Key>a</Key></Object></Delete>",
           **{"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}),
        s3("PUT", "/bucket/key", chunked, **{"Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": "5",
                                            "X-Amz-Content-SHA256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}),
        other("logs", "POST", "/", json.dumps({"logGroupName": "g"}).encode(),
              **{"X-Amz-Target": "Logs_20140328.CreateLogGroup", "Content-Type": "application/x-amz-json-1.1"}),
        other("sts", "POST", "/", b"Action=GetCallerIdentity&Version=2011-06-15",
              **{"Content-Type": "application/x-www-form-urlencoded"}),
        other("batch", "POST", "/v1/describejobs", b'{"jobs": ["a"]}', **{"Content-Type": "application/json"})]
    for signer, method, path, body, headers in kinds:
        request = AWSRequest(method, aws.url + path, headers, body)
        signer.add_auth(request)
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{aws.port}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        yield "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def changed(chance, raw):
    for _ in range(chance.randint(1, 3)):
        at, what = chance.randrange(len(raw)), chance.random()
        if what < 0.4:
            raw = raw[:at] + chance.choice(PIECES) + raw[at:]
        elif what < 0.7:
            raw = raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1:]
        elif what < 0.9:
            raw = raw[:at] + raw[at + chance.randint(1, 20):]
        else:
            raw = raw[:at]
        raw = raw or b"\r\n\r\n"
    return raw


def test_whatever_arrives_is_answered_or_closed(aws, s3):
    chance = random.Random(1)
    upload = s3.create_multipart_upload(Bucket="bucket", Key="key")["UploadId"]
    good, statuses = list(good_requests(aws, upload)), {}
    for _ in range(REQUESTS):
        with socket.create_connection(("127.0.0.1", aws.port), timeout=20) as sock:
            try:
                sock.sendall(changed(chance, chance.choice(good)))
                sock.shutdown(socket.SHUT_WR)
                status = sock.recv(65536)[9:12]
            except (ConnectionResetError, BrokenPipeError):
                status = b"reset"
            statuses[status] = statuses.get(status, 0) + 1
    assert aws.control("GET", "broken") == []
    assert {b"200", b"400", b"403"} <= set(statuses), statuses
    assert aws.client("s3").list_buckets()["Buckets"]
