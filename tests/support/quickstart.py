"""A user's own copy of the quickstart, for the tests that run the real model."""

import shutil
from pathlib import Path

import stoker as cli

QUICKSTART = cli.ROOT / "configs/quickstart"


class Job:
    """A user's own copy of the quickstart, with its own cache and state."""

    def __init__(self, root):
        self.root = root
        self.folder = root / "repo/configs/quickstart"
        self.folder.mkdir(parents=True)
        for path in QUICKSTART.iterdir():
            if path.is_file():
                shutil.copy(path, self.folder)
        (self.folder / ".gitignore").write_text(".venv/\ncache/\n")
        (self.folder / ".venv").symlink_to(QUICKSTART / ".venv")
        self.spec, self.script = self.folder / "stoker.yaml", self.folder / "train.py"
        self.state = root / "state"

    def stoker(self, *argv, code=0, seconds=600):
        env = cli.environment(STOKER_STATE=str(self.state), HOME=str(self.root))
        result = cli.finish(cli.start(*argv, env=env, cwd=self.root), argv, seconds)
        assert code is None or result.code == code, str(result)
        return result

    def run(self, *argv):
        return self.stoker("run", self.spec, *argv)

    def plan(self, *argv):
        return self.stoker("--json", "plan", self.spec, *argv).lines[0]

    def status(self):
        return self.stoker("--json", "status", "@last").lines[0]

    def events(self, kind):
        return [row for row in self.stoker("events", "@last").lines if row["event"] == kind]

    def phases(self):
        return [row["phase"] for row in self.events("attempt.submitted")]
