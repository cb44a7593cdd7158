"""What a driver keeps beside a long journal, so that the next one need not read all of
it: used where it is whole and of this program, and otherwise as if it were not there."""

import json
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

PROGRESS = 1200  # a state is kept every 1,000 events


def events(state):
    with sqlite3.connect(state / "stoker/journal.db") as db:
        return [(seq, json.loads(body)) for seq, body in db.execute("SELECT seq, body FROM event ORDER BY seq")]


def change(state, sql, *values):
    with sqlite3.connect(state / "stoker/journal.db") as db:
        assert db.execute(sql, values).rowcount > 0


@pytest.fixture
def long_run(project):
    """A run whose driver died in the middle of a long training, and the state that another
    driver kept, in the journal of a run that is the same."""
    project.run("--id", "long")
    rows = [row for _, row in events(project.state)]
    begin = max(i for i, row in enumerate(rows) if row["event"] == "attempt.started") + 1
    rows = rows[:begin]
    for step in range(1, PROGRESS + 1):
        rows.append({**{name: rows[begin - 1][name] for name in ("v", "run", "at")}, "event": "train.progress",
                     "attempt": 1, "step": step, "of": 20, "metrics": {"loss": 0.5}})
    with sqlite3.connect(project.state / "stoker/journal.db") as db:
        db.execute("DELETE FROM event")
        db.executemany("INSERT INTO event VALUES('long', ?, ?)",
                       [(seq, json.dumps({**row, "seq": seq})) for seq, row in enumerate(rows, 1)])
    before = project.root / "before"
    shutil.copytree(project.state, before)
    project.ok("resume", "long")
    with sqlite3.connect(before / "stoker/journal.db") as db:
        db.execute("ATTACH ? AS other", (str(project.state / "stoker/journal.db"),))
        db.execute("CREATE TABLE kept AS SELECT * FROM other.kept")
        assert db.execute("SELECT run, seq FROM kept").fetchall() == [("long", len(rows))]
    shutil.rmtree(project.state)
    before.rename(project.state)
    return project


def takes_over(project):
    """Whether a driver gets as far as to say that it drives."""
    result = project.stoker("--json", "resume", "long")
    return "driver.took_over" in result.out


def damage_an_event(project):
    """Reading this one is an error: who goes on has not read it."""
    change(project.state, "UPDATE event SET body='damaged' WHERE seq=600")


def test_a_driver_goes_on_from_what_was_kept(long_run):
    damage_an_event(long_run)
    assert takes_over(long_run)


@pytest.mark.parametrize("sql", [
    "UPDATE kept SET state=x'00'",
    "UPDATE kept SET state=substr(state, 1, 5000) || x'07' || substr(state, 5002)",
    "UPDATE kept SET state=x'02' || substr(state, 2)",
    "UPDATE kept SET run='other'",
    "DELETE FROM kept",
], ids=["short", "one byte", "its form", "of another run", "none"])
def test_what_is_not_whole_counts_for_nothing(long_run, sql):
    change(long_run.state, sql)
    damage_an_event(long_run)
    assert not takes_over(long_run)


def test_a_run_that_has_the_id_of_another_does_not_go_on_from_that_ones_state(long_run):
    _, created = events(long_run.state)[0]
    change(long_run.state, "UPDATE event SET body=? WHERE seq=1", json.dumps({**created, "seed": created["seed"] ^ 1}))
    damage_an_event(long_run)
    assert not takes_over(long_run)


def test_the_end_is_the_same_with_and_without_it(long_run):
    plain = long_run.root / "plain"
    shutil.copytree(long_run.state, plain)
    long_run.ok("resume", "long")
    quick = long_run.status("long")
    shutil.rmtree(long_run.state)
    plain.rename(long_run.state)
    change(long_run.state, "DELETE FROM kept")
    long_run.ok("resume", "long")
    slow = long_run.status("long")
    assert quick["state"] == "succeeded"
    for name in ("state", "phase", "cache", "jit", "metrics", "checkpoint"):
        assert quick.get(name) == slow.get(name), name
    assert quick["ledger"]["steps"] == slow["ledger"]["steps"]
    assert [row["action"] for row in quick["attempts"] if "action" in row] == \
           [row["action"] for row in slow["attempts"] if "action" in row]


def test_forgetting_the_run_forgets_what_was_kept(long_run):
    long_run.ok("resume", "long")
    long_run.ok("rm", "long")
    with sqlite3.connect(long_run.state / "stoker/journal.db") as db:
        assert db.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_the_clock_goes_on_where_nothing_came_after_what_was_kept(long_run):
    """A machine's uptime was once taken for the time since the newest event."""
    last = max(datetime.fromisoformat(row["at"]) for _, row in events(long_run.state))
    now = datetime.now(UTC)
    assert takes_over(long_run)
    (taken,) = [row for row in long_run.events("long", "driver.took_over") if row["epoch"] == 2]
    at = datetime.fromisoformat(taken["at"])
    assert at - max(last, now) < timedelta(minutes=5), taken
