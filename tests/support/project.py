"""A small project as a user has one: a spec, a training script, a compile
cache and a private state directory."""

import shutil
from datetime import datetime
from pathlib import Path

import stoker as cli
import yaml

SUPPORT = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"


def ledger_adds_up(status: dict) -> None:
    """Every millisecond of a run is in exactly one bin, whatever happened to it."""
    bins = {name: round(seconds * 1000) for name, seconds in status["ledger"].items()}
    total = bins.pop("total")
    assert sum(bins.values()) == total and min(bins.values()) >= 0, status["ledger"]
    if "ended" in status:
        wall = datetime.fromisoformat(status["ended"]) - datetime.fromisoformat(status["created"])
        assert total == round(wall.total_seconds() * 1000), status["ledger"]


class Project:
    def __init__(self, root: Path):
        self.root = root
        self.source, self.cache, self.state = root / "job", root / "cache", root / "state"
        self.source.mkdir(parents=True)
        self.spec_path = self.source / "stoker.yaml"
        shutil.copy(SUPPORT / "fake_train.py", self.source / "train.py")
        self.spec = {
            "version": 1,
            "name": "fake",
            "command": [PYTHON, "train.py"],
            "hyperparameters": {"lr": 0.1, "max_steps": 20, "batch_size": 8},
            "compile": {"kind": "jax", "cache_url": str(self.cache), "max_steps": 2},
            "retry": {"attempts": 2, "backoff": {"first": "0s", "max": "0s"}},
            "metrics": [
                {"name": "loss", "regex": "loss: ([0-9.eE+-]+)"},
                {"name": "step", "regex": "^step: ([0-9]+)"},
                {"name": "accuracy", "regex": "accuracy: ([0-9.eE+-]+)"},
            ],
        }
        self.write()

    def write(self, **changes) -> Path:
        """Change top-level fields of the spec (None takes one out) and write it."""
        self.spec.update(changes)
        self.spec = {name: value for name, value in self.spec.items() if value is not None}
        self.spec_path.write_text(yaml.safe_dump(self.spec, sort_keys=False, allow_unicode=True))
        return self.spec_path

    def extra(self, code: str) -> None:
        (self.source / "extra.py").write_text(f'"""What this test adds."""\n{code}')

    def env(self, **more: str) -> dict:
        return cli.environment(**{"XDG_STATE_HOME": str(self.state), **more})

    def stoker(self, *argv, env: dict | None = None, **options) -> cli.Result:
        options.setdefault("cwd", self.source)
        return cli.stoker(*argv, env=self.env(**(env or {})), **options)

    def start(self, *argv, env: dict | None = None, **options):
        options.setdefault("cwd", self.source)
        return cli.start(*argv, env=self.env(**(env or {})), **options)

    def run(self, *argv, code: int | None = 0, **options) -> cli.Result:
        result = self.stoker("run", self.spec_path, *argv, **options)
        assert code is None or result.code == code, str(result)
        return result

    def ok(self, *argv, **options) -> cli.Result:
        result = self.stoker(*argv, **options)
        assert result.code == 0, str(result)
        return result

    def status(self, run: str = "@last") -> dict:
        lines = self.ok("--json", "status", run).lines
        assert len(lines) == 1
        ledger_adds_up(lines[0])
        return lines[0]

    def events(self, run: str = "@last", kind: str | None = None) -> list:
        rows = self.ok("events", run).lines
        return [row for row in rows if kind in (None, row["event"])]

    def attempts(self, run: str = "@last") -> list:
        """(phase, number) of every attempt that was made."""
        return [(row["phase"], row["attempt"]) for row in self.events(run, "attempt.submitted")]

    def plan(self, *argv) -> dict:
        lines = self.ok("--json", "plan", self.spec_path, *argv).lines
        assert len(lines) == 1
        return lines[0]

    def entries(self) -> list:
        return sorted(self.cache.glob("*-cache"))

    def logs(self, *argv) -> str:
        return self.ok("logs", "@last", *argv).out
