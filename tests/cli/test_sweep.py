"""`sweep`: cells of a spec as runs of their own, compared at the end, whatever happens on the way."""

import html
import json
import os
import random
import signal
import time

import pytest
import stoker as cli

SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))
KILLS = int(os.environ.get("STOKER_TEST_SWEEP_KILLS", "10"))

# Steps at a pace that the hyperparameter sets; HOLD: it waits for that file first; BAD: it fails at once.
JOB = """
echo "$STOKER_PHASE" >> {root}/phases
[ -z "$BAD" ] || {{ echo "XlaRuntimeError: INVALID_ARGUMENT: unknown flag $BAD" >&2; exit 1; }}
while [ -n "$HOLD" ] && [ ! -e "$HOLD" ]; do sleep 0.05; done
i=0
while [ $i -lt ${{STOKER_HP_STEPS:-24}} ]; do
  i=$((i + 1))
  echo "step: $i loss: $((100 - i))"
  sleep $STOKER_HP_PACE
done
"""
METRICS = [{"name": "step", "regex": "^step: ([0-9]+)"}, {"name": "loss", "regex": "loss: ([0-9]+)"}]


@pytest.fixture
def job(project):
    (project.source / "job.sh").write_text(JOB.format(root=project.root))
    project.write(command=["sh", "job.sh"], hyperparameters={"pace": 0.01}, metrics=METRICS, compile=None,
                  retry={"attempts": 1}, name="ladder")

    def sweep(*argv, code=0, **options):
        result = project.stoker("sweep", project.spec_path, *argv, **options)
        assert result.code == code, str(result)
        return result
    project.sweep = sweep
    return project


def runs_of(project) -> dict:
    return {line["run"]: line for line in project.ok("list", "--json").lines}


def nothing_twice(project, runs) -> None:
    for run in runs:
        assert len(project.events(run, "run.created")) == 1
        assert len(project.attempts(run)) == len(set(project.attempts(run)))


def until(what, seconds=cli.SECONDS):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_eight_cells_and_one_not_supported(job):
    cells = [{}, {"hyperparameters.pace": 0.03}, {"env.BAD": "--xla_nope"}, {"name": "noise"}, {"env.X": "a,b|c"},
             {"hyperparameters.steps": 20}, {"engine": "slurm"}, {"hyperparameters.flag": None}]
    job.write(sweep={"list": cells, "repeat": 2, "parallel": 4})
    result = job.sweep("--id", "s", "--json")
    rows = result.lines
    assert [row["run"] for row in rows] == ["s-1-1", "s-2-1", rows[2]["run"], "s-4-1", "s-5-1", "s-6-1", "s-7-1", "s-8-1"]
    assert rows[0]["verdict"] == "baseline" and rows[0]["runs"] == ["s-1-1", "s-1-2"]
    assert rows[1]["verdict"] in ("slower", "within noise", "faster") and rows[1]["speed"] > 0
    assert rows[1]["differences"] == [{"field": "hyperparameters.pace", "old": 0.01, "new": 0.03}]
    # One run of it was enough, and the others went on.
    assert rows[2]["verdict"] == "not supported" and "unknown flag --xla_nope" in rows[2]["why"]
    assert len(rows[2]["runs"]) >= 1 and "speed" not in rows[2]
    assert rows[3]["differences"] == [] and len(rows[3]["runs"]) == 2, "a row of noise alone is a row"
    assert rows[6]["verdict"] == "not supported" and "slurm" in rows[6]["why"] and rows[6]["runs"] == []
    assert {len(row["runs"]) for at, row in enumerate(rows) if at not in (2, 6)} == {2}
    assert not any(row["best"] for row in rows if row["verdict"] != "faster")
    runs = runs_of(job)
    assert runs["s-4-1"]["name"] == "noise" and runs["s-1-1"]["name"] == "ladder"
    nothing_twice(job, runs)

    # The table is there later, by the id of the sweep, and a repeated sweep runs nothing.
    assert job.ok("compare", "s", "--json").lines == rows
    again = job.sweep("--id", "s", "--json")
    assert again.lines == rows and runs_of(job).keys() == runs.keys()
    shown = job.ok("compare", "s").out
    assert "not supported: " in shown and shown.index("s-2-1") < shown.index("s-8-1")
    record = job.state / "stoker" / "sweeps" / "s.json"
    assert record.stat().st_mode & 0o777 == 0o600 and record.parent.stat().st_mode & 0o777 == 0o700

    # More repeats go on with the same sweep.
    more = job.sweep("--id", "s", "--json", "--set", "sweep.repeat=3").lines
    assert more[0]["runs"] == ["s-1-1", "s-1-2", "s-1-3"] and set(runs) < set(runs_of(job))
    assert more[2]["runs"] == rows[2]["runs"], "a cell that failed is not tried again"


def test_a_reason_of_many_lines_is_one_in_the_table(job):
    usage = "usage: train.py [--a A]\\n                [--b B]\\ntrain.py: error: unrecognized arguments: --workers 1\\n"
    (job.source / "job.sh").write_text(f"[ -z \"$BAD\" ] || {{ printf '{usage}' >&2; exit 2; }}\n" + JOB.format(root=job.root))
    job.write(sweep={"list": [{}, {"env.BAD": "1"}]})
    rows = job.sweep("--id", "s", "--json").lines
    assert "unrecognized arguments: --workers 1" in rows[1]["why"]
    for form in ((), ("--markdown",)):
        line, = (line for line in job.ok("compare", "s", *form).out.splitlines() if "not supported" in line)
        assert line.rstrip("| ").endswith("not supported: train.py: error: unrecognized arguments: --workers 1"), line


def test_equal_graphs_compile_once(project):
    project.extra("""
import os


def start(args):
    if os.environ["STOKER_PHASE"] == "precompile":
        with open(os.environ["COUNT"], "a") as file:
            print(os.environ["STOKER_RUN"], file=file)


def step(number, args):
    pass
""")
    count = project.root / "count"
    project.write(env={"COUNT": str(count)}, sweep={
        "list": [{}, {"hyperparameters.lr": 0.2}, {"hyperparameters.batch_size": 16}, {},
                 {"env.XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}, {"hyperparameters.lr": 0.3}],
        "repeat": 2, "parallel": 3})
    plan = project.plan()
    assert plan["runs"] == 12 and plan["graph_keys"] == 3
    assert [cell.get("equal_graphs") for cell in plan["cells"]] == [None, 1, None, 1, None, 1]
    assert [cell["cache"] for cell in plan["cells"]] == ["cold"] * 6
    shown = project.ok("plan", project.spec_path).out
    assert "3 graph keys" in shown and "compile once" in shown and shown.count("as cell 1") == 3
    result = project.stoker("sweep", project.spec_path, "--id", "graphs", "--json")
    assert result.code == 0, str(result)
    keys = {project.status(run)["cache"]["graph_key"] for run in runs_of(project)}
    assert len(keys) == 3 and keys == {cell["graph_key"] for cell in plan["cells"]}
    assert len(count.read_text().split()) == 3, "each graph key is compiled once"
    assert all(len(row["runs"]) == 2 for row in result.lines)
    assert [cell["cache"] for cell in project.plan()["cells"]] == ["warm"] * 6


def test_killed_at_drawn_moments(job):
    """The sweep is killed, and at times the driver of a run with it."""
    draw = random.Random(SEED)
    cells = [{}, {"hyperparameters.pace": 0.02}, {"env.BAD": "x"}, {"hyperparameters.steps": 20}, {"engine": "slurm"}]
    repeat = max(2, KILLS // 4)
    job.write(sweep={"list": cells, "repeat": repeat, "parallel": 2})
    for turn in range(KILLS):
        process = job.start("sweep", job.spec_path, "--id", "k")
        time.sleep(draw.uniform(0, 0.8))
        process.kill()
        process.communicate()
        if turn % 2 == 0:
            for line in job.ok("list", "--json").lines:
                if line.get("driver") and draw.random() < 0.5:
                    try:
                        os.kill(line["driver"]["pid"], signal.SIGKILL)
                    except ProcessLookupError:
                        pass
    rows = job.sweep("--id", "k", "--json").lines
    runs = runs_of(job)
    nothing_twice(job, runs)
    assert [(row["verdict"], len(row["runs"])) for at, row in enumerate(rows) if at != 2] == [
        ("baseline", repeat), (rows[1]["verdict"], repeat), (rows[3]["verdict"], repeat), ("not supported", 0)]
    assert rows[2]["verdict"] == "not supported" and 1 <= len(rows[2]["runs"]) <= 2
    assert job.ok("compare", "k", "--json").lines == rows
    assert job.sweep("--id", "k", "--json").lines == rows and runs_of(job).keys() == runs.keys()


def test_two_at_once(job):
    job.write(sweep={"one_at_a_time": {"hyperparameters.pace": [0.02, 0.005]}, "repeat": 2, "parallel": 2})
    both = [job.start("--json", "sweep", job.spec_path, "--id", "two") for _ in range(2)]
    out = [process.communicate(timeout=cli.SECONDS) for process in both]
    assert [process.returncode for process in both] == [0, 0], out
    assert out[0][0] == out[1][0] and len(out[0][0].splitlines()) == 3
    runs = runs_of(job)
    assert len(runs) == 6
    nothing_twice(job, runs)


def pace_of(project, run):
    created = project.events(run, "run.created")[0]
    return created["plan"]["spec"]["hyperparameters"], created["plan"]["spec"]["env"]


def test_a_ladder_on_top_of_the_last(job):
    job.write(sweep={"ladder": [{"name": "slow", "hyperparameters.pace": 0.02}, {"env.X": "1"},
                                {"hyperparameters.pace": 0.005}]})
    rows = job.sweep("--id", "l", "--json").lines
    assert [row["verdict"] for row in rows] == ["baseline"] + ["one run: no interval"] * 3
    assert pace_of(job, "l-3-1") == ({"pace": 0.02}, {"X": "1"})
    assert pace_of(job, "l-4-1") == ({"pace": 0.005}, {"X": "1"})
    assert {line["name"] for run, line in runs_of(job).items()} == {"ladder", "slow"}
    assert runs_of(job)["l-2-1"]["name"] == "slow" and runs_of(job)["l-3-1"]["name"] == "ladder"
    assert "sweep" not in job.events("l-1-1", "run.created")[0]["plan"]["spec"]


def test_a_ladder_on_top_of_the_best(job):
    """Which cell is the best, the table says: a step is on top of the fastest before it."""
    own = [{}, {"pace": 0.05, "steps": 14}, None, {"pace": 0.001}, {"steps": 16}]
    job.write(sweep={"ladder": [{"hyperparameters.pace": 0.05, "hyperparameters.steps": 14}, {"env.BAD": "1"},
                                {"hyperparameters.pace": 0.001}, {"hyperparameters.steps": 16}],
                     "on_top_of": "best", "parallel": 2})
    rows = job.sweep("--id", "best", "--json").lines
    assert rows[2]["verdict"] == "not supported" and pace_of(job, "best-3-1")[1] == {"BAD": "1"}
    for cell in (1, 3, 4):
        fastest = max((row["speed"], -at) for at, row in enumerate(rows[:cell]) if "speed" in row)
        base = pace_of(job, f"best-{1 - fastest[1]}-1")[0]
        assert pace_of(job, f"best-{cell + 1}-1") == ({**base, **own[cell]}, {}), (cell, rows)
    record = json.loads((job.state / "stoker" / "sweeps" / "best.json").read_text())
    assert record["cells"][1]["sets"] == ["hyperparameters.pace=0.05", "hyperparameters.steps=14"]
    assert job.ok("compare", "best", "--json").lines == rows


def held(job, **sweep):
    """A sweep whose runs wait for a file."""
    gate = job.root / "go"
    job.write(env={"HOLD": str(gate)}, sweep={"list": [{}, {"env.X": "1"}, {"env.X": "2"}], "parallel": 2, **sweep})
    return gate


def test_a_signal_leaves_the_runs(job):
    gate = held(job)
    process = job.start("sweep", job.spec_path, "--id", "sig")
    until(lambda: sum(line["state"] == "running" for line in runs_of(job).values()) == 2)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=cli.SECONDS)
    assert process.returncode == 8 and b"--id sig" in err
    assert all(line["driver"] and "exit_code" not in line for line in runs_of(job).values())
    gate.touch()
    assert len(job.sweep("--id", "sig", "--json").lines) == 3
    runs = runs_of(job)
    assert len(runs) == 3 and {line["state"] for line in runs.values()} == {"succeeded"}
    nothing_twice(job, runs)


def test_a_signal_may_stop_the_runs(job):
    gate = held(job)
    process = job.start("--json", "sweep", job.spec_path, "--id", "sig", "--on-interrupt", "stop")
    until(lambda: sum(line["state"] == "running" for line in runs_of(job).values()) == 2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=cli.SECONDS)
    rows = [json.loads(line) for line in out.splitlines()]
    assert process.returncode == 6
    assert [row["verdict"] for row in rows] == ["stopped"] * 2 and len(runs_of(job)) == 2
    assert {line["state"] for line in runs_of(job).values()} == {"stopped"}
    # It goes on with what has not begun.
    gate.touch()
    rows = job.sweep("--id", "sig", "--json").lines
    assert sorted(row["verdict"] for row in rows)[-2:] == ["stopped", "stopped"] and len(rows) == 3


@pytest.mark.parametrize("limit", ["deadline", "cost"])
def test_limits_of_all_runs(job, limit):
    held(job, stop_when={"deadline": "1s"} if limit == "deadline" else {"cost": 5})
    job.write(resources={"price": 36000})  # 10 USD a second
    plan = job.plan()
    assert plan["limit"] == f"sweep.stop_when.{limit}" and plan["at_most"] == {"deadline": 20, "cost": 5}[limit]
    result = job.sweep("--id", "lim", "--json", code=5)
    assert {row["verdict"] for row in result.lines} == {"stopped"}
    assert f"sweep.stop_when.{limit}" in result.lines[0]["why"] and len(runs_of(job)) == 2
    assert job.sweep("--id", "lim", "--json", code=5).lines == result.lines and len(runs_of(job)) == 2
    # Nothing of it will begin, so nobody waits for that.
    assert job.stoker("wait", "lim").code == 5
    (status,) = job.ok("status", "lim", "--json").lines
    assert (status["state"], status["exit_code"]) == ("refused", 5)
    job.ok("rm", "lim")


def test_all_cells_fail(job):
    job.write(sweep={"list": [{"env.BAD": "1"}, {"env.BAD": "2"}]})
    rows = job.sweep("--id", "bad", "--json", code=1).lines
    assert [row["verdict"] for row in rows] == ["not supported"] * 2


def test_without_metrics_time_is_compared(job):
    job.write(metrics=None, sweep={"list": [{}, {"env.X": "1"}]})
    rows = job.sweep("--id", "time", "--json").lines
    assert [row["verdict"] for row in rows] == ["baseline", "no steps measured"] and rows[1]["wall"] > 0


def test_the_plan_of_costs_and_refusals(job):
    job.write(resources={"price": 36}, limits={"deadline": "1h"}, sweep={
        "grid": {"resources.nodes": [1, 2], "engine": ["local", "slurm"]}, "repeat": 3})
    plan = job.plan()
    assert plan["runs"] == 12 and plan["graph_keys"] == 0
    assert [cell.get("at_most") for cell in plan["cells"]] == [108, None, 216, None]
    assert "slurm" in plan["cells"][1]["why"] and plan["at_most"] == 324
    job.write(sweep={"grid": {"resources.nodes": [1, 2]}, "repeat": 3})
    assert job.plan()["at_most"] == 324
    assert "at most 324.00 USD for all runs, by limits" in job.ok("plan", job.spec_path).out
    # What one run has cost tells what each may.
    job.run("--id", "one")
    assert job.plan()["cells"][0]["estimated"] > 0


def test_run_runs_the_spec_as_it_is(job):
    job.write(sweep={"list": [{"env.BAD": "1"}]})
    result = job.run("--id", "plain")
    assert "stoker sweep" in result.err and list(runs_of(job)) == ["plain"]
    assert job.ok("run", job.spec_path, "--dry-run", "--json").lines[0]["plan_digest"] == job.plan()["plan_digest"]


def refused(result, code, *words):
    assert result.code == code, str(result)
    for word in words:
        assert word in result.err, str(result)
    assert result.cure


def test_bad_input(job):
    refused(job.sweep(code=3), 3, "no section 'sweep'")
    job.write(sweep={"list": [{}, {"compile.kind": "jax"}]})
    refused(job.sweep("--id", "s", code=3), 3, "cell 2 (compile.kind=jax)", "cache_url")
    assert runs_of(job) == {}, "nothing begins while a cell is wrong"
    refused(job.stoker("plan", job.spec_path), 3, "cell 2 (compile.kind=jax)")
    job.write(sweep={"list": [{"resources.nodes": "many"}]})
    refused(job.sweep(code=3), 3, "'resources.nodes' must be an integer")
    problem, last = job.sweep("--json", code=3).lines
    assert "'resources.nodes' must be an integer" in problem["message"], problem
    assert last["error"]["code"] == 3
    job.write(sweep={"list": [{}, {"env.X": "1"}]})
    refused(job.sweep("--id", "No", code=2), 2, "invalid id")
    refused(job.sweep("--id", "x" * 39, code=2), 2, "too long")
    assert job.sweep("--csv", "--markdown", code=2).cure
    job.run("--id", "taken")
    refused(job.sweep("--id", "taken", code=3), 3, "is a run")
    spec = job.spec_path.read_text()
    job.sweep("--id", "s")
    job.write(sweep={"list": [{}, {"env.X": "2"}]})
    refused(job.sweep("--id", "s", code=3), 3, "other cells")
    job.write(sweep={"list": [{}, {"env.X": "1"}]}, env={"Z": "1"})
    refused(job.sweep("--id", "s", code=3), 3, "another plan")
    job.spec_path.write_text(spec)
    job.sweep("--id", "s", "--set", "sweep.repeat=2")
    refused(job.sweep("--id", "s", code=3), 3, "2 runs of each cell")
    refused(job.stoker("compare", "s", "s-1-1"), 2, "named twice")
    record = job.state / "stoker" / "sweeps" / "s.json"
    record.write_text(record.read_text()[:40])
    refused(job.sweep("--id", "s", code=4), 4, "damaged")
    refused(job.stoker("compare", "s"), 4, "damaged")
    for foreign in ([1], [{"name": "a", "runs": [None], "own": []}], [{"name": "a", "runs": ["s-1-1"], "own": ["x"]}],
                    [{"name": "a", "runs": ["../x"], "own": []}], [{"name": "a", "runs": ["s-1-1"]}], []):
        record.write_text(json.dumps({"sweep": "s", "cells": foreign}))
        refused(job.stoker("compare", "s"), 4, "damaged")
        refused(job.sweep("--id", "s", code=4), 4, "damaged")
    record.unlink()
    refused(job.stoker("compare", "s"), 2, "s")
    job.sweep("--id", "s", "--set", "sweep.repeat=2")
    assert len(job.ok("compare", "s", "--json").lines) == 2 and len(runs_of(job)) == 5


def test_a_cell_that_fails_leaves_the_unit_of_speed_to_the_others(job):
    """Twice the batch in less than twice the time is faster, whatever became of other cells."""
    job.write(samples_per_step=8, resources={"price": 36}, sweep={"list": [
        {}, {"hyperparameters.pace": 0.015, "samples_per_step": 16}, {"env.BAD": "1"}, {"engine": "slurm"}]})
    rows = job.sweep("--id", "s", "--json").lines
    assert rows[1]["speed"] == pytest.approx(
        16 / rows[1]["step_seconds_mean"] / (8 / rows[0]["step_seconds_mean"]), rel=1e-9)
    shown = job.ok("compare", "s").out
    assert "s-4-1: engine: null -> \"slurm\"" in shown

    # Its report needs nothing but its id, says why cells are not supported, and ends.
    job.ok("report", "s", "--watch")
    page = html.unescape((job.source / "report-s.html").read_text())
    assert "s-3-1: not supported: XlaRuntimeError" in page and "Run s-4-1 never began: engine=slurm" in page
    assert "2 of 4 runs succeeded" in page and " nan " not in page


def test_a_report_is_renewed_until_the_sweep_has_ended(job):
    """Between two runs nothing goes on, and the sweep has not ended."""
    gate = held(job)
    process = job.start("sweep", job.spec_path, "--id", "w")
    until(lambda: len(runs_of(job)) == 2)
    watch = job.start("--json", "report", "w", "--watch", "--output", job.root / "w.html")
    assert not json.loads(watch.stdout.readline())["ended"]
    process.kill()
    process.communicate()
    gate.touch()
    until(lambda: all("exit_code" in line for line in runs_of(job).values()))
    assert not job.ok("--json", "report", "w", "--output", job.root / "x.html").lines[0]["ended"]
    job.sweep("--id", "w")
    out, err = watch.communicate(timeout=cli.SECONDS)
    assert watch.returncode == 0 and json.loads(out.splitlines()[-1])["ended"], (out, err)


def test_a_source_that_changes_on_the_way_is_told(job):
    held(job, parallel=1)
    process = job.start("sweep", job.spec_path, "--id", "src")
    until(lambda: len(runs_of(job)) == 1)
    script = job.source / "job.sh"
    script.write_text(script.read_text() + "echo changed\n")
    (job.root / "go").touch()
    _, err = process.communicate(timeout=cli.SECONDS)
    assert process.returncode == 0 and err.count(b"the source has changed since sweep src began") == 2, err
    assert "source.digest" in job.ok("compare", "src").out


def test_removed_runs(job):
    job.write(sweep={"list": [{}, {"env.X": "1"}]})
    job.sweep("--id", "s")
    job.ok("rm", "s-2-1")
    assert [row["run"] for row in job.ok("compare", "s", "--json").lines] == ["s-1-1"]
    job.ok("rm", "s-1-1")
    refused(job.stoker("compare", "s"), 4, "no run of sweep s")


def test_what_lies_outside_is_tried_again(job):
    """A secret that is not there refuses a cell, but may come."""
    job.write(sweep={"list": [{}, {"secrets.TOKEN": "env:SWEEP_TOKEN"}]})
    rows = job.sweep("--id", "out", "--json", code=4).lines
    assert [row["verdict"] for row in rows] == ["baseline", "not supported"] and "SWEEP_TOKEN" in rows[1]["why"]
    assert list(runs_of(job)) == ["out-1-1"]
    rows = job.sweep("--id", "out", "--json", env={"SWEEP_TOKEN": "geheim"}).lines
    assert rows[1]["verdict"] == "one run: no interval" and rows[1]["runs"] == ["out-2-1"]
    assert "geheim" not in (job.state / "stoker" / "sweeps" / "out.json").read_text()


def test_a_shared_state(job):
    job.write(sweep={"list": [{}, {"env.X": "1"}]})
    state = ("--state", f"dir:{job.root}/shared")
    rows = job.sweep("--id", "s", "--json", *state).lines
    assert len(rows) == 2 and (job.root / "shared" / "sweeps" / "s.json").stat().st_mode & 0o77 == 0
    assert job.ok("compare", "s", "--json", *state).lines == rows
    assert job.sweep("--id", "s", "--json", *state).lines == rows


def test_a_table_that_cannot_be_is_refused_before_anything_begins(job):
    job.write(sweep={"list": [{}, {"name": "b"}]})
    for argv in (("--throughput", "speed"), ("--step-time", ""), ("--metric", "lost"), ("--to", "accuracy>1")):
        result = job.sweep(*argv, code=4)
        assert "the spec has no metric '" in result.err and "help metrics" in result.cure, str(result)
    assert not runs_of(job) and not list(job.state.rglob("sweeps/*.json"))
