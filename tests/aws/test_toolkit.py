"""Runs on SageMaker with `launcher: toolkit`: the plain Estimator shape, without our agent."""

import json
import re
from pathlib import Path

import pytest
from bucket_job import BUCKET
from neuron_standin.install import Installation
from project import Project

KEPT = json.loads((Path(__file__).parent / "data/estimator.json").read_text())
ROLE = "arn:aws:iam::123456789012:role/sagemaker"
IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.29.1-ubuntu24.04"


class ToolkitJob(Project):
    """The neuron stand-in's script; everything in S3."""

    def __init__(self, root, aws, neuron, **changes):
        self.aws, self.neuron = aws, neuron
        super().__init__(root)
        aws.make_bucket(BUCKET)
        aws.push(IMAGE)
        neuron.train_script(self.source / "train.py")
        (root / "home").mkdir()
        self.write(**{
            "engine": "sagemaker", "image": IMAGE, "command": ["torchrun", "train.py"],
            "workspace": f"s3://{BUCKET}/stoker",
            "resources": {"instance": "ml.trn1.2xlarge", "nodes": 1},
            "sagemaker": {"role": ROLE, "launcher": "toolkit"},
            "hyperparameters": {"lr": 0.1, "max_steps": 8, "save_steps": 4},
            "compile": {"kind": "neuron", "cache_url": f"s3://{BUCKET}/cache", "max_steps": 4, "quiet_period": "0s"},
            "metrics": [{"name": "loss", "regex": "loss: ([0-9.eE+-]+)"}, {"name": "step", "regex": "step: ([0-9]+)"}],
            "retry": {"attempts": 2, "backoff": {"first": "0s", "max": "0s"}}, **changes})

    def env(self, **more):
        return self.aws.env(**{"HOME": str(self.root / "home"), "STOKER_STATE": f"s3://{BUCKET}/state", **more})


@pytest.fixture
def neuron(aws, tmp_path):
    """What is in the image."""
    made = Installation(tmp_path / "neuron", STANDIN_INSTANCE="trn1.2xlarge").with_boto3()
    aws.settings(image_env={"*": {"PATH": made.path}})
    return made


@pytest.fixture
def far(aws, neuron, tmp_path):
    return ToolkitJob(tmp_path / "project", aws, neuron)


def submitted(job, run):
    return [(row["phase"], row["attempt"]) for row in job.events(run, "attempt.submitted")]


# Where a request of ours differs from the Estimator's, and why.
DIFFERENCES = {
    "TrainingJobName": "run, phase and attempt are in it",
    "HyperParameters.sagemaker_job_name": "the same name again",
    "HyperParameters.sagemaker_submit_directory": "the workspace's bundle, by the hash of its content",
    "OutputDataConfig.S3OutputPath": "beneath the attempt, in the workspace",
    "DebugHookConfig.S3OutputPath": "the debugger's hook can break the upload of checkpoints, and nothing reads it",
    "DebugHookConfig.CollectionConfigurations": "as above",
}
MINE = {
    "TrainingJobName": "stk-<id>-{}-1", "HyperParameters.sagemaker_job_name": '"stk-<id>-{}-1"',
    "OutputDataConfig.S3OutputPath": "s3://bucket/stoker/runs/<id>/{}-1/sagemaker",
}


def flat(value, path=""):
    if not isinstance(value, dict):
        return {path.strip("."): value}
    return {name: inner for key, each in value.items() for name, inner in flat(each, f"{path}.{key}").items()}


def test_the_request_is_the_estimators_field_by_field(far):
    """The two-instance example of Neuron's samples, of which tests/aws/data has what the SDK sends."""
    (far.source / "run_glue.py").write_text("pass\n")
    sent = KEPT["train"]
    far.write(
        command=["torchrun", "run_glue.py"], image=sent["AlgorithmSpecification"]["TrainingImage"],
        aws={"region": "us-west-2"}, resources={"instance": "ml.trn1.32xlarge", "nodes": 2},
        sagemaker={"role": sent["RoleArn"], "launcher": "toolkit", "volume": "450GiB", "max_runtime": "24h",
                   "profiler": False},
        hyperparameters={"model_name_or_path": "roberta-base", "task_name": "mrpc", "do_train": True,
                         "max_seq_length": 128, "per_device_train_batch_size": 8, "learning_rate": 2e-05,
                         "max_train_samples": 128, "num_train_epochs": 1, "max_steps": 200,
                         "output_dir": "/opt/ml/model"},
        env={"FI_EFA_FORK_SAFE": "1"},
        compile={"kind": "neuron", "cache_url": "s3://bucket/s3-neuron-cache",
                 "overrides": {"hyperparameters": {"max_steps": 200}}},  # as long as the training, in the sample
        metrics=None, metric_definitions=sent["AlgorithmSpecification"]["MetricDefinitions"])
    plan = far.plan()
    for request in plan["requests"]:
        phase, (call,) = request["phase"], request["sends"]
        assert call["operation"] == "CreateTrainingJob"
        mine, theirs = flat(call["body"]), flat(KEPT[phase])
        unlike = {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}
        assert unlike == set(DIFFERENCES), {name: (mine.get(name), theirs.get(name)) for name in unlike}
        assert {name: mine[name] for name in MINE} == {name: text.format(phase) for name, text in MINE.items()}
        assert json.loads(mine["HyperParameters.sagemaker_submit_directory"]) == \
            f"s3://bucket/stoker/{plan['source']['bundle']}"
        quiet = flat(KEPT["quiet"])  # without the debugger's hook nothing is missing and nothing is over
        assert mine.keys() - {"Environment.RUN_NEURON_PARALLEL_COMPILE"} == quiet.keys()
    assert [request["phase"] for request in plan["requests"]] == ["precompile", "train"]
    rows = {row["field"]: (row["precompile"], row["train"]) for row in plan["difference"]}
    assert rows["Environment.RUN_NEURON_PARALLEL_COMPILE"] == ("1", None)
    assert rows.keys() == {"Environment.RUN_NEURON_PARALLEL_COMPILE", "TrainingJobName",
                           "HyperParameters.sagemaker_job_name", "OutputDataConfig.S3OutputPath"}


def test_phase_1_is_short_and_the_image_counts_the_cores(far):
    far.write(resources={"instance": "ml.trn1.32xlarge"}, hyperparameters={"train_steps": 900},
              compile={"kind": "neuron", "cache_url": f"s3://{BUCKET}/cache"})
    first, second = far.plan()["requests"]
    values = [request["sends"][0]["body"]["HyperParameters"] for request in (first, second)]
    assert [value["train_steps"] for value in values] == ["5", "900"] and "max_steps" not in values[0]
    assert "PET_NPROC_PER_NODE" not in str(first) and "num_parallel" not in str(first)
    text = far.ok("plan", far.spec_path).out
    assert "32 on each node" in text and "toolkit" in text, text


def test_hyperparameters_are_written_as_the_sdk_writes_them(far):
    # A shell would not leave the others as they are: they are refused.
    plain = [row for row in KEPT["values"] if row["value"] not in ('a"b\\c', "ü→😀")]
    far.write(compile=None, hyperparameters={f"x{n}": row["value"] for n, row in enumerate(plain)})
    far.write(env={"MY_TOKEN": "s3cr3t", "PLAIN": "x"})
    (call,), = [request["sends"] for request in far.plan()["requests"]]
    assert call["body"]["Environment"]["PLAIN"] == "x" and "s3cr3t" not in json.dumps(call), "a plan shows no secrets"
    assert [call["body"]["HyperParameters"][f"x{n}"] for n in range(len(plain))] == [row["sent"] for row in plain]


def said_to_run(job, run, phase, node):
    """The command line that the toolkit says it starts."""
    log = job.ok("logs", run, "--phase", phase, "--node", str(node)).out
    return re.search(r"following command:\s*(.*)", log)[1]


@pytest.mark.parametrize(("nodes", "command"), [(1, "torchrun"), (2, "python3")])
def test_the_plan_shows_the_command_that_runs(far, nodes, command):
    far.write(command=[command, "train.py"], resources={"instance": "ml.trn1.2xlarge", "nodes": nodes},
              hyperparameters={"max_steps": 8, "lr": 3.0e-4, "save_steps": 4, "bf16": True, "b": 17, "left_out": None,
                               "name": "tiny", "eps": 1e-08, "sagemaker_own": 1},
              compile={**far.spec["compile"], "overrides": {"hyperparameters": {"save_steps": 2}}})
    script = far.source / "train.py"
    script.write_text("import sys\nsys.argv = [each for each in sys.argv if each not in ('--bf16', 'True', '-b', '17', "
                      "'--name', 'tiny', '--eps', '1e-08')]\n" + script.read_text())
    plan = far.plan()
    shown = {row["phase"]: row["command"] for row in plan["phases"] if "command" in row}
    asked = {row["phase"]: row["command"] for row in plan["requests"]}
    assert shown == asked and set(shown) == {"precompile", "train"}
    text = far.ok("plan", far.spec_path).out
    far.run("--id", "one")
    for phase, words in shown.items():
        assert "front" not in next(row for row in plan["phases"] if row["phase"] == phase)
        assert f"  {phase:10} {' '.join(words).replace('<rank>', chr(39) + '<rank>' + chr(39))}\n" in text, text
        for node in range(nodes):
            assert " ".join(words).replace("<rank>", str(node)) == said_to_run(far, "one", phase, node)
    assert shown["train"][:5] == ["torchrun", "--nnodes", str(nodes), "--nproc_per_node", "2"]


# What the SDK's PyTorch estimator adds for each (pytorch/estimator.py of 2.257.7).
DISTRIBUTIONS = {
    "torch_distributed": {"sagemaker_torch_distributed_enabled": "true", "sagemaker_instance_type": '"ml.c5.xlarge"'},
    "pytorchddp": {"sagemaker_pytorch_ddp_enabled": "true", "sagemaker_instance_type": '"ml.c5.xlarge"'},
    "none": {},
}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_each_distribution_is_asked_for_as_the_sdk_does(far, distribution):
    far.write(resources={"instance": "ml.c5.xlarge"}, compile=None, command=["python3", "train.py"],
              sagemaker={"role": ROLE, "launcher": "toolkit", "distribution": distribution})
    plan = far.plan()
    (call,), = [request["sends"] for request in plan["requests"]]
    values = call["body"]["HyperParameters"]
    ways = {name: value for name, value in values.items() if name.endswith("_enabled") or name.endswith("_type")}
    assert ways == DISTRIBUTIONS[distribution], values
    first = {"torch_distributed": "torchrun", "pytorchddp": "mpirun", "none": "python3"}[distribution]
    assert plan["phases"][-1]["command"][0] == first, plan["phases"]


def test_without_a_distribution_the_program_itself_runs(far):
    far.write(resources={"instance": "ml.c5.xlarge", "nodes": 1}, compile=None, command=["python3", "train.py"],
              hyperparameters={"steps": 3},
              sagemaker={"role": ROLE, "launcher": "toolkit", "distribution": "none"})
    (far.source / "train.py").write_text("import os, sys\nfor step in range(1, 4):\n    print('step:', step, flush=True)\n"
                                         "print('loss: 0.5', sys.argv[1:], 'RANK' in os.environ, flush=True)\n")
    shown = " ".join(far.plan()["phases"][-1]["command"])
    far.run("--id", "one")
    assert shown == "python3 train.py --steps 3" == said_to_run(far, "one", "train", 0)
    log = far.ok("logs", "one").out
    assert "loss: 0.5 ['--steps', '3'] False" in log, "no launcher has set a rank"


WRONG_DISTRIBUTIONS = {
    "phase 1 of Neuron": ({"distribution": "none"}, {"command": ["python3", "train.py"]},
                          "sagemaker.distribution", "neuron_parallel_compile"),
    "mpirun on Trainium": ({"distribution": "pytorchddp"}, {"compile": None}, "sagemaker.distribution", "Trainium"),
    "torchrun, and none": ({"distribution": "none"}, {"compile": None}, "command[0]", "starts no torchrun"),
}


@pytest.mark.parametrize("name", WRONG_DISTRIBUTIONS)
def test_a_distribution_that_cannot_work_is_refused(far, name):
    sagemaker, changes, field, words = WRONG_DISTRIBUTIONS[name]
    far.write(sagemaker={"role": ROLE, "launcher": "toolkit", **sagemaker}, **changes)
    told = far.stoker("--json", "validate", far.spec_path)
    row, = [row for row in told.lines if not row.get("lint")]
    assert told.code == 3 and row["field"] == field and words in row["message"] and row["hint"], str(told)


def test_a_distribution_without_the_toolkit_is_told(far):
    far.write(sagemaker={"role": ROLE, "launcher": "node", "distribution": "none"})
    told = far.stoker("--json", "validate", far.spec_path)
    row, = [row for row in told.lines if row["field"] == "sagemaker.distribution"]
    assert told.code == 0 and row["lint"] and "toolkit" in row["message"], str(told)


@pytest.mark.parametrize(("resources", "workers"), [
    ({"instance": "ml.c5.xlarge"}, "1"), ({"instance": "ml.trn2.48xlarge"}, "64"), ({"instance": "ml.trn9.huge"}, "<cores>")])
def test_workers_that_no_catalogue_knows_are_no_number(far, resources, workers):
    far.write(resources=resources, compile=None)
    command = far.plan()["phases"][0]["command"]
    assert command[command.index("--nproc_per_node") + 1] == workers


@pytest.mark.parametrize("nodes", [1, 2])
def test_both_phases_run_and_the_second_run_is_warm(far, nodes):
    far.write(resources={"instance": "ml.trn1.2xlarge", "nodes": nodes})
    far.run("--id", "one")
    assert submitted(far, "one") == [("precompile", 1), ("train", 1)]
    said, = far.events("one", "cache.verified")
    assert said["complete"] and said["graphs"] == said["done"] > 0 and said["sources"]["log"]["misses"] > 0, said
    status = far.status("one")
    assert status["jit"]["graphs"] == 0 and status["progress"]["step"] == 8 and "loss" in status["metrics"]
    # Without an agent the readings are those of the service's log, at its times.
    rows = far.ok("--json", "metrics", "one").lines
    for node in range(nodes):
        log = "".join(far.ok("logs", "one", "--phase", "train", "--node", str(node)).out)
        steps = [int(step) for step in re.findall(r"step: ([0-9]+)", log)]
        assert [row["value"] for row in rows if row["name"] == "step" and row["node"] == node] == steps
    assert all(row["counts"] and row["at"] and row["attempt"] == 1 for row in rows) and len(rows) >= 8
    assert [(row["class"], row["exit"]) for row in status["attempts"]] == [("none", 0)] * 2
    far.run("--id", "two")
    assert submitted(far, "two") == [("train", 1)]
    for node in range(nodes):
        log = far.ok("logs", "one", "--phase", "train", "--node", str(node)).out
        assert f"--node_rank {node}" in log or nodes == 1, log
        assert log.rstrip().endswith("Reporting training SUCCESS"), log
    assert not [key for key in far.aws.objects(BUCKET) if key.startswith("stoker/agents/")], "nobody needs an agent"


def test_a_hang_is_stopped_and_tried_again(far):
    script = far.source / "train.py"
    script.write_text(script.read_text().replace(
        "            crash(number)\n", "            crash(number)\n"
        "            if number == 3 and os.environ['TRAINING_JOB_NAME'].endswith('-train-1'):\n"
        "                time.sleep(600)\n"))
    far.write(compile=None, limits={"stall": "12s"})
    far.run("--id", "hangs")
    first, second = far.status("hangs")["attempts"]
    assert (first["class"], first["action"]) == ("timeout-hang", "retry"), first
    assert "no progress for" in first["evidence"] and "last seen at: step" in first["evidence"], first
    assert second["class"] == "none"
    ended = far.events("hangs", "attempt.ended")[0]
    assert ended["stopped"] == "stall" and ended["hang"] >= 12, ended
    assert far.aws.effects("StopTrainingJob") == 1
    kept = json.loads(far.aws.objects(BUCKET)["stoker/runs/hangs/train-1/stopped.json"])
    assert kept["stopped"] == "stall" and kept["stall"]["doing"] == "step", kept


SAVES = """import os, time
root = os.path.join(os.environ["OPT_ML"], "checkpoints")
done = max([int(name) for name in os.listdir(root)], default=0)
os.write(1, b"went on after %d\\n" % done)
for step in range(done + 1, 31):
    time.sleep(0.1)
    open(os.path.join(root, str(step)), "w").close()
    os.write(1, b"step: %d\\n" % step)
    if step == 10 and not done:
        open("LOST", "w").close()
        time.sleep(600)
"""


def test_what_sagemaker_itself_keeps_is_there_for_a_retry(far):
    lost = far.root / "lost"
    (far.source / "train.py").write_text(SAVES.replace("LOST", str(lost)))
    far.write(compile=None, hyperparameters=None, checkpoint={"url": f"s3://{BUCKET}/ckpt", "sync": "engine"})
    far.aws.fault("job_fails", operation="CreateTrainingJob", count=1, when=str(lost), hard=True,
                  reason="InternalServerError: We encountered an internal error. Please try again.")
    far.run("--id", "kept")
    first, second = far.status("kept")["attempts"]
    assert (first["class"], first["action"], second["class"]) == ("transient-infra", "retry", "none"), (first, second)
    said = far.ok("logs", "kept", "--attempt", "2").out.splitlines()
    after = int(next(line for line in said if line.startswith("went on after")).split()[-1])
    assert after > 0 and f"step: {after + 1}" in said and "step: 30" in said, said
    described = far.aws.client("sagemaker").describe_training_job(TrainingJobName="stk-kept-train-2")
    assert described["CheckpointConfig"]["S3Uri"] == f"s3://{BUCKET}/ckpt/kept"


def test_phase_1_has_its_time_and_no_more(far):
    far.neuron.set(STANDIN_COMPILE_SECONDS=600)
    far.aws.settings(stop_seconds=3)  # the compiler does not heed a SIGTERM
    far.write(retry={"attempts": 1, "backoff": {"first": "0s", "max": "0s"}},
              compile={**far.spec["compile"], "timeout": "3s"})
    far.run("--id", "slow", code=1)
    attempt, = far.status("slow")["attempts"]
    assert attempt["class"] == "timeout-hang" and "compile.timeout" in attempt["evidence"], attempt


def test_a_script_that_fails_is_told_by_its_own_words(far):
    script = far.source / "train.py"
    # In one write: of a line in pieces, as Python writes it without a buffer, the toolkit makes lines.
    said = "Traceback (most recent call last):\\n  File 'train.py', line 1\\nValueError: shapes (3,4) and (5,6) not aligned"
    script.write_text(f'import os\nos.write(2, b"{said}\\n")\nraise SystemExit(1)\n')
    far.write(compile=None)
    far.run("--id", "wrong", code=1)
    attempt, = far.status("wrong")["attempts"]
    assert (attempt["class"], attempt["exit"], attempt["action"]) == ("user-code", 1, "stop"), attempt
    assert "shapes (3,4) and (5,6) not aligned" in attempt["evidence"], attempt


def test_what_does_not_hold_is_said_and_what_cannot_be_is_refused(far):
    plan = far.ok("plan", far.spec_path).out
    assert "without stoker's agent" in plan and "no claim" in plan and "no checkpoint is marked" in plan
    assert "no health checks" in "\n".join(far.plan()["not_held"])
    far.write(health={"timeout": "5m"})
    refused = far.stoker("validate", far.spec_path)
    assert refused.code == 3 and "'health' needs stoker's agent" in refused.err, str(refused)
    assert far.aws.requests("CreateTrainingJob") == 0
