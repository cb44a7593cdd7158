"""`stoker metrics` of a run whose workspace is a bucket: every reading that the logs there hold, also for
who comes from another home, and also without the series beside them."""

import contextlib
import os
import random
import signal
import time

import pytest
import readings

SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))


def put_in_order(s3, bucket, prefix):
    """The bytes of all objects below it, one behind the other."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = sorted(each["Key"] for page in pages for each in page.get("Contents", []))
    return keys, b"".join(s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys)


def test_100000_readings_with_two_forced_retries(job):
    s3 = job.aws.client()
    (job.source / "train.py").write_text(readings.TRAIN)
    job.write(metrics=readings.METRICS, compile={"kind": "none"}, hyperparameters=None,
              env={"STEPS": "33500", "DIES": "[15000, 25000]", "KEPT": "15"})
    job.run("--id", "one")
    bucket, prefix = job.url["stoker"][len("s3://"):].split("/", 1)
    logs = {(attempt, 0): put_in_order(s3, bucket, f"{prefix}/runs/one/train-{attempt}/node-0/log/")[1] for attempt in (1, 2, 3)}
    expected = readings.marked({place: readings.of_log(log) for place, log in logs.items()})
    assert len(expected) > 100000
    for home in ({}, job.elsewhere()):
        readings.same(readings.printed(job.ok("metrics", "one", "--csv", env=home).out), expected)
    # The agents have kept them: in few objects, each of whole blocks, and none of more than its log.
    points = 0
    for attempt in (1, 2, 3):
        keys, series = put_in_order(s3, bucket, f"{prefix}/runs/one/train-{attempt}/node-0/series/")
        blocks = readings.kept(series)
        assert keys and blocks and len(keys) <= 33 and blocks[-1][1] <= len(logs[attempt, 0])
        assert [begin for begin, _, _ in blocks[1:]] == sorted(begin for begin, _, _ in blocks[1:])
        points += sum(count for _, _, count in blocks)
        for key in keys[len(keys) // 2:]:
            s3.delete_object(Bucket=bucket, Key=key)
        s3.put_object(Bucket=bucket, Key=keys[0][:-1] + "x", Body=b"foreign" * 300000)
    assert points > 0
    readings.same(readings.printed(job.ok("metrics", "one", "--csv", env=job.elsewhere()).out), expected)


TRAIN = readings.TRAIN.replace("import json,", "import time, json,").replace(
    "in (stop - KEPT for stop in DIES)", "% 100 == 0").replace("    if number in DIES", "    time.sleep(.004)\n    if number in DIES")


@pytest.mark.parametrize("seed", [SEED * 1000 + each for each in range(2)])
def test_kills_of_drivers_agents_and_helpers_at_drawn_moments_lose_nothing(job, seed):
    """What is in the bucket's logs in the end is what is printed, of two nodes."""
    chance = random.Random(seed)
    (job.source / "train.py").write_text(TRAIN)
    job.write(metrics=readings.METRICS, compile={"kind": "none"}, hyperparameters=None, resources={"nodes": 2},
              retry={"attempts": 9, "without_progress": 9, "backoff": {"first": "0s", "max": "0s"}},
              env={"STEPS": "600", "DIES": "[]", "KEPT": "0"})
    driver = job.start("run", job.spec_path, "--id", "one")
    for _ in range(3):
        job.wait_for(lambda: job.agents() or driver.poll() is not None)
        time.sleep(chance.uniform(0, 2.5))
        if driver.poll() is not None:
            break
        for pid in job.agents(helpers=chance.random() < 0.5) if chance.random() < 0.7 else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if chance.random() < 0.5:
            driver.kill()
            driver.wait()
            driver = job.start("resume", "one")
    assert driver.wait(300) == 0, driver.communicate()
    job.wait_for(lambda: not job.agents() and not job.agents(helpers=True))
    # What a killed helper has not uploaded is on the machine.
    logs = {(attempt, node): found.read_bytes() for attempt in range(1, 6) for node in (0, 1)
            for found in job.root.rglob(f"runs/one/train-{attempt}/node-{node}/log")}
    rows = readings.printed(job.ok("metrics", "one", "--csv", env=job.elsewhere()).out)
    readings.same(rows, readings.marked({place: readings.of_log(log) for place, log in logs.items()}))
    for node in (0, 1):
        assert [row[2] for row in rows if row[1] == node and row[3] == "step" and row[-1] != "superseded"][-1] == 600
