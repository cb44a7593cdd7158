"""The real model in both modes on this machine, each on a cache of its own that was
empty: both raw figures and their ratio are printed, whichever is larger."""

import re

import pytest
from quickstart import Job

SHORT = ("--set", "hyperparameters.max_steps=200", "--set", "hyperparameters.eval_steps=100",
         "--set", "hyperparameters.save_steps=100")


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    job = Job(tmp_path_factory.mktemp("modes"))
    job.ahead = job.run(*SHORT, "--id", "ahead")
    job.cold = job.run(*SHORT, "--id", "cold", "--set", "compile.mode=jit",
                       "--set", f"compile.cache_url={job.root}/empty")
    print(job.cold.out)
    return job


def test_the_cold_start_compiled_in_training_what_phase_1_compiles(both):
    modes = both.status()["modes"]
    assert (modes["jit"]["run"], modes["aot"]["run"]) == ("cold", "ahead")
    assert modes["jit"]["graphs"] == modes["aot"]["graphs"] > 0
    assert both.phases() == ["train"]
    assert both.events("jit.compiled")[-1]["hits"] == 0


def test_both_figures_are_what_was_recorded_and_their_ratio_is_printed(both):
    modes = both.status()["modes"]
    said = both.cold.out
    for point, words in (("start", r"step \d+, and for later compiles"), ("end", "the end, step 200")):
        jit, aot = modes["jit"][point]["node_seconds"], modes["aot"][point]["node_seconds"]
        if point not in modes["ratio"]:
            assert modes["jit"][point]["step"] != modes["aot"][point]["step"]
            continue
        shown, = re.findall(rf"until {words}: ([0-9.]+) against ([0-9.]+), ratio ([0-9.]+)", said)
        # A half is rounded either way: what is shown is what was measured, the journal keeps 15 digits of it.
        assert [float(figure) for figure in shown] == [pytest.approx(jit, abs=0.0501), pytest.approx(aot, abs=0.0501),
                                                       pytest.approx(jit / aot, abs=0.00501)]
    attempts = {row["phase"]: row["seconds"] for row in
                both.stoker("--json", "status", "ahead").lines[0]["attempts"]}
    claimed_to_end = modes["aot"]["end"]["node_seconds"]
    whole = both.stoker("--json", "status", "ahead").lines[0]["ledger"]["total"]
    assert sum(attempts.values()) <= claimed_to_end <= whole


def test_the_judgement_is_that_of_the_figures(both):
    modes = both.status()["modes"]
    words = {True: "precompiling saved", False: "precompiling did not pay", None: "made no difference"}
    assert words[modes.get("pays")] in both.cold.out
    if "pays" in modes:
        assert modes["pays"] == (modes["ratio"][modes["judged_by"]] > 1)
