"""Runs that are killed on purpose, and what must hold of them afterwards: the
one-second trainer, many runs over one state, a driver that dies at a moment
drawn from a seed, and a successor for it."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

import stoker as cli
from project import SUPPORT, Project

SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))
# Seconds that anything may take: only a hang takes longer, however busy the machine is.
PATIENCE = 300
LEFT = 60  # that a process which was told to end may take


DULL = ("v", "run", "plan", "plan_digest", "seed", "sources", "token", "graph_key", "nonce", "spec")


class Site(Project):
    """One state, one workspace, one source; every run has its own cache."""

    def __init__(self, root: Path, journal: str = "sqlite", **changes: object):
        super().__init__(root)
        self.journal, self.runs = journal, []
        shutil.copy(SUPPORT / "one_second.py", self.source / "extra.py")
        self.write(**{"hyperparameters": {"max_steps": 25},
                      "retry": {"attempts": 6, "backoff": {"first": "0s", "max": "0s"}}, **changes})

    def also(self, code: str) -> None:
        """The trainer's hooks do this too: code that may wrap start, step and end."""
        with (self.source / "extra.py").open("a") as file:
            file.write(f"\n\nattempt = os.environ['STOKER_PHASE'], int(os.environ['STOKER_ATTEMPT'])\n{code}")

    def env(self, **more: str) -> dict:
        return super().env(**{"STOKER_STATE": f"{self.journal}:{self.state}", **more})

    def is_locked(self) -> bool:
        """Somebody is in the middle of a write of the journal."""
        if self.journal != "sqlite":
            return False
        with contextlib.closing(sqlite3.connect(self.state / "journal.db", timeout=0,
                                                isolation_level=None)) as journal:
            try:
                journal.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            return False

    def one(self, run: str, *sets: str) -> "Run":
        self.runs.append(Run(self, run, *sets))
        return self.runs[-1]

    def clear(self) -> None:
        """A test that failed leaves nothing running either."""
        for run in self.runs:
            for driver in run.drivers:
                driver.process.kill()
                driver.process.wait()
            run.kill_all()


class Run:
    """One run of a site, and the drivers it has had."""

    def __init__(self, site: Site, run: str, *sets: str):
        self.site, self.id = site, run
        self.notes = site.root / f"{run}.effects"
        self.sets = [f"env.EFFECTS={self.notes}", f"compile.cache_url={site.root}/caches/{run}", *sets]
        self.drivers: list[Driver] = []
        self.epilogue: list[str] = []

    def hold(self, phase: str, step: int) -> "Run":
        """Its command will wait there, until release()."""
        self.sets.append(f"env.HOLD={phase}:{step}:{self.gate}")
        return self

    @property
    def gate(self) -> Path:
        return self.site.root / f"{self.id}.gate"

    def release(self) -> None:
        self.gate.touch()

    def argv(self) -> list:
        return ["--json", "run", self.site.spec_path, "--id", self.id,
                *[word for each in self.sets for word in ("--set", each)]]

    def drive(self, *argv: object, **options) -> "Driver":
        """A driver: the command line given, or `run --id`."""
        driver = Driver(self, argv or self.argv(), **options)
        self.drivers.append(driver)
        return driver

    def resume(self, **options) -> "Driver":
        return self.drive("--json", "resume", self.id, **options)

    def is_created(self) -> bool:
        return self.site.stoker("events", self.id).code == 0 and bool(self.events())

    def is_listed(self) -> bool:
        return any(line["run"] == self.id for line in self.site.ok("--json", "list").lines)

    def events(self, kind: str | None = None) -> list:
        return self.site.events(self.id, kind)

    def status(self) -> dict:
        return self.site.status(self.id)

    def effects(self, *what: str) -> list:
        if not self.notes.exists():
            return []
        rows = [json.loads(line) for line in self.notes.read_text().splitlines()]
        return [row for row in rows if not what or row["what"] in what]

    def wait_for(self, seen, seconds: float = PATIENCE) -> object:
        """What `seen()` gives as soon as it is true."""
        limit = time.monotonic() + seconds
        while not (value := seen()):
            assert time.monotonic() < limit, f"not seen in {seconds} s\n{self.story()}"
            time.sleep(0.02)
        return value

    def wait_for_effect(self, what: str, phase: str = "train", count: int = 1) -> dict:
        return self.wait_for(lambda: [row for row in self.effects(what)
                                      if row["phase"] == phase][count - 1:])[0]

    def processes(self) -> dict:
        """pid → command line of everything on this machine that carries a token
        and belongs to this run."""
        found, ours = {}, re.compile(re.escape(f"{self.site.root}/") + r"[^\0]*" + f"/runs/{self.id}/")
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                environ = (folder / "environ").read_bytes()
                words = (folder / "cmdline").read_bytes()
                if b"STOKER_TOKEN=" in environ and ours.search((environ + words).decode(errors="replace")):
                    found[int(folder.name)] = words.replace(b"\0", b" ").decode(errors="replace")
        return found

    def agents(self) -> list:
        """Those of all nodes, without the helpers that they start."""
        pids = {pid for pid, words in self.processes().items() if "order.json" in words}
        return sorted(pid for pid in pids if parent(pid) not in pids)

    def kill_all(self) -> None:
        """Agents and commands, until nothing is left."""
        while found := self.processes():
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def story(self) -> str:
        lines = [f"run {self.id} in {self.site.root}", *self.epilogue]
        for driver in self.drivers:
            lines.append(f"--- {' '.join(map(str, driver.argv))} [{driver.process.poll()}] {driver.fate}")
            lines.append(driver.err()[-2000:])
        for rows in (self.site.stoker("events", self.id).lines, self.effects()):
            rows = rows if len(rows) < 80 else [*rows[:40], {"left out": len(rows) - 80}, *rows[-40:]]
            lines += [" ".join(f"{key}={str(value)[:150]!r}" for key, value in row.items() if key not in DULL)
                      for row in rows]
        return "\n".join(lines)


class Story:
    """A run's story, told only if somebody wants to read it."""

    def __init__(self, run: Run):
        self.run = run

    def __format__(self, _: str) -> str:
        return self.run.story()

    __str__ = __repr__ = lambda self: self.run.story()


class Driver:
    """A started stoker whose streams go to files, so that a kill loses nothing
    and its end is not waited for."""

    def __init__(self, run: Run, argv, env: dict | None = None, prefix: tuple = (), **options):
        self.run, self.argv, self.fate = run, list(argv), ""
        folder = run.site.root / "drivers"
        folder.mkdir(exist_ok=True)
        stem = folder / f"{run.id}-{len(run.drivers)}"
        self.out_path, self.err_path = stem.with_suffix(".out"), stem.with_suffix(".err")
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = run.site.start(*argv, env=env, prefix=prefix, stdout=out, stderr=err, **options)

    @property
    def pid(self) -> int:
        return self.process.pid

    def err(self) -> str:
        return self.err_path.read_text(errors="replace")

    def count(self) -> int:
        """Events it has made durable so far."""
        out = self.out_path.read_bytes()
        return out.count(b"\n") - out.count(b'{"error":{')

    def rows(self) -> list:
        """Events it has shown: those are durable."""
        whole = self.out_path.read_bytes().rpartition(b"\n")[0].splitlines()
        return [json.loads(line) for line in whole if line.startswith(b"{") and not line.startswith(b'{"error":{')]

    def seen(self) -> list:
        """The same, by their names and phases."""
        return ["start", *(f"{row['event']} {row.get('phase', '')}".strip() for row in self.rows())]

    def count_of(self, event: str, attempt: str) -> int:
        """How often it has shown this of an attempt ("train-1")."""
        return sum(row["event"] == event and f"{row.get('phase')}-{row.get('attempt')}" == attempt
                   for row in self.rows())

    def last_event(self) -> str:
        return self.seen()[-1]

    def ended(self) -> bool:
        return self.process.poll() is not None

    def pause_between_writes(self) -> None:
        """Stopped at a moment at which it does not hold the journal's write lock,
        so that others can go on writing."""
        while self.process.send_signal(signal.SIGSTOP) or self.run.site.is_locked():
            self.process.send_signal(signal.SIGCONT)
            time.sleep(0.05)

    def kill(self) -> bool:
        """kill -9; False if it had ended by itself."""
        self.process.send_signal(signal.SIGKILL)
        code = self.process.wait()
        self.check()
        if code == -signal.SIGKILL:
            self.fate = f"killed after {self.last_event()}"
        return code == -signal.SIGKILL

    def wait(self, seconds: float = PATIENCE) -> int:
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            story = self.run.story()
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(PATIENCE)
            raise AssertionError(f"the driver did not end in {seconds} s\n{story}") from None
        text = self.err()
        assert "Sanitizer" not in text and "runtime error:" not in text, self.run.story()
        self.check()
        return code

    def check(self) -> None:
        """What it has printed is as the published schemas say."""
        cli.check(self.argv, self.out_path.read_bytes())


def other_clock(folder: Path) -> Path:
    """The library of other_clock.c, built."""
    library = folder / "other_clock.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", library,
                    SUPPORT / "other_clock.c"], check=True)
    return library


def clock_env(library: Path, seconds: int) -> dict:
    """A driver whose clock is off. The run time of the address sanitizer wants to
    be the first library; in a binary without it there is none to name."""
    linked = subprocess.run(["ldd", cli.BINARY], capture_output=True, text=True, check=True).stdout
    sanitizer = re.findall(r"=> (\S*libasan\S*)", linked)
    return {"LD_PRELOAD": " ".join([*sanitizer, str(library)]), "OTHER_CLOCK_S": str(seconds)}


def play(run: Run, first: str | None = None, env: dict | None = None, successor_env: dict | None = None,
         kills_max: int = 4) -> Counter:
    """Kill driver after driver at moments drawn from the run's own seed, then let
    one finish; the first is killed when it has journalled the event `first`, if
    one is given. How often one died after which event."""
    chance = random.Random(f"{SEED}/{run.id}")
    fates: Counter = Counter()
    for turn in range(chance.choice([1, 1, 1, 2, 2, 3, kills_max])):
        driver = go_on(run, chance, env if turn == 0 else successor_env)
        wait_for_moment(driver, chance, first if turn == 0 else None)
        if not driver.kill():
            break
        fates[driver.last_event()] += 1
        if chance.random() < 0.4:
            time.sleep(chance.uniform(0, 1.5))
    assert go_on(run, chance, successor_env).wait() == 0, run.story()
    return fates


def go_on(run: Run, chance: random.Random, env: dict | None) -> Driver:
    """Most take a run up by `resume`, some say the same as at first."""
    by_id = chance.random() < 0.25
    return run.drive(env=env) if by_id or not run.is_created() else run.resume(env=env)


def wait_for_moment(driver: Driver, chance: random.Random, first: str | None) -> None:
    """Any moment, or one close behind an event."""
    if first is None and chance.random() < 0.6:
        limit = time.monotonic() + chance.uniform(0, 2.2)
        while time.monotonic() < limit and not driver.ended():
            time.sleep(0.003)
        return
    count = chance.randrange(20)
    while not driver.ended() and (first not in driver.seen() if first else driver.count() < count):
        time.sleep(0.001)
    if first is None:
        time.sleep(chance.choice([0, chance.uniform(0, 0.08)]))


PHASES = ("precompile", "train")


def check_once(run: Run, phases: tuple = PHASES) -> list:
    """It has succeeded, each phase took effect once, nobody is left. Its events."""
    rows = check_journal(run, phases)
    effects = [(row["phase"], row["attempt"], row["what"]) for row in run.effects("start", "end")]
    assert effects == [(phase, 1, what) for phase in phases for what in ("start", "end")], run.story()
    check_nothing_left(run)
    return rows


def check_journal(run: Run, phases: tuple = PHASES) -> list:
    """What the journal says of a run that only drivers were killed of."""
    story, rows = Story(run), run.events()
    check_order(rows, story)
    count = Counter(row["event"] for row in rows)
    assert count["run.created"] == count["run.ended"] == 1, story
    assert rows[-1]["event"] == "run.ended" and rows[-1]["state"] == "succeeded", story
    for kind in ("attempt.intended", "attempt.submitted", "attempt.ended"):
        made = [(row["phase"], row["attempt"]) for row in rows if row["event"] == kind]
        assert made == [(phase, 1) for phase in phases], f"{kind}: {made}\n{story}"
    status = run.status()
    assert status["state"] == "succeeded" and status["exit_code"] == 0, story
    assert not status.get("driver"), story
    check_ledger(run, status, rows)
    return rows


def check_stopped(run: Run) -> list:
    """It was stopped on request: recorded once, and nobody is left. Its events."""
    story, rows = Story(run), run.events()
    check_order(rows, story)
    count = Counter(row["event"] for row in rows)
    assert count["run.created"] == count["run.ended"] == 1, story
    assert rows[-1]["event"] == "run.ended" and rows[-1]["state"] == "stopped", story
    for kind in ("attempt.submitted", "attempt.ended"):
        made = [(row["phase"], row["attempt"]) for row in rows if row["event"] == kind]
        assert len(made) == len(set(made)), f"{kind}: {made}\n{story}"
    status = run.status()
    assert status["state"] == "stopped" and status["exit_code"] == 6 and not status.get("driver"), story
    check_ledger(run, status, rows)
    check_nothing_left(run)
    return rows


def check_order(rows: list, story: Story) -> None:
    """No number and no epoch is missing or doubled, and time passes."""
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1)), story
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows), story
    epochs = [row["epoch"] for row in rows if row["event"] == "driver.took_over"]
    assert epochs == list(range(1, len(epochs) + 1)), story


def check_ledger(run: Run, status: dict, rows: list) -> None:
    """Its bins add up to the whole, and the whole to the clock on the wall."""
    bins = dict(status["ledger"])
    total = bins.pop("total")
    assert abs(sum(bins.values()) - total) < 0.0005, f"{status['ledger']}\n{run.story()}"
    first, last = (datetime.fromisoformat(rows[i]["at"]) for i in (0, -1))
    assert abs((last - first).total_seconds() - total) < 0.0015, f"{status['ledger']}\n{run.story()}"


def check_nothing_left(run: Run) -> None:
    """What is left would stay: a command that ends by itself takes longer than this, or
    its end is looked for besides."""
    limit = time.monotonic() + LEFT
    while (left := run.processes()) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not left, f"still running: {left}\n{run.story()}"


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def seconds(at: str) -> float:
    """An instant of an event as Unix time."""
    return datetime.fromisoformat(at).timestamp()


def process_gone(pid: int) -> bool:
    """Dead, or waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
