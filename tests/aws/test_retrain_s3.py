"""Turns of a retraining with everything on S3 and every job on Batch: data, workspace, checkpoints, models, outputs."""

import hashlib
import json
import shutil
import signal
from datetime import datetime

import pytest
import stoker as cli
from batch_job import BatchJob
from project import SUPPORT

COMMAND = "python3", "learner.py"


class FarTurns(BatchJob):
    def __init__(self, root, aws):
        super().__init__(root, aws)
        shutil.copy(SUPPORT / "learner.py", self.source / "learner.py")
        self.s3, self.at = aws.client("s3"), 2030
        self.url |= {name: f"s3://bucket/{self.prefix}/{name}" for name in ("drops", "held", "models", "results")}
        self.write(command=[*COMMAND, "train"], compile=None, hyperparameters=None, env=None, metrics=[
                       {"name": "step", "regex": "^step: ([0-9]+)"}],
                   data={"url": self.url["drops"], "fetch": True},
                   evaluate={"command": [*COMMAND, "evaluate"], "data": self.url["held"], "metric": "accuracy"},
                   infer={"command": [*COMMAND, "infer"], "output": self.url["results"], "shards": 3},
                   promote={"url": self.url["models"]})
        self.put("held/one", "1")

    def put(self, name, text):
        self.s3.put_object(Bucket="bucket", Key=f"{self.prefix}/{name}", Body=text.encode())

    def turn(self, name, *argv, **options):
        """A turn of its own time, later than all data."""
        self.at += 1
        at = f"{self.at}-01-07T03:00:00Z"
        return self.stoker("retrain", self.spec_path, "--id", name, "--at", at, *argv, **options)

    def objects(self, folder):
        """{key below it: bytes}."""
        prefix, found = f"{self.prefix}/{folder}/", {}
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix=prefix):
            for row in page.get("Contents", []):
                found[row["Key"].removeprefix(prefix)] = self.s3.get_object(Bucket="bucket", Key=row["Key"])["Body"].read()
        return found

    def outputs(self, run):
        """{object: output}: by the manifest, and the same by a plain listing."""
        there = self.objects(f"results/{run}")
        manifest = json.loads(there.pop("manifest.json"))
        assert manifest["run"] == run
        assert [(row["file"], row["size"], row["sha256"]) for row in manifest["files"]] == [
            (name, len(body), hashlib.sha256(body).hexdigest()) for name, body in sorted(there.items())]
        found = {name.rpartition("/")[2]: body.decode() for name, body in there.items()}
        assert len(found) == len(there)
        return found, manifest["files"]


@pytest.fixture
def far(aws, tmp_path):
    made = FarTurns(tmp_path / "project", aws)
    yield made
    made.stop()


def test_turns_with_everything_on_s3(far):
    for number in range(5):
        far.put(f"drops/{number}.csv", f"good {number}")
    first = far.turn("week-1")
    assert first.code == 0, first
    assert far.outputs("week-1")[0] == {f"{number}.csv.out": f"5 good {number}" for number in range(5)}
    pointer = json.loads(far.objects("models")["current.json"])
    assert (pointer["generation"], pointer["run"], pointer["outputs"]) == (1, "week-1", f"{far.url['results']}/week-1")
    assert [row["jobName"] for row in far.jobs()] == [f"stk-week-1-{phase}-1" for phase in ("train", "evaluate", "infer")]
    nothing = far.turn("week-2")
    assert nothing.code == 0 and nothing.out.startswith("nothing new: 0 of 5 objects"), nothing
    far.put("drops/5.csv", "bad")
    refused = far.turn("week-3")
    assert refused.code == 5 and "accuracy" in refused.text, refused
    assert far.objects("results/week-3") == {}
    assert json.loads(far.objects("models")["current.json"]) == pointer
    # Outputs are read several at once.
    go = far.root / "go"
    far.aws.fault("delay", operation="GetObject", key="/results/", count=0, until=str(go))
    verifying = far.start("--json", "lineage", far.url["models"], "--verify")
    cli.until(lambda: far.aws.struck() >= 4, verifying)
    go.touch()
    whole = cli.finish(verifying)
    far.aws.clear_faults()
    assert whole.code == 0 and (whole.lines[-1]["unchecked"], whole.lines[-1]["differences"]) == (0, 0), whole
    file = far.outputs("week-1")[1][2]["file"]
    far.put(f"results/week-1/{file}", "other")
    changed = far.stoker("--json", "lineage", far.url["models"], "--verify")
    assert changed.code == 5 and [row["object"] for row in changed.lines[:-1]] == [f"{far.url['results']}/week-1/{file}"]


@pytest.fixture
def slow(far):
    """Begins a turn that waits between its listing and its claim, and returns how it ends."""
    go = far.root / "go"

    def begin(at):
        far.aws.fault("delay", operation="PutObject", key="/data/", until=str(go))
        turn = far.start("retrain", far.spec_path, "--id", "slow", "--at", at, "--until", "train")
        cli.until(far.aws.struck, turn)
        turn.send_signal(signal.SIGSTOP)  # or it would send its request again after a while

        def end():
            go.touch()
            turn.send_signal(signal.SIGCONT)
            return cli.finish(turn)
        return end
    return begin


def test_a_turn_that_another_one_was_faster_than_asks_for_its_data_again(far, slow):
    """Between its listing and its claim another machine had a turn, and data came in."""
    far.put("drops/1.csv", "good")
    end = slow("2032-01-07T03:00:00Z")
    assert far.turn("fast", env=far.elsewhere()).code == 0
    far.put("drops/2.csv", "good")
    done = end()
    assert done.code == 0 and "1 of 2 objects in " in done.err and "1 of 1 objects in " not in done.err, done
    inputs = far.events("slow")[0]["inputs"]
    assert (inputs["data"]["objects"], inputs["parent"]["generation"], inputs["pointer"]["generation"]) == (1, 1, 1)


def test_a_turn_whose_data_another_one_was_refused_with_has_nothing_new(far, slow):
    """It was set aside between listing and claim; no run begins with it, and the claim is no one's."""
    far.write(data={**far.spec["data"], "after_refusal": "set_aside"})
    far.put("drops/1.csv", "good")
    assert far.turn("week-1").code == 0
    far.put("drops/2.csv", "bad")
    end = slow("2034-01-07T03:00:00Z")
    assert far.turn("refused", env=far.elsewhere()).code == 5
    done = end()
    assert done.code == 0 and "nothing new: 0 of 2 objects in " in done.out and ", 1 set aside" in done.out, done
    assert far.stoker("status", "slow").code == 9
    assert json.loads(far.objects("models")["turns/hand.json"])["outcome"] == "nothing_new"


@pytest.mark.parametrize("together", [False, True])
def test_two_machines_infer(far, together):
    """Each takes the next free shard alone, and is a world of one; or both do each shard together."""
    for number in range(8):
        far.put(f"drops/{number}.csv", f"good {number}")
    far.write(infer={**far.spec["infer"], "shards": 4, "together": together, "resources": {"nodes": 2},
                     "env": {"STARTS": str(far.root / "starts"), "MEETS": "2"}})
    assert far.turn("week-1").code == 0
    found, files = far.outputs("week-1")
    assert found == {f"{number}.csv.out": f"8 good {number}" for number in range(8)}
    folders = [row["file"].rpartition("/")[0].removeprefix(f"shard-{row['shard']}/") for row in files]
    assert folders == (["1.0/node-0", "1.0/node-1"] * 4 if together else ["1.0"] * 8)
    done = far.events("week-1", "task.done")[1:]
    assert sorted(row["task"] for row in done) == [f"shard-{shard}" for shard in range(4)]
    assert {row["node"] for row in done} == ({0} if together else {0, 1})


def check_cost(far, run):
    """Statistics and status agree on what the machines of each stage cost, and on how many there were: all of one price,
    two of them for the inference and its phase 1."""
    stats, status = far.ok("--json", "stats").lines[-1], far.status(run)
    cost = status["cost"]
    assert {"precompile", "steps", "evaluate", "infer"} <= cost["bins"].keys()
    assert stats["cost"]["bins"] == pytest.approx(cost["bins"])
    assert stats["cost"]["accrued"] == pytest.approx(cost["accrued"]) == pytest.approx(cost["estimated"])
    assert {name: seconds * cost["per_hour"] / 3600 for name, seconds in stats["held"].items() if name != "total"} == (
        pytest.approx(cost["bins"]))
    seconds = [node_seconds(far, run, row) for row in far.events(run, "attempt.ended")]
    assert stats["held"]["total"] == pytest.approx(sum(seconds))
    assert len(far.events(run, "attempt.intended")) == len(seconds)


def node_seconds(far, run, ended):
    """As the service says when the machines of an attempt were there."""
    begun, claimed = (next(row for row in far.events(run, kind) if (row["phase"], row["attempt"]) == (
        ended["phase"], ended["attempt"])) for kind in ("attempt.intended", "attempt.claimed"))
    held, released = (datetime.fromisoformat(text) for text in (claimed["held"], ended["released"]))
    return begun["nodes"] * (released - held).total_seconds()


def test_stages_are_compiled_ahead_into_a_cache_in_a_bucket(far):
    """The inference has two machines, so has its phase 1; next week no graph of a stage is compiled."""
    shutil.copy(SUPPORT / "compiling.py", far.source)
    command, notes = ("python3", "compiling.py"), far.root / "notes"
    far.write(command=[*command, "train"], env={"NOTES": str(notes)},
              compile={"kind": "jax", "cache_url": far.url["cache"], "quiet_period": "0s"},
              evaluate={**far.spec["evaluate"], "command": [*command, "evaluate"], "compile": "aot"},
              infer={**far.spec["infer"], "command": [*command, "infer"], "compile": "aot", "resources": {"nodes": 2}})
    for number in range(3):
        far.put(f"drops/{number}.csv", f"good {number}")
    first = far.turn("week-1")
    assert first.code == 0, first
    phases = [(row["phase"], row["attempt"], row.get("stage"), row["nodes"])
              for row in far.events("week-1", "attempt.intended")]
    assert phases == [("precompile", 1, None, 1), ("train", 1, None, 1), ("precompile", 2, "evaluate", 1),
                      ("evaluate", 1, None, 1), ("precompile", 3, "infer", 2), ("infer", 1, None, 2)]
    proofs = far.events("week-1", "cache.verified")
    assert [(row.get("stage"), row["complete"]) for row in proofs] == [(None, True), ("evaluate", True), ("infer", True)]
    check_cost(far, "week-1")
    assert {row["phase"]: row["graphs"] for row in far.events("week-1", "jit.compiled")} == {
        "train": 0, "evaluate": 0, "infer": 0}
    assert {row["graph_key"] for row in proofs} == {
        key.removeprefix("stoker/").removesuffix(".json") for key in far.objects("cache")
        if key.startswith("stoker/") and key.count("/") == 1 and key.endswith(".json")}
    trials = [row for row in map(json.loads, notes.read_text().splitlines()) if row.get("STAGE") == "infer"]
    assert len(trials) == 2 and {(row["SHARD"], row["SHARDS"]) for row in trials} == {("0", "3")}
    assert sorted(far.outputs("week-1")[0]) == [f"{number}.csv.out" for number in range(3)]
    far.put("drops/3.csv", "good 3")
    assert far.turn("week-2").code == 0
    assert [row["phase"] for row in far.events("week-2", "attempt.intended")] == ["train", "evaluate", "infer"]
    assert {row["graphs"] for row in far.events("week-2", "jit.compiled")} == {0}
