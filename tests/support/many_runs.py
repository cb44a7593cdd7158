"""A state with many runs, made of one that was really run: its events under other ids, names and
times, each with its sum. By hand: tests/support/many_runs.py STOKER STATE [COUNT]"""

import contextlib
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

SPEC = {"version": 1, "name": "many", "command": ["/bin/sh", "-c", "echo step: 1"], "compile": {"kind": "none"},
        "metrics": [{"name": "step", "regex": "^step: ([0-9]+)"}], "limits": {"stall": "none"}}
TIME = "%Y-%m-%dT%H:%M:%S.%f"


def seal(row: dict, link: str) -> tuple:
    """The text of an event behind `link`, and the link to the next one: jobs/run/journal/chain.h."""
    bare = {key: value for key, value in row.items() if key != "sum"}
    form = json.dumps(bare, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256((f"{link}\n" if row["seq"] > 1 else "\n").encode() + form.encode()).hexdigest()
    return f'{form[:-1]},"sum":"{digest}"}}', digest


def moved(value, by: timedelta):
    """A time in an event, later; any other value as it is."""
    if isinstance(value, str) and len(value) == 24 and value.endswith("Z") and value[10] == "T":
        return (datetime.strptime(value[:-1], TIME) + by).strftime(TIME)[:-3] + "Z"
    return value


def add(state: Path, runs: dict) -> None:
    """Runs by id, each with the events of these rows."""
    with contextlib.closing(sqlite3.connect(state / "journal.db")) as db, db:
        for run, rows in runs.items():
            write_rows(db, run, rows)


def write_rows(db: sqlite3.Connection, run: str, rows: list) -> None:
    link, texts = "", []
    for seq, row in enumerate(rows, 1):
        text, link = seal(dict(row, run=run, seq=seq), link)
        texts.append((run, seq, text))
    db.executemany("INSERT INTO event VALUES(?, ?, ?)", texts)


def rows_of(state: Path, run: str) -> list:
    with contextlib.closing(sqlite3.connect(state / "journal.db")) as db:
        return [json.loads(body) for body, in db.execute("SELECT body FROM event WHERE run=? ORDER BY seq", (run,))]


def begin(stoker: str, state: Path, run: str = "run-00000") -> list:
    """The events of one real run in a new state."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "stoker.yaml").write_text(json.dumps(SPEC))
        subprocess.run([stoker, "--state", str(state), "--quiet", "run", "stoker.yaml", "--id", run], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL)
    return rows_of(state, run)


def later(rows: list, by: timedelta) -> list:
    return [{key: moved(value, by) for key, value in row.items()} for row in rows]


def make(stoker: str, state: Path, count: int) -> None:
    """`count` ended runs, a minute apart. Stoker itself makes their summaries."""
    rows = begin(stoker, state)
    with contextlib.closing(sqlite3.connect(state / "journal.db")) as db, db:
        for number in range(1, count):
            changed = later(rows, timedelta(minutes=-number - 60))
            changed[0] = dict(changed[0], name=f"job-{number % 97}")
            write_rows(db, f"run-{number:05}", changed)
            (state / "runs" / f"run-{number:05}").mkdir(mode=0o700)
            for name in ("driver.lock", "created.json"):
                os.close(os.open(state / f"runs/run-{number:05}/{name}", os.O_CREAT | os.O_WRONLY, 0o600))
    subprocess.run([stoker, "--state", str(state), "resume", "--all"], check=True)


if __name__ == "__main__":
    make(str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 10000)
