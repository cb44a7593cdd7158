"""A job whose output never stops, or comes in a form that costs much: its driver goes on
hearing who wants something of it, and reads no byte twice."""

import os
import shutil
import signal
import time
from pathlib import Path

import crash
import flood
import pytest
from project import PYTHON, SUPPORT

# Long enough for a driver that does not hear, and for a slow machine; whoever hears ends it.
SECONDS = 60


@pytest.fixture
def flooded(new_site):
    """A run whose training is a flood."""
    sites = []

    def make(kind, *words, phase="train", sets=(), journal="sqlite", **changes):
        site = new_site(journal, **({"compile": None} if phase == "train" else {}))
        sites.append(site)
        shutil.copy(SUPPORT / "flood.py", site.source)
        site.write(command=[PYTHON, "flood.py", kind, *map(str, words)], hyperparameters={}, **changes)
        run = site.one("flood", *sets)
        if phase == "train":
            run.sets = [each for each in run.sets if not each.startswith("compile.")]
        return run

    yield make
    for site in sites:
        site.clear()
        shutil.rmtree(site.state, ignore_errors=True)


def flows(run, **options):
    """A driver reads while the job prints."""
    driver = run.drive(**options)
    run.wait_for_effect("flows")
    run.wait_for(lambda: run.events("attempt.claimed"))
    time.sleep(1)
    return driver


def log_of(run, phase="train"):
    path, = run.site.root.rglob(f"runs/{run.id}/{phase}-1/node-0/log")
    return path


@pytest.mark.parametrize("kind", flood.KINDS)
def test_a_stop_is_heard_while_the_job_floods(flooded, kind):
    run = flooded(kind, "--seconds", SECONDS)
    driver = flows(run)
    run.site.ok("stop", run.id)
    assert driver.wait() == 6, run.story()
    assert run.effects("told") and not run.effects("over"), run.story()
    assert run.status()["state"] == "stopped"
    crash.check_nothing_left(run)


@pytest.mark.parametrize("kind", ["yes", "returns"])  # a stop is heard by the same turns; it is tried with all
def test_sigterm_is_heard_while_the_job_floods(flooded, kind):
    run = flooded(kind, "--seconds", SECONDS)
    driver = flows(run)
    driver.process.send_signal(signal.SIGTERM)
    assert driver.wait() == 8, run.story()
    assert not run.effects("over"), run.story()
    other = run.resume()
    run.wait_for(lambda: len(run.events("driver.took_over")) == 2)
    other.process.send_signal(signal.SIGTERM)
    assert other.wait() == 8, run.story()
    assert not run.effects("over"), run.story()
    run.site.ok("stop", run.id)
    crash.check_nothing_left(run)


def test_a_deadline_is_kept_while_the_job_floods(flooded):
    run = flooded("yes", "--seconds", SECONDS, sets=["limits.deadline=8s"])
    assert flows(run).wait() == 5, run.story()
    assert run.effects("told") and not run.effects("over"), run.story()


def test_a_lease_is_renewed_while_the_job_floods(flooded):
    run = flooded("numbers", "--seconds", SECONDS, journal="dir")
    driver = flows(run)
    lease, = run.site.state.rglob("lease*")
    before = lease.read_bytes()
    run.wait_for(lambda: lease.read_bytes() != before, SECONDS)
    assert not run.effects("over"), run.story()
    run.site.ok("stop", run.id)
    assert driver.wait() == 6


# --- what has been read is not read again, and what is far behind is caught up or left out ---

def read_bytes(pid):
    """What a process has read from files and pipes so far."""
    return int(dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())["rchar"])


MUCH = """
import sys as _sys
usual = step


def step(number, args):
    usual(number, args)
    if attempt[0] == "train" and number == 20:
        _sys.modules["__main__"].compile_graph("late", "float32[7]")
        for _ in range(30):
            print("some words of a program that says much\\n" * 26000, flush=True)
"""


@pytest.mark.parametrize("journal", ["sqlite", "dir"])
def test_a_takeover_goes_on_where_the_driver_before_had_come_to(new_site, journal):
    """30 MB of log, a graph that was compiled late before them."""
    site = new_site(journal)
    site.also(MUCH)
    run = site.one("big").hold("train", 22)
    driver = run.drive()
    run.wait_for_effect("holds")
    run.wait_for(lambda: run.events("jit.compiled"))
    run.wait_for(lambda: sum(path.read_text().count('"offset":3') for path in site.state.rglob("reading.json")))
    driver.kill()
    assert log_of(run).stat().st_size > 30e6
    other = run.resume()
    run.wait_for(lambda: len(run.events("driver.took_over")) == 2)
    time.sleep(2)  # a driver that reads all reads on, and is seen below
    assert read_bytes(other.pid) < 15e6
    run.release()
    run.wait_for_effect("end")
    assert other.wait() == 0, run.story()
    crash.check_once(run)
    late = run.events("jit.compiled")
    assert [row["graphs"] for row in late] == [1] * len(late), run.story()
    assert run.status()["metrics"]["step"] == 25
    lock, = (site.root / "caches" / run.id / "stoker").glob("*.json")
    assert "jit_late" in lock.read_text(), "what was compiled late did not join the manifest"


CLOSING = """
def end(args):
    for _ in range({mib}):
        print("some words of a program that says much\\n" * 26000, flush=True)
    if attempt[0] == "precompile":
        _sys.modules["__main__"].compile_graph("last", "float32[7]")
    note("end", learned=learned)
"""


def test_what_an_ended_job_wrote_is_read_before_its_verdict_and_a_signal_is_heard_meanwhile(site):
    """The graphs of phase 1 are named at the end of 60 MB."""
    site.also("import sys as _sys\n" + CLOSING.format(mib=60))
    run = site.one("closing").hold("precompile", 2)
    driver = run.drive()
    run.wait_for_effect("holds", "precompile")
    driver.kill()
    run.release()
    run.wait_for_effect("end", "precompile")
    run.wait_for(lambda: not run.agents())
    interrupted = run.resume()
    run.wait_for(lambda: len(run.events("driver.took_over")) == 2)
    interrupted.process.send_signal(signal.SIGTERM)
    assert interrupted.wait() == 8, run.story()
    assert not run.events("attempt.ended"), "it had read all before it heard"
    assert run.resume().wait() == 0, run.story()
    verified, = run.events("cache.verified")
    assert verified["complete"] and verified["graphs"] == 4, run.story()


def test_a_stop_does_not_wait_for_a_log_that_nobody_needs_any_more(site):
    site.also("import sys as _sys\n" + CLOSING.format(mib=60))
    run = site.one("closing").hold("precompile", 2)
    driver = run.drive()
    run.wait_for_effect("holds", "precompile")
    driver.kill()
    run.release()
    run.wait_for_effect("end", "precompile")
    run.wait_for(lambda: not run.agents())
    run.site.ok("stop", run.id)
    assert run.status()["state"] == "stopped", run.story()
    assert sum(row.get("skipped_bytes", 0) for row in run.events("log.read")) > 40e6, run.story()


def test_what_a_training_is_behind_by_hundreds_of_mebibytes_is_left_out_and_said(flooded):
    """The log grows by a hole, which costs no disk."""
    run = flooded("yes", "--mib", 1, "--hold")
    driver = run.drive()
    run.wait_for_effect("over")
    driver.kill()
    log = log_of(run)
    os.truncate(log, log.stat().st_size + (600 << 20))
    with log.open("ab") as file:
        file.write(b"\nstep: 7 loss: 0.25\n")
    other = run.resume()
    told, = run.wait_for(lambda: run.events("log.read"))
    assert 500e6 < told["skipped_bytes"] < 600 << 20 and told["node"] == 0, run.story()
    run.wait_for(lambda: run.status().get("metrics", {}).get("step") == 7)
    assert read_bytes(other.pid) < 100e6
    other.process.send_signal(signal.SIGTERM)
    assert other.wait() == 8
    run.site.ok("stop", run.id)
    assert "skipped, because lines came faster" in run.site.ok("status", run.id).out


def test_carriage_returns_cost_no_more_than_other_bytes(flooded):
    run = flooded("returns", "--mib", 50, "--last", "step: 70")
    driver = run.drive()
    assert driver.wait() == 0, run.story()
    assert run.status()["metrics"] == {"step": 70}


def test_a_pattern_that_takes_too_long_is_given_up_and_said(flooded):
    """Each line costs as many steps as a pattern may take, and there are many lines."""
    run = flooded("backtracks", "--seconds", SECONDS, metrics=[
        {"name": "slow", "regex": "(?:x+x+)+[yz]([0-9]+)"}, {"name": "step", "regex": "^step: ([0-9]+)"}])
    driver = flows(run)
    told = run.wait_for(lambda: run.events("metric.given_up"))
    assert [row["name"] for row in told] == ["slow"], run.story()
    run.site.ok("stop", run.id)
    assert driver.wait() == 6, run.story()
    assert not run.effects("over"), run.story()
