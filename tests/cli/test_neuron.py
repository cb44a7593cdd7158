"""The kind `neuron` from the outside: stand-ins for the compiler and its front-end
print, store, lock and lie as the real ones have been seen to, and the run comes to
the right verdict all the same."""

import json

import pytest
from neuron_job import phases, verdict
from neuron_standin import plant
from neuron_standin.install import Installation

GRAPHS = 2  # of the stand-in's script: train_step, eval_step… as far as phase 1 reaches


def test_a_cold_cache_is_filled_proved_and_trained_on(job):
    job.go()
    said = verdict(job)
    assert said["complete"] and said["graphs"] == said["done"] > 0, said
    assert said["sources"]["log"]["misses"] == said["graphs"], said
    assert phases(job) == [("precompile", "none"), ("train", "none")]
    assert job.status()["jit"]["graphs"] == 0, job.status()["jit"]
    assert list(job.cache.glob("stoker/*.json"))


def test_a_warm_cache_needs_no_phase_1(job):
    job.go()
    job.go("hyperparameters.lr=0.02", "env.LOG_LEVEL=debug", "env.WANDB_MODE=offline")
    assert phases(job) == [("train", "none")]
    assert job.status()["cache"]["verdict"] == "warm"


def test_code_that_makes_the_same_graphs_traces_again_and_compiles_nothing(job):
    job.go()
    script = job.source / "train.py"
    script.write_text(script.read_text() + "\n# a word more\n")
    job.go()
    assert phases(job) == [("train", "none")]
    script.write_text(script.read_text() + "\nA_WORD_MORE = True\n")
    job.go()
    assert phases(job) == [("precompile", "none"), ("train", "none")]
    said = verdict(job)
    assert said["complete"] and said["compiled"] == 0 and said["graphs"] > 0, said


@pytest.mark.parametrize("change", ["env.NEURON_CC_FLAGS=-O1", "env.XLA_DOWNCAST_BF16=1"])
def test_what_changes_graphs_is_cold_and_named(job, neuron, change):
    job.go()
    job.write(**{})
    words = ["--set", change]
    why = job.ok("cache", "why", job.spec_path, *words, env={"PATH": neuron.path}).out
    assert change.partition("=")[0] in why, why


def test_another_compiler_is_cold_and_named(job, neuron):
    job.go()
    neuron.upgrade("neuronx-cc", "2.26.6360.0+0a0b0c0d")
    why = job.ok("cache", "why", job.spec_path, env={"PATH": neuron.path}).out
    assert "compiler.neuronx-cc" in why and "2.26.6360.0" in why, why
    job.go()
    assert phases(job)[0] == ("precompile", "none")
    assert job.status()["jit"]["graphs"] == 0


# --- what lies ---

def test_failed_graphs_with_exit_0_are_not_complete(job, neuron):
    neuron.set(STANDIN_FAIL_GRAPHS="eval_step", STANDIN_EXIT="zero")
    result = job.go("hyperparameters.eval_steps=2", code=5)
    said = verdict(job)
    assert not said["complete"] and said["failed"] + said["missing"] >= 1, said
    assert phases(job) == [("precompile", "none"), ("precompile", "none")]
    assert "not complete" in result.text


def test_a_graph_that_fails_ends_the_run_with_the_compilers_words(job, neuron):
    neuron.set(STANDIN_FAIL_GRAPHS="train_step", STANDIN_FAIL_TEXT="NCC_XYZ001 this operation is not supported")
    result = job.go(code=1)
    assert [row for row in phases(job) if row[0] == "train"] == []
    assert "NCC_XYZ001" in str(verdict(job)) or "NCC_XYZ001" in result.text, result


def test_a_failure_that_passes_is_compiled_at_the_second_try(job, neuron, tmp_path):
    """Once the failure is stored, only who asks for another try gets one."""
    well = tmp_path / "well"
    neuron.set(STANDIN_FAIL_GRAPHS="train_step", STANDIN_FAIL_UNTIL=well,
               STANDIN_FAIL_TEXT="An Internal Compiler Error has occurred")
    script = job.source / "train.py"
    script.write_text(f"import os, pathlib\nif os.environ['STOKER_ATTEMPT'] == '2':\n"
                      f"    pathlib.Path({str(well)!r}).touch()\n" + script.read_text())
    job.go()
    assert [row[0] for row in phases(job)] == ["precompile", "precompile", "train"]
    assert job.status()["jit"]["graphs"] == 0


def test_good_graphs_reported_as_failed_are_good(job, neuron):
    neuron.set(STANDIN_SOFT_FAIL="*")
    job.go()
    said = verdict(job)
    assert said["complete"], said
    assert [row[0] for row in phases(job)] == ["precompile", "train"]


def test_256_failures_do_not_look_like_none(job, neuron):
    neuron.set(STANDIN_EXTRA_GRAPHS=253, STANDIN_FAIL_GRAPHS="*", STANDIN_COMPILE_SECONDS=0)
    job.go(code=5)
    assert not verdict(job)["complete"]
    assert "train" not in [row[0] for row in phases(job)]


def test_a_dead_worker_leaves_its_graphs_missing(job, neuron):
    neuron.set(STANDIN_DEAD_WORKER="file")
    job.go(code=None)
    first = job.events(kind="cache.verified")[0]
    assert not first["complete"], first


def test_nothing_to_do_is_complete(job):
    job.go()
    for lock in job.cache.glob("stoker/*.json"):
        lock.unlink()
    job.go()
    said = verdict(job)
    assert said["complete"] and said["compiled"] == 0, said


def test_others_in_the_same_cache_are_left_alone(job):
    plant.other_team(job.cache)
    before = sorted(str(path) for path in job.cache.rglob("*"))
    job.go()
    assert set(before) <= {str(path) for path in job.cache.rglob("*")}
    assert verdict(job)["complete"]


def test_four_nodes_sum_up_each_for_itself(job):
    job.go("resources.nodes=4")
    said = verdict(job)
    assert said["complete"], said


def test_a_graph_on_one_node_alone_counts(job, neuron):
    neuron.set(STANDIN_EXTRA_GRAPHS_ON_3=1)
    job.go("resources.nodes=4")
    with_extra = verdict(job)["graphs"]
    assert verdict(job)["complete"]
    neuron.set(STANDIN_EXTRA_GRAPHS_ON_3=None)
    assert with_extra >= GRAPHS


@pytest.mark.parametrize("steps, seconds, ends", [(12, 0, ("none", "stopped")), (600, 0.1, ("stopped",))])
def test_phase_1_leaking_into_the_training_is_caught(job, neuron, steps, seconds, ends):
    """It shows where a graph is late: what is cached already is taken from there."""
    neuron.set(STANDIN_STEP_SECONDS=seconds)
    script = job.source / "train.py"
    script.write_text("import os\nif os.environ['STOKER_PHASE'] == 'train':\n"
                      "    os.environ |= {'NEURON_EXTRACT_GRAPHS_ONLY': '1', 'STANDIN_EXTRA_GRAPHS': '1'}\n"
                      + script.read_text())
    job.go(f"hyperparameters.max_steps={steps}", code=1)
    assert "computed nothing" in job.status()["reason"], job.status()
    assert [row["attempt"] for row in job.events(kind="train.spoiled")] == [1]
    phase, how = phases(job)[-1]
    assert phase == "train" and how in ends


# --- another compiler in training than in phase 1 ---

OLD, NEW = "2.25.3371.0+f524f7f8", "2.26.6360.0+0a0b0c0d"


def meddle(job, old, new, before=OLD, after=NEW):
    """While phase 1 runs, one package gets another version, or goes, before any rank looks at it."""
    script = job.source / "train.py"
    script.write_text("import os, pathlib, time\n"
                      f"old, new = pathlib.Path({str(old)!r}), pathlib.Path({str(new)!r})\n"
                      "if os.environ['STOKER_PHASE'] == 'precompile' and os.environ['RANK'] == '0' and old.exists():\n"
                      f"    text = (old / 'METADATA').read_text().replace({before!r}, {after!r})\n"
                      "    (old / 'METADATA').write_text(text)\n    old.rename(new)\n"
                      "while os.environ['STOKER_PHASE'] == 'precompile' and old.exists():\n    time.sleep(0.01)\n"
                      + script.read_text())


def cache_says(job, neuron):
    env = {"PATH": neuron.path}
    plan = job.stoker("--json", "plan", job.spec_path, env=env)
    why = job.stoker("--json", "cache", "why", job.spec_path, env=env)
    verify = job.stoker("cache", "verify", job.spec_path, env=env)
    said = plan.lines[0]["cache"]["verdict"], why.lines[0]["verdict"], verify.code
    return said, why.text + verify.text


def test_a_compiler_replaced_in_phase_1_is_the_one_that_the_lock_names(job, neuron):
    """A package manager comes by while phase 1 runs; all graphs are of the new one."""
    meddle(job, neuron.packages / f"neuronx_cc-{OLD}.dist-info", neuron.packages / f"neuronx_cc-{NEW}.dist-info")
    job.go("retry.attempts=1")
    assert phases(job) == [("precompile", "none"), ("train", "none")]
    assert job.status()["jit"]["graphs"] == 0
    lock, = job.cache.glob("stoker/*.json")
    said = json.loads(lock.read_text())
    assert said["compiler"]["neuronx-cc"] == said["ingredients"]["compiler"]["neuronx-cc"] == NEW
    assert verdict(job)["graph_key"] == lock.stem
    assert cache_says(job, neuron)[0] == ("warm", "warm", 0)

    neuron.upgrade("neuronx-cc", OLD)
    said, words = cache_says(job, neuron)
    assert said == ("cold", "cold", 5), words
    assert OLD in words and NEW in words, words


def test_a_lock_whose_graphs_another_compiler_made_is_no_proof(job, neuron):
    """As versions before this one wrote it."""
    job.go()
    lock, = job.cache.glob("stoker/*.json")
    text = json.loads(lock.read_text())
    text["compiler"]["neuronx-cc"] = NEW
    lock.write_text(json.dumps(text))
    said, words = cache_says(job, neuron)
    assert said == ("cold", "cold", 5), words
    assert OLD in words and NEW in words and "cannot be trusted" in words, words
    job.go()
    assert phases(job) == [("precompile", "none"), ("train", "none")]
    assert cache_says(job, neuron)[0] == ("warm", "warm", 0)


def test_entries_of_another_compiler_than_the_key_names_are_no_proof(job, neuron):
    job.go()
    folder, = job.cache.glob("neuronxcc-*")
    folder.rename(folder.with_name(f"neuronxcc-{NEW}"))
    lock, = job.cache.glob("stoker/*.json")
    lock.write_text(lock.read_text().replace(f"neuronxcc-{OLD}", f"neuronxcc-{NEW}"))
    said, words = cache_says(job, neuron)
    assert said == ("cold", "cold", 5), words
    assert OLD in words and NEW in words, words


def test_graphs_of_two_compilers_are_not_complete(job):
    """One was found where another version had put it."""
    folder = plant.entry(job.cache, "4711+e30acd3a", f"neuronxcc-{NEW}", neff=bytes(20000), done=b"")
    script = job.source / "train.py"
    script.write_text(f"import os\nif os.environ['STOKER_PHASE'] == 'precompile':\n"
                      f"    print('Using a cached neff at {folder}/model.neff', flush=True)\n" + script.read_text())
    result = job.go(code=5)
    assert phases(job) == [("precompile", "none"), ("precompile", "none")]
    assert "the compiler was replaced while phase 1 ran" in verdict(job)["reason"], verdict(job)
    assert "do not replace the compiler" in result.text, str(result)
    assert not list(job.cache.glob("stoker/*.json"))


def test_another_compiler_in_training_is_cold_not_late(job, neuron):
    """What is replaced while phase 1 runs is nothing that entries tell of."""
    package, = neuron.packages.glob("torch_neuronx-*")
    old = package.name.removeprefix("torch_neuronx-").removesuffix(".dist-info")
    new = "9.9.9"
    meddle(job, package, package.with_name(f"torch_neuronx-{new}.dist-info"), old, new)
    job.go("retry.attempts=1")
    assert phases(job) == [("precompile", "none"), ("train", "compile"), ("precompile", "none"), ("train", "none")]
    ended, = [row for row in job.events(kind="attempt.ended") if row["class"] == "compile"]
    assert ended["changed"] == [{"field": "torch-neuronx", "old": old, "new": new}], ended
    assert old in ended["evidence"] and new in ended["evidence"], ended
    assert "exit" not in ended or ended["exit"] != 0
    status = job.status()
    assert status["jit"]["graphs"] == 0 and status["state"] == "succeeded", status
    lock, = job.cache.glob("stoker/*.json")
    said = json.loads(lock.read_text())
    assert said["compiler"]["torch-neuronx"] == said["ingredients"]["compiler"]["torch-neuronx"] == new
    assert not job.events(kind="compiler.checked")
    assert cache_says(job, neuron)[0] == ("warm", "warm", 0)


def test_what_phase_1_cannot_change_is_put_up_with(job, neuron, tmp_path):
    """It has an environment of its own, so its compiler never is that of the training."""
    other = Installation(tmp_path / "other")
    other.upgrade("neuronx-cc", NEW)
    job.go(f"compile.overrides.env={{PATH: '{other.path}'}}")
    assert phases(job) == [("precompile", "none"), ("train", "compile"), ("precompile", "none"), ("train", "none")]
    said, = job.events(kind="compiler.checked")
    assert "phase 1 has run again already" in said["reason"] and OLD in said["reason"] and NEW in said["reason"], said
    assert said["changed"][0]["field"] == "neuronx-cc", said


def test_an_environment_that_cannot_tell_trains_and_says_so(job, neuron):
    package, = neuron.packages.glob("torch_xla-*")
    meddle(job, package, neuron.root / package.name)
    job.go()
    assert phases(job) == [("precompile", "none"), ("train", "none")]
    said, = job.events(kind="compiler.checked")
    assert "torch-xla is not installed" in said["reason"], said


# --- locks that others have left behind ---

def left_locked(job, age):
    """A graph of this very job is locked, and nobody says by whom: another host's process, a dead one."""
    job.go()
    for lock in job.cache.glob("stoker/*.json"):
        lock.unlink()
    folder = sorted(job.cache.glob("neuronxcc-*/MODULE_*"))[0]
    for name in ("model.neff", "model.done"):
        (folder / name).unlink()
    return plant.lock(folder, age)


def test_a_stale_lock_is_named_with_its_age_and_cure_and_is_not_waited_for(job):
    lock = left_locked(job, 3 * 3600 + 5 * 60)
    result = job.go(code=5)
    said = verdict(job)
    assert said["locked"] == 1 and not said["complete"], said
    assert phases(job) == [("precompile", "none")]
    assert "3h 05m" in result.text and f"rm '{lock}'" in result.text, result
    assert lock.exists()
    lock.unlink()
    job.go()
    assert phases(job) == [("precompile", "none"), ("train", "none")]


def test_a_fresh_lock_gets_another_try_and_is_left_alone(job):
    lock = left_locked(job, 0)
    result = job.go(code=5)
    assert phases(job) == [("precompile", "none"), ("precompile", "none")]
    assert "may be compiling it now" in result.text and f"rm '{lock}'" in result.text, result
    assert lock.exists()


def test_a_phase_1_that_waits_for_a_lock_until_its_time_is_up_says_so(job, neuron):
    """A compiler that is called by the script itself waits for ever."""
    script = job.source / "train.py"
    script.write_text("import os\nif os.environ['STOKER_PHASE'] == 'precompile':\n"
                      "    os.environ.pop('NEURON_EXTRACT_GRAPHS_ONLY', None)\n" + script.read_text())
    lock = left_locked(job, 3 * 3600 + 5 * 60)
    neuron.set(STANDIN_MINUTE=0.3)
    result = job.go("compile.timeout=15s", "retry.attempts=1", code=1)
    ended, = job.events(kind="attempt.ended")
    assert ended["class"] == "timeout-hang", ended
    assert "the job waited for" in ended["evidence"] and "3h 05m" in ended["evidence"], ended
    assert str(lock.relative_to(job.cache)) in ended["evidence"], ended
    assert f"rm '{lock}'" in ended["hint"] and f"rm '{lock}'" in result.text, ended
    assert lock.exists()
