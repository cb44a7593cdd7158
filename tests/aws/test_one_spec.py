"""One spec for three machines: the quickstart's model, tried here on a small Trainium machine, scaled to many large ones
on AWS Batch, compared with GPUs on SageMaker. What differs stands in profiles, and `--use` alone chooses.

The image of each is the quickstart's Python with the stand-ins of Neuron's or NVIDIA's tools. This machine has two cores
for all of them, so 16 nodes are planned, and two are run."""

import shutil

import pytest
import stoker as cli
from aws import REGION
from neuron_standin.install import Installation
from project import ledger_adds_up
from quickstart import QUICKSTART

SPEC = """version: 1
name: quickstart
source: {path: ., include: [train.py], allow_dirty: true}
command: [python3, train.py]
hyperparameters: {lr: 3.0e-3, max_steps: 100, batch_size: 64, seed: 0, eval_steps: 100, save_steps: 100}
compile:
  kind: jax
  cache_url: .cache/jax
  quiet_period: 1s
  overrides: {hyperparameters: {max_steps: 2, eval_steps: 1, save_steps: 1}}
  ignore: [hyperparameters.lr, hyperparameters.max_steps, hyperparameters.seed, hyperparameters.eval_steps,
           hyperparameters.save_steps]
metrics:
  - {name: step, regex: "^step: ([0-9]+)"}
  - {name: loss, regex: "loss: ([0-9.eE+-]+)"}
  - {name: accuracy, regex: "accuracy: ([0-9.eE+-]+)"}
profiles:
  aws:
    workspace: s3://bucket/stoker
    compile: {cache_url: s3://bucket/cache}
    checkpoint: {url: s3://bucket/checkpoints}
  dev:
    source: {link: [.venv]}
    command: [.venv/bin/python, train.py]
    resources: {instance: trn1.2xlarge}
  scale:
    use: aws
    engine: batch
    image: IMAGES/neuron:1
    resources: {instance: trn1.32xlarge, nodes: 16}
    batch: {job_queue: trn1, job_role: "arn:aws:iam::123456789012:role/job"}
  gpu:
    use: aws
    engine: sagemaker
    image: IMAGES/cuda:1
    resources: {instance: ml.g5.12xlarge}
    sagemaker: {role: "arn:aws:iam::123456789012:role/training", work_dir: /opt/ml/stoker}
"""
IMAGES = f"123456789012.dkr.ecr.{REGION}.amazonaws.com"
# engine, what the agents are told of the machine, nodes; what the check-up finds on the stand-ins; how it is submitted
PROFILES = {"dev": ("local", ("neuron", 1), 1, None, None),
            "scale": ("batch", ("neuron", 16), 16, "16 devices with 32 cores", "SubmitJob"),
            "gpu": ("sagemaker", ("nvidia", 4), 1, "4 GPUs, NVIDIA A10G", "CreateTrainingJob")}


class User:
    def __init__(self, root, aws):
        self.root, self.aws = root, aws
        self.job = root / "job"
        self.job.mkdir(parents=True)
        shutil.copy(QUICKSTART / "train.py", self.job)
        (self.job / ".venv").symlink_to(QUICKSTART / ".venv")
        (self.job / "stoker.yaml").write_text(SPEC.replace("IMAGES", IMAGES))

    def stoker(self, *argv, code=0):
        env = self.aws.env(HOME=self.root, STOKER_STATE=self.root / "state")
        result = cli.finish(cli.start(*argv, env=env, cwd=self.job), argv, 600)
        assert result.code == code, str(result)
        return result

    def image(self, name):
        """The quickstart's Python, with the tools of a kind of accelerators."""
        python = QUICKSTART / ".venv/bin/python3"
        packages, = (QUICKSTART / ".venv/lib").glob("python3*/site-packages")
        made = Installation(self.root / name, python=python.resolve(), STANDIN_INSTANCE="trn1.32xlarge")
        return made.with_packages(packages)

    def open_account(self):
        self.aws.make_bucket("bucket")
        images = {"neuron": self.image("neuron"), "cuda": self.image("cuda").with_gpus(
            STANDIN_GPUS=4, STANDIN_GPU_SAYS="NVIDIA A10G: 0, [N/A], No, No")}
        machines = self.root / "machines"
        machines.mkdir()
        self.aws.settings(job_seconds=0.1, stop_seconds=30, image_env={
            f"{IMAGES}/{name}:1": {"PATH": image.path, "HOME": str(machines), "STOKER_WORK": str(machines / "work")}
            for name, image in images.items()})
        for name in images:
            self.aws.push(f"{IMAGES}/{name}:1")
        batch = self.aws.client("batch")
        batch.create_compute_environment(
            computeEnvironmentName="machines", type="MANAGED",
            computeResources={"type": "EC2", "maxvCpus": 2048, "instanceTypes": ["optimal"], "subnets": ["subnet-1"],
                              "instanceRole": "ecsInstanceRole"})
        batch.create_job_queue(jobQueueName="trn1", priority=1,
                               computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "machines"}])


@pytest.fixture
def user(aws, tmp_path):
    return User(tmp_path, aws)


def test_it_is_valid_and_planned_with_each_profile(user):
    assert user.stoker("validate").out == "stoker.yaml is valid, alone and with each of aws, dev, scale and gpu\n"
    for name, (engine, (kind, devices), nodes, _, _) in PROFILES.items():
        plan, = user.stoker("--json", "plan", "--offline", "--requests", "--use", name).lines
        assert (plan["engine"], [row["phase"] for row in plan["requests"]]) == (engine, ["precompile", "train"])
        for order in plan["requests"]:
            assert (order["accelerator"], order["devices"], order["nodes"]) == (kind, devices, nodes), order


@pytest.mark.long
@pytest.mark.parametrize("name", PROFILES)
def test_the_model_goes_through_both_phases_with_each_profile(user, name):
    engine, _, nodes, found, submit = PROFILES[name]
    user.open_account()
    fewer = ("--set", "resources.nodes=2") if nodes > 2 else ()
    user.stoker("run", "--use", name, "--id", "one", *fewer)
    events = user.stoker("events", "one").lines
    assert [row["phase"] for row in events if row["event"] == "attempt.submitted"] == ["precompile", "train"]
    verified, = [row for row in events if row["event"] == "cache.verified"]
    assert verified["complete"] and verified["compiled"] == verified["graphs"] > 0, verified
    status, = user.stoker("--json", "status", "one").lines
    assert (status["engine"], status["state"], status["jit"]["graphs"]) == (engine, "succeeded", 0), status
    assert status["progress"]["step"] == 100 and status["metrics"]["accuracy"] > 0.3, status
    assert ("s3://bucket/checkpoints" in status["checkpoint"]["url"]) == (engine != "local"), status
    ledger_adds_up(status)
    if submit:
        assert user.aws.effects(submit) == 2
        health = [row for row in events if row["event"] == "health.checked"][-1]["health"]
        devices = [row for node in health["nodes"] for row in node["checks"] if row["check"] == "devices"]
        assert {(row["verdict"], row["words"]) for row in devices} == {("ok", found)}, health
