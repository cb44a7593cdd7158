"""Thousands of generated requests, each as hostile as HTTP lets it be, are signed by
botocore and by stoker: what was signed, the signature and the whole of the header or
of the URL are the same, byte for byte."""

import datetime
import hashlib
import json
import os
import random
import subprocess
from urllib.parse import quote, urlsplit

import botocore.auth
import pytest
import stoker
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

SIGN_LINES = stoker.BINARY.parent / "tests/sign_lines"
SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))
EACH = 3500  # requests of each of the four kinds

EXAMPLE_SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
# What a key, a parameter or a path may be made of. Each is used: see the last test.
PIECES = [
    " ", "  ", "+", "=", "==", "&", "/", "//", "///", ".", "..", "/./", "/../", "%", "%20", "%2F",
    "%zz", "?", "#", ";", ":", "@", "*", "'", '"', "(", ")", "[", "]", "{", "}", "<", ">", "|", "\\",
    "^", "`", "~", "-", "_", "!", "$", ",", "\t", "\n", "\r", "\x01", "\x1b", "\x7f", "\x80", "\xa0",
    "é", "e\u0301", "ß", "İ", "ſ", "漢字", "עברית", "\u202e", "\u2028", "\ufeff", "\ufffd", "😀",
    "👩‍🚀", "\U0010ffff", "a", "A", "z", "Z", "0", "9", "model.neff", "MODULE_12+a1b2",
]
# HTTP carries headers as bytes: white space is what ASCII calls so.
VALUE_PIECES = [piece for piece in PIECES if not piece.isspace() and piece not in "\x80\xa0\x01\x1b"
                and not any(c.isspace() and ord(c) > 127 for c in piece)] + [" ", "  ", "\t", " \t ", "\r\n  "]
NAMES = ["x-amz-meta-a", "x-amz-meta-a-b", "x-amz-meta-a_b", "X-Amz-Meta-A", "x-amz-meta-aa", "Range",
         "content-type", "Content-Length", "Content-MD5", "if-match", "If-None-Match", "x-amz-target",
         "x-amz-acl", "X-Amz-Checksum-Sha256", "amz-sdk-request", "Accept", "a", "~", "zz", "X-1"]
CHANGED_ON_THE_WAY = botocore.auth.SIGNED_HEADERS_BLACKLIST
SERVICES = ["sagemaker", "batch", "logs", "sts", "scheduler", "states", "ecr", "ec2", "iam", "servicequotas"]
REGIONS = ["us-east-1", "eu-central-1", "us-gov-west-1", "cn-north-1", "local", "aws-global"]
BUCKETS = ["bucket", "my.bucket-1", "a" * 63]


def text(chance, pieces, most):
    return "".join(chance.choice(pieces) for _ in range(chance.randint(1, most)))


def token(chance):
    return "".join(chance.choices("ABCxyz019+/=", k=chance.choice([1, 20, 400, 1200])))


def a_path(chance, s3):
    """As it is before it is encoded."""
    shape = chance.random()
    if shape < 0.05:
        return "/"
    if shape < 0.1:
        return "/" + "k" * chance.choice([1, 255, 1024])
    path = "/" + text(chance, PIECES, 12)
    return f"/{chance.choice(BUCKETS)}{path}" if s3 and chance.random() < 0.5 else path


def some_params(chance, once):
    """(name, value) pairs; a value of None is a bare name. `once`: botocore's presigner keeps
    one of each name and gives every one an equals sign."""
    params = []
    for _ in range(chance.choice([0, 0, 1, 2, 3, 8, 30])):
        name = chance.choice(["uploads", "prefix", "list-type", "partNumber", "uploadId", "max-keys",
                              "X-a", "x-a", text(chance, PIECES, 3)])
        value = chance.choice([None, "", "1", "2", "10", text(chance, PIECES, 6)])
        if once and (value is None or any(name == other for other, _ in params)):
            continue
        params.append([name, value])
    return params


def some_headers(chance):
    headers = []
    for _ in range(chance.choice([0, 1, 2, 5, 12])):
        name = chance.choice(NAMES if chance.random() < 0.85 else CHANGED_ON_THE_WAY)
        name = chance.choice([name, name.upper(), name.title()])
        headers.append([name, chance.choice(["", " ", "text/plain", text(chance, VALUE_PIECES, 8)])])
    return headers


def a_host(chance, scheme):
    """(as it stands in the URL, as it is sent)"""
    host = chance.choice(["s3.us-east-1.amazonaws.com", "bucket.s3.amazonaws.com", "127.0.0.1", "[::1]", "[fd00:ec2::23]",
                          "localhost", "Example.AmazonAWS.com"])
    port = chance.choice([None, 80, 443, 9000])
    own = {"http": 80, "https": 443}[scheme]
    sent = host.lower() + (f":{port}" if port not in (None, own) else "")
    return (host if port is None else f"{host}:{port}"), sent


def a_request(chance, s3, presigned):
    scheme = chance.choice(["http", "https"])
    url_host, host = a_host(chance, scheme)
    body = chance.choice([b"", b"{}", chance.randbytes(chance.randint(1, 300))])
    return {
        "method": chance.choice(["GET", "PUT", "POST", "DELETE", "HEAD"]),
        "scheme": scheme, "url_host": url_host, "host": host,
        "path": a_path(chance, s3),
        "params": some_params(chance, once=presigned),
        "headers": some_headers(chance),
        "body": body.hex(),
        # S3 may leave a body unsigned, over TLS.
        "unsigned": s3 and not presigned and scheme == "https" and chance.random() < 0.3,
        "payload": hashlib.sha256(body).hexdigest(),
        "region": chance.choice(REGIONS),
        "service": "s3" if s3 else chance.choice(SERVICES),
        "s3": s3,
        "access_key": chance.choice(["AKIDEXAMPLE", "ASIA" + "X" * 16, text(chance, "AZaz09+/=", 30)]),
        "secret_key": chance.choice([EXAMPLE_SECRET, text(chance, "AZaz09+/=é", 100)]),
        "token": token(chance) if chance.random() < 0.4 else None,
        # From 1971 to 2099; and few days, so that a kept key is used again.
        "at": 1000 * chance.choice([chance.randint(31536000, 4102444799), 1440938160, 1709251199]),
        "expires": chance.choice([1, 60, 3600, 604800]) if presigned else None,
    }


class Moment:
    """What botocore takes for the time."""

    def __init__(self, monkeypatch):
        self.ms = 0
        monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *_, **__: datetime.datetime.fromtimestamp(
            self.ms / 1000, datetime.timezone.utc))


def signer(asked):
    """botocore's, which keeps what it signed."""
    kinds = {(True, False): botocore.auth.S3SigV4Auth, (True, True): botocore.auth.S3SigV4QueryAuth,
             (False, False): botocore.auth.SigV4Auth, (False, True): botocore.auth.SigV4QueryAuth}
    base = kinds[asked["s3"], asked["expires"] is not None]

    class Keeping(base):
        kept = None

        def canonical_request(self, request):
            self.kept = super().canonical_request(request)
            return self.kept

    more = {"expires": asked["expires"]} if asked["expires"] else {}
    return Keeping(Credentials(asked["access_key"], asked["secret_key"], asked["token"]), asked["service"],
                   asked["region"], **more)


def by_botocore(asked, moment):
    query = "&".join(quote(name, safe="-_.~") + ("" if value is None else "=" + quote(value, safe="-_.~"))
                     for name, value in asked["params"])
    url = f"{asked['scheme']}://{asked['url_host']}{quote(asked['path'], safe='/-_.~')}" + (f"?{query}" if query else "")
    request = AWSRequest(method=asked["method"], url=url, data=bytes.fromhex(asked["body"]) or None)
    if asked["expires"]:  # the body of a presigned request is not known: it would go into the query
        request = AWSRequest(method=asked["method"], url=url)
    for name, value in asked["headers"]:
        request.headers[name] = value
    if asked["unsigned"]:
        request.context["client_config"] = type("Config", (), {"s3": {"payload_signing_enabled": False}})
    moment.ms = asked["at"]
    auth = signer(asked)
    auth.add_auth(request)
    if asked["expires"]:
        return {"canonical": auth.kept, "query": urlsplit(request.url).query}
    authorization = request.headers["Authorization"]
    return {"canonical": auth.kept, "authorization": authorization, "date": request.headers["X-Amz-Date"],
            "signature": authorization.rpartition("=")[2]}


def by_stoker(requests):
    lines = []
    for asked in requests:
        told = {**asked, "payload": "UNSIGNED-PAYLOAD" if asked["unsigned"] else asked["payload"]}
        if asked["expires"]:
            told["payload"] = hashlib.sha256(b"").hexdigest()
        lines.append(json.dumps(told) + "\n")
    done = subprocess.run([SIGN_LINES], input="".join(lines), capture_output=True, text=True, check=False,
                          env=stoker.environment())
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def generated(s3, presigned):
    chance = random.Random(f"{SEED} {s3} {presigned}")
    return [a_request(chance, s3, presigned) for _ in range(EACH)]


@pytest.mark.parametrize("presigned", [False, True], ids=["header", "presigned"])
@pytest.mark.parametrize("s3", [True, False], ids=["s3", "others"])
def test_every_request_is_signed_as_botocore_signs_it(monkeypatch, s3, presigned):
    moment = Moment(monkeypatch)
    requests = generated(s3, presigned)
    ours = by_stoker(requests)
    assert len(ours) == EACH
    for asked, mine in zip(requests, ours, strict=True):
        theirs = by_botocore(asked, moment)
        assert mine["canonical"] == theirs["canonical"], f"seed {SEED}: {asked}"
        assert mine == theirs, f"seed {SEED}: {asked}"


def test_the_requests_are_as_hostile_as_they_should_be():
    requests = [asked for s3 in (True, False) for presigned in (True, False) for asked in generated(s3, presigned)]
    paths = "\0".join(asked["path"] for asked in requests)
    params = "\0".join(f"{name}\1{value}" for asked in requests for name, value in asked["params"])
    values = "\0".join(value for asked in requests for _, value in asked["headers"])
    assert [piece for piece in PIECES if piece not in paths or piece not in params] == []
    assert [piece for piece in VALUE_PIECES if piece not in values] == []
    assert len(requests) >= 10_000
    assert len({asked["path"] for asked in requests}) > 9_000
    assert any(value is None for asked in requests for _, value in asked["params"])
    assert any(asked["unsigned"] for asked in requests) and any(asked["token"] for asked in requests)
    names = [[name.lower() for name, _ in asked["headers"]] for asked in requests]
    assert any(len(set(each)) < len(each) for each in names), "no header is repeated"
    assert set(CHANGED_ON_THE_WAY) <= {name for each in names for name in each}


def test_a_wrong_secret_makes_another_signature():
    right = generated(s3=True, presigned=False)[:50]
    wrong = [{**asked, "secret_key": asked["secret_key"] + "x"} for asked in right]
    for one, other in zip(by_stoker(right), by_stoker(wrong), strict=True):
        assert one["canonical"] == other["canonical"] and one["signature"] != other["signature"]
