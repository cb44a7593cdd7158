"""The weeks of docs/retraining.md for the tests that play them: the scripts, the drops, and what a script without stoker
comes to. One process makes the drops of all weeks and the models, because to import JAX takes longer than to write a
drop."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import stoker as cli
from quickstart import QUICKSTART

FOLDER = cli.ROOT / "configs/retrain"
PYTHON = QUICKSTART / ".venv/bin/python"


def copy_scripts(folder: Path) -> None:
    folder.mkdir()
    for path in (QUICKSTART / "train.py", *FOLDER.glob("*.py")):
        shutil.copy(path, folder)


class Alone:
    """`accuracy`: {model: on the hold-out}."""

    def __init__(self, root: Path, hyperparameters: dict):
        self.drops, scripts = root / "drops", root / "scripts"
        root.mkdir()
        copy_scripts(scripts)
        words = [word for name, value in hyperparameters.items() for word in (f"--{name}", str(value))]
        own_cache = {"JAX_COMPILATION_CACHE_DIR": str(root / "cache"),
                     "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        done = subprocess.run([PYTHON, cli.ROOT / "tests/support/weeks.py", self.drops, *words], cwd=scripts,
                              check=True, text=True, stdout=subprocess.PIPE, env={**os.environ, **own_cache})
        self.accuracy = json.loads(done.stdout)

    def drop(self, *words: str) -> dict:
        """What `drops.py DATA WORD…` writes: {its name in DATA: the file}."""
        folder = self.drops / "-".join(words)
        found = {str(path.relative_to(folder)): path for path in folder.rglob("*.npz")}
        assert found, words
        return found
