"""Rows of AWS: signing."""

import hashlib
import json
import random
from types import SimpleNamespace

from harness import PEERS, ROOT, Bench, Goal, Row, expect

AWS_PYTHON = ROOT / "tests/aws/.venv/bin/python"  # where botocore and the official client are
SIGNED = 200  # requests: as many as a processor keeps at hand, like one just built
ROUNDS = {"own": 500, "digests": 500, "peer": 8}

# ---- signing ----


def a_request(chance: random.Random) -> dict:
    """One of those that a run sends: parts and small objects up, ranges down, lists, calls
    in JSON; every second one with a session token."""
    told = {"access_key": "AKIDEXAMPLE", "secret_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            "token": "".join(chance.choices("ABCxyz019+/", k=350)) if chance.random() < 0.5 else None,
            "region": "us-east-1", "at": 1440938160000, "expires": None, "params": [], "body": ""}
    key = f"/bucket/cache/neuronxcc-2.21.1+aaaa/MODULE_{chance.randrange(10**18)}+4fddc804/model.neff"
    kind = chance.choice(["put", "part", "get", "list", "call"])
    length = ["content-length", str(chance.randrange(10**7))]
    if kind == "call":
        body = b'{"TrainingJobName": "text-encoder-%d"}' % chance.randrange(10**9)
        told |= {"method": "POST", "host": "api.sagemaker.us-east-1.amazonaws.com", "path": "/", "service": "sagemaker",
                 "s3": False, "body": body.hex(), "headers": [["content-type", "application/x-amz-json-1.1"],
                                                              ["x-amz-target", "SageMaker.DescribeTrainingJob"]]}
    else:
        told |= {"method": "GET" if kind in ("get", "list") else "PUT", "host": "s3.us-east-1.amazonaws.com",
                 "path": key, "service": "s3", "s3": True,
                 "headers": {"put": [length, ["x-amz-checksum-sha256", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="]],
                             "part": [length], "get": [["range", "bytes=0-8388607"]], "list": []}[kind]}
    if kind == "part":
        told["params"] = [["partNumber", "7"], ["uploadId", "VXBsb2FkIElEIGZvciBlbHZpbmcncyBtcG92aWU"]]
    if kind == "list":
        told |= {"path": "/bucket", "params": [["list-type", "2"], ["prefix", key[8:30]], ["max-keys", "1000"]]}
    told["payload"] = hashlib.sha256(bytes.fromhex(told["body"])).hexdigest()
    return told


def requests_to_sign(bench: Bench) -> SimpleNamespace:
    chance = random.Random(6)
    file = bench.new("sign") / "requests"
    file.write_text("".join(json.dumps(a_request(chance)) + "\n" for _ in range(SIGNED)))
    return SimpleNamespace(file=file)


def sign(which: str):
    def measure(bench, case):
        rounds = str(ROUNDS[which])
        argv = [AWS_PYTHON, PEERS / "sign.py"] if which == "peer" else [bench.program("bench_sign"), which]
        _, found = bench.json(*argv, case.file, rounds)
        return found["signatures"] / found["seconds"], found["digest"]
    return measure


def check_signatures(bench, case, own, peer):
    expect(own, peer, f"the digest of {SIGNED} signatures")


AWS_ROWS = [
    Row("sign", f"signatures a second of CPU, {SIGNED} requests of a run", "botocore", "digests alone",
        Goal(50, at_least=True), "/s", requests_to_sign, sign("own"), sign("peer"), sign("digests"), check_signatures),
]
