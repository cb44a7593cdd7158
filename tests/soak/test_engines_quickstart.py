"""The specs of configs/sagemaker and configs/batch as they are, on the stand-in of AWS: the
quickstart's own model goes through precompile, verify, the check-up with its collectives and
training, with everything on S3; then again from another machine, warm: one job instead of two.

The image is the quickstart's Python with the stand-ins of Neuron's tools. Other than in the
specs there are fewer steps, and what `SPECS` says."""

import json
import re
import shutil
import time
from collections import Counter
from dataclasses import dataclass

import pytest
import stoker as cli
from neuron_standin.install import Installation
from project import ledger_adds_up

pytest.importorskip("botocore", reason="of tests/aws/.venv: see tests/soak/run")
from aws import Aws  # noqa: E402

CONFIGS = cli.ROOT / "configs"
BUCKET, REGION, QUEUE = "my-bucket", "us-west-2", "my-queue"  # as the specs say
STEPS = {"cold": 300, "warm": 60}
SECONDS = 1200
SUBMITS = {"sagemaker": "CreateTrainingJob", "batch": "SubmitJob"}
CHECKS = ("disk", "memory", "clock")
COUNTERS = ("mem_ecc_corrected", "sram_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_uncorrected",
            "mem_ecc_repairable_uncorrected")
OPERATIONS = ("all_gather", "all_reduce", "reduce_scatter")
# What a service may answer when somebody asks whether a thing is there.
ASKED = {"NoSuchKey", "404", "PreconditionFailed", "412", "ResourceNotFoundException"}


@dataclass
class Spec:
    path: str
    nodes: int
    instance: str
    devices: int = 1
    sets: tuple = ()

    @property
    def engine(self):
        return self.path.split("/", maxsplit=1)[0]


# Instances of SageMaker in the stand-in share /tmp.
APART = ("sagemaker.work_dir=/opt/ml/stoker",)
SPECS = [
    Spec("sagemaker/stoker.yaml", 1, "trn1.2xlarge", devices=0, sets=APART),
    Spec("sagemaker/two-nodes.yaml", 2, "trn1.32xlarge", devices=16, sets=(*APART, "resources.instance=ml.trn1.32xlarge")),
    Spec("batch/batch.yaml", 1, "trn1.2xlarge"),
    Spec("batch/batch-4node.yaml", 4, "trn1.32xlarge", devices=16),
]


class User:
    """Somebody with a copy of the specs, a bucket, and an image to run in."""

    def __init__(self, root, aws, spec):
        self.root, self.aws, self.spec, self.home = root, aws, spec, None
        for name in ("quickstart", spec.engine):
            shutil.copytree(CONFIGS / name, root / "configs" / name, ignore=shutil.ignore_patterns(".venv", ".cache"))
        self.path = root / "configs" / spec.path
        python = CONFIGS / "quickstart/.venv/bin/python3"
        packages, = (CONFIGS / "quickstart/.venv/lib").glob("python3*/site-packages")
        self.image = Installation(root / "image", python=python.resolve(), STANDIN_INSTANCE=spec.instance)
        # A process a core: on the small one only. Elsewhere torch is there, but no way to the cores.
        (self.image.with_xla if spec.devices == 1 else self.image.with_torch)().with_packages(packages)
        if not spec.devices:
            for tool in ("neuron-ls", "nccom-test"):
                (self.image.bin / tool).unlink()
        for device in range(spec.devices):
            folder = root / f"sysfs/neuron{device}/stats/hardware"
            folder.mkdir(parents=True)
            for name in COUNTERS:
                (folder / name).write_text("0\n")
        aws.make_bucket(BUCKET, REGION)
        aws.push(re.search(r"^image: (\S+)", self.path.read_text(), re.MULTILINE)[1])
        if spec.engine == "batch":
            self.make_queue()

    def make_queue(self):
        batch = self.aws.client("batch", region=REGION)
        batch.create_compute_environment(
            computeEnvironmentName="my-machines", type="MANAGED",
            computeResources={"type": "EC2", "maxvCpus": 1024, "instanceTypes": ["optimal"], "subnets": ["subnet-1"],
                              "instanceRole": "ecsInstanceRole"})
        batch.create_job_queue(jobQueueName=QUEUE, priority=1, computeEnvironmentOrder=[
            {"order": 1, "computeEnvironment": "my-machines"}])

    def stoker(self, *argv):
        env = self.aws.env(HOME=self.home, STOKER_STATE=f"s3://{BUCKET}/state", AWS_REGION=None, AWS_DEFAULT_REGION=REGION)
        result = cli.finish(cli.start(*argv, env=env, cwd=self.root), argv, SECONDS)
        assert result.code == 0, str(result)
        return result

    def run(self, name):
        """From a machine where nothing is, on machines where nothing is."""
        self.home = self.root / name / "home"
        machines = self.root / name / "machines"
        self.home.mkdir(parents=True)
        machines.mkdir()
        self.aws.settings(image_env={"*": {"PATH": self.image.path, "HOME": str(machines),
                                           "STOKER_WORK": str(machines / "work")}})
        # Of what Neuron reads in the environment a job has what its spec says.
        changes = (*self.spec.sets, f"hyperparameters.max_steps={STEPS[name]}", f"env.NEURON_SYSFS_ROOT={self.root}/sysfs")
        sets = [word for each in changes for word in ("--set", each)]
        since, began = self.aws.mark(), time.monotonic()
        self.stoker("run", self.path, "--id", name, *sets)
        return Done(self, name, time.monotonic() - began, self.aws.ledger(since))


class Done:
    def __init__(self, user, name, seconds, ledger):
        self.user, self.name, self.ledger, self.spec = user, name, ledger, user.spec
        self.events = user.stoker("events", name).lines
        self.status, = user.stoker("--json", "status", name).lines
        self.phases = [row["phase"] for row in self.of("attempt.submitted")]
        self.jobs = sum(row["effect"] for row in ledger if row["operation"] == SUBMITS[self.spec.engine])
        self.figures = {
            "spec": self.spec.path, "run": name, "seconds": round(seconds, 1), "jobs": self.jobs, "phases": self.phases,
            "graphs": [row["graphs"] for row in self.of("cache.verified")],
            "health": [row["reason"] for row in self.of("health.checked")], "requests": len(ledger)}
        print(json.dumps(self.figures), flush=True)

    def of(self, kind):
        return [row for row in self.events if row["event"] == kind]

    def refused(self):
        """What was answered with an error that is no answer to a question."""
        return Counter((row["operation"], row["status"], row["code"]) for row in self.ledger
                       if row["status"] >= 400 and str(row["code"] or row["status"]) not in ASKED)

    def check(self):
        assert self.status["state"] == "succeeded" and self.status["progress"]["step"] == STEPS[self.name]
        assert self.status["jit"]["graphs"] == 0, "training compiled"
        assert self.status["checkpoint"]["url"].startswith(f"s3://{BUCKET}/checkpoints")
        ledger_adds_up(self.status)
        assert self.refused() == Counter()
        self.check_health()

    def check_health(self):
        """Each node was looked at, and all of them together."""
        said = self.of("health.checked")[-1]
        assert said["healthy"], said
        nodes = said["health"]["nodes"]
        assert len(nodes) == self.spec.nodes
        for node in nodes:
            verdicts = {row["check"]: row["verdict"] for row in node["checks"]}
            assert {verdicts[check] for check in CHECKS} == {"ok"}, verdicts
            assert verdicts["tensor"] == ("ok" if self.spec.devices < 2 else "unchecked"), verdicts
            if self.spec.devices:
                assert {verdicts[check] for check in ("devices", "counters", "collectives")} == {"ok"}, verdicts
                assert all(node["figures"][each]["busbw"] > 0 for each in OPERATIONS), node
        if self.spec.nodes > 1:
            across = said["health"]["across"]
            assert across["how"] == "torch" and across["figures"]["all_reduce"]["ranks"] == self.spec.nodes, across


@pytest.fixture
def aws(tmp_path):
    folder = tmp_path / "standin"
    folder.mkdir()
    aws = Aws(folder)
    yield aws
    broken = aws.control("GET", "broken")
    aws.stop()
    assert broken == []


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.path)
def test_a_spec_of_ours_is_carried_through_and_then_warm(aws, tmp_path, spec):
    user = User(tmp_path / "user", aws, spec)
    cold = user.run("cold")
    assert (cold.phases, cold.jobs) == (["precompile", "train"], 2)
    verified = cold.of("cache.verified")[-1]
    assert verified["graphs"] > 0 and verified["compiled"] == verified["graphs"], verified
    cold.check()
    assert cold.status["metrics"]["accuracy"] > 0.8
    warm = user.run("warm")
    assert (warm.phases, warm.jobs) == (["train"], 1)
    warm.check()
    brought = [row["name"] for row in warm.ledger if row["effect"] and row["operation"] == "PutObject"]
    assert [name for name in brought if name.endswith("-cache")] == []
