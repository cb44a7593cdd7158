"""`resume RUN --salvage`: a run whose journal is damaged goes on from its last good event. What is
damaged is kept, the job that was under way is found on the engine and in the workspace and never
doubled, and the other runs of the state are as they were."""

import json
import os
import signal

import crash
import pytest
from damage import get, put, seq_of

JOURNALS = ("sqlite", "dir")


@pytest.fixture(params=JOURNALS)
def site(request, tmp_path):
    site = crash.Site(tmp_path / request.param, request.param)
    yield site
    site.clear()


def gap(run, rows):
    put(run, seq_of(rows, "attempt.submitted", "train"), None)


def empty(run, rows):
    put(run, seq_of(rows, "attempt.ended", "precompile"), "")


def wrong_sum(run, rows):
    seq = seq_of(rows, "cache.verified")
    put(run, seq, get(run, seq).replace('"complete":true', '"complete":false'))


def cut_last(run, rows):
    text = get(run, rows[-1]["seq"])
    put(run, rows[-1]["seq"], text[:len(text) // 2])


def early(run, rows):
    """No attempt is journalled any more."""
    put(run, seq_of(rows, "driver.took_over"), None)


def first(run, _):
    """And no plan."""
    put(run, 1, "")


DAMAGES = {"gap": gap, "empty": empty, "wrong-sum": wrong_sum, "cut-last": cut_last, "early": early, "first": first}


def leave(run, ended):
    """Its driver is dead; its job waits at a gate, or has ended meanwhile. Its events."""
    driver = run.hold("train", 3).drive()
    run.wait_for_effect("holds")
    run.wait_for(lambda: "train.progress train" in driver.seen() or "attempt.started train" in driver.seen())
    assert driver.kill()
    if ended:
        run.release()
        run.wait_for(lambda: not run.processes())
    return run.events()


def check_damaged(run):
    """Every command names the cure."""
    for argv in (("status", run.id), ("events", run.id), ("resume", run.id)):
        result = run.site.stoker(*argv)
        assert result.code == 4, str(result)
        assert "--salvage" in result.cure, str(result)


def aside(run) -> list:
    return sorted((run.site.state / f"runs/{run.id}/damaged").glob("*"))


def check_salvaged(run, before):
    """It has succeeded, nothing was done twice, and what was damaged is kept and named."""
    story, rows = crash.Story(run), run.events()
    salvaged = [row for row in rows if row["event"] == "journal.salvaged"]
    assert len(salvaged) == 1, story
    assert rows[-1]["event"] == "run.ended" and rows[-1]["state"] == "succeeded", story
    crash.check_order(rows, story)
    good = salvaged[0]["seq"] - 1
    assert rows[:good] == before[:good], story
    assert salvaged[0]["put_aside"] == len(aside(run)), story
    assert salvaged[0]["url"].rstrip("/").endswith(f"runs/{run.id}/damaged"), story
    assert [row["event"] for row in rows].count("journal.settled") == 1, story
    effects = [(row["phase"], row["attempt"], row["what"]) for row in run.effects("start", "end")]
    assert effects == [(phase, 1, what) for phase in crash.PHASES for what in ("start", "end")], story
    submitted = [(row["phase"], row["attempt"]) for row in rows if row["event"] == "attempt.intended"]
    assert len(submitted) == len(set(submitted)), story
    crash.check_ledger(run, run.status(), rows)
    crash.check_nothing_left(run)


@pytest.mark.parametrize("ended", [False, True], ids=["running", "ended"])
def test_a_damaged_run_goes_on_with_its_job(site, ended):
    whole = site.one("whole")
    assert whole.drive().wait() == 0
    runs = {name: site.one(name) for name in DAMAGES}
    before = {name: leave(run, ended) for name, run in runs.items()}
    for name, damage in DAMAGES.items():
        damage(runs[name], before[name])
    for run in runs.values():
        check_damaged(run)
    true = whole.events()
    drivers = {name: run.drive("--json", "resume", name, "--salvage") for name, run in runs.items()}
    for name, run in runs.items():
        run.wait_for(lambda name=name: "journal.settled" in drivers[name].seen() or drivers[name].ended())
        run.release()
    for name, run in runs.items():
        assert drivers[name].wait() == 0, run.story()
        check_salvaged(run, before[name])
    assert whole.events() == true
    assert site.ok("--json", "list").code == 0


def test_what_is_set_aside_is_all_that_was_there(site):
    run = site.one("run")
    before = leave(run, True)
    texts = [get(run, row["seq"]) for row in before[3:]]
    put(run, 4, "no event")
    assert run.drive("--json", "resume", "run", "--salvage").wait() == 0, run.story()
    kept = [path.read_text() for path in aside(run)]
    assert kept == ["no event", *texts[1:]]
    assert all(path.stat().st_mode & 0o077 == 0 for path in aside(run)) or site.journal == "dir"
    # Nothing is left of it where a reader would take it for true.
    assert run.site.stoker("rm", "run").code == 0
    assert not aside(run)


def test_a_whole_journal_is_left_as_it_is(site):
    run = site.one("run")
    before = leave(run, True)
    result = site.stoker("resume", "run", "--salvage")
    assert result.code == 0 and "nothing to salvage" in result.err, str(result)
    rows = run.events()
    assert rows[:len(before)] == before and not aside(run)
    assert "journal.salvaged" not in [row["event"] for row in rows]
    again = site.stoker("resume", "run", "--salvage")
    assert again.code == 0 and run.events() == rows, str(again)


def test_one_run_at_a_time(site):
    refused = site.stoker("resume", "--all", "--salvage")
    assert refused.code == 2 and "one RUN" in refused.err, str(refused)
    unknown = site.stoker("resume", "nobody", "--salvage")
    assert unknown.code == 9 or "no run 'nobody'" in unknown.err, str(unknown)


def test_of_two_at_once_one_drives(site):
    run = site.one("run")
    before = leave(run, False)
    gap(run, before)
    drivers = [run.drive("--json", "resume", "run", "--salvage") for _ in range(2)]
    run.wait_for(lambda: any(driver.ended() for driver in drivers))
    loser = next(driver for driver in drivers if driver.ended())
    assert loser.wait() == 7, run.story()
    run.release()
    assert sorted(driver.wait() for driver in drivers) == [0, 7], run.story()
    check_salvaged(run, before)


def test_a_finished_run_is_not_begun_again(site):
    """Its end lies behind the damage: the run has ended as it had."""
    run = site.one("run", "command=[sh, -c, 'exit 3']", "compile.kind=none")
    assert run.drive().wait() == 1
    before = run.events()
    put(run, seq_of(before, "attempt.submitted", "train"), None)
    assert run.drive("--json", "resume", "run", "--salvage").wait() == 1, run.story()
    rows, story = run.events(), crash.Story(run)
    assert rows[-1]["event"] == "run.ended" and rows[-1]["state"] == "failed", story
    jobs = {row["job"] for row in rows if "job" in row}
    assert jobs <= {row["job"] for row in before if "job" in row}, story


def test_a_stop_that_lies_behind_the_damage_is_obeyed(site):
    run = site.one("run", "hyperparameters.max_steps=100000")
    driver = run.drive()
    run.wait_for(lambda: "train.progress train" in driver.seen() or "train.progress" in driver.seen())
    assert driver.kill()
    before = run.events()
    last = before[-1]["seq"]
    stop = site.start("stop", "run", "--reason", "wrong data")
    run.wait_for(lambda: "request.stop" in [row["event"] for row in run.events()])
    stop.kill()
    stop.wait()
    put(run, last, None)
    salvage = run.drive("--json", "resume", "run", "--salvage")
    assert salvage.wait() == 6, run.story()
    requests = run.events("request.stop")
    assert len(requests) == 1 and requests[0]["reason"] == "wrong data", run.story()
    crash.check_nothing_left(run)


def test_a_database_of_no_bytes_beside_folders_of_runs(tmp_path):
    """Every run of the state is damaged then, and each can be salvaged; the file is kept."""
    site = crash.Site(tmp_path / "site")
    try:
        runs = [site.one("one"), site.one("two")]
        before = [leave(run, run.id == "two") for run in runs]
        for path in site.state.glob("journal.db*"):
            os.truncate(path, 0)
        check_damaged(runs[0])
        drivers = [run.drive("--json", "resume", run.id, "--salvage") for run in runs[:1]]
        runs[0].wait_for(lambda: "journal.settled" in drivers[0].seen() or drivers[0].ended())
        other = site.stoker("status", "two")
        assert other.code == 4 and "two --salvage" in other.cure, str(other)
        drivers.append(runs[1].drive("--json", "resume", "two", "--salvage"))
        runs[0].release()
        for run, driver, rows in zip(runs, drivers, before, strict=True):
            assert driver.wait() == 0, run.story()
            check_salvaged(run, rows)
        assert (site.state / "journal.db.damaged-1").exists()
    finally:
        site.clear()


def test_a_database_is_not_moved_from_under_a_driver(tmp_path):
    site = crash.Site(tmp_path / "site")
    try:
        left, driven = site.one("left"), site.one("driven")
        leave(left, True)
        driver = driven.hold("train", 3).drive()
        driven.wait_for_effect("holds")
        driver.pause_between_writes()
        database = site.state / "journal.db"
        true = database.read_bytes()
        os.truncate(database, 0)
        result = site.stoker("resume", "left", "--salvage")
        assert result.code == 7 and "driven" in result.err, str(result)
        assert not list(site.state.glob("journal.db.damaged*"))
        database.write_bytes(true)
        driver.process.send_signal(signal.SIGCONT)
        driven.release()
        assert driver.wait() == 0, driven.story()
    finally:
        site.clear()


def test_a_mark_of_the_journal_that_is_lost_is_written_again(tmp_path):
    site = crash.Site(tmp_path / "site", "dir")
    try:
        run = site.one("run")
        before = leave(run, True)
        mark = site.state / "journal.json"
        true = json.loads(mark.read_text())
        mark.write_text("garbage")
        check_damaged(run)
        assert run.drive("--json", "resume", "run", "--salvage").wait() == 0, run.story()
        assert json.loads(mark.read_text()) == true
        assert [path.read_text() for path in site.state.glob("journal.json.damaged-*")] == ["garbage"]
        assert run.events()[:len(before)] == before
        crash.check_once(run)
    finally:
        site.clear()
