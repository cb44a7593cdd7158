"""The stand-in for SageMaker's own containers, held against the toolkit's source: what the SDK
sends is run, and ends, as there."""

import io
import json
import tarfile
from pathlib import Path

import pytest
from neuron_standin.install import Installation
from test_standin_jobs import ended, lines, refused

KEPT = json.loads((Path(__file__).parent / "data/estimator.json").read_text())
GROUP = "/aws/sagemaker/TrainingJobs"


@pytest.fixture
def container(aws, s3, tmp_path):
    """What is in the image."""
    neuron = Installation(tmp_path / "neuron", STANDIN_INSTANCE="trn1.2xlarge").with_boto3()
    aws.settings(image_env={"*": {"PATH": neuron.path}})
    return neuron


def pack(**files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name.replace("__", "."))
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def send(aws, s3, request, **files):
    key = json.loads(request["HyperParameters"]["sagemaker_submit_directory"]).removeprefix("s3://bucket/")
    if files:
        s3.put_object(Bucket="bucket", Key=key, Body=pack(**files))
    client = aws.client("sagemaker")
    client.create_training_job(**request)
    return ended(client, request["TrainingJobName"])


# Each line in one write: the toolkit passes on what it gets, and a piece of a line becomes a line.
SCRIPT = """import os, sys
said = "rank {RANK} of {WORLD_SIZE} {SM_CURRENT_HOST} {SM_HP_LEARNING_RATE}\\n".format(**os.environ)
os.write(1, said.encode())
if os.environ["RANK"] == "0":
    os.write(1, f"{sys.argv[1:]}\\n".encode())
"""


def test_what_the_sdk_sends_is_run_on_both_hosts(aws, s3, container):
    job = send(aws, s3, KEPT["train"], run_glue__py=SCRIPT)
    assert job["TrainingJobStatus"] == "Completed", job
    said = lines(aws, GROUP, "glue-train/algo-")
    for rank, host in ((0, "algo-1"), (1, "algo-1"), (2, "algo-2"), (3, "algo-2")):
        assert f"rank {rank} of 4 {host} 2e-05" in said
    words = ["--do_train", "True", "--learning_rate", "2e-05", "--max_seq_length", "128", "--max_steps", "200",
             "--max_train_samples", "128", "--model_name_or_path", "roberta-base", "--num_train_epochs", "1",
             "--output_dir", "/opt/ml/model", "--per_device_train_batch_size", "8", "--task_name", "mrpc"]
    assert str(words) in said
    assert any(line.startswith("torchrun --nnodes 2 --nproc_per_node 2 --master_addr algo-1 --master_port 7777 "
                               "--node_rank 1 run_glue.py --do_train True") for line in said), said


def test_phase_1_has_the_front_end_before_torchrun(aws, s3, container):
    job = send(aws, s3, KEPT["precompile"], run_glue__py=SCRIPT)
    assert job["TrainingJobStatus"] == "Completed", job
    said = lines(aws, GROUP, "glue-precompile/algo-1-")
    assert any(line.startswith("neuron_parallel_compile torchrun --nnodes 2") for line in said), said
    assert any("Running trial run" in line for line in said), said


@pytest.mark.parametrize(("files", "words"), [
    ({"run_glue__py": "raise SystemExit(3)\n"}, "AlgorithmError: ExecuteUserScriptError:\nExitCode 1\n"),
    ({"run_glue__py": "", "setup__py": ""}, "AlgorithmError: Python packages are not supported"),
    ({}, "AlgorithmError: Framework Error: \nAn error occurred (404)"),
])
def test_a_failure_is_told_as_the_toolkit_tells_it(aws, s3, container, files, words):
    job = send(aws, s3, KEPT["quiet"], **files)
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith(words), job["FailureReason"]
    assert job["FailureReason"].endswith(", exit code: 1")


def test_a_value_goes_through_a_shell(aws, s3, container):
    request = json.loads(json.dumps(KEPT["quiet"]))
    request["HyperParameters"]["task_name"] = json.dumps("two words")
    send(aws, s3, request, run_glue__py=SCRIPT)
    said = [line for line in lines(aws, GROUP, "glue-quiet/algo-1-") if line.startswith("['--")]
    assert said[0].endswith("'--task_name', 'two', 'words']")


def test_a_container_fills_a_cache_in_s3(aws, s3, container, tmp_path):
    request = json.loads(json.dumps(KEPT["precompile"]))
    request["HyperParameters"] = {name: value for name, value in request["HyperParameters"].items()
                                  if name.startswith("sagemaker_")} | {"max_steps": "2"}
    job = send(aws, s3, request, run_glue__py=container.train_script(tmp_path / "train.py").read_text())
    assert job["TrainingJobStatus"] == "Completed", job
    keys = [key for key in aws.objects("bucket") if key.startswith("s3-neuron-cache/neuronxcc-")]
    assert any(key.endswith("model.neff") for key in keys) and not any(key.endswith(".lock") for key in keys), keys
    said = "\n".join(lines(aws, GROUP, "glue-precompile/algo-"))
    assert "s3://bucket/s3-neuron-cache/neuronxcc-" in said


def test_a_second_request_of_that_name_is_refused(aws, s3, container):
    client = aws.client("sagemaker")
    client.create_training_job(**KEPT["train"])
    code, message = refused(client.create_training_job, **KEPT["train"])
    assert code == "ResourceInUse" and "must be unique" in message
