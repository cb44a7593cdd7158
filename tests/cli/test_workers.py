"""Workers of a launcher: the command as it runs, one graph key however their number is spelled, too many and too few. The
forms of commands are in tests/unit/spec/test_launch.c."""

import pytest

TRN1 = "trn1.32xlarge"  # 32 NeuronCores


def plan_of(project, command, **changes):
    project.write(compile={"kind": "jax", "cache_url": str(project.cache)}, hyperparameters=None, metrics=None,
                  command=command.split(" "), **{"env": None, "resources": {"instance": TRN1}, **changes})
    return project.plan()


def train(plan):
    phase, = [each for each in plan["phases"] if each["phase"] == "train"]
    return phase


def key(project, command, **changes):
    return plan_of(project, command, **changes)["cache"]["graph_key"]


def test_the_number_has_one_key_however_it_is_spelled(project):
    ways = [key(project, "torchrun t.py"), key(project, "torchrun --nproc_per_node 32 t.py"),
            key(project, "torchrun --nproc-per-node=8 t.py", resources={"instance": TRN1, "nodes": 4}),
            key(project, "torchrun --nproc_per_node 3 t.py", resources={"instance": TRN1, "workers": 32}),
            key(project, "torchrun t.py", env={"PET_NPROC_PER_NODE": "32"})]
    assert len(set(ways)) == 1
    assert key(project, "torchrun t.py", resources={"instance": "trn1.2xlarge"}) != ways[0]


RUNS = [
    ("torchrun t.py", {"workers": 8}, "torchrun t.py", "8"),
    ("torchrun --nproc_per_node 32 t.py", {"workers": 8}, "torchrun --nproc_per_node 8 t.py", None),
    ("torchrun --nproc-per-node=32 t.py", {"workers": 8}, "torchrun --nproc-per-node=8 t.py", None),
    ("env PET_NPROC_PER_NODE=3 torchrun t.py", {"workers": 8},
     "env PET_NPROC_PER_NODE=3 torchrun --nproc_per_node 8 t.py", None),
    ("torchrun --nproc_per_node 8 t.py", {}, "torchrun --nproc_per_node 8 t.py", None),
    ("accelerate launch t.py", {}, "accelerate launch --num_processes 32 --multi_gpu t.py", None),
    ("accelerate launch t.py", {"nodes": 2}, "accelerate launch --num_processes 64 --multi_gpu --num_machines 2 "
     "--machine_rank ${STOKER_NODE_RANK} --main_process_ip ${STOKER_MASTER_ADDR} --main_process_port ${STOKER_MASTER_PORT} "
     "t.py", None),
    ("accelerate launch --num_processes=4 --use_fsdp t.py", {"workers": 8},
     "accelerate launch --num_processes=8 --use_fsdp t.py", None),
    ("accelerate launch --num-processes 4 --machine_rank 0 t.py", {"workers": 2, "nodes": 2},
     "accelerate launch --multi_gpu --num_machines 2 --main_process_ip ${STOKER_MASTER_ADDR} --main_process_port "
     "${STOKER_MASTER_PORT} --num-processes 4 --machine_rank 0 t.py", None),
    ("accelerate launch --config_file f.yaml t.py", {"nodes": 2},
     "accelerate launch --num_machines 2 --machine_rank ${STOKER_NODE_RANK} --main_process_ip ${STOKER_MASTER_ADDR} "
     "--main_process_port ${STOKER_MASTER_PORT} --config_file f.yaml t.py", None),
    ("accelerate launch --num_processes 32 t.py", {}, "accelerate launch --multi_gpu --num_processes 32 t.py", None),
    ("accelerate launch --num_processes=1 t.py", {}, "accelerate launch --num_processes=1 t.py", None),
    ("accelerate launch --num_processes=32 --use_fsdp t.py", {}, "accelerate launch --num_processes=32 --use_fsdp t.py", None),
    ("python3 t.py", {"workers": 8}, "python3 t.py", None),
]


@pytest.mark.parametrize("command,resources,runs,variable", RUNS, ids=lambda value: str(value)[:50])
def test_the_command_as_it_will_run(project, command, resources, runs, variable):
    phase = train(plan_of(project, command, resources={"instance": TRN1, **resources}))
    assert phase["command"] == runs.split(" ")
    assert phase["env"].get("PET_NPROC_PER_NODE") == variable
    text = project.ok("plan", project.spec_path).out
    assert "workers:" in text and (not resources.get("workers") or "resources.workers" in text), text


SAYS = """#!/bin/sh
echo "rank $STOKER_NODE_RANK of $STOKER_WORKERS workers:" "$@"
"""


def test_each_node_is_told_its_rank_and_the_script_its_workers(project, tmp_path):
    tool = tmp_path / "tools" / "accelerate"
    tool.parent.mkdir()
    tool.write_text(SAYS)
    tool.chmod(0o755)
    project.write(compile=None, metrics=None, hyperparameters=None, command=[str(tool), "launch", "t.py"],
                  resources={"instance": "trn1.2xlarge", "nodes": 2})
    project.run("--id", "one")
    for node in ("0", "1"):
        log = project.logs("--node", node)
        assert f"rank {node} of 2 workers: launch --num_processes 4 --multi_gpu --num_machines 2 --machine_rank {node} " \
               "--main_process_ip 127.0.0.1 --main_process_port " in log, log


def problems(project, command, **changes):
    project.write(compile=None, metrics=None, hyperparameters=None, command=command, **changes)
    return [row["message"] for row in project.stoker("--json", "validate", project.spec_path).lines if "message" in row]


@pytest.mark.parametrize("engine", ["local", "slurm", "batch", "sagemaker"])
def test_too_many_workers_and_unused_ones_on_every_engine(project, engine):
    far = {"engine": engine} if engine in ("local", "slurm") else {
        "engine": engine, "workspace": "s3://bucket/w", "image": "i:1",
        engine: {"job_queue": "q"} if engine == "batch" else {"role": "arn:aws:iam::123456789012:role/r"}}
    prefix = "ml." if engine == "sagemaker" else ""

    def said(workers, instance):
        return [text for text in problems(project, ["torchrun", "t.py"], **far,
                                          resources={"instance": prefix + instance, "workers": workers, "price": 16})
                if "workers on a node" in text]
    assert said(33, TRN1) == [f"33 workers on a node, but '{prefix}{TRN1}' has 32 cores"]
    assert said(8, TRN1) == [f"8 workers on a node: 24 of the 32 cores of '{prefix}{TRN1}' stay unused: "
                             "12.00 of 16.00 USD an hour on each node are paid for nothing"]
    assert said(32, TRN1) == said("auto", TRN1) == []


P4D = "p4d.24xlarge"
GIVEN = [  # number, type, what is told; None: nothing
    ("0", TRN1, "at least 1, not '0'"), ("-3", P4D, "at least 1, not '-3'"), ("", "m5.xlarge", "at least 1, not ''"),
    ("gpu", TRN1, "refuses 'gpu' on 'trn1.32xlarge', which has none"), ("gpu", "m5.xlarge", "has none"), ("gpu", P4D, None),
    ("auto", TRN1, "'auto' counts CPUs: 128 workers for the 32 cores"),
    ("auto", P4D, None), ("auto", "m5.xlarge", None), ("cpu", TRN1, "'cpu' counts CPUs: 128 workers"), ("cpu", "m5.xlarge", None),
    ("$N", TRN1, None), ("t.py", P4D, "takes a whole number, auto, cpu or gpu, not 't.py'"), ("32", TRN1, None)]


@pytest.mark.parametrize("number,instance,told", GIVEN)
def test_a_number_that_the_launcher_refuses_is_told(project, number, instance, told):
    for command in (["torchrun", "--nproc_per_node", number, "t.py"], ["env", f"PET_NPROC_PER_NODE={number}", "torchrun", "t.py"]):
        said = problems(project, command, resources={"instance": instance})
        assert len(said) == (1 if told else 0) and all(told in each for each in said), said


def test_a_word_is_a_number_where_the_machine_is_known(project):
    plain = key(project, "torchrun t.py", resources={"instance": P4D})
    for word in ("gpu", "auto"):
        plan = plan_of(project, f"torchrun --nproc_per_node {word} t.py", resources={"instance": P4D})
        assert train(plan)["processes"]["per_node"] == 8 and plan["cache"]["graph_key"] == plain
    plan = plan_of(project, "torchrun --nproc_per_node auto t.py", resources={"instance": "m5.xlarge"})
    assert train(plan)["processes"]["per_node"] == 4


def test_accelerate_starts_one_by_cpu_and_none_by_multi_gpu_for_one(project):
    plan = plan_of(project, "accelerate launch --cpu --num_processes 8 t.py", resources={"instance": "m5.4xlarge"})
    assert train(plan)["processes"]["per_node"] == 1 and "--cpu" in train(plan)["processes"]["reason"]
    command = "accelerate launch --cpu --mpirun_hostfile hosts --num_processes 8 t.py"
    phase = train(plan_of(project, command, resources={"instance": "m5.4xlarge"}))
    assert phase["processes"]["per_node"] == 8 and phase["command"] == command.split(" ")
    for command in ("accelerate launch --multi_gpu t.py", "accelerate launch --num_processes 1 --multi-gpu t.py"):
        text, = problems(project, command.split(), resources={"instance": "g5.xlarge"})
        assert "no --multi_gpu for one worker" in text
    assert not problems(project, "accelerate launch --multi_gpu t.py".split(), resources={"instance": "g5.xlarge", "nodes": 2})


LIMITS = [
    ({"NEURON_RT_NUM_CORES": "4"}, TRN1, "NEURON_RT_NUM_CORES=4: 28 of the 32 cores of 'trn1.32xlarge' stay unused: 18.81 of"),
    ({"NEURON_RT_VISIBLE_CORES": "0-3,7"}, TRN1, "=0-3,7: 27 of the 32 cores"), ({"NEURON_RT_NUM_CORES": "0"}, TRN1, None),
    ({"NEURON_RT_VISIBLE_CORES": "0-31"}, TRN1, None), ({"NEURON_RT_VISIBLE_CORES": "0-99"}, TRN1, "has only 32 cores"),
    ({"NEURON_RT_VISIBLE_CORES": "abc"}, TRN1, "is no list of cores"), ({"CUDA_VISIBLE_DEVICES": "0,1"}, P4D, "6 of the 8 GPUs"),
    ({"CUDA_VISIBLE_DEVICES": "-1"}, P4D, "8 of the 8 GPUs"), ({"CUDA_VISIBLE_DEVICES": "0"}, TRN1, None),
    ({"NEURON_LOGICAL_NC_CONFIG": "5"}, "trn2.48xlarge", "no such number of the 128 cores"),
    ({"NEURON_LOGICAL_NC_CONFIG": "2"}, "trn2.48xlarge", None)]


@pytest.mark.parametrize("env,instance,told", LIMITS)
def test_what_the_environment_hides_is_told(project, env, instance, told):
    said = problems(project, ["torchrun", "t.py"], resources={"instance": instance}, env=env)
    assert len(said) == (1 if told else 0) and all(told in each for each in said), said


def test_what_cannot_be_is_told(project):
    text, = [each for each in problems(project, ["bash", "-c", "torchrun --nproc_per_node 4 t.py"],
                                       resources={"instance": TRN1, "workers": 8}) if "resources.workers" in each]
    assert "line for a shell" in text
    text, = [each for each in problems(project, "torchrun --nnodes 4 t.py".split(), resources={"instance": TRN1, "nodes": 2})
             if "nodes" in each]
    assert "4 nodes" in text and "2 run it" in text
    for value in ("0", "-1", "many", "1.5"):
        assert project.stoker("validate", project.spec_path, "--set", f"resources.workers={value}").code == 3


def test_a_stage_has_its_own_workers(project):
    project.write(compile=None, metrics=[{"name": "accuracy", "regex": "accuracy: ([0-9.]+)"}], command=["torchrun", "t.py"],
                  hyperparameters=None, resources={"instance": TRN1, "workers": 16},
                  data={"url": str(project.source), "settle": "0s"},
                  evaluate={"command": ["torchrun", "--nproc_per_node", "4", "e.py"], "metric": "accuracy",
                            "resources": {"instance": "trn1.2xlarge"}},
                  infer={"command": ["torchrun", "i.py"], "output": str(project.source.parent / "out"),
                         "resources": {"workers": 2, "nodes": 2}})
    said = [row for row in project.stoker("--json", "validate", project.spec_path).lines if "workers on" in row.get("message", "")]
    assert [(row["field"], row["message"][:19]) for row in said] == [
        ("resources.workers", "16 workers on a nod"), ("evaluate.command", "4 workers on a node"),
        ("infer.resources.workers", "2 workers on a node")], said
