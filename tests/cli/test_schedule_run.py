"""`schedule run`: what becomes of an alarm."""

import json
import shutil

import pytest
import stoker as cli
from scheduled import Scheduled


@pytest.fixture
def make(tmp_path):
    def scheduled(**schedule):
        turns = Scheduled(tmp_path, **schedule)
        turns.put("1.csv", "good")
        turns.add()
        return turns
    return scheduled


def test_an_alarm_runs_the_turn_that_is_due_and_no_other(make):
    turns = make()
    early = turns.ok("schedule", "run", "m5")
    assert early.out.startswith("m5: not due: no due time has passed since it was added; next due ")
    first = turns.alarm(1)
    assert first.code == 0 and turns.promoted() == (1, turns.run_of(1)), first
    for hour in ("03:00:10", "03:00:20", "17:00:00"):
        assert turns.alarm(1, hour).out == "m5: not due: its run has ended; next due 2031-01-02T03:00Z\n"
    assert turns.started() == 1
    # Nothing new: no run, and it is told.
    assert turns.alarm(2).out.startswith("nothing new: 0 of 1 objects") and turns.alarm(2).code == 0
    assert [(note["occasion"], note["at"]) for note in turns.messages()] == [("nothing_new", turns.at(2, "03:00:00.000"))]
    assert turns.stoker("status", turns.run_of(2)).code == 9
    # The same by the place of its models, which needs no entry in the state.
    turns.put("2.csv", "good")
    done = turns.stoker("--state", turns.root / "other", "schedule", "run", turns.models, "--at", turns.at(3, "03:01:00"))
    assert done.code == 0 and turns.promoted() == (2, turns.run_of(3)), done
    inputs = json.loads(turns.ok("--state", turns.root / "other", "events", turns.run_of(3)).out.splitlines()[0])["inputs"]
    assert inputs["turn"] == {"name": "m5", "due": turns.at(3, "03:00:00.000"), "at": turns.at(3, "03:01:00.000")}
    assert [(record["at"][8:10], record["by"], record["outcome"], record.get("run"), record.get("exit_code")) for record in turns.records()] == [
        ("01", "schedule", "run", turns.run_of(1), 0), ("02", "schedule", "nothing_new", None, None),
        ("03", "schedule", "run", turns.run_of(3), 0)]
    # A moment before the last turn: its data was settled later.
    back = turns.alarm(2, "02:00:00")
    assert back.code == 0 and "its run has ended" in back.out
    turns.put("3.csv", "good")
    assert turns.stoker("retrain", turns.spec_path, "--at", turns.at(6, "00:00:00")).code == 0
    back = turns.alarm(5)
    assert back.code == 4 and "lies before the last turn" in back.err
    assert turns.alarm(6).code == 0
    known = turns.ok("schedule", "next", turns.spec_path, "-n", "1")
    assert "the last turn, of 2031-01-06T03:00Z: nothing new: 0 of 3 objects" in known.err


def test_an_alarm_of_an_unknown_schedule_makes_nothing(make):
    turns = make()
    for state in ("state", "dir:state"):
        for words in (["run", "nobody"], ["run", turns.drops], ["rm", "nobody"]):
            gone = turns.stoker("--state", state.replace("state", str(turns.root / "fresh")), "schedule", *words)
            assert gone.code == 9 and gone.cure, gone
            assert not (turns.root / "fresh").exists()


def test_two_alarms_of_one_second_make_one_run(make):
    turns = make()
    alarms = [turns.start_alarm(1) for _ in range(4)]
    done = [cli.finish(alarm) for alarm in alarms]
    assert [alarm.code for alarm in done] == [0] * 4, done
    assert turns.started() == 1 and turns.promoted() == (1, turns.run_of(1))
    assert len(turns.records()) == 1 and len(turns.ok("list").out.splitlines()) == 2


def test_of_turns_begun_by_hand_in_one_moment_one_runs(make):
    turns = make()
    turns.hold.touch()
    begun = [turns.start("retrain", turns.spec_path) for _ in range(4)]
    cli.until(lambda: sum(process.poll() == 7 for process in begun) == 3)
    cli.until(turns.started)
    assert turns.started() == 1
    turns.hold.unlink()
    done = [cli.finish(process) for process in begun]
    run = turns.promoted()[1]
    assert sorted(turn.code for turn in done) == [0, 7, 7, 7] and turns.promoted() == (1, run), done
    assert all(f"run {run} retrains this model now" in turn.err for turn in done if turn.code == 7), done
    assert len(turns.records()) == 1
    # Without news and after a failure the next one need not wait.
    assert turns.stoker("retrain", turns.spec_path).out.startswith("nothing new")
    turns.put("2.csv", "good")
    turns.drops.rename(turns.root / "away")
    assert turns.stoker("retrain", turns.spec_path).code == 4
    (turns.root / "away").rename(turns.drops)
    # Nor does a process that died keep it.
    turns.hold.touch()
    dead = turns.start("retrain", turns.spec_path)
    cli.until(lambda: turns.started() == 2, dead)
    dead.kill()
    dead.wait()
    turns.hold.unlink()
    after = turns.stoker("retrain", turns.spec_path)
    assert after.code == 0 and turns.promoted()[0] == 2, after


def test_a_turn_that_nobody_drives_is_taken_over(make):
    turns = make()
    turns.hold.touch()
    dead = turns.start_alarm(1)
    cli.until(turns.started, dead)
    dead.kill()
    dead.wait()
    turns.hold.unlink()
    taken = turns.alarm(1, "03:05:00")
    assert taken.code == 0 and "has no driver" in taken.err and turns.promoted() == (1, turns.run_of(1)), taken
    # So it is by an alarm whose own turn was skipped meanwhile.
    turns.put("1b.csv", "good")
    turns.hold.touch()
    dead = turns.start_alarm(4)
    cli.until(lambda: turns.started() == 2, dead)
    assert "skipped" in turns.alarm(5).out
    dead.kill()
    dead.wait()
    turns.hold.unlink()
    taken = turns.alarm(5, "03:05:00")
    assert taken.code == 0 and taken.out.endswith("goes on; next due 2031-01-06T03:00Z\n"), taken
    assert turns.promoted() == (2, turns.run_of(4))
    # The next day's alarm takes it over too, and then has its own turn.
    turns.put("2.csv", "good")
    turns.hold.touch()
    dead = turns.start_alarm(7)
    cli.until(lambda: turns.started() == 3, dead)
    dead.kill()
    dead.wait()
    turns.hold.unlink()
    turns.put("3.csv", "good")
    taken = turns.alarm(8)
    assert taken.code == 0 and turns.promoted() == (4, turns.run_of(8)), taken
    assert turns.given(turns.run_of(7)) == {"2.csv": False} and turns.given(turns.run_of(8)) == {"3.csv": False}


def test_a_driven_turn_makes_others_skip(make):
    turns = make()
    turns.hold.touch()
    first = turns.start_alarm(1)
    cli.until(turns.started, first)
    again = turns.alarm(1, "03:00:40")
    assert again.code == 0 and "not due: its run is being driven" in again.out
    second = turns.alarm(2)
    reason = f"run {turns.run_of(1)} of an earlier turn goes on"
    assert second.code == 0 and second.out == f"m5: skipped: {reason}; next due 2031-01-03T03:00Z\n", second
    assert turns.alarm(2, "03:00:50").out.startswith(f"m5: not due: {reason}")
    assert [(note["occasion"], note["reason"]) for note in turns.messages()] == [("skipped", reason)]
    # By hand there is no skipping: somebody waits for an answer.
    busy = turns.stoker("retrain", turns.spec_path, "--at", turns.at(2, "09:00:00"))
    assert busy.code == 7 and f"run {turns.run_of(1)} retrains this model now" in busy.err, busy
    turns.hold.unlink()
    assert cli.finish(first).code == 0
    assert turns.outcomes() == {"01": "run", "02": "skipped"}
    turns.put("2.csv", "good")
    assert turns.alarm(3).code == 0 and turns.promoted() == (2, turns.run_of(3))


def test_a_retraining_by_hand_counts_as_a_turn(make):
    turns = make()
    turns.hold.touch()
    first = turns.start("retrain", turns.spec_path, "--id", "mine", "--at", turns.at(1, "02:00:00"))
    cli.until(turns.started, first)
    assert "skipped: run mine of an earlier turn goes on" in turns.alarm(1).out
    turns.hold.unlink()
    assert cli.finish(first).code == 0 and turns.promoted() == (1, "mine")


def test_one_turn_waits_for_a_driven_one(make):
    turns = make(overlap="queue")
    turns.hold.touch()
    first = turns.start_alarm(1)
    cli.until(turns.started, first)
    second = turns.start_alarm(2)
    cli.until(lambda: turns.outcomes().get("02") == "queued", second)
    again = turns.alarm(2, "03:00:50")
    assert again.code == 0 and again.out.startswith(f"m5: not due: run {turns.run_of(1)} of an earlier turn goes on"), again
    third = turns.alarm(3)
    assert third.code == 0 and "skipped" in third.out and "another turn waits for it" in third.out, third
    turns.put("2.csv", "good")
    turns.hold.unlink()
    assert cli.finish(first).code == 0
    done = cli.finish(second)
    assert done.code == 0 and turns.promoted() == (2, turns.run_of(2)), done
    assert turns.outcomes() == {"01": "run", "02": "run", "03": "skipped"}


def test_a_turn_that_waited_in_a_dead_process_begins_with_the_next_alarm(make):
    turns = make(overlap="queue")
    turns.hold.touch()
    first = turns.start_alarm(1)
    cli.until(turns.started, first)
    second = turns.start_alarm(2)
    cli.until(lambda: turns.outcomes().get("02") == "queued", second)
    second.kill()
    second.wait()
    heir = turns.start_alarm(2, "03:20:00")
    turns.put("2.csv", "good")
    turns.hold.unlink()
    assert cli.finish(first).code == 0
    done = cli.finish(heir)
    assert done.code == 0 and turns.promoted() == (2, turns.run_of(2)), done


def test_a_turn_replaces_a_driven_one(make):
    turns = make(overlap="replace")
    turns.hold.touch()
    first = turns.start_alarm(1)
    cli.until(turns.started, first)
    second = turns.start_alarm(2)
    cli.until(lambda: turns.started() == 2, second)
    assert cli.finish(first).code == 6
    turns.hold.unlink()
    done = cli.finish(second)
    assert done.code == 0 and turns.promoted() == (1, turns.run_of(2)), done
    # The turn that was stopped has changed nothing: its data was offered again.
    assert turns.given(turns.run_of(2)) == {"1.csv": False}


def test_missed_turns_and_late_ones(make):
    turns = make()
    assert turns.alarm(9, "12:00:00").code == 0
    assert turns.outcomes() == {"09": "run"}, "one of all that were missed"
    turns.put("2.csv", "good")
    turns.write(schedule={"cron": "0 3 * * *", "catch_up": "none"})
    turns.add()
    assert "skipped: it was missed, and schedule.catch_up is none" in turns.alarm(11, "12:00:00").out
    assert turns.alarm(12, "03:09:00").code == 0 and turns.promoted() == (2, turns.run_of(12))
    turns.put("3.csv", "good")
    turns.write(schedule={"cron": "0 3 * * *", "start_within": "1h"})
    turns.add()
    assert "skipped: it is later than schedule.start_within allows" in turns.alarm(13, "04:00:01").out
    assert turns.alarm(14, "04:00:00").code == 0 and turns.promoted() == (3, turns.run_of(14))
    assert [note["occasion"] for note in turns.messages()] == ["skipped", "skipped"]


def test_spec_and_source_are_pinned(make):
    turns = make()
    turns.spec_path.write_text("half an edit: [")
    (turns.source / "patient.sh").write_text("exit 1\n")
    shutil.rmtree(turns.root / "workspace/sources")
    done = turns.alarm(1)
    assert done.code == 0 and turns.promoted() == (1, turns.run_of(1)), done
    # It is there to be removed, with all that was pinned.
    turns.ok("schedule", "rm", "m5")
    assert not turns.table.exists() and not list((turns.models / "schedule").rglob("*.*"))
    gone = turns.alarm(2)
    assert gone.code == 9 and "no schedule 'm5'" in gone.err
    gone = turns.stoker("schedule", "run", turns.models)
    assert gone.code == 9 and "no schedule is pinned" in gone.err


def test_records_that_were_spoilt_are_named(make):
    turns = make()
    assert turns.alarm(1).code == 0
    record = next((turns.models / "turns").glob("2*.json"))
    whole = record.read_text()
    # Cut, from the future, and of another moment than its name says.
    for text in (whole[:-20], '{"v":2}', whole.replace(turns.at(1, "03:00:00.000"), turns.at(2, "03:00:00.000"), 1)):
        record.write_text(text)
        bad = turns.alarm(1)
        assert bad.code == 4 and str(record) in bad.err and "delete it" in bad.err, bad
    record.unlink()
    path = turns.models / "schedule/pin.json"
    pin = path.read_text()
    for text in ("{", pin[:-20], pin.replace('"v":1', '"v":2', 1), pin.replace('"overlap":"skip"', '"overlap":"queue"'),
                 pin.replace('"learner.py"', '"other.py"', 1)):
        assert text != pin
        path.write_text(text)
        for words in (["run", "m5", "--at", turns.at(2, "03:00:10")], ["ls"]):
            bad = turns.stoker("schedule", *words)
            assert bad.code == 4 and "'stoker schedule add SPEC --to …' pins it again" in bad.err, bad
    turns.add()
    assert turns.alarm(2).code == 0
