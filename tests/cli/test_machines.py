"""What a job can be given of its machines: types that no catalogue knows, accelerators that are of no use to a
job, and what a container gets of those that are. A plan needs no account to say it."""

import re

import pytest
import stoker as cli
from machine import OWN, Machine


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


# What the row asks for beside vCPUs, memory and EFA, by the family of the type.
ROWS = {"m9.huge": "", "c9.4xlarge": "", "trn9.48xlarge": "devices: N, cores: N, ", "p9.48xlarge": "gpus: N, "}


@pytest.mark.parametrize("instance", ROWS)
def test_a_type_of_no_catalogue_is_an_error_with_the_row_to_write(machine, instance):
    """Its figures are to be looked up: none is guessed, and the row is refused until they are there."""
    problem = machine.write(instance).refused(f"no catalogue has '{instance}'", "describe-instance-types")
    assert (problem["line"], problem["column"], problem["field"]) == (10, 13, "resources.instance"), problem
    assert str(machine.catalogue) in problem["hint"], problem
    row = re.search(rf"{re.escape(instance)}: {{.*}}", problem["hint"])[0]
    assert row == f"{instance}: {{vcpus: N, ram: NGiB, {ROWS[instance]}efa: N}}"
    machine.own("trn1.2xlarge: {price: 1}", row)
    said = machine.stoker("validate", "stoker.yaml")
    assert said.code == 3 and "'vcpus' of an instance type must be an integer" in said.err, str(said)
    machine.own("trn1.2xlarge: {price: 1}", row.replace("N", "4"))
    assert machine.asks()["VCPU"] == 4 and machine.asks().get("GPU", 0) == (4 if "gpus" in row else 0)
    assert len(machine.devices()) == (4 if "devices" in row else 0)


def test_the_row_goes_into_the_file_that_is_named(machine):
    other = machine.root / "mine.yaml"
    machine.write("m9.huge")
    env = cli.environment(STOKER_INSTANCES=str(other))
    other.write_text("version: 1\ninstances: {}\n")
    said = cli.stoker("--json", "validate", "stoker.yaml", env=env, cwd=machine.root / "job")
    assert said.code == 3 and str(other) in said.lines[0]["hint"], str(said)
    other.write_text("version: 1\ninstances:\n  " + re.search(r"m9\.huge: {.*}", said.lines[0]["hint"])[0].replace("N", "4") + "\n")
    assert cli.stoker("validate", "stoker.yaml", env=env, cwd=machine.root / "job").code == 0


def test_a_type_that_is_mistyped_is_guessed(machine):
    assert "did you mean 'trn1.32xlarge'" in machine.write("trn1.32xlage").refused("trn1.32xlage")["hint"]


def test_a_row_without_what_a_job_asks_for_is_not_enough(machine):
    machine.own("m9.huge: {price: 3, vcpus: 8}")
    machine.write("m9.huge").refused("'m9.huge'", "no vcpus or no ram")
    machine.own("m9.huge: {price: 3, vcpus: 8, ram: 64GiB}")
    assert machine.asks()["VCPU"] == 8 and machine.devices() == {}


@pytest.mark.parametrize("engine", ["sagemaker", "local"])
def test_where_nothing_is_asked_for_by_figures_a_type_may_be_unknown(machine, engine):
    machine.write("ml.m9.huge", engine)
    for command in ("validate", "plan"):
        assert machine.stoker(command, "stoker.yaml").code == 0


@pytest.mark.parametrize("instance, what, count", [
    ("p2.xlarge", "GPUs", "gpus"), ("g9.xlarge", "GPUs", "gpus"), ("inf9.x", "Neuron devices", "devices")])
def test_a_row_must_say_how_many_accelerators_a_job_is_to_get(machine, instance, what, count):
    """What is counted for another kind makes it none of that kind."""
    other = "devices" if count == "gpus" else "gpus"
    machine.own(f"{instance}: {{{other}: 8, vcpus: 16, ram: 64GiB, accelerator: {'nvidia' if count == 'gpus' else 'neuron'}}}")
    problem = machine.write(instance).refused(f"'{instance}' has {what}", "how many")
    assert (problem["line"], problem["column"], problem["field"]) == (10, 13, "resources.instance"), problem
    assert f"'{count}: N'" in problem["hint"], problem
    machine.own(f"{instance}: {{{count}: 3, vcpus: 16, ram: 64GiB}}")
    assert machine.asks().get("GPU", 0) == (3 if count == "gpus" else 0)
    assert len(machine.devices()) == (0 if count == "gpus" else 3)


@pytest.mark.parametrize("engine", ["batch", "sagemaker", "local"])
def test_the_neuron_compiler_is_not_for_gpus(machine, engine):
    """Nor for those of a group."""
    cache = "./cache" if engine == "local" else "s3://bucket/cache"
    instance = "ml.g5.xlarge" if engine == "sagemaker" else "g5.xlarge"
    compiles = f"compile: {{kind: neuron, cache_url: {cache}, max_steps: 5}}\nhyperparameters: {{max_steps: 20}}\n"
    problem = machine.write(instance, engine, more=compiles).refused(f"'compile.kind: neuron' is not for '{instance}'", "GPUs")
    assert problem["field"] == "compile.kind" and "jax none" in problem["hint"] and "Neuron devices" in problem["hint"], problem
    machine.write(instance, engine, more=compiles.replace("neuron", "jax"))
    assert machine.stoker("validate", "stoker.yaml").code == 0
    if engine == "sagemaker":
        groups = "  instance_groups:\n    - {name: a, instance: ml.trn1.2xlarge, nodes: 1}\n    - {name: b, instance: ml.g5.xlarge, nodes: 1}\n"
        machine.write("ml.trn1.2xlarge", engine, 2, compiles)
        path = machine.root / "job/stoker.yaml"
        path.write_text(path.read_text().replace(
            OWN[engine], "sagemaker:\n  role: 'arn:aws:iam::123456789012:role/sagemaker'\n" + groups.rstrip()))
        told = [row for row in machine.stoker("--json", "validate", "stoker.yaml").lines if row["field"] == "compile.kind"]
        assert [row["message"].rpartition(" is not for ")[2][:14] for row in told] == ["'ml.g5.xlarge'"], told


@pytest.mark.parametrize("limits,told", [
    ("{name: nofile, soft: 5, hard: 3}", "the soft limit is above the hard one, 3"), ("{name: core, soft: -1, hard: 0}", "above the hard one, 0"),
    ("{name: core, soft: 1}, {name: core, soft: 2}", "'core' has a limit already"),
    ("{name: nofile, soft: 3, hard: 5}, {name: core, soft: 0, hard: -1}, {name: memlock, soft: -1}", None)])
def test_limits_that_no_container_starts_with_are_refused(machine, limits, told):
    machine.write("trn1.32xlarge")
    path = machine.root / "job/stoker.yaml"
    path.write_text(path.read_text().replace(OWN["batch"], f"batch: {{job_queue: q, ulimits: [{limits}]}}"))
    rows = [row for row in machine.stoker("--json", "validate", "stoker.yaml").lines if "ulimits" in row.get("field", "")]
    assert len(rows) == (1 if told else 0) and all(told in row["message"] for row in rows), rows


def test_groups_are_of_the_machine_whose_key_and_workers_count(machine):
    machine.write("ml.trn1.32xlarge", "sagemaker", 2)
    path = machine.root / "job/stoker.yaml"
    head = path.read_text()

    def told(other):
        groups = f"[{{name: a, instance: ml.trn1.32xlarge, nodes: 1}}, {{name: b, instance: {other}, nodes: 1}}]"
        path.write_text(head.replace(OWN["sagemaker"], f"sagemaker:\n  role: 'arn:aws:iam::123456789012:role/s'\n  instance_groups: {groups}"))
        said = machine.stoker("--json", "validate", "stoker.yaml")
        return said.code, [row["message"] for row in said.lines if row.get("field", "").startswith("sagemaker.instance_groups")]
    assert told("ml.trn1.32xlarge") == (0, [])
    code, (words,) = told("ml.trn1.2xlarge")
    assert code == 0 and words.startswith("workers, devices and costs of 'trn1.2xlarge' are counted as those of 'trn1.32xlarge'")
    code, (words,) = told("ml.trn2.48xlarge")
    assert code == 3 and words.startswith("the graph key is of 'trn1.32xlarge'")


@pytest.mark.parametrize("instance", ["dl1.24xlarge", "vt1.3xlarge", "f1.2xlarge", "g4ad.4xlarge"])
def test_other_accelerators_are_refused_too(machine, instance):
    machine.own(f"{instance}: {{devices: 8, vcpus: 96, ram: 768GiB}}")
    machine.write(instance).refused(f"'{instance}' has accelerators")


def test_the_catalogue_says_what_a_name_does_not(machine):
    machine.write("h9.xlarge")
    machine.own("h9.xlarge: {devices: 8, vcpus: 96, ram: 768GiB, accelerator: nvidia}")
    machine.refused("'h9.xlarge' has GPUs")
    machine.own("h9.xlarge: {gpus: 8, vcpus: 96, ram: 768GiB}")
    assert machine.asks()["GPU"] == 8 and machine.devices() == {}
    machine.own("h9.xlarge: {devices: 8, vcpus: 96, ram: 768GiB}")
    machine.refused("8 devices", "accelerator: neuron")
    machine.own("h9.xlarge: {devices: 2, vcpus: 96, ram: 768GiB, accelerator: neuron}")
    assert list(machine.devices()) == ["/dev/neuron0", "/dev/neuron1"]
    machine.own("h9.xlarge: {vcpus: 96, ram: 768GiB, accelerator: magic}")
    said = machine.stoker("validate", "stoker.yaml")
    assert said.code == 3 and "'accelerator' of an instance type must be neuron, nvidia, other or none" in said.err, str(said)


@pytest.mark.parametrize("instance", ["c5.4xlarge", "m5.large", "hpc7g.4xlarge"])
def test_a_machine_without_accelerators_gets_no_device(machine, instance):
    machine.own(f"{instance}: {{vcpus: 16, ram: 32GiB}}")
    machine.write(instance)
    assert machine.devices() == {} and machine.asks()["VCPU"] == 16


def test_devices_have_the_permissions_that_the_guides_want(machine):
    machine.write("trn1.32xlarge", nodes=4)
    assert machine.devices() == {
        **{f"/dev/neuron{number}": ["READ", "WRITE", "MKNOD"] for number in range(16)},
        **{f"/dev/infiniband/uverbs{number}": ["READ", "WRITE", "MKNOD"] for number in range(8)}}
