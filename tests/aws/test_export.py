"""What `export` writes for orchestrators, in their own terms: a linter and the stand-in for the state machine, whose jobs
really run; what the SageMaker SDK makes of the same steps for the pipeline, and a runner for it; and for the Airflow DAG the Python that it is."""

import hashlib
import json
import shutil
import sys
import time
from datetime import datetime
from pathlib import Path

import airflow_dag
import pytest
import stoker as cli
from aws import REGION
from pipeline_runner import Execution, Failed
from project import SUPPORT
from standin.pipeline_steps import all_steps

DATA = Path(__file__).parent / "data"
STATES_ROLE = "arn:aws:iam::123456789012:role/states"
DRIVER = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/m5-driver:1"
PHASES = ["precompile", "verify", "train", "evaluate", "gate", "infer", "promote"]
PIPELINE_RUN = "m5-text-encoder-9q4q7q2zs3hf"
MOMENT = datetime(2026, 11, 30, 2, 0)
# exit codes of each phase → how often each phase was tried, and how it ends
PLANS = {
    "whole": ({}, [*PHASES], 0),
    "gate": ({"gate": [5]}, PHASES[:5], 5),
    "repeats": ({"precompile": [8], "train": [75, 8], "promote": [8]},
                ["precompile", *PHASES[:2], "train", "train", *PHASES[2:], "promote"], 0),
    "early": ({"verify": [5]}, PHASES[:2], 5),
    "code": ({"train": [8, 1]}, [*PHASES[:3], "train"], 1),
    "driven": ({"infer": [7]}, PHASES[:6], 7),
    "refused": ({"precompile": [4]}, PHASES[:1], 4),
}


def export(folder, kind):
    """With the spec as the driver's image has it: at a path of its own."""
    spec = folder / "pipeline.yaml"
    shutil.copy(DATA / "pipeline.yaml", spec)
    done = cli.stoker("--state", "s3://bucket/state", "--region", REGION, "export", spec, "--to", kind, cwd=folder)
    assert done.code == 0, str(done)
    return done.out if kind == "airflow" else json.loads(done.out)


@pytest.fixture
def driver(tmp_path):
    """The environment of a container whose stoker does as PLAN says; tries(id) are those that it made."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "stoker"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {SUPPORT / 'scripted_driver.py'} \"$@\"\n")
    program.chmod(0o755)

    class Driver:
        log = tmp_path / "log"

        def environment(self, plans):
            return {"PATH": f"{folder}:/usr/bin:/bin", "LOG": str(self.log), "PLAN": json.dumps(plans)}

        def tries(self, name):
            """The phases, in order."""
            rows = [line.split() for line in self.log.read_text().splitlines()]
            return [phase for each, phase in rows if each == name]
    return Driver()


# ---- the state machine

def interpret(aws, definition, *executions):
    """How each of them ends, one after the other."""
    states, made = aws.client("stepfunctions"), []
    machine = states.create_state_machine(name="m5", definition=json.dumps(definition), roleArn=STATES_ROLE)["stateMachineArn"]
    for name in executions:
        execution = states.start_execution(stateMachineArn=machine, name=name)["executionArn"]
        while (seen := states.describe_execution(executionArn=execution))["status"] == "RUNNING":
            time.sleep(0.05)
        made.append(seen)
    return made


def run_of(execution):
    """The id that the state machine makes of the name of an execution."""
    return hashlib.md5(f"m5/{execution}".encode()).hexdigest()


def make_queue(aws):
    batch = aws.client("batch")
    batch.create_compute_environment(
        computeEnvironmentName="env", type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 16, "instanceTypes": ["optimal"], "subnets": ["subnet-1"],
                          "instanceRole": "ecsInstanceRole"})
    batch.create_job_queue(jobQueueName="drivers", priority=1,
                           computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "env"}])
    return batch


def test_a_linter_accepts_the_state_machine(tmp_path):
    from statelint.linter import Linter
    definition = export(tmp_path, "step-functions")
    assert Linter.validate(json.dumps(definition)) == []
    definition["States"]["train"]["Next"] = "nowhere"  # the linter does look
    assert Linter.validate(json.dumps(definition)) != []


@pytest.mark.long
def test_the_state_machine_does_what_follows_from_exit_codes(aws, tmp_path, driver):
    batch = make_queue(aws)
    aws.push(DRIVER)
    plans = {run_of(name): codes for name, (codes, _, _) in PLANS.items()}
    names = ["busy-service", "no-right"]
    plans |= {run_of(name): {} for name in names}
    aws.settings(image_env={DRIVER: driver.environment(plans)}, job_seconds=0)
    definition = export(tmp_path, "step-functions")
    for (name, (_, wanted, code)), made in zip(PLANS.items(), interpret(aws, definition, *PLANS), strict=True):
        assert driver.tries(run_of(name)) == wanted, made
        if code in (0, 5):
            assert made["status"] == "SUCCEEDED", made
            assert json.loads(made["output"]) == {"run": run_of(name), "exit_code": code}
        else:
            assert made["status"] == "FAILED" and json.loads(made["cause"])["Container"]["ExitCode"] == code, made
    # The job definition is registered once, whatever is executed after that.
    found, = batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]
    assert found["jobDefinitionName"].startswith("stk-driver-") and found["revision"] == 1
    # A service that fails is asked again; one that refuses is not, and the execution shows its words.
    aws.fault("internal", operation="SubmitJob", count=2)
    busy, = interpret(aws, definition, names[0])
    assert busy["status"] == "SUCCEEDED" and driver.tries(run_of(names[0])) == PHASES, busy
    aws.fault("denied", operation="SubmitJob", count=1)
    refused, = interpret(aws, definition, names[1])
    assert refused["status"] == "FAILED" and "AccessDenied" in refused["cause"], refused


# ---- the pipeline

def test_the_pipeline_is_what_the_sdk_makes_of_the_same_steps(tmp_path):
    shutil.copy(DATA / "pipeline.yaml", tmp_path)
    done = cli.stoker("--state", "s3://bucket/state", "--region", REGION, "export", "pipeline.yaml", "--to",
                      "sagemaker-pipeline", "--set", "resources.nodes=2", cwd=tmp_path)
    assert done.code == 0, str(done)
    theirs = json.loads((DATA / "pipeline.json").read_text())["definition"]
    assert json.loads(done.out) == theirs
    assert len(done.out) < 100 << 10  # what the service takes with the request
    assert sum(1 for _ in all_steps(theirs["Steps"])) <= 50  # the quota of steps


@pytest.mark.parametrize("plan", PLANS)
def test_the_pipeline_does_what_follows_from_exit_codes(tmp_path, driver, plan):
    codes, wanted, code = PLANS[plan]
    made = Execution(export(tmp_path, "sagemaker-pipeline"), "9q4q7q2zs3hf", tmp_path / "jobs",
                     driver.environment({PIPELINE_RUN: codes}), tmp_path)
    if code in (0, 5):
        made.run()
    else:
        with pytest.raises(Failed, match=f"{wanted[-1]} ended with exit code {code}"):
            made.run()
    assert driver.tries(PIPELINE_RUN) == wanted
    # The repeats are made within a job: the service starts one for each phase.
    assert made.jobs == list(dict.fromkeys(wanted))


def test_a_job_that_the_service_ends_is_repeated(tmp_path, driver):
    def lose(phase, job, number):
        if phase != "train" or number > 0:
            return False
        job.kill()
        return True
    made = Execution(export(tmp_path, "sagemaker-pipeline"), "9q4q7q2zs3hf", tmp_path / "jobs",
                     driver.environment({PIPELINE_RUN: {}}), tmp_path, lose)
    made.run()
    assert made.jobs == [*PHASES[:2], "train", *PHASES[2:]]


def test_a_job_that_is_told_to_end_leaves_at_once_with_its_outcome(tmp_path, driver):
    def end(phase, job, number):
        while phase == "train" and "train" not in driver.tries(PIPELINE_RUN):
            time.sleep(0.05)
        if phase == "train":
            job.terminate()  # the shell, as the service does; stoker's own end is what it waits for
    made = Execution(export(tmp_path, "sagemaker-pipeline"), "9q4q7q2zs3hf", tmp_path / "jobs",
                     driver.environment({PIPELINE_RUN: {"train": ["SIGTERM"]}}), tmp_path, end)
    with pytest.raises(Failed, match="train ended with exit code 8"):
        made.run()
    assert driver.tries(PIPELINE_RUN) == PHASES[:3]


# ---- the DAG

@pytest.mark.parametrize("plan", PLANS)
def test_the_dag_does_what_follows_from_exit_codes(tmp_path, driver, plan):
    codes, wanted, code = PLANS[plan]
    dag = airflow_dag.load(export(tmp_path, "airflow"))
    assert dag.settings["schedule"] == "0 3 * * MON" and dag.settings["dag_id"] == "m5-text-encoder"
    name = "m5-text-encoder-20261130t020000"
    states = airflow_dag.run(dag, MOMENT, driver.environment({name: codes}))
    assert driver.tries(name) == wanted
    last = {0: "success", 5: "skipped"}.get(code, "failed")
    rest = {"failed": "upstream_failed"}.get(last, last)
    at = PHASES.index(wanted[-1])
    assert states == {phase: "success" if i < at else last if i == at else rest for i, phase in enumerate(PHASES)}
