"""`list`: columns that fit a terminal, runs chosen and sorted, and summaries that say what the events
say, or are not used."""

import contextlib
import hashlib
import json
import re
import shutil
import signal
import sqlite3
from datetime import UTC, datetime, timedelta

import many_runs
import pytest
import stoker as cli
from project import Project
from terminal import Terminal, columns_of

WIDE, RTL = "訓練ジョブ訓練ジョブ訓練ジョブ", "אימון-מודל-עברית-ארוך"
IDS = ["run-new", "run-fail", "run-stop", "run-alone", "run-rtl"]


def change(state, sql, *values):
    with contextlib.closing(sqlite3.connect(state / "journal.db")) as db, db:
        return db.execute(sql, values).rowcount


def hyper(rows, **values):
    """The run with other hyperparameters, and a variable that looks like a secret."""
    plan = json.loads(json.dumps(rows[0]["plan"]))
    plan["spec"]["hyperparameters"] = values
    plan["spec"]["env"] = {"API_TOKEN": f"geheim-{values['lr']}"}
    return [dict(rows[0], plan=plan), *rows[1:]]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Five runs: a new one that really ran, one that failed and one that was stopped with a price, one that
    its driver left, and one with a name from right to left."""
    project = Project(tmp_path_factory.mktemp("list"))
    project.write(name="m5", compile={"kind": "none"}, resources={"price": 36}, limits={"stall": "none"})
    project.run("--id", "run-new")
    project.journal = project.state / "stoker"
    rows = many_runs.rows_of(project.journal, "run-new")
    made = {
        "run-fail": many_runs.later(hyper(rows, lr=0.1, depth=2), timedelta(hours=-3)),
        "run-stop": many_runs.later(hyper(rows, lr=0.2, depth=2), timedelta(days=-5)),
        "run-alone": many_runs.later([row for row in rows if row["event"] != "run.ended"], timedelta(days=-9)),
        "run-rtl": many_runs.later(rows, timedelta(days=-40)),
    }
    made["run-fail"][-1].update(state="failed", exit_code=1, reason="it broke")
    made["run-stop"][-1].update(state="stopped", exit_code=6, reason="asked")
    made["run-alone"][0].update(name=WIDE)
    made["run-rtl"][0].update(name=RTL, engine="batch")
    many_runs.add(project.journal, made)
    yield project


def ids(result) -> list:
    return [line["run"] for line in result.lines]


def texts(result) -> list:
    return [line.split()[0] for line in result.out.splitlines()[1:]]


CHOICES = [
    ((), IDS),
    (("--status", "failed"), ["run-fail"]),
    (("--status", "failed,stopped"), ["run-fail", "run-stop"]),
    (("--status", "no-driver"), ["run-alone"]),
    (("--status", "no driver,succeeded"), ["run-new", "run-alone", "run-rtl"]),
    (("--status", "running"), []),
    (("--state", "failed"), ["run-fail"]),
    (("--state", "no-driver,failed"), ["run-fail", "run-alone"]),
    (("--name", "m5"), ["run-new", "run-fail", "run-stop"]),
    (("--name", "m?"), ["run-new", "run-fail", "run-stop"]),
    (("--name", "訓*"), ["run-alone"]),
    (("--engine", "batch"), ["run-rtl"]),
    (("--engine", "local", "--status", "succeeded"), ["run-new"]),
    (("--since", "1d"), ["run-new", "run-fail"]),
    (("--since", (datetime.now(UTC) - timedelta(days=6)).strftime("%Y-%m-%d")), ["run-new", "run-fail", "run-stop"]),
    (("--limit", "2"), IDS[:2]),
    (("--sort", "age"), IDS),
    (("--sort", "-age"), IDS[::-1]),
    (("--sort", "-age", "--limit", "1"), ["run-rtl"]),
    (("--sort", "name"), ["run-new", "run-fail", "run-stop", "run-rtl", "run-alone"]),
    (("--sort", "state"), ["run-fail", "run-alone", "run-stop", "run-new", "run-rtl"]),
    (("--sort", "state", "--name", "m5"), ["run-fail", "run-stop", "run-new"]),
    (("--sort=-duration", "--status", "no-driver,failed"), ["run-fail", "run-alone"]),
    (("--sort", "duration", "--limit", "1"), ["run-alone"]),
]


@pytest.mark.parametrize("options, wanted", CHOICES, ids=lambda value: " ".join(value) or "all")
def test_runs_are_chosen_and_sorted(site, options, wanted):
    assert ids(site.ok("--json", "list", *options)) == wanted
    result = site.ok("list", *options)
    assert texts(result) == wanted
    assert wanted or "none of the 5 runs" in result.err


WRONG = [
    (("--status", "lost"), ["lost", "running", "no driver"]),
    (("--status", "failed,"), ["''", "succeeded"]),
    (("--sort", "colour"), ["colour", "duration", "'-'"]),
    (("--limit", "0"), ["--limit"]),
    (("--limit", "many"), ["--limit", "many"]),
    (("--since", "soon"), ["--since", "soon"]),
    (("--engine", "abacus"), ["abacus", "stoker help"]),
    (("--name",), ["--name", "PATTERN"]),
    (("--watch",), ["--watch", "terminal"]),
    (("--watch", "--json"), ["--watch", "--json"]),
    (("--diff",), ["--diff", "m5", "--name"]),
    (("--prune", "30d", "--name", "m5"), ["--prune", "--name"]),
]


@pytest.mark.parametrize("options, words", WRONG, ids=lambda value: " ".join(value))
def test_a_wrong_option_is_one_clear_error(site, options, words):
    result = site.stoker("list", *options)
    assert result.code == 2, str(result)
    assert len(re.findall("^error: ", result.err, re.MULTILINE)) <= 1, str(result)
    assert result.cure or "hint" in result.out, str(result)
    assert all(word in result.err + result.out for word in words), str(result)


def test_a_pipe_gets_every_column_and_whole_names(site):
    head, *rows = site.ok("list").out.splitlines()
    assert head.split() == ["RUN", "NAME", "STATE", "PHASE", "ENGINE", "CREATED", "DURATION", "COST", "DRIVER"]
    assert WIDE in "\n".join(rows) and RTL in "\n".join(rows)
    for row in rows:
        assert re.search(r" \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", row), row


@pytest.mark.parametrize("columns, rows", [(120, 40), (80, 24), (40, 10), (20, 5)])
@pytest.mark.parametrize("env", [{}, {"TERM": "dumb"}, {"NO_COLOR": "1"}, {"LANG": "C", "LC_ALL": "C"}],
                         ids=["colour", "dumb", "no-color", "C"])
def test_no_row_is_wider_than_the_terminal(site, columns, rows, env):
    settings = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **env}
    with Terminal("list", env=site.env(**settings), cwd=site.source, columns=columns, rows=rows) as one:
        assert one.finish() == 0
        lines = one.raw.replace("\r", "").splitlines()
        table = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines[:6]]
        for line in table:
            assert sum(map(columns_of, line)) <= columns, (line, columns)
        assert [line.split()[0] for line in table[1:]] == IDS, one.raw
        assert bool(one.screen.colors) == (env == {}) or env.get("LANG") == "C"
        head = table[0].split()
        if columns >= 40:
            assert {"RUN", "STATE", "AGE"} <= set(head)
        if columns == 120:
            assert {"NAME", "DURATION", "COST", "PHASE", "ENGINE"} <= set(head)
            assert "3h" in table[2].split() and "5d" in table[3].split() and "40d" in table[5].split()
        if env.get("LANG") == "C":
            assert "".join(table).isascii()


def test_settings_that_differ_are_columns(site):
    lines = site.ok("--json", "list", "--diff", "--name", "m5", "--status", "failed,stopped").lines
    assert [line["settings"]["hyperparameters.lr"] for line in lines] == [0.1, 0.2]
    assert all("hyperparameters.depth" not in line["settings"] for line in lines), "it is the same in both"
    result = site.ok("list", "--diff", "--name", "m5")
    assert "hyperparameters.lr" in result.out.splitlines()[0] and "0.2" in result.out
    for text in (result.out, json.dumps(lines)):
        assert "geheim" not in text, "a value that looks like a secret is not told"
        assert "API_TOKEN" in text, "that it differs is"
    same = site.ok("list", "--diff", "--name", "m5", "--status", "failed,stopped", "--limit", "1")
    assert "lr" not in same.out.splitlines()[0]


def test_sizes_are_those_of_the_folders(site):
    [line] = site.ok("--json", "list", "--size", "--limit", "1").lines
    folder = [*(site.journal / "runs/run-new").rglob("*"), *(site.journal / "workspace/runs/run-new").rglob("*")]
    assert line["size_bytes"] == sum(path.lstat().st_size for path in folder if not path.is_dir())
    assert "SIZE" in site.ok("list", "--size").out.splitlines()[0]
    assert ids(site.ok("--json", "list", "--sort", "size"))[0] == "run-new"


def states(result) -> list:
    return [(line["run"], line["state"]) for line in result.lines]


@pytest.fixture
def copy(site, tmp_path):
    """The same state, to be spoilt."""
    place = tmp_path / "state"
    shutil.copytree(site.journal, place, symlinks=True, ignore=shutil.ignore_patterns("workspace"))
    return place


def summaries(state) -> list:
    with contextlib.closing(sqlite3.connect(state / "journal.db")) as db:
        return sorted(run for run, in db.execute("SELECT run FROM summary"))


def test_a_summary_is_made_once_and_says_what_the_events_say(site, copy):
    assert summaries(copy) == ["run-new"], "the driver made it at the end of the run"
    before = site.ok("--json", "list", "--limit", "3", "--state", copy).lines
    table = site.ok("list", "--limit", "3", "--state", copy).out
    whole = [site.ok("--json", "--state", copy, "status", run).lines for run in IDS[:3]]
    change(copy, "UPDATE event SET body=replace(body, '\"run\":\"run-alone\"', '\"run\":\"run-gone\"') "
                 "WHERE run='run-alone'")  # it is not resumed: it cannot be read
    assert site.stoker("--state", copy, "resume", "--all").code == 4
    assert summaries(copy) == sorted(set(IDS) - {"run-alone"})
    assert site.stoker("--json", "list", "--limit", "3", "--state", copy).lines == before
    assert site.stoker("list", "--limit", "3", "--state", copy).out == table
    assert [site.ok("--json", "--state", copy, "status", run).lines for run in IDS[:3]] == whole
    change(copy, "DROP TABLE summary")
    assert site.stoker("--json", "list", "--limit", "3", "--state", copy).lines == before


SPOILT = {
    "head": "UPDATE summary SET head=replace(head, 'succeeded', 'failed')",
    "line": "UPDATE summary_rest SET line=replace(line, 'succeeded', 'failed')",
    "number": "UPDATE summary SET seq=seq-1",
    "link": "UPDATE summary SET link=replace(link, substr(link, 1, 1), 'x')",
    "of another run": "UPDATE summary SET run='run-fail'",
    "garbage": "UPDATE summary SET head=x'ff00', begun=''",
}


@pytest.mark.parametrize("sql", SPOILT.values(), ids=SPOILT)
def test_a_summary_that_does_not_fit_is_none(site, copy, sql):
    assert change(copy, sql) == 1
    for argv in (("list",), ("-v", "list")):
        listed = states(site.ok("--json", "--state", copy, *argv))
        assert listed[:2] == [("run-new", "succeeded"), ("run-fail", "failed")]
    assert site.ok("--json", "--state", copy, "status", "run-new").lines[0]["state"] == "succeeded"


def test_a_summary_in_another_form_is_whole_and_yet_not_used(site, copy):
    """As a later version may write it."""
    table = site.ok("list", "--state", copy).out
    with contextlib.closing(sqlite3.connect(copy / "journal.db")) as db, db:
        run, seq, link, begun, line, rest = db.execute(
            "SELECT run, seq, link, begun, line_sum, rest_sum FROM summary").fetchone()
        for head in ("2\na\nb\nc\nd\ne\nf\ng", "1\na\nb", "1\na\nb\nc\nd\ne\nf\ng\nh", "1", "x"):
            form = "\n".join((run, str(seq), link, begun, line, rest, head))
            db.execute("UPDATE summary SET head=?, sum=?", (head, hashlib.sha256(form.encode()).hexdigest()))
            db.commit()
            assert site.ok("list", "--state", copy).out == table, head


@pytest.mark.parametrize("foreign", ["a_" * 30, "r" * 60, "run-fail" + "x" * 50])
def test_rows_of_a_foreign_id_are_passed_over(site, copy, foreign):
    """The runs behind them are found, and the search ends."""
    before = states(site.ok("--json", "--state", copy, "list"))
    with contextlib.closing(sqlite3.connect(copy / "journal.db")) as db, db:
        db.execute("INSERT INTO event VALUES(?, 1, '{}')", (foreign,))
    assert states(site.ok("--json", "--state", copy, "list")) == before


def test_a_summary_of_an_earlier_end_is_none(site, copy):
    """As an older version would leave it that forgets a run and begins it again."""
    rows = many_runs.rows_of(copy, "run-fail")
    change(copy, "DELETE FROM event WHERE run='run-new'")
    many_runs.add(copy, {"run-new": rows})
    assert dict(states(site.ok("--json", "--state", copy, "list")))["run-new"] == "failed"


def test_damage_behind_a_summary_is_found_by_whoever_reads(site, copy):
    """`list` reads no events of a run that has ended; -v does, and so do status and the like."""
    change(copy, "UPDATE event SET body=replace(body, 'attempt.claimed', 'attempt.clammed') WHERE run='run-new'")
    assert ("run-new", "succeeded") in states(site.ok("--json", "--state", copy, "list"))
    for argv in (("status", "run-new"), ("events", "run-new"), ("-v", "list")):
        result = site.stoker("--state", copy, *argv)
        assert result.code == 4 and "run run-new" in result.err and "--salvage" in result.cure, str(result)
    assert ("run-new", "damaged") in states(site.stoker("-v", "--json", "--state", copy, "list"))


def test_the_end_of_a_run_that_is_lost_is_noticed(site, copy):
    change(copy, "DELETE FROM event WHERE run='run-new' AND seq=(SELECT max(seq) FROM event WHERE run='run-new')")
    result = site.stoker("--json", "--state", copy, "list")
    assert result.code == 4 and ("run-new", "damaged") in states(result), str(result)


def test_rm_takes_the_summary_too(site, copy):
    site.ok("--state", copy, "rm", "run-new")
    assert summaries(copy) == []


@pytest.fixture
def watching(site, copy):
    open_ones = []

    def start(*options, columns=80, rows=24):
        one = Terminal("--state", copy, "list", "--watch", *options, cwd=site.source, columns=columns, rows=rows,
                       env=site.env(TERM="xterm-256color", LANG="C.UTF-8"))
        open_ones.append(one)
        return one

    yield start
    for one in open_ones:
        one.__exit__()


@pytest.mark.parametrize("columns, rows", [(80, 24), (40, 10), (40, 4)])
def test_watch_redraws_in_place_until_ctrl_c(watching, copy, columns, rows):
    one = watching(columns=columns, rows=rows).until("run-new")
    assert "run-rtl" in one.screen.text or f"and {5 - (rows - 3)} more" in one.screen.text, one.screen.text
    change(copy, "DELETE FROM event WHERE run='run-new'")
    change(copy, "DELETE FROM summary")
    for path in (copy / "runs/run-new").glob("*"):
        path.unlink() if path.is_file() else shutil.rmtree(path)
    one.until(lambda: "run-new" not in one.screen.text)
    assert one.screen.text.count("STATE") == 1 and one.screen.overflows == 0, one.screen.text
    one.signal(signal.SIGINT)
    assert one.finish() == 0
    assert one.screen.cursor and one.screen.wrap and one.echoes and not one.screen.foreign


def test_watch_goes_on_though_the_state_cannot_be_read(watching, copy):
    one = watching(columns=200).until("run-new")
    away = copy.with_name("away")
    (copy / "journal.db").rename(away)
    one.until(lambda: "succeeded" not in one.screen.text and "is damaged" in one.screen.text)
    away.rename(copy / "journal.db")
    one.until("run-new")


def test_engines_are_asked_about_attempts_under_way(project):
    project.extra("""
import os, pathlib, time
def step(number, args):
    while os.environ["STOKER_PHASE"] == "train" and not pathlib.Path({!r}).exists():
        time.sleep(0.02)
""".format(str(project.root / "go")))
    project.run("--id", "one", "--detach")
    try:
        cli.until(lambda: "running" in [line.get("live", {}).get("state") for line in
                                       project.ok("--json", "list", "--live").lines if line["phase"] == "train"])
        said = project.ok("list", "--live").out.splitlines()
        assert "ENGINE SAYS" in said[0] and said[1].split()[-1] == "running"
    finally:
        (project.root / "go").touch()
    cli.until(lambda: project.status("one")["state"] == "succeeded")
    [line] = project.ok("--json", "list", "--live").lines
    assert "live" not in line, "nothing is under way any more"
