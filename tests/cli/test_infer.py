"""Inference in a turn: what it leaves, what a refused gate leaves of it, and what a killed agent costs."""

import hashlib
import json
from datetime import datetime

import pytest
from project import PYTHON
from turns import Turns


@pytest.fixture
def turns(tmp_path):
    turns = Turns(tmp_path)
    turns.results, turns.starts = tmp_path / "results", tmp_path / "starts"
    for number in range(7):
        turns.put(f"{number}.csv", f"good {number}")
    turns.write(infer={"command": [PYTHON, "learner.py", "infer"], "output": str(turns.results), "shards": 3,
                       "env": {"STARTS": str(turns.starts)}})
    return turns


def outputs(turns, run):
    """What lies in the place of the outputs of a run, by its manifest and by a plain listing: they are the same, and
    each object of the data has one."""
    folder = turns.results / run
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["run"] == run
    # Whoever may list the folder may read the list.
    assert (folder / "manifest.json").stat().st_mode & 0o666 == folder.stat().st_mode & 0o666
    there = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    del there["manifest.json"]
    assert [(row["file"], row["size"], row["sha256"]) for row in manifest["files"]] == [
        (name, len(body), hashlib.sha256(body).hexdigest()) for name, body in there.items()]
    assert all(row["file"].startswith(f"shard-{row['shard']}/") for row in manifest["files"])
    assert [path for path in folder.rglob("*") if path.is_dir() and not any(path.iterdir())] == []
    names = [name.rpartition("/")[2] for name in there]
    assert sorted(names) == sorted(f"{path.name}.out" for path in turns.drops.iterdir())
    return {name.rpartition("/")[2]: body.decode() for name, body in there.items()}, manifest["files"]


def test_a_turn_publishes_model_and_outputs_together(turns):
    shown = turns.turn("week-1")
    assert shown.code == 0, shown
    assert outputs(turns, "week-1")[0] == {f"{number}.csv.out": f"7 good {number}" for number in range(7)}
    pointer = json.loads((turns.models / "current.json").read_text())
    assert (pointer["run"], pointer["outputs"]) == ("week-1", str(turns.results / "week-1"))
    status = turns.status("week-1")
    assert status["infer"] == {"tasks": 3, "done": 3} and status["ledger"]["infer"] > 0
    assert sorted(turns.starts.read_text().split()) == ["0", "1", "2"]
    # All items again, by the next model, in a place of its own.
    turns.put("7.csv", "good 7")
    assert turns.turn("week-2").code == 0 and turns.promoted() == (2, "week-2")
    assert outputs(turns, "week-2")[0] == {f"{number}.csv.out": f"8 good {number}" for number in range(8)}


def test_the_next_turn_knows_what_follows_the_training(turns):
    """What evaluation and inference took is in the entry, and given to the next turn with its pointer."""
    turns.write(resources={"price": 36})
    assert turns.turn("week-1").code == 0
    took = json.loads((turns.models / "entries/1.json").read_text())["version"]["took"]
    ended = {row["phase"]: row for row in turns.events("week-1", "attempt.ended")}
    for row in turns.events("week-1", "attempt.intended"):
        if row["phase"] != "train":
            end = ended[row["phase"]]
            assert took.pop(row["phase"]) == pytest.approx({
                "seconds": seconds(row["at"], end["at"]), "machine_seconds": seconds(end["started"], end["finished"])})
    assert took == {}
    turns.put("7.csv", "good 7")
    assert turns.turn("week-2").code == 0
    inputs = turns.events("week-2")[0]["inputs"]
    assert inputs["took"] == json.loads((turns.models / "entries/1.json").read_text())["version"]["took"]
    assert turns.events("week-1")[0]["inputs"].get("took") is None


def seconds(since, until):
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()


def verified(turns):
    """(objects that differ, the sum)."""
    result = turns.stoker("--json", "lineage", str(turns.models), "--verify")
    *rows, last = result.lines
    assert result.code == (5 if rows else 0) and last["differences"] == len(rows), result
    return [row["object"] for row in rows], last, turns.stoker("lineage", str(turns.models), "--verify").text


def test_outputs_are_verified_where_they_can_be_reached(turns):
    assert turns.turn("week-1").code == 0
    turns.put("7.csv", "good 7")
    assert turns.turn("week-2").code == 0
    wrong, whole, _ = verified(turns)
    assert wrong == [] and whole["unchecked"] == 0
    folder = turns.results / "week-2"
    for name in ("shard-1/1.0/3.csv.out", "manifest.json"):
        body = (folder / name).read_bytes()
        (folder / name).write_bytes(body[:-1] + bytes([body[-1] ^ 1]))
        assert verified(turns)[0] == [str(folder / name)]
        (folder / name).unlink()
        assert verified(turns)[0] == [str(folder / name)]
        (folder / name).write_bytes(body)
    # Room was made: only the newest version needs its outputs.
    (turns.results / "week-1/manifest.json").unlink()
    wrong, last, said = verified(turns)
    assert wrong == [] and last["unchecked"] == 1 and f"{turns.results}/week-1: " in said
    assert whole["objects"] - last["objects"] == 8
    # From another machine none of them can be seen.
    turns.results.rename(turns.root / "elsewhere")
    wrong, last, said = verified(turns)
    assert wrong == [] and last["unchecked"] == 2 and "not on this machine" in said


def test_a_refused_gate_infers_nothing(turns):
    assert turns.turn("week-1").code == 0
    turns.put("7.csv", "bad")
    assert turns.turn("week-2").code == 5 and turns.promoted() == (1, "week-1")
    assert [path.name for path in turns.results.iterdir()] == ["week-1"]
    assert "infer" not in [phase for phase, _ in turns.attempts("week-2")]
    assert len(turns.starts.read_text().split()) == 3


def test_a_killed_agent_costs_the_shard_at_work(turns):
    turns.spec["infer"]["env"]["KILLS_AGENT"] = "1"
    turns.write()
    assert turns.turn("week-1").code == 0
    assert turns.attempts("week-1") == [("train", 1), ("evaluate", 1), ("infer", 1), ("infer", 2)]
    assert sorted(turns.starts.read_text().split()) == ["0", "1", "1", "2"]
    # The half of a shard that the first attempt left is gone.
    files = outputs(turns, "week-1")[1]
    assert {row["file"].split("/")[1] for row in files if row["shard"] == 0} == {"1.0"}
    assert {row["file"].split("/")[1] for row in files if row["shard"] > 0} == {"2.0"}
    assert [row["task"] for row in turns.events("week-1", "task.done")][1:] == ["shard-0", "shard-1", "shard-2"]


def test_an_object_that_no_attempt_can_read_ends_the_phase_and_is_named(turns):
    """Three times the same end in the same shard: the machines are not to blame."""
    turns.write(retry={"attempts": 20, "backoff": {"first": "0s", "max": "0s"}})
    turns.put("3.csv", "poison")
    shown = turns.turn("week-1")
    assert shown.code == 1
    assert turns.attempts("week-1")[2:] == [("infer", 1), ("infer", 2), ("infer", 3)]
    objects = [str(turns.drops / name) for name in ("3.csv", "4.csv")]
    for event in turns.events("week-1", "attempt.ended")[2:]:
        assert (event["task"], event["objects"], event["exit"]) == ("shard-1", objects, 3)
    status = turns.status("week-1")
    assert status["reason"].endswith("failed 3 times in the same way (unknown) in shard-1")
    assert status["hint"].startswith(f"look at the objects of shard-1: {', '.join(objects)}")
    assert status["reason"] in shown.err and status["hint"] in shown.text
    assert not (turns.results / "week-1/manifest.json").exists() and not (turns.models / "current.json").exists()
    # The step of a pipeline is repeated: the same answer, at no cost.
    assert turns.stoker("retrain", turns.spec_path, "--id", "week-1").code == 1
    assert len(turns.attempts("week-1")) == 5


def test_a_shard_brings_its_own_objects_alone(turns):
    """The learner looks: in STOKER_DATA_DIR lies what its manifest lists, and nothing else."""
    turns.write(data={**turns.spec["data"], "fetch": True})
    assert turns.turn("week-1").code == 0
    assert outputs(turns, "week-1")[0] == {f"{number}.csv.out": f"7 good {number}" for number in range(7)}
