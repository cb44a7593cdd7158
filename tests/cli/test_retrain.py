"""Turns of a retraining in a directory: what each is given, and what becomes of it."""

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import stoker
from turns import Turns


@pytest.fixture
def turns(tmp_path):
    return Turns(tmp_path)


def test_weeks_of_data(turns):
    turns.put("2.csv", "good")
    assert turns.turn("week-1").code == 0
    assert turns.given("week-1") == {"2.csv": False} and turns.promoted() == (1, "week-1")
    inputs = turns.ok("events", "week-1").lines[0]["inputs"]
    assert "parent" not in inputs and inputs["promotes"] is True and inputs["hold_out"]["objects"] == 1
    # A late file with an old name, and one that was written over.
    turns.put("1.csv", "late")
    turns.put("2.csv", "fixed")
    assert turns.turn("week-2").code == 0
    assert turns.given("week-2") == {"1.csv": False, "2.csv": True} and turns.promoted() == (2, "week-2")
    inputs = turns.ok("events", "week-2").lines[0]["inputs"]
    assert inputs["parent"]["generation"] == inputs["baseline"]["generation"] == inputs["pointer"]["generation"] == 1
    # No data: one line, a record, no run.
    nothing = turns.turn("week-3")
    assert nothing.out.startswith("nothing new: 0 of 2 objects in ") and nothing.out.count("\n") == 1, nothing
    assert turns.stoker("status", "week-3").code == 9
    records = [json.loads(path.read_text()) for path in sorted((turns.models / "turns").glob("2*.json"))]
    assert [(record["outcome"], record.get("run")) for record in records] == [
        ("run", "week-1"), ("run", "week-2"), ("nothing_new", None)]
    # A turn before the last one is refused.
    early = turns.stoker("retrain", turns.spec_path, "--at", "2031-01-08T00:00:00Z")
    assert early.code == 4 and "lies before the last turn" in early.err


def test_data_that_was_refused_is_offered_again_or_left_out(turns):
    turns.put("1.csv", "good")
    assert turns.turn("week-1").code == 0
    turns.put("2.csv", "bad")
    refused = turns.turn("week-2")
    assert refused.code == 5 and turns.promoted() == (1, "week-1"), refused
    # Offered again: with more data it is refused again.
    turns.put("3.csv", "good")
    assert turns.turn("week-3").code == 5 and turns.given("week-3") == {"2.csv": False, "3.csv": False}
    # Left out by hand, once and for all, until it changes. The same id goes on with its own data.
    assert turns.turn("week-4", "--without", "week-2").code == 0
    assert turns.given("week-4") == {"3.csv": False} and turns.promoted() == (2, "week-4")
    assert turns.turn("week-5").out.startswith("nothing new: 0 of 3 objects")
    assert turns.turn("week-4").code == 0 and turns.given("week-4") == {"3.csv": False}
    turns.put("2.csv", "good now")
    assert turns.turn("week-6").code == 0 and turns.given("week-6") == {"2.csv": False}
    # By itself, as the spec says.
    turns.write(data={**turns.spec["data"], "after_refusal": "set_aside"})
    turns.put("4.csv", "bad")
    assert turns.turn("week-7").code == 5
    turns.put("5.csv", "good")
    assert turns.turn("week-8").code == 0 and turns.given("week-8") == {"5.csv": False}
    wrong = turns.turn("week-9", "--without", "nobody")
    assert wrong.code == 9 and "nobody" in wrong.err


def test_a_no_shows_what_every_entry_of_the_gate_found(turns):
    turns.put("1.csv", "bad")
    turns.write(evaluate={key: value for key, value in turns.spec["evaluate"].items() if key != "metric"},
                gate=[{"metric": "held", "at_least": 1}, {"metric": "accuracy", "at_least": 0.5}])
    refused = turns.turn("week-1")
    held = f"hold-out: {turns.held}\n            ✓ held is 1; it must be at least 1\n"
    shown = f"✗ no: accuracy is 0; it must be at least 0.5; {held}"
    assert refused.code == 5 and shown in refused.out and shown in turns.ok("status", "week-1").out, refused


def test_data_that_the_promoted_model_has_learnt_cannot_be_left_out(turns):
    turns.put("1.csv", "good")
    assert turns.turn("week-1").code == 0
    turns.put("2.csv", "good")
    assert turns.turn("week-2").code == 0
    turns.put("3.csv", "good")
    for run, why in (("week-2", "its model is the promoted one"), ("week-1", "trained from its model")):
        refused = turns.turn("week-3", "--without", run)
        assert refused.code == 4 and why in refused.err and "stoker rollback" in refused.err, refused
    assert not (turns.models / "aside").exists() and turns.stoker("status", "week-3").code == 9
    # The cure.
    assert turns.stoker("rollback", "--reason", "week 2 did harm").code == 0
    assert turns.turn("week-3", "--without", "week-2").code == 0 and turns.given("week-3") == {"3.csv": False}


def test_data_that_changes_while_a_turn_runs(turns):
    turns.put("1.csv", "good")
    turns.put("2.csv", "good")
    turns.write(env={"OVERWRITES": str(turns.drops / "2.csv")}, data={**turns.spec["data"], "on_change": "stop"})
    stopped = turns.turn("week-1")
    assert stopped.code == 5 and "the first is " + str(turns.drops / "2.csv") in stopped.err, stopped
    assert not (turns.models / "current.json").exists()
    turns.put("2.csv", "good")
    turns.write(data={**turns.spec["data"], "on_change": "warn"})
    assert turns.turn("week-2").code == 0 and turns.promoted() == (1, "week-2")
    entry = json.loads((turns.models / "entries/1.json").read_text())
    assert f'"first":"{turns.drops}/2.csv"' in json.dumps(entry, separators=(",", ":"))
    # What was written over is new once more.
    assert turns.turn("week-3").code == 0 and turns.given("week-3") == {"2.csv": True}


def test_a_turn_needs_enough_data_that_it_can_read(turns):
    turns.put("1.csv", "good")
    turns.write(data={**turns.spec["data"], "min_new": 2})
    few = turns.turn("week-1").out
    assert few == f"nothing new: 1 of 1 objects in {turns.drops} is new; a turn needs 2 (data.min_new)\n"
    shutil.rmtree(turns.held)
    turns.put("2.csv", "good")
    bad = turns.turn("week-2")
    assert bad.code == 4 and "hold-out" in bad.err and str(turns.held) in bad.err
    turns.write(data=None)
    assert turns.turn("week-3").code == 3


def test_nothing_is_promoted_without_a_gate(turns):
    turns.put("1.csv", "good")
    turns.write(evaluate=None, promote=None)
    turns.ok("validate", turns.spec_path)
    refused = turns.turn("week-1")
    assert refused.code == 3 and "no gate" in refused.err
    assert turns.ok("list", "--json").lines == [] and not (turns.root / "workspace/models").exists()
    turns.write(promote={"when": "always"})
    assert turns.turn("week-1").code == 0


def test_a_candidate_that_is_damaged_before_its_promotion_is_refused_once_and_for_all(turns):
    turns.put("1.csv", "good")
    assert turns.turn("week-1").code == 0
    turns.put("2.csv", "good")
    assert turns.turn("week-2", "--until", "gate").code == 0
    chosen, = turns.events("week-2", "candidate.chosen")
    (Path(chosen["url"]) / "state.json").unlink()
    for _ in range(2):
        refused = turns.stoker("retrain", turns.spec_path, "--id", "week-2")
        assert refused.code == 5 and "'state.json' is missing" in refused.text, refused
    assert turns.status("week-2")["state"] == "refused" and turns.promoted() == (1, "week-1")
    assert len(turns.events("week-2", "driver.took_over")) == 2
    # Its data is offered again.
    assert turns.turn("week-3").code == 0 and turns.given("week-3") == {"2.csv": False}


def test_a_training_that_left_no_model_where_the_spec_says(turns):
    turns.put("1.csv", "good")
    turns.write(promote={"url": str(turns.models), "from": "output:best"})
    failed = turns.turn("week-1")
    assert failed.code == 1 and "the training left no 'best' in STOKER_OUTPUT_DIR" in failed.out, failed
    turns.write(promote={"url": str(turns.models)})
    assert turns.turn("week-2").code == 0
    assert turns.ok("lineage", turns.models, "--verify").out.startswith("1 entry, ")


def test_a_service_ends_the_command_before_there_is_a_run(turns):
    """Exit code 8, by which an exported workflow repeats the step; the same command then goes on."""
    turns.put("1.csv", "good")
    at = ("--at", "2031-01-07T03:00:00Z")
    early = turns.start("retrain", "-", "--id", "week-1", *at, stdin=subprocess.PIPE)
    caught = Path(f"/proc/{early.pid}/status")
    stoker.until(lambda: int(re.search(r"SigCgt:\s*(\w+)", caught.read_text())[1], 16) & 1 << signal.SIGTERM - 1, early)
    early.terminate()
    assert early.wait() == 8 and turns.ok("list", "--json").lines == []
    assert turns.stoker("retrain", turns.spec_path, "--id", "week-1", *at).code == 0


def test_a_run_that_was_no_retraining_is_not_taken_for_one(turns):
    turns.put("1.csv", "good")
    turns.ok("run", turns.spec_path, "--id", "week-1")
    said = turns.turn("week-1")
    assert said.code == 3 and "was not begun by 'retrain'" in said.err and "stoker promote week-1" in said.err, said
    assert not (turns.models / "current.json").exists()
    assert turns.turn("week-2").code == 0 and turns.turn("week-2").code == 0 and turns.promoted() == (1, "week-2")
