"""What goes wrong on demand. A rule says which requests it strikes and how; rules are
given over the control endpoint and strike in the order in which they were given, at most
one a request.

  match  service, operation (exact), method, header (it has one of that name), key (a regular
         expression, searched in "bucket/key" or the name that a request is about), prefix (the
         same, searched in what a listing asks for), nth (strike from the n-th match on, default
         1), count (how often, default 1, 0: always), behind (the id of another rule: before that
         one has struck, this one counts nothing)
  kind   see KINDS; other fields are its parameters"""

import itertools
import os
import re
import threading
import time

from standin import errors
from standin.wire import Reply

KINDS = {
    # before the body has been read; no effect
    "reset_before": "the connection is reset before the body is read",
    "reset_body": "it is reset in the midst of the body (bytes, default: half)",
    "hang": "nothing is said for `seconds` (60), then the connection is reset",
    "slow_read": "the body is read `step` bytes (4096) each `interval` seconds (0.05)",
    # instead of the effect
    "throttle": "the service's own word for too many requests",
    "internal": "the service's 500",
    "unavailable": "the service's 503",
    "bad_gateway": "a 502 of a proxy, in HTML",
    "error": "`code`, `status` (400), `message`, in the service's protocol",
    "error_200": "S3: status 200, an error document of `code` (InternalError), `spaces` (0) in it as it is slow",
    "conflict": "S3: 409 ConditionalRequestConflict",
    "precondition": "S3: 412 PreconditionFailed, whether the conditions hold or not",
    "redirect": "S3: 301 PermanentRedirect to `region`",
    "expired": "the service's word for an expired token",
    "denied": "the service's word for a missing permission",
    "garbage": "`status` (200) and `what` is no reply at all: html, xml, json, binary, empty",
    "huge": "an error document of `bytes` (1 MiB), `status` (400)",
    # the time
    "skew": "the service's clock is `seconds` off: for the check of the signature and for Date",
    "date": "only the Date of the reply is `seconds` off",
    # the effect takes place
    "unconditional": "S3: a write is done whatever its conditions say; `says` 412: and answered so",
    "delay": "the request is handled after `seconds` (1), or once the file `until` is there",
    "delay_after": "it is handled, and answered after `seconds` (1)",
    "lost": "it is handled, and the connection is reset instead of a reply",
    "truncate": "the reply's body ends after `bytes` (default: half)",
    "slow": "the reply comes `step` bytes (16) each `interval` seconds (0.05)",
    "corrupt": "one byte of the reply's body is another (at `at`, default: the middle)",
    "replace": "what `pattern` finds in the reply's body is `text` (default: nothing)",
    "header": "header `name` of the reply is `value` (null: left out)",
    # jobs: CreateTrainingJob or SubmitJob succeeds, but the job …
    "job_pending": "waits for capacity for `seconds` (1), or until the file `until` is there",
    "job_fails": "fails with `reason`, before it starts or `after` seconds, or once the file `when` is there",
    "job_interrupted": "loses its host `after` seconds, or `when`, once, `hard`: without a warning",
    # lists
    "stale": "a list as of `lag` seconds ago (3600)",
    "repeat_token": "a list that gives back the token it was asked with",
    "endless": "each page is the first, and there is always another: the same token, or `fresh` ones",
}
GENERIC = ("throttle", "internal", "unavailable", "expired", "denied")
GARBAGE = {
    "html": (b"<html><head><title>Sign in</title></head><body><h1>It works!</h1></body></html>", "text/html"),
    "xml": (b"<?xml version=\"1.0\"?><ListBucketResult><Contents><Key>a</Key", "application/xml"),
    "json": (b"{\"__type\": [1, 2, {\"message\": ", "application/json"),
    "binary": (bytes(range(256)) * 8, "application/octet-stream"),
    "empty": (b"", "application/xml"),
}
ids = itertools.count(1)


class Rule:
    def __init__(self, fields):
        fields = dict(fields)
        self.kind = fields.pop("kind")
        if self.kind not in KINDS:
            raise ValueError(f"there is no fault '{self.kind}': {', '.join(KINDS)}")
        self.service, self.operation = fields.pop("service", None), fields.pop("operation", None)
        self.method, self.pattern = fields.pop("method", None), fields.pop("key", None)
        self.header, prefix = fields.pop("header", None), fields.pop("prefix", None)
        self.prefix = re.compile(prefix) if prefix else None
        self.nth, self.count = int(fields.pop("nth", 1)), int(fields.pop("count", 1))
        self.behind = fields.pop("behind", None)
        self.search = re.compile(self.pattern) if self.pattern else None
        self.fields, self.id, self.seen, self.struck = fields, next(ids), 0, 0

    def number(self, name, default):
        return type(default)(self.fields.get(name, default))

    def waits(self):
        """Whether it strikes in the middle of a job, and not before it starts."""
        return bool(self.fields.get("after") or self.fields.get("when"))

    def is_due(self, began):
        """Of a job that runs since then."""
        when = self.fields.get("when")
        return os.path.exists(when) if when else time.monotonic() - began > self.number("after", 0.0)

    def is_over(self, began, default=1.0):
        """Of what takes its time since then: a file says when, or a number of seconds."""
        until = self.fields.get("until")
        return os.path.exists(until) if until else time.monotonic() - began >= self.number("seconds", default)

    def matches(self, call):
        return (self.service in (None, call.service) and self.operation in (None, call.operation)
                and self.method in (None, call.request.method)
                and (not self.header or call.header(self.header) is not None)
                and (not self.search or self.search.search(call.name))
                and (not self.prefix or self.prefix.search(call.query.get("prefix", ""))))

    def show(self):
        return {"id": self.id, "kind": self.kind, "service": self.service, "operation": self.operation,
                "key": self.pattern, "seen": self.seen, "struck": self.struck}


class Faults:
    def __init__(self):
        self.lock, self.rules = threading.Lock(), []

    def add(self, fields):
        rule = Rule(fields)
        with self.lock:
            self.rules.append(rule)
        return rule

    def clear(self):
        with self.lock:
            self.rules = []

    def choose(self, call):
        """The rule that strikes this request, or None."""
        if not self.rules:
            return None
        with self.lock:
            struck = {rule.id for rule in self.rules if rule.struck}
            for rule in self.rules:
                if rule.behind not in (None, *struck) or not rule.matches(call):
                    continue
                rule.seen += 1
                if rule.seen >= rule.nth and (not rule.count or rule.struck < rule.count):
                    rule.struck += 1
                    return rule
        return None


def instead(call):
    """The reply that stands in for what was asked; None: it is done after all."""
    rule, protocol = call.fault, call.protocol
    if rule.kind in GENERIC:
        words = {"throttle": "Rate exceeded. Please reduce your request rate.", "denied": "Access Denied",
                 "expired": "The provided token has expired."}
        message = words.get(rule.kind, "We encountered an internal error. Please try again.")
        raise errors.generic(rule.kind, protocol, message, call.service)
    if rule.kind == "error":
        raise errors.Refusal(rule.fields["code"], rule.fields.get("message", "As the test wishes."),
                             rule.number("status", 400))
    if rule.kind == "conflict":
        raise errors.Refusal("ConditionalRequestConflict", "The conditional request cannot succeed due to a "
                             "conflicting operation against this resource.", 409, Key=call.key)
    if rule.kind == "precondition":
        raise errors.Refusal("PreconditionFailed", "At least one of the pre-conditions you specified did not hold",
                             412, Condition="If-None-Match")
    if rule.kind == "redirect":
        region = rule.fields.get("region", "eu-west-1")
        raise errors.Refusal("PermanentRedirect", "The bucket you are attempting to access must be addressed using "
                             "the specified endpoint.", 301, [("x-amz-bucket-region", region)],
                             Endpoint=f"{call.bucket}.s3.{region}.amazonaws.com", Bucket=call.bucket)
    if rule.kind == "error_200":
        refusal = errors.Refusal(rule.fields.get("code", "InternalError"), "We encountered an internal error. "
                                 "Please try again.", 200)
        reply = errors.render(refusal, protocol, call.ids, call.request.path)
        head, end, rest = reply.body.partition(b"?>")
        return Reply(200, reply.headers, head + end + b" " * rule.number("spaces", 0) + rest)
    if rule.kind == "huge":
        raise errors.Refusal("InvalidRequest", "x" * rule.number("bytes", 1 << 20), rule.number("status", 400))
    if rule.kind in ("bad_gateway", "garbage"):
        body, kind = GARBAGE[rule.fields.get("what", "html")]
        status = 502 if rule.kind == "bad_gateway" else rule.number("status", 200)
        return Reply(status, [("Content-Type", kind)], body)
    return None


def conditions_of(call):
    """What a write depends on: the headers that say so."""
    return {} if call.fault and call.fault.kind == "unconditional" else call.request.headers


def spoil(rule, reply):
    """Change a reply that was right."""
    if rule.kind == "corrupt" and reply.length:
        reply.body = flipped(reply.body, rule.number("at", reply.length // 2))
    elif rule.kind == "replace":
        whole = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)
        reply.body = re.sub(rule.fields["pattern"].encode(), rule.fields.get("text", "").encode(), whole)
        reply.length = len(reply.body)
    elif rule.kind == "unconditional" and rule.number("says", 200) == 412:
        reply.status, reply.body, reply.length = 412, b"", 0
    elif rule.kind == "header":
        name, value = rule.fields["name"], rule.fields.get("value")
        reply.headers = [pair for pair in reply.headers if pair[0].lower() != name.lower()]
        if value is not None:
            reply.headers.append((name, value))


def flipped(body, at):
    """The pieces of a body with one bit the other way."""
    for piece in [body] if isinstance(body, bytes) else body:
        if 0 <= at < len(piece):
            piece = piece[:at] + bytes([piece[at] ^ 1]) + piece[at + 1:]
        at -= len(piece)
        yield piece
