"""Five weeks of docs/retraining.md with the quickstart's real model, moved by --at: 1,437 images of digits in five
drops, 360 held out. Every accuracy is the one that a script without stoker comes to, to the last digit."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import stoker as cli
import yaml
from digit_weeks import PYTHON, Alone, copy_scripts

TEMPLATE = cli.ROOT / "templates/retrain.yaml"
BATCH = "batch_size: 32"  # half of the template's: half the time
PHASES = {"cold": ["precompile", "train", "evaluate", "infer"], "warm": ["train", "evaluate", "infer"]}


class Weeks:
    """A folder as the tutorial has it, with its own state."""

    def __init__(self, root):
        self.root, self.folder = root, root / "digits"
        self.alone = Alone(root / "alone", {**yaml.safe_load(TEMPLATE.read_text())["hyperparameters"],
                                            **yaml.safe_load(BATCH)})
        copy_scripts(self.folder)
        self.state = root / "state"
        self.stoker("init", "--template", "retrain")
        spec = self.folder / "stoker.yaml"
        spec.write_text(spec.read_text().replace("batch_size: 64", BATCH))
        self.drop("hold-out")

    def environment(self):
        return cli.environment(STOKER_STATE=str(self.state), HOME=str(self.root),
                               PATH=f"{PYTHON.parent}:/usr/bin:/bin")

    def stoker(self, *argv, code=0, seconds=900):
        result = cli.finish(cli.start(*argv, env=self.environment(), cwd=self.folder), argv, seconds)
        assert code is None or result.code == code, str(result)
        return result

    def drop(self, *words):
        for name, path in self.alone.drop(*words).items():
            target = self.folder / "data" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)

    def turn(self, name, week, *words, code=0):
        """Weeks begin the day after the files are written, so that all of them have settled."""
        moment = f"2030-01-{week * 2:02}T03:00:00Z"
        return self.stoker("retrain", "stoker.yaml", "--id", name, "--at", moment, *words, code=code)

    def status(self, name):
        return self.stoker("--json", "status", name).lines[0]

    def events(self, name, kind):
        return [row for row in self.stoker("events", name).lines if row["event"] == kind]

    def phases(self, name):
        return [row["phase"] for row in self.events(name, "attempt.submitted")]

    def head(self):
        return self.stoker("--json", "lineage").lines[0]

    def pointer(self):
        return (self.folder / "models/current.json").read_bytes()

    def accuracy(self, name, role="candidate"):
        value, = [row["metrics"]["accuracy"] for row in self.status(name)["evaluate"]["values"] if row["role"] == role]
        return value

    def inferred(self, name):
        """{image file: the digits that were found in it}, by the manifest of the outputs, which is all there is."""
        folder = self.folder / "data/found" / name
        listed = {row["file"] for row in json.loads((folder / "manifest.json").read_text())["files"]}
        there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"manifest.json"}
        assert listed == there
        return {os.path.basename(each): json.loads((folder / each).read_text()) for each in listed}


def digest_of(entry):
    """Of a promoted model, by its files as they are now."""
    folder = Path(entry["model"]["url"])
    files = [{"path": str(path.relative_to(folder)), "size": path.stat().st_size,
              "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
             for path in sorted(folder.rglob("*")) if path.is_file()]
    model = {"v": 1, "url": str(folder), "kind": "files", "files": files}
    return hashlib.sha256(json.dumps(model, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_five_weeks_of_digits(tmp_path):
    job = Weeks(tmp_path)
    alone = job.alone.accuracy
    # Week 1: from scratch, and nothing is compiled yet.
    job.drop("1")
    job.turn("week-1", 1)
    assert job.phases("week-1") == PHASES["cold"] and job.accuracy("week-1") == alone["week-1"]
    first = job.head()
    assert (first["generation"], first["run"]) == (1, "week-1") and "parent" not in first
    assert first["data"]["objects"] == first["data"]["new"] == 1
    assert [len(digits) for digits in job.inferred("week-1").values()] == [287]
    # Week 2: on top of week 1; the cache is warm.
    job.drop("2")
    job.turn("week-2", 2)
    status, second = job.status("week-2"), job.head()
    assert job.phases("week-2") == PHASES["warm"] and status["jit"]["graphs"] == 0
    assert second["generation"] == 2 and second["before"] == first["digest"]
    assert (second["parent"]["generation"], second["parent"]["digest"]) == (1, digest_of(first))
    assert (second["data"]["objects"], second["data"]["new"]) == (1, 1)
    assert job.accuracy("week-2") == alone["week-2"] and job.accuracy("week-2", "baseline") == alone["week-1"]
    assert len(job.inferred("week-2")) == 2
    # Week 3: nothing new, no run.
    before = len(job.stoker("--json", "list").lines)
    said = job.turn("week-3", 3)
    assert "nothing new" in said.text.lower() and len(job.stoker("--json", "list").lines) == before
    # Week 4: labels that a broken join has shuffled. The gate says no, and shows why.
    job.drop("4", "shuffled")
    pointer = job.pointer()
    said = job.turn("week-4", 4, code=5)
    status = job.status("week-4")
    assert status["state"] == "refused" and job.phases("week-4") == ["train", "evaluate"]
    assert (job.accuracy("week-4"), job.accuracy("week-4", "baseline")) == (alone["week-4"], alone["week-2"])
    assert status["gate"]["passed"] is False and "accuracy" in said.text and "hold-out" in said.text
    assert job.pointer() == pointer and job.head()["digest"] == second["digest"]
    assert not (job.folder / "data/found/week-4").exists() and "promoted" not in status
    # Week 5: what was set aside by hand is left out. A file with an old name comes late, and counts.
    job.drop("3")
    old = (job.folder / "data/drops/week-1.npz").stat()
    os.utime(job.folder / "data/drops/week-3.npz", ns=(old.st_atime_ns, old.st_mtime_ns))
    job.drop("5")
    job.turn("week-5", 5, "--without", "week-4")
    aside = job.head()
    assert job.accuracy("week-5") == alone["aside"]
    assert (aside["generation"], aside["data"]["objects"], aside["data"]["replaced"]) == (3, 2, 0)
    # The other way: back to week 2, labels mended. After a rollback its watermark counts.
    job.stoker("rollback", "2", "--reason", "the labels are mended")
    job.drop("4")
    job.turn("mended", 6)
    mended = job.head()
    assert job.accuracy("mended") == alone["mended"] and job.accuracy("mended", "baseline") == alone["week-2"]
    assert (mended["generation"], mended["data"]["objects"], mended["parent"]["digest"]) == (5, 3, digest_of(second))
    assert job.phases("mended") == PHASES["warm"] and job.status("mended")["jit"]["graphs"] == 0
    # The late file has been used, once.
    assert "nothing new" in job.turn("week-7", 7).text.lower()
    assert job.stoker("lineage", "--verify").code == 0
