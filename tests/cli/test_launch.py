"""How wide and how long a job is before anybody says so: processes of torchrun on each
node, steps of phase 1, compilers at once."""

import json
import os

import pytest
import yaml
from neuron_job import phases

CORES = 8  # of trn2.3xlarge with one physical core each; 4 as the runtime shows them

# A launcher that only says what it was given; the training behind it fills the cache.
SAYS = """#!/bin/sh
printf '%s PET=%s ARGS=%s\\n' "$STOKER_PHASE" "${PET_NPROC_PER_NODE-unset}" "$*" >> "$SAID"
"""


@pytest.fixture
def told(project, tmp_path):
    """A project whose torchrun writes down what it was given; compiles nothing."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("torchrun", "neuron_parallel_compile"):
        tool = tools / name
        tool.write_text(SAYS if name == "torchrun" else '#!/bin/sh\nexec "$@"\n')
        tool.chmod(0o755)
    project.said = tmp_path / "said"
    project.write(compile=None, metrics=None, command=["torchrun", "train.py"],
                  resources={"instance": "trn1.32xlarge"}, hyperparameters=None, env={"SAID": str(project.said)})
    path = f"{tools}:{os.environ['PATH']}"

    def go(command, *sets, **env):
        project.said.unlink(missing_ok=True)
        project.write(command=command, env={"SAID": str(project.said), **env})
        plan = project.plan(*(word for each in sets for word in ("--set", each)))
        project.run(*(word for each in sets for word in ("--set", each)), env={"PATH": path})
        pet = project.said.read_text().split()[1].partition("=")[2]
        return plan["phases"][-1].get("processes"), pet
    return go


TORCHRUN = [
    ["torchrun", "train.py"],
    ["torchrun", "--nnodes=1", "--max-restarts", "0", "train.py"],
    ["torchrun", "-m", "train"],
    ["torchrun", "--standalone", "train.py", "--nproc_per_node", "4"],  # the script's own
    ["torchrun", "train.py", "--nproc-per-node=4"],
    ["env", "-u", "X", "A=b", "torchrun", "train.py"],
    ["nice", "-n", "5", "torchrun", "train.py"],
    ["neuron_parallel_compile", "torchrun", "train.py"],
    ["sh", "-c", "echo begins; exec torchrun train.py"],
]


@pytest.mark.parametrize("command", TORCHRUN, ids=" ".join)
def test_torchrun_gets_a_process_for_each_core(told, command):
    processes, pet = told(command)
    assert pet == "32"
    assert processes["per_node"] == 32 and "trn1.32xlarge" in processes["reason"], processes


GIVEN = [
    (["torchrun", "--nproc_per_node", "2", "train.py"], 2),
    (["torchrun", "--nproc-per-node=2", "train.py"], 2),
    (["torchrun", "--nnodes", "1", "--nproc_per=2", "train.py"], 2),
    (["torchrun", "--nproc-per-node", "auto", "train.py"], None),
    (["env", "torchrun", "--nproc_per_node=2", "train.py"], 2),
    (["sh", "-c", "torchrun --nproc_per_node 2 train.py"], 2),
]


@pytest.mark.parametrize("command,count", GIVEN, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_the_command_says_itself_stays(told, command, count):
    processes, pet = told(command)
    assert pet == "unset"
    assert processes.get("per_node") == count, processes


def test_what_the_environment_says_stays(told):
    processes, pet = told(["torchrun", "train.py"], PET_NPROC_PER_NODE="16")
    assert pet == "16" and processes["per_node"] == 16 and "PET_NPROC_PER_NODE" in processes["reason"]
    processes, pet = told(["env", "PET_NPROC_PER_NODE=3", "torchrun", "train.py"])
    assert pet == "3" and processes["per_node"] == 3


@pytest.mark.parametrize("env,instance,count", [
    ({}, "trn2.3xlarge", CORES // 2),
    ({"NEURON_LOGICAL_NC_CONFIG": "1"}, "trn2.3xlarge", CORES),
    ({"NEURON_RT_VIRTUAL_CORE_SIZE": "1"}, "trn2.3xlarge", CORES),
    ({"NEURON_LOGICAL_NC_CONFIG": "2"}, "trn2.3xlarge", CORES // 2),
    ({"NEURON_LOGICAL_NC_CONFIG": "1"}, "trn1.2xlarge", 2),
    ({"NEURON_RT_NUM_CORES": "8"}, "trn1.32xlarge", 8),
    ({"NEURON_RT_NUM_CORES": "0"}, "trn1.32xlarge", 32),
    ({"NEURON_RT_VISIBLE_CORES": "0-3,8"}, "trn1.32xlarge", 5),
    ({"NEURON_RT_VISIBLE_CORES": "4-7", "NEURON_RT_NUM_CORES": "2"}, "trn1.32xlarge", 4),
    ({}, "ml.trn1.2xlarge", 2),
    ({}, "inf2.48xlarge", 24),
])
def test_the_cores_are_those_that_the_runtime_will_show(told, env, instance, count):
    processes, pet = told(["torchrun", "train.py"], f"resources.instance={instance}", **env)
    assert pet == str(count) and processes["per_node"] == count, processes


def test_where_no_instance_is_named_nothing_is_set_and_the_plan_says_so(told, project):
    project.write(resources=None)
    processes, pet = told(["torchrun", "train.py"])
    assert pet == "unset" and processes["per_node"] == 1 and "resources.instance" in processes["reason"]
    text = project.ok("plan", project.spec_path).out
    assert "1 on each node" in text and "resources.instance" in text, text


@pytest.mark.parametrize("command", [["python3", "train.py"], ["python3", "train.py", "torchrun"],
                                     ["python3", "-m", "train", "--with", "torchrun"]], ids=" ".join)
def test_what_is_no_torchrun_is_told_nothing(project, command):
    project.write(compile=None, resources={"instance": "trn1.32xlarge"}, command=command)
    phase, = project.plan()["phases"]
    assert "processes" not in phase and "PET_NPROC_PER_NODE" not in phase["env"]


@pytest.mark.parametrize("words", [
    ["python3", "-m", "torch.distributed.run", "train.py"],
    ["/opt/venv/bin/python3.11", "-u", "-m", "torch.distributed.launch", "--use-env", "train.py"],
    ["python", "-um", "torch.distributed.run", "train.py"],
    ["python3", "-W", "ignore", "/opt/conda/bin/torchrun", "train.py"],
    ["/opt/conda/bin/torchrun", "-r", "3", "train.py"],
    ["neuron_parallel_compile", "--num_parallel", "4", "python3", "-m", "torch.distributed.run", "train.py"],
    ["numactl", "--interleave=all", "timeout", "-k", "5", "3h", "torchrun", "train.py"],
    ["bash", "-lc", "source /opt/env.sh && python3 -m torch.distributed.run train.py"],
], ids=" ".join)
def test_each_way_to_start_torchrun_is_known(project, words):
    project.write(compile=None, resources={"instance": "trn1.32xlarge", "nodes": 4}, command=words)
    phase, = project.plan()["phases"]
    assert phase["env"]["PET_NPROC_PER_NODE"] == "32"
    assert phase["processes"]["per_node"] == 32 and phase["processes"]["world"] == 128
    text = project.ok("plan", project.spec_path).out
    assert "PET_NPROC_PER_NODE=32" in text and "128 " in text and "trn1.32xlarge" in text, text


def test_how_many_processes_there_are_is_part_of_the_graph_key(project):
    project.write(command=["torchrun", "train.py"], resources={"instance": "trn1.32xlarge"})

    def key(*sets):
        return project.plan(*(word for each in sets for word in ("--set", each)))["cache"]["graph_key"]
    large = key()
    assert key("resources.instance=trn1.2xlarge") != large  # one family, another world
    assert key("resources.instance=ml.trn1.32xlarge") == large
    assert key("env.NEURON_RT_NUM_CORES=8") != large
    assert key("env.NEURON_RT_LOG_LEVEL=INFO") == large
    project.write(command=["python3", "train.py"])
    assert key("resources.instance=trn1.2xlarge") == key()  # as ever where nothing depends on it


def test_too_many_processes_are_refused_wherever_they_are_said(project):
    project.write(engine="batch", workspace="s3://bucket/w", image="i:1", batch={"job_queue": "q"}, compile=None,
                  resources={"instance": "trn1.2xlarge"}, command=["torchrun", "train.py"])
    said = project.stoker("validate", project.spec_path, "--set", "env.PET_NPROC_PER_NODE=32")
    assert said.code == 3 and "32 " in said.text and "2 cores" in said.text, said
    project.write(command=["torchrun", "train.py", "--nproc_per_node", "32"])
    assert project.stoker("validate", project.spec_path).code == 0  # an argument of the script


# ---- the length of phase 1 ----------------------------------------------------------

NAMES = ["max_steps", "steps", "num_steps", "total_steps", "train_steps", "max_train_steps", "training_steps",
         "train_iters", "max_iters", "num_train_steps", "steps_this_run", "train-iters", "max-steps",
         "training.steps", "trainer.max_steps"]


def precompile(project, *sets):
    plan = project.plan(*(word for each in sets for word in ("--set", each)))
    phase, = [row for row in plan["phases"] if row["phase"] == "precompile"]
    return phase["command"], plan["length"], plan["cache"]["graph_key"]


def after(command, flag):
    return command[command.index(flag) + 1]


@pytest.mark.parametrize("name", NAMES)
def test_phase_1_takes_five_steps_where_their_name_is_known(project, name):
    project.write(hyperparameters={"lr": 0.1, name: 20000}, compile={"kind": "jax", "cache_url": str(project.cache)})
    command, length, key = precompile(project)
    assert after(command, f"--{name}") == "5" and command.count(f"--{name}") == 1
    assert length["steps"] == 5 and length["hyperparameter"] == name
    text = project.ok("plan", project.spec_path).out
    assert f"5 steps (--{name}" in text, text
    # The length of the training decides about no graph.
    project.write(hyperparameters={"lr": 0.1, name: 300})
    assert precompile(project)[2] == key
    project.write(hyperparameters={"lr": 0.1, name: 3})
    assert precompile(project)[2] == key
    warned = project.ok("validate", project.spec_path).text
    assert "warning" not in warned, warned


def test_a_run_takes_five_steps_by_default_and_shows_its_progress_by_any_name(project):
    project.spec["compile"].pop("max_steps")
    project.write(hyperparameters={"lr": 0.1, "train_steps": 12, "batch_size": 8})
    script = project.source / "train.py"
    script.write_text(script.read_text().replace("--max_steps", "--train_steps").replace("max_steps", "train_steps"))
    project.run()
    assert "step: 5" in project.logs("--phase", "precompile") and "step: 6" not in project.logs("--phase", "precompile")
    assert project.status()["progress"]["of"] == 12
    project.write(hyperparameters={"lr": 0.1, "train_steps": 15, "batch_size": 8})
    project.run()
    assert project.attempts() == [("train", 1)]


def test_a_known_name_is_the_one_that_compile_max_steps_sets(project):
    project.write(hyperparameters={"train_iters": 900}, compile={"kind": "jax", "cache_url": "c", "max_steps": 7})
    command, length, _ = precompile(project)
    assert after(command, "--train_iters") == "7" and "--max_steps" not in command
    assert length == {"hyperparameter": "train_iters", "steps": 7, "by": "compile.max_steps",
                      "reason": length["reason"]}
    assert "warning" not in project.ok("validate", project.spec_path).text


@pytest.mark.parametrize("over,steps", [({"steps": 9}, 9), ({"steps": 150}, 150)])
def test_overrides_win(project, over, steps):
    project.write(hyperparameters={"steps": 900},
                  compile={"kind": "jax", "cache_url": "c", "overrides": {"hyperparameters": over}})
    command, length, _ = precompile(project)
    assert after(command, "--steps") == str(steps) and length["steps"] == steps
    assert ("phase 1 would take 150 steps" in project.ok("validate", project.spec_path).text) == (steps == 150)


def test_two_lengths_that_differ_are_refused_under_any_name(project):
    project.write(hyperparameters={"steps": 900}, compile={
        "kind": "jax", "cache_url": "c", "max_steps": 5, "overrides": {"hyperparameters": {"steps": 10}}})
    said = project.stoker("validate", project.spec_path)
    assert said.code == 3 and "'steps' differs from 'compile.max_steps'" in said.text, said


@pytest.mark.parametrize("own,command_has", [(3, "3"), (5, "5"), (-1, "5"), (0, "5"), ("1000", "5")])
def test_a_shorter_training_keeps_its_own_length(project, own, command_has):
    project.write(hyperparameters={"max_steps": own}, compile={"kind": "jax", "cache_url": "c"})
    assert after(precompile(project)[0], "--max_steps") == command_has


@pytest.mark.parametrize("values", [{"num_train_epochs": 3}, {"warmup_steps": 100, "eval_steps": 50}, {"max_steps": None}])
def test_where_no_name_is_known_none_is_set_and_the_plan_says_how(project, values):
    project.write(hyperparameters=values, compile={"kind": "jax", "cache_url": "c"})
    command, length, _ = precompile(project)
    assert "5" not in command and "steps" not in length
    text = project.ok("plan", project.spec_path).out
    assert "not known" in text and "compile.max_steps" in text and "compile.overrides" in text, text


def test_one_s_own_ignore_list_counts_as_written_and_what_it_lacks_is_warned_of(project):
    project.write(hyperparameters={"train_steps": 900},
                  compile={"kind": "jax", "cache_url": "c", "ignore": ["hyperparameters.lr"]})
    warned = project.ok("validate", project.spec_path).text
    assert "hyperparameters.train_steps" in warned and "compile.ignore" in warned, warned
    key = precompile(project)[2]
    assert precompile(project, "hyperparameters.train_steps=800")[2] != key


# ---- the width of phase 1 -----------------------------------------------------------

def neuron_spec(project, instance="trn1.32xlarge", **compile):
    project.write(command=["torchrun", "train.py"], hyperparameters={"max_steps": 900},
                  resources={"instance": instance} if instance else None,
                  compile={"kind": "neuron", "cache_url": str(project.cache), **compile})


def front_of(plan):
    return plan["requests"][0]["command"][:3]


@pytest.mark.parametrize("instance,width", [
    ("trn1.2xlarge", 1), ("trn1.32xlarge", 8), ("trn2.48xlarge", 32), ("inf2.xlarge", 1), ("inf2.24xlarge", 6)])
def test_auto_is_a_compiler_for_each_64_gib(project, instance, width):
    neuron_spec(project, instance)
    plan = project.plan("--requests")
    assert front_of(plan) == ["neuron_parallel_compile", "--num_parallel", str(width)]
    assert plan["width"]["workers"] == width and instance in plan["width"]["reason"]
    text = project.ok("plan", project.spec_path).out
    assert f"--num_parallel {width}" in text and "64 GiB" in text, text


def test_a_number_is_passed_on_and_changes_no_key(project):
    neuron_spec(project)
    key = project.plan()["cache"]["graph_key"]
    neuron_spec(project, parallel=3)
    plan = project.plan("--requests")
    assert front_of(plan) == ["neuron_parallel_compile", "--num_parallel", "3"]
    assert plan["cache"]["graph_key"] == key


def test_where_no_machine_is_named_the_front_end_decides_and_the_plan_says_so(project):
    neuron_spec(project, None)
    plan = project.plan("--requests")
    assert front_of(plan)[:2] == ["neuron_parallel_compile", "torchrun"] and "workers" not in plan["width"]
    assert "resources.instance" in project.ok("plan", project.spec_path).out


@pytest.mark.parametrize("changes,words", [
    ({"compile": {"kind": "jax", "cache_url": "c", "parallel": 4}}, "jax"),
    ({"compile": {"parallel": 4}}, "none"),
    ({"compile": {"kind": "neuron", "cache_url": "c", "mode": "jit", "parallel": 4}}, "jit"),
    ({"command": ["neuron_parallel_compile", "torchrun", "train.py"]}, "neuron_parallel_compile"),
    ({"command": ["/opt/bin/neuron_parallel_compile", "torchrun", "train.py"]}, "neuron_parallel_compile"),
    ({"engine": "sagemaker", "workspace": "s3://bucket/w", "image": "i:1",
      "sagemaker": {"role": "arn:aws:iam::123456789012:role/r", "launcher": "toolkit"},
      "resources": {"instance": "ml.trn1.32xlarge"},
      "compile": {"kind": "neuron", "cache_url": "s3://bucket/c", "parallel": 4}}, "toolkit"),
])
def test_it_is_refused_where_we_do_not_start_the_front_end(project, changes, words):
    neuron_spec(project, parallel=4)
    project.write(**changes)
    said, = [row for row in project.stoker("--json", "validate", project.spec_path).lines
             if row["field"] == "compile.parallel"]
    assert words in said["message"] and said["hint"], said
    lines = project.spec_path.read_text().splitlines()
    assert "parallel: 4" in lines[said["line"] - 1] and said["column"] == lines[said["line"] - 1].index("4") + 1
    assert project.stoker("validate", project.spec_path).code == 3
    assert project.stoker("validate", project.spec_path, "--set", "compile.parallel=auto").code == 0


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_nonsense_is_refused(project, value):
    neuron_spec(project)
    assert project.stoker("validate", project.spec_path, "--set", f"compile.parallel={value}").code == 3


def test_a_run_compiles_so_many_at_once_and_half_after_memory_ran_out(job, neuron):
    neuron.set(STANDIN_OOM_ABOVE=3)
    job.go("compile.parallel=4")
    assert [row[0] for row in phases(job)] == ["precompile", "precompile", "train"]
    assert [row.get("workers") for row in job.status()["attempts"]] == [None, 2, None]
    first, second = (json.loads(path.read_text())["command"] for path in
                     sorted(job.state.glob("**/runs/*/precompile-*/order.json")))
    assert first[:3] == ["neuron_parallel_compile", "--num_parallel", "4"]
    assert second[:3] == ["neuron_parallel_compile", "--num_parallel", "2"]


def test_a_command_that_brings_the_front_end_has_it_once_and_is_warned_of(project):
    neuron_spec(project)
    project.write(command=["neuron_parallel_compile", "torchrun", "train.py"])
    warned = project.ok("validate", project.spec_path).text
    assert "neuron_parallel_compile" in warned and "warning" in warned, warned
    request = project.plan("--requests")["requests"][0]["command"]
    assert request[:2] == ["neuron_parallel_compile", "torchrun"]


# ---- what comes with it -------------------------------------------------------------

@pytest.mark.parametrize("name", ["quickstart", "first-run", "converge", "batch-multinode", "sagemaker", "slurm"])
def test_templates_reach_an_evaluation_and_a_save_in_phase_1(project, tmp_path, name):
    spec = tmp_path / "stoker.yaml"
    project.ok("init", "--template", name, spec, cwd=tmp_path)
    said = project.ok("validate", spec).text
    assert "phase 1" not in said and "compile.ignore" not in said, said
    values = yaml.safe_load(spec.read_text())
    over = values["compile"].get("overrides", {}).get("hyperparameters", {})
    steps = values["compile"].get("max_steps") or over.get("max_steps") or 5
    for each in {"eval_steps", "save_steps"} & {*over, *values["hyperparameters"]}:
        assert each in values["hyperparameters"] and over[each] <= steps, each
    assert name == "quickstart" or {"eval_steps", "save_steps"} <= set(over)
