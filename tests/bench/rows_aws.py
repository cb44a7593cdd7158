"""Rows of AWS: signing, and what moves to and from S3. The server is the stand-in of
tests/aws, which is slower than any client: what is held to a goal is the client's CPU.
Each run has a prefix of its own, and what has arrived is read back by boto3."""

import atexit
import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from harness import PEERS, ROOT, Bench, Goal, Row, expect, show, tool

sys.path.insert(0, str(ROOT / "tests/support"))
from aws import Aws

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


# ---- to and from S3 ----

BUCKET = "bench"
LARGE = 256 << 20
FILES = 2000
PAGE = 1000  # rows of a listing
CPUS = sorted(os.sched_getaffinity(0))


def server(bench: Bench) -> SimpleNamespace:
    """The stand-in on a core of its own, with a bucket."""
    aws = Aws()
    atexit.register(aws.stop)
    os.sched_setaffinity(aws.process.pid, {CPUS[-1]})
    case = SimpleNamespace(aws=aws, prefixes=0, walls={}, env={
        **aws.env(HOME=str(bench.new("home")), PATH=os.environ["PATH"]),
        "RCLONE_CONFIG": "/dev/null", "RCLONE_CONFIG_S_TYPE": "s3", "RCLONE_CONFIG_S_PROVIDER": "Other", "RCLONE_CONFIG_S_REGION": "eu-west-1",
        "RCLONE_CONFIG_S_ENV_AUTH": "true", "RCLONE_CONFIG_S_ENDPOINT": aws.url,
        "RCLONE_CONFIG_S_FORCE_PATH_STYLE": "true", "RCLONE_S3_NO_CHECK_BUCKET": "true"})
    client(bench, case, *AWS_CLI, "s3", "mb", f"s3://{BUCKET}")
    return case


AWS_CLI = (AWS_PYTHON, "-m", "awscli")


def client(bench: Bench, case, *argv) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of a command on the core that is not the server's."""
    argv = [str(each) for each in argv]
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        process = subprocess.Popen(argv, env=case.env, cwd=bench.scratch, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   preexec_fn=lambda: os.sched_setaffinity(0, {CPUS[0]}))
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        expect(process.returncode, 0, f"exit code of {' '.join(argv[:5])} ({out.read()[-300:]})")
    return usage.ru_utime + usage.ru_stime, wall


MANIFEST = ".stk-tmp-"  # what stoker remembers of a bucket: the peers take it for content


def digests_of(folder: Path) -> dict:
    """{path: SHA-256}"""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*") if path.is_file() and not path.name.startswith(MANIFEST)}


def arrived(bench: Bench, case, prefix: str) -> dict:
    _, result = bench.process(AWS_PYTHON, PEERS / "objects.py", BUCKET, f"{prefix}/", env=case.env)
    return {key: digest for key, digest in json.loads(result.text).items() if not key.startswith(MANIFEST)}


def one_large_file(bench: Bench) -> SimpleNamespace:
    case = bench.once(server)
    case.walls.clear()
    case.folder = bench.new("large")
    chance = random.Random(7)
    (case.folder / "file").write_bytes(b"".join(chance.randbytes(1 << 20) for _ in range(LARGE >> 20)))
    case.wanted = digests_of(case.folder)
    return case


def many_small_files(bench: Bench) -> SimpleNamespace:
    chance = random.Random(8)
    case = bench.once(server)
    case.walls.clear()
    case.folder = bench.new("small")
    for number in range(FILES):
        path = case.folder / f"{chance.randrange(40):02}/{chance.randrange(10**9)}-{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(chance.randbytes(chance.randint(100, 12900)))
    case.wanted = digests_of(case.folder)
    return case


def timed(argv: Callable):
    """Measures what `argv(bench, case, prefix)` gives, to or from a prefix of its own."""
    def measure(bench, case):
        case.prefixes += 1
        prefix = f"p{case.prefixes}"
        begin = len(case.aws.ledger())
        cpu, wall = client(bench, case, *argv(bench, case, prefix))
        case.walls.setdefault(argv, []).append(wall)
        return cpu, SimpleNamespace(prefix=prefix, requests=case.aws.ledger(begin))
    return measure


def push(bench, case, prefix):
    return bench.stoker, "cache", "push", case.folder, f"s3://{BUCKET}/{prefix}"


def copy_up(bench, case, prefix):
    return *AWS_CLI, "s3", "cp", "--only-show-errors", case.folder / "file", f"s3://{BUCKET}/{prefix}/file"


def sync_up(bench, case, prefix):
    return *AWS_CLI, "s3", "sync", "--only-show-errors", case.folder, f"s3://{BUCKET}/{prefix}"


def rclone_up(bench, case, prefix):
    return tool("rclone"), "copy", "--transfers", "16", "--checkers", "16", case.folder, f"s:{BUCKET}/{prefix}"


def check_up(bench, case, own, peer):
    for which in (own, peer):
        expect(arrived(bench, case, which.prefix) == case.wanted, True, "that every byte has arrived")


def large_object(bench: Bench) -> SimpleNamespace:
    case = one_large_file(bench)
    client(bench, case, *sync_up(bench, case, "large"))
    return case


def fetch(which: Callable):
    def measure(bench, case):
        target = bench.new("fetched")
        cpu, wall = client(bench, case, *which(bench, case, target))
        case.walls.setdefault(which, []).append(wall)
        found = digests_of(target)
        shutil.rmtree(target)
        return cpu, found
    return measure


def pull(bench, case, target):
    return bench.stoker, "cache", "pull", f"s3://{BUCKET}/large", target


def copy_down(bench, case, target):
    return *AWS_CLI, "s3", "cp", "--only-show-errors", f"s3://{BUCKET}/large/file", target / "file"


def check_down(bench, case, own, peer):
    expect((own == case.wanted, peer == case.wanted), (True, True), "that every byte has arrived")


def all_there(bench: Bench) -> SimpleNamespace:
    """Each has sent it once itself, so that each knows what it may know."""
    case = many_small_files(bench)
    for which in (push, sync_up):
        client(bench, case, *which(bench, case, which.__name__))
    return case


def again(which: Callable):
    def argv(bench, case, prefix):
        return which(bench, case, which.__name__)
    argv.__name__ = which.__name__
    return timed(argv)


def check_nothing(bench, case, own, peer):
    """As many requests as the listing has pages, and no other."""
    expect([entry["operation"] for entry in own.requests], ["ListObjectsV2"] * (FILES // PAGE), "the requests")


def tell_walls(bench, case):
    """The goals are about CPU; how long it took by the clock depends on this server."""
    words = ", ".join(f"{which.__name__} {show(statistics.median(walls), 's')}" for which, walls in case.walls.items())
    print(f"  by the clock: {words}", file=sys.stderr)
    case.walls.clear()


def moved(name: str, operation: str, peer_name: str, limit: float, setup, own, peer, verify) -> Row:
    return Row(name, operation, peer_name, "", Goal(limit), "s", setup, own, peer, None, verify, tell_walls, pairs=5)


OBJECTS = 100_000
TRAIN = ("cd $STOKER_CHECKPOINT_DIR && mkdir step-1 && cd step-1 && echo w >state && echo '{\"step\":1}' >meta.json && "
         "echo step: 1")


def all_given(bench: Bench) -> SimpleNamespace:
    """Data in a bucket, all of which the promoted model was given; models, workspace and state are there too."""
    case, data = bench.once(server), bench.new("given")
    for number in range(OBJECTS):
        os.close(os.open(data / f"part-{number:06}.parquet", os.O_CREAT | os.O_WRONLY, 0o600))
    client(bench, case, bench.stoker, "cache", "push", data, f"s3://{BUCKET}/given")
    shutil.rmtree(data)
    case.project, case.state = bench.new("turns"), f"s3://{BUCKET}/state"
    (case.project / "stoker.yaml").write_text(json.dumps({
        "version": 1, "name": "bench", "command": ["/bin/sh", "-c", TRAIN], "source": {"include": ["stoker.yaml"]},
        "workspace": f"s3://{BUCKET}/workspace", "compile": {"kind": "none"}, "checkpoint": {"kind": "files"},
        "data": {"url": f"s3://{BUCKET}/given", "settle": 0}, "promote": {"when": "always"},
        "metrics": [{"name": "step", "regex": "^step: ([0-9]+)"}]}))
    turn(bench, case)
    return case


def turn(bench, case):
    """How many requests it makes beside the pages of a listing, and what they are."""
    begin = len(case.aws.ledger())
    client(bench, case, bench.stoker, "--state", case.state, "retrain", case.project / "stoker.yaml")
    asked = [(entry["operation"], entry["name"]) for entry in case.aws.ledger(begin)]
    return float(sum(operation != "ListObjectsV2" for operation, _ in asked)), asked


def check_turn(bench, case, own, peer):
    expect(sum(operation == "ListObjectsV2" for operation, _ in own), OBJECTS // PAGE, "the pages")
    expect([name.rpartition("/")[2] for operation, name in own if operation == "GetObject"], ["current.json", "2.json"],
           "what is read")


AWS_ROWS = [
    Row("sign", f"signatures a second of CPU, {SIGNED} requests of a run", "botocore", "digests alone",
        Goal(50, at_least=True), "/s", requests_to_sign, sign("own"), sign("peer"), sign("digests"), check_signatures),
    moved("s3-up", f"CPU of {LARGE >> 20} MiB up", "aws s3 cp", 0.45, one_large_file, timed(push), timed(copy_up), check_up),
    moved("s3-down", f"CPU of {LARGE >> 20} MiB down", "aws s3 cp", 0.45, large_object, fetch(pull), fetch(copy_down),
          check_down),
    moved("s3-files", f"CPU of {FILES} small files up", "aws s3 sync", 0.1, many_small_files, timed(push), timed(sync_up),
          check_up),
    moved("s3-rclone", f"CPU of {FILES} small files up", "rclone copy", 0.5, many_small_files, timed(push),
          timed(rclone_up), check_up),
    moved("s3-same", f"CPU of {FILES} files of which none has changed", "aws s3 sync", 0.1, all_there, again(push),
          again(sync_up), check_nothing),
    Row("nothing-new", f"requests of a retrain with nothing new among {OBJECTS:,}, beside the listing's pages", "", "",
        Goal(3.0, of_ratio=False), "", all_given, turn, None, None, check_turn, pairs=3),
]
