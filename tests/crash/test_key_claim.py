"""Runs that need the same graphs at the same time, from states and sources of their
own: one precompiles, the others wait until it is done, or until it is no more."""

import json
import os
import signal

import crash
import pytest

IGNORED = ["hyperparameters.lr", "hyperparameters.max_steps", "env.EFFECTS", "env.HOLD", "env.STEP_SECONDS"]


@pytest.fixture
def runs(new_site, tmp_path):
    """runs(N): so many runs with one graph key, each of another machine, as it were."""
    def new(number):
        return [new_site().one(f"run-{i}", f"compile.cache_url={tmp_path}/cache", f"compile.ignore={json.dumps(IGNORED)}")
                for i in range(number)]
    return new


def begun(run):
    """It is in the middle of phase 1, and stays there."""
    run.hold("precompile", 1)
    driver = run.drive()
    run.wait_for_effect("holds", "precompile")
    return driver


def waiting(run):
    driver = run.drive()
    run.wait_for(lambda: run.is_created() and run.events("cache.waiting"))
    return driver


def phases(run):
    return [row["phase"] for row in run.events("attempt.submitted")]


def claim(tmp_path):
    path, = (tmp_path / "cache" / "stoker" / "claims").glob("*.json")
    return path


def impatient(tmp_path):
    """Whoever has the claim promises to renew it more often than it does."""
    path = claim(tmp_path)
    (path.parent / "new").write_text(json.dumps(json.loads(path.read_text()) | {"valid_ms": 3000}))
    (path.parent / "new").rename(path)


def test_the_second_waits_and_trains_without_a_phase_1_of_its_own(runs, tmp_path):
    first, second = runs(2)
    leading = begun(first)
    following = waiting(second)
    said, = second.events("cache.waiting")
    assert said["holder"] == first.id and said["host"] and said["since"] > "2020", second.story()
    status = second.status()
    assert status["state"] == "waiting" and first.id in status["waiting_for"], status
    assert status["cache"]["waits_for"]["run"] == first.id, status
    shown = second.site.ok("status", second.id).out
    assert f"run {first.id}" in shown, shown
    url = tmp_path / "cache"
    for words in (("cache", "ls"), ("cache", "verify"), ("cache", "gc")):
        second.site.ok(*words, url)
    first.release()
    assert leading.wait() == following.wait() == 0, second.story()
    assert phases(first) == ["precompile", "train"], first.story()
    assert phases(second) == ["train"], second.story()
    status = second.status()
    assert status["cache"]["verdict"] == "warm" and "waits_for" not in status["cache"], status
    assert status["ledger"]["queue"] > 0 and status["ledger"]["precompile"] == 0, status
    assert json.loads(claim(tmp_path).read_text())["held"] is False
    crash.check_nothing_left(second)


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_where_the_first_does_not_finish_one_of_the_others_goes_on(runs, tmp_path, how):
    first, second, third = runs(3)
    leading = begun(first)
    following = [waiting(second), waiting(third)]
    if how == "stopped":
        first.site.ok("stop", first.id)
        assert leading.wait() == 6, first.story()
    else:
        leading.kill()
        first.kill_all()
        impatient(tmp_path)
    assert [driver.wait() for driver in following] == [0, 0], second.story() + third.story()
    assert sorted(map(phases, (second, third))) == [["precompile", "train"], ["train"]], \
        second.story() + third.story()
    word = "has ended" if how == "stopped" else "not renewed its claim"
    reasons = [row["reason"] for run in (second, third) for row in run.events("cache.claimed") if "reason" in row]
    assert len(reasons) == 1 and word in reasons[0], reasons


def test_who_only_waits_has_no_job_to_leave_behind(runs):
    first, second = runs(2)
    leading = begun(first)
    following = waiting(second)
    following.process.terminate()
    assert following.wait() == 8, second.story()
    assert second.events("driver.left")[-1]["reason"] == "interrupted: no job is running", second.story()
    assert "the job runs on" not in following.err(), second.story()
    again = second.resume()
    first.release()
    assert leading.wait() == again.wait() == 0, second.story()
    assert phases(second) == ["train"], second.story()


def test_the_job_keeps_the_claim_when_its_driver_is_dead(runs, tmp_path):
    first, second = runs(2)
    begun(first).kill()
    following = waiting(second)
    before = claim(tmp_path).read_text()
    second.wait_for(lambda: claim(tmp_path).read_text() != before)
    assert json.loads(claim(tmp_path).read_text())["run"] == first.id
    again = first.resume()
    first.release()
    assert again.wait() == following.wait() == 0, second.story()
    assert phases(first) == ["precompile", "train"], first.story()
    assert phases(second) == ["train"], second.story()


@pytest.mark.parametrize("how, code", [("stop", 6), ("interrupt", 8), ("deadline", 5)])
def test_who_waits_can_be_stopped(runs, how, code):
    first, second = runs(2)
    leading = begun(first)
    if how == "deadline":
        second.sets.append("limits.deadline=10s")
    following = waiting(second)
    if how == "stop":
        second.site.ok("stop", second.id, "--reason", "enough")
    elif how == "interrupt":
        following.process.send_signal(signal.SIGTERM)
    assert following.wait() == code, second.story()
    if how == "interrupt":
        following = second.resume()
    first.release()
    assert leading.wait() == 0, first.story()
    assert following.wait() == (0 if how == "interrupt" else code), second.story()
    assert "precompile" not in phases(second), second.story()


def test_nothing_is_said_where_nobody_else_is_at_it(runs):
    run, = runs(1)
    result = run.site.run(*run.argv()[3:])
    assert run.events("cache.claimed") and not run.events("cache.waiting"), run.story()
    assert not [line for line in result.err.splitlines() if not line[8:].strip()], result


def test_a_claim_that_is_garbage_or_cannot_be_written_keeps_nobody_from_compiling(runs, tmp_path):
    run, = runs(1)
    key = run.site.plan(*run.argv()[5:])["cache"]["graph_key"]
    path = tmp_path / "cache" / "stoker" / "claims" / f"{key}.json"
    path.mkdir(parents=True)
    assert run.drive().wait() == 0, run.story()
    assert phases(run) == ["precompile", "train"], run.story()
    os.rmdir(path)
