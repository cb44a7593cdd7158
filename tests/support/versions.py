"""Runs that can be promoted one after the other, and the chain of versions that they become."""

import stoker as cli
from project import Project

# Each run's weights are its own: they depend on the learning rate.
TRAINER = """import json
import os
from pathlib import Path


def end(args):
    folder = Path(os.environ["STOKER_CHECKPOINT_DIR"]) / "step-20"
    folder.mkdir(parents=True)
    (folder / "weights.bin").write_bytes(f"weights of {args.lr}".encode() * 1000)
    (folder / "meta.json").write_text(json.dumps({"step": 20, "weights_bytes": (folder / "weights.bin").stat().st_size}))
"""


class Versions(Project):
    def __init__(self, root, runs=3):
        super().__init__(root)
        self.extra(TRAINER)
        self.write(checkpoint={"kind": "files"}, compile=None, name="m5")
        for number in range(1, runs + 1):
            self.run("--id", f"week-{number}", "--set", f"hyperparameters.lr=0.{number}")
        self.models = self.state / "stoker/workspace/models/m5"

    def chain(self, *argv):
        return self.ok("--json", "lineage", *argv).lines


def verified(folder, code=0, *argv):
    """The differences, by the command on this folder alone: without a state, a home or a service."""
    result = cli.stoker("--json", "lineage", folder, "--verify", *argv, env=cli.environment())
    assert result.code == code, str(result)
    *differences, total = result.lines
    assert total["verified"] is (code == 0) and total["differences"] == len(differences)
    return [line["object"] for line in differences]
