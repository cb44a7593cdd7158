"""An agent that is watched, killed, or refused a call, at one place of its choice: what `stoker` delivers is
the agent as it was built but for its loader, which is a script. For an attempt that has a plan the script puts
strace or the library of nth_call.c before the loader; for any other it starts it as it is.

    agent = Agent(folder)                              # env() tells stoker of it
    agent.plan(run, "train-1", inject.kill_at(point))  # the words before the command"""

import shlex
import shutil
import subprocess
from pathlib import Path

import inject
import stoker as cli
from project import SUPPORT

LOADER = """#!/bin/sh
for word; do
	case $word in */order.json) folder=${word%/*} ;; esac
done
run=${folder%/*}
plan=PLANS/${run##*/}.${folder##*/}
[ ! -e "$plan" ] || . "$plan"
exec ${before-} REAL ${preload:+--preload "$preload"} "$@"
"""


def nth_call(folder: Path) -> Path:
    """The library of nth_call.c, built."""
    library = folder / "nth_call.so"
    if not library.exists():
        subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", library,
                        SUPPORT / "nth_call.c"], check=True)
    return library


class Agent:
    def __init__(self, root: Path):
        self.folder, self.plans = root / "agent", root / "plans"
        self.plans.mkdir(parents=True)
        self.library = nth_call(root)
        built = cli.BINARY.parent / "agent"
        shutil.copytree(built, self.folder)
        loader = self.folder / "lib/loader"
        loader.unlink()
        loader.write_text(LOADER.replace("PLANS", shlex.quote(str(self.plans)))
                          .replace("REAL", shlex.quote(str(built / "lib/loader"))))

    def env(self) -> dict:
        return {"STOKER_AGENT": str(self.folder)}

    def trace(self, run: str, attempt: str, before: tuple) -> None:
        """These words stand before the agent: those of inject.py, for a tracer that is no parent of it."""
        words = shlex.join([before[0], "-D", *before[1:]])
        (self.plans / f"{run}.{attempt}").write_text(f"before={shlex.quote(words)}\n")

    def count(self, run: str, attempt: str, **settings: object) -> None:
        """It counts by nth_call.c, with these settings (their names without NTH_)."""
        lines = [f"export NTH_{name.upper()}={shlex.quote(str(value))}\n" for name, value in settings.items()]
        (self.plans / f"{run}.{attempt}").write_text(f"{''.join(lines)}preload={self.library}\n")


def points(log: Path) -> list:
    """The calls that the first process of the role has made, as nth_call.c told them."""
    rows = [line.split() for line in log.read_text().splitlines()]
    return [inject.Point(name, int(nth), f"of process {pid}") for name, nth, pid in rows if pid == rows[0][2]]
