"""The main job, for real: a vision transformer in JAX is precompiled into a
real cache, verified and trained on real images; then what makes it warm or
cold is tried, as a user would try it."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from quickstart import Job

@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    job = Job(tmp_path_factory.mktemp("quickstart"))
    assert job.plan()["cache"]["verdict"] == "cold"
    job.first = job.run()
    job.first_status = job.status()
    job.first_phases = job.phases()
    job.first_verified = job.events("cache.verified")
    return job


def test_the_first_run_compiles_in_phase_one_and_nothing_in_phase_two(trained):
    assert trained.first_phases == ["precompile", "train"]
    verified, = trained.first_verified
    assert verified["complete"] is True
    assert verified["graphs"] > 0 and verified["compiled"] == verified["graphs"]
    assert trained.first_status["jit"]["graphs"] == 0
    assert trained.first_status["state"] == "succeeded"


def test_the_model_has_learned(trained):
    assert trained.first_status["metrics"]["accuracy"] > 0.95


def test_it_ends_with_a_short_summary(trained):
    said = trained.first.out
    assert re.search(r"phase 1: +[1-9]\d* graphs compiled", said), said
    assert re.search(r"phase 2: +0 graphs compiled", said), said
    assert re.search(r"accuracy 0\.9[5-9]", said), said
    assert re.search(r"^precompile: +\d", said, re.MULTILINE), said
    assert re.search(r"^train: +\d", said, re.MULTILINE), said
    assert len(said.splitlines()) < 20


def test_progress_was_read_from_the_log(trained):
    progress = trained.first_status["progress"]
    assert progress["step"] == progress["of"]
    assert trained.first_status["metrics"]["loss"] < 0.5


def test_the_ledger_knows_where_the_time_went(trained):
    ledger = dict(trained.first_status["ledger"])
    total = ledger.pop("total")
    assert round(sum(ledger.values()) - total, 3) == 0
    assert ledger["unknown"] < 0.01 * total
    assert ledger["precompile"] > 0 and ledger["steps"] > 0


def short(*more):
    return ("--set", "hyperparameters.max_steps=20", *more)


def test_a_second_run_is_warm(trained):
    plan = trained.plan()
    assert plan["cache"]["verdict"] == "warm"
    assert "warm" in trained.stoker("plan", trained.spec).out
    trained.run(*short())
    assert trained.phases() == ["train"]
    assert trained.status()["jit"]["graphs"] == 0


def test_another_learning_rate_is_warm(trained):
    trained.run(*short("--set", "hyperparameters.lr=0.001"))
    assert trained.phases() == ["train"]
    assert trained.status()["jit"]["graphs"] == 0


def test_code_that_makes_the_same_graphs_is_traced_again_and_not_compiled(trained):
    text = trained.script.read_text()
    trained.script.write_text(text.replace("import argparse\n", "import argparse\n\nA_WORD_MORE = True\n"))
    try:
        trained.run(*short())
        assert trained.phases() == ["precompile", "train"]
        verified, = trained.events("cache.verified")
        assert (verified["hits"], verified["compiled"]) == (verified["graphs"], 0)
        assert trained.status()["jit"]["graphs"] == 0
    finally:
        trained.script.write_text(text)


def test_another_batch_size_is_cold_and_named(trained):
    sets = ("--set", "hyperparameters.batch_size=32")
    why = trained.stoker("cache", "why", trained.spec, *sets).out
    assert re.search(r"hyperparameters\.batch_size: \d+ → 32", why), why
    before = len(trained.plan()["cache"]["changed"] or [])
    assert before == 0
    trained.run(*short(*sets))
    assert trained.phases() == ["precompile", "train"]
    assert trained.events("cache.verified")[0]["compiled"] > 0
    assert trained.status()["jit"]["graphs"] == 0


def cache_folder(trained):
    created = trained.events("run.created")[0]
    return created["plan"]["compile"]["cache"]


@pytest.mark.parametrize("damage", ["deleted", "truncated"])
def test_a_damaged_entry_is_named_and_compiled_again(trained, damage):
    trained.run(*short())
    folder = cache_folder(trained)
    listing = subprocess.run(["find", folder, "-name", "*train_step*-cache"], capture_output=True,
                             text=True, check=True).stdout.split()
    assert listing
    for name in listing:
        if damage == "deleted":
            Path(name).unlink()
        else:
            Path(name).write_bytes(Path(name).read_bytes()[:-100])
    verify = trained.stoker("cache", "verify", folder, code=5)
    assert all(Path(name).name in verify.out for name in listing)
    trained.run(*short())
    assert trained.phases() == ["precompile", "train"]
    assert trained.events("cache.verified")[-1]["compiled"] == 1
    assert trained.status()["jit"]["graphs"] == 0
    assert trained.plan()["cache"]["verdict"] == "warm"


def test_every_event_of_a_real_run_is_a_json_object(trained):
    for line in trained.stoker("events", "@last").out.splitlines():
        assert isinstance(json.loads(line), dict)
