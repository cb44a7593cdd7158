"""How rows of configs/live/rows.yaml are tried that ask about rates, images and this machine: see lab.py."""

import hashlib
import json
import os
import re
import time
from pathlib import Path

import botocore.exceptions
import botocore.utils
from jobs import aws_image
from lab import PASSING, NotTried, fetch, refusal, trial

RATES = Path(__file__).resolve().parents[2] / "aws/http/rates.def"
LOGS_RATE = 5  # a second, as aws/logs/logs.c has it
METADATA = "http://169.254.169.254"
THROTTLED = [code for code in PASSING if code.startswith(("Throttl", "TooMany"))]
MANIFESTS = ["application/vnd.docker.distribution.manifest.v2+json", "application/vnd.oci.image.manifest.v1+json",
             "application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.oci.image.index.v1+json"]


@trial("rates")
def rates(lab):
    allowed = dict(re.findall(r"^RATE\((\w+), (\d+),", RATES.read_text("utf-8"), re.MULTILINE))
    name = f"{lab.name}-rates"
    calls = [(lab.client("batch").describe_jobs, {"jobs": [name]}, int(allowed["DESCRIBE_JOBS"])),
             (lab.client("sagemaker").describe_training_job, {"TrainingJobName": name}, int(allowed["DESCRIBE_TRAINING_JOB"])),
             (lab.client("logs").filter_log_events, {"logGroupName": name}, LOGS_RATE)]
    words, ids = [], []
    for call, params, rate in calls:
        lab.ids, throttled, count, began = [], 0, 0, time.monotonic()
        while time.monotonic() < began + lab.watch / 6:
            try:
                call(**params)
            except botocore.exceptions.ClientError as error:
                throttled += error.response["Error"].get("Code") in THROTTLED
            count += 1
            lab.sleep(max(began + count / rate - time.monotonic(), 0))
        words.append(f"{call.__name__}: {count}, {throttled} of them throttled")
        ids.append(lab.ids[-1])  # all would be hundreds
        if throttled:
            break
    lab.ids = ids
    return throttled == 0, "; ".join(words)


@trial("image-config")
def image_config(lab):
    account, _, rest = (lab.image or aws_image(lab.region) or "").partition(".dkr.ecr.")
    name, _, tag = rest.partition("/")[2].rpartition(":")
    if not tag:
        raise NotTried("the image is none of ECR by a tag")
    ecr, image = lab.client("ecr"), {"registryId": account, "repositoryName": name}

    def manifest(**which):
        found = ecr.batch_get_image(**image, imageIds=[which], acceptedMediaTypes=MANIFESTS)["images"]
        if not found:
            raise NotTried(f"there is no image {name}:{tag}")
        return json.loads(found[0]["imageManifest"])

    seen = manifest(imageTag=tag)
    if "manifests" in seen:
        seen = manifest(imageDigest=next(row["digest"] for row in seen["manifests"]
                                         if row.get("platform", {}).get("architecture") == "amd64"))
    digest, url = seen["config"]["digest"], []
    seen = refusal(lambda **params: url.append(ecr.get_download_url_for_layer(**params)["downloadUrl"]), **image,
                   layerDigest=digest)
    if seen:
        return False, f"no link to the config: {seen}: {seen.message}"
    status, _, body = fetch(lab, url[0])
    found = "sha256:" + hashlib.sha256(body).hexdigest()
    return found == digest, f"{status}, {found}; the manifest names {digest}"


@trial("instance-role")
def instance_role(lab):
    lab.go_on()
    fetcher = botocore.utils.InstanceMetadataFetcher(
        base_url=os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", METADATA) + "/", env={},
        config={"ec2_metadata_v1_disabled": True})
    keys = fetcher.retrieve_iam_role_credentials()
    if not keys:
        raise NotTried("this machine has no role, or is none of EC2")
    who = lab.session.client("sts", aws_access_key_id=keys["access_key"], aws_secret_access_key=keys["secret_key"],
                             aws_session_token=keys["token"])
    who.meta.events.register("after-call", lab.note)
    arn = who.get_caller_identity()["Arn"]
    return f":assumed-role/{keys['role_name']}/" in arn, f"the caller is {arn.rpartition(':')[2].split('/')[0]} of " + (
        "the instance's role" if f"/{keys['role_name']}/" in arn else "another role")
