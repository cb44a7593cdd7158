"""Rows of what is kept of a log: readings found, printed, and made a page of."""

import json
import sys
from types import SimpleNamespace

from harness import ROOT, Bench, Goal, Row, expect
from rows_run import LOG_LINES, count_lines, follow_peer, prepare_log

sys.path.insert(0, str(ROOT / "tests/support"))
import readings

READINGS = 1_000_000


def ingest(bench, case):
    """Read and kept, as an agent does it, on one core."""
    case.series = case.workspace / "series"
    case.series.unlink(missing_ok=True)
    _, found = bench.json(bench.program("bench_series"), "ingest", case.log, case.metrics, case.series, "runs/bench/train-1/")
    return LOG_LINES / found["cpu"], found


def check_ingest(bench, case, own, peer):
    kept = readings.kept(case.series.read_bytes())
    # Six numbers in every sixteenth line, and two in another.
    expect(sum(count for _, _, count in kept), LOG_LINES // 16 * (6 + 2), "readings that are kept")
    expect((kept[0][0], kept[-1][1]), (0, case.log.stat().st_size), "the part of the log that is read")


PRINTS = """import sys
for number in range({steps}):
    sys.stdout.write(f"step: {{number}} loss: {{1 / (number + 3)!r}}\\n")
"""


def many_readings(bench: Bench, count: int) -> SimpleNamespace:
    """A run whose log has so many readings."""
    folder = bench.new("readings")
    (folder / "train.py").write_text(PRINTS.format(steps=count // 2))
    (folder / "stoker.yaml").write_text(json.dumps({
        "version": 1, "name": "readings", "command": [sys.executable, "train.py"], "compile": {"kind": "none"},
        "workspace": str(folder / "workspace"), "source": {"include": ["train.py"]},
        "metrics": [{"name": "step", "regex": "^step: ([0-9]+)"}, {"name": "loss", "regex": "loss: ([0-9.eE+-]+)"}]}))
    bench.process(bench.stoker, "--state", folder / "state", "run", folder / "stoker.yaml", "--id", "one", cwd=folder)
    return SimpleNamespace(state=folder / "state", series=folder / "workspace/runs/one/train-1/node-0/series",
                           page=folder / "page.html")


def million_readings(bench: Bench) -> SimpleNamespace:
    return many_readings(bench, READINGS)


def tenth_and_whole(bench: Bench) -> SimpleNamespace:
    """The same log, and the first tenth of it."""
    return SimpleNamespace(whole=bench.once(million_readings), tenth=many_readings(bench, READINGS // 10))


def print_metrics(bench, case):
    wall, result = bench.process(bench.stoker, "--state", case.state, "metrics", "one", "--csv")
    return wall, result.text.splitlines()


def scan_series(bench, case):
    wall, result = bench.process(bench.program("bench_series"), "scan", case.series, "step", "loss")
    return wall, result.text.splitlines()


def check_metrics(bench, case, own, peer):
    expect((len(own) - 1, len(peer)), (READINGS, READINGS), "rows")
    for ours, bare in zip(own[1::9973], peer[::9973], strict=False):
        left, right = ours.split(","), bare.split(",")
        expect((left[:5], float(left[5])), (right[:5], float(right[5])), "a row")


def make_page(bench, case):
    return bench.process(bench.stoker, "--state", case.state, "report", "one", "--output", case.page)


def check_page(bench, case, own, peer):
    """It is a report, which a browser can load, and has the end of the curve."""
    text = case.page.read_text()
    expect((len(text) < 5_000_000, str(READINGS // 2 - 1) in text), (True, True), "a page below 5 MB, with the last step")


def peak_of(of, *words):
    """Peak memory of a command over the whole log, or the tenth of it."""
    def measure(bench, case):
        site = getattr(case, of)
        argv = [site.page if word == "PAGE" else word for word in words]
        return bench.peak(bench.stoker, "--state", site.state, *argv), None
    return measure


def ended_well(bench, case, own, peer):
    """peak() has looked at the exit status."""


PRINTED = ("metrics", "one", "--csv")
PAGED = ("report", "one", "--output", "PAGE")


SERIES_ROWS = [
    Row("ingest", "keep the readings of a log, 8 patterns (lines)", "Python's re", "wc -l", Goal(1e6, True, of_ratio=False), "/s",
        prepare_log, ingest, follow_peer, count_lines, check_ingest, pairs=5),
    Row("metrics", "print 1,000,000 readings", "a bare scan of them", "", Goal(3.0), "s",
        lambda bench: bench.once(million_readings), print_metrics, scan_series, None, check_metrics, pairs=5),
    Row("report", "a page of 1,000,000 readings", "a bare scan of them", "", Goal(3.0), "s",
        lambda bench: bench.once(million_readings), make_page, scan_series, None, check_page, pairs=5),
    Row("metrics-memory", "peak memory of printing 1,000,000 readings", "of printing 100,000", "", Goal(1.1), "B",
        lambda bench: bench.once(tenth_and_whole), peak_of("whole", *PRINTED), peak_of("tenth", *PRINTED), None,
        ended_well, pairs=3),
    Row("report-memory", "peak memory of a page of 1,000,000 readings", "of a page of 100,000", "", Goal(1.1), "B",
        lambda bench: bench.once(tenth_and_whole), peak_of("whole", *PAGED), peak_of("tenth", *PAGED), None,
        ended_well, pairs=3),
]
