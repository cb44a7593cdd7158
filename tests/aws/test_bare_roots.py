"""The agent does its part where nothing is installed: in a root that holds busybox and
nothing else, and in those of STOKER_TEST_ROOTS (folders, separated by colons), which may
be unpacked systems of other years. Workspace, source and report are on S3; the agent is
told of an order there, as an engine in the cloud does it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import stoker as cli
from bucket_job import BUCKET, BucketJob

AGENT = cli.BINARY.parent / "agent"
BUSYBOX = os.environ.get("STOKER_TEST_BUSYBOX") or shutil.which("busybox")
SCRIPT = """set -e
echo "hello from $STOKER_PHASE on $(cat name)"
test -z "$AWS_SECRET_ACCESS_KEY"
mkdir -p $STOKER_CHECKPOINT_DIR/checkpoint-7
echo weights > $STOKER_CHECKPOINT_DIR/checkpoint-7/model.bin
echo "step: 7"
"""


def is_static(program):
    said = subprocess.run(["ldd", program], capture_output=True, text=True)
    return "not a dynamic" in said.stderr + said.stdout or "statically" in said.stdout


def busybox_root(folder):
    if not BUSYBOX or not is_static(BUSYBOX):
        pytest.skip("there is no static busybox here (package busybox-static, or STOKER_TEST_BUSYBOX)")
    (folder / "bin").mkdir(parents=True)
    shutil.copy(BUSYBOX, folder / "bin/busybox")
    for name in ("sh", "cat", "mkdir", "echo", "test"):
        (folder / "bin" / name).symlink_to("busybox")
    return folder


def roots():
    given = [root for root in os.environ.get("STOKER_TEST_ROOTS", "").split(":") if root]
    return [None, *given]


@pytest.fixture(params=roots(), ids=lambda root: Path(root).name if root else "busybox")
def root(request, tmp_path):
    """A root to run in, with what every kernel gives: /proc, /dev/null and a name server's
    absence; what the test brings goes into /job and is removed."""
    if os.geteuid() != 0:
        pytest.skip("only root can change its root")
    folder = Path(request.param) if request.param else busybox_root(tmp_path / "root")
    for name in ("proc", "dev", "tmp", "job"):
        (folder / name).mkdir(exist_ok=True)
    mounted = []
    try:
        for kind, name in (("proc", "proc"), ("tmpfs", "job")):
            done = subprocess.run(["mount", "-t", kind, "none", folder / name], capture_output=True, text=True)
            if done.returncode != 0:
                pytest.skip(f"cannot mount here: {done.stderr.strip()}")
            mounted.append(folder / name)
        if not (folder / "dev/null").exists():
            os.mknod(folder / "dev/null", 0o666 | 0o020000, os.makedev(1, 3))
        shutil.copytree(AGENT, folder / "job/agent")
        yield folder
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", place], check=True)


def start(root, aws, order):
    env = aws.env(HOME="/job", PATH="/bin:/usr/bin", TMPDIR="/job", STOKER_TOKEN="t0k", ASAN_OPTIONS=None,
                  UBSAN_OPTIONS=None, LSAN_OPTIONS=None)
    return subprocess.run([shutil.which("chroot") or "/usr/sbin/chroot", str(root), "/job/agent/lib/loader", "--library-path", "/job/agent/lib",
                           "/job/agent/stoker-node", order, "0"], env=env, capture_output=True, text=True, timeout=300)


def test_the_agent_does_its_part(root, aws, tmp_path):
    job = BucketJob(tmp_path / "project", aws)
    (job.source / "name").write_text("s3")
    (job.source / "job.sh").write_text(SCRIPT)
    # A driver brings source, agent and order there; what it starts itself is of no account.
    job.write(command=["sh", "job.sh"], hyperparameters=None, compile=None, env=None,
              metrics=[{"name": "step", "regex": "^step: ([0-9]+)"}], retry={"attempts": 1})
    driver = job.stoker("--json", "run", job.spec_path, "--id", "one")
    there = aws.objects(BUCKET)
    order = json.loads(there[f"{job.prefix}/stoker/runs/one/train-1/order.json"])
    # The same as the next attempt, in the other root.
    order.update(attempt=2, job="stk-one-train-2", prefix="runs/one/train-2/", heartbeat_ms=100, grace_ms=2000)
    order["checkpoint"]["root"] = order["checkpoint"]["root"].replace("attempt-1", "attempt-2")
    key = f"{job.prefix}/stoker/runs/one/train-2/order.json"
    aws.client().put_object(Bucket=BUCKET, Key=key, Body=json.dumps(order).encode())
    done = start(root, aws, f"s3://{BUCKET}/{key}")
    assert done.returncode == 0, (driver, done.stdout, done.stderr)
    assert "hello from train on s3" in done.stdout
    there = {key.removeprefix(f"{job.prefix}/"): body for key, body in aws.objects(BUCKET).items()}
    report = json.loads(there["stoker/runs/one/train-2/node-0/report.json"])
    assert (report["state"], report["exit"], report["last_step"]) == ("ended", 0, 7)
    assert there["ckpt/one/attempt-2/checkpoint-7/model.bin"] == b"weights\n"
    assert json.loads(there["stoker/runs/one/claim/train"])["attempt"] == 2
