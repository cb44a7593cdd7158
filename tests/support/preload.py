"""What inject.py does by strace, done by a preloaded library (nth_call.c): for machines that refuse ptrace, and for
processes that are forked and never started. It sees calls of the C library, not those within it."""

import errno
import itertools
import subprocess
from pathlib import Path

import inject
from project import SUPPORT

HOW = "a preloaded library"
numbers = itertools.count()


def build(folder: Path) -> Path:
    """The library, built there if it was not yet."""
    library = folder / "nth_call.so"
    if not library.exists():
        subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", library,
                        SUPPORT / "nth_call.c"], check=True)
    return library


def settings(**values: object) -> dict:
    """The environment of the library: names without NTH_."""
    return {f"NTH_{name.upper()}": str(value) for name, value in values.items()}


def points(log: Path) -> list:
    """The calls that the first process of the role has made."""
    rows = [line.split() for line in log.read_text().splitlines()]
    return [inject.Point(name, int(nth), f"of process {pid}") for name, nth, pid in rows if pid == rows[0][2]]


class Preload:
    """Stands before a command as inject.py does; `folder` is its own."""

    HOW = HOW

    def __init__(self, folder: Path):
        self.folder, self.library = folder, build(folder)
        self.points = points

    def prefix(self, **values: object) -> tuple:
        env = {"LD_PRELOAD": self.library, **settings(role="main", **values)}
        return ("env", *[f"{name}={value}" for name, value in env.items()])

    def watch(self, log: Path) -> tuple:
        return self.prefix(log=log)

    def kill_at(self, point: inject.Point) -> tuple:
        return self.prefix(call=point.name, number=point.nth, mark=self.folder / f"mark-{next(numbers)}")

    def failures(self, log: Path) -> list:
        """(point, error), as inject.failures."""
        return [(point, error) for point in points(log) for error in inject.errors_of(f"{point.name}(O_CREAT")]

    def fail_at(self, point: inject.Point, error: str, trace: Path) -> tuple:
        """`trace` is there once it was made."""
        return self.prefix(call=point.name, number=point.nth, mark=trace, errno=getattr(errno, error))
