"""An agent that is watched, killed, or refused a call, at one place of its choice: what `stoker` delivers is
the agent as it was built but for its loader, which is a script. For an attempt that has a plan the script puts
strace or the library of nth_call.c before the loader; for any other it starts it as it is.

    agent = Agent(folder)                              # env() tells stoker of it
    agent.plan(run, "train-1", inject.kill_at(point))  # the words before the command"""

import shlex
import shutil
from pathlib import Path

import preload
import stoker as cli

LOADER = """#!/bin/sh
for word; do
	case $word in */order.json) folder=${word%/*} ;; esac
done
run=${folder%/*}
plan=PLANS/${run##*/}.${folder##*/}
[ ! -e "$plan" ] || . "$plan"
exec ${before-} REAL ${preload:+--preload "$preload"} "$@"
"""


class Agent:
    def __init__(self, root: Path):
        self.folder, self.plans = root / "agent", root / "plans"
        self.plans.mkdir(parents=True)
        self.library = preload.build(root)
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
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in preload.settings(**settings).items()]
        # The run time of the address sanitizer wants to be the first library.
        first = sorted(self.folder.glob("lib/libasan.so*"))
        libraries = ":".join(map(str, [*first, self.library]))
        (self.plans / f"{run}.{attempt}").write_text(f"{''.join(lines)}preload={shlex.quote(libraries)}\n")
