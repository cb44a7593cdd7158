"""Disks that fill up, caches that may only be read, journals that are locked, while a job is
under way: its driver stays with it, a stop reaches it, and the end is recorded."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import time

import crash
import pytest

HELD = 8
QUICK = {"limits": {"grace": "5s"}, "checkpoint": {"grace": "1s"}, "hyperparameters": {"max_steps": 12}}


@pytest.fixture
def disks():
    """mount(folder): a small file system of its own there; fill(folder), empty(folder)."""
    class Disks:
        def __init__(self):
            self.mounted = []

        def mount(self, folder, size="256m"):
            folder.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                pytest.skip(f"cannot mount here: {done.stderr.strip()}")
            self.mounted.append(folder)

        def fill(self, folder):
            with contextlib.suppress(OSError), (folder / "ballast").open("wb", buffering=0) as ballast:
                while True:
                    ballast.write(bytes(4096))

        def empty(self, folder):
            (folder / "ballast").unlink()

        def read_only(self, folder, yes):
            subprocess.run(["mount", "-o", f"remount,{'ro' if yes else 'rw'}", str(folder)], check=True)

    disks = Disks()
    yield disks
    for folder in disks.mounted:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.fixture
def quick(new_site):
    def quick(**changes):
        site = new_site(**QUICK, **changes)
        site.write(workspace=str(site.root / "workspace"))
        return site
    return quick


def await_training(run, driver):
    run.wait_for(lambda: driver.ended() or any(row["phase"] == "train" for row in run.effects("holds")))
    assert not driver.ended(), run.story()


def place(site, run, what):
    return {"state": site.state, "workspace": site.root / "workspace",
            "cache": site.root / "caches" / run.id}[what]


def held(site, disks, what, name):
    """A training that is under way, and then the disk is full."""
    run = site.one(name).hold("train", HELD)
    disks.mount(place(site, run, what))
    driver = run.drive()
    await_training(run, driver)
    disks.fill(place(site, run, what))
    return run, driver


@pytest.mark.parametrize("what", ["state", "workspace", "cache"])
def test_a_full_disk_ends_no_driver_whose_job_is_under_way(quick, disks, what):
    site = quick()
    run, driver = held(site, disks, what, "full")
    time.sleep(3)
    run.release()
    time.sleep(4)
    # A job whose output cannot be kept is ended by its agent, which is no reason for the driver.
    its_own = driver.ended() and what == "workspace"
    assert its_own or not driver.ended() or driver.process.returncode == 0, run.story()
    disks.empty(place(site, run, what))
    code = driver.wait()
    assert code == (1 if its_own else 0), run.story()
    assert run.status()["exit_code"] == code
    assert run.events()[-1]["event"] == "run.ended", run.story()
    crash.check_nothing_left(run)


@pytest.mark.parametrize("driven", [True, False], ids=["driven", "left alone"])
@pytest.mark.parametrize("what", ["state", "workspace", "cache"])
def test_a_stop_reaches_the_job_on_a_full_disk(quick, disks, what, driven):
    site = quick()
    run, driver = held(site, disks, what, "stopped")
    if not driven:
        driver.kill()
    stopped = site.stoker("stop", run.id)
    assert stopped.code == 0, f"{stopped}\n{run.story()}"
    assert not run.processes(), f"{stopped}\n{run.story()}"
    disks.empty(place(site, run, what))
    if driven:
        assert driver.wait() == 6, run.story()
    elif what == "state":
        assert "resume" in stopped.err
        assert run.resume().wait() == 6, run.story()
    assert run.status()["state"] == "stopped", run.story()
    crash.check_nothing_left(run)


def test_a_training_that_cannot_be_told_to_save_is_stopped_at_its_time(quick, disks):
    site = quick()
    run, driver = held(site, disks, "workspace", "untold")
    assert site.stoker("stop", run.id).code == 0
    assert driver.wait() == 6, run.story()
    said = [row["reason"] for row in run.events("chore.failed")]
    assert any("cannot ask the job to save" in reason for reason in said), run.story()
    assert run.events("attempt.ended")[-1]["class"] == "stopped", run.story()
    crash.check_nothing_left(run)


def test_a_driver_stays_with_its_job_while_the_journal_is_locked(quick):
    site = quick()
    run = site.one("locked").hold("train", HELD)
    driver = run.drive()
    await_training(run, driver)
    with contextlib.closing(sqlite3.connect(site.state / "journal.db", isolation_level=None)) as journal:
        journal.execute("BEGIN IMMEDIATE")
        run.release()
        run.wait_for(lambda: any(row["phase"] == "train" for row in run.effects("end")))
        time.sleep(12)
        assert not driver.ended(), run.story()
    assert driver.wait() == 0, run.story()
    crash.check_once(run)


@pytest.mark.parametrize("driven", [True, False], ids=["driven", "left alone"])
def test_a_stop_reaches_the_job_while_the_journal_is_locked(quick, driven):
    site = quick()
    run = site.one("locked").hold("train", HELD)
    driver = run.drive()
    await_training(run, driver)
    if not driven:
        driver.kill()
    with contextlib.closing(sqlite3.connect(site.state / "journal.db", isolation_level=None)) as journal:
        journal.execute("BEGIN IMMEDIATE")
        stopped = site.stoker("stop", run.id)
        assert stopped.code == 0, f"{stopped}\n{run.story()}"
        assert not run.processes(), f"{stopped}\n{run.story()}"
    assert (driver.wait() if driven else run.resume().wait()) == 6, run.story()
    assert run.status()["state"] == "stopped", run.story()
    assert len(run.events("request.stop")) == 1, run.story()


LATE = """
import subprocess, sys
def with_late(step):
    def wrapped(number, args):
        if number == 3 and os.environ["STOKER_PHASE"] == "train":
            sys.modules["__main__"].compile_graph("late", "float32[3]")
            subprocess.run(["mount", "-o", "remount,ro", os.environ["READ_ONLY"]], check=True)
        return step(number, args)
    return wrapped
step = with_late(step)
"""


@pytest.mark.parametrize("asked", ["succeeded", "stopped"])
def test_a_training_ends_on_a_cache_that_its_driver_may_not_write(quick, disks, asked):
    site = quick()
    site.also(LATE)
    run = site.one("late").hold("train", HELD)
    cache = place(site, run, "cache")
    disks.mount(cache)
    run.sets += [f"env.READ_ONLY={cache}"]
    driver = run.drive()
    await_training(run, driver)
    if asked == "stopped":
        assert site.stoker("stop", run.id).code == 0, run.story()
    run.release()
    assert driver.wait() == (0 if asked == "succeeded" else 6), run.story()
    assert run.status()["state"] == asked, run.story()
    rows = [row["event"] for row in run.events()]
    if asked == "succeeded":
        assert run.events("jit.compiled")[-1]["graphs"] == 1, run.story()
        assert rows.index("attempt.ended", rows.index("jit.compiled")) < rows.index("chore.failed"), run.story()
        assert "compile manifest" in run.events("chore.failed")[0]["reason"], run.story()
    crash.check_nothing_left(run)


def test_what_a_killed_agent_left_is_found_by_the_next_driver_too(new_site):
    """Saved, whole, and not marked yet when agent and command die; the driver changes hands
    while the run waits for its next attempt."""
    site = new_site(retry={"attempts": 6, "backoff": {"first": "4s", "max": "4s"}})
    run = site.one("left").hold("train", 11)
    driver = run.drive()
    await_training(run, driver)
    run.kill_all()
    marked = list((site.state / "workspace/runs" / run.id).rglob("checkpoint-10.stoker.json"))
    assert not marked, "it was marked before it died"
    run.wait_for(lambda: run.events("retry.scheduled"))
    driver.kill()
    run.release()
    assert run.resume().wait() == 0, run.story()
    assert run.events("checkpoint.chosen")[-1].get("step") == 10, run.story()
    assert [row["done"] for row in run.effects("start") if row["phase"] == "train"] == [0, 10], run.story()


def test_what_an_attempt_left_to_be_done_is_done_by_the_next_driver_too(quick):
    """Killed right after it journalled the end of a training: its late graph joins all the same."""
    site = quick()
    site.also(LATE.replace('subprocess.run(["mount", "-o", "remount,ro", os.environ["READ_ONLY"]], check=True)', "pass"))
    run = site.one("late").hold("train", HELD)
    driver = run.drive()
    await_training(run, driver)
    driver.kill()
    run.release()
    run.wait_for(lambda: not run.processes())
    again = run.resume()
    while not again.ended() and "attempt.ended train" not in again.seen():
        time.sleep(0.001)
    again.kill()
    if again.process.returncode == -signal.SIGKILL:
        assert run.resume().wait() == 0, run.story()
    locks = [path.read_text() for path in (site.root / "caches" / run.id / "stoker").glob("*.json")]
    assert any("jit_late" in text for text in locks), locks
    assert os.path.exists(run.notes)
