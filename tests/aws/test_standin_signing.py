"""The stand-in's own verification against a second oracle: what botocore signs passes,
whatever it is about, and a change of one character anywhere does not."""

import datetime
import random
from urllib.parse import quote

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from standin import sigv4
from standin.errors import Refusal
from standin.keyring import Keyring
from standin.wire import Body, Request

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NOW = 1440938160.0  # 2015-08-30T12:36:00Z
PIECES = ["a", "Z", "0", " ", "+", "=", "/", "//", ".", "..", "%", "%2F", "é", "à", "😀", "&", "?", ";", "~", "*", "'",
          "(", "\t"]


def keyring():
    ring = Keyring(lambda: NOW)
    ring.add("AKIDEXAMPLE", SECRET)
    ring.add("ASIDEXAMPLE", SECRET, token="a token/with+signs=")
    return ring


def text_of(chance, most=6):
    return "".join(chance.choices(PIECES, k=chance.randint(1, most)))


def sign(monkeypatch, chance, s3):
    """A request as botocore would send it, as the wire hands it over."""
    monkeypatch.setattr(auth, "get_current_datetime", lambda **_: datetime.datetime(2015, 8, 30, 12, 36, 0))
    key = text_of(chance)
    path = "/" + (quote(key, safe="/~") if s3 else "/".join(quote(each, safe="~") for each in key.split("/")))
    query = "&".join(f"{quote(text_of(chance), safe='~')}={quote(text_of(chance), safe='~')}"
                     for _ in range(chance.randint(0, 4)))
    url = f"http://127.0.0.1:5000{path}" + (f"?{query}" if query else "")
    headers = {"x-amz-meta-a": "  several   words ",
               "x-amz-meta-a-b": text_of(chance).strip() or "x"}
    body = chance.randbytes(chance.randint(0, 50))
    token = chance.choice([None, "a token/with+signs="])
    who = Credentials("ASIDEXAMPLE" if token else "AKIDEXAMPLE", SECRET, token)
    request = AWSRequest(chance.choice(["GET", "PUT", "DELETE"]), url, dict(headers), body)
    (auth.S3SigV4Auth if s3 else auth.SigV4Auth)(who, "s3" if s3 else "batch", "eu-west-1").add_auth(request)
    target = path + (f"?{query}" if query else "")
    raw = [("Host", "127.0.0.1:5000"), *((name, str(value).encode().decode("latin-1"))
                                          for name, value in request.headers.items())]
    arrived = Request(request.method, target, raw, ("127.0.0.1", 1))
    arrived.body = Body("/nonexistent")
    arrived.body.write(body)
    return arrived


def verdict(request):
    try:
        claim = sigv4.read_claim(request)
        service = claim.service
        sigv4.verify(request, claim, keyring(), NOW, "s3" if service == "s3" else "rest-json", service)
        sigv4.check_payload(request, "s3", service)
    except ValueError as error:
        return str(error)
    except Refusal as refusal:
        return refusal.code
    return ""


@pytest.mark.parametrize("s3", [True, False], ids=["s3", "others"])
def test_what_botocore_signs_passes(monkeypatch, s3):
    chance = random.Random(1)
    for number in range(1500):
        request = sign(monkeypatch, chance, s3)
        assert verdict(request) == "", f"{number}: {request.target} {request.raw_headers}"


@pytest.mark.parametrize("s3", [True, False], ids=["s3", "others"])
def test_what_is_changed_afterwards_does_not(monkeypatch, s3):
    chance = random.Random(2)
    for number in range(500):
        request = sign(monkeypatch, chance, s3)
        change = chance.choice(["path", "query", "header", "method", "body", "new header", "date", "region"])
        if change == "path":
            request.path += "x"
        elif change == "query":
            request.query += "&x=1" if request.query else "x=1"
        elif change == "header":
            request.headers["x-amz-meta-a"] += "x"
        elif change == "method":
            request.method = "POST"
        elif change == "body":
            request.body.write(b"x")
        elif change == "new header":
            request.headers["x-amz-acl"] = "public-read"
        elif change == "date":
            request.headers["x-amz-date"] = "20150830T123601Z"
        else:
            request.headers["authorization"] = request.headers["authorization"].replace("eu-west-1", "eu-west-2")
        assert verdict(request) != "", f"{number}: {change}"


def test_the_published_example_verifies():
    """get-vanilla-query-order-key-case of AWS's signing test suite."""
    signature = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
    authorization = ("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                     f"SignedHeaders=host;x-amz-date, Signature={signature}")
    request = Request("GET", "/?Param2=value2&Param1=value1", [
        ("Host", "example.amazonaws.com"), ("X-Amz-Date", "20150830T123600Z"), ("Authorization", authorization)], None)
    request.body = Body("/nonexistent")
    assert verdict(request) == ""
    request.query = "Param1=value1&Param2=value2"  # the order does not matter
    assert verdict(request) == ""


def test_a_path_is_rebuilt_as_aws_does_it():
    """A raw '=' or ':' in a path reaches AWS as one that has to be encoded."""
    assert sigv4.canonical_path("/bucket/a=b:c//../d%2be", True) == "/bucket/a%3Db%3Ac//../d%2Be"
    assert sigv4.canonical_path("/schedules/a%20b//./x/../c", False) == "/schedules/a%2520b/c"


@pytest.mark.parametrize("change, why", [
    (lambda text: text.replace("SignedHeaders=host;", "SignedHeaders="), "SignatureDoesNotMatch"),
    (lambda text: text.replace("host;x-amz-content-sha256", "x-amz-content-sha256;host"), "not sorted"),
    (lambda text: text.replace("aws4_request", "aws4"), "scope"), (lambda text: "Basic x", "malformed"),
    (lambda text: text.replace("20150830/", "20150831/"), "date")])
def test_a_header_that_is_no_claim_is_refused(monkeypatch, change, why):
    chance = random.Random(3)
    request = sign(monkeypatch, chance, True)
    request.headers["authorization"] = change(request.headers["authorization"])
    assert why in verdict(request)
