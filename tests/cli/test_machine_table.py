"""24 instance types on the engines: what each is asked for, shown and checked for, against a table of its own."""

import pytest
from test_machines import Machine

# Made by hand, not from configs/catalogue: number of accelerators and of workers (NeuronCores as the runtime shows
# them, or GPUs), vCPUs and GiB by the pages of the EC2 instance types (2026-08); EFA interfaces by EC2's
# descriptions, as issue 22 lists them; USD an hour on demand in us-east-1 of 2026-07-20, where that page has a price;
# whether SageMaker trains on them by the enum TrainingInstanceType.
TABLE = {
    # type: (kind, accelerators, workers, vCPUs, GiB, EFA, USD, SageMaker)
    "trn1.2xlarge": ("neuron", 1, 2, 8, 32, 0, 1.34375, True),
    "trn1.32xlarge": ("neuron", 16, 32, 128, 512, 8, 21.5, True),
    "trn1n.32xlarge": ("neuron", 16, 32, 128, 512, 16, 24.78, True),
    "trn2.3xlarge": ("neuron", 1, 4, 12, 128, 1, None, False),
    "trn2.48xlarge": ("neuron", 16, 64, 192, 2048, 16, None, True),
    "inf2.xlarge": ("neuron", 1, 2, 4, 16, 0, 0.7582, False),
    "inf2.24xlarge": ("neuron", 6, 12, 96, 384, 0, 6.49063, False),
    "inf2.48xlarge": ("neuron", 12, 24, 192, 768, 0, 12.98127, False),
    "p3.2xlarge": ("nvidia", 1, 1, 8, 61, 0, 3.06, True),
    "p3dn.24xlarge": ("nvidia", 8, 8, 96, 768, 1, 31.212, True),
    "p4d.24xlarge": ("nvidia", 8, 8, 96, 1152, 4, 21.957642, True),
    "p4de.24xlarge": ("nvidia", 8, 8, 96, 1152, 4, 27.44705, True),
    "p5.4xlarge": ("nvidia", 1, 1, 16, 256, 1, 6.88, True),
    "p5.48xlarge": ("nvidia", 8, 8, 192, 2048, 32, 55.04, True),
    "p5e.48xlarge": ("nvidia", 8, 8, 192, 2048, 32, None, True),
    "p5en.48xlarge": ("nvidia", 8, 8, 192, 2048, 16, 63.296, True),
    "g4dn.xlarge": ("nvidia", 1, 1, 4, 16, 0, 0.526, True),
    "g4dn.12xlarge": ("nvidia", 4, 4, 48, 192, 1, 3.912, True),
    "g5.12xlarge": ("nvidia", 4, 4, 48, 192, 1, 5.672, True),
    "g5.48xlarge": ("nvidia", 8, 8, 192, 768, 1, 16.288, True),
    "g6.4xlarge": ("nvidia", 1, 1, 16, 64, 0, 1.3232, True),
    "g6e.24xlarge": ("nvidia", 4, 4, 96, 768, 2, 15.06559, True),
    "g6e.48xlarge": ("nvidia", 8, 8, 192, 1536, 4, 30.13118, True),
    "m5.xlarge": (None, 0, 0, 4, 16, 0, 0.192, True),
}


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def planned(machine, *options):
    said = machine.stoker("--json", "plan", *options, "stoker.yaml")
    assert said.code == 0, str(said)
    return said.lines[0]


def same_everywhere(plan, instance, price=None):
    """The workers, the check-up and the price."""
    kind, count, workers, *_ = TABLE[instance]
    assert plan["phases"][0]["processes"].get("per_node", 0) == (workers or 1), plan["phases"]
    assert plan.get("health", {}).get("device", False) == (kind is not None), plan.get("health")
    assert plan.get("cost", {}).get("price") == price, plan.get("cost")


@pytest.mark.parametrize("instance", TABLE)
def test_on_batch(machine, instance):
    """On two nodes too, where there is EFA between them."""
    kind, count, _, vcpus, gib, efa, price, _ = TABLE[instance]
    for nodes in (1, 2) if efa else (1,):
        plan = planned(machine.write(instance, nodes=nodes), "--requests")
        same_everywhere(plan, instance, price)
        container = machine.container_of(plan)
        asked = {row["type"]: int(row["value"]) for row in container["resourceRequirements"]}
        assert asked["VCPU"] == vcpus and gib * 1024 * 0.9 < asked["MEMORY"] < gib * 1024, asked
        assert asked.get("GPU", 0) == (count if kind == "nvidia" else 0), asked
        devices = container["linuxParameters"].get("devices", [])
        assert [row["hostPath"] for row in devices] == [
            *(f"/dev/neuron{one}" for one in range(count if kind == "neuron" else 0)),
            *(f"/dev/infiniband/uverbs{one}" for one in range(efa if nodes > 1 else 0))]
        assert all(row["permissions"] == ["READ", "WRITE", "MKNOD"] for row in devices), devices
        limits = {row["name"]: (row["softLimit"], row["hardLimit"]) for row in container["ulimits"]}
        assert limits == {"memlock": (-1, -1), **({"nofile": (65535, 65535)} if efa else {})}, limits


@pytest.mark.parametrize("instance", TABLE)
def test_on_sagemaker(machine, instance):
    """By SageMaker's names, and without a price of EC2."""
    machine.write(f"ml.{instance}", "sagemaker", 2)
    if not TABLE[instance][-1]:
        said = machine.stoker("validate", "stoker.yaml")
        assert said.code == 3 and f"SageMaker trains on no 'ml.{instance}'" in said.err, str(said)
        return
    plan = planned(machine, "--requests")
    same_everywhere(plan, instance)
    body = plan["requests"][0]["sends"][0]["body"]
    assert (body["ResourceConfig"]["InstanceType"], body["ResourceConfig"]["InstanceCount"]) == (f"ml.{instance}", 2)


@pytest.mark.parametrize("instance", TABLE)
def test_on_a_machine_that_is_one(machine, instance):
    same_everywhere(planned(machine.write(instance, "local")), instance, TABLE[instance][-2])
