"""How many processes torchrun starts on machines of AWS, as the launcher itself is told it."""

import pytest
from batch_job import BatchJob
from sagemaker_job import SagemakerJob

SAYS = """#!/bin/sh
echo "PET=${PET_NPROC_PER_NODE-unset} ARGS=$*"
"""


@pytest.fixture(params=["batch", "sagemaker"])
def job(request, aws, tmp_path):
    prefix = "" if request.param == "batch" else "ml."
    resources = {"instance": f"{prefix}trn1.32xlarge", "nodes": 2}
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "torchrun").write_text(SAYS)
    (tools / "torchrun").chmod(0o755)
    if request.param == "batch":
        made = BatchJob(tmp_path / "project", aws, resources=resources)
        aws.settings(image_env={"*": {**made.image_env, "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin"}})
    else:
        made = SagemakerJob(tmp_path / "project", aws, nodes=2, resources=resources, health={"device": False})
        aws.settings(image_env={"*": {"PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin"}})
    made.write(compile=None, hyperparameters={"train_steps": 9}, command=["torchrun", "--max-restarts", "0", "train.py"])
    yield made
    made.stop()


def test_a_process_for_each_core_of_each_machine(job):
    phase, = job.plan()["phases"]
    assert (phase["processes"]["per_node"], phase["processes"]["world"]) == (32, 64)
    job.run("--id", "one")
    for node in ("0", "1"):
        log = job.ok("logs", "one", "--node", node).out
        assert "PET=32 ARGS=--max-restarts 0 train.py --train_steps 9" in log, log
    job.write(command=["torchrun", "--nproc-per-node", "4", "train.py"])
    job.run("--id", "two")
    assert "PET=unset ARGS=--nproc-per-node 4" in job.ok("logs", "two").out
