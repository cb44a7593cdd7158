"""What a service says when it refuses, in the protocol of that service. Codes and
statuses are those seen in the wild; where services differ, the table says how."""

import json
import uuid
from xml.sax.saxutils import escape

from standin.wire import Reply


class Refusal(Exception):
    """A request that is turned down: code, words and status, and what S3 adds in its body
    (`extra`: element → text)."""

    def __init__(self, code, message, status=400, headers=(), **extra):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status = code, message, status
        self.headers, self.extra = list(headers), extra


# What the front refuses → (code, status) by protocol. "s3" is rest-xml.
GENERIC = {
    "signature": {"s3": ("SignatureDoesNotMatch", 403), "query": ("SignatureDoesNotMatch", 403),
                  "ec2": ("AuthFailure", 401), "json": ("InvalidSignatureException", 400),
                  "rest-json": ("InvalidSignatureException", 403)},
    "incomplete": {"s3": ("AccessDenied", 403), "query": ("IncompleteSignature", 403),
                   "ec2": ("AuthFailure", 401), "json": ("IncompleteSignatureException", 400),
                   "rest-json": ("IncompleteSignatureException", 403)},
    "unsigned": {"s3": ("AccessDenied", 403), "query": ("MissingAuthenticationToken", 403),
                 "ec2": ("AuthFailure", 401), "json": ("MissingAuthenticationTokenException", 400),
                 "rest-json": ("MissingAuthenticationTokenException", 403)},
    "scope": {"s3": ("AuthorizationHeaderMalformed", 400), "query": ("SignatureDoesNotMatch", 403),
              "ec2": ("AuthFailure", 401), "json": ("InvalidSignatureException", 400),
              "rest-json": ("InvalidSignatureException", 403)},
    "skew": {"s3": ("RequestTimeTooSkewed", 403), "query": ("SignatureDoesNotMatch", 403),
             "ec2": ("RequestExpired", 400), "json": ("InvalidSignatureException", 400),
             "rest-json": ("InvalidSignatureException", 403)},
    "unknown-key": {"s3": ("InvalidAccessKeyId", 403), "query": ("InvalidClientTokenId", 403),
                    "ec2": ("AuthFailure", 401), "json": ("UnrecognizedClientException", 400),
                    "rest-json": ("UnrecognizedClientException", 403)},
    "token": {"s3": ("InvalidToken", 400), "query": ("InvalidClientTokenId", 403),
              "ec2": ("AuthFailure", 401), "json": ("UnrecognizedClientException", 400),
              "rest-json": ("UnrecognizedClientException", 403)},
    "expired": {"s3": ("ExpiredToken", 400), "query": ("ExpiredToken", 403),
                "ec2": ("RequestExpired", 400), "json": ("ExpiredTokenException", 400),
                "rest-json": ("ExpiredTokenException", 403)},
    "throttle": {"s3": ("SlowDown", 503), "query": ("Throttling", 400),
                 "ec2": ("RequestLimitExceeded", 503), "json": ("ThrottlingException", 400),
                 "rest-json": ("TooManyRequestsException", 429)},
    "internal": {"s3": ("InternalError", 500), "query": ("InternalFailure", 500),
                 "ec2": ("InternalError", 500), "json": ("InternalServerException", 500),
                 "rest-json": ("ServerException", 500)},
    "unavailable": {"s3": ("ServiceUnavailable", 503), "query": ("ServiceUnavailable", 503),
                    "ec2": ("Unavailable", 503), "json": ("ServiceUnavailableException", 503),
                    "rest-json": ("ServiceUnavailableException", 503)},
    "denied": {"s3": ("AccessDenied", 403), "query": ("AccessDenied", 403),
               "ec2": ("UnauthorizedOperation", 403), "json": ("AccessDeniedException", 400),
               "rest-json": ("AccessDeniedException", 403)},
    "invalid": {"s3": ("InvalidRequest", 400), "query": ("ValidationError", 400),
                "ec2": ("InvalidParameterValue", 400), "json": ("ValidationException", 400),
                "rest-json": ("ValidationException", 400)},
    "unknown-operation": {"s3": ("NotImplemented", 501), "query": ("InvalidAction", 400),
                          "ec2": ("InvalidAction", 400), "json": ("UnknownOperationException", 400),
                          "rest-json": ("UnknownOperationException", 404)},
    "too-large": {"s3": ("EntityTooLarge", 400), "query": ("RequestEntityTooLarge", 413),
                  "ec2": ("InvalidRequest", 413), "json": ("RequestEntityTooLargeException", 413),
                  "rest-json": ("RequestEntityTooLargeException", 413)},
}
# Services that have words of their own.
SPECIAL = {
    ("invalid", "logs"): ("InvalidParameterException", 400),
    ("invalid", "batch"): ("ClientException", 400),
    ("denied", "s3"): ("AccessDenied", 403),
}


def generic(kind, protocol, message, service=None, **more):
    code, status = SPECIAL.get((kind, service)) or GENERIC[kind][protocol]
    return Refusal(code, message, status, **more)


def request_ids(protocol):
    """Headers that say which request it was."""
    if protocol == "s3":
        return [("x-amz-request-id", uuid.uuid4().hex[:16].upper()),
                ("x-amz-id-2", uuid.uuid4().hex + uuid.uuid4().hex + "=")]
    return [("x-amzn-requestid", str(uuid.uuid4()))]


def render(refusal, protocol, ids, resource="/"):
    """The reply that says so."""
    code, message = escape(refusal.code), escape(refusal.message)
    request_id = ids[0][1]
    if protocol == "s3":
        extra = "".join(f"<{name}>{escape(str(text))}</{name}>" for name, text in refusal.extra.items())
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message>'
                f"{extra}<Resource>{escape(resource)}</Resource><RequestId>{request_id}</RequestId>"
                f"<HostId>{ids[1][1]}</HostId></Error>")
        kind = "application/xml"
    elif protocol == "query":
        who = "Sender" if refusal.status < 500 else "Receiver"
        body = (f'<ErrorResponse xmlns="https://webservices.amazon.com/2011-06-15/"><Error><Type>{who}</Type>'
                f"<Code>{code}</Code><Message>{message}</Message></Error>"
                f"<RequestId>{request_id}</RequestId></ErrorResponse>")
        kind = "text/xml"
    elif protocol == "ec2":
        body = (f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
                f"<RequestID>{request_id}</RequestID></Response>")
        kind = "text/xml"
    elif protocol == "json":
        body = json.dumps({"__type": f"com.amazonaws.service#{refusal.code}", "message": refusal.message})
        kind = "application/x-amz-json-1.1"
    else:
        body = json.dumps({"message": refusal.message})
        kind = "application/json"
    headers = [("Content-Type", kind), *ids, *refusal.headers]
    if protocol == "rest-json":
        headers.append(("x-amzn-errortype", f"{refusal.code}:"))
    return Reply(refusal.status, headers, body.encode())
