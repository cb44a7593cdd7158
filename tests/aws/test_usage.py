"""What nodes did while they trained, of a run whose workspace is a bucket: it outlives agents that are killed,
and whoever asks from another home sees the same."""

import os
import signal

TRAIN = """
import os, time
step = 0
while not os.path.exists(os.environ["GATE"]):
    step += 1
    print("step:", step, flush=True)
    time.sleep(0.05)
"""


def test_of_two_nodes_and_after_kills(job):
    s3 = job.aws.client()
    (job.source / "train.py").write_text(TRAIN)
    gate = job.root / "gate"
    job.write(metrics=[{"name": "step", "regex": "step: ([0-9]+)"}], compile={"kind": "none"}, hyperparameters=None,
              resources={"nodes": 2}, env={"GATE": str(gate)},
              retry={"attempts": 9, "without_progress": 9, "backoff": {"first": "0s", "max": "0s"}})
    bucket, prefix = job.url["stoker"][len("s3://"):].split("/", 1)

    def is_kept(attempt):
        there = f"{prefix}/runs/one/train-{attempt}/node-%d/usage/"
        return all(s3.list_objects_v2(Bucket=bucket, Prefix=there % node).get("Contents") for node in (0, 1))

    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for(lambda: is_kept(1) or driver.poll() is not None)
    before = figures(job)
    for pid in job.agents(helpers=True) + job.agents():
        os.kill(pid, signal.SIGKILL)
    job.wait_for(lambda: is_kept(2) or driver.poll() is not None)
    gate.touch()
    assert driver.wait(300) == 0, driver.communicate()
    after = figures(job)
    assert {(row["attempt"], row["node"]) for row in before} == {(1, 0), (1, 1)}
    assert {(row["attempt"], row["node"]) for row in after} == {(1, 0), (1, 1), (2, 0), (2, 1)}
    assert [row for row in after if row in before] == before
    for place in {(row["attempt"], row["node"]) for row in after}:
        times = [row["at"] for row in after if (row["attempt"], row["node"]) == place]
        assert times == sorted(set(times)), (place, times)
    assert figures(job, env=job.elsewhere()) == after


def figures(job, **options):
    return job.ok("metrics", "one", "node/cpu", "--json", **options).lines
