"""Graphs that a training has to compile although they should have been in the
cache, and what compile.jit_budget makes of them."""

import crash
import pytest

LATE = """
import sys as _sys
usual = step


def step(number, args):
    usual(number, args)
    if attempt[0] == "train" and number in (8, 9):
        _sys.modules["__main__"].compile_graph(f"late_{number}", "float32[3]")
"""


def started(run, phase):
    return [row["attempt"] for row in run.effects("start") if row["phase"] == phase]


@pytest.fixture
def late(site):
    site.also(LATE)
    return lambda *sets: site.one("late", "env.STEP_SECONDS=0.15", *sets)


def test_a_warning_lets_it_go_on(late):
    run = late("compile.jit_budget.graphs=1")
    assert run.drive().wait() == 0, run.story()
    said, = run.events("jit.exceeded")
    assert (said["on_exceed"], said["graphs"]) == ("warn", 2), run.story()
    jit = run.status()["jit"]
    assert jit["graphs"] == 2 and jit["exceeded"] == "warn", jit
    assert [row["after_step"] for row in jit["late"]] == [5, 5], jit
    assert "late_8" in jit["late"][0]["graph"], jit
    crash.check_once(run)


def test_a_stop_saves_first_and_ends_the_run(late):
    run = late("compile.jit_budget={graphs: 0, on_exceed: stop}", "hyperparameters.max_steps=1000")
    assert run.drive().wait() == 5, run.story()
    assert "jit_budget is exceeded" in run.status()["reason"]
    assert run.events("attempt.ended")[-1]["class"] == "stopped", run.story()
    assert run.effects("told"), run.story()
    assert run.events("checkpoint.complete"), run.story()
    crash.check_nothing_left(run)


@pytest.mark.parametrize("killed", [False, True])
def test_phase_1_runs_again_and_the_training_goes_on(late, killed):
    run = late("compile.jit_budget={graphs: 0, on_exceed: recompile}", "hyperparameters.max_steps=80")
    driver = run.drive()
    if killed:
        run.wait_for(lambda: run.is_created() and run.events("jit.exceeded"))
        driver.kill()
        driver = run.resume()
    assert driver.wait() == 0, run.story()
    assert started(run, "precompile") == [1, 2], run.story()
    assert started(run, "train") == [1, 2], run.story()
    again = [row for row in run.effects("start") if (row["phase"], row["attempt"]) == ("train", 2)][0]
    assert again["done"] >= 8, run.story()
    attempt = run.status()["attempts"][-1]
    assert attempt["continuity"] == "verified", run.story()
    assert len([row for row in run.effects("end") if row["phase"] == "train"]) == 1, run.story()
    assert run.events("jit.compiled")[-1]["graphs"] == 0, run.story()
    assert run.status()["jit"]["graphs"] >= 1, run.story()  # of the attempt before
    crash.check_nothing_left(run)


def test_what_goes_on_with_the_steps_is_a_matter_of_shapes(site):
    site.also(LATE.replace("number in (8, 9)", "number % 5 == 1"))
    run = site.one("grows", "env.STEP_SECONDS=0.1")
    assert run.drive().wait() == 0, run.story()
    assert "shapes change" in run.status()["jit"]["hint"], run.story()
    said = site.ok("status", run.id).out
    assert "not covered in phase 1: jit_late_11" in said and "after step 10" in said, said


def test_without_a_phase_1_all_is_compiled_in_training(site):
    run = site.one("jit", "compile.mode=jit", "compile.jit_budget={graphs: 0, on_exceed: stop}")
    assert run.drive().wait() == 0, run.story()
    assert started(run, "precompile") == [], run.story()
    assert run.status()["jit"]["graphs"] == 3, run.story()
    assert not run.events("jit.exceeded"), run.story()
    assert run.status()["cache"]["verdict"] == "cold", run.story()
    crash.check_nothing_left(run)
