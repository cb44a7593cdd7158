"""What precompiling saves is read off recorded runs: node-seconds of a cold start that
compiles in training beside one that compiles first, and it is said when that does not pay."""

import re

import pytest
import stoker as cli

# Compiling takes time where the cache is empty: in phase 1 (by many workers at once, say)
# and in training.
SLOW = """
import os
import subprocess
import time
from pathlib import Path


def start(args):
    if not list(Path(os.environ["JAX_COMPILATION_CACHE_DIR"]).glob("*-cache")):
        time.sleep({{"precompile": {ahead}, "train": {late}}}[os.environ["STOKER_PHASE"]])


def step(number, args):
    # Step 5 is seen first, in every run.
    while number == 6 and os.environ["STOKER_PHASE"] == "train" and b"train.progress" not in subprocess.run(
            [{binary!r}, "--state", {state!r}, "events", os.environ["STOKER_RUN"]], stdout=subprocess.PIPE).stdout:
        time.sleep(0.05)
"""

LONG = 10  # seconds: more than a machine stands still
FIGURE = {"step", "seconds", "node_seconds"}


@pytest.fixture
def job(project):
    def prepare(ahead, late, **spec):
        project.extra(SLOW.format(ahead=ahead, late=late, binary=str(cli.BINARY), state=str(project.state / "stoker")))
        project.write(**spec)
        return project

    def jit(name, *sets):
        words = [word for each in sets for word in ("--set", each)]
        return project.run("--set", "compile.mode=jit", "--set", f"compile.cache_url={project.root}/{name}",
                           "--id", name, *words)
    project.prepare, project.jit = prepare, jit
    return project


def test_nothing_is_said_before_a_run_was_recorded(job):
    job.prepare(0, 0)
    assert "modes" not in job.plan()
    assert "modes:" not in job.ok("plan", job.spec_path).out


def test_one_alone_is_not_compared_and_the_plan_says_what_to_run(job):
    job.prepare(0, 0)
    job.run("--id", "first")
    modes = job.plan()["modes"]
    assert modes["aot"]["run"] == "first" and set(modes) == {"aot"}
    said = job.ok("plan", job.spec_path).out
    assert re.search(r"^modes: .*run first.*compile\.mode=jit", said, re.MULTILINE), said
    assert "modes:" not in job.ok("status", "first").out


def test_precompiling_pays_and_both_raw_figures_are_shown(job):
    job.prepare(0.1, LONG)
    job.run("--id", "ahead")
    result = job.jit("cold")
    status = job.status("cold")
    modes = status["modes"]
    jit, aot = modes["jit"], modes["aot"]
    assert (jit["run"], aot["run"]) == ("cold", "ahead")
    assert modes["pays"] is True
    for point in ("start", "end"):
        assert set(jit[point]) - {"late_seconds"} == set(aot[point]) - {"late_seconds"} == FIGURE
        assert modes["ratio"][point] == pytest.approx(jit[point]["node_seconds"] / aot[point]["node_seconds"])
        assert modes["ratio"][point] > 1
    assert jit["start"]["node_seconds"] >= LONG > aot["start"]["node_seconds"]
    assert aot["end"]["node_seconds"] > aot["precompile"]["node_seconds"] > 0.1
    assert jit["graphs"] == aot["graphs"] == 3
    assert modes == job.status("ahead")["modes"] == job.plan()["modes"]
    for said in (result.out, job.ok("status", "cold").out, job.ok("plan", job.spec_path).out):
        assert "cold JIT (run cold) against precompile and warm start (run ahead)" in said, said
        ratio, = re.findall(r"until the end, step 20: ([0-9.]+) against ([0-9.]+), ratio ([0-9.]+)", said)
        assert "until step 5, and for later compiles: " in said, said
        assert ratio == (f"{jit['end']['node_seconds']:.1f}", f"{aot['end']['node_seconds']:.1f}",
                         f"{modes['ratio']['end']:.2f}")
        assert "precompiling saved" in said and "did not pay" not in said


def test_it_is_said_plainly_when_precompiling_does_not_pay(job):
    job.prepare(LONG, 0.2)
    job.jit("cold")
    said = job.run("--id", "ahead").out
    modes = job.status("ahead")["modes"]
    assert modes["pays"] is False and modes["ratio"]["start"] < 1
    assert "precompiling did not pay" in said and "precompiling saved" not in said


def test_each_node_counts_and_a_price_makes_it_a_cost(job):
    job.prepare(0.1, 0.3, resources={"nodes": 2, "price": 36.0})
    job.run("--id", "ahead")
    job.jit("cold")
    modes = job.status("cold")["modes"]
    for one in (modes["jit"], modes["aot"]):
        assert one["nodes"] == 2
        assert one["end"]["cost"] == pytest.approx(one["end"]["node_seconds"] / 100)
    assert modes["jit"]["end"]["node_seconds"] == pytest.approx(2 * modes["jit"]["end"]["seconds"])
    assert re.search(r"USD against \d", job.ok("status", "cold").out)


def test_what_is_compiled_after_the_first_step_counts(job):
    job.prepare(0, 0)
    job.extra("""
import __main__


def step(number, args):
    if number == 8:
        __main__.compile_graph("late", "float32[3]")
""")
    job.jit("cold")
    late = [row for row in job.events("cold", "jit.compiled")[-1]["late"] if "after_step" in row]
    assert [row["after_step"] for row in late] == [5] and late[0]["seconds"] > 0
    start = job.plan()["modes"]["jit"]["start"]
    assert start["late_seconds"] == pytest.approx(late[0]["seconds"])


def test_a_start_with_late_graphs_is_not_called_warm(job):
    job.prepare(0, 0)
    job.extra("""
import __main__


def step(number, args):
    if number in (8, 9):
        __main__.compile_graph(f"late_{number}", "float32[3]")
""")
    job.run("--id", "ahead")
    alone = job.ok("plan", job.spec_path).out
    job.jit("cold")
    both = job.ok("plan", job.spec_path).out
    assert job.plan()["modes"]["aot"]["late_graphs"] == 2
    for said in alone, both:
        assert "warm start (" not in said and "warm start took" not in said, said
        assert "compiled 2 graphs that phase 1 missed; raise compile.max_steps" in said, said


def test_a_start_that_was_not_cold_measures_nothing(job):
    job.prepare(0.1, 0.1)
    job.run("--id", "ahead")
    job.run("--id", "warm")
    job.run("--id", "half", "--set", "compile.mode=jit")  # on the cache that is full by now
    assert set(job.plan()["modes"]) == {"aot"}
    job.jit("cold")
    job.run("--id", "again", "--set", "compile.mode=jit", "--set", f"compile.cache_url={job.root}/cold")
    modes = job.plan()["modes"]
    assert (modes["jit"]["run"], modes["aot"]["run"]) == ("cold", "ahead")


def test_a_failed_and_a_resumed_training_measure_nothing(job):
    job.prepare(0, 0)
    job.extra("import os\n\n\ndef end(args):\n    if os.environ['STOKER_ATTEMPT'] == '1' and "
              "os.environ['STOKER_PHASE'] == 'train':\n        raise OSError(5, 'Input/output error')\n")
    job.run("--id", "tried", code=None)
    assert "modes" not in job.plan()


def test_another_shape_or_another_length_is_not_compared(job):
    job.prepare(0.1, 0.2)
    job.run("--id", "ahead")
    job.jit("wide", "hyperparameters.batch_size=32")
    assert set(job.plan()["modes"]) == {"aot"}
    job.jit("long", "hyperparameters.max_steps=40")
    modes = job.plan()["modes"]
    assert modes["jit"]["run"] == "long"
    assert "end" not in modes["ratio"] and "start" in modes["ratio"]
    assert "until the end" not in job.ok("plan", job.spec_path).out


def test_a_run_of_mode_jit_speaks_of_no_phase_1(job):
    job.prepare(0, 0)
    said = job.jit("cold").out + job.ok("status", "cold").out + job.ok("plan", "--set", "compile.mode=jit",
                                                                     job.spec_path).out
    assert "phase 1" not in said and "precompile:" not in said and "precompile, verify" not in said
    assert "phase 2:    3 graphs compiled" in said
