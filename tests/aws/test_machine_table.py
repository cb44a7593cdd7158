"""25 instance types on three engines: what each job asks for, is sent with and is checked for, as `plan --offline
--requests` shows it, against what EC2 says of these types (tests/support/described.txt). That `run` sends the same is
shown by test_plan_bodies.py. Each body is held against the service's own model."""

import json
import re

import pytest
from described import DESCRIBED
from machine import Machine
from standin import rules, services, validate

# Workers of a node: one for each NeuronCore as the runtime shows them (of Trainium2 two physical ones are one: "Logical
# NeuronCore configuration" of the Neuron SDK, 2026-08), or for each GPU, else one. Whether SageMaker trains on ml.TYPE:
# its enum TrainingInstanceType (botocore 1.43.11). All else is EC2's.
TABLE = {
    # type: (kind, workers, SageMaker)
    "trn1.2xlarge": ("neuron", 2, True),
    "trn1.32xlarge": ("neuron", 32, True),
    "trn1n.32xlarge": ("neuron", 32, True),
    "trn2.3xlarge": ("neuron", 4, False),
    "trn2.48xlarge": ("neuron", 64, True),
    "inf2.xlarge": ("neuron", 2, False),
    "inf2.24xlarge": ("neuron", 12, False),
    "inf2.48xlarge": ("neuron", 24, False),
    "p3.2xlarge": ("nvidia", 1, True),
    "p3.16xlarge": ("nvidia", 8, True),
    "p3dn.24xlarge": ("nvidia", 8, True),
    "p4d.24xlarge": ("nvidia", 8, True),
    "p4de.24xlarge": ("nvidia", 8, True),
    "p5.4xlarge": ("nvidia", 1, True),
    "p5.48xlarge": ("nvidia", 8, True),
    "p5e.48xlarge": ("nvidia", 8, True),
    "p5en.48xlarge": ("nvidia", 8, True),
    "g4dn.xlarge": ("nvidia", 1, True),
    "g4dn.12xlarge": ("nvidia", 4, True),
    "g5.12xlarge": ("nvidia", 4, True),
    "g5.48xlarge": ("nvidia", 8, True),
    "g6.4xlarge": ("nvidia", 1, True),
    "g6e.24xlarge": ("nvidia", 4, True),
    "g6e.48xlarge": ("nvidia", 8, True),
    "m5.xlarge": (None, 1, True),
}
SERVICES = {"RegisterJobDefinition": "batch", "SubmitJob": "batch", "CreateTrainingJob": "sagemaker"}
HELPED = "batch: {job_queue: q, helper_image: public.ecr.aws/aws-cli/aws-cli:2}"  # brings the agent, in its own container


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def planned(machine):
    said = machine.stoker("--json", "plan", "--offline", "--requests", "stoker.yaml")
    assert said.code == 0, str(said)
    return said.lines[0]


def accelerators(instance):
    return DESCRIBED[instance]["devices"] or DESCRIBED[instance]["gpus"]


def same_everywhere(plan, instance, nodes):
    """The workers, the check-up, and what the agent of a node is told of its machine."""
    kind, workers, _ = TABLE[instance]
    assert plan["phases"][0]["processes"].get("per_node", 0) == workers, plan["phases"]
    assert plan["phases"][0]["env"]["STOKER_WORKERS"] == str(workers), plan["phases"]
    assert plan.get("health", {}).get("device", False) == (kind is not None), plan.get("health")
    order, = plan["requests"]
    assert (order.get("accelerator"), order.get("devices", 0)) == (kind, accelerators(instance)), order
    assert order.get("cores", workers if kind else 0) == (workers if kind else 0), order
    assert order["world_size"] == workers * nodes and order["env"].get("PET_NPROC_PER_NODE", "1") == str(workers), order
    assert "health" not in order if kind is None else order["health"]["device"], order


def same_price(plan, instance, nodes):
    if "usd" in DESCRIBED[instance]:
        price = DESCRIBED[instance]["usd"]
        assert plan.get("cost", {}).get("price") == price, plan.get("cost")
        assert plan.get("cost", {}).get("per_hour") == (None if price is None else pytest.approx(price * nodes))


def bodies(plan):
    """{operation: body} as the services' models allow them; a placeholder is a word like any other."""
    order, = plan["requests"]
    found = {call["operation"]: call["body"] for call in order["sends"]}
    for operation, body in found.items():
        problems, plain = [], json.loads(re.sub(r"<([a-z-]+)>", r"\1", json.dumps(body)))
        validate.check_structure(plain, services.shape_of(SERVICES[operation], operation), "", problems)
        assert not problems, problems
    return found


def containers(definition):
    """The job's own, and the others."""
    group = definition["nodeProperties"]["nodeRangeProperties"][0] if "nodeProperties" in definition else definition
    if alone := group.get("container") or group.get("containerProperties"):
        return alone, []
    task, = (group.get("ecsProperties") or group)["taskProperties"]
    own = next(each for each in task["containers"] if each["name"] == "main")
    return own, [each for each in task["containers"] if each is not own]


def asked_by(container):
    rules.check_container({"resourceRequirements": container["resourceRequirements"]})
    return {row["type"]: int(row["value"]) for row in container["resourceRequirements"]}


@pytest.mark.parametrize("nodes, own", [(1, HELPED), (2, "")], ids=["one-helped", "two"])
@pytest.mark.parametrize("instance", TABLE)
def test_on_batch(machine, instance, nodes, own):
    """With EFA between two nodes; GPUs are of the job's own container alone."""
    kind, row = TABLE[instance][0], DESCRIBED[instance]
    plan = planned(machine.write(instance, nodes=nodes, own=own))
    same_everywhere(plan, instance, nodes)
    same_price(plan, instance, nodes)
    container, others = containers(bodies(plan)["RegisterJobDefinition"])
    assert len(others) == (1 if own else 0)
    asked, theirs = asked_by(container), [asked_by(each) for each in others]
    assert asked["VCPU"] + sum(each["VCPU"] for each in theirs) == row["vcpus"], (asked, theirs)
    mib = asked["MEMORY"] + sum(each["MEMORY"] for each in theirs)
    assert row["mib"] * 0.9 < mib < row["mib"], (asked, theirs)
    assert asked.get("GPU", 0) == row["gpus"] and all("GPU" not in each for each in theirs), (asked, theirs)
    devices = container["linuxParameters"].get("devices", [])
    assert [each["hostPath"] for each in devices] == [
        *(f"/dev/neuron{one}" for one in range(row["devices"])),
        *(f"/dev/infiniband/uverbs{one}" for one in range(row["efa"] if nodes > 1 else 0))]
    assert all(each["permissions"] == ["READ", "WRITE", "MKNOD"] and each["containerPath"] == each["hostPath"]
               for each in devices), devices
    limits = {each["name"]: (each["softLimit"], each["hardLimit"]) for each in container["ulimits"]}
    assert limits == {"memlock": (-1, -1), **({"nofile": (65535, 65535)} if row["efa"] else {})}, limits
    sends = json.dumps(plan["requests"][0]["sends"])
    assert ("/dev/neuron" in sends) == (kind == "neuron") and ('"GPU"' in sends) == (kind == "nvidia"), sends
    assert plan["requests"][0].get("efa", False) == (nodes > 1 and row["efa"] > 0), plan["requests"]


@pytest.mark.parametrize("instance", TABLE)
def test_on_sagemaker(machine, instance):
    """By SageMaker's names, and without a price of EC2."""
    machine.write(f"ml.{instance}", "sagemaker", 2)
    if not TABLE[instance][-1]:
        said = machine.stoker("validate", "stoker.yaml")
        assert said.code == 3 and f"SageMaker trains on no 'ml.{instance}'" in said.err, str(said)
        return
    plan = planned(machine)
    same_everywhere(plan, instance, 2)
    assert "price" not in plan.get("cost", {}), plan
    body = bodies(plan)["CreateTrainingJob"]
    rules.check_training(body)
    assert (body["ResourceConfig"]["InstanceType"], body["ResourceConfig"]["InstanceCount"]) == (f"ml.{instance}", 2)
    assert not re.search(r"/dev/neuron|GPU|NCCL|NEURON", json.dumps(body)), body  # the service gives all that it has
    assert plan["requests"][0].get("efa", False) == (DESCRIBED[instance]["efa"] > 0), plan["requests"]


@pytest.mark.parametrize("instance", TABLE)
def test_on_a_machine_that_is_one(machine, instance):
    """What this machine is not is told figure by figure."""
    kind, row = TABLE[instance][0], DESCRIBED[instance]
    plan = planned(machine.write(instance, "local"))
    same_everywhere(plan, instance, 1)
    same_price(plan, instance, 1)
    told = dict(re.findall(rf'"([\w ]+) of {re.escape(instance)}: ([\d.]+)', json.dumps(plan["machine"]["differs"])))
    assert told.get("Neuron devices", "0") == str(row["devices"]) and told.get("GPUs", "0") == str(row["gpus"]), told
    assert told.get("vCPUs", str(plan["machine"]["vcpus"])) == f"{row['vcpus']}", told
    assert ("Neuron devices" in told, "GPUs" in told) == (kind == "neuron", kind == "nvidia"), told
