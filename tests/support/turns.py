"""Turns of a retraining in a directory: the learner (learner.py) as a user's project."""

import json
import os
import shutil

from project import PYTHON, SUPPORT, Project


class Turns(Project):
    def __init__(self, root):
        super().__init__(root)
        shutil.copy(SUPPORT / "learner.py", self.source / "learner.py")
        self.drops, self.held, self.models = root / "drops", root / "held", root / "models"
        self.drops.mkdir(), self.held.mkdir()
        (self.held / "one").write_text("1")
        self.week = 0
        self.write(command=[PYTHON, "learner.py", "train"], compile=None, hyperparameters=None,
                   metrics=[{"name": "step", "regex": "^step: ([0-9]+)"}],
                   workspace=str(root / "workspace"),
                   data={"url": str(self.drops)},
                   evaluate={"command": [PYTHON, "learner.py", "evaluate"], "data": str(self.held), "metric": "accuracy"},
                   promote={"url": str(self.models)})

    def put(self, name, text):
        path = self.drops / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))

    def turn(self, name, *argv):
        """A turn of its own time."""
        self.week += 1
        at = f"20{30 + self.week}-01-07T03:00:00Z"
        return self.stoker("retrain", self.spec_path, "--id", name, "--at", at, *argv)

    def given(self, run):
        """What the model of this run was trained on in this turn: name, and if it was replaced."""
        data = self.ok("events", run).lines[0]["inputs"]["data"]
        with open(data["manifest"], encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        return {row["url"].removeprefix(f"{self.drops}/"): row["replaced"] for row in rows}

    def promoted(self):
        pointer = json.loads((self.models / "current.json").read_text())
        return pointer["generation"], pointer["run"]
