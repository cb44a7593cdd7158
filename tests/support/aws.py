"""AWS on loopback for tests: starts the stand-in of tests/aws, says with which environment
a program reaches it, gives it orders and asks what happened.

    def test_something(aws, tmp_path):            # a fixture of tests/aws/conftest.py
        aws.make_bucket("bucket")                  # without a ledger entry that matters
        aws.fault("throttle", operation="PutObject", count=2)
        subprocess.run([...], env=aws.env(HOME=tmp_path), check=True)
        assert aws.effects("PutObject") == 1       # by the ledger

  aws.env(**more)       a whole environment, nothing of the machine's own in it: endpoint,
                        keys, region, an empty home, no instance metadata
  aws.url, aws.port     where it listens
  aws.client("s3", …)   a client of boto3 for it
  aws.cli("s3", "ls")   the official `aws` command, its CompletedProcess
  aws.fault(kind, …)    something goes wrong; kinds and fields: tests/aws/standin/faults.py
  aws.clear_faults(), aws.struck()
  aws.push(image)       ECR has it, under this tag
  aws.settings(…)       tests/aws/standin/front.py, SETTINGS
  aws.ledger(since=0)   every request in order: service, operation, name ("bucket/key"),
                        status, code, effect, fault, …; aws.requests(op), aws.effects(op)
                        count; aws.mark() is a `since` for what comes from now on
  aws.add_key(access, secret, …), aws.expire(access=None)
  aws.objects(bucket)   {key: bytes} of all that is there (small buckets)
  aws.reset()           as at the start; the fixture does it before each test

By hand: `tests/aws/.venv/bin/python tests/support/aws.py` prints the environment as export
lines and serves until it is interrupted."""

import contextlib
import functools
import http.client
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / "tests/aws/.venv/bin/python"
ACCESS, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
# A second key of the same account, and the same key with a wrong secret.
OTHER_ACCESS, OTHER_SECRET = "AKIDOTHER", "another+secret/with=signs"
REGION = "eu-west-1"
STOP_SECONDS = 60


def python():
    """A Python that has what the stand-in needs."""
    try:
        import awscrt  # noqa: F401
        import botocore  # noqa: F401
        return sys.executable
    except ImportError:
        return str(VENV)


MAKING = threading.Lock()


@functools.lru_cache(maxsize=None)
def session():
    import boto3
    return boto3.session.Session()


class Aws:
    def __init__(self, folder=None, certificate=None, port=0, **settings):
        """`certificate`: a PEM file with key and chain; then it speaks https."""
        keys = [{"access": ACCESS, "secret": SECRET}, {"access": OTHER_ACCESS, "secret": OTHER_SECRET}]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "tests/aws"), "PYTHONDONTWRITEBYTECODE": "1"}
        for name in [name for name in env if name.startswith("AWS_")]:
            del env[name]
        self.process = subprocess.Popen([python(), "-m", "standin"], env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        options = {"keys": keys, "settings": settings, "port": port, "dir": folder and str(folder),
                   "certificate": certificate and str(certificate)}
        self.process.stdin.write(json.dumps(options) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line.strip().isdigit():
            self.stop()
            raise RuntimeError("the stand-in did not start; what it says is above")
        self.port, self.certificate, self.connection = int(line), certificate, None
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def control(self, method, path, body=None):
        for attempt in (1, 2):
            if self.connection is None:
                if self.certificate:
                    import ssl
                    context = ssl._create_unverified_context()
                    self.connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=300, context=context)
                else:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
            try:
                self.connection.request(method, f"/standin/{path}", None if body is None else json.dumps(body),
                                        {"Content-Type": "application/json"})
                reply = self.connection.getresponse()
                text = reply.read()
                break
            except (http.client.HTTPException, OSError):
                self.connection.close()
                self.connection = None
                if attempt == 2:
                    raise
        found = json.loads(text)
        if reply.status != 200:
            raise ValueError(found["error"])
        return found

    # For the programs under test

    def env(self, **more):
        """Values of None take a variable away."""
        env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent", "USER": "tester",
               "AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET,
               "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        env.update({name: str(value) for name, value in more.items() if value is not None})
        for name in [name for name, value in more.items() if value is None]:
            env.pop(name, None)
        return env

    def client(self, service="s3", access=ACCESS, secret=SECRET, token=None, region=REGION, attempts=1, **config):
        """A client of boto3; it tries once unless told otherwise."""
        from botocore.config import Config
        if service == "s3":
            config.setdefault("signature_version", "s3v4")  # else URLs are signed as of old
        if self.certificate:
            import urllib3
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        with MAKING:  # one session for all: it reads the models once, and is for one thread
            return session().client(service, region, endpoint_url=self.url, verify=False, aws_access_key_id=access,
                                    aws_secret_access_key=secret, aws_session_token=token,
                                    config=Config(retries={"total_max_attempts": attempts}, **config))

    def cli(self, *words, code=0, seconds=300, env=None, **options):
        done = subprocess.run([python(), "-m", "awscli", *map(str, words)], env=self.env(**(env or {})), text=True,
                              capture_output=True, timeout=seconds, **options)
        assert code is None or done.returncode == code, f"aws {' '.join(map(str, words))}\n{done.stdout}{done.stderr}"
        return done

    # Orders, and what came of them

    def make_bucket(self, name, region=REGION):
        where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        self.client(region=region).create_bucket(Bucket=name, **where)
        return name

    def fault(self, kind, **fields):
        return self.control("POST", "faults", [{"kind": kind, **fields}])[0]

    def clear_faults(self):
        self.control("DELETE", "faults")

    def struck(self):
        """How often faults have struck, in all."""
        return sum(rule["struck"] for rule in self.control("GET", "faults"))

    def push(self, reference, digest=None):
        """An image is in ECR from now on, or its tag leads to another one: the digest."""
        return self.control("POST", "push", {"reference": reference, "digest": digest})

    def settings(self, **values):
        return self.control("POST", "settings", values)

    def ledger(self, since=0, operation=None, service=None):
        entries = self.control("GET", f"ledger?since={since}")["entries"]
        return [entry for entry in entries if operation in (None, entry["operation"])
                and service in (None, entry["service"])]

    def mark(self):
        return len(self.ledger())

    def requests(self, operation=None, since=0):
        return len(self.ledger(since, operation))

    def effects(self, operation=None, since=0):
        return sum(entry["effect"] for entry in self.ledger(since, operation))

    def add_key(self, access, secret, **more):
        self.control("POST", "keys", {"access": access, "secret": secret, **more})

    def expire(self, access=None):
        self.control("POST", "expire", {"access": access} if access else {})

    def objects(self, bucket, region=REGION):
        client = self.client(region=region)
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        keys = [row["Key"] for page in pages for row in page.get("Contents", [])]
        found = {}
        for key in keys:
            # A run goes on beside this: what it removes after the listing is not there.
            with contextlib.suppress(client.exceptions.NoSuchKey):
                found[key] = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        return found

    def reset(self):
        self.control("POST", "reset")


def main():
    aws = Aws(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    try:
        aws.make_bucket("bucket")
        for name, value in aws.env(PATH=None, HOME=None, USER=None, LANG=None).items():
            print(f"export {name}={shlex.quote(value)}")
        print("# there is a bucket named 'bucket'; interrupt to stop", flush=True)
        while aws.process.poll() is None:
            time.sleep(0.5)
    except KeyboardInterrupt:
        pass
    finally:
        aws.stop()


if __name__ == "__main__":
    main()
