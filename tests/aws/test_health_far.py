"""The check-up where the nodes meet through a bucket."""

from bucket_job import BucketJob
from neuron_standin.install import Installation


def test_nodes_are_checked_and_compared_through_a_bucket(tmp_path, aws):
    job = BucketJob(tmp_path / "job", aws, compile={"kind": "none"}, command=["python3", "train.py"],
                    hyperparameters={"max_steps": 5}, resources={"nodes": 2}, retry={"attempts": 1},
                    health={"device": True, "timeout": "5m", "collectives": {"ops": ["all_reduce"], "size": "4MiB"}})
    neuron = Installation(tmp_path / "neuron", STANDIN_INSTANCE="trn1.32xlarge").with_torch()
    # Node 1's word on how it is, and node 0's verdict do not get through at once.
    for key in ("/node-1/health.json", "/train-1/health.json"):
        aws.fault("unavailable", operation="PutObject", key=key, nth=2)
    job.run(env={"PATH": neuron.path, "AWS_MAX_ATTEMPTS": "1"})
    assert aws.struck() == 2
    said, = job.events(kind="health.checked")
    assert said["healthy"] and said["health"]["across"]["how"] == "torch", said
    assert {row["check"]: row["verdict"] for row in said["health"]["nodes"][1]["checks"]}["clock"] == "ok", said
    neuron.set(STANDIN_MISSING_DEVICES_ON_1=2)
    job.run(code=1, env={"PATH": neuron.path})
    said, = job.events(kind="health.checked")
    assert [row["words"] for row in said["health"]["sick"]] == ["14 Neuron devices, other nodes have 16"], said
    ended, = job.events(kind="attempt.ended")
    assert (ended["class"], ended["node"], ended["exit"]) == ("hardware-node", 1, 87), ended
    assert not job.events(kind="attempt.started")
