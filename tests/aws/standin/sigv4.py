"""Is this request signed by who it says? An implementation of its own of "Create a signed
AWS API request" (AWS General Reference), from the side of the service: path and query
are rebuilt from what they decode to, as AWS does, so that a client which signs what it
sends but sends what AWS would write otherwise is refused here too."""

import calendar
import functools
import hashlib
import hmac
import re
import time
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from standin import errors

SKEW = 15 * 60
ALGORITHM = "AWS4-HMAC-SHA256"
STREAMING = "STREAMING-"
UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY = hashlib.sha256(b"").hexdigest()
AUTHORIZATION = re.compile(
    ALGORITHM + r" +Credential=([^,\s]+),\s*SignedHeaders=([^,\s]+),\s*Signature=([0-9a-f]{64})")
BLANKS = re.compile(r"[ \t]+")
DATE = re.compile(r"\d{8}T\d{6}Z")


@dataclass
class Claim:
    """What a request says about itself."""
    access: str
    day: str
    region: str
    service: str
    signed: list       # names of headers, in lower case
    signature: str
    date: str
    token: str | None
    presigned: bool = False
    expires: int = 0

    @property
    def scope(self):
        return f"{self.day}/{self.region}/{self.service}/aws4_request"


@functools.lru_cache(maxsize=512)
def signing_key(secret, day, region, service):
    key = ("AWS4" + secret).encode()
    for word in (day, region, service, "aws4_request"):
        key = hmac.digest(key, word.encode(), "sha256")
    return key


def pairs_of(query):
    """(name, value) of a query, decoded to bytes."""
    for part in query.split("&"):
        if part:
            name, _, value = part.partition("=")
            yield unquote_to_bytes(name.replace("+", " ")), unquote_to_bytes(value.replace("+", " "))


def canonical_query(query):
    encoded = [(quote(name, safe="-_.~"), quote(value, safe="-_.~"))
               for name, value in pairs_of(query) if name != b"X-Amz-Signature"]
    return "&".join(f"{name}={value}" for name, value in sorted(encoded))


def canonical_path(path, is_s3):
    if is_s3:
        return quote(unquote_to_bytes(path), safe="/-_.~")
    kept = []
    for segment in path.split("/"):
        if segment == "..":
            kept = kept[:-1]
        elif segment not in ("", "."):
            kept.append(quote(quote(unquote_to_bytes(segment), safe="-_.~"), safe="-_.~"))
    return "/" + "/".join(kept) + ("/" if kept and path.endswith("/") else "")


def canonical_request(request, claim, payload):
    lines = []
    for name in claim.signed:
        value = request.headers.get(name)
        if value is None:
            return None
        lines.append(f"{name}:{BLANKS.sub(' ', value).strip(' ')}")
    return "\n".join((request.method, canonical_path(request.path, claim.service == "s3"),
                      canonical_query(request.query), *lines, "", ";".join(claim.signed), payload))


def signature_of(secret, claim, canonical):
    digest = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
    text = f"{ALGORITHM}\n{claim.date}\n{claim.scope}\n{digest}"
    key = signing_key(secret, claim.day, claim.region, claim.service)
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def read_claim(request):
    """The claim of a request, or None if it makes none. ValueError: what it says is no claim."""
    header = request.header("authorization")
    if header is not None:
        match = AUTHORIZATION.fullmatch(header)
        if not match:
            raise ValueError("the Authorization header is malformed")
        credential, signed, signature = match.groups()
        date, token = request.header("x-amz-date"), request.header("x-amz-security-token")
        presigned, expires = False, 0
    elif "X-Amz-Signature=" in request.query:
        query = {name.decode("latin-1"): value.decode("latin-1") for name, value in pairs_of(request.query)}
        if query.get("X-Amz-Algorithm") != ALGORITHM:
            raise ValueError("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"")
        credential, signed = query.get("X-Amz-Credential", ""), query.get("X-Amz-SignedHeaders", "")
        signature, date, token = query["X-Amz-Signature"], query.get("X-Amz-Date"), query.get("X-Amz-Security-Token")
        presigned, expires = True, query.get("X-Amz-Expires", "")
        if not expires.isdigit() or not 1 <= int(expires) <= 604800:
            raise ValueError("X-Amz-Expires must be between 1 and 604800 seconds")
    else:
        return None
    words = credential.rsplit("/", 4)
    if len(words) != 5 or words[4] != "aws4_request":
        raise ValueError("the credential scope is malformed")
    if not date or not DATE.fullmatch(date) or date[:8] != words[1]:
        raise ValueError("the date is missing, malformed or not that of the scope")
    time.strptime(date, "%Y%m%dT%H%M%SZ")  # a ValueError if there is no such time
    names = signed.split(";")
    if names != sorted(set(names)) or signed != signed.lower():
        raise ValueError("SignedHeaders is not sorted and in lower case")
    return Claim(words[0], words[1], words[2], words[3], names, signature, date, token, presigned, int(expires))


def check_headers(request, claim, refuse):
    """What must be signed is."""
    if "host" not in claim.signed:
        raise refuse("signature", "the Host header must be signed")
    open_to_change = sorted(name for name in request.headers
                            if name.startswith("x-amz-") and name not in claim.signed)
    if open_to_change:
        raise refuse("incomplete", "There were headers present in the request which were not signed: "
                     + ", ".join(open_to_change))


def check_time(claim, now, refuse):
    then = calendar.timegm(time.strptime(claim.date, "%Y%m%dT%H%M%SZ"))
    if claim.presigned:
        if now > then + claim.expires:
            raise refuse("denied", "Request has expired")
        if then > now + SKEW:
            raise refuse("denied", "Request is not yet valid")
    elif abs(now - then) > SKEW:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        way = "Signature expired" if then < now else "Signature not yet current"
        raise refuse("skew", f"{way}: {claim.date} is too far from {stamp}",
                     RequestTime=claim.date, ServerTime=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
                     MaxAllowedSkewMilliseconds=SKEW * 1000)


def check_key(claim, key, now, refuse):
    if key is None:
        raise refuse("unknown-key", "The AWS Access Key Id you provided does not exist in our records.",
                     AWSAccessKeyId=claim.access)
    if key.token != claim.token:
        raise refuse("token", "The provided token is malformed or otherwise invalid.")
    if key.expires is not None and now >= key.expires:
        raise refuse("expired", "The provided token has expired.")


def verify(request, claim, keyring, now, protocol, service):
    """Everything but the body's own digest: the key of who signed. Refuses otherwise."""
    def refuse(kind, message, **extra):
        return errors.generic(kind, protocol, message, service, **extra if protocol == "s3" else {})

    check_headers(request, claim, refuse)
    key = keyring.find(claim.access)
    check_key(claim, key, now, refuse)
    check_time(claim, now, refuse)
    payload = request.header("x-amz-content-sha256")
    if claim.service == "s3":
        if claim.presigned:
            payload = payload or UNSIGNED
        elif payload is None:
            raise errors.Refusal("MissingSecurityHeader", "Your request was missing a required header: "
                                 "x-amz-content-sha256", 400, MissingHeaderName="x-amz-content-sha256")
    elif payload is None:
        payload = request.body.sha256.hexdigest()
    canonical = canonical_request(request, claim, payload)
    if canonical is None:
        raise refuse("signature", "A header named in SignedHeaders was not sent")
    if not hmac.compare_digest(signature_of(key.secret, claim, canonical), claim.signature):
        raise refuse("signature", "The request signature we calculated does not match the signature you provided. "
                     "Check your key and signing method.", CanonicalRequest=canonical, StringToSignDate=claim.date,
                     AWSAccessKeyId=claim.access)
    return key


def check_payload(request, protocol, service):
    """What came is what was signed."""
    said = request.header("x-amz-content-sha256")
    if said is None or said == UNSIGNED or said.startswith(STREAMING):
        return
    if len(said) != 64 or said != request.body.sha256.hexdigest():
        if protocol == "s3":
            raise errors.Refusal("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not "
                                 "match what was computed.", 400, ClientComputedContentSHA256=said,
                                 S3ComputedContentSHA256=request.body.sha256.hexdigest())
        raise errors.generic("signature", protocol, "x-amz-content-sha256 is not that of the body", service)
