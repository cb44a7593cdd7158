"""SageMaker's own containers in script mode: what the platform has to do with it. The program
that runs in them is toolkit_container.py.

A test's tools know folders only. What a job's NEURON_COMPILE_CACHE_URL names in S3 is such a
folder for them (`STANDIN_S3`), filled before the job starts and brought back as it changes."""

import contextlib
import os
import sys
import threading

CONTAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "toolkit_container.py")
URL = "NEURON_COMPILE_CACHE_URL"


def is_script_mode(request):
    return "sagemaker_program" in request.get("HyperParameters", {}) and not request.get(
        "AlgorithmSpecification", {}).get("ContainerEntrypoint")


def split(url):
    bucket, _, key = url.removeprefix("s3://").partition("/")
    return bucket, key


class Mount:
    """A prefix of S3 as a folder that the hosts of a job share."""

    def __init__(self, job, url):
        self.job, self.root, self.lock, self.known = job, job.floor.folder(f"{job.name}-s3"), threading.Lock(), {}
        self.name, prefix = split(url)
        self.prefix = prefix.rstrip("/") + "/"
        for thing in list(self.bucket.keys_of(self.prefix, "")) if self.bucket else []:
            path = self.path(thing.key)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.writelines(thing.read())
            self.known[thing.key] = self.stamp(path)

    @property
    def bucket(self):
        return self.job.store.buckets.get(self.name)

    def path(self, key):
        return os.path.join(self.root, self.name, key)

    def stamp(self, path):
        found = os.stat(path)
        return found.st_mtime_ns, found.st_size

    def bring(self):
        """What is new or changed here goes there, what has gone here goes there too."""
        with self.lock:
            there = set()
            for base, _, files in os.walk(self.path(self.prefix)):
                for each in files:
                    path = os.path.join(base, each)
                    key = os.path.relpath(path, os.path.join(self.root, self.name))
                    with contextlib.suppress(FileNotFoundError):
                        self.bring_one(key, path)
                        there.add(key)
            for key in set(self.known) - there:
                del self.known[key]
                self.bucket.remove(key)

    def bring_one(self, key, path):
        stamp = self.stamp(path)
        if self.known.get(key) == stamp or os.path.basename(path).startswith("."):
            return
        with open(path, "rb") as file:
            self.job.put(self.bucket, key, file.read())
        self.known[key] = stamp


def command(job, tree):
    """What the container runs, None if it is not one of these."""
    if not is_script_mode(job.request):
        return None
    url = job.request.get("Environment", {}).get(URL, "")
    if url.startswith("s3://") and not hasattr(job, "mount"):
        job.mount = Mount(job, url)
    submit = job.request["HyperParameters"].get("sagemaker_submit_directory", "").strip('"')
    bucket, key = split(submit)
    bucket = job.store.buckets.get(bucket)
    thing = bucket.objects.get(key) if bucket else None
    if thing is not None:
        with open(os.path.join(tree, "input/submit.tar.gz"), "wb") as file:
            file.writelines(thing.read())
    extra = [f"STANDIN_S3={job.mount.root}"] if hasattr(job, "mount") else []
    return ["env", *extra, sys.executable, "-I", "-S", CONTAINER]


def mirror(job):
    if hasattr(job, "mount"):
        job.mount.bring()
