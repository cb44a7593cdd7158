"""`compare`: every figure against a computation of the test's own, from the readings and the events;
what is claimed and what is not; each form; wrong input."""

import csv
import io
import json
import math
import statistics
from datetime import datetime

import pytest
from project import Project

JOIN_MS = 5  # step_times.h

SCRIPT = """\
import os, time
for step in range(1, 1 + int(os.environ.get("STEPS", 30))):
    time.sleep(float(os.environ["WAIT"]))
    print(f"step: {step} loss: {float(os.environ['LOSS']) / step!r} accuracy: {step / 30!r}", flush=True)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two settings, two runs each, and one more on other data."""
    site = Project(tmp_path_factory.mktemp("compare"))
    (site.source / "train.py").write_text(SCRIPT)
    site.write(compile=None, hyperparameters=None, checkpoint=None, resources={"price": 36},
               env={"WAIT": "0.02", "LOSS": "1", "DATASET": "a"},
               metrics=[{"name": "step", "regex": "^step: ([0-9]+)"}, {"name": "loss", "regex": "loss: (\\S+)"},
                        {"name": "accuracy", "regex": "accuracy: (\\S+)"}])
    for number in (1, 2):
        site.run("--id", f"base-{number}")
        site.run("--id", f"fast-{number}", "--set", "env.WAIT=0.01", "--set", "env.LOSS=1.5")
    site.run("--id", "other", "--set", "env.WAIT=0.001", "--set", "env.DATASET=b")
    return site


def at(text) -> int:
    """In milliseconds."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def measured(site, run) -> dict:
    """Figures of a run, by the rule that `compare` prints."""
    rows = site.ok("--json", "metrics", run).lines
    steps = [(row["step"], at(row["at"])) for row in rows if row["name"] == "step"]
    spans = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(steps, steps[1:], strict=False) if a[0] >= 10]
    status, = site.ok("--json", "status", run).lines
    begin = min(at(attempt["started"]) for attempt in status["attempts"])
    return {"steps": sum(count for count, _ in spans),
            "mean": sum(ms for _, ms in spans) / sum(count for count, _ in spans) / 1000,
            "loss": {row["step"]: row["value"] for row in rows if row["name"] == "loss"},
            "reached": next(at(row["at"]) for row in rows if row["name"] == "accuracy" and row["value"] >= 0.5) / 1000
            - begin / 1000,
            "cost": status["cost"]["accrued"], "wall": (at(status["ended"]) - at(status["created"])) / 1000}


def close(a, b, by=1e-9):
    return math.isclose(a, b, rel_tol=by, abs_tol=by)


def test_every_figure_is_what_the_readings_say(runs):
    own = {run: measured(runs, run) for run in ("base-1", "base-2", "fast-1", "fast-2")}
    base, fast = runs.ok("--json", "compare", "base-1", "fast-1", "base-2", "fast-2", "--to", "accuracy>=0.5").lines
    for row, names in ((base, ("base-1", "base-2")), (fast, ("fast-1", "fast-2"))):
        assert row["runs"] == list(names)
        assert row["steps"] == 20
        for key, figure in (("step_seconds_mean", "mean"), ("reached", "reached"), ("wall", "wall"), ("cost", "cost")):
            assert close(row[key], statistics.mean(own[name][figure] for name in names), 1e-6), (key, row)
        assert close(row["step_seconds_mean"], statistics.mean(own[name]["mean"] for name in names))
        assert close(row["reached_cost"], row["reached"] * 36 / 3600) and row["reached_runs"] == 2
    logs = [[-math.log(own[f"{name}-{number}"]["mean"]) for number in (1, 2)] for name in ("base", "fast")]
    assert close(fast["speed"], math.exp(statistics.mean(logs[1]) - statistics.mean(logs[0])))
    squares = sum((value - statistics.mean(group)) ** 2 for group in logs for value in group)
    half = 9.924843200918291 * math.sqrt(squares / 2)  # Student's t, 99 %, 2 degrees of freedom
    assert close(fast["speed_high"], fast["speed"] * math.exp(half), 1e-8)
    assert close(fast["speed_low"], fast["speed"] / math.exp(half), 1e-8)
    assert (fast["value_step"], base["value_step"]) == (30, 30)
    assert close(fast["value"], 1.5 / 30) and close(fast["base_value"], 1 / 30)
    assert close(fast["gap"], 0.5) and fast["gap_step"] == 1
    assert {row["field"]: (row["old"], row["new"]) for row in fast["differences"]} == {
        "env.WAIT": ("0.02", "0.01"), "env.LOSS": ("1", "1.5")}
    assert base["differences"] == [] and base["verdict"] == "baseline"


def test_one_run_of_each_claims_nothing(runs):
    rows = runs.ok("--json", "compare", "base-1", "fast-1").lines
    assert [row["verdict"] for row in rows] == ["baseline", "one run: no interval"]
    assert not any(row["best"] or "speed_low" in row for row in rows)


def test_other_data_is_never_the_best(runs):
    result = runs.ok("compare", "base-1", "other")
    assert "quality: not assessed" in result.out and "quality" in result.err
    rows = runs.ok("--json", "compare", "base-1", "base-2", "other").lines
    assert [row["same_quality"] for row in rows] == [True, False]


def test_each_form_has_the_same_rows(runs):
    names = ("compare", "base-1", "fast-1", "base-2", "fast-2")
    rows = runs.ok("--json", *names).lines
    text = runs.ok(*names, "--csv").out
    assert not text.endswith("\n\n"), "an empty line is no row"
    table = list(csv.DictReader(io.StringIO(text)))
    assert all(close(float(a["step_seconds_mean"]), b["step_seconds_mean"]) for a, b in zip(table, rows, strict=True))
    lines = runs.ok(*names, "--markdown").out.strip().splitlines()
    assert len(lines) == 4 and len({line.count("|") for line in lines}) == 1, lines
    text = runs.ok(*names).out
    change = (rows[1]["speed"] - 1) * 100
    told = f"{change:+.1f} %" if abs(change) < 99.95 else f"{change:+.0f} %"
    assert f"{rows[1]['speed']:.2f}x" in text and told in text, text
    assert 'fast-1: env.LOSS: "1" -> "1.5"; env.WAIT: "0.02" -> "0.01"' in text


def test_a_target_that_is_never_reached(runs):
    rows = runs.ok("--json", "compare", "base-1", "fast-1", "--to", "loss<0.04").lines
    assert ["reached" in row for row in rows] == [True, False] and rows[1]["reached_runs"] == 0
    assert "never" in runs.ok("compare", "base-1", "fast-1", "--to", "loss<0.04").out


def test_a_run_that_is_not_over_is_compared_as_it_is_now(runs):
    runs.run("--id", "held", "--detach", "--set", "env.STEPS=1000", "--set", "env.WAIT=0.05")
    while len(runs.ok("metrics", "held", "step").out.splitlines()) < 20:
        pass
    result = runs.ok("compare", "base-1", "held")
    runs.ok("stop", "held")
    assert "run held has not ended" in result.err
    assert "did not succeed (stopped)" in runs.ok("compare", "base-1", "held").err


@pytest.mark.parametrize("argv, code, words", [
    (("base-1", "no-such"), 9, "no run"),
    (("base-1", "base-1"), 2, "twice"),
    (("base-1", "fast-1", "--to", "accuracy"), 2, "accuracy>=0.95"),
    (("base-1", "fast-1", "--to", "accuracy=>1"), 2, "accuracy>=0.95"),
    (("base-1", "fast-1", "--to", "speed>1"), 4, "has step, loss, accuracy"),
    (("base-1", "fast-1", "--metric", "perplexity"), 4, "has step, loss, accuracy"),
    (("base-1", "base-2", "--break-even"), 2, "two rows"),
    (("base-1", "fast-1", "--csv", "--markdown"), 2, "exclude each other"),
    ((), 2, ""),
])
def test_wrong_input_is_one_clear_error(runs, argv, code, words):
    result = runs.stoker("compare", *argv)
    assert result.code == code and words in result.err and result.cure, str(result)


COUNTS = """\
import os, time
for number in range(1, 1 + int(os.environ["LAST"])):
    time.sleep(float(os.environ["WAIT"]))
    print(f"{os.environ['UNIT']} {number} loss {1 / number!r} samples {number * 48 - 16}", flush=True)
"""


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    """Runs that count their samples, by steps and by epochs."""
    site = Project(tmp_path_factory.mktemp("counting"))
    (site.source / "train.py").write_text(COUNTS)
    metrics = [{"name": "loss", "regex": "loss (\\S+)"}, {"name": "samples", "regex": "samples ([0-9]+)"}]
    site.write(compile=None, hyperparameters=None, checkpoint=None, resources={"price": 36},
               env={"WAIT": "0.02", "LAST": "30", "UNIT": "step"},
               metrics=[{"name": "step", "regex": "^step ([0-9]+)"}, *metrics])
    site.run("--id", "steps")
    site.run("--id", "said", "--set", "samples_per_step=32")
    site.write(env={"WAIT": "0.02", "LAST": "5", "UNIT": "epoch"},
               metrics=[{"name": "epoch", "regex": "^epoch ([0-9.]+)"}, *metrics])
    site.run("--id", "epochs")
    site.write(metrics=[{"name": "epoch", "regex": "^epoch ([0-9.]+)"}])
    site.run("--id", "uncounted")
    return site


def times_of(site, run, name, warm):
    """Steps and seconds that are measured. Readings that were read together, as on a slow machine, are of one time:
    the first of them counts."""
    steps = []
    for row in site.ok("--json", "metrics", run, name).lines:
        if not steps or at(row["at"]) - steps[-1][1] >= JOIN_MS:
            steps.append((row["step"], at(row["at"])))
    spans = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(steps, steps[1:], strict=False) if a[0] >= warm]
    return sum(count for count, _ in spans), sum(ms for _, ms in spans) / 1000


def test_samples_are_those_of_the_spec_or_as_the_log_counts_them(counting):
    (steps,), (said,) = (counting.ok("--json", "compare", run).lines for run in ("steps", "said"))
    for row, run, samples in ((steps, "steps", 48), (said, "said", 32)):
        count, seconds = times_of(counting, run, "step", 10)
        assert row["steps"] == count and close(row["samples_per_second"], samples * count / seconds), row
        assert close(row["samples_per_usd"], row["samples_per_second"] * 100) and "unit" not in row, row
    page = counting.root / "page.html"
    counting.ok("report", "steps", "--output", page)
    assert "samples/s" in page.read_text()


def test_epochs_are_measured_where_there_are_no_steps(counting):
    row, = counting.ok("--json", "compare", "epochs").lines
    count, seconds = times_of(counting, "epochs", "epoch", 1)
    assert (row["unit"], row["steps"]) == ("epoch", count) and 1 <= count <= 4, row
    assert close(row["step_seconds_mean"], seconds / count) and close(row["samples_per_second"], 48 * count / seconds)
    assert "no metric 'step'" in counting.ok("compare", "epochs").err
    both = counting.ok("compare", "steps", "epochs").err  # by their samples
    assert "no metric 'step'" in both and "first 10 steps" in both, both
    page = counting.root / "page.html"
    counting.ok("report", "epochs", "--output", page)
    assert '"x":"epoch"' in page.read_text().replace(" ", "") and "no metric" in page.read_text()


def test_steps_and_epochs_have_nothing_in_common(counting):
    for argv in (("steps", "uncounted"), ("uncounted", "said", "steps")):
        result = counting.stoker("compare", *argv)
        assert result.code == 4 and "uncounted tells its epochs" in result.err and "samples" in result.cure, str(result)


TELLS = """\
import os, time
for number in range(1, 21):
    print(f"step {number} rate {os.environ['RATE']}", flush=True)
    time.sleep(0.01)
"""


def test_a_speed_that_one_log_does_not_tell_is_by_the_clock_for_all_and_said(tmp_path):
    site = Project(tmp_path / "tells")
    (site.source / "train.py").write_text(TELLS)
    site.write(compile=None, hyperparameters=None, checkpoint=None, samples_per_step=8, env={"RATE": "200"},
               metrics=[{"name": "step", "regex": "^step ([0-9]+)"}, {"name": "rate", "regex": "rate (\\S+)"}])
    site.run("--id", "tells")
    site.run("--id", "twice", "--set", "env.RATE=400")
    both = site.ok("compare", "tells", "twice", "--throughput", "rate")
    assert "2.00x" in both.out and "speed: rate, as the log tells it" in both.err, str(both)
    for run, rate in (("zero", "0"), ("nan", "nan")):
        site.run("--id", run, "--set", f"env.RATE={rate}")
        result = site.ok("compare", "tells", run, "--throughput", "rate")
        assert f"run {run} tells no 'rate' above 0" in result.err and "as the log tells it" not in result.err, str(result)
        for row in site.ok("--json", "compare", "tells", run, "--throughput", "rate").lines:
            assert close(row["samples_per_second"], 8 / row["step_seconds_mean"]), row
    for option in ("--throughput", "--step-time"):
        result = site.stoker("compare", "tells", option, "")
        assert result.code == 4 and "no metric ''" in result.err and "step, rate" in result.cure, str(result)


def test_a_run_without_metrics_cannot_be_compared(runs):
    runs.write(compile=None, hyperparameters=None, checkpoint=None, metrics=None, env={"WAIT": "0", "LOSS": "1"})
    runs.run("--id", "bare", "--set", "env.STEPS=1")
    for argv in (("compare", "base-1", "bare"), ("metrics", "bare")):
        result = runs.stoker(*argv)
        assert result.code == 4 and "bare has no metrics" in result.err and "help metrics" in result.cure, str(result)
    error = runs.stoker("--json", "metrics", "bare").lines[-1]["error"]
    assert error["code"] == 4 and json.dumps(error)


def test_runs_of_different_metrics_are_compared_by_what_they_have_and_that_is_said(runs):
    runs.run("--id", "lossless", "--set", 'metrics=[{name: step, regex: "^step: ([0-9]+)"}]', "--set", "env.WAIT=0.02")
    said = runs.ok("compare", "base-1", "lossless", "--json")
    assert "run lossless has no metric 'loss': no value of it is compared" in said.err
    assert close(said.lines[0]["value"], 1 / 30) and "value" not in said.lines[1] and said.lines[1]["steps"] == 20
