"""kill -9 of the driver of a turn (`retrain`, `schedule run`, `resume`), its agent and `promote`, at moments drawn from
fixed seeds over all phases: each turn is promoted once, the chain is whole, and each output is there once, by manifest
and by listing."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import crash
import pytest
import stoker as cli
from project import PYTHON, SUPPORT
from scheduled import Scheduled

KILLED = int(os.environ.get("STOKER_TEST_RETRAIN_KILLS", "60"))
AT_A_TIME = 3

# What the driver had told of when the kill came, in the order of a turn; of the start it tells nothing.
MOMENTS = [
    ("start", "nothing"), ("start", "run.created"), ("precompile", "cache.claimed"),
    ("precompile", "attempt.intended precompile"), ("precompile", "attempt.claimed precompile"),
    ("precompile", "attempt.ended precompile"), ("train", "attempt.intended train"),
    ("train", "attempt.submitted train"), ("train", "attempt.claimed train"), ("train", "attempt.started train"),
    ("train", "checkpoint.complete"), ("train", "attempt.ended train"), ("evaluate", "candidate.chosen"),
    ("precompile", "attempt.intended precompile evaluate"), ("evaluate", "attempt.submitted evaluate"),
    ("evaluate", "attempt.claimed evaluate"), ("evaluate", "attempt.started evaluate"),
    ("evaluate", "evaluate.measured"), ("evaluate", "attempt.ended evaluate"), ("gate", "gate.judged"),
    ("gate", "gate.judged"),
    ("precompile", "attempt.intended precompile infer"), ("infer", "attempt.intended infer"),
    ("infer", "attempt.claimed infer"), ("infer", "attempt.started infer"), ("infer", "task.done infer"),
    ("infer", "attempt.ended infer"), ("promote", "promote.intended"), ("promote", "promote.intended"),
    ("promote", "promote.done"),
]
PHASES = ("start", "precompile", "train", "evaluate", "gate", "infer", "promote")
PROCESSES = ("retrain", "schedule run", "resume", "agent", "promote")
BY_HAND = 6  # every so many turns the run ends before its promotion, and the command does that


class Chain:
    """Turns after one another, each with its kills; all of them are one chain of versions."""

    def __init__(self, folder, number):
        self.turns = turns = Scheduled(folder)
        self.results, self.number, self.met = folder / "results", number, Counter()
        self.chance = random.Random(f"{crash.SEED}/{number}")
        self.week, self.deck, self.promotion = 0, [], 0.0
        for drop in range(4):
            turns.put(f"{drop}.csv", f"good {drop}")
        shutil.copy(SUPPORT / "compiling.py", turns.source)
        turns.write(command=[PYTHON, "compiling.py", "train"], env={"NOTES": str(folder / "notes")},
                    compile={"kind": "jax", "cache_url": str(turns.cache), "max_steps": 2},
                    evaluate={**turns.spec["evaluate"], "command": [PYTHON, "compiling.py", "evaluate"],
                              "compile": "aot"},
                    # Machines of their own take the shards of one chain.
                    infer={"command": [PYTHON, "compiling.py", "infer"], "output": str(self.results), "shards": 3,
                           "compile": "aot", "resources": {"nodes": 1 + (number == 1)}},
                    retry={"attempts": 20, "backoff": {"first": "0s", "max": "0s"}})
        turns.add()

    def deal(self):
        """Up to three moments, in the order in which a turn comes by them; after all of them they begin anew."""
        if len(self.deck) < 3:
            more = list(range(len(MOMENTS)))
            self.chance.shuffle(more)
            self.deck += more
        dealt, self.deck = self.deck[:3], self.deck[3:]
        return [MOMENTS[at] for at in sorted(set(dealt))]

    def processes(self, run=""):
        """pid → command line of what works in a folder of the run's attempts, or is told of a file there."""
        found, ours = {}, f"{self.turns.root}/workspace/runs/{run}"
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
                folder = os.readlink(f"/proc/{pid}/cwd")
            except OSError:
                continue
            if any(word.startswith(ours) for word in (*words, folder)):
                found[pid] = words
        return found

    def agents(self, run):
        """Those of all attempts of a run, without the helpers that they start."""
        pids = {pid for pid, words in self.processes(f"{run}/").items() if any(word.endswith("/order.json") for word in words)}
        return [pid for pid in pids if crash.parent(pid) not in pids]

    def kill(self, driver, name, run, phase):
        """The driver, the agent or both; the driver alone where there is no agent to be killed."""
        agents = self.agents(run)
        target = self.chance.choice(["driver", "agent", "agent", "both"]) if agents else "driver"
        for pid in [driver.pid] * (target != "agent") + agents * (target != "driver"):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                target = "gone"
        if target in ("driver", "both"):
            self.met[name, phase] += 1
        if target in ("agent", "both"):
            self.met["agent", phase] += 1

    def drive(self, words, run, phase, moment):
        """Until the driver tells of that moment and a little longer; then the kill comes, if it is not too late."""
        driver = self.turns.start("--json", *words)
        name = words[0] if words[0] != "schedule" else "schedule run"
        for row in self.rows(driver, moment):
            names = {row.get("event"), f"{row.get('event')} {row.get('phase')}",
                     f"{row.get('event')} {row.get('phase')} {row.get('stage')}"}
            if moment in names:
                try:
                    driver.wait(self.chance.uniform(0, 0.4 if moment == "nothing" else 0.05))
                except subprocess.TimeoutExpired:
                    self.kill(driver, name, run, phase)
                break
        return cli.finish(driver)

    @staticmethod
    def rows(driver, moment):
        yield {"event": "nothing"}
        if moment != "nothing":
            yield from (json.loads(line) for line in driver.stdout)

    def begin(self):
        """New data, and the command of the turn that is due: an alarm's or a person's. Returns (run, command)."""
        self.week += 1
        due = datetime(2031, 1, 1, 3) + timedelta(days=self.week)
        self.turns.put(f"{self.week}.txt", f"good {self.week}")
        if self.chance.random() < 0.35:
            shutil.rmtree(self.turns.cache, ignore_errors=True)
        at = f"{due:%Y-%m-%dT%H:%M}:10Z"
        if self.week % 2:
            return f"m5-{due:%Y%m%dt%H%M}", ["schedule", "run", "m5", "--at", at]
        run = f"by-hand-{self.week}"
        return run, ["retrain", self.turns.spec_path, "--id", run, "--at", at]

    def turn(self):
        """A turn whose processes are killed one after another, driven on by the same command or by `resume`."""
        run, words = self.begin()
        driven = words
        for phase, moment in self.deal():
            done = self.drive(driven, run, phase, moment)
            if done.code >= 0:
                break
            assert done.code == -signal.SIGKILL, str(done)
            is_there = self.turns.stoker("status", run).code == 0
            driven = ["resume", run] if is_there and self.chance.random() < 0.5 else words
        else:
            done = self.turns.stoker(*driven)
        assert done.code == 0, str(done)
        again = self.turns.ok(*words)
        assert words[0] == "retrain" or "not due: its run has ended" in again.out, str(again)
        self.check(run, self.week)

    def by_hand(self):
        """`promote` is killed after a while that is drawn anew each time, until it is done."""
        run, words = self.begin()
        self.turns.ok(*words, "--set", "promote.when=manual")
        for _ in range(3):
            command = self.turns.start("promote", run)
            try:
                command.wait(self.chance.uniform(0, self.promotion or 0.3))
            except subprocess.TimeoutExpired:
                command.kill()
            self.met["promote", "promote"] += cli.finish(command).code == -signal.SIGKILL
        begin = time.monotonic()
        self.turns.ok("promote", run)
        self.promotion = time.monotonic() - begin
        self.check(run, self.week)

    def check(self, run, week):
        turns = self.turns
        assert turns.promoted() == (week, run)
        rows = turns.events(run)
        counts = Counter(row["event"] for row in rows)
        assert counts["promote.intended"] == counts["promote.done"] <= 1 and counts["run.ended"] == 1, rows
        assert counts["run.created"] == counts["gate.judged"] == counts["candidate.chosen"] == 1, rows
        tasks = [(row["phase"], row["task"]) for row in rows if row["event"] == "task.done"]
        assert len(tasks) == len(set(tasks)) == (1 if week == 1 else 2) + 3, tasks
        # Nothing was given twice, and nothing was left out.
        drops = [f"{drop}.csv" for drop in range(4)] if week == 1 else []
        assert turns.given(run) == dict.fromkeys([*drops, f"{week}.txt"], False)
        chain = turns.ok("--json", "lineage").lines
        assert [entry["generation"] for entry in chain] == list(range(week, 0, -1)) and chain[0]["run"] == run, chain
        assert len({entry["run"] for entry in chain}) == week, chain
        assert turns.ok("lineage", "--verify").code == 0
        assert [record["outcome"] for record in turns.records()] == ["run"] * week
        assert turns.records()[-1]["run"] == run
        self.check_outputs(run, week)

    def check_outputs(self, run, week):
        folder = self.results / run
        manifest = json.loads((folder / "manifest.json").read_text())
        there = sorted(str(path.relative_to(folder)) for path in folder.rglob("*")
                       if path.is_file() and path.name != "manifest.json")
        assert sorted(row["file"] for row in manifest["files"]) == there
        assert sorted(name.rpartition("/")[2] for name in there) == sorted(
            f"{path.name}.out" for path in self.turns.drops.iterdir())
        assert len(there) == 4 + week

    def play(self, is_enough):
        while not is_enough():
            if (self.week + 1 + 2 * self.number) % BY_HAND == 0:
                self.by_hand()
            else:
                self.turn()
        cli.until(lambda: not self.processes())


def never_killed(met):
    return [name for at, names in enumerate((PROCESSES, PHASES)) for name in names
            if not any(key[at] == name for key in met)]


@pytest.fixture(scope="module")
def met(tmp_path_factory):
    """The chains go on side by side until enough was killed; what, and in which phase."""
    folder = tmp_path_factory.mktemp("chains")
    for number in range(AT_A_TIME):
        (folder / str(number)).mkdir()
    chains, fates = [Chain(folder / str(number), number) for number in range(AT_A_TIME)], []

    def killed():
        return sum((Counter(chain.met) for chain in chains), Counter())

    def is_enough():
        count = killed()
        return (count.total() >= KILLED and (not never_killed(count) or count.total() >= KILLED * 3)
                or any(fate.done() and fate.exception() for fate in fates))

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        fates += [pool.submit(chain.play, is_enough) for chain in chains]
    for fate in fates:
        fate.result()
    return killed()


def test_every_turn_is_promoted_once_whatever_is_killed(met):
    print(f"{met.total()} kills:")
    for process in PROCESSES:
        print(f"  {process:12}", *(f"{phase} {met[process, phase]}" for phase in PHASES if met[process, phase]))
    assert met.total() >= KILLED and not never_killed(met), met
