"""Secrets that AWS keeps, the account that a run must be in, and canaries: what is secret
is in the job that needs it and nowhere else."""

import hashlib
import json
import os
import threading
import time
from pathlib import Path

import pytest
from aws import ACCESS, SECRET
from bucket_job import BUCKET, BucketJob
from project import Project
from who import Who

ACCOUNT = "123456789012"
# Of no other test: those that run beside this one have theirs on command lines.
CANARY = "CANARYz2Ms"
# The script proves that it has a secret without showing it.
DIGESTS = """
import hashlib
import os


def start(args):
    for name in sorted(os.environ):
        if name.startswith("TOKEN"):
            print(name, hashlib.sha256(os.environ[name].encode()).hexdigest(), flush=True)
    print("AWS of the command:", sorted(name for name in os.environ if name.startswith("AWS_")), flush=True)


def end(args):
    pass
"""


@pytest.fixture
def project(aws, tmp_path):
    project = Project(tmp_path / "project")
    project.aws_env = {name: value for name, value in aws.env().items() if name.startswith("AWS_")}
    project.extra(DIGESTS)
    return project


@pytest.fixture
def who(aws):
    who = Who(aws.env())
    yield who
    who.stop()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def put(aws, name, **what):
    return aws.client("secretsmanager").create_secret(Name=name, **what)


# --- reading them ------------------------------------------------------------------


def test_whole_secrets_members_and_parameters(aws, who):
    put(aws, "plain", SecretString="päss word\nline")
    put(aws, "dir/json", SecretString=json.dumps({"user": "me", "port": 5432, "tls": True, "ratio": 0.5, "no": None}))
    arn = put(aws, "by-arn", SecretString="x")["ARN"]
    ssm = aws.client("ssm")
    ssm.put_parameter(Name="/prod/key", Value="deciphered", Type="SecureString")
    ssm.put_parameter(Name="plain", Value="just text", Type="String")
    for source, value in {
        "secretsmanager:plain": "päss word\nline", "secretsmanager:dir/json#user": "me",
        "secretsmanager:dir/json#port": "5432", "secretsmanager:dir/json#tls": "true",
        "secretsmanager:dir/json#ratio": "0.5", f"secretsmanager:{arn}": "x",
        "ssm:/prod/key": "deciphered", "ssm:plain": "just text",
    }.items():
        assert who.ask("secret", **{"from": source}) == {"value": value}, source


@pytest.mark.parametrize("source, words", [
    ("secretsmanager:none", "ResourceNotFoundException"),
    ("secretsmanager:binary", "binary"),
    ("secretsmanager:plain#user", "not a JSON object"),
    ("secretsmanager:json#none", "no key 'none'"),
    ("secretsmanager:json#list", "the key 'list' is neither a string nor a number"),
    ("secretsmanager:json#nul", "a NUL byte in it"),
    ("secretsmanager:json#empty", "empty"),
    ("secretsmanager:long", "longer than 1 KiB"),
    ("ssm:/none", "ParameterNotFound"),
])
def test_secrets_that_are_of_no_use(aws, who, source, words):
    put(aws, "binary", SecretBinary=CANARY.encode())
    put(aws, "plain", SecretString=CANARY)
    put(aws, "json", SecretString=json.dumps({"list": [CANARY], "nul": CANARY + "\0", "empty": ""}))
    put(aws, "long", SecretString=CANARY * 200)
    got = who.ask("secret", **{"from": source, "max": 1024})
    assert words in got["error"] and got["hint"] and got["exit"] == 4, got
    assert CANARY not in got["error"] + got["hint"]


# --- a run -------------------------------------------------------------------------


def test_a_run_gets_its_secrets(aws, project):
    put(aws, "wandb", SecretString=json.dumps({"key": CANARY}))
    aws.client("ssm").put_parameter(Name="/hf/token", Value=CANARY + "2", Type="SecureString")
    project.write(secrets={"TOKEN_A": "secretsmanager:wandb#key", "TOKEN_B": "ssm:/hf/token"})
    project.run(env=project.aws_env)
    logs = project.logs()
    assert f"TOKEN_A {digest(CANARY)}" in logs and f"TOKEN_B {digest(CANARY + '2')}" in logs
    assert "AWS of the command: []" in logs


def test_a_secret_that_cannot_be_had_ends_it_before_anything_runs(aws, project):
    project.write(secrets={"TOKEN": "secretsmanager:none"})
    result = project.run("--id", "x", code=4, env=project.aws_env)
    assert "secret 'TOKEN' ('secretsmanager:none')" in result.err and "ResourceNotFoundException" in result.err
    assert "run x" not in result.text
    project.write(secrets={"TOKEN": "ssm:/x"})
    no_keys = {**project.aws_env, "AWS_ACCESS_KEY_ID": ""}
    result = project.run(code=4, env=no_keys)
    assert "no AWS credentials" in result.err and "hint:" in result.err


def test_the_account_is_checked_before_anything_is_submitted(aws, project):
    aws.client("ssm").put_parameter(Name="k", Value="v", Type="String")
    project.write(aws={"account": "999999999999"}, secrets={"TOKEN": "ssm:k"})
    mark = aws.mark()
    result = project.run("--id", "x", code=4, env=project.aws_env)
    assert f"are of account {ACCOUNT}, not 999999999999" in result.err and "--profile" in result.cure
    assert "run x" not in result.text
    assert [entry["operation"] for entry in aws.ledger(mark)] == ["GetCallerIdentity"]
    project.write(aws={"account": ACCOUNT})
    project.run("--id", "x", env=project.aws_env)


def test_a_run_that_uses_nothing_of_aws_asks_nothing(aws, project):
    project.write(aws={"account": "999999999999", "region": "us-west-2"})
    mark = aws.mark()
    project.run(env=project.aws_env)
    assert aws.ledger(mark) == []


def test_region_and_profile_by_option_and_spec(aws, project):
    home = project.root / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws/credentials").write_text(f"[mine]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n")
    aws.client("ssm", region="us-west-2").put_parameter(Name="k", Value="west", Type="String")
    aws.client("ssm", region="us-east-2").put_parameter(Name="k", Value="east", Type="String")
    project.write(aws={"region": "us-west-2"}, secrets={"TOKEN": "ssm:k"})
    env = {"HOME": str(home), "AWS_ENDPOINT_URL": aws.url, "AWS_EC2_METADATA_DISABLED": "true"}
    project.ok("--profile", "mine", "run", project.spec_path, env=env)
    assert f"TOKEN {digest('west')}" in project.logs()
    project.ok("run", project.spec_path, "--profile=mine", "--region", "us-east-2", env=env)
    assert f"TOKEN {digest('east')}" in project.logs()
    project.ok("--profile", "mine", "run", project.spec_path, "--detach", "--id", "far", env=env)
    project.ok("attach", "far", env=env)
    assert f"TOKEN {digest('west')}" in project.ok("logs", "far").out
    assert "no AWS credentials" in project.run(code=4, env=env).err
    result = project.stoker("run", project.spec_path, "--profile", "other", env=env)
    assert result.code == 4 and "choose one of: mine" in result.cure


def test_keys_that_expire_while_a_run_goes_on(aws, project):
    """The driver is kept waiting longer than its keys last; then it needs them again."""
    aws.settings(imds={"role": "r", "seconds": 7})
    aws.client("ssm").put_parameter(Name="k", Value="v", Type="String")
    env = {"AWS_ENDPOINT_URL": aws.url, "AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.url, "AWS_REGION": "eu-west-1",
           "AWS_METADATA_SERVICE_TIMEOUT": "60"}
    project.write(aws={"account": ACCOUNT}, secrets={"TOKEN": "ssm:k"})
    aws.fault("delay", service="ssm", seconds=8)
    # Two services are asked with one pair, the second when that has ended.
    aws.fault("delay_after", service="sts", seconds=8)
    project.run(env=env)
    assert aws.effects("GetMetadata") >= 2


def test_keys_that_last_shorter_than_a_job_when_everything_is_on_s3(aws, tmp_path):
    """Driver, agent and their helpers wait and write longer than any pair of keys lasts."""
    aws.settings(imds={"role": "r", "seconds": 16})
    job = BucketJob(tmp_path / "project", aws)
    base = job.env
    keys = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_EC2_METADATA_DISABLED": None,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.url, "AWS_METADATA_SERVICE_TIMEOUT": "60"}
    job.env = lambda **more: {name: value for name, value in base(**{**keys, **more}).items() if value is not None}
    job.also("import time\ntime.sleep(30 if attempt[0] == 'train' else 0)")
    job.run("--id", "one")
    refused = [entry for entry in aws.ledger(service="s3") if entry["status"] in (400, 403)]
    assert refused == [] and aws.effects("GetMetadata") >= 6


# --- canaries ----------------------------------------------------------------------


class Watch:
    """Every command line on this machine, again and again, in a thread of its own."""

    def __init__(self, words):
        self.words, self.found, self.over = words, set(), threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        me = os.getpid()
        while not self.over.is_set():
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    line = (folder / "cmdline").read_bytes() if int(folder.name) != me else b""
                except OSError:
                    continue
                for word in self.words:
                    if word.encode() in line:
                        self.found.add((word, line[:200]))
            time.sleep(0.005)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def search(folders, words):
    hits = []
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                hits += [(str(path), word) for word in words if word.encode() in content]
    return hits


SOURCES = {
    # Of each kind: its secret is planted where it comes from.
    "environment": lambda w: {"AWS_ACCESS_KEY_ID": "AKIDCANARY", "AWS_SECRET_ACCESS_KEY": CANARY + "env",
                              "AWS_SESSION_TOKEN": CANARY + "token"},
    "shared": lambda w: w.shared(f"[default]\naws_access_key_id = AKIDCANARY\naws_secret_access_key = {CANARY}env\n"
                                 f"aws_session_token = {CANARY}token\n"),
    "process": lambda w: w.process({"Version": 1, "AccessKeyId": "AKIDCANARY", "SecretAccessKey": CANARY + "env",
                                    "SessionToken": CANARY + "token"}),
    "container": lambda w: {"AWS_CONTAINER_CREDENTIALS_FULL_URI": w.aws.url + "/v2/credentials/" + CANARY + "path",
                            "AWS_CONTAINER_AUTHORIZATION_TOKEN": CANARY + "authorization"},
}


class Home:
    def __init__(self, aws, folder):
        self.aws, self.folder = aws, folder
        (folder / ".aws").mkdir(parents=True)

    def shared(self, text):
        (self.folder / ".aws/credentials").write_text(text)
        return {}

    def process(self, keys):
        script = self.folder / "keys"
        script.write_text("#!/bin/sh\ncat <<'END'\n" + json.dumps(keys) + "\nEND\n")
        script.chmod(0o755)
        (self.folder / ".aws/config").write_text(f"[default]\ncredential_process = {script}\n")
        return {}


@pytest.mark.parametrize("ends", ["well", "badly", "refused"])
@pytest.mark.parametrize("source", SOURCES)
def test_no_secret_is_anywhere(aws, project, tmp_path, source, ends):
    aws.add_key("AKIDCANARY", CANARY + "env", token=CANARY + "token")
    aws.settings(container={"authorization": CANARY + "authorization", "seconds": 3600})
    # Planted with the stand-in's own key, so that a fault of the run's is the run's.
    put(aws, "s", SecretString=json.dumps({"key": CANARY + "manager", "other": CANARY + "neighbour"}))
    aws.client("ssm").put_parameter(Name="p", Value=CANARY + "store", Type="SecureString")
    home = Home(aws, tmp_path / "home")
    env = {"HOME": str(home.folder), "AWS_ENDPOINT_URL": aws.url, "AWS_REGION": "eu-west-1",
           "AWS_EC2_METADATA_DISABLED": "true", **SOURCES[source](home)}
    project.write(secrets={"TOKEN_A": "secretsmanager:s#key", "TOKEN_B": "ssm:p"}, aws={"account": ACCOUNT})
    if ends == "badly":
        project.extra(DIGESTS.replace("    pass\n", "    raise SystemExit('failed on purpose')\n"))
    if ends == "refused":
        aws.fault("denied", service="ssm", count=0)
    with Watch([CANARY]) as watch:
        results = [project.run("-v", code={"well": 0, "badly": 1, "refused": 4}[ends], env=env)]
        for argv in (("plan", project.spec_path), ("--json", "plan", "--requests", project.spec_path),
                     ("list",), ("--json", "status", "@last"), ("events", "@last"), ("logs", "@last")):
            results.append(project.stoker(*argv, env=env))
    for result in results:
        assert CANARY not in result.text, str(result)
    assert not watch.found
    assert search([project.root], [CANARY]) == []
    if ends == "well":
        assert f"TOKEN_A {digest(CANARY + 'manager')}" in results[-1].out
        assert f"TOKEN_B {digest(CANARY + 'store')}" in results[-1].out


@pytest.mark.parametrize("source", SOURCES)
def test_no_secret_is_anywhere_when_everything_is_on_s3(aws, tmp_path, source):
    aws.add_key("AKIDCANARY", CANARY + "env", token=CANARY + "token")
    aws.settings(container={"authorization": CANARY + "authorization", "seconds": 3600})
    put(aws, "s", SecretString=CANARY + "manager")
    job = BucketJob(tmp_path / "project", aws, secrets={"TOKEN": "secretsmanager:s"})
    home = Home(aws, tmp_path / "keys")
    keys = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "HOME": str(home.folder), **SOURCES[source](home)}
    base = job.env
    job.env = lambda **more: {name: value for name, value in base(**{**keys, **more}).items() if value is not None}
    job.also("import hashlib; print('TOKEN', hashlib.sha256(os.environ['TOKEN'].encode()).hexdigest(), flush=True)")
    job.also("print('AWS of the command:', [name for name in os.environ if name.startswith('AWS_')], flush=True)")
    with Watch([CANARY]) as watch:
        results = [job.run("-v", "--id", "one")]
        for argv in (("--json", "plan", "--requests", job.spec_path), ("--json", "status", "one"), ("events", "one"),
                     ("logs", "one")):
            results.append(job.ok(*argv))
    logs = results[-1].out
    assert f"TOKEN {digest(CANARY + 'manager')}" in logs and "AWS of the command: []" in logs
    for result in results:
        assert CANARY not in result.text, str(result)
    assert not watch.found
    assert search([job.root], [CANARY]) == []
    assert [key for key, text in aws.objects(BUCKET).items() if CANARY.encode() in text or CANARY in key] == []
