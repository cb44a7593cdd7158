"""A model with a schedule, and a crontab that is a file: for tests of what alarms do."""

import json

import stoker as cli
from project import PYTHON
from turns import Turns

CRONTAB = """#!/bin/sh
# crontab(1) of cron, with its table in a file of the test's own.
case $1 in
-l) [ -f "$TABLE" ] || { echo "no crontab for $(id -un)" >&2; exit 1; }; cat "$TABLE";;
-) cat >"$TABLE.new" && mv "$TABLE.new" "$TABLE";;
-r) rm "$TABLE";;
esac
"""


class Scheduled(Turns):
    """The same with a schedule at 3 o'clock every day, whose training waits until the test lets it go on."""

    def __init__(self, root, **schedule):
        super().__init__(root)
        self.tools, self.table, self.told = root / "tools", root / "table", root / "told"
        self.tools.mkdir()
        (self.tools / "crontab").write_text(CRONTAB)
        (self.tools / "crontab").chmod(0o755)
        self.begun, self.hold = root / "begun", root / "hold"
        (self.source / "patient.sh").write_text(
            f'echo >>{self.begun}\nwhile [ -e {self.hold} ]; do sleep 0.05; done\nexec {PYTHON} learner.py train\n')
        self.write(name="m5", command=["sh", "patient.sh"], schedule={"cron": "0 3 * * *", **schedule},
                   notify=[{"when": ["nothing_new", "skipped"], "command": ["sh", "-c", f"cat >>{self.told}"]}])

    def env(self, **more):
        path = f"{self.tools}:{cli.environment()['PATH']}"
        return super().env(PATH=path, TABLE=str(self.table), **more)

    def add(self, *argv):
        return self.ok("schedule", "add", self.spec_path, "--to", "cron", *argv)

    def alarm(self, day, hour="03:00:10", *argv):
        return self.stoker("schedule", "run", "m5", "--at", self.at(day, hour), *argv)

    def start_alarm(self, day, hour="03:00:10", *argv):
        return self.start("schedule", "run", "m5", "--at", self.at(day, hour), *argv)

    @staticmethod
    def at(day, hour):
        return f"2031-01-{day:02}T{hour}Z"

    @staticmethod
    def run_of(day):
        return f"m5-203101{day:02}t0300"

    def records(self):
        return [json.loads(path.read_text()) for path in sorted((self.models / "turns").glob("2*.json"))]

    def started(self):
        """How many trainings have begun."""
        return self.begun.read_text().count("\n") if self.begun.exists() else 0

    def messages(self):
        return [json.loads(line) for line in self.told.read_text().splitlines()] if self.told.exists() else []

    def outcomes(self):
        return {record["at"][:10][-2:]: record["outcome"] for record in self.records()}
