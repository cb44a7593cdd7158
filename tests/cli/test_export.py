"""`export`: TensorBoard itself reads what is written for it, and every value that counts is there, at
its step; CSV and JSON lines have all digits of the log."""

import csv
import io
import json
import math
import re
import struct
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

TENSORBOARD = Path(__file__).resolve().parents[1] / "tensorboard"
VALUES = ["0.30000000000000004", "6.25e-05", "-0.1", "nan", "inf", "1e-7", "123456789.125"]
# The first attempt fails after three steps, without a checkpoint: the second makes all of them again.
SCRIPT = f"""
import os
node, attempt = int(os.environ["STOKER_NODE_RANK"]), int(os.environ["STOKER_ATTEMPT"])
print("loss: 9.5 before the first step")
for step, value in enumerate({VALUES!r}, 1):
    print(f"step: {{step}} loss: {{value}} train.rank {{node + step * attempt}}", flush=True)
    if attempt == 1 and step == 3 and node == 0:
        raise SystemExit(1)
"""
METRICS = [{"name": "step", "regex": "^step: ([0-9]+)"}, {"name": "loss", "regex": "loss: ([0-9.a-z-]+)"},
           {"name": "train.rank", "regex": "train.rank ([0-9]+)"}]


@pytest.fixture
def job(project):
    (project.source / "train.py").write_text(SCRIPT)
    project.write(compile={"kind": "none"}, hyperparameters=None, metrics=METRICS, limits={"stall": "none"})
    return project


def read(folder) -> dict:
    python = TENSORBOARD / ".venv/bin/python"
    assert python.exists(), "'./test cli' makes tests/tensorboard/.venv"
    done = subprocess.run([python, TENSORBOARD / "read_events.py", folder], capture_output=True, text=True, cwd=TENSORBOARD)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def single(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def told(project, run, node=0, attempt=2) -> dict:
    """What the log of an attempt says, read without stoker's metrics: {name: [(step, value)…]}."""
    found = {"step": [], "loss": [], "train.rank": []}
    step = -1
    for line in project.ok("logs", run, "--attempt", attempt, "--node", node).out.splitlines():
        words = line.split()
        if words[0] == "step:":
            step = int(words[1])
            found["step"].append((step, float(step)))
            found["train.rank"].append((step, float(words[words.index("train.rank") + 1])))
        if "loss:" in words:
            found["loss"].append((step, float(words[words.index("loss:") + 1])))
    return found


def check(rows: list, wanted: list) -> None:
    assert [step for _, step, _ in rows] == [max(step, 0) for step, _ in wanted]
    assert all(same(value, single(number)) for (_, _, value), (_, number) in zip(rows, wanted, strict=True)), (rows, wanted)


def test_tensorboard_reads_what_counts(job):
    job.run("--id", "tb")
    result = job.ok("export", "tb", "--to", "tensorboard")
    path = job.source / result.out.strip()
    assert path.is_relative_to(job.source / "runs/tb") and "tfevents" in path.name
    runs, wanted = read(job.source / "runs"), told(job, "tb")
    assert list(runs) == ["tb"] and set(runs["tb"]) == set(wanted)
    for name, rows in runs["tb"].items():
        check(rows, wanted[name])
    times = {(row["name"], row["step"]): datetime.fromisoformat(row["at"]).timestamp()
             for row in job.ok("export", "tb", "--to", "jsonl").lines if "step" in row}
    for name, rows in runs["tb"].items():
        assert [at for at, step, _ in rows if step > 0] == [times[name, step] for _, step, _ in rows if step > 0]


def test_the_same_command_renews_the_files(job):
    job.run("--id", "tb")
    job.ok("export", "tb", "logs/curves", "--to", "tensorboard")
    before = {path: path.read_bytes() for path in (job.source / "logs").rglob("*") if path.is_file()}
    job.ok("export", "tb", "logs/curves", "--to", "tensorboard")
    assert {path: path.read_bytes() for path in (job.source / "logs").rglob("*") if path.is_file()} == before
    assert len(before) == 1


def test_every_node_has_curves_of_its_own(job):
    (job.source / "train.py").write_text(SCRIPT.replace("attempt == 1 and", "False and"))
    job.run("--id", "two", "--set", "resources.nodes=2")
    lines = job.ok("--json", "export", "two", "--to", "tensorboard").lines
    assert [(row["node"], row["to"]) for row in lines] == [(0, "tensorboard"), (1, "tensorboard")]
    runs = read(job.source / "runs")
    assert set(runs) == {"two", "two/node-1"}
    for node, name in enumerate(["two", "two/node-1"]):
        wanted = told(job, "two", node, attempt=1)
        assert sum(map(len, wanted.values())) == lines[node]["readings"]
        for tag, rows in runs[name].items():
            check(rows, wanted[tag])


def test_without_steps_the_values_are_numbered(job):
    job.write(metrics=METRICS[1:])
    job.run("--id", "plain")
    job.ok("export", "plain", "--to", "tensorboard")
    found = read(job.source / "runs")["plain"]["loss"]
    rows = [row for row in job.ok("export", "plain", "--to", "jsonl").lines if row["name"] == "loss"]
    assert [step for _, step, _ in found] == list(range(len(rows)))
    assert not any("step" in row for row in rows)


def test_epochs_are_steps_where_there_are_no_others(job):
    (job.source / "train.py").write_text("for part in range(9): print(f'epoch {part / 3} loss {part}')\n")
    job.write(metrics=[{"name": "loss", "regex": "loss ([0-9]+)"}, {"name": "epoch", "regex": "epoch ([0-9.]+)"}])
    job.run("--id", "epochs")
    job.ok("export", "epochs", "--to", "tensorboard")
    rows = [(row["step"], row["value"]) for row in job.ok("export", "epochs", "--to", "jsonl").lines if row["name"] == "loss"]
    assert rows == [(part // 3, part) for part in range(9)]
    assert [(step, value) for _, step, value in read(job.source / "runs")["epochs"]["loss"]] == rows


@pytest.mark.parametrize("kind, text", [("csv", "run,attempt,node,at,step,name,value\n"), ("jsonl", "")])
def test_a_run_without_a_reading_has_an_empty_file(job, kind, text):
    job.write(metrics=[{"name": "never", "regex": "nothing of that: ([0-9]+)"}])
    job.run("--id", "bare", code=None)
    file = job.root / "values"
    file.write_text("of an earlier run")
    result = job.ok("export", "bare", file, "--to", kind)
    assert file.read_text() == text and "no such number" in result.err and result.out.strip() == str(file)


def test_lines_have_all_digits_of_what_counts(job):
    job.run("--id", "tb")
    wanted = told(job, "tb")
    rows = list(csv.DictReader(io.StringIO(job.ok("export", "tb", "--to", "csv").out)))
    lines = job.ok("export", "tb", "--to", "jsonl").lines
    assert len(rows) == len(lines) == sum(map(len, wanted.values()))
    assert {row["run"] for row in rows} == {"tb"} and {row["attempt"] for row in rows} == {"2"}
    for name, values in wanted.items():
        assert all(same(float(row["value"]), value) and row["step"] == ("" if step < 0 else str(step))
                   for row, (step, value) in zip([row for row in rows if row["name"] == name], values, strict=True))
        assert all(same(float(line["value"]), value) and line.get("step", -1) == step and line["counts"]
                   for line, (step, value) in zip([line for line in lines if line["name"] == name], values, strict=True))
    for kind in ("csv", "jsonl"):
        file = job.source / f"out/values.{kind}"
        (line,) = job.ok("--json", "export", "tb", file, "--to", kind).lines
        assert line == {"run": "tb", "to": kind, "path": str(file), "readings": len(rows)}
        assert file.read_text() == job.ok("export", "tb", "--to", kind).out
        assert file.read_text() == job.ok("export", "tb", "-", "--to", kind).out
        assert not (job.source / "-").exists()
        assert [path.name for path in file.parent.iterdir() if path.name.startswith(".")] == []


def test_a_wrong_command_is_one_clear_error(job):
    job.run("--id", "tb")
    for options, code, words in [((), 2, "--to tensorboard"), (("--to", "excel"), 2, "excel"),
                                 (("--json", "--to", "csv"), 2, "--json"), (("-", "--to", "tensorboard"), 2, "stdout"),
                                 (("/proc/none/x", "--to", "csv"), 4, "/proc/none")]:
        result = job.stoker("export", "tb", *options)
        assert result.code == code and words in result.err + result.out, str(result)
    assert job.stoker("export", "other", "--to", "csv").code == 9
    job.write(metrics=None)
    job.run("--id", "bare")
    result = job.stoker("export", "bare", "--to", "tensorboard")
    assert result.code == 4 and re.search("metrics", result.err), str(result)
