"""`benchmark: true` and `debug: true`: what such a run has more and less, and where it counts."""

import json
import math
import re
import time
from datetime import datetime

import pytest
import stoker as cli
from project import Project

ROW = re.compile(r'^DEBUG\(([A-Z| ]+), "([A-Z_0-9]+)", "([^"]+)", "([^"]+)"\)$', re.M)
TABLE = ROW.findall((cli.ROOT / "jobs/cache/kinds/debug.def").read_text())

# Tells the variables that it was asked for, and saves a checkpoint in the middle; then it waits until the file is there.
SCRIPT = """\
import os, pathlib, sys, time
for name in sys.argv[1].split(","):
    print("variable:", name, os.environ.get(name), flush=True)
last = int(os.environ.get("STEPS", 30))
for step in range(1, last + 1):
    time.sleep(float(os.environ.get("WAIT", 0)))
    if os.environ.get("SAVES") and step == last // 2:
        made = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"], f"step-{step}")
        made.mkdir()
        for part in range(8):
            (made / f"part-{part}").write_text("x" * 1000)
            time.sleep(float(os.environ["SAVES"]) / 8)
    print("step:", step, "loss:", 1 / step, flush=True)
    gate = pathlib.Path(os.environ.get("GATE", "/"))
    while step == last and not gate.exists():
        time.sleep(0.05)
"""


def variables(kind) -> dict:
    """Those of a debug run, by the table."""
    return {name: value for kinds, name, value, _ in TABLE if kind in [word.strip() for word in kinds.split("|")]}


@pytest.fixture
def site(tmp_path):
    made = Project(tmp_path)
    (made.source / "train.py").write_text(SCRIPT)
    names = ",".join(sorted({row[1] for row in TABLE} | {"JAX_COMPILATION_CACHE_DIR"}))
    made.write(compile=None, hyperparameters=None, checkpoint=None, command=["python3", "train.py", names],
               metrics=[{"name": "step", "regex": "^step: ([0-9]+)"}, {"name": "loss", "regex": "loss: (\\S+)"}])
    return made


def told(site, run) -> dict:
    rows = re.findall(r"^variable: (\S+) (.*)$", site.ok("logs", run).out, re.M)
    return {name: value for name, value in rows if value != "None"}


def at(text) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_each_row_has_a_source_and_the_documentation_names_it(site):
    head = (cli.ROOT / "jobs/cache/kinds/debug.def").read_text().split("*/")[0]
    docs = (cli.ROOT / "docs/workflow.md").read_text()
    assert len(TABLE) == len({row[1] for row in TABLE}) >= 15
    for _, name, value, _ in TABLE:
        assert name in head, name
        assert f"`{name}={value}`" in docs, name


@pytest.mark.parametrize("kind", ["none", "jax", "neuron"])
def test_a_debug_run_has_the_variables_of_its_kind_and_no_cache(site, kind):
    cache = site.root / "cache"
    if kind != "none":
        site.write(compile={"kind": kind, "cache_url": str(cache)})
    want = variables(kind.upper())
    planned, = site.ok("--json", "plan", site.spec_path, "--set", "debug=true").lines
    assert planned["debug"] == {"kind": kind, "variables": want}
    assert planned["cache"]["verdict"] == "none" and [row["phase"] for row in planned["phases"]] == ["train"]
    site.run("--id", "one", "--set", "debug=true")
    assert told(site, "one") == want
    assert site.attempts("one") == [("train", 1)]
    assert not cache.exists(), list(cache.iterdir())
    status = site.status("one")
    assert status["debug"] is True and "benchmark" not in status
    assert "debug run" in site.ok("status", "one").out


def test_what_the_spec_sets_itself_stays(site):
    site.write(env={"NCCL_DEBUG": "WARN"})
    site.run("--id", "one", "--set", "debug=true")
    assert told(site, "one") == {**variables("NONE"), "NCCL_DEBUG": "WARN"}
    site.run("--id", "two")
    assert told(site, "two") == {"NCCL_DEBUG": "WARN"}


def test_a_debug_run_is_in_no_comparison(site, tmp_path):
    site.run("--id", "plain")
    site.run("--id", "bad", "--set", "debug=true")
    for pair in (("plain", "bad"), ("bad", "plain"), ("bad",)):
        result = site.stoker("compare", *pair)
        assert result.code == 4 and "run bad has 'debug: true': a debug run is in no comparison" in result.err
    page = tmp_path / "page.html"
    site.ok("report", "plain", "bad", "--output", page)
    text = page.read_text()
    assert "bad against plain: not compared, as bad is a debug run." in text and "This is a debug run" in text
    # Its money and hours count, its success does not.
    stats, = site.ok("--json", "stats").lines
    assert (stats["runs"], stats["succeeded"], stats["debug"], stats["success"]["of"]) == (2, 1, 1, 1)
    assert stats["attempts"] == 1
    assert "1 debug runs" in site.ok("stats").out


def test_a_cell_of_a_sweep_is_no_debug_run(site):
    site.write(sweep={"list": [{"debug": True}, {"env.WAIT": "0"}]})
    result = site.stoker("sweep", site.spec_path, "--id", "swept")
    assert result.code == 3 and "cell 1 (debug=true)" in result.err and "in no comparison" in result.err


def test_contradictions_are_errors_of_the_spec(site):
    site.write(benchmark=True, debug=True)
    result = site.stoker("validate", site.spec_path)
    assert result.code == 3 and "'debug' and 'benchmark' exclude each other" in result.err
    site.write(benchmark=None, sweep={"grid": {"env.X": ["1", "2"]}})
    result = site.stoker("validate", site.spec_path)
    assert result.code == 3 and "a debug run is in no comparison" in result.err


def saved(site, run) -> list:
    ended, = site.events(run, "attempt.ended")
    return [(at(row["from"]), at(row["to"])) for row in ended.get("saves", [])]


def test_the_saving_of_a_benchmark_is_in_no_step_time_and_nothing_is_copied_beside_it(site, tmp_path):
    target, gate = tmp_path / "target", tmp_path / "gate"
    site.write(env={"SAVES": "1", "GATE": str(gate), "STEPS": "100", "WAIT": "0.1"},
               checkpoint={"url": str(target), "kind": "files"})
    bench = site.start("--json", "run", site.spec_path, "--id", "bench", "--set", "benchmark=true")
    while not any("saves" in json.loads(path.read_text()).get("checkpoint", {})
                  for path in site.state.rglob("runs/bench/train-1/node-0/report.json")):
        assert bench.poll() is None
        time.sleep(0.1)
    plain = site.start("--json", "run", site.spec_path, "--id", "plain")
    while not any(row["event"] == "checkpoint.complete" for row in site.stoker("events", "plain").lines):
        assert plain.poll() is None
        time.sleep(0.1)
    # What is there of the one that saved later is not there of the one that saved before.
    assert list(target.glob("plain/**/part-*")) and not list(target.glob("bench/**/part-*"))
    gate.touch()
    assert cli.finish(bench).code == 0 and cli.finish(plain).code == 0
    assert len(list(target.glob("bench/**/part-*"))) == 8
    status = site.status("bench")
    assert status["checkpoint"]["step"] == 50 and status["benchmark"] is True
    assert ", benchmark)" in site.ok("status", "bench").out
    assert not saved(site, "plain")
    saves = saved(site, "bench")
    assert saves and all(begin < end for begin, end in saves)
    rows = [(row["step"], at(row["at"])) for row in site.ok("--json", "metrics", "bench").lines if row["name"] == "step"]
    pairs = list(zip(rows, rows[1:], strict=False))
    spans = [(b[0] - a[0], b[1] - a[1]) for a, b in pairs
             if a[0] >= 10 and not any(begin <= b[1] and a[1] <= end for begin, end in saves)]
    result = site.stoker("--json", "compare", "bench", "plain")
    first, second = result.lines
    assert first["steps"] == sum(count for count, _ in spans) < second["steps"] == 90
    assert spans and math.isclose(first["step_seconds_mean"], sum(s for _, s in spans) / first["steps"], rel_tol=1e-6)
    # The step in which it saved is none of them.
    assert not any(a[0] < 50 <= b[0] and (b[0] - a[0], b[1] - a[1]) in spans for a, b in pairs)
    assert "some of the runs are benchmarks" in result.err
    assert "in which the command saved" in site.stoker("compare", "bench").err
