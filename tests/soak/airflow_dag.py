#!/usr/bin/env python3
"""The real Airflow runs the DAG that 'stoker export --to airflow' prints, with tests/support/scripted_driver.py
in place of stoker, and comes to the states that tests/support/airflow_dag.py comes to. By hand, because
Airflow is 300 MB:

    python3 -m venv /tmp/airflow && /tmp/airflow/bin/pip install apache-airflow-core==3.3.2 \\
        apache-airflow-providers-standard==1.21.0 jinja2
    /tmp/airflow/bin/python tests/soak/airflow_dag.py build/asan/stoker
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import airflow_dag  # noqa: E402

DAG = "m5-text-encoder"
PLANS = [{}, {"gate": [5]}, {"precompile": [8], "train": [75, 8]}, {"verify": [5]}, {"train": [8, 1]}, {"infer": [7]}]


def airflow(*words, codes=(0,)):
    done = subprocess.run([sys.executable, "-m", "airflow", *words], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    assert done.returncode in codes, words
    return done.stdout


def states_of(number):
    """{task: state}, by Airflow itself."""
    day = f"2026-11-{number + 1:02}T02:00:00+00:00"
    airflow("dags", "test", DAG, day, codes=(0, 1))  # 1: a task has failed
    return {row["task_id"]: row["state"] for row in json.loads(airflow("tasks", "states-for-dag-run", DAG, day, "-o", "json"))}


def main(stoker):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {"AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "LOG": str(folder / "log")}
        (folder / "dags").mkdir()
        airflow("db", "migrate")
        program = folder / "bin/stoker"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\nexec {sys.executable} {ROOT / 'tests/support/scripted_driver.py'} \"$@\"\n")
        program.chmod(0o755)
        shutil.copy(ROOT / "tests/aws/data/pipeline.yaml", folder)
        text = subprocess.run([stoker, "export", folder / "pipeline.yaml", "--to", "airflow"], check=True, text=True,
                              capture_output=True).stdout
        (folder / "dags/dag.py").write_text(text.replace("seconds=60", "seconds=0"))
        os.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
        for number, plan in enumerate(PLANS):
            moment = datetime(2026, 11, number + 1, 2)
            os.environ["PLAN"] = json.dumps({moment.strftime(f"{DAG}-%Y%m%dt%H%M%S"): plan})
            theirs, tries = states_of(number), (folder / "log").read_text()
            (folder / "log").unlink()
            ours = airflow_dag.run(airflow_dag.load(text), moment, dict(os.environ))
            same = theirs == ours and tries == (folder / "log").read_text()
            (folder / "log").unlink()
            print("same" if same else f"DIFFERENT: {theirs} {ours}", plan, flush=True)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
