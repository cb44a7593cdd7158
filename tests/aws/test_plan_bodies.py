"""plan --offline --requests shows what run then sends: of each spec of ours for AWS, as it is but for what
makes the job short and lets it run on the stand-in. Whoever makes the plan would be killed at its first socket."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import stoker as cli
from bucket_job import BUCKET
from neuron_standin.install import Installation
from project import SUPPORT
from test_toolkit import IMAGE, ToolkitJob

REGION, MINE = "us-west-2", "my-bucket"  # as the specs say
NO_SOCKETS = (sys.executable, str(SUPPORT / "no_sockets.py"))
SHORT = ("health.device=false", "compile.kind=jax")
APART = (*SHORT, "sagemaker.work_dir=/opt/ml/stoker")  # instances of the stand-in share /tmp
TRAIN = 'command=["python3","train/train.py"]'
# path: (engine, what is set on the command line, for the plan and for the run)
SPECS = {
    "configs/batch/batch.yaml": ("batch", SHORT),
    "configs/batch/batch-4node.yaml": ("batch", SHORT),
    "configs/sagemaker/stoker.yaml": ("sagemaker", APART),
    "configs/sagemaker/two-nodes.yaml": ("sagemaker", APART),
    "templates/batch-multinode.yaml": ("batch", (*SHORT, TRAIN, "notify=null", "checkpoint.kind=auto")),
    "templates/estimator.yaml": ("sagemaker", APART),
    "templates/machines.yaml": ("sagemaker", (*APART, 'command=["python3","train.py"]', "derive=null")),
    "templates/sagemaker.yaml": ("sagemaker", (*APART, TRAIN)),
}
KEPT = ("RegisterJobDefinition", "SubmitJob", "CreateTrainingJob")


def test_every_spec_of_ours_for_aws_is_in_the_table():
    found = {str(path.relative_to(cli.ROOT)) for folder in ("configs", "templates")
             for path in (cli.ROOT / folder).rglob("*.yaml")
             if re.search(r"^engine: *(batch|sagemaker)\b", path.read_text(), re.MULTILINE)}
    assert found == set(SPECS)


class User:
    """Somebody with a copy of a spec and of a script, who has no account yet; then with one."""

    def __init__(self, root, aws, path):
        self.root, self.aws, self.home, self.machines = root, aws, root / "home", root / "machines"
        self.engine, sets = SPECS[path]
        self.path = root / path
        for folder in (self.path.parent, self.home, self.machines):
            folder.mkdir(parents=True)
        shutil.copy(cli.ROOT / path, self.path)
        script = (SUPPORT / "fake_train.py").read_text().replace("parser.parse_args()", "parser.parse_known_args()[0]")
        for place in ("train.py", "train/train.py", "../quickstart/train.py"):
            (self.path.parent / place).parent.mkdir(parents=True, exist_ok=True)
            (self.path.parent / place).write_text(script)
        if "rev: HEAD" in self.path.read_text():
            self.commit()
        self.sets = [word for each in (*sets, "hyperparameters.max_steps=20") for word in ("--set", each)]

    def commit(self):
        git = ("git", "-C", str(self.path.parent), "-c", "user.name=a", "-c", "user.email=a@example.com")
        for words in (("init", "-q"), ("add", "train"), ("commit", "-qm", "first")):
            subprocess.run([*git, *words], check=True, env={"PATH": "/usr/bin:/bin", "HOME": str(self.home)})

    def plan(self):
        env = cli.environment(HOME=str(self.home), XDG_STATE_HOME=str(self.root / "state"))
        argv = ("--json", "plan", "--offline", "--requests", self.path, *self.sets)
        result = cli.stoker(*argv, env=env, cwd=self.root, prefix=NO_SOCKETS)
        assert result.code == 0, str(result)
        return result.lines[-1]

    def open_account(self):
        text = self.path.read_text()
        self.aws.make_bucket(MINE, REGION)
        self.aws.push(re.search(r"^image: (\S+)", text, re.MULTILINE)[1])
        self.aws.settings(job_seconds=0.1, stop_seconds=30, image_env={"*": {
            "PATH": "/usr/bin:/bin", "HOME": str(self.machines), "STOKER_WORK": str(self.machines / "work")}})
        for name in re.findall(r"secretsmanager:(\w+)", text):
            self.aws.client("secretsmanager", region=REGION).create_secret(Name=name, SecretString="x")
        if self.engine == "batch":
            batch = self.aws.client("batch", region=REGION)
            batch.create_compute_environment(
                computeEnvironmentName="machines", type="MANAGED",
                computeResources={"type": "EC2", "maxvCpus": 1024, "instanceTypes": ["optimal"],
                                  "subnets": ["subnet-1"], "instanceRole": "ecsInstanceRole"})
            batch.create_job_queue(jobQueueName=re.search(r"job_queue: (\S+)", text)[1], priority=1,
                                   computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "machines"}])

    def run(self):
        self.open_account()
        env = self.aws.env(HOME=self.home, STOKER_STATE=f"s3://{MINE}/state", AWS_REGION=None,
                           AWS_DEFAULT_REGION=REGION)
        result = cli.stoker("run", self.path, "--id", "one", *self.sets, env=env, cwd=self.root)
        assert result.code == 0, str(result)


def sent(aws):
    """{operation and job: body} of all that began one."""
    rows = [row for row in aws.ledger() if row["operation"] in KEPT and row["status"] == 200]
    return {(row["operation"], name_in(row["body"])): row["body"] for row in rows}


def name_in(body):
    return body.get("jobName", body.get("TrainingJobName"))


EACH = {"<nonce>", "<token>", "<link>", "<time>"}  # of each job another


class Marks:
    """The placeholders that a plan lists, and what came in their place: the same in all places."""

    def __init__(self, plan):
        self.listed = {row["mark"]: row["meaning"] for row in plan["placeholders"]}
        self.known = {}

    def same(self, planned, there, where):
        if isinstance(planned, dict):
            assert planned.keys() == there.keys(), where
            for name, value in planned.items():
                self.same(value, there[name], f"{where}.{name}")
        elif isinstance(planned, list):
            assert len(planned) == len(there), where
            for at, (one, other) in enumerate(zip(planned, there, strict=True)):
                self.same(one, other, f"{where}[{at}]")
        elif isinstance(planned, str) and (marks := re.findall(r"<[a-z0-9-]+>", planned)):
            pattern = re.sub("|".join(map(re.escape, marks)), "(.+?)", re.sub(r"\\(?=[<>-])", "", re.escape(planned)))
            found = re.fullmatch(pattern, there)
            assert found, (where, planned, there)
            for mark, value in zip(marks, found.groups(), strict=True):
                assert mark in self.listed, (where, mark)
                assert mark in EACH or self.known.setdefault(mark, value) == value, (where, mark)
        else:
            assert planned == there, where


def compare(plan, bodies, run="one"):
    marks, seen = Marks(plan), set()
    for request in plan["requests"]:
        for call in request["sends"]:
            name = name_in(call["body"])
            name = name and name.replace("<id>", run)
            marks.same(call["body"], bodies[call["operation"], name], f"{request['phase']}.{call['operation']}")
            seen.add((call["operation"], name))
    assert seen == bodies.keys()
    assert marks.known.pop("<id>") == run
    return marks.known


@pytest.mark.parametrize("path", SPECS)
def test_what_is_shown_without_an_account_is_what_is_sent(aws, tmp_path, path):
    user = User(tmp_path / "user", aws, path)
    plan = user.plan()
    assert [row["phase"] for row in plan["requests"]] == ["precompile", "train"] and plan["difference"]
    assert "<image-digest>" in {row["mark"] for row in plan["placeholders"]}
    if "cells" not in plan:
        assert "verdict" not in plan["cache"] and "graph_key" not in plan["cache"]
        assert {"cache", "image", "account"} <= {row["what"] for row in plan["not_known"]}
        assert {row["reason"].removeprefix("not known: ") for row in plan["not_known"]} == {"--offline"}
    user.run()
    known = compare(plan, sent(aws))
    assert known["<image-digest>"].startswith("sha256:")
    assert ("<definition-hash>" in known) == (user.engine == "batch")


def test_a_digest_in_the_spec_leaves_nothing_of_the_image_open(aws, tmp_path):
    user = User(tmp_path / "user", aws, "configs/batch/batch.yaml")
    digest = aws.push(re.search(r"^image: (\S+)", user.path.read_text(), re.MULTILINE)[1])
    text = user.path.read_text()
    user.path.write_text(re.sub(r"^(image: \S+):1$", rf"\1@{digest}", text, flags=re.MULTILINE))
    plan = user.plan()
    assert not {"<image-digest>", "<definition-hash>", "<graph-key>"} & {row["mark"] for row in plan["placeholders"]}
    assert "graph_key" in plan["cache"] and "image" not in {row["what"] for row in plan["not_known"]}
    user.run()
    assert not {"<image-digest>", "<definition-hash>"} & compare(plan, sent(aws)).keys()


def test_the_shape_without_our_agent(aws, tmp_path):
    neuron = Installation(tmp_path / "neuron", STANDIN_INSTANCE="trn1.2xlarge").with_boto3()
    aws.settings(image_env={"*": {"PATH": neuron.path}})
    job = ToolkitJob(tmp_path / "project", aws, neuron)
    env = cli.environment(HOME=str(job.root / "home"))
    result = cli.stoker("--json", "plan", "--offline", job.spec_path, env=env, cwd=job.source, prefix=NO_SOCKETS)
    assert result.code == 0, str(result)
    plan, = result.lines
    assert {"region", "image"} <= {row["what"] for row in plan["not_known"]}
    job.run("--id", "one")
    known = compare(plan, sent(aws))
    assert known["<image-digest>"] == aws.client("ecr").batch_get_image(
        registryId=IMAGE.split(".")[0], repositoryName="pytorch-training-neuronx",
        imageIds=[{"imageTag": IMAGE.rsplit(":", 1)[1]}])["images"][0]["imageId"]["imageDigest"]


def test_the_filter_kills_who_asks_a_service(aws, tmp_path):
    """Without the option the same plan opens a socket."""
    user = User(tmp_path / "user", aws, "configs/batch/batch.yaml")
    env = aws.env(HOME=user.home, STOKER_STATE=str(tmp_path / "state"))
    result = cli.stoker("plan", user.path, *user.sets, env=env, cwd=user.root, prefix=NO_SOCKETS)
    assert result.code == -31, str(result)
