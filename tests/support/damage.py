"""Events of a journal that are taken out, emptied or changed, in both kinds of state."""

import contextlib
import sqlite3


def change(site, sql, *values):
    with contextlib.closing(sqlite3.connect(site.state / "journal.db")) as db, db:
        assert db.execute(sql, values).rowcount > 0


def event(run, seq):
    return run.site.state / f"runs/{run.id}/events/{seq:012}.json"


def put(run, seq, text):
    """As the body of an event; None: it is gone."""
    if run.site.journal == "dir":
        event(run, seq).unlink() if text is None else event(run, seq).write_text(text)
    elif text is None:
        change(run.site, "DELETE FROM event WHERE run=? AND seq=?", run.id, seq)
    else:
        change(run.site, "UPDATE event SET body=? WHERE run=? AND seq=?", text, run.id, seq)


def get(run, seq) -> str:
    if run.site.journal == "dir":
        return event(run, seq).read_text()
    with contextlib.closing(sqlite3.connect(run.site.state / "journal.db")) as db:
        return db.execute("SELECT body FROM event WHERE run=? AND seq=?", (run.id, seq)).fetchone()[0]


def seq_of(rows, name, phase=None):
    return next(row["seq"] for row in rows if row["event"] == name and phase in (None, row.get("phase")))
