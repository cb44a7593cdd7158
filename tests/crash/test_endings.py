"""How attempts end that nobody looks at, that are told to end, and that lose what
they stand on: none of it may pass for a success, cost what it did not cost, or
throw the training away."""

import os
import shutil
import signal
import time

import crash
import pytest

POLITE = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
"""

HANG = """
usual = step


def step(number, args):
    if number == 12 and attempt == ("train", 1):
        note("hangs")
        time.sleep(3600)
    usual(number, args)
"""

FORGET = """
real = start


def start(args):
    global learned
    begun = real(args)
    if os.environ.get("STOKER_RESUME_FROM"):
        learned = 0
        return 1
    return begun
"""


def classes(run, phase="train"):
    return [row["class"] for row in run.events("attempt.ended") if row["phase"] == phase]


def held(run, step=12):
    run.hold("train", step)
    driver = run.drive()
    return driver, run.wait_for_effect("holds")


# --- told to end, it ends with 0 ---

def test_a_hang_that_ends_politely_is_a_hang(site):
    site.also(POLITE + HANG)
    run = site.one("hangs", "limits.stall=10s")
    assert run.drive().wait() == 0, run.story()
    assert classes(run) == ["timeout-hang", "none"], run.story()


def test_a_training_that_ignores_its_checkpoint_politely_is_refused(site):
    site.also(POLITE + FORGET)
    run = site.one("forgets")
    driver, at = held(run)
    run.wait_for(lambda: run.events("checkpoint.complete"))
    os.kill(at["pid"], signal.SIGKILL)  # the next one waits at the same step, for nothing
    assert driver.wait() == 1, run.story()
    assert "did not go on from its checkpoint" in run.status()["reason"], run.story()


def test_a_stop_without_grace_is_a_stop(site):
    site.also(POLITE)
    run = site.one("stops", "checkpoint.grace=0s", "env.STEP_SECONDS=0.5", "hyperparameters.max_steps=1000")
    driver = run.drive()
    run.wait_for_effect("start")
    site.ok("stop", run.id)
    assert driver.wait() == 6, run.story()


def test_an_agent_that_others_told_to_stop_has_not_succeeded(site):
    site.also(POLITE)
    run = site.one("told")
    driver, _ = held(run)
    agent, = run.agents()
    os.kill(agent, signal.SIGTERM)
    run.wait_for(lambda: classes(run))
    run.release()
    assert driver.wait() == 0, run.story()
    assert classes(run) == ["unknown", "none"], run.story()
    assert len(run.effects("end")) == 2, run.story()


def test_a_precompile_over_time_that_ends_politely_proves_nothing(site):
    site.also(POLITE + """
def start(args):
    if attempt == ("precompile", 1):
        time.sleep(3600)
    return 1
""")
    run = site.one("late", "compile.timeout=12s", "limits.grace=1s")
    assert run.drive().wait() == 0, run.story()
    assert classes(run, "precompile") == ["timeout-hang", "none"], run.story()


# --- while nobody looked ---

def test_what_ended_unseen_ended_when_it_did(site):
    run = site.one("unseen")
    driver = run.drive()
    run.wait_for_effect("start")
    driver.kill()
    run.wait_for_effect("end")
    run.wait_for(lambda: not run.processes())
    gone = time.time()
    time.sleep(6)
    assert run.resume().wait() == 0, run.story()
    took = gone - crash.seconds(run.events("attempt.claimed")[-1]["since"])
    status = run.status()
    assert status["ledger"]["idle"] > 5, run.story()
    assert status["ledger"]["steps"] <= took, run.story()
    assert status["attempts"][-1]["seconds"] <= took, run.story()


def test_what_died_unseen_died_after_its_last_word(site):
    run = site.one("died")
    driver, _ = held(run)
    run.wait_for(lambda: run.events("checkpoint.complete"))
    driver.kill()
    run.kill_all()
    time.sleep(6)
    run.release()
    assert run.resume().wait() == 0, run.story()
    ledger = run.status()["ledger"]
    assert ledger["idle"] > 4, run.story()


# --- machines that die again and again ---

def test_two_dead_agents_in_a_row_have_no_common_cause(site):
    run = site.one("dead").hold("train", 3)
    driver = run.drive()
    for number in (1, 2):
        run.wait_for_effect("holds", count=number)
        agent, = run.agents()
        os.kill(agent, signal.SIGKILL)
        if number == 2:
            run.release()
        run.wait_for(lambda n=number: len(classes(run)) >= n)
    assert driver.wait() == 0, run.story()
    assert classes(run) == ["hardware-node", "hardware-node", "none"], run.story()


def test_what_a_dead_agent_had_no_time_to_mark_is_used(site):
    run = site.one("late")
    driver, _ = held(run, 11)  # right behind the save of step 10
    agent, = run.agents()
    os.kill(agent, signal.SIGKILL)
    run.wait_for(lambda: classes(run))
    run.release()
    assert driver.wait() == 0, run.story()
    start = [row for row in run.effects("start") if row["phase"] == "train"][-1]
    assert start["done"] == 10, run.story()
    assert run.status()["attempts"][-1]["continuity"] == "verified", run.story()


# --- what it stands on ---

def test_a_missing_checkpoint_folder_is_not_taken_for_an_empty_one(site, tmp_path):
    place = tmp_path / "mounted"
    run = site.one("unmounted", f"checkpoint.url={place}")
    driver, at = held(run)
    run.wait_for(lambda: run.events("checkpoint.complete"))
    driver.kill()
    os.kill(at["pid"], signal.SIGKILL)
    run.wait_for(lambda: not run.processes())
    run.release()
    away = shutil.move(place, tmp_path / "away")
    gone = run.resume()
    assert gone.wait() == 75, run.story()
    assert "is missing" in gone.err() and "mount the folder" in gone.err()
    shutil.move(away, place)
    assert run.resume().wait() == 0, run.story()
    assert run.events("checkpoint.chosen")[-1]["step"] >= 5, run.story()


@pytest.mark.parametrize("where", ["status", "messages"])
def test_what_was_passed_over_is_said(site, where):
    run = site.one("damaged")
    driver, at = held(run)
    run.wait_for(lambda: [row for row in run.events("checkpoint.complete") if row["step"] == 10])
    driver.kill()
    os.kill(at["pid"], signal.SIGKILL)
    run.wait_for(lambda: not run.processes())
    run.release()
    newest, = [path for path in (site.state / "workspace/runs/damaged/train-1").rglob("checkpoint-10")
               if not path.is_symlink()]
    (newest / "optimizer.pt").write_bytes(b"rubbish")
    again = run.drive("resume", run.id)
    assert again.wait() == 0, run.story()
    said = site.ok("status", run.id).out if where == "status" else again.err()
    assert "checkpoint-10" in said and "optimizer.pt" in said, said
