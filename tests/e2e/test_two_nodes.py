"""The real model, data-parallel over two real processes of jax.distributed: they
train as one; where one is killed the attempt ends as a whole and the run resumes
from its newest complete checkpoint."""

import os
import re
import signal
import subprocess
import time

import pytest
import stoker as cli
from quickstart import Job

TWO = ("--set", "resources.nodes=2", "--set", "hyperparameters.max_steps=60",
       "--set", "hyperparameters.save_steps=20", "--set", "retry.backoff.first=0s")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return Job(tmp_path_factory.mktemp("two"))


def losses(job, run, node, attempt=1):
    log = job.stoker("logs", run, "--node", node, "--attempt", attempt, "--phase", "train").out
    return dict(re.findall(r"^step: (\d+) loss: ([0-9.]+)", log, re.MULTILINE))


def test_two_nodes_train_as_one(job):
    job.run(*TWO, "--id", "whole")
    first, second = losses(job, "whole", 0), losses(job, "whole", 1)
    assert first == second and first["60"]
    assert job.status()["jit"]["graphs"] == 0


def rank_of(run, rank):
    """The pid of this rank's Python, by its environment."""
    wanted = {f"STOKER_RUN={run}".encode(), f"STOKER_NODE_RANK={rank}".encode(),
              b"STOKER_PHASE=train"}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                if wanted <= set(environ.read().split(b"\0")):
                    return int(pid)
        except OSError:
            continue
    return None


def test_one_killed_takes_all_down_and_the_run_resumes(job):
    env = cli.environment(STOKER_STATE=str(job.state), HOME=str(job.root))
    slow = ("--set", "hyperparameters.max_steps=600")  # so that steps are left when it is killed
    process = cli.start("run", job.spec, *TWO, *slow, "--id", "hurt", env=env, cwd=job.root)
    try:
        deadline = time.monotonic() + 600
        while not [row for row in job.stoker("events", "hurt", code=None).lines
                   if row["event"] == "checkpoint.complete"]:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
        os.kill(rank_of("hurt", 1), signal.SIGKILL)
    except BaseException:
        process.kill()
        subprocess.run([cli.BINARY, "stop", "hurt"], env=env, check=False, timeout=300)
        raise
    result = cli.finish(process, ("run",), 600)
    assert result.code == 0, str(result)
    events = job.stoker("events", "hurt").lines
    ended = [row for row in events if row["event"] == "attempt.ended" and row["phase"] == "train"]
    assert [row["attempt"] for row in ended] == [1, 2]
    assert ended[0]["node"] == 1 and ended[0]["exit"] == 137
    continuity, = [row for row in events if row["event"] == "train.continuity"]
    assert continuity["continuity"] == "verified" and continuity["step"] >= 20
    assert losses(job, "hurt", 0, 2) == losses(job, "hurt", 1, 2)
