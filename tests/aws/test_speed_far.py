"""How fast a training is on machines that are seen through a bucket or a log service now and then."""

import pytest
from batch_job import BatchJob
from test_toolkit import ToolkitJob, neuron  # noqa: F401

CONSTANT = """
import os
import time

first = time.monotonic()
for number in range(1, 161):
    time.sleep(max(first + number * 0.15 - time.monotonic(), 0))
    os.write(1, b"step: %d loss: 0.5\\n" % number)
"""


@pytest.fixture(params=["agent", "toolkit"])
def far(request, aws, neuron, tmp_path):  # noqa: F811
    """On Batch with an agent; in a training job of SageMaker's toolkit without one."""
    made = BatchJob(tmp_path / "project", aws) if request.param == "agent" else \
        ToolkitJob(tmp_path / "project", aws, neuron)
    (made.source / "train.py").write_text(CONSTANT)
    made.write(compile=None, command=["python3", "train.py"], hyperparameters=None)
    yield made
    if request.param == "agent":
        made.stop()


def test_constant_steps_are_told_as_they_are(far):
    far.run("--id", "one")
    status = far.status("one")
    told = [status["progress"]["rate"], status["throughput"]["mean"],
            1 / status["throughput"]["step_seconds"]["p50"]]
    assert all(abs(speed * 0.15 - 1) < 0.1 for speed in told), status
    text = far.ok("status", "one").out
    assert "progress:   step 160, 6." in text and "throughput: 6." in text, text
