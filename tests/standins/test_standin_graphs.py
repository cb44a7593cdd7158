"""Graphs and their names: what changes one, what does not, and what a training
process says about each."""

import re
import subprocess
import sys

import pytest

STANDINS = __file__.rpartition("/")[0]
OLD, LIST = "2.9.0.40+07376825f", "2.12.68.0+4480452af"

# Form, flags, hash: as published caches have them.
PUBLISHED = [
    ("A", "", "d41d8cd9"),
    ("A", "--model-type=transformer", "abb26765"),
    ("A", "--auto-cast none", "00875417"),
    ("A", "--model-type=transformer --auto-cast=none", "2c2d707e"),
    ("A", "--model-type=transformer --auto-cast=none --execute-repetition=1", "4497a662"),
    ("B", "--model-type=transformer --auto-cast=none", "d7cde3b5"),
    ("B", "--model-type=transformer --auto-cast=none --execute-repetition=1", "39f12043"),
    ("C", "", "e30acd3a"),
    ("C", "--target=trn3", "70e3f644"),
    ("C", "--model-type=transformer", "3cc9a3cb"),
    ("C", "--model-type=transformer --cache_dir=/x --retry_failed_compilation --log_level=INFO", "3cc9a3cb"),
    ("C", "--model-type transformer --enable-mixed-precision-accumulation", "4eb52b03"),
    ("C", "--model-type=cnn-training -O1 --enable-saturate-infinity", "d505a3f8"),
]


@pytest.mark.parametrize("form,flags,digest", PUBLISHED)
def test_the_hash_of_the_flags_is_the_published_one(form, flags, digest):
    code = "from neuron_standin.flags import Flags; print(Flags().hash)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=STANDINS,
                          env={"STANDIN_FLAGS_FORM": form, "NEURON_CC_FLAGS": flags})
    assert done.stdout.strip() == digest


def test_a_first_run_compiles_each_graph_and_a_second_finds_them(machine):
    first = machine.train()
    assert first.code == 0, str(first)
    called = first.modules("Call compiler with cmd: neuronx-cc compile --target=trn1 --framework=XLA ")
    assert len(called) == len(set(called)) == 3
    assert first.modules("Compilation Successfully Completed for model.") == called
    assert first.out.count("\nCompiler status PASS\n") == 3
    second = machine.train()
    assert second.modules(f"Using a cached neff at {machine.cache}/") == called
    assert "Call compiler" not in second.out
    assert second.said(r"step: \d+ loss: \S+") == first.said(r"step: \d+ loss: \S+")


def test_extraction_writes_inputs_and_computes_zeros(machine):
    trial = machine.train(NEURON_EXTRACT_GRAPHS_ONLY="1")
    named = trial.said(r"Extracting graphs \((\S+)\) for ahead-of-time parallel compilation. No compilation was done.")
    assert len(named) == 3 and all(path.startswith(f"{machine.cache}/neuronxcc-2.25.3371.0+f524f7f8/MODULE_")
                                   for path in named)
    assert set(trial.said(r"step: \d+ loss: (\S+)")) == {"0.000000"}
    assert all(names == {"model.hlo_module.pb", "compile_flags.json"} for names in machine.files().values())


@pytest.mark.parametrize("version,names", [
    (LIST, {"model.hlo.pb", "compile_flags.txt", "model.neff"}),
    ("2.14.227.0+2d4f85be", {"model.hlo_module.pb", "compile_flags.txt", "model.neff"}),
    ("2.15.128.0+56dc5a86", {"model.hlo_module.pb", "compile_flags.json", "model.neff", "model.done"}),
    ("2.16.372.0+4a9b2326", {"model.hlo_module.pb", "compile_flags.json", "model.neff", "model.done"}),
])
def test_the_layout_is_that_of_the_version(machine, version, names):
    machine.neuron.upgrade("neuronx-cc", version)
    machine.train()
    assert [path.name for path in machine.cache.iterdir()] == [f"neuronxcc-{version}"]
    assert list(machine.files().values()) == [names] * 3
    assert "Call compiler" not in machine.train().out


STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.000\d{3}"


@pytest.mark.parametrize("version,prefix", [
    (OLD, STAMP + r": INFO \|\|NCC_WRAPPER\|\|: "),
    (LIST, STAMP + r":  \d+  INFO \|\|NEURON_CC_WRAPPER\|\|: "),
    ("2.25.3371.0+f524f7f8", STAMP + r":  \d+  \[INFO\]: "),
])
def test_the_prefix_is_that_of_the_version(machine, version, prefix):
    machine.neuron.set(STANDIN_CC_VERSION=version)
    machine.train()
    hits = re.findall(rf"^({prefix})Using a cached neff at ", machine.train().out, re.MULTILINE)
    assert len(hits) == 3


def test_old_versions_say_a_hit_and_a_miss_in_their_own_way(machine):
    machine.neuron.set(STANDIN_CC_VERSION=LIST)
    first = machine.train()
    assert len(first.modules("Call compiler with cmd: ['neuronx-cc', '--target=trn1', 'compile', '--framework', 'XLA'"
                             )) == 3
    assert "Successfully Completed" not in first.out
    assert machine.train().out.count("/model.neff. Exiting with a successfully compiled graph.\n") == 3
    machine.neuron.set(STANDIN_CC_VERSION=OLD)
    older = machine.train()
    assert len(older.modules(f"No candidate found under {machine.cache}/")) == 3 and "Call compiler" not in older.out


def graphs(machine, *options, **env):
    """Keys of the graphs that a short trial names."""
    machine.neuron.set(STANDIN_EXTRA_GRAPHS=1)
    trial = machine.train("--max_steps", 2, *options, NEURON_EXTRACT_GRAPHS_ONLY="1", **env)
    assert trial.code == 0, str(trial)
    return set(trial.modules("Extracting graphs ("))


@pytest.mark.parametrize("options,env", [
    (("--lr", "0.5"), {}), (("--seed", "7"), {}), (("--max_steps", "4"), {}), (("--output_dir", "elsewhere"), {}),
    ((), {"NEURON_RT_LOG_LEVEL": "INFO"}), ((), {"FI_PROVIDER": "efa"}), ((), {"WANDB_MODE": "offline"}),
    ((), {"NEURON_CC_FLAGS": "--retry_failed_compilation"}), ((), {"MASTER_PORT": "41000"}),
])
def test_graphs_stay(machine, options, env):
    assert graphs(machine, *options, **env) == graphs(machine)


@pytest.mark.parametrize("options,env", [
    (("--batch_size", "4"), {}), (("--seq_length", "5"), {}), (("--dtype", "bf16"), {}),
    (("--lr_as_constant", "True"), {}), (("--gradient_accumulation_steps", "2"), {}),
    ((), {"XLA_USE_BF16": "1"}), ((), {"NEURON_FUSE_SOFTMAX": "1"}), ((), {"WORLD_SIZE": "2"}),
    ((), {"NEURON_CC_FLAGS": "--model-type=transformer"}), ((), {"NEURON_PLATFORM_TARGET_OVERRIDE": "trn2"}),
])
def test_graphs_change(machine, options, env):
    assert graphs(machine, *options, **env) - graphs(machine)


def test_the_order_and_spelling_of_flags_change_every_key(machine):
    spellings = ["--model-type=transformer --auto-cast=none", "--auto-cast=none --model-type=transformer",
                 "--model-type transformer --auto-cast=none"]
    found = [graphs(machine, NEURON_CC_FLAGS=flags) for flags in spellings]
    assert not found[0] & found[1] and not found[0] & found[2]
    assert {key.partition("+")[0] for key in found[0]} == {key.partition("+")[0] for key in found[1]}


def test_a_comment_changes_no_graph_and_an_operation_does(machine):
    before = graphs(machine)
    text = machine.script.read_text()
    machine.script.write_text(text.replace("def forward(x, w):\n", "def forward(x, w):\n    # the model\n"))
    assert graphs(machine) == before
    machine.script.write_text(text.replace("return x @ w", "return x @ w + 0"))
    assert graphs(machine) != before


def test_any_accumulation_above_one_has_the_same_graphs(machine):
    two, four = (graphs(machine, "--gradient_accumulation_steps", count) for count in (2, 4))
    assert two == four


def test_a_smaller_last_batch_and_growing_shapes_make_graphs_late(machine):
    machine.train("--max_steps", 2)
    assert len(machine.train("--max_steps", 3, "--samples", 20).modules("Call compiler")) == 1
    assert len(machine.train("--max_steps", 6, "--growing_shapes", "True").modules("Call compiler")) == 6


def test_a_resumed_run_goes_on_where_the_other_stopped(machine):
    whole = machine.train("--max_steps", 20)
    machine.train("--max_steps", 10, "--output_dir", "half")
    rest = machine.train("--max_steps", 20, STOKER_RESUME_FROM="half/checkpoint-10")
    assert "resumed from half/checkpoint-10\n" in rest.out
    losses = r"^step: (\d+ loss: \S+)"
    assert re.findall(losses, rest.out, re.MULTILINE) == re.findall(losses, whole.out, re.MULTILINE)[10:]
    assert rest.said(r"eval step: 20 .*") == whole.said(r"eval step: 20 .*")


def test_a_checkpoint_is_one_that_others_can_read(machine):
    from safetensors import safe_open
    machine.train("--max_steps", 5)
    with safe_open(machine.work / "checkpoints/checkpoint-5/model.safetensors", "np") as file:
        assert file.get_tensor("w").shape == (4,)


def test_the_flags_of_the_wrapper_do_what_they_say(machine):
    other = machine.root / "other"
    machine.train(NEURON_CC_FLAGS=f"--cache_dir={other}")
    assert other.is_dir() and not machine.cache.exists()
    assert "Compile cache path: " not in machine.train(NEURON_CC_FLAGS="--log_level WARNING").out
    bypass = machine.train(NEURON_CC_FLAGS="--no_cache")
    assert len(bypass.modules("Call compiler")) == 3


def test_a_graph_is_compiled_once_by_many_ranks(machine):
    machine.neuron.set(STANDIN_COMPILE_SECONDS=1.5, STANDIN_MINUTE=0.1)
    done = machine.run("torchrun", "--nproc_per_node", 8, machine.script, "--max_steps", 2)
    assert done.code == 0, str(done)
    assert len(done.modules("Call compiler")) == 3
    assert len(done.modules("Using a cached neff at ")) == 7 * 3
    waits = done.said(r"Another process must be compiling (\S+/model.hlo_module.pb), been waiting for: \d+\.\d minutes")
    assert waits


def test_a_stale_lock_is_waited_for_until_it_goes(machine):
    machine.neuron.set(STANDIN_MINUTE=0.05)
    machine.train(NEURON_EXTRACT_GRAPHS_ONLY="1")
    folder = machine.folders("model.hlo_module.pb")[0]
    lock = folder / "model.hlo_module.pb.lock"
    lock.touch()
    process = machine.start("python3", "-u", machine.script)
    machine.read_until(process, r"Another process must be compiling .*, been waiting for: ([3-9]|\d\d+)\.\d minutes")
    assert process.poll() is None
    lock.unlink()
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0 and b"eval step: 20 " in out


def test_a_broken_compiled_graph_ends_the_run(machine):
    machine.train()
    neff = machine.folders("model.neff")[0] / "model.neff"
    neff.write_bytes(neff.read_bytes()[:9000])
    done = machine.train()
    assert done.code != 0 and "NEFF is invalid" in done.err
