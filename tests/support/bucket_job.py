"""The one-second trainer with everything on S3, and homes from which it is looked at: a
home stands for a machine, as far as what lies on its disk is concerned."""

import json
import os
import secrets
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import stoker as cli
from project import SUPPORT, Project

BUCKET = "bucket"
KEYS = ("stoker", "cache", "ckpt", "state")
GIVEN_UP = 40  # s; sooner no call of S3 ends that nobody answers: 10 s an attempt, five attempts


class BucketJob(Project):
    def __init__(self, root: Path, aws, **changes):
        self.aws, self.home, self.started = aws, root / "home", []
        super().__init__(root)
        aws.make_bucket(BUCKET)
        shutil.copy(SUPPORT / "one_second.py", self.source / "extra.py")
        self.effects_path = root / "effects"
        # Its own on this machine too: agents are known by the URL of their order.
        self.prefix = secrets.token_hex(4)
        self.url = {key: f"s3://{BUCKET}/{self.prefix}/{key}" for key in KEYS}
        self.write(**{
            "workspace": self.url["stoker"],
            "hyperparameters": {"max_steps": 25},
            "env": {"EFFECTS": str(self.effects_path)},
            "compile": {"kind": "jax", "cache_url": self.url["cache"], "max_steps": 2, "quiet_period": "0s"},
            "checkpoint": {"url": self.url["ckpt"]},
            "retry": {"attempts": 4, "backoff": {"first": "0s", "max": "0s"}}, **changes})

    @property
    def gate(self) -> Path:
        return self.root / "gate"

    def hold(self, phase: str, step: int) -> None:
        """The command will wait there until the gate is made."""
        self.write(env={**self.spec["env"], "HOLD": f"{phase}:{step}:{self.gate}"})

    def also(self, code: str) -> None:
        """The trainer does this too, before it begins."""
        with (self.source / "extra.py").open("a") as file:
            file.write(f"\n\nattempt = os.environ['STOKER_PHASE'], int(os.environ['STOKER_ATTEMPT'])\n{code}\n")

    def env(self, **more: str) -> dict:
        home = Path(more.get("HOME", self.home))
        home.mkdir(parents=True, exist_ok=True)
        return self.aws.env(**{"HOME": str(home), "STOKER_STATE": self.url["state"], **more})

    def start(self, *argv, **options):
        self.started.append(super().start(*argv, **options))
        return self.started[-1]

    def stop(self, seconds: float = 20) -> None:
        """Nothing of it is left: the next test has the same service."""
        self.aws.clear_faults()
        self.gate.touch()
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()
        end = time.monotonic() + seconds
        while self.agents():
            if time.monotonic() > end:
                for pid in self.agents():
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)

    def elsewhere(self, name: str = "other") -> dict:
        """The environment of another home."""
        return {"HOME": str(self.root / name)}

    def effects(self, *what: str) -> list:
        if not self.effects_path.exists():
            return []
        rows = [json.loads(line) for line in self.effects_path.read_text().splitlines()]
        return [row for row in rows if not what or row["what"] in what]

    def wait_for_effect(self, what: str, phase: str = "train", seconds: float = 180) -> dict:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for row in self.effects(what):
                if row["phase"] == phase:
                    return row
            time.sleep(0.05)
        raise AssertionError(f"no '{what}' of {phase} in {seconds} s: {self.effects()}")

    def marks(self, run: str, attempt: int = 1) -> list:
        """The steps of its checkpoints that are marked as complete."""
        prefix = f"{self.prefix}/ckpt/{run}/attempt-{attempt}/marks/"
        rows = self.aws.client().list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
        return sorted(int(Path(row["Key"]).name.split("-")[1].split(".")[0]) for row in rows)

    def wait_for(self, reached, seconds: float = 180):
        """Until it says so: what it says."""
        end = time.monotonic() + seconds
        while not (found := reached()):
            assert time.monotonic() < end, f"it did not come about in {seconds} s"
            time.sleep(0.1)
        return found

    def wait_for_marks(self, run: str, wanted: list, attempt: int = 1, seconds: float = 180) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if set(wanted) <= set(self.marks(run, attempt)):
                return
            time.sleep(0.1)
        raise AssertionError(f"marks of attempt {attempt}: {self.marks(run, attempt)}")

    def requests(self, since: int = 0) -> Counter:
        """How many of each operation."""
        return Counter(row["operation"] for row in self.aws.ledger(since))

    def is_ours(self, environ: bytes) -> bool:
        """Is that an agent's environment, and are we whom it works for?"""
        return b"STOKER_WORK=" in environ and str(self.home).encode() in environ

    def agents(self, helpers: bool = False) -> list:
        """The node agents of this job, or the processes that they started to do something
        for them."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes()
                parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
                above = Path(f"/proc/{parent}/cmdline").read_bytes()
                environ = (folder / "environ").read_bytes()
            except OSError:
                continue
            if b"stoker-node" in words and self.is_ours(environ) and (words == above) == helpers:
                found.append(int(folder.name))
        return found
