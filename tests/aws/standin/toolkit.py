"""SageMaker's own containers in script mode: what the platform has to do with it. The program
that runs in them is toolkit_container.py."""

import os
import sys

CONTAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "toolkit_container.py")


def is_script_mode(request):
    return "sagemaker_program" in request.get("HyperParameters", {}) and not request.get(
        "AlgorithmSpecification", {}).get("ContainerEntrypoint")


def split(url):
    bucket, _, key = url.removeprefix("s3://").partition("/")
    return bucket, key


def command(job, tree):
    """What the container runs, None if it is not one of these."""
    if not is_script_mode(job.request):
        return None
    submit = job.request["HyperParameters"].get("sagemaker_submit_directory", "").strip('"')
    bucket, key = split(submit)
    bucket = job.store.buckets.get(bucket)
    thing = bucket.objects.get(key) if bucket else None
    if thing is not None:
        with open(os.path.join(tree, "input/submit.tar.gz"), "wb") as file:
            file.writelines(thing.read())
    return [sys.executable, "-I", "-S", CONTAINER]
