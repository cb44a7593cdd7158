"""How the bench measures: processes started without a shell, alternating pairs, and
the table. What is measured stands in rows_*.py."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/bench"
PEERS = Path(__file__).resolve().parent / "peers"


class Wrong(Exception):
    """A result that is not what must come of it: fast, perhaps, and wrong."""


def expect(found, wanted, what: str) -> None:
    if found != wanted:
        raise Wrong(f"{what}: {str(found)[:300]!r} instead of {str(wanted)[:300]!r}")


@dataclass
class Goal:
    """At most (or at least) so much: of our figure divided by the peer's, or of ours."""

    limit: float
    at_least: bool = False
    of_ratio: bool = True

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def words(self, unit: str) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{sign} {self.limit:.3g}x" if self.of_ratio else f"{sign} {show(self.limit, unit)}"


@dataclass
class Row:
    """One line of the table. `own`, `peer` and `floor` take (bench, case) and give
    (figure, what came of it); `verify` takes (bench, case, own's, peer's result) and
    raises Wrong; `last` does so once, after all pairs."""

    name: str
    operation: str
    peer_name: str
    floor_name: str
    goal: Goal
    unit: str  # "s", "/s", "B", "%" or "": a number
    setup: Callable
    own: Callable
    peer: Callable | None
    floor: Callable | None
    verify: Callable
    last: Callable | None = None
    pairs: int = 9


@dataclass
class Outcome:
    row: Row
    own: list = field(default_factory=list)
    peer: list = field(default_factory=list)
    floor: list = field(default_factory=list)
    wrong: str | None = None

    @property
    def figures(self) -> list:
        """What the goal is about, one a pair."""
        if self.row.goal.of_ratio:
            return [own / peer for own, peer in zip(self.own, self.peer, strict=True)]
        return self.own

    @property
    def met(self) -> bool:
        return not self.wrong and self.row.goal.met(statistics.median(self.figures))


class Bench:
    """Where everything lies, and what several rows share."""

    def __init__(self, scratch: Path, stoker: Path):
        self.scratch, self.stoker = scratch, str(stoker)
        self.shared = {}
        self.count = 0

    def program(self, name: str) -> str:
        return str(BUILD / "tests/bench" / name)

    def new(self, name: str = "folder") -> Path:
        self.count += 1
        path = self.scratch / f"{name}-{self.count}"
        path.mkdir()
        return path

    def once(self, make: Callable):
        """What `make(bench)` gives, made for the first who asks."""
        if make not in self.shared:
            self.shared[make] = make(self)
        return self.shared[make]

    def process(self, *argv, times: int = 1, code: int = 0, cwd: Path | None = None, env: dict | None = None):
        """(wall seconds of one, what it printed), an average over so many runs; the
        exit code must be right each time."""
        argv = [str(each) for each in argv]
        environ = {**os.environ, **env} if env else os.environ
        before = os.getcwd()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, err.fileno(), 2)]
            os.chdir(cwd or self.scratch)
            try:
                begin = time.perf_counter()
                for _ in range(times):
                    pid = os.posix_spawn(argv[0], argv, environ, file_actions=actions)
                    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                    if status != code:
                        break
                wall = (time.perf_counter() - begin) / times
            finally:
                os.chdir(before)
            out.seek(0), err.seek(0)
            text, complaint = out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace")
        expect(status, code, f"exit code of {' '.join(argv[:4])} ({complaint[-300:].strip()})")
        return wall, SimpleNamespace(text=text, err=complaint)

    def json(self, *argv, **options):
        """(wall seconds, the one object that it printed)."""
        wall, result = self.process(*argv, **options)
        return wall, json.loads(result.text)

    def peak(self, *argv) -> float:
        """Peak of memory in bytes. What starts a program counts into its peak, so that is
        an interpreter with nothing in it."""
        starter = ("import os, sys; out = os.open('/dev/null', os.O_WRONLY); pid = os.posix_spawn(sys.argv[1], "
                   "sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1), "
                   "(os.POSIX_SPAWN_DUP2, out, 2)]); _, status, usage = os.wait4(pid, 0); "
                   "print(status, usage.ru_maxrss)")
        done = subprocess.run([sys.executable, "-I", "-S", "-c", starter, *map(str, argv)], text=True,
                              stdout=subprocess.PIPE, check=True, cwd=self.scratch)
        status, size = map(int, done.stdout.split())
        expect(status, 0, f"exit status of {argv[:3]}")
        return size * 1024.0


def tool(name: str) -> str:
    return shutil.which(name) or sys.exit(f"bench: there is no {name}: install it")


def measure(bench: Bench, row: Row, pairs: int | None) -> Outcome:
    """Alternating pairs, after one of each that only warms; the floor goes along."""
    outcome = Outcome(row)
    try:
        case = row.setup(bench)
        for number in range(-1, pairs or row.pairs):
            order = ("own", "peer", "floor") if number % 2 else ("peer", "own", "floor")
            results = {}
            for which in order:
                act = getattr(row, which)
                if act:
                    figure, results[which] = act(bench, case)
                    if number >= 0:
                        getattr(outcome, which).append(figure)
            row.verify(bench, case, results["own"], results.get("peer"))
        if row.last:
            row.last(bench, case)
    except Wrong as error:
        outcome.wrong = str(error)
    return outcome


def show(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.3g} ms"
    if unit == "B":
        return f"{value / 2**20:.1f} MiB"
    if unit == "%":
        return f"{value:.1f} %"
    if unit == "":
        return f"{value:g}"
    for factor, prefix in ((1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}/s"
    return f"{value:.3g} /s"


HEAD = ("row", "operation", "stoker", "peer", "floor", "ratio or figure", "spread", "goal", "")


def line_of(outcome: Outcome) -> tuple:
    row = outcome.row
    if outcome.wrong or not outcome.own:
        return (row.name, row.operation, "", "", "", "", "", row.goal.words(row.unit), f"WRONG {outcome.wrong}")
    figures = outcome.figures
    median, low, high = statistics.median(figures), min(figures), max(figures)
    if row.goal.of_ratio:
        number, spread = f"{median:.3g}x", f"{low:.3g} to {high:.3g}"
    else:
        number, spread = show(median, row.unit), f"{show(low, row.unit)} to {show(high, row.unit)}"

    def column(values: list, name: str) -> str:
        return f"{show(statistics.median(values), row.unit)} {name}" if values else name

    return (row.name, row.operation, show(statistics.median(outcome.own), row.unit),
            column(outcome.peer, row.peer_name), column(outcome.floor, row.floor_name), number, spread,
            row.goal.words(row.unit), "met" if outcome.met else "MISSED")


def print_table(lines: list) -> None:
    """Markdown, so that it can be pasted; columns as wide as they must be."""
    widths = [max(len(line[i]) for line in (HEAD, *lines)) for i in range(len(HEAD))]
    rule = tuple("-" * width for width in widths)
    for line in (HEAD, rule, *lines):
        print("| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |")
