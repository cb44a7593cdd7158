"""Logs that are long and lie with a service: who takes over reads on, and asks for nothing twice."""

import json
import os
import signal

import pytest
from batch_job import BatchJob
from test_toolkit import ToolkitJob, neuron  # noqa: F401

MUCH = """
import sys as _sys
usual = step


def step(number, args):
    usual(number, args)
    if attempt[0] == "train" and number == 20:
        _sys.modules["__main__"].compile_graph("late", "float32[7]")
        for _ in range(6):
            print("some words of a program that says much\\n" * 26000, flush=True)
"""


@pytest.fixture
def batch(aws, tmp_path):
    made = BatchJob(tmp_path / "project", aws)
    yield made
    made.stop()


def offset_in(aws, key):
    body = aws.objects("bucket").get(key)
    return json.loads(body)["logs"][0]["offset"] if body else 0


def pieces_read(job, since):
    return [row["name"] for row in job.aws.ledger(since, "GetObject") if "/node-0/log/" in row["name"] and
            "/train-1/" in row["name"] and row["status"] == 200]


def test_pieces_that_were_read_are_not_fetched_again(batch):
    batch.also(MUCH)
    batch.hold("train", 22)
    driver = batch.start("--json", "run", batch.spec_path, "--id", "one")
    batch.wait_for_effect("holds")
    kept = f"{batch.prefix}/state/runs/one/reading.json"
    batch.wait_for(lambda: offset_in(batch.aws, kept) > 5 << 20)
    assert len(pieces_read(batch, 0)) >= 6
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    since = batch.aws.mark()
    other = batch.start("--json", "resume", "one", env=batch.elsewhere())
    batch.wait_for(lambda: len(batch.events("one", "driver.took_over")) == 2)
    batch.gate.touch()
    assert other.wait(300) == 0, other.communicate()
    assert len(set(pieces_read(batch, since))) <= 2, pieces_read(batch, since)
    late = batch.events("one", "jit.compiled")
    assert [row["graphs"] for row in late] == [1] * len(late)
    assert batch.status("one")["metrics"]["step"] == 25


def test_events_of_cloudwatch_are_read_on_from_where_the_driver_before_had_come_to(aws, neuron, tmp_path):  # noqa: F811
    job = ToolkitJob(tmp_path / "project", aws, neuron, compile=None)
    gate = tmp_path / "gate"
    (job.source / "train.py").write_text(f"""import os, time
for step in range(1, 31):
    os.write(1, b"step: %d loss: 0.5\\n" % step)
    os.write(1, b"some words of a program that says much\\n" * 500)
    while step == 20 and not os.path.exists({str(gate)!r}):
        time.sleep(0.1)
""")
    job.write(command=["python3", "train.py"], hyperparameters={"max_steps": 30})
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    try:
        kept = job_wait(lambda: aws.objects("bucket").get("state/runs/one/reading.json"))
        first = json.loads(kept)["logs"][0]
        assert first["offset"] > 300_000 and "place" in first
        os.kill(driver.pid, signal.SIGKILL)
        driver.communicate()
        other = job.start("--json", "resume", "one")
        job_wait(lambda: len(job.events("one", "driver.took_over")) == 2)
        gate.touch()
        assert other.wait(300) == 0, other.communicate()
    finally:
        gate.touch()
        driver.kill()
    status = job.status("one")
    assert (status["state"], status["progress"]["step"]) == ("succeeded", 30)


def job_wait(seen, seconds=300):
    import time
    end = time.monotonic() + seconds
    while not (value := seen()):
        assert time.monotonic() < end, f"not seen in {seconds} s"
        time.sleep(0.2)
    return value
