"""The meter of graphs that are compiled in training: distinct graphs, their seconds and
what these cost; who waits for another's compilation neither hits nor misses."""

import re

import pytest
import stoker as cli
from neuron_standin.install import Installation

LATE = """
import __main__
import time


def step(number, args):
    if number in {steps}:
        __main__.compile_graph(f"late_{{number}}", "float32[3]")
"""


def with_late(project, steps, price=None):
    project.extra(LATE.format(steps=steps))
    project.write(resources={"price": price} if price else None)
    return project.run().text


def test_one_graph_is_one_graph(project):
    said = with_late(project, (15,))
    assert re.search(r"phase 2: +1 graph compiled in ", said), said
    assert "train: graphs compiled as it ran: 1; " in said
    assert not re.search(r"\b1 graphs\b", said + project.ok("status").out), said


def test_seconds_are_money_where_the_price_is_known(project):
    said = with_late(project, (15, 16), price=36.0)
    jit = project.status()["jit"]
    assert jit["graphs"] == 2 and jit["seconds"] > 0
    assert jit["cost"] == pytest.approx(jit["seconds"] / 100)
    assert project.events(kind="jit.compiled")[-1]["cost"] == pytest.approx(jit["cost"])
    assert re.search(r"phase 2: +2 graphs compiled in .*, 0\.00 USD", said), said
    assert re.search(r"train: graphs compiled as it ran: 2; [0-9.e-]+ s, [0-9.e-]+ USD", said), said


def test_without_a_price_there_is_no_cost(project):
    said = with_late(project, (15,))
    assert "cost" not in project.status()["jit"] and "USD" not in said


EVALUATES = """
import json, os, pathlib
from train import compile_graph
for name in ("first", "second"):
    compile_graph(f"{name}_of_evaluation", "float32[3]")
(pathlib.Path(os.environ["STOKER_OUTPUT_DIR"]) / "metrics.json").write_text(json.dumps({"accuracy": 1}))
"""
SAVES = """
    if number == args.max_steps:
        import os, pathlib
        head = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        path = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"]) / f"step-{number}.safetensors"
        path.write_bytes(len(head).to_bytes(8, "little") + head + bytes(4))
"""


def test_evaluation_has_a_count_of_its_own(project):
    """Its first attempt is not the training's first attempt, and its machines have another price."""
    project.extra(LATE.format(steps=(15,)) + SAVES)
    (project.source / "evaluate.py").write_text(EVALUATES)
    project.write(resources={"price": 36.0}, gate=[{"metric": "accuracy", "at_least": 0.9}],
                  evaluate={"command": ["/usr/bin/python3", "evaluate.py"], "resources": {"price": 360.0}})
    said = project.run().text
    status = project.status()
    jit, evaluation = status["jit"], status["evaluate"]["jit"]
    assert (jit["graphs"], evaluation["graphs"]) == (1, 2) and not set(jit["names"]) & set(evaluation["names"])
    assert jit["cost"] == pytest.approx(jit["seconds"] / 100)
    assert evaluation["cost"] == pytest.approx(evaluation["seconds"] / 10) and evaluation["cost"] > 0
    # So do its machines have another price, in all that is said of the run's cost.
    cost, ledger = status["cost"], status["ledger"]
    assert ledger["evaluate"] / 50 < cost["bins"]["evaluate"] <= ledger["evaluate"] / 10 + 1e-9
    assert cost["bins"]["steps"] <= ledger["steps"] / 100 + 1e-9
    # By bin, and by what each phase took.
    assert cost["accrued"] == pytest.approx(sum(cost["bins"].values())) == pytest.approx(cost["estimated"])
    assert re.search(r"phase 2: +1 graph compiled in ", said) and "1 of 1 tasks done, 2 graphs compiled" in said
    assert "evaluate: graphs compiled as it ran: 2; " in said
    # Once they are in the cache none is compiled.
    project.run("--id", "again")
    assert project.status("again")["evaluate"]["jit"]["graphs"] == project.status("again")["jit"]["graphs"] == 0


def test_every_node_waits_for_a_compilation(project):
    project.write(resources={"price": 36.0, "nodes": 2}, compile={"kind": "jax", "cache_url": str(project.cache),
                                                                   "mode": "jit"})
    project.run()
    jit = project.status()["jit"]
    assert jit["graphs"] == 3 and jit["cost"] == pytest.approx(2 * jit["seconds"] / 100)


def test_what_an_attempt_compiled_is_still_told_after_the_next(project):
    project.extra(LATE.format(steps=(15,)) + """

def end(args):
    import os
    if os.environ["STOKER_PHASE"] == "train" and os.environ["STOKER_ATTEMPT"] == "1":
        raise OSError(5, "Input/output error")
""")
    project.run()
    assert [row[1] for row in project.attempts() if row[0] == "train"] == [1, 2]
    assert project.events(kind="jit.compiled")[-1]["graphs"] == 0
    assert project.status()["jit"]["graphs"] == 1


@pytest.fixture
def neuron(project, tmp_path):
    installation = Installation(tmp_path / "neuron")
    installation.train_script(project.source / "train.py")
    project.write(command=["torchrun", "--nproc_per_node", "2", "train.py"],
                  hyperparameters={"max_steps": 6}, metrics=[{"name": "step", "regex": "^step: ([0-9]+)"}],
                  compile={"kind": "neuron", "cache_url": str(project.cache), "mode": "jit"})
    # All graphs together: longer than one process may be late.
    installation.set(STANDIN_COMPILE_SECONDS=1.5, STANDIN_MINUTE=0.1)
    return installation


def waits(project, run):
    return "Another process must be compiling" in project.ok("logs", run).out


def test_a_rank_that_waits_for_another_adds_nothing(project, neuron):
    project.run("--id", "ranks", env={"PATH": neuron.path})
    assert waits(project, "ranks")
    told = project.events("ranks", "jit.compiled")[-1]
    assert told["graphs"] == len(set(told["names"])) > 0
    assert told["hits"] == 0


def test_a_run_that_waits_for_another_did_not_compile(project, neuron):
    both = [project.start("run", project.spec_path, "--id", name, env={"PATH": neuron.path}) for name in ("a", "b")]
    for process in both:
        result = cli.finish(process)
        assert result.code == 0, str(result)
    assert waits(project, "a") or waits(project, "b")
    told = {name: set(project.events(name, "jit.compiled")[-1]["names"]) for name in ("a", "b")}
    assert not told["a"] & told["b"], told
    done = [path.parent.name for path in project.cache.glob("*/MODULE_*/model.done")]
    assert sorted(name.rpartition("/")[2] for name in told["a"] | told["b"]) == sorted(done)


LAST = LATE + """

import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
usual = step


def step(number, args):
    usual(number, args)
    print(f"step: {{number}} loss: 0.5", flush=True)
    time.sleep(0.1 if number < 8 else 0.7)  # it hears of the drain before its last step
"""


@pytest.mark.parametrize("policy", ["stop", "recompile"])
def test_a_training_that_makes_its_last_step_while_it_drains_has_succeeded(project, policy):
    project.extra(LAST.format(steps=(8,)))
    project.write(compile={**project.spec["compile"], "jit_budget": {"graphs": 0, "on_exceed": policy}})
    project.run()
    assert project.events(kind="jit.exceeded"), project.ok("status").out
    assert project.attempts() == [("precompile", 1), ("train", 1)]
    ended = project.events(kind="attempt.ended")[-1]
    assert ended["class"] == "none" and ended["stopped"] == "drain", ended
    status = project.status()
    assert status["state"] == "succeeded" and status["exit_code"] == 0, status
