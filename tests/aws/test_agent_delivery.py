"""How the agent gets into a container that nobody of ours is in: every way really brings it,
with nothing in PATH but what that way needs, and runs an order that lies on S3."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import aws as standin
import pytest
import stoker as cli
from bucket_job import BUCKET, BucketJob
from project import SUPPORT

AGENT = cli.BINARY.parent / "agent"
SCRIPT = "".join(line for line in (cli.ROOT / "jobs/engine/delivery/agent_delivery.sh").open() if not line.lstrip().startswith("#"))
JOB = 'set -e; echo "hello from $STOKER_PHASE"; test -z "$STOKER_LINK$STOKER_ORDER"'
AGAIN = 75  # EX_TEMPFAIL


class Container:
    """An order on S3 and the agent's archive beside it, as a driver leaves them; and folders
    that are all that PATH holds."""

    def __init__(self, root: Path, aws):
        self.root, self.aws, self.number = root, aws, 1
        job = BucketJob(root / "project", aws)
        (job.source / "job.sh").write_text(JOB)
        job.write(command=["sh", "job.sh"], hyperparameters=None, compile=None, env=None, retry={"attempts": 1})
        driver = job.stoker("run", job.spec_path, "--id", "one")
        assert driver.code == 0, str(driver)
        self.prefix = f"{job.prefix}/stoker"
        self.order = json.loads(aws.objects(BUCKET)[f"{self.prefix}/runs/one/train-1/order.json"])
        self.archive = root / "agent.tar.gz"
        with tarfile.open(self.archive, "w:gz", compresslevel=1) as packed:
            packed.add(AGENT, ".")
        self.sum = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        self.key = f"{self.prefix}/agents/a.{self.sum}.tar.gz"
        self.s3 = aws.client()
        self.s3.put_object(Bucket=BUCKET, Key=self.key, Body=self.archive.read_bytes())

    def next_order(self, **more) -> str:
        """The URL of the order of another attempt."""
        self.number += 1
        number, order = self.number, dict(self.order)
        order.update(attempt=number, job=f"stk-one-train-{number}", prefix=f"runs/one/train-{number}/",
                     heartbeat_ms=100, grace_ms=2000, **more)
        order["checkpoint"] = {**order["checkpoint"], "root": order["checkpoint"]["root"].replace(
            "attempt-1", f"attempt-{number}")}
        key = f"{self.prefix}/runs/one/train-{number}/order.json"
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(order).encode())
        return f"s3://{BUCKET}/{key}"

    def report(self) -> dict:
        key = f"{self.prefix}/runs/one/train-{self.number}/node-0/report.json"
        return json.loads(self.aws.objects(BUCKET)[key])

    def tools(self, *names: str) -> str:
        """A folder with these programs and what a shell cannot do without."""
        folder = self.root / f"tools-{self.number}-{len(list(self.root.glob('tools-*')))}"
        folder.mkdir()
        python = os.path.realpath(sys.executable)
        own = {"python3": f'exec {python} "$@"', "aws": f'exec {standin.python()} -m awscli "$@"', "broken curl": "exit 60"}
        for name in (*names, "sh", "mkdir", "rm", "cp", "chmod", "env"):
            if name in own:
                program = folder / name.split()[-1]
                program.write_text(f"#!/bin/sh\n{own[name]}\n")
                program.chmod(0o755)
            else:
                (folder / name).symlink_to(shutil.which(name, path="/usr/bin:/bin"))
        return str(folder)

    def env(self, path: str, **more) -> dict:
        folder = self.root / f"tmp-{self.number}"
        folder.mkdir(exist_ok=True)
        return self.aws.env(PATH=path, HOME=str(folder), TMPDIR=str(folder), STOKER_TOKEN=f"t{self.number}",
                            **more)

    def link(self, seconds: int = 600) -> str:
        return self.s3.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": self.key}, seconds)

    def fetch(self, *tools: str, entry=(), **more):
        """Start the script as the container's command, which the image's entry point is given."""
        env = {"STOKER_ORDER": self.next_order(), "STOKER_LINK": self.link(), "STOKER_LINK_SHA256": self.sum,
               "STOKER_LINK_ENDS": "2026-11-22T12:00:00Z", "STOKER_LINK_FROM": f"s3://{BUCKET}/{self.key}", **more}
        path = self.tools(*tools)
        return self.run([*entry, "sh", "-c", SCRIPT, "stoker", "batch"], self.env(path, **env))

    def run(self, argv, env):
        done = subprocess.run([shutil.which(argv[0], path=env["PATH"]) or argv[0], *argv[1:]], env=env,
                              capture_output=True, text=True, timeout=300, cwd=env["TMPDIR"])
        assert "Signature" not in done.stdout + done.stderr
        return done

    def is_done(self, done):
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert "hello from train" in done.stdout
        report = self.report()
        assert (report["state"], report["exit"]) == ("ended", 0)


@pytest.fixture(scope="module")
def container(aws_process, tmp_path_factory):
    aws_process.reset()
    yield Container(tmp_path_factory.mktemp("arrival"), aws_process)
    aws_process.reset()


def test_a_link_is_fetched_with_what_the_image_has(container):
    for tools in (["curl", "sha256sum", "tar", "gzip"], ["python3"], ["aws", "openssl", "tar", "gzip"]):
        container.is_done(container.fetch(*tools))
    # Some images have a shell read their command once more.
    container.is_done(container.fetch("bash", "python3", entry=["bash", "-m", str(SUPPORT / "entry_point.sh")]))
    # One that does not work is not the last: such a curl has no certificates.
    container.is_done(container.fetch("broken curl", "python3"))


def test_a_link_that_does_not_lead_to_the_agent_is_named(container):
    done = container.fetch("curl", "sha256sum", "tar", "gzip", STOKER_LINK_SHA256="0" * 64)
    assert done.returncode == 70
    assert f"is not the one that was sent: SHA-256 {container.sum} instead of {'0' * 64}" in done.stderr
    done = container.fetch("sha256sum", "tar")
    assert done.returncode == 127
    assert "the image has neither curl nor python3 nor aws" in done.stderr
    done = container.fetch("curl")
    assert done.returncode == 70
    assert "neither sha256sum nor python3 nor openssl" in done.stderr
    nowhere = container.s3.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "nothing"}, 600)
    for tool in ("curl", "python3"):
        done = container.fetch(tool, "sha256sum", STOKER_LINK=nowhere)
        assert done.returncode == AGAIN
        assert "NoSuchKey" in done.stderr
    assert not container.aws.objects(BUCKET).get(f"{container.prefix}/runs/one/train-{container.number}/claim/train")


def test_a_link_that_has_expired_is_named(container):
    """It waited too long in the queue; or the credentials that made it ended before."""
    link = container.link(1)
    end = time.monotonic() + 120
    curl = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", link]
    while subprocess.run(curl, capture_output=True, text=True).stdout != "403":
        assert time.monotonic() < end
        time.sleep(0.1)
    for tools in (["curl", "sha256sum", "tar", "gzip"], ["python3"]):
        done = container.fetch(*tools, STOKER_LINK=link)
        assert done.returncode == AGAIN
        assert ("the link to the agent has expired: the job waited longer in the queue than the link was good for "
                "(until 2026-11-22T12:00:00Z)") in done.stderr
    container.aws.add_key("ASIAPASSING", "secret", token="passing")
    passing = container.aws.client(access="ASIAPASSING", secret="secret", token="passing")
    link = passing.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": container.key}, 600)
    container.aws.expire("ASIAPASSING")
    done = container.fetch("curl", "sha256sum", "tar", "gzip", STOKER_LINK=link)
    assert done.returncode == AGAIN
    assert "the link to the agent has expired" in done.stderr


def test_the_folder_starts_itself_from_wherever_it_lies(container):
    """As an input channel brings it: without modes, where nothing may be written."""
    folder = container.root / "channel"
    shutil.copytree(AGENT, folder)
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(0o444)
    path = container.tools()
    as_is = [["sh", folder / "start"]]
    if shutil.which("busybox"):
        as_is.append([shutil.which("busybox"), "sh", folder / "start"])
    for shell in as_is:
        env = container.env(path, STOKER_ORDER=container.next_order())
        container.is_done(container.run([*map(str, shell), "-", "0"], env))
        for name in ("stoker-node", "lib/loader"):  # it was made executable in place
            (folder / name).chmod(0o444)
    if os.geteuid() == 0 and mounted_elsewhere(folder):
        try:
            env = container.env(path, STOKER_ORDER=container.next_order())
            container.is_done(container.run(["sh", str(folder / "start"), "-", "batch"], env))
            copies = [each.parent for each in Path(env["TMPDIR"]).glob("stoker-agent.*/stoker-node")]
            assert [each.stat().st_mode & 0o777 for each in copies] == [0o700]
        finally:
            subprocess.run(["umount", folder], check=True)
    done = container.run(["sh", str(folder / "start"), "-", "0"], container.env(path))
    assert (done.returncode, "there is no order in STOKER_ORDER" in done.stderr) == (70, True)
    (folder / "lib/loader").unlink()
    done = container.run(["sh", str(folder / "start"), "s3://x/y", "0"], container.env(path))
    assert (done.returncode, "there is no whole agent in" in done.stderr) == (127, True)


def mounted_elsewhere(folder: Path) -> bool:
    """The same folder, on what is read-only and runs nothing."""
    done = subprocess.run(["mount", "--bind", folder, folder], capture_output=True)
    if done.returncode != 0:
        return False
    options = ["mount", "-o", "remount,bind,ro,noexec", folder]
    if subprocess.run(options, capture_output=True).returncode == 0:
        return True
    subprocess.run(["umount", folder], check=True)
    return False


def test_secrets_are_asked_for_with_the_role_of_the_job(container):
    """They are in no order, report or log; and one that may not be read is named."""
    container.aws.client("secretsmanager").create_secret(Name="wandb", SecretString='{"key": "hunter2"}')
    since = container.aws.mark()
    command = ["sh", "-c", 'test ${#WANDB_API_KEY} = 7 && echo hello from train']
    folder = container.root / "agent"
    shutil.copytree(AGENT, folder)
    path = container.tools("test")
    where = {"WANDB_API_KEY": "secretsmanager:wandb#key"}
    order = container.next_order(command=command, secrets=["WANDB_API_KEY"], secret_from=where)
    env = container.env(path, STOKER_ORDER=order)
    done = container.run(["sh", str(folder / "start"), "-", "0"], env)
    container.is_done(done)
    assert container.aws.requests("GetSecretValue", since) == 1
    written = b"".join(container.aws.objects(BUCKET).values())
    assert b"hunter2" not in written and "hunter2" not in done.stdout + done.stderr
    where = {"WANDB_API_KEY": "secretsmanager:other"}
    order = container.next_order(command=command, secrets=["WANDB_API_KEY"], secret_from=where)
    done = container.run(["sh", str(folder / "start"), "-", "0"], container.env(path, STOKER_ORDER=order))
    error = container.report()["error"]
    assert done.returncode == 70
    assert "secret 'WANDB_API_KEY' ('secretsmanager:other')" in error["message"]
    assert error["class"] == "quota-permission"
