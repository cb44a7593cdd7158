"""How rows of configs/live/rows.yaml are tried that cost requests alone: see lab.py."""

import base64
import datetime
import email.utils
import hashlib
import json
import re
from pathlib import Path

from clean import token
from lab import PREFIX, fetch, refusal, signed_at, trial

FAULTS = Path(__file__).resolve().parents[2] / "aws/http/faults.def"
PART = 5 << 20  # bytes: the least of a part that is not the last


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


@trial("pipeline-limits", role=True)
def pipeline_limits(lab):
    steps = [{"Name": f"step-{number}", "Type": "Processing", "Arguments": {
        "ProcessingResources": {"ClusterConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 30}},
        "AppSpecification": {"ImageUri": "public.ecr.aws/docker/library/busybox:stable"}, "RoleArn": lab.role,
        "StoppingCondition": {"MaxRuntimeInSeconds": 432000}}} for number in range(50)]
    definition = json.dumps({"Version": "2020-12-01", "Parameters": [], "Steps": steps})
    seen = refusal(lab.client("sagemaker").create_pipeline, PipelineName=lab.name, PipelineDefinition=definition,
                   ClientRequestToken=token(lab.name), RoleArn=lab.role,
                   Tags=[{"Key": f"{PREFIX}run", "Value": lab.name}])
    return seen is None, f"{seen}: {seen.message}" if seen else "taken"
