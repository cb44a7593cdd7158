"""Engine local on a machine of EC2: `resources.instance` says which type this machine is, and `auto` asks the
instance metadata service. Price, limit of costs and workers hold as on the other engines."""

import json
import os
import re
import time

import pytest
from project import Project
from who import Server

AUTO = {"resources": {"instance": "auto"}, "compile": None, "health": {"device": False}}


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def here(aws, **more):
    return {"AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.url, "AWS_EC2_METADATA_DISABLED": "false", **more}


def planned(project, env, *argv):
    line, = project.ok("--json", "plan", project.spec_path, *argv, env=env).lines
    return line


def test_the_service_says_the_type_and_the_plan_keeps_it(project, aws):
    aws.settings(imds={"type": "trn1.2xlarge"})
    project.write(**AUTO, limits={"cost": 3})
    plan = planned(project, here(aws))
    assert plan["spec"]["resources"]["instance"] == "trn1.2xlarge"
    assert plan["machine"]["type"] == "trn1.2xlarge" and plan["machine"]["by"] == "metadata"
    assert plan["machine"]["vcpus"] == os.cpu_count()
    assert plan["cost"]["price"] == 1.34375 and plan["cost"]["at_most"] == 3
    assert plan["origins"]["resources.instance"]["file"] == str(project.spec_path)
    said = project.ok("plan", project.spec_path, env=here(aws)).out
    assert "machine: trn1.2xlarge, as the instance metadata service says" in said
    assert f"vCPUs of trn1.2xlarge: 8, of this machine: {os.cpu_count()}" in said
    assert "Neuron devices of trn1.2xlarge: 1, of this machine: 0" in said


def test_a_run_costs_what_the_machine_does_and_stays_on_it(project, aws):
    aws.settings(imds={"type": "trn1.2xlarge"})
    project.write(**AUTO)
    said = project.stoker("run", project.spec_path, "--id", "one", env=here(aws))
    assert said.code == 0 and "warning: resources.instance: Neuron devices of trn1.2xlarge: 1" in said.err, str(said)
    status = project.status("one")
    assert 0 < status["cost"]["accrued"] < 1
    before = aws.mark()
    # What the run has is not asked for again.
    assert project.ok("resume", "one", env=here(aws)).code == 0 and aws.requests("PutToken", before) == 0
    aws.settings(imds={"type": "trn1.32xlarge"})
    again = project.stoker("run", project.spec_path, "--id", "one", env=here(aws))
    assert again.code == 3, str(again)


def test_workers_are_held_against_the_machine(project, aws):
    aws.settings(imds={"type": "trn1.2xlarge"})
    project.write(**AUTO, command=["torchrun", "--nproc_per_node", "3", "train.py"])
    for command in ("plan", "run"):
        said = project.stoker(command, project.spec_path, env=here(aws))
        assert said.code == 3 and "3 workers on a node, but 'trn1.2xlarge' has 2 cores" in said.err, str(said)
        assert "--set" not in said.err and re.search(r"stoker\.yaml:\d+:\d+: 3 workers", said.err), str(said)
    assert project.ok("validate", project.spec_path, env=here(aws)).err.count("workers") == 0


def test_validate_asks_nobody(project, aws):
    aws.settings(imds={"type": "trn1.2xlarge"})
    project.write(**AUTO, limits={"cost": 3})
    before = aws.mark()
    project.ok("validate", project.spec_path, env=here(aws))
    assert aws.requests("PutToken", before) == 0


@pytest.mark.parametrize(("imds", "words"), [({"type": "trn1.2xlarge", "v1": True}, "answered 404 to IMDSv2"),
                                            ({}, "answered 404 to IMDSv2"), ({"role": "r"}, "answered 404")])
def test_where_no_service_says_it_the_plan_goes_on_without(project, aws, imds, words):
    aws.settings(imds=imds)
    project.write(**AUTO)
    plan = planned(project, here(aws))
    assert "machine" not in plan and plan["cost"] == {}
    assert [words in row["reason"] for row in plan["not_known"] if row["what"] == "machine"] == [True], plan["not_known"]
    said = project.ok("plan", project.spec_path, env=here(aws))
    assert re.search(f"machine: not known: .*{words}", said.out), str(said)
    said = project.run(env=here(aws))
    assert "auto is no type of EC2 here, so price and cores are not known" in said.err and words in said.err, str(said)
    project.write(limits={"cost": 3})
    said = project.stoker("run", project.spec_path, env=here(aws))
    assert said.code == 4 and "'limits.cost' needs a price" in said.err and words in said.err, str(said)


def test_a_service_that_is_off_or_silent_holds_nobody_up(project, aws):
    project.write(**AUTO)
    said = project.ok("plan", project.spec_path, env={"AWS_EC2_METADATA_DISABLED": "true"})
    assert "machine: not known: AWS_EC2_METADATA_DISABLED is true" in said.out
    with Server(None) as port:
        began = time.monotonic()
        said = project.ok("plan", project.spec_path,
                          env=here(aws, AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://127.0.0.1:{port}"))
        assert "machine: not known: no instance metadata service" in said.out, str(said)
        # The rest is the machine's own slowness; the service's limit is one second.
        assert time.monotonic() - began < 60


def test_a_type_without_a_row_is_told(project, aws):
    aws.settings(imds={"type": "x9.huge"})
    project.write(**AUTO)
    said = project.ok("plan", project.spec_path, env=here(aws))
    assert "no catalogue has 'x9.huge'" in said.err and "machine: x9.huge" in said.out, str(said)


def test_a_machine_that_is_as_its_row_is_nothing_to_tell(project, aws, tmp_path):
    gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    (tmp_path / "sys/neuron0").mkdir(parents=True)
    (tmp_path / "sys/neuron1").mkdir()
    own = tmp_path / "own.yaml"
    row = f"here.x: {{devices: 2, cores: 4, vcpus: {os.cpu_count()}, ram: {round(gib * 1.03)}GiB, accelerator: neuron}}"
    own.write_text(f"version: 1\ninstances:\n  {row}\n")
    project.write(**{**AUTO, "resources": {"instance": "here.x"}})
    env = {"STOKER_INSTANCES": str(own), "NEURON_SYSFS_ROOT": str(tmp_path / "sys")}
    machine = planned(project, env)["machine"]
    assert machine["differs"] == [] and machine["by"] == "spec" and machine["devices"] == 2, json.dumps(machine)
    own.write_text(f"version: 1\ninstances:\n  {row.replace('devices: 2, cores: 4', 'gpus: 4').replace('neuron', 'nvidia')}\n")
    assert planned(project, env)["machine"]["differs"] == ["GPUs of here.x: 4, of this machine: 0"]


def test_elsewhere_auto_is_an_error(project):
    project.write(**AUTO, engine="slurm", workspace="/tmp/w")
    said = project.stoker("validate", project.spec_path)
    assert said.code == 3 and "'resources.instance: auto' is this machine, and engine 'slurm'" in said.err, str(said)
