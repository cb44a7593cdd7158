"""status, wait, stop and rm by the id of a sweep, and what the other commands say to one."""

import json
import os
import signal
import sqlite3
from contextlib import closing

import pytest
from test_sweep import JOB, METRICS, nothing_twice, runs_of, until


@pytest.fixture
def job(project):
    (project.source / "job.sh").write_text(JOB.format(root=project.root))
    project.write(command=["sh", "job.sh"], hyperparameters={"pace": 0.01}, metrics=METRICS, compile=None,
                  retry={"attempts": 1}, name="controlled")
    return project


def held(job, cells, **sweep):
    job.hold = job.root / "hold"
    job.write(sweep={"list": cells, **sweep}, env={"HOLD": str(job.hold)})
    return job.start("sweep", job.spec_path, "--id", "s", start_new_session=True)


def seen(job):
    return job.ok("--json", "status", "s").lines[0]


def states(job):
    if job.stoker("status", "s").code == 9:
        return {}  # it has not begun
    return {run["run"]: run["state"] for cell in seen(job)["cells"] for run in cell["runs"]}


def test_a_sweep_that_has_ended(job):
    job.write(sweep={"list": [{"hyperparameters.steps": 12}, {"env.BAD": "--nope", "name": "bad"}, {"engine": "slurm"}],
                     "repeat": 2})
    job.stoker("sweep", job.spec_path, "--id", "s")
    view = seen(job)
    assert (view["state"], view["stopped"], view["exit_code"], view["sweep"]) == ("succeeded", False, 0, "s"), view
    first, second, third = view["cells"]
    assert [(run["state"], run["exit_code"]) for run in first["runs"]] == [("succeeded", 0)] * 2
    assert second["name"] == "bad" and sorted(run["state"] for run in second["runs"]) == ["failed", "not_begun"]
    assert "slurm" in third["why"] and [run["state"] for run in third["runs"]] == ["not_begun"] * 2
    text = job.ok("status", "s").out
    assert text.splitlines()[0] == "sweep s: succeeded" and "not supported: " in text and "s-1-2" in text, text
    assert json.loads(job.ok("--json", "wait", "s").out)["exit_code"] == 0
    assert job.stoker("status", "s", "--exit-code").code == 0
    # A stop comes too late: nothing is made of it.
    assert "sweep s had ended before it could be stopped" in job.ok("stop", "s").err
    view = seen(job)
    assert (view["state"], view["stopped"], view["exit_code"]) == ("succeeded", False, 0), view
    # rm takes its runs and its record; a dry run takes nothing.
    for line in (job.ok("--json", "rm", "s", "--dry-run").lines, job.ok("--json", "rm", "s").lines):
        assert line[-1]["sweep"] == "s" and {row["run"] for row in line[:-1]} >= {"s-1-1", "s-1-2"}, line
    assert not runs_of(job) and job.stoker("status", "s").code == 9
    assert not list(job.state.rglob("sweeps/*.json"))


def test_what_names_a_sweep_is_no_run(job):
    job.write(sweep={"list": [{}, {"name": "b"}]})
    job.stoker("sweep", job.spec_path, "--id", "s")
    for argv in (("logs", "s"), ("metrics", "s"), ("events", "s"), ("attach", "s"), ("resume", "s"), ("export", "s", "--to", "csv")):
        result = job.stoker(*argv)
        assert result.code == 2 and "'s' is a sweep, and no run" in result.err and "status s" in result.cure, str(result)
    refused = job.stoker("status", "s", "--watch")
    assert refused.code == 2 and "wait s" in refused.cure, str(refused)
    taken = job.stoker("run", job.spec_path, "--id", "s")
    assert taken.code == 3 and "'s' is a sweep, and no run" in taken.err and "--id" in taken.cure, str(taken)


def test_a_stop_stops_runs_and_sweep(job):
    sweep = held(job, [{}, {"name": "b"}, {"name": "c"}], parallel=2)
    until(lambda: sorted(states(job).values()) == ["not_begun", "running", "running"])
    assert seen(job)["state"] == "running" and "exit_code" not in seen(job)
    refused = job.stoker("rm", "s")
    assert refused.code == 4 and "sweep s has not ended" in refused.err and "stop s" in refused.cure, str(refused)
    assert job.stoker("wait", "s", "--timeout", "1s").code == 8
    job.ok("stop", "s", "--reason", "no money")
    out, err = sweep.communicate(timeout=300)
    assert sweep.returncode == 6 and b"nothing of it begins any more" in err, (out, err)
    assert sorted(states(job).values()) == ["not_begun", "stopped", "stopped"]
    view = seen(job)
    assert (view["state"], view["stopped"], view["exit_code"]) == ("stopped", True, 6), view
    run = next(run for run, state in states(job).items() if state == "stopped")
    assert job.events(run, "request.stop")[0]["reason"] == "no money"
    assert job.stoker("wait", "s").code == 6
    # Stopped is stopped: the same command begins nothing.
    job.hold.write_text("")
    again = job.stoker("sweep", job.spec_path, "--id", "s")
    assert again.code == 6 and sorted(states(job).values()) == ["not_begun", "stopped", "stopped"], str(again)
    nothing_twice(job, runs_of(job))
    # Forgotten, its id is free.
    job.ok("rm", "s")
    job.ok("sweep", job.spec_path, "--id", "s")
    assert set(states(job).values()) == {"succeeded"}


def test_a_sweep_without_a_process_is_stopped_and_removed(job):
    sweep = held(job, [{}, {"name": "b"}])
    until(lambda: "running" in states(job).values())
    os.killpg(sweep.pid, signal.SIGKILL)
    sweep.wait()
    job.ok("stop", "s")
    assert sorted(states(job).values()) == ["not_begun", "stopped"]
    job.ok("rm", "s")
    assert not runs_of(job)


def test_a_sweep_that_waits_is_told(job):
    sweep = held(job, [{}, {"name": "b"}])
    until(lambda: "running" in states(job).values())
    os.killpg(sweep.pid, signal.SIGKILL)
    sweep.wait()
    job.hold.write_text("")
    until(lambda: "succeeded" in states(job).values())
    assert seen(job)["state"] == "waiting" and job.stoker("status", "s", "--exit-code").code == 8
    refused = job.stoker("rm", "s")
    assert refused.code == 4 and "have not begun" in refused.err, str(refused)
    job.ok("sweep", job.spec_path, "--id", "s")
    assert seen(job)["state"] == "succeeded"


def test_a_damaged_run_keeps_back_no_other(job):
    sweep = held(job, [{}, {"name": "b"}, {"name": "c"}], parallel=2)
    until(lambda: sorted(states(job).values()) == ["not_begun", "running", "running"])
    os.killpg(sweep.pid, signal.SIGKILL)
    sweep.wait()
    victim, other = sorted(run for run, state in states(job).items() if state != "not_begun")
    with closing(sqlite3.connect(job.state / "stoker/journal.db")) as db, db:
        assert db.execute("UPDATE event SET body='{' WHERE run=? AND seq=2", (victim,)).rowcount == 1
    shown = job.stoker("--json", "status", "s")
    assert shown.code == 4 and f"event 2 of run {victim}" in shown.err, str(shown)
    rows = {run["run"]: run["state"] for cell in shown.lines[0]["cells"] for run in cell["runs"]}
    assert rows[victim] == "damaged" and rows[other] in ("running", "waiting"), rows
    stopped = job.stoker("stop", "s")
    assert stopped.code == 4 and f"event 2 of run {victim}" in stopped.err, str(stopped)
    assert job.ok("--json", "status", other).lines[0]["state"] == "stopped"
    assert job.stoker("wait", "s").code == 4
    job.hold.write_text("")
    until(lambda: job.stoker("rm", "s").code == 0)
    assert not runs_of(job)
