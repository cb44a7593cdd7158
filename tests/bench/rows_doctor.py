"""Rows of doctor: what all checks take beside the slowest of them, and beside a plan. Each request to the stand-in takes
a while, as in a region, so that the figures are of waits and not of the stand-in's processor."""

import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace

from harness import Bench, Goal, Row, expect
from rows_aws import AWS_CLI, client, server

from memory import Watch  # isort: skip; of tests/support, as rows_aws has found it

SPEC = """version: 1
name: doctor
engine: batch
aws: {{region: eu-west-1}}
workspace: s3://bench/{0}/work
image: 123456789012.dkr.ecr.eu-west-1.amazonaws.com/trainer:1
command: [python3, train.py]
resources: {{instance: trn1.2xlarge}}
compile: {{kind: neuron, cache_url: s3://bench/{0}/cache, max_steps: 2}}
hyperparameters: {{max_steps: 100}}
checkpoint: {{url: s3://bench/{0}/checkpoints}}
batch: {{job_queue: trn1, job_role: "arn:aws:iam::123456789012:role/batch-job"}}
"""
MORE = 16 << 20  # bytes
EACH = 0.1  # s of a request


def an_account(bench: Bench) -> SimpleNamespace:
    """A queue on which the spec's jobs can run, and its image."""
    case = bench.once(server)
    resources = {"type": "EC2", "maxvCpus": 64, "instanceTypes": ["trn1"], "subnets": ["subnet-1"],
                 "instanceRole": "ecsInstanceRole", "launchTemplate": {"launchTemplateName": "neuron"}}
    client(bench, case, *AWS_CLI, "batch", "create-compute-environment", "--cli-input-json", json.dumps(
        {"computeEnvironmentName": "trn1-env", "type": "MANAGED", "computeResources": resources}))
    client(bench, case, *AWS_CLI, "batch", "create-job-queue", "--cli-input-json", json.dumps(
        {"jobQueueName": "trn1", "priority": 1,
         "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "trn1-env"}]}))
    case.aws.push("123456789012.dkr.ecr.eu-west-1.amazonaws.com/trainer:1")
    folder = bench.new("doctor")
    (folder / "train.py").write_text("")
    case.spec = folder / "stoker.yaml"
    case.spec.write_text(SPEC.format(folder.name))
    case.environ = {**os.environ, **case.env}
    case.aws.fault("delay", seconds=EACH, count=0)
    case.checks = sorted({row["check"] for row in examined(bench, case)[1]})
    case.slowest = max(case.checks, key=lambda check: examined(bench, case, "--only", check)[0])
    print(f"doctor: the slowest check is {case.slowest}", file=sys.stderr)
    return case


def examined(bench, case, *argv):
    """(wall seconds, findings); what the account lacks makes no difference here."""
    begin = time.perf_counter()
    done = subprocess.run([bench.stoker, "--json", "doctor", case.spec, *argv], env=case.environ, cwd=case.spec.parent,
                          capture_output=True, text=True)
    wall = time.perf_counter() - begin
    expect(done.returncode in (0, 4), True, f"doctor ({done.stderr[-300:]})")
    return wall, [json.loads(line) for line in done.stdout.splitlines()]


def all_checks(bench, case):
    return examined(bench, case)


def slowest_check(bench, case):
    return examined(bench, case, "--only", case.slowest)


def check_findings(bench, case, own, peer):
    expect(sorted({row["check"] for row in own}), case.checks, "the checks")
    expect({row["check"] for row in peer}, {case.slowest}, "the slowest check")
    expect([row for row in own if row["state"] == "unknown" and "answer" in row["seen"]], [], "checks without an answer")


def peak(bench, case, *argv):
    """Bytes of the process's highest mark, looked at while it waits for replies."""
    with subprocess.Popen([bench.stoker, *argv, case.spec], env=case.environ, cwd=case.spec.parent,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        watch = Watch(process)
        process.wait()
        highest = watch.end()
    expect(highest > 0, True, "a look at the memory")
    return highest * 1024


def over_plan(bench, case):
    return float(peak(bench, case, "doctor") - peak(bench, case, "plan")), None


DOCTOR_ROWS = [
    Row("doctor", "all checks of a spec", "the slowest of them", "", Goal(1.3), "s", lambda bench: bench.once(an_account),
        all_checks, slowest_check, None, check_findings, pairs=5),
    Row("doctor-memory", "memory of doctor, more than of plan", "", "", Goal(float(MORE), of_ratio=False), "B",
        lambda bench: bench.once(an_account), over_plan, None, None, lambda *_: None, pairs=3),
]
