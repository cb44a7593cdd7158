"""How rows of configs/live/rows.yaml are tried: a function for each row that has a trial, by the row's id.

A trial asks the services by the official SDK and returns (is it as taken, what was seen). It raises NotTried where nothing
can be concluded: a right or an option is missing, or the service does not answer. All that it makes lies below the name
that its Lab gives, so that it is found again."""

import base64
import contextlib
import datetime
import email.utils
import hashlib
import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

import boto3
import botocore.auth
import botocore.config
import botocore.exceptions

PREFIX = "stoker-conform-"
FAULTS = Path(__file__).resolve().parents[2] / "aws/http/faults.def"
PART = 5 << 20  # bytes: the least of a part that is not the last
DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "NotAuthorized")
PASSING = ("Throttling", "ThrottlingException", "TooManyRequestsException", "SlowDown", "InternalError", "InternalFailure",
           "InternalServerError", "ServiceUnavailable", "ServiceException")
TRIALS = {}
NEED_ROLE = ("pipeline-limits",)  # ids of rows that make something with a role


class NotTried(Exception):
    """Nothing can be concluded, for this reason."""


class Ended(Exception):
    """A signal has come."""


def trial(row):
    def keep(function):
        TRIALS[row] = function
        return function
    return keep


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
    """Clients of one region, a bucket, and the ids of the requests since the last row's begin.

    A signal (`ended`: its number) ends a trial before its next request, never in the midst of one: what that makes would
    come into being behind the removal of what is left."""

    def __init__(self, region, bucket, nonce, role=None):
        self.region, self.bucket, self.role, self.name = region, bucket, role, PREFIX + nonce
        self.session = boto3.session.Session(region_name=region)
        self.clients, self.ids, self.where, self.ended = {}, [], None, None
        self.has_versions = False  # the bucket keeps what is removed

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

    def go_on(self, **_):
        if self.ended:
            raise Ended(self.ended)

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


def sha(data):
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


# ---- S3


@trial("s3-conditions")
def s3_conditions(lab):
    first, changed = b"first", b"changed"
    seen = refusal(lab.put, name="conditions", body=first, IfNoneMatch="*")
    if seen:
        return False, f"a write of a missing object, if absent: {seen}"
    seen = refusal(lab.put, name="conditions", body=b"second", IfNoneMatch="*")
    if not seen or seen.status != 412 or lab.body("conditions") != first:
        return False, f"a write of an existing object, if absent: {seen or 'done'}"
    old = lab.s3.head_object(**lab.at("conditions"))["ETag"]
    seen = refusal(lab.put, name="conditions", body=changed, IfMatch=old)
    if seen or lab.body("conditions") != changed:
        return False, f"a write with the right ETag: {seen or 'done, but it is not there'}"
    seen = refusal(lab.put, name="conditions", body=b"fourth", IfMatch=old)
    if not seen or seen.status != 412 or lab.body("conditions") != changed:
        return False, f"a write with an old ETag: {seen or 'done'}"
    return True, "done, 412, done, 412"


@trial("s3-parts-condition")
def s3_parts_condition(lab):
    def parts(name):
        where = lab.begin_parts(name)
        etag = lab.s3.upload_part(**where, PartNumber=1, Body=b"of parts")["ETag"]
        return {**where, "MultipartUpload": {"Parts": [{"ETag": etag, "PartNumber": 1}]}}

    upload = parts("parts-condition")
    lab.put("parts-condition", b"of another")
    seen = refusal(lab.s3.complete_multipart_upload, **upload, IfNoneMatch="*")
    if not seen or seen.status != 412 or lab.body("parts-condition") != b"of another":
        return False, f"a completion, if absent, of what is there: {seen or 'done'}"
    size = refusal(lab.s3.complete_multipart_upload, **parts("parts-size"), MpuObjectSize=7)
    if not size or size.status != 400:
        return False, f"a completion with another size: {size or 'done'}"
    return True, f"{seen}; another size: {size}"


@trial("s3-parts-checksum")
def s3_parts_checksum(lab):
    bodies = [b"a" * PART, b"the end"]
    upload = lab.begin_parts("parts-checksum", ChecksumAlgorithm="SHA256", ChecksumType="COMPOSITE")
    parts = []
    for number, body in enumerate(bodies, 1):
        made = lab.s3.upload_part(**upload, PartNumber=number, Body=body, ChecksumSHA256=sha(body))
        parts.append({"ETag": made["ETag"], "PartNumber": number, "ChecksumSHA256": sha(body)})
    wanted = sha(b"".join(hashlib.sha256(body).digest() for body in bodies)) + "-2"
    done = lab.s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts}, ChecksumType="COMPOSITE")
    head = lab.s3.head_object(**lab.at("parts-checksum"), ChecksumMode="ENABLED")
    seen = [reply.get("ChecksumSHA256", "none") for reply in (done, head)]
    return seen == [wanted, wanted], f"at completion and on a read: {', '.join(seen)}; computed: {wanted}"


@trial("s3-copy-checksum")
def s3_copy_checksum(lab):
    lab.put("copy-from", b"content")
    done = lab.s3.copy_object(**lab.at("copy-to"), CopySource=lab.at("copy-from"), ChecksumAlgorithm="SHA256")
    seen = done["CopyObjectResult"].get("ChecksumSHA256", "none")
    return seen == sha(b"content"), f"{seen}; computed: {sha(b'content')}"


@trial("s3-region")
def s3_region(lab):
    other = "us-west-2" if lab.location() != "us-west-2" else "us-east-1"
    url = lab.client("s3", other).generate_presigned_url("head_bucket", Params={"Bucket": lab.bucket}, ExpiresIn=60)
    status, headers, _ = fetch(lab, url, "HEAD")
    seen = headers.get("x-amz-bucket-region")
    return seen == lab.location() and status != 200, f"{status}, x-amz-bucket-region: {seen or 'none'}"


@trial("link-end")
def link_end(lab):
    lab.put("link", b"content")
    with signed_at(-60):
        url = lab.s3.generate_presigned_url("get_object", Params=lab.at("link"), ExpiresIn=1)
    status, _, body = fetch(lab, url)
    found = re.search(rb"Request has expired|ExpiredToken|token has expired", body)
    return status != 200 and found is not None, f"{status} {found[0].decode() if found else 'without any of the texts'}"


# ---- others


@trial("clock")
def clock(lab):
    codes = set(re.findall(r'^FAULT\("(\w+)", CLOCK', FAULTS.read_text("utf-8"), re.MULTILINE))
    calls = {"S3": (lab.s3.list_objects_v2, {"Bucket": lab.bucket, "Prefix": lab.name}),
             "STS": (lab.client("sts").get_caller_identity, {}),
             "AWS Batch": (lab.client("batch").describe_job_queues, {}),
             "SageMaker": (lab.client("sagemaker").list_training_jobs, {"MaxResults": 1})}
    words, fine = [], True
    for name, (call, params) in calls.items():
        with signed_at(-1200):
            seen = refusal(call, **params)
        date = seen and email.utils.parsedate_to_datetime(seen.headers["date"]) if seen and "date" in seen.headers else None
        off = abs((date - datetime.datetime.now(datetime.timezone.utc)).total_seconds()) if date else None
        fine &= seen is not None and seen.code in codes and off is not None and off < 60
        words.append(f"{name}: {seen or 'done'}, Date {'is missing' if off is None else f'off by {off:.0f} s'}")
    return fine, "; ".join(words)


@trial("sagemaker-unknown")
def sagemaker_unknown(lab):
    sagemaker, words, fine = lab.client("sagemaker"), [], True
    for call in (sagemaker.describe_training_job, sagemaker.stop_training_job):
        seen = refusal(call, TrainingJobName=lab.name)
        fine &= seen is not None and seen.code == "ValidationException" and "not found" in seen.message
        words.append(f"{seen}: {seen.message}" if seen else "done")
    return fine, "; ".join(words)


@trial("batch-gone")
def batch_gone(lab):
    seen = refusal(lab.client("batch").terminate_job, jobId="00000000-0000-4000-8000-00000000000a", reason=lab.name)
    return seen is None or "does not exist" in seen.message, f"{seen}: {seen.message}" if seen else "done"


@trial("pipeline-limits")
def pipeline_limits(lab):
    steps = [{"Name": f"step-{number}", "Type": "Processing", "Arguments": {
        "ProcessingResources": {"ClusterConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 30}},
        "AppSpecification": {"ImageUri": "public.ecr.aws/docker/library/busybox:stable"}, "RoleArn": lab.role,
        "StoppingCondition": {"MaxRuntimeInSeconds": 432000}}} for number in range(50)]
    definition = json.dumps({"Version": "2020-12-01", "Parameters": [], "Steps": steps})
    seen = refusal(lab.client("sagemaker").create_pipeline, PipelineName=lab.name, PipelineDefinition=definition,
                   ClientRequestToken=hashlib.sha256(lab.name.encode()).hexdigest(), RoleArn=lab.role,
                   Tags=[{"Key": f"{PREFIX}run", "Value": lab.name}])
    return seen is None, f"{seen}: {seen.message}" if seen else "taken"


# ---- what is left


def clean(lab, prefix):
    """Removes all objects, uploads and pipelines whose names begin so. Returns (how many, what it could not look at)."""
    count, untold = 0, []
    s3 = lab.s3
    for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=lab.bucket, Prefix=prefix):
        for row in page.get("Uploads", []):
            s3.abort_multipart_upload(Bucket=lab.bucket, Key=row["Key"], UploadId=row["UploadId"])
            count += 1
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=lab.bucket, Prefix=prefix):
        for row in page.get("Contents", []):
            s3.delete_object(Bucket=lab.bucket, Key=row["Key"])
            count += 1
    sagemaker = lab.client("sagemaker")
    try:
        found = [row["PipelineName"] for page in sagemaker.get_paginator("list_pipelines").paginate(
            PipelineNamePrefix=prefix.rstrip("-")) for row in page["PipelineSummaries"] if row["PipelineName"].startswith(prefix)]
        for name in found:
            sagemaker.delete_pipeline(PipelineName=name, ClientRequestToken=hashlib.sha256(name.encode()).hexdigest())
            count += 1
    except botocore.exceptions.ClientError as error:
        untold.append(f"pipelines: {error}")
    return count, untold
