"""`compile: aot` of a stage: phase 1 runs once more, just before the stage, with the stage's own command, graph key and
compile manifest."""

import json
import shutil
import signal

import pytest
import stoker as cli
from project import PYTHON, SUPPORT
from turns import Turns

EVALUATE = {"compile": "aot", "hyperparameters": {"batch": 4}}
INFER = {"compile": "aot", "hyperparameters": {"batch": 16, "items": 1000},
         "overrides": {"hyperparameters": {"items": 10}, "env": {"SHORT": "yes"}}}
ALL = [("precompile", None), ("train", None), ("precompile", "evaluate"), ("evaluate", None),
       ("precompile", "infer"), ("infer", None)]


class Stages(Turns):
    def __init__(self, root):
        super().__init__(root)
        shutil.copy(SUPPORT / "compiling.py", self.source)
        self.notes = root / "notes"
        self.write(command=[PYTHON, "compiling.py", "train"], env={"NOTES": str(self.notes)},
                   hyperparameters={"max_steps": 5},
                   compile={"kind": "jax", "cache_url": str(self.cache), "max_steps": 2},
                   evaluate={**self.spec["evaluate"], "command": [PYTHON, "compiling.py", "evaluate"], **EVALUATE},
                   infer={"command": [PYTHON, "compiling.py", "infer"], "output": str(root / "out"), **INFER})
        self.put("1.csv", "good")

    def ran(self, run):
        """(phase, stage) of every attempt, and their numbers."""
        rows = self.events(run, "attempt.intended")
        numbers = [row["attempt"] for row in rows if row["phase"] == "precompile"]
        assert numbers == list(range(1, len(numbers) + 1)), rows
        assert all(row["job"] == f"stk-{run}-{row['phase']}-{row['attempt']}" for row in rows)
        return [(row["phase"], row.get("stage")) for row in rows]

    def noted(self):
        rows = [json.loads(line) for line in self.notes.read_text().splitlines()]
        self.notes.unlink()
        return rows

    def caches(self):
        plan = self.plan()
        return {"train": plan["cache"], "evaluate": plan["evaluate"]["cache"], "infer": plan["infer"]["cache"]}

    def late(self, run):
        return {row["phase"]: row["graphs"] for row in self.events(run, "jit.compiled")}


@pytest.fixture
def stages(tmp_path):
    return Stages(tmp_path)


def test_each_stage_has_a_phase_1_of_its_own(stages):
    before = stages.caches()
    keys = {stage: cache["graph_key"] for stage, cache in before.items()}
    assert len(set(keys.values())) == 3 and {cache["verdict"] for cache in before.values()} == {"cold"}
    plan = stages.plan()
    assert plan["infer"]["precompile"][2:] == ["infer", "--batch", "16", "--items", "10"]
    assert "precompile, verify, train, precompile for evaluate, evaluate" in stages.ok("plan", stages.spec_path).out

    assert stages.turn("week-1").code == 0
    assert stages.ran("week-1") == ALL and stages.late("week-1") == {"train": 0, "evaluate": 0, "infer": 0}
    proofs = {row.get("stage", "train"): row for row in stages.events("week-1", "cache.verified")}
    assert {stage: row["graph_key"] for stage, row in proofs.items()} == keys
    assert {stage: row["graphs"] for stage, row in proofs.items()} == {"train": 1, "evaluate": 2, "infer": 1}
    for stage, key in keys.items():
        assert (stages.cache / f"stoker/{key}.json").exists(), stage

    notes = [row for row in stages.noted() if "STAGE" in row]
    model = f"{stages.root}/workspace/runs/week-1/train-1/checkpoints/step-1"
    assert [(row["STAGE"], row["PHASE"], row["ATTEMPT"], row["MODEL"]) for row in notes] == [
        ("evaluate", "precompile", "2", model), ("infer", "precompile", "3", model)]
    assert (notes[0]["MODEL_ROLE"], notes[0]["REPEAT"]) == ("candidate", "1")
    assert (notes[1]["SHARD"], notes[1]["SHARDS"], notes[1]["HP_ITEMS"]) == ("0", "1", "10")
    assert all("scratch" in row["OUTPUT_DIR"] for row in notes)
    assert sorted(path.name for path in (stages.root / "out/week-1").iterdir()) == ["manifest.json", "shard-0"]

    status = stages.status("week-1")
    assert [(row["phase"], row.get("stage")) for row in status["attempts"]] == ALL
    assert status["cache"]["graph_key"] == keys["train"] and status["graphs"]["compiled"] == 1
    for stage, count in (("evaluate", 2), ("infer", 1)):
        assert status[stage]["cache"]["graph_key"] == keys[stage] and status[stage]["cache"]["complete"] is True
        assert status[stage]["graphs"]["compiled"] == count and status[stage]["done"] == status[stage]["tasks"]
    assert "precompile 3 for infer" in stages.ok("status", "week-1").out

    # Next week all of them are warm.
    stages.put("2.csv", "good")
    assert {stage: cache["verdict"] for stage, cache in stages.caches().items()} == dict.fromkeys(keys, "warm")
    assert "phases:  train, evaluate, infer\n" in stages.ok("plan", stages.spec_path).out
    assert stages.turn("week-2").code == 0 and stages.promoted() == (2, "week-2")
    assert stages.ran("week-2") == [("train", None), ("evaluate", None), ("infer", None)]
    assert stages.late("week-2") == {"train": 0, "evaluate": 0, "infer": 0}
    assert [row.get("stage") for row in stages.events("week-2", "cache.checked")] == [None, "evaluate", "infer"]


def test_requests_and_why_show_phase_1_of_each_stage(stages):
    requests = stages.plan()["requests"]
    assert [(row["phase"], row.get("stage")) for row in requests] == ALL
    assert [row["job"] for row in requests if row["phase"] == "precompile"] == [
        f"stk-<id>-precompile-{number}" for number in (1, 2, 3)]
    text = stages.ok("plan", stages.spec_path, "--requests").out
    assert "\nprecompile for infer:\n  " in text and "  env SHORT=yes\n" in text
    assert text.count("difference: precompile → train\n") == 1
    cold = stages.ok("--json", "cache", "why", stages.spec_path).lines[-1]
    caches = stages.caches()
    assert {stage: cold[stage]["cache"] for stage in ("evaluate", "infer")} == {
        stage: caches[stage] for stage in ("evaluate", "infer")}
    # They are what is sent.
    assert stages.turn("week-1").code == 0
    for row in requests:
        sent = json.loads((stages.root / "workspace" / row["prefix"].replace("<id>", "week-1") / "order.json").read_text())
        for member in ("phase", "stage", "attempt", "nodes", "job", "prefix", "command", "env", "scratch", "timeout_ms"):
            shown = json.loads(json.dumps(row.get(member)).replace("<id>", "week-1"))
            assert shown == sent.get(member), (row["job"], member)
    # What is another then is told of the stage alone.
    stages.write(evaluate={**stages.spec["evaluate"], "hyperparameters": {"batch": 5}})
    said = stages.ok("cache", "why", stages.spec_path).out
    train, evaluate, infer = (said.index(word) for word in ("warm: ", "evaluate: cold, key ", "infer: warm, key "))
    assert train < evaluate < said.index("hyperparameters.batch: 4 → 5") < infer, said


def test_only_what_is_cold_is_compiled(stages):
    """A stage whose graphs were lost, whose command is another, and one that a refusal keeps from its turn."""
    assert stages.turn("week-1").code == 0
    lost, = stages.cache.glob("jit_embed-*-cache")
    lost.unlink()
    assert stages.caches()["infer"]["verdict"] == "cold" and "jit_embed" in stages.caches()["infer"]["reason"]
    stages.put("2.csv", "bad")
    assert stages.turn("week-2").code == 5
    assert stages.ran("week-2") == [("train", None), ("evaluate", None)] and not lost.exists()
    stages.put("2.csv", "good")
    stages.write(evaluate={**stages.spec["evaluate"], "hyperparameters": {"batch": 5}})
    why = stages.caches()["evaluate"]["changed"]
    assert why == [{"field": "hyperparameters.batch", "old": "4", "new": "5"}]
    assert stages.turn("week-3").code == 0
    assert stages.ran("week-3") == ALL[1:] and lost.exists()


def test_a_training_need_not_compile_ahead_for_its_stages_to_do_so(stages):
    stages.write(compile={**stages.spec["compile"], "mode": "jit", "max_steps": None})
    stages.spec["compile"].pop("max_steps")
    stages.write(evaluate={**stages.spec["evaluate"], "compile": "jit"})
    assert stages.turn("week-1").code == 0
    assert stages.ran("week-1") == [("train", None), ("evaluate", None), ("precompile", "infer"), ("infer", None)]
    assert stages.late("week-1") == {"train": 1, "evaluate": 2, "infer": 0}


def test_a_stage_that_cannot_be_traced_ends_the_run(stages):
    stages.write(env={**stages.spec["env"], "FAILS": "infer"})
    failed = stages.turn("week-1")
    assert failed.code == 1 and "this stage cannot be traced" in failed.text, failed
    status = stages.status("week-1")
    assert status["phase"] == "precompile" and status["attempts"][-1]["stage"] == "infer"
    assert not (stages.models / "current.json").exists() and not (stages.root / "out").exists()


def test_a_driver_that_dies_is_followed_by_one_that_knows_the_stage(stages):
    stages.write(env={**stages.spec["env"], "HELD": "evaluate"})
    driver = stages.start("retrain", stages.spec_path, "--id", "week-1", "--at", "2031-01-07T03:00:00Z")
    cli.until(lambda: stages.notes.exists() and "evaluate" in stages.notes.read_text(), driver)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    status = stages.status("week-1")
    assert status["attempts"][-1]["stage"] == "evaluate" and "done" in status["evaluate"]
    stages.notes.with_name("notes.go").touch()
    stages.ok("resume", "week-1")
    assert stages.ran("week-1") == ALL and stages.late("week-1") == {"train": 0, "evaluate": 0, "infer": 0}
    assert stages.promoted() == (1, "week-1")


def test_a_pause_comes_before_the_cache_of_the_next_stage(stages):
    assert stages.turn("week-1", "--until", "train").code == 0
    assert stages.ran("week-1") == ALL[:2] and stages.status("week-1")["state"] == "paused"
    stages.week -= 1
    assert stages.turn("week-1", "--until", "gate").code == 0
    assert stages.ran("week-1") == ALL[:4]
    stages.week -= 1
    assert stages.turn("week-1").code == 0 and stages.ran("week-1") == ALL


def test_what_cannot_be_compiled_ahead_is_said(stages):
    stages.write(compile=None)
    wrong = stages.stoker("validate", stages.spec_path)
    assert wrong.code == 3 and wrong.text.count("compiles nothing: 'compile.kind' is 'none'") == 2, wrong
    stages.write(evaluate={**stages.spec["evaluate"], "compile": "jit"},
                 infer={**stages.spec["infer"], "compile": "jit"})
    unused = stages.ok("validate", stages.spec_path)
    assert "unused without 'infer.compile: aot'" in unused.text
