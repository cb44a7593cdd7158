"""`stats`: what it counts is what the events of each run say, with summaries and without."""

import contextlib
import csv
import hashlib
import io
import json
import random
import sqlite3
import subprocess
from collections import Counter
from datetime import timedelta

import many_runs
import pytest
from project import Project

STRANGE = 'a "b", c\x1b[31m'
# Interrupted by machines, network, service or an unknown cause.
INTERRUPTS = {"transient-infra", "spot", "hardware-node", "comm", "timeout-hang", "unknown"}
ENDS = [("succeeded", 0), ("succeeded", 0), ("succeeded", 0), ("failed", 1), ("refused", 4), ("refused", 5), ("stopped", 6)]
RUNS = 60
SICK = "node-3"


def change(site, sql, *values):
    with contextlib.closing(sqlite3.connect(site.journal / "journal.db")) as db, db:
        return db.execute(sql, values).rowcount


@contextlib.contextmanager
def without(site, run):
    """The state while it has no such run."""
    change(site, "DELETE FROM event WHERE run=?", run)
    yield
    put_back(site, run)


def put_back(site, run):
    with contextlib.closing(sqlite3.connect(site.journal / "journal.db")) as db, db:
        db.execute("DELETE FROM event WHERE run=?", (run,))
        many_runs.write_rows(db, run, site.made[run])


def with_failures(rows: list, failures: list) -> list:
    """The events of a run with attempts that failed before the one that did not: (class, action, host)."""
    at = next(i for i, row in enumerate(rows) if row["event"] == "attempt.intended")
    end = next(i for i, row in enumerate(rows) if row["event"] == "attempt.ended")
    template, result = rows[at:end + 1], rows[:at]
    for number, (name, action, host) in enumerate(failures, 1):
        tried = [dict(row, attempt=number) if "attempt" in row else dict(row) for row in template]
        tried[-1].update({"class": name, "evidence": "it broke", "hosts": [host], "exit": 1})
        result += tried
        if action != "stop":
            result.append({"v": 1, "at": tried[-1]["at"], "event": "retry.scheduled", "phase": "train", "delay": 0.0,
                           "until": tried[-1]["at"], "action": action})
    return result + rows[at:]


def vary(rows: list, number: int, rng: random.Random) -> list:
    state, code = ENDS[number % len(ENDS)]
    failures = []
    host = f"node-{number % 6}"
    if host == SICK:
        failures = [("hardware-node", "exclude", SICK)] * 3
    elif rng.random() < 0.3:
        failures = [(rng.choice(["spot", "comm", "data", "unknown"]), rng.choice(["retry", "fall_back"]), host)]
    events = with_failures(many_runs.later(rows, timedelta(days=-number)), failures)
    events[0] = json.loads(json.dumps(events[0]))
    events[0].update(name=STRANGE if number % 10 == 0 else f"job-{number % 3}", engine=rng.choice(["local", "batch"]))
    events[0]["plan"].update(nodes=1 + number % 3, instance={"type": f"type-{number % 2}"})
    if number % 4:
        events[0]["plan"]["limits"]["price"] = 36.0
    for row in events:
        if row["event"] == "attempt.ended" and row["class"] == "none":
            row["hosts"] = [host]
    if number == 5:
        return events[:-1]
    if number == 12:
        events.insert(-1, {"v": 1, "at": events[-1]["at"], "event": "limit.reached", "limit": "deadline", "reason": "late"})
        state, code = "refused", 5
    events[-1].update(state=state, exit_code=code, reason="why")
    return events


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("stats"))
    project.write(name="m5", compile={"kind": "none"}, limits={"stall": "none"})
    project.run("--id", "run-real")
    project.journal = project.state / "stoker"
    rows, rng = many_runs.rows_of(project.journal, "run-real"), random.Random(1)
    project.made = {"run-real": rows}
    with contextlib.closing(sqlite3.connect(project.journal / "journal.db")) as db, db:
        for number in range(1, RUNS):
            events = vary(rows, number, rng)
            many_runs.write_rows(db, f"run-{number:03}", events)
            project.made[f"run-{number:03}"] = events
    return project


def stats(site, *options):
    return site.ok("--json", "stats", *options).lines


def only(site, *options):
    lines = stats(site, *options)
    assert len(lines) == 1
    return lines[0]


def ended(site):
    return {run: rows for run, rows in site.made.items() if rows[-1]["event"] == "run.ended"}


def test_an_attempt_names_the_machines_of_its_nodes(site):
    host = subprocess.run(["/bin/hostname"], capture_output=True, text=True, check=True).stdout.strip()
    assert [row["hosts"] for row in site.made["run-real"] if row["event"] == "attempt.ended"] == [[host]]


def test_the_counts_are_those_of_the_events(site):
    found = only(site)
    ends = [rows[-1] for rows in ended(site).values()]
    gates = sum(row["exit_code"] == 5 for row in ends)
    wanted = {"runs": RUNS, "going_on": 1, "limit": 1, "gate": gates - 1,
              "refused": sum(row["exit_code"] == 4 for row in ends),
              **{state: sum(row["state"] == state for row in ends) for state in ("succeeded", "failed", "stopped")}}
    assert {name: found[name] for name in wanted} == wanted
    of = wanted["succeeded"] + wanted["failed"] + wanted["refused"]
    assert (found["success"]["of"], found["success"]["rate"]) == (of, pytest.approx(wanted["succeeded"] / of, abs=1e-12))


def test_failures_and_what_followed_are_those_of_the_events(site):
    attempts, acted = Counter(), Counter()
    for rows in site.made.values():
        newest = None
        for row in rows:
            if row["event"] == "attempt.ended" and row["class"] != "none":
                attempts[row["class"]] += 1
                newest = row["class"]
            elif row["event"] == "attempt.ended":
                newest = None
            elif newest and row["event"] in ("retry.scheduled", "run.ended"):
                acted[newest, row.get("action", "stop")] += 1
                newest = None
    found = only(site)
    assert {row["class"]: row["attempts"] for row in found["failures"]} == dict(attempts)
    actions = ("retry", "wait", "exclude", "fall_back", "stop")
    assert {(row["class"], action): row[action] for row in found["failures"] for action in actions if row[action]} == dict(acted)
    assert found["mtbf"]["interrupted"] == sum(count for name, count in attempts.items() if name in INTERRUPTS)
    assert found["mtbf"]["seconds"] == pytest.approx(found["mtbf"]["held"] / found["mtbf"]["interrupted"])


def test_time_and_money_are_the_sum_of_what_status_says(site):
    wall, usd, unpriced, runs = Counter(), Counter(), 0, ended(site)
    for run in runs:
        status = site.status(run)
        wall.update(status["ledger"])
        usd.update(status["cost"]["bins"] if "cost" in status else {})
        unpriced += "cost" not in status
    with without(site, "run-005"):
        found = only(site)
    assert found["ledger"] == pytest.approx({name: value for name, value in wall.items() if value}, abs=1e-6)
    assert found["cost"]["bins"] == pytest.approx(dict(usd), abs=1e-9)
    assert found["cost"]["accrued"] == pytest.approx(sum(usd.values()), abs=1e-9)
    assert found["cost"]["without_price"] == unpriced
    assert found["goodput"] == pytest.approx(found["held"]["steps"] / found["held"]["total"], abs=1e-12)


@pytest.mark.parametrize("by, key", [("spec", lambda row: row["name"]), ("engine", lambda row: row["engine"]),
                                     ("instance", lambda row: row["plan"].get("instance", {}).get("type", "")),
                                     ("month", lambda row: row["at"][:7])])
def test_groups_are_those_of_the_first_events(site, by, key):
    wanted = Counter(key(rows[0]) for rows in site.made.values())
    rows = stats(site, "--by", by)
    assert [(row["by"], row["group"], row["runs"]) for row in rows] == [(by, name, wanted[name]) for name in sorted(wanted)]
    whole = only(site)
    for name in ("succeeded", "failed", "stopped", "attempts"):
        assert sum(row[name] for row in rows) == whole[name]
    assert sum(row["held"]["total"] for row in rows) == pytest.approx(whole["held"]["total"])


def test_the_machine_that_fails_more_than_its_share_is_named(site):
    rows = stats(site, "--by", "node")
    assert [row["host"] for row in rows if row["suspect"]] == [SICK] == [rows[0]["host"]]
    runs = [rows for rows in site.made.values() if any(row.get("hosts") == [SICK] for row in rows)]
    assert (rows[0]["runs"], rows[0]["failed_runs"], rows[0]["failures"]) == (len(runs), len(runs), 3 * len(runs))
    text = site.ok("stats").out
    assert f"{SICK} fails more than its share: {len(runs)} failed runs, " in text
    assert "at least 2 failed runs, and a chance of at most 1 in 100" in text


def test_summaries_and_events_say_the_same(site):
    """Stoker's own drivers leave the summaries; without them the events are read."""
    ways = [(), ("--by", "spec"), ("--by", "node"), ("--by", "month", "--since", "20d")]
    with without(site, "run-005"):
        site.ok("resume", "--all")
        with contextlib.closing(sqlite3.connect(site.journal / "journal.db")) as db:
            assert db.execute("SELECT count(*) FROM summary").fetchone()[0] == RUNS - 1
        brief = [stats(site, *way) for way in ways]
        assert change(site, "DELETE FROM summary") == RUNS - 1
        assert [stats(site, *way) for way in ways] == brief


def age(site):
    """Gives the summaries the form that they had before there were statistics: jobs/run/journal/summary.c."""
    with contextlib.closing(sqlite3.connect(site.journal / "journal.db")) as db, db:
        for run, head, *parts in db.execute("SELECT run, head, seq, link, begun, line_sum, rest_sum FROM summary").fetchall():
            old = "1" + head.rpartition("\n")[0][1:]
            form = "\n".join(map(str, [run, *parts, old]))
            db.execute("UPDATE summary SET head=?, sum=? WHERE run=?", (old, hashlib.sha256(form.encode()).hexdigest(), run))


def test_a_summary_of_an_earlier_form_is_made_again(site):
    with without(site, "run-005"):
        site.ok("resume", "--all")
        want = only(site)
        age(site)
        assert only(site) == want
        site.ok("resume", "--all")
        with contextlib.closing(sqlite3.connect(site.journal / "journal.db")) as db:
            assert {head[0] for head, in db.execute("SELECT head FROM summary")} == {"2"}
        change(site, "DELETE FROM summary")


def test_since_is_about_the_begin_of_a_run(site):
    found = only(site, "--since", "252h")
    assert found["runs"] == 11
    result = site.ok("stats", "--since", "1s")
    assert "none of the 60 runs is that new" in result.err


def test_csv_is_the_json(site):
    rows = list(csv.DictReader(io.StringIO(site.ok("stats", "--by", "spec", "--csv").out)))
    lines = stats(site, "--by", "spec")
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        assert float(row["success_rate"]) == pytest.approx(line["success"]["rate"], abs=1e-14)
        assert int(row["runs"]) == line["runs"] and float(row["held_steps_s"]) == pytest.approx(line["held"]["steps"], abs=1e-9)
        assert {name: int(value) for name, value in row.items() if name.startswith("failed_") and int(value)} == {
            f"failed_{each['class']}": each["attempts"] for each in line["failures"]}
    assert [row["group"] for row in rows] == [line["group"].replace("\x1b", "\\x1b") for line in lines]
    nodes = list(csv.DictReader(io.StringIO(site.ok("stats", "--by", "node", "--csv").out)))
    assert [row["host"] for row in nodes if row["suspect"] == "true"] == [SICK]


def test_a_text_defines_its_figures(site):
    text = site.ok("stats").out
    for words in ("succeeded / (succeeded + failed + refused by the environment)", "95 % interval (Wilson)",
                  "for which nodes were held", "interrupted attempt", "ENDED THE RUN", "no known price"):
        assert words in text, text
    assert "\x1b" not in site.ok("stats", "--by", "spec").out


def test_a_damaged_run_is_told_and_the_others_are_counted(site):
    change(site, "DELETE FROM event WHERE run='run-007' AND seq=3")
    result = site.stoker("--json", "stats")
    put_back(site, "run-007")
    assert result.code == 4 and "run-007" in result.err, str(result)
    assert result.lines[0]["runs"] == RUNS - 1
    assert only(site)["runs"] == RUNS


@pytest.mark.parametrize("options", [("--by", "colour"), ("--since", "soon"), ("--csv", "--json"), ("one",)])
def test_a_wrong_option_is_one_clear_error(site, options):
    result = site.stoker("stats", *options)
    assert result.code == 2 and (result.err + result.out).count("error") >= 1, str(result)


def test_an_empty_state_has_no_runs(project):
    result = project.ok("stats")
    assert "runs:       0" in result.out and "no runs in" in result.err


def test_a_state_of_objects_is_counted_from_its_events(project):
    project.write(name="m5", compile={"kind": "none"}, limits={"stall": "none"}, resources={"price": 36})
    state = f"dir:{project.root}/shared"
    for run, sets, code in (("good", (), 0), ("bad", ("--set", "command=[/bin/false]", "--set", "retry.attempts=1"), 1)):
        result = project.stoker("--state", state, "run", project.spec_path, "--id", run, *sets)
        assert result.code == code, str(result)
    (row,) = project.ok("--state", state, "--json", "stats").lines
    assert (row["runs"], row["succeeded"], row["failed"], row["success"]["rate"]) == (2, 1, 1, 0.5)
    statuses = [project.ok("--state", state, "--json", "status", run).lines[0] for run in ("good", "bad")]
    assert row["cost"]["accrued"] == pytest.approx(sum(status["cost"]["accrued"] for status in statuses))
