"""What a command finds in a container of AWS Batch and of SageMaker: its image's ENV and its job's role,
as any program there has them, so that Neuron's own cache in S3 works with keys that only the container
can ask for."""

import json
import urllib.error
import urllib.request

import pytest
from batch_job import ROLE, BatchJob
from bucket_job import BUCKET
from neuron_standin.install import Installation
from registry import Registry
from sagemaker_job import ROLE as SAGEMAKER_ROLE
from sagemaker_job import SagemakerJob

# An image's ENV as images have it.
ENV = {"LD_LIBRARY_PATH": "/opt/aws/neuron/lib:/usr/lib", "HF_HOME": "/opt/hf", "PYTHONDONTWRITEBYTECODE": "1",
       "SM_MODEL": "a = b\tc", "EMPTY": "", "AWS_RETRY_MODE": "standard", "NEURON_RT_NUM_CORES": "2"}
ROLES = {"batch": ROLE, "sagemaker": SAGEMAKER_ROLE}
DUMP = "import json, os\nprint('\\nENVIRONMENT ' + json.dumps(dict(os.environ)), flush=True)\n"


class Containers:
    """Jobs of one engine whose image holds the neuron stand-ins."""

    def __init__(self, engine, nodes, aws, tmp_path):
        self.engine, self.nodes, self.aws = engine, nodes, aws
        instance = "trn1.2xlarge" if nodes == 1 else "trn1.32xlarge"
        self.neuron = Installation(tmp_path / "neuron", STANDIN_INSTANCE=instance).with_boto3()
        # Two processes on a node: each one asks for keys, and more of them would only ask again.
        what = {"command": ["torchrun", "--nproc_per_node", "2", "train.py"], "env": None, "health": {"device": False},
                "hyperparameters": {"lr": 0.1, "max_steps": 6, "save_steps": 3},
                "compile": {"kind": "neuron", "cache_url": f"s3://{BUCKET}/cache", "max_steps": 3, "quiet_period": "0s"},
                "metrics": [{"name": "step", "regex": "step: ([0-9]+)"}], "retry": {"attempts": 1}}
        self.job = (BatchJob(tmp_path / "project", aws, resources={"instance": instance, "nodes": nodes}, **what)
                    if engine == "batch" else SagemakerJob(tmp_path / "project", aws, nodes, **what))
        if engine == "sagemaker":
            self.job.write(resources={"instance": f"ml.{instance}", "nodes": nodes})
        self.neuron.train_script(self.job.source / "train.py")
        self.image(**ENV)

    def image(self, **env):
        self.job.image_env = {**getattr(self.job, "image_env", {}), "PATH": self.neuron.path, **env}
        self.aws.settings(image_env={"*": self.job.image_env})

    def machine(self, **env):
        self.aws.settings(machine_env=env)

    def dump(self):
        """The command, alone, that shows what it finds."""
        (self.job.source / "train.py").write_text(DUMP)
        self.job.write(command=["python3", "train.py"], hyperparameters=None, checkpoint=None, metrics=None)

    def found(self, run, phase="train"):
        """What it has found, of node 0."""
        said = self.job.ok("logs", run, "--phase", phase, "--node", "0").out
        return json.loads(next(line for line in said.splitlines() if "ENVIRONMENT {" in line).split("ENVIRONMENT ")[1])


@pytest.fixture
def containers(request, aws, tmp_path):
    made = []

    def make(engine, nodes=1):
        made.append(Containers(engine, nodes, aws, tmp_path))
        return made[0]
    yield make
    for each in made:
        each.job.stop()


@pytest.mark.parametrize("engine", ["batch", "sagemaker"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_neurons_own_cache_in_s3_works_with_the_role_of_the_container(containers, engine, nodes):
    """Cold, then warm."""
    with_role = containers(engine, nodes)
    job, aws = with_role.job, with_role.aws
    job.run("--id", "one")
    assert job.attempts("one") == [("precompile", 1), ("train", 1)]
    status = job.status("one")
    assert (status["state"], status["jit"]["graphs"]) == ("succeeded", 0)
    neffs = [row for row in aws.ledger(operation="PutObject", service="s3")
             if row["effect"] and row["name"].startswith(f"{BUCKET}/cache/neuronxcc-")]
    assert neffs and {row["who"].rsplit("/", 2)[1] for row in neffs} == {ROLES[engine].rpartition("/")[2]}, neffs
    since = aws.mark()
    job.run("--id", "two")
    assert job.attempts("two") == [("train", 1)]
    assert job.status("two")["jit"]["graphs"] == 0
    assert not [row for row in aws.ledger(since, "PutObject") if row["name"].endswith("model.neff")]


@pytest.mark.parametrize("engine", ["batch", "sagemaker"])
def test_the_command_finds_what_the_container_has(containers, engine):
    """All that the image sets and the service tells, less what is ours, and the spec's on top."""
    made = containers(engine)
    made.dump()
    made.image(NEURON_COMPILE_CACHE_URL="s3://image/own", RUN_NEURON_PARALLEL_COMPILE="1", STOKER_PHASE="image",
               STOKER_MINE="image", BOTH="image", MASTER_ADDR="image")
    made.job.write(env={"BOTH": "spec", "MODE": "${STOKER_PHASE}", "XLA_FLAGS": "--spec"},
                   compile={**made.job.spec["compile"], "mode": "jit"})
    made.machine(ECS_CONTAINER_METADATA_URI_V4="http://169.254.170.2/v4/x", XLA_FLAGS="--machine")
    made.job.run("--id", "one")
    found = made.found("one")
    assert {name: found.get(name) for name in ENV} == ENV
    assert found["PATH"] == made.neuron.path
    assert (found["BOTH"], found["MODE"], found["XLA_FLAGS"]) == ("spec", "train", "--spec")
    assert found["ECS_CONTAINER_METADATA_URI_V4"] and found["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
    assert found["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
    assert found["AWS_REGION"] == found["AWS_DEFAULT_REGION"] == "eu-west-1"
    assert found["AWS_BATCH_JOB_ID" if engine == "batch" else "TRAINING_JOB_ARN"]
    assert found["NEURON_COMPILE_CACHE_URL"].startswith(f"s3://{BUCKET}/cache")
    assert found["STOKER_PHASE"] == "train" and found["MASTER_ADDR"] == "127.0.0.1"
    assert not {"RUN_NEURON_PARALLEL_COMPILE", "STOKER_MINE", "STOKER_ORDER", "STOKER_WORK", "STOKER_LINK"} & set(found)
    assert not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED", "USER"} & set(found)
    assert not made.job.events("one", "environment.checked")


@pytest.mark.parametrize("engine", ["batch", "sagemaker"])
def test_what_is_set_elsewhere_and_steers_graphs_is_withheld_and_named(containers, engine):
    made = containers(engine)
    made.machine(XLA_FLAGS="--xla_dump_to=/secret-place", NEURON_FUSE_SOFTMAX="1", NEURON_EXTRACT_GRAPHS_ONLY="1",
                 BUCKET_CAP_MB="512", NEURON_RT_LOG_LEVEL="INFO", OTHER="stays")
    plan, = made.job.ok("--json", "plan", made.job.spec_path).lines
    assert {"XLA_*", "NEURON_*", "BUCKET_CAP_MB"} <= set(plan["inherited"]["steering"])
    assert set(plan["inherited"]["left_out"]) == {"STOKER_*", "RUN_NEURON_PARALLEL_COMPILE", "NEURON_COMPILE_CACHE_URL"}
    said = made.job.ok("plan", made.job.spec_path).out
    assert "env:     the container's own, less STOKER_*" in said and "XLA_*" in said
    made.job.run("--id", "one")
    names = {"XLA_FLAGS", "NEURON_FUSE_SOFTMAX", "NEURON_EXTRACT_GRAPHS_ONLY", "BUCKET_CAP_MB"}
    for row, phase in zip(made.job.events("one", "environment.checked"), ("precompile", "train"), strict=True):
        assert (row["phase"], set(row["names"])) == (phase, names)
        assert all(name in row["reason"] for name in names) and "'env'" in row["hint"]
    assert "secret-place" not in made.job.ok("--json", "events", "one").out
    assert made.job.status("one")["jit"]["graphs"] == 0
    # The same graphs where the machine sets none.
    made.machine()
    made.job.run("--id", "two")
    assert made.job.attempts("two") == [("train", 1)]
    assert made.job.status("two")["jit"]["graphs"] == 0
    made.dump()
    made.machine(XLA_FLAGS="--machine", NEURON_RT_LOG_LEVEL="INFO", OTHER="stays")
    made.job.write(compile={**made.job.spec["compile"], "mode": "jit"})
    made.job.run("--id", "three")
    told, = made.job.events("three", "environment.checked")
    assert told["names"] == ["XLA_FLAGS"]
    found = made.found("three")
    assert "XLA_FLAGS" not in found
    assert (found["NEURON_RT_LOG_LEVEL"], found["OTHER"]) == ("INFO", "stays")


def test_a_check_up_goes_by_the_containers_environment_too(containers):
    """Its programs are the image's, found and loaded by the image's ENV."""
    made = containers("batch")
    made.neuron.with_xla()
    tool = made.neuron.bin / "neuron-ls"
    real = tool.readlink()
    tool.unlink()
    tool.write_text(f'#!/bin/sh\n[ "$LD_LIBRARY_PATH" = {ENV["LD_LIBRARY_PATH"]} ] || exit 127\nexec {real} "$@"\n')
    tool.chmod(0o755)
    made.job.write(health={"device": True, "timeout": "5m"})
    made.job.run("--id", "one")
    checked, = [row for row in made.job.events("one", "health.checked") if row["phase"] == "train"]
    rows = {row["check"]: row for row in checked["health"]["nodes"][0]["checks"]}
    assert checked["healthy"] and rows["devices"]["verdict"] == "ok", checked


@pytest.mark.parametrize("engine", ["batch", "sagemaker"])
def test_keys_are_the_containers_own(containers, engine):
    """They are its role's, and nobody else gets them at its URL: not without its token, and not later."""
    made = containers(engine)
    made.dump()
    made.job.write(compile=None)
    made.job.run("--id", "one")
    found = made.found("one")
    ask = urllib.request.Request(found["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
                                 headers={"Authorization": found["AWS_CONTAINER_AUTHORIZATION_TOKEN"]})
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(ask)
    agents = {row["who"].rsplit("/", 2)[1] for row in made.aws.ledger(service="s3")
              if row["who"] and "assumed-role" in row["who"]}
    assert agents == {ROLES[engine].rpartition("/")[2]}


@pytest.mark.parametrize("engine", ["batch", "sagemaker"])
def test_what_the_image_sets_stays(containers, engine):
    """Its digest is in the key. What the machine makes of it is set back."""
    made = containers(engine)
    made.image(XLA_FLAGS="--image", NEURON_CC_FLAGS="--model-type transformer", NEURON_FUSE_SOFTMAX="1")
    made.dump()
    made.job.write(compile={**made.job.spec["compile"], "mode": "jit"}, env={"NEURON_FUSE_SOFTMAX": "0"})
    made.machine(XLA_FLAGS="--machine", XLA_USE_BF16="1")
    made.job.run("--id", "one")
    found = made.found("one")
    assert (found["XLA_FLAGS"], found["NEURON_CC_FLAGS"]) == ("--image", "--model-type transformer")
    assert found["NEURON_FUSE_SOFTMAX"] == "0" and "XLA_USE_BF16" not in found
    told, = made.job.events("one", "environment.checked")
    assert told["names"] == ["XLA_USE_BF16", "XLA_FLAGS"]
    assert "XLA_USE_BF16, which neither the spec nor the image sets" in told["reason"]
    assert "XLA_FLAGS as the image sets it" in told["reason"]


@pytest.mark.parametrize("operation", ["BatchGetImage", "GetDownloadUrlForLayer", "GetLayer"])
def test_where_nobody_knows_what_the_image_sets_it_is_withheld(containers, operation):
    made = containers("batch")
    made.image(XLA_FLAGS="--image")
    made.dump()
    made.job.write(compile={**made.job.spec["compile"], "mode": "jit"})
    made.aws.fault("denied" if operation != "GetLayer" else "reset_before", operation=operation, count=0)
    made.job.run("--id", "one")
    assert "XLA_FLAGS" not in made.found("one")
    told, = made.job.events("one", "environment.checked")
    assert told["names"] == ["XLA_FLAGS"]
    assert "the image's value is not known: " in told["reason"] and "'env'" in told["hint"]


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken"])
def test_any_registry_says_what_its_image_sets(containers, tmp_path, broken):
    """From an index to a config that lies elsewhere; one that is not what it is called is not believed."""
    made, registry = containers("batch"), Registry(tmp_path)
    try:
        config = registry.set_env({"XLA_FLAGS": "--image", "OTHER": "x"})
        if broken:
            registry.texts[config] = registry.texts[config].replace(b"--image", b"--forged")
        made.image(XLA_FLAGS="--image")
        made.dump()
        made.job.write(image=registry.image, compile={**made.job.spec["compile"], "mode": "jit"})
        made.job.run("--id", "one", env={"SSL_CERT_FILE": str(registry.certificate)})
    finally:
        registry.stop()
    assert made.found("one").get("XLA_FLAGS") == (None if broken else "--image")
    told = made.job.events("one", "environment.checked")
    assert len(told) == broken and all("the received config of the image is not" in row["reason"] for row in told)
