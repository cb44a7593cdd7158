"""The agent's own processes, the checkpointer and the uploader, killed again and again while a training goes on: so many
times an hour they are started again and do their work; one that stays dead ends the attempt, drained."""

import os
import signal
from pathlib import Path

import pytest
import stoker as cli
from batch_job import BatchJob
from bucket_job import BucketJob

PROCESSES = {"checkpointer": "stoker-ckpt", "uploader": "stoker-upload"}
BUDGET = 20  # restarts an hour: jobs/node/workers.h
FEW = 7
SLOW = 900   # seconds that say "it hangs"


@pytest.fixture
def make(aws, tmp_path):
    made = []

    def make(kind):
        # Of each node a part of the checkpoint: one that nobody looks after is none.
        what = {"compile": None, "hyperparameters": {"max_steps": 100000}, "limits": {"grace": "20s"}}
        root = tmp_path / "project"
        job = (BatchJob(root, aws, resources={"instance": "trn1.32xlarge", "nodes": 2}, **what) if kind == "batch"
               else BucketJob(root, aws, **what))
        job.write(checkpoint={**job.spec["checkpoint"], "grace": "20s"}, env={**job.spec["env"], "STEP_SECONDS": "0.2"})
        made.append(job)
        return job

    yield make
    for job in made:
        job.stop()


def workers(job, name, agent):
    """Such processes of that agent."""
    found = []
    for pid in job.agents(helpers=True):
        try:
            stat = (Path("/proc") / str(pid) / "stat").read_text()
        except OSError:
            continue
        if f"({PROCESSES[name]})" in stat and int(stat.rsplit(")", 1)[1].split()[1]) == agent:
            found.append(pid)
    return found


def kill_times(job, name, agent, times, last=None):
    """Each time another one: the last."""
    for _ in range(times):
        before = last
        last, = job.wait_for(lambda: [pid for pid in workers(job, name, agent) if pid != before], SLOW)
        os.kill(last, signal.SIGKILL)
    return last


@pytest.mark.long
@pytest.mark.parametrize("kind, name, node", [("local", "checkpointer", 0), ("batch", "uploader", 1)])
def test_a_few_deaths_are_no_end_and_one_that_stays_dead_is(make, kind, name, node):
    job = make(kind)
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    job.wait_for(lambda: job.marks("one"), SLOW)
    agent = job.agents()[0] if kind == "local" else job.agent_of(node)

    last = kill_times(job, name, agent, FEW)
    job.wait_for(lambda: [pid for pid in workers(job, name, agent) if pid != last], SLOW)
    seen = max(job.marks("one"))
    job.wait_for(lambda: max(job.marks("one")) > seen, SLOW)
    assert job.events("one", "worker.lost") == [] and driver.poll() is None
    assert job.attempts("one") == [("train", 1)]

    kill_times(job, name, agent, BUDGET + 1 - FEW, last)
    job.wait_for(lambda: [each for each in job.effects("start") if each["attempt"] == 2], SLOW)
    row, = job.events("one", "worker.lost")
    assert (row["phase"], row["attempt"], row["node"]) == ("train", 1, node)
    assert f"({PROCESSES[name]}) died {BUDGET + 1} times within an hour, the last time with signal 9" in row["reason"]
    ended, = job.events("one", "attempt.ended")
    assert (ended["class"], ended["node"]) == ("hardware-node", node), ended
    assert row["reason"] in ended["evidence"] and ended["seq"] > row["seq"]
    assert ended["stopped"] in ("worker", "drain")
    told = job.status("one")["attempts"][0]
    assert told["worker"] == {"node": node, "reason": row["reason"], "hint": row["hint"]}
    assert f"({PROCESSES[name]}) died" in job.ok("status", "one").out

    # It was drained: what was saved on the way out was marked, and is gone on from.
    second = job.wait_for(lambda: [each for each in job.effects("start") if each["attempt"] == 2], SLOW)[0]
    assert second["done"] == max(job.marks("one")) > seen
    job.ok("stop", "one")
    assert cli.finish(driver).code == 6
    assert len(job.events("one", "worker.lost")) == 1
