"""A ladder over the quickstart's model, by one file and one command: batch size, precision, a flag of
XLA, workers of the loader, a row that is noise alone, a flag that XLA does not know, and repeats.
It is killed at drawn moments all the while, at times with the drivers of its runs."""

import math
import os
import random
import signal
import time

import measured
import pytest
import stoker as cli
import yaml
from quickstart import Job

SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))
KILLS = int(os.environ.get("STOKER_TEST_SWEEP_KILLS", "10"))
WORKERS = 2
FAST_MATH = "--xla_cpu_enable_fast_math=true"
CELLS = [
    {"hyperparameters.batch_size": 128, "samples_per_step": 128},
    {"env.JAX_DEFAULT_MATMUL_PRECISION": "highest"},
    {"env.XLA_FLAGS": FAST_MATH},
    {"hyperparameters.workers": WORKERS},
    {"name": "noise"},
    {"env.XLA_FLAGS": "--xla_of_tomorrow=true"},
    {"env.XLA_FLAGS": FAST_MATH, "hyperparameters.lr": 1.0e-3},
]

# The training as it is, but that each compilation is noted and the batches are made ahead.
WATCHED = """
import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from jax._src import compiler

import train

compiled = compiler.backend_compile_and_load


def noted(backend, module, *more, **options):
    with open(os.environ["NOTED"], "a") as file:
        print(os.environ["STOKER_RUN"], os.environ["STOKER_PHASE"], module.operation.attributes["sym_name"], file=file)
    return compiled(backend, module, *more, **options)


def make_ahead(workers, make):
    pool, ahead = ThreadPoolExecutor(workers), {}

    def make_batch(data, args, step):
        for later in range(step, min(step + 2 * workers, args.max_steps) + 1):
            if later not in ahead:
                ahead[later] = pool.submit(make, data, args, later)
        return ahead.pop(step).result()
    return make_batch


compiler.backend_compile_and_load = noted
parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int)
own, sys.argv[1:] = parser.parse_known_args()
if own.workers:
    train.make_batch = make_ahead(own.workers, train.make_batch)
train.train(train.parse_args())
"""


@pytest.fixture(scope="module")
def ladder(tmp_path_factory):
    job = Job(tmp_path_factory.mktemp("ladder"))
    job.noted = job.root / "noted"
    (job.folder / "watched.py").write_text(f'"""The training, watched."""\n{WATCHED}')
    spec = yaml.safe_load(job.spec.read_text())
    spec["source"]["include"].append("watched.py")
    spec["command"][-1] = "watched.py"
    spec["hyperparameters"].update(max_steps=60, eval_steps=60, save_steps=60, log_steps=5, workers=0)
    spec["env"]["NOTED"] = str(job.noted)
    spec["compile"]["ignore"] += ["hyperparameters.log_steps", "hyperparameters.workers"]
    spec["samples_per_step"] = 64
    spec["sweep"] = {"ladder": CELLS, "repeat": 2, "parallel": 2}
    job.spec.write_text(yaml.safe_dump(spec, sort_keys=False))
    job.planned, = job.stoker("--json", "plan", job.spec).lines
    job.rows = killed(job)
    return job


def killed(job) -> list:
    draw = random.Random(SEED)
    argv = ("sweep", job.spec, "--id", "q", "--json")
    env = cli.environment(STOKER_STATE=str(job.state), HOME=str(job.root))
    for _ in range(KILLS):
        process = cli.start(*argv, env=env, cwd=job.root)
        time.sleep(draw.uniform(0, 40 / KILLS))
        process.kill()
        process.communicate()
        for line in job.stoker("list", "--json").lines:
            if line.get("driver") and draw.random() < 0.5:
                try:
                    os.kill(line["driver"]["pid"], signal.SIGKILL)
                except ProcessLookupError:
                    pass
    return job.stoker(*argv, seconds=cli.SECONDS * 5).lines


def runs_of(job) -> list:
    return [line["run"] for line in job.stoker("list", "--json").lines]


def test_no_cell_is_run_twice(ladder):
    runs = runs_of(ladder)
    failed = [run for run in runs if run.startswith("q-7-")]
    assert sorted(set(runs) - set(failed)) == sorted(f"q-{cell}-{each}" for cell in (1, 2, 3, 4, 5, 6, 8) for each in (1, 2))
    assert failed and len(runs) == len(set(runs))
    for run in runs:
        events = ladder.stoker("events", run).lines
        assert sum(row["event"] == "run.created" for row in events) == 1
        attempts = [(row["phase"], row["attempt"]) for row in events if row["event"] == "attempt.submitted"]
        assert len(attempts) == len(set(attempts))
    # The same table again, and nothing runs.
    assert ladder.stoker("sweep", ladder.spec, "--id", "q", "--json").lines == ladder.rows
    assert ladder.stoker("compare", "q", "--json").lines == ladder.rows and runs_of(ladder) == runs


def test_each_graph_is_compiled_once(ladder):
    """As often as there are different graphs, in phase 1, whoever has died meanwhile."""
    assert ladder.planned["graph_keys"] == 5
    assert [cell.get("equal_graphs") for cell in ladder.planned["cells"]] == [None, None, None, None, 4, 4, None, 4]
    lines = [line.split() for line in ladder.noted.read_text().splitlines()]
    graphs = list((ladder.folder / ".cache/jax").rglob("*-cache"))
    assert len(lines) == len(graphs) and {phase for _, phase, _ in lines} == {"precompile"}
    # init_state is the same for another batch size and precision.
    names = [name.strip('"') for _, _, name in lines]
    assert len({run for run, _, _ in lines}) == 4 and names.count("jit_train_step") == 4


def test_every_figure_is_what_the_tests_compute(ladder):
    cells = []
    for row in ladder.rows:
        if row["verdict"] == "not supported":
            cells.append(None)
            continue
        plan = ladder.stoker("events", row["run"]).lines[0]["plan"]
        cells.append((plan["samples_per_step"], [
            measured.run_figures(ladder.stoker("--json", "metrics", run).lines,
                                 ladder.stoker("--json", "status", run).lines[0]) for run in row["runs"]]))
    own = measured.table(cells)
    words = {"run", "runs", "differences", "same_quality", "best", "why", "versions"}
    for row, figures in zip(ladder.rows, own, strict=True):
        assert row.keys() - words == figures.keys(), row
        for name, value in figures.items():
            assert row[name] == value if name == "verdict" else math.isclose(row[name], value, rel_tol=1e-9), (name, row)


def test_what_each_row_says(ladder):
    rows = ladder.rows
    assert [row["verdict"] == "not supported" for row in rows] == [at == 6 for at in range(8)]
    assert "xla_of_tomorrow" in rows[6]["why"]
    assert [row["same_quality"] for row in rows] == [True] * 2 + [False] * 6, "another precision, and all on top of it"
    assert [each for each in rows[4]["differences"] if each not in rows[3]["differences"]] == [
        {"field": "hyperparameters.workers", "old": 0, "new": WORKERS}]
    assert rows[5]["differences"] == rows[4]["differences"], "noise alone"
