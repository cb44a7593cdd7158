"""Published ladders, each one spec and one command: logs in the format in which the measured
programs print them, replayed faster than they were written; every figure by the tests' own
computation. That of SageMaker's compiler is in tests/aws."""

import math
import shutil
import statistics

import pytest
from replayed import LADDERS, close, geometric, sweep, told
from project import Project


@pytest.fixture
def ladder(tmp_path):
    def make(name):
        site = Project(tmp_path / name)
        shutil.copy(LADDERS / f"{name}.yaml", site.spec_path)
        shutil.copy(LADDERS / "replay.py", site.source)
        return site
    return make


def test_252_samples_a_second_become_1093(ladder):
    """4.34x and +334 %: a factor and a percentage that nobody can confuse."""
    site = ladder("tuning")
    result = sweep(site, "--step-time", "step_time")
    rows = site.ok("compare", "ladder", "--step-time", "step_time", "--json").lines
    assert [row["verdict"] for row in rows] == [
        "baseline", "slower", "not supported", "within noise"] + ["faster"] * 6
    assert "--enable-fp8 is not supported on this target" in rows[2]["why"]
    base = [told(site, run, "step_time", 16) for run in rows[0]["runs"]]
    assert close(geometric(base), 252)
    for row in rows:
        if row["verdict"] == "not supported":
            continue
        assert len(row["runs"]) == 2 and row["steps"] == 20
        samples = site.events(row["run"], "run.created")[0]["plan"]["samples_per_step"]
        rates = [told(site, run, "step_time", samples) for run in row["runs"]]
        assert close(row["speed"], geometric(rates) / geometric(base)), row
        seconds = statistics.mean(samples / rate for rate in rates)
        assert close(row["step_seconds_mean"], seconds) and close(row["samples_per_second"], samples / seconds), row
    assert close(rows[1]["speed"], 0.74) and close(rows[-1]["speed"], 1093 / 252)
    assert rows[3]["speed_low"] < 1 < rows[3]["speed_high"], "the same as before"
    # What bfloat16 does to the convergence nobody has looked at: no row that has it is the best.
    assert [row["same_quality"] for row in rows] == [True] * 2 + [False] + [True] * 5 + [False] * 2
    assert [row["best"] for row in rows].index(True) == 7 and rows[-1]["speed"] > rows[7]["speed"]
    last = next(line for line in result.out.splitlines() if line.startswith("ladder-10-1 "))
    assert "4.34x" in last and "+334 %" in last and "faster, quality: not assessed" in last, last
    slow = next(line for line in result.out.splitlines() if line.startswith("ladder-2-1 "))
    assert "0.74x" in slow and "-26.0 %" in slow and slow.endswith("slower"), slow
    assert "step_time, as the log tells it" in result.err


def test_machines_by_step_time_scaling_and_samples_for_a_dollar(ladder):
    """0.199 s a step against 0.41 s, at three times the price: 31 % fewer samples for a dollar."""
    site = ladder("machines")
    sweep(site)
    for speed in (["--step-time", "step_time"], ["--throughput", "throughput"]):
        base, p5, two, four = rows = site.ok("compare", "ladder", *speed, "--json").lines
        assert all(row["verdict"] == "one run: no interval" for row in rows[1:])
        assert close(p5["speed"], 0.41 / 0.199) and "efficiency" not in p5
        assert close(base["samples_per_usd"], 256 / 0.41 * 3600 / 32.77)
        assert close(p5["samples_per_usd"] / base["samples_per_usd"], 0.41 / 0.199 * 32.77 / 98.32)
        for row, nodes, seconds in ((two, 2, 0.4227), (four, 4, 0.4556)):
            assert close(row["speed"], nodes * 0.41 / seconds) and close(row["efficiency"], 0.41 / seconds)
            assert close(row["samples_per_second"], nodes * 256 / seconds)
            assert close(row["samples_per_usd"], base["samples_per_usd"] * row["efficiency"])
        assert ("step_seconds_mean" in base) == (speed[0] == "--step-time")
    assert [row["step_seconds_mean"] for row in
            site.ok("compare", "ladder", "--step-time", "step_time", "--json").lines] == [0.41, 0.199, 0.4227, 0.4556]
    # Without the log's word there is no step that the clock could measure.
    assert {row["verdict"] for row in site.ok("compare", "ladder", "--json").lines[1:]} == {"no steps measured"}
    for option in ("--throughput", "--step-time"):
        wrong = site.stoker("compare", "ladder", option, "samples")
        assert wrong.code == 4 and "has step_time, throughput" in wrong.err and wrong.cure, str(wrong)


OPTLEVEL = """
import os
import time

IS_O1 = "-O1" in os.environ["XLA_FLAGS"]


def start(args):
    if os.environ["STOKER_PHASE"] == "precompile":
        time.sleep(0.2 if IS_O1 else 1.4)


def step(number, args):
    print(f"step: {number}: step time is {(0.1 if number > 10 else 0.5) / (0.94 if IS_O1 else 1)}\\nsamples: {8 * number}", flush=True)
"""


def test_what_o1_saves_and_what_it_loses(ladder):
    """86 % of the time to compile, as published, for 6 % of the speed: and from which step on -O2 pays."""
    site = ladder("optlevel")
    site.extra(OPTLEVEL)
    sweep(site, "--step-time", "step_time")
    o2, o1 = site.ok("compare", "ladder", "--step-time", "step_time", "--json").lines
    assert close(o1["speed"], 0.94) and close(o2["samples_per_second"], 80) and close(o1["samples_per_second"], 75.2)
    assert o1["differences"] == [{"field": "env.XLA_FLAGS", "old": "-O2", "new": "-O1"}]
    own = {}
    for row in (o2, o1):
        status = site.status(row["run"])
        ahead, = (each for each in status["attempts"] if each["phase"] == "precompile")
        own[row["run"]] = ahead["seconds"]
        assert close(row["compile"], own[row["run"]]) and status["jit"]["graphs"] == 0
    # A machine that stops for seconds may turn it round: then -O1 compiles longer for slower steps.
    saved = own["ladder-1-1"] - own["ladder-2-1"]
    even = site.ok("compare", "ladder", "--step-time", "step_time", "--break-even", "--json").lines[-1]
    assert even == ({"run": "ladder-1-1", "break_even_steps": math.ceil(saved / (0.1 / 0.94 - 0.1)), "pays": True} if saved > 0
                    else {"run": "ladder-2-1", "pays": False})
