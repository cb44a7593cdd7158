"""What trials work with: clients of the official SDK whose requests are noted, and the register of trials.

A trial asks the services by the official SDK and returns (is it as taken, what was seen). It raises NotTried where nothing
can be concluded: a right or an option is missing, or the service does not answer. All that it makes has the name that its
Lab gives, so that it is found again."""

import contextlib
import datetime
import functools
import os
import sys
import time
import urllib.error
import urllib.request

import boto3
import botocore.auth
import botocore.config
import botocore.exceptions

PREFIX = "stoker-conform-"
DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "NotAuthorized")
PASSING = ("Throttling", "ThrottlingException", "TooManyRequestsException", "SlowDown", "InternalError", "InternalFailure",
           "InternalServerError", "ServiceUnavailable", "ServiceException")
TRIALS = {}
NEEDS_ROLE, NEEDS_QUEUE, NEEDS_IMAGE = set(), set(), set()  # ids of rows
NEEDS_STATES, NEEDS_SCHEDULER = set(), set()


class NotTried(Exception):
    """Nothing can be concluded, for this reason."""


class Ended(Exception):
    """A signal has come."""


def trial(row, role=False, queue=False, image=False, states=False, scheduler=False):
    """The function tries this row; with a role, with a queue, with an image that only the user can name, with a role of
    Step Functions or of EventBridge Scheduler."""
    def keep(function):
        TRIALS[row] = function
        (NEEDS_ROLE if role else set()).add(row)
        (NEEDS_QUEUE if queue else set()).add(row)
        (NEEDS_IMAGE if image else set()).add(row)
        (NEEDS_STATES if states else set()).add(row)
        (NEEDS_SCHEDULER if scheduler else set()).add(row)
        return function
    return keep


def shared(function):
    """What several rows look at is made once; its requests are those of each of them."""
    @functools.wraps(function)
    def once(lab):
        if function not in lab.made:
            before, lab.ids = lab.ids, []
            try:
                lab.made[function] = (function(lab), None, lab.ids)
            except (NotTried, botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
                lab.made[function] = (None, error, lab.ids)
            finally:
                lab.ids = before
        value, error, ids = lab.made[function]
        lab.ids += ids
        if error:
            raise NotTried(str(error))
        return value
    return once


class Refusal:
    """What a service refused, and how."""

    def __init__(self, error):
        meta = error.response.get("ResponseMetadata", {})
        self.code, self.message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
        self.status, self.headers = meta.get("HTTPStatusCode"), meta.get("HTTPHeaders", {})
        if self.code in DENIED or self.code in PASSING:
            raise NotTried(f"{self.code}: {self.message}")

    def __str__(self):
        return f"{self.status} {self.code}"


class Lab:
    """Clients of one region, a bucket, a queue, and the ids of the requests since the last row's begin.

    A signal (`ended`: its number) ends a trial before its next request, never in the midst of one: what that makes would
    come into being behind the removal of what is left."""

    def __init__(self, region, bucket, nonce, role=None):
        self.region, self.bucket, self.role, self.name = region, bucket, role, PREFIX + nonce
        self.session = boto3.session.Session(region_name=region)
        self.clients, self.ids, self.where, self.ended = {}, [], None, None
        self.has_versions = False  # the bucket keeps what is removed
        self.made, self.queue, self.stoker = {}, None, None  # see shared, jobs.Queue, runs.Stoker
        self.image, self.stoker_image = None, None
        self.states_role, self.scheduler_role = None, None
        self.begun = {}  # what a later run of conform judges, by row; kept in the results
        # Seconds for which is watched whether something happens that must not; tests have less.
        self.watch = float(os.environ.get("CONFORM_WATCH", "60"))
        self.later = float(os.environ.get("CONFORM_LATER", "0"))  # seconds that it is later for tests

    def client(self, service, region=None):
        key = (service, region or self.region)
        if key not in self.clients:
            config = botocore.config.Config(
                signature_version="s3v4" if service == "s3" else None, retries={"total_max_attempts": 1},
                connect_timeout=20, read_timeout=60, request_checksum_calculation="when_required",
                response_checksum_validation="when_required")
            self.clients[key] = self.session.client(service, region_name=key[1], config=config)
            self.clients[key].meta.events.register("before-call", self.go_on)
            self.clients[key].meta.events.register("after-call", self.note)
        return self.clients[key]

    def now(self):
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.later)

    def go_on(self, **_):
        if self.ended:
            raise Ended(self.ended)

    def sleep(self, seconds):
        """A signal ends it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.go_on()
            time.sleep(min(0.2, max(end - time.monotonic(), 0)))
        self.go_on()

    def until(self, found, seconds, what):
        """What `found` tells as soon as that is something. `what` is not there after so many seconds: NotTried."""
        end, pause = time.monotonic() + seconds, 0.2
        while True:
            try:
                value = found()
            except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
                if getattr(error, "response", {"Error": {}})["Error"].get("Code") not in (None, *PASSING):
                    raise
                value = None
            if value:
                return value
            if time.monotonic() > end:
                raise NotTried(f"{what} was not there within {seconds:.0f} s")
            self.sleep(pause)
            pause = min(pause * 1.5, self.watch / 6)

    def note(self, parsed, **_):
        self.ids.append(parsed.get("ResponseMetadata", {}).get("RequestId") or "none")

    def location(self):
        """The region of the bucket, as S3 says it without any header."""
        if self.where is None:
            told = self.client("s3").get_bucket_location(Bucket=self.bucket).get("LocationConstraint")
            self.where = {None: "us-east-1", "": "us-east-1", "EU": "eu-west-1"}.get(told, told)
        return self.where

    @property
    def s3(self):
        return self.client("s3", self.location())

    def at(self, name):
        return {"Bucket": self.bucket, "Key": f"{self.name}/{name}"}

    def put(self, name, body, **more):
        made = self.s3.put_object(**self.at(name), Body=body, Tagging=f"{PREFIX}run={self.name}", **more)
        self.has_versions |= made.get("VersionId", "null") != "null"
        return made

    def body(self, name):
        return self.s3.get_object(**self.at(name))["Body"].read()

    def begin_parts(self, name, **more):
        made = self.s3.create_multipart_upload(**self.at(name), Tagging=f"{PREFIX}run={self.name}", **more)
        return {**self.at(name), "UploadId": made["UploadId"]}


def refusal(call, **params):
    """How the call was refused; None: it was not."""
    try:
        call(**params)
    except botocore.exceptions.ClientError as error:
        return Refusal(error)
    return None


@contextlib.contextmanager
def signed_at(seconds):
    """Requests are dated so many seconds off."""
    # With awscrt, botocore has signers of its own for it.
    signers = [module for module in (botocore.auth, sys.modules.get("botocore.crt.auth")) if module]
    real = [module.get_current_datetime for module in signers]
    for module, clock_of in zip(signers, real):
        module.get_current_datetime = lambda *args, clock_of=clock_of, **kwargs: (
            clock_of(*args, **kwargs) + datetime.timedelta(seconds=seconds))
    try:
        yield
    finally:
        for module, clock_of in zip(signers, real):
            module.get_current_datetime = clock_of


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def fetch(lab, url, method="GET"):
    """(status, headers, body) of a presigned URL."""
    lab.go_on()
    try:
        reply = urllib.request.build_opener(NoRedirect).open(urllib.request.Request(url, method=method), timeout=60)
    except urllib.error.HTTPError as error:
        reply = error
    except OSError as error:
        raise NotTried(f"no answer: {error}") from error
    with reply:
        lab.ids.append(reply.headers.get("x-amz-request-id") or "none")
        return reply.status, reply.headers, reply.read()
