"""`report`: what the page holds, by computations of the tests' own; outside text in it, files that are in the
way, runs without metrics and runs that go on. test_report_page.py opens it in a browser."""

import html
import json
import re

import pytest
import stoker as cli
from project import Project

METRICS = [{"name": "step", "regex": "^step: ([0-9]+)"}, {"name": "loss", "regex": "loss: (\\S+)"}]
AGAIN = """\
import os, sys, time
last = os.environ["STOKER_ATTEMPT"] == "2"
for step in range(1, 41 if last else 31):
    time.sleep(0.01)
    print(f"step: {step} loss: {(1 if last else 2) / step!r}", flush=True)
if not last:
    print("RuntimeError: NRT_EXEC_HW_ERR <b>the device</b>", flush=True)
    sys.exit(9)
"""
EVIL = "</script><script>alert(1)</script>\\u202egnp.exe\\u2028\\x1b[31m<img src=x onerror=alert(2)>&amp;"


def site_with(root, script, **changes):
    site = Project(root)
    (site.source / "train.py").write_text(script)
    site.write(**{"compile": None, "hyperparameters": None, "checkpoint": None, "metrics": METRICS,
                  "resources": {"price": 36}, **changes})
    return site


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    """A run whose second attempt makes the steps of the first again."""
    site = site_with(tmp_path_factory.mktemp("report"), AGAIN, env={"API_TOKEN": "hush-hush", "FLAGS": "-O1"})
    site.run("--id", "again")
    site.run("--id", "other", "--set", "env.FLAGS=-O2")
    return site


def page_of(site, *runs, name="page.html") -> str:
    path = site.root / name
    path.unlink(missing_ok=True)
    site.ok("report", *runs, "--output", path)
    return path.read_text()


def data_of(page) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])


def chart_of(page, title) -> dict:
    return next(chart for chart in data_of(page)["charts"] if chart["title"] == title)


def texts(page) -> str:
    """The text of a page, without its programs, style and data."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", bare))


# ---- what it holds ----

def test_curves_are_the_readings_and_what_was_superseded_is_marked(again):
    page = page_of(again, "again")
    rows = [row for row in again.ok("--json", "metrics", "again", "loss").lines]
    chart = chart_of(page, "loss")
    counts, = [line for line in chart["lines"] if not line.get("dashed")]
    gone, = [line for line in chart["lines"] if line.get("dashed")]
    # A page has 15 digits of each value.
    assert counts["points"] == [pytest.approx([row["step"], row["value"]], rel=1e-14) for row in rows if row["counts"]]
    assert gone["points"] == [pytest.approx([row["step"], row["value"]], rel=1e-14) for row in rows if not row["counts"]]
    assert (len(counts["points"]), len(gone["points"])) == (40, 30)
    assert chart["marks"] == [{"x": 1, "words": "attempt 2"}]
    assert chart["bands"] == [{"from": 1, "to": 30}]
    assert "made again after a resume" in chart["caption"] and "which do not count" in chart["caption"]


def test_the_distribution_holds_every_measured_step(again):
    steps = chart_of(page_of(again, "other"), "distribution of step times")
    shares = [share for _, share in steps["lines"][0]["points"]]
    # All but the slowest of a hundred.
    assert 98 <= sum(shares) <= 100.0001, shares


def test_a_page_tells_what_was_asked_and_what_came_of_it(again):
    text = texts(page_of(again, "again"))
    status = again.status("again")
    digest = status and again.events("again", "run.created")[0]["plan"]["source"]["digest"]
    for words in ("fake: run again", "Run again: succeeded", "env.FLAGS", "-O1", digest,
                  "RuntimeError: NRT_EXEC_HW_ERR <b>the device</b>", "train 1", "train 2", "replayed",
                  "One run: it is compared with nothing", "No graph was compiled while the training ran",
                  "dygraphs is MIT-licenced"):
        assert words in text, words
    for name, seconds in status["ledger"].items():
        assert name == "total" or seconds == 0 or name in text, name
    assert f"{status['cost']['accrued']:.2f} USD" in text


def test_several_runs_have_the_table_of_compare(again):
    page = page_of(again, "again", "other")
    text = re.sub(r"\s+", " ", texts(page))
    for row in again.ok("--json", "compare", "again", "other").lines:
        assert row["verdict"] in text and f"{row['speed']:.2f}x" in text
    assert 'env.FLAGS: "-O1" -> "-O2"' in text and "one run: no interval" in text
    assert {line["name"] for line in chart_of(page, "loss")["lines"]} >= {"again", "other"}


def test_secrets_stay_away_and_the_spec_can_be_run_again(again):
    page = page_of(again, "again", "other")
    assert "hush-hush" not in page
    spec = html.unescape(re.search(r'<pre tabindex="0" aria-label="spec">(.*?)</pre>', page, re.DOTALL)[1])
    assert json.loads(spec)["name"] == "fake"
    (again.source / "repeat.json").write_text(spec)
    again.ok("validate", again.source / "repeat.json")


# ---- outside text ----

def test_outside_text_is_inert(tmp_path):
    evil = EVIL.encode().decode("unicode_escape")
    site = site_with(tmp_path, f"print('step: 1 loss: 1', flush=True)\nraise SystemExit({EVIL!r}.encode().decode("
                     "'unicode_escape'))\n", env={"FLAGS": evil}, tags={"team": evil})
    site.run("--id", "evil", code=None)
    page = page_of(site, "evil")
    assert cli.CONTROL.search(page) is None and "\u2028" not in page and "\u2029" not in page
    assert page.count("<script") == page.count("</script") == 3 and "<img" not in page
    assert re.findall(r"\b(?:https?|ftp|wss?|file)://\S*", page) == []
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\(|@import|sourceMappingURL', page) == []
    assert "\\u202egnp.exe" in page and "&lt;img src=x" in page
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy


# ---- many readings ----

def test_a_million_readings_make_a_small_page_that_lost_no_peak(tmp_path):
    script = """\
import sys
for step in range(1, 1000001):
    value = 99.5 if step == 777777 else -7.25 if step == 4321 else "nan" if step == 5 else 1 + step % 1000 / 1000
    sys.stdout.write(f"step: {step} loss: {value}\\n")
"""
    site = site_with(tmp_path, script)
    site.run("--id", "big")
    page = page_of(site, "big")
    assert len(page.encode()) < 5_000_000
    chart = chart_of(page, "loss")
    points = chart["lines"][0]["points"]
    assert 500 < len(points) <= 2002 and points == sorted(points, key=lambda point: point[0])
    assert [777777, 99.5] in points and [4321, -7.25] in points and points[0][0] == 1 and points[-1][0] == 1000000
    assert "Thinned" in chart["caption"] and "1 readings are not finite, the first at 5" in chart["caption"]
    assert re.search(r">1000000<", page)


# ---- files in the way, and other runs ----

def test_a_file_is_replaced_only_if_it_is_a_report(again):
    foreign = again.root / "mine.html"
    foreign.write_text("mine")
    refused = again.stoker("report", "again", "--output", foreign)
    assert refused.code == 4 and "is no report" in refused.err and refused.cure and foreign.read_text() == "mine"
    report = again.root / "replaced.html"
    for _ in range(2):
        again.ok("report", "again", "-o", report)
    again.ok("report", cwd=again.root)
    assert (again.root / "report-other.html").read_text().endswith("</html>\n")


@pytest.mark.parametrize("place", ["no/such/folder/page.html", "."])
def test_a_page_that_cannot_be_written_is_an_error(again, place):
    result = again.stoker("report", "again", "--output", again.root / place)
    assert result.code == 4 and result.cure, result


@pytest.mark.parametrize("argv, code, words", [
    (["nobody"], 9, "nobody"),
    (["again", "again"], 2, "named twice"),
    (["again", "--output", ""], 2, "name of a file"),
    (["again", "--output", "-", "--watch"], 2, "excludes"),
])
def test_wrong_command_lines(again, argv, code, words):
    result = again.stoker("report", *argv)
    assert result.code == code and words in result.err and result.cure, result


def test_without_any_run_there_is_no_report(tmp_path):
    site = Project(tmp_path)
    assert site.stoker("report").code == 9
    assert list(site.source.glob("*.html")) == []


def test_a_page_on_stdout_is_the_page(again):
    out = again.ok("report", "again", "--output", "-").out
    assert out.startswith("<!DOCTYPE html>") and out.endswith("</html>\n")
    made = re.compile(r" at 20\S+Z\. Times")
    assert made.sub("", out) == made.sub("", page_of(again, "again"))


def test_json_names_the_file(again):
    path = again.root / "named.html"
    line, = again.ok("--json", "report", "again", "--output", path).lines
    assert line == {"file": str(path), "size_bytes": path.stat().st_size, "ended": True}


def test_a_run_without_metrics_has_a_page_without_curves(tmp_path):
    site = site_with(tmp_path, "print('fine', flush=True)\n", metrics=None)
    site.run("--id", "bare")
    page = page_of(site, "bare")
    assert data_of(page)["charts"] == []
    assert "There are no curves" in texts(page) and "The spec has no metrics" in texts(page)


# ---- open and watch ----

def test_the_page_is_opened_by_the_desktop_s_program(again, tmp_path):
    assert again.stoker("report", "again", "--open", "-o", tmp_path / "a.html", env={"PATH": str(tmp_path)}).code == 4
    assert not (tmp_path / "a.html").exists()
    opener = tmp_path / "xdg-open"
    opener.write_text(f"#!/bin/sh\nprintf '%s' \"$1\" >{tmp_path}/new && mv {tmp_path}/new {tmp_path}/opened\n")
    opener.chmod(0o755)
    again.ok("report", "again", "--open", "-o", "a.html", cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    cli.until((tmp_path / "opened").exists)
    assert (tmp_path / "opened").read_text() == str(tmp_path / "a.html")


def test_a_page_is_renewed_until_the_run_has_ended(tmp_path):
    gate = tmp_path / "go"
    site = site_with(tmp_path, f"""\
import os, time
print("step: 1 loss: 1", flush=True)
while not os.path.exists({str(gate)!r}):
    time.sleep(0.05)
print("step: 2 loss: 0.5", flush=True)
""")
    site.ok("run", site.spec_path, "--id", "slow", "--detach")
    page = tmp_path / "page.html"
    watch = site.start("--json", "report", "slow", "--watch", page)
    first = json.loads(watch.stdout.readline())
    assert not first["ended"] and data_of(page.read_text())["renewed"]
    assert "This run goes on" in texts(page.read_text())
    gate.touch()
    rest, _ = watch.communicate(timeout=cli.SECONDS)
    assert watch.returncode == 0 and json.loads(rest.splitlines()[-1])["ended"]
    assert "renewed" not in data_of(page.read_text())
    assert chart_of(page.read_text(), "loss")["lines"][0]["points"] == [[1, 1], [2, 0.5]]
