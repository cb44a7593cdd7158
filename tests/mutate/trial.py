"""Runs mutants against tests until one fails. A test is first run without a mutant: so it is known how long it takes,
and which places it evaluates; a mutant is tried only by tests that evaluate its place."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from find import Mutant

NUMBERS = 1 << 20
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:symbolize=0:hard_rss_limit_mb=2048:"
                              "allocator_may_return_null=1",
              "LSAN_OPTIONS": "symbolize=0", "UBSAN_OPTIONS": "symbolize=0", "STOKER_TEST_SEED": "1"}


@dataclass
class Test:
    """One program with its arguments."""
    name: str
    command: list[str]
    digest: str                       # of its sources: a test that changed has not judged yet
    seconds: float = 0.0
    reaches: set[int] = field(default_factory=set)

    @property
    def limit(self) -> float:
        return 3 * self.seconds + 3


@dataclass
class Verdict:
    """What came of a mutant; `by` is a test, "" for a survivor."""
    by: str
    how: str
    digest: str                       # of what the verdict rests on


class Trial:
    """All tests of one build, and what they said."""

    def __init__(self, folder: Path, tests: list[Test], jobs: int, fresh: bool):
        self.folder, self.tests, self.jobs = folder, tests, jobs
        self.confine = str(folder / "confine")
        self.path = folder / "results.json"
        self.lock = Lock()
        kept = json.loads(self.path.read_text()) if self.path.exists() and not fresh else {}
        self.verdicts = {name: Verdict(**row) for name, row in kept.items()}
        self.tried = 0

    def environment(self, choice: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("STOKER_", "AWS_", "JAX_", "XLA_"))}
        return {**kept, **SANITIZERS, "STOKER_MUTANT": choice, "TMPDIR": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, test: Test, choice: str, limit: float, scratch: str, output=subprocess.DEVNULL) -> int:
        return subprocess.run([self.confine, f"{limit:.1f}", scratch, *test.command], env=self.environment(choice),
                              cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.STDOUT).returncode

    # ---- without a mutant

    def measure(self) -> None:
        """Runs every test without a mutant; ends the process if one fails."""
        kept = self.folder / "reach"
        kept.mkdir(exist_ok=True)
        with ThreadPoolExecutor(self.jobs) as pool:
            failed = [text for text in pool.map(lambda test: self.measure_one(test, kept), self.tests) if text]
        if failed:
            sys.exit("tests that fail without a mutant:\n" + "\n".join(failed))
        self.tests.sort(key=lambda test: test.seconds)

    def measure_one(self, test: Test, kept: Path) -> str:
        programs = [Path(word) for word in test.command if word.startswith(str(self.folder))]
        programs += [path for path in (self.folder / "out").glob("stoker*") if path.is_file()]
        stamp = json.dumps([test.command, sorted([str(path), path.stat().st_mtime_ns] for path in programs)])
        path = kept / hashlib.sha256(stamp.encode()).hexdigest()
        if path.exists():
            data = json.loads(path.read_text())
        else:
            with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
                seen = Path(scratch) / "seen"
                seen.write_bytes(bytes(NUMBERS))
                begun = time.monotonic()
                with open(Path(scratch) / "output", "w+b") as output:
                    status = self.run(test, f"seen:{seen}", 600, scratch, output)
                    output.seek(0)
                    said = output.read().decode(errors="replace")
                if status:
                    return f"{test.name}: exit status {status}\n{said[-2000:]}"
                bits = seen.read_bytes()
            data = {"seconds": time.monotonic() - begun,
                    "reaches": [number for number, bit in enumerate(bits) if bit]}
            path.write_text(json.dumps(data))
        test.seconds, test.reaches = data["seconds"], set(data["reaches"])
        return ""

    # ---- with mutants

    def judge(self, mutants: list[Mutant]) -> None:
        """Finds out about those of which nothing is known that still holds."""
        todo = [mutant for mutant in mutants if not self.is_known(mutant)]
        print(f"{len(mutants)} mutants, {len(todo)} of them to be tried", file=sys.stderr, flush=True)
        begun = time.monotonic()

        def one(mutant: Mutant) -> None:
            verdict = self.try_one(mutant)
            with self.lock:
                self.verdicts[mutant.name] = verdict
                self.tried += 1
                if self.tried % 100 == 0 or self.tried == len(todo):
                    self.keep()
                    left = (len(todo) - self.tried) * (time.monotonic() - begun) / self.tried
                    print(f"{self.tried} of {len(todo)} tried, {left:.0f} s left", file=sys.stderr, flush=True)

        pool = ThreadPoolExecutor(self.jobs)
        try:
            list(pool.map(one, todo))
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            self.keep()

    def keep(self) -> None:
        text = json.dumps({name: vars(verdict) for name, verdict in self.verdicts.items()})
        other = self.path.with_suffix(".new")
        other.write_text(text)
        shutil.move(other, self.path)

    def judges(self, mutant: Mutant) -> list[Test]:
        return [test for test in self.tests if mutant.number in test.reaches]

    def digest(self, mutant: Mutant, tests: list[Test]) -> str:
        rows = [mutant.body, *sorted(f"{test.name} {test.digest}" for test in tests)]
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def is_known(self, mutant: Mutant) -> bool:
        """A kill holds while the function and the test that killed are as they were; that a mutant survived, while the
        function and all tests that reach it are."""
        verdict = self.verdicts.get(mutant.name)
        if not verdict:
            return False
        tests = self.judges(mutant)
        if verdict.by:
            tests = [test for test in tests if test.name == verdict.by]
            if not tests:
                return False
        return verdict.digest == self.digest(mutant, tests)

    def try_one(self, mutant: Mutant) -> Verdict:
        tests = self.judges(mutant)
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            for test in tests:
                status = self.run(test, str(mutant.number), test.limit, scratch)
                if status == 125:
                    sys.exit(f"{test.name} could not be confined")
                if status:
                    how = "time" if status == 124 else f"signal {status - 128}" if status > 128 else "exit status"
                    return Verdict(test.name, how, self.digest(mutant, [test]))
        return Verdict("", "" if tests else "no test gets there", self.digest(mutant, tests))
