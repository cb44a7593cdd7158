"""plan where there is no network, and where there are no credentials: it shows what it can know, says
of the rest that it is not known and why, and does not wait for what will not come."""

import contextlib
import json
import socket
import threading
import time

import pytest
import stoker as cli
from batch_job import BatchJob
from bucket_job import BucketJob
from sagemaker_job import SagemakerJob

PATIENCE = 60  # s: who tries five times and waits for each of them needs minutes


@pytest.fixture
def silent():
    """Takes connections and never says anything."""
    server = socket.create_server(("127.0.0.1", 0))
    held, over = [], threading.Event()

    def serve():
        while not over.is_set():
            try:
                held.append(server.accept()[0])
            except OSError:
                return
    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    over.set()
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()
    for each in held:
        each.close()


class ToolkitJob(SagemakerJob):
    """The plain shape of an Estimator, without our agent."""

    def __init__(self, root, aws):
        super().__init__(root, aws, sagemaker={"launcher": "toolkit"}, command=["torchrun", "train.py"], env={},
                         metrics=[])
        self.write(compile={**self.spec["compile"], "kind": "neuron"},
                   checkpoint={"url": self.url["ckpt"], "sync": "script"})


@pytest.fixture
def make(aws, tmp_path):
    made = []

    def build(kind, **changes):
        made.append(kind(tmp_path / "project", aws, **changes))
        return made[0]
    yield build
    for job in made:
        job.stop()


NOTHING = {"AWS_ENDPOINT_URL": None, "AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_REGION": None,
           "AWS_DEFAULT_REGION": None}
KEYLESS = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
# name: (what the environment has instead, words of the reason)
AWAY = {
    "no variable of AWS": (NOTHING, "no AWS region"),
    "no keys": (KEYLESS, "no AWS credentials"),
    "an instance without metadata": ({**KEYLESS, "AWS_EC2_METADATA_DISABLED": None,
                                      "AWS_EC2_METADATA_SERVICE_ENDPOINT": "SILENT"}, "no AWS credentials"),
    "a container that gives none": ({**KEYLESS, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "SILENT/role"}, "container"),
    "nobody listens": ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "no usable reply from '127.0.0.1:1'"),
    "nobody answers": ({"AWS_ENDPOINT_URL": "SILENT"}, "no usable reply"),
    "no such name": ({"AWS_ENDPOINT_URL": "http://s3.nowhere.invalid"}, "nowhere.invalid"),
    "a wrong key": ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "was refused"),
    "a profile that is none": ({"AWS_PROFILE": "nosuch"}, "nosuch"),
}
JOBS = {"batch": BatchJob, "sagemaker": SagemakerJob, "toolkit": ToolkitJob, "local": BucketJob}


def environment(job, changes, silent):
    return job.env(**{name: value and value.replace("SILENT", silent) for name, value in changes.items()})


def plan(job, env, *argv):
    began = time.monotonic()
    result = cli.stoker(*argv, "plan", job.spec_path, "--requests", env=env, cwd=job.source)
    assert result.code == 0, str(result)
    assert time.monotonic() - began < PATIENCE, "it waited for what does not come"
    return result


def here(job):
    """The journal on this machine: what it holds is known."""
    return {"STOKER_STATE": str(job.root / "state")}


@pytest.mark.parametrize(("kind", "away"), [("batch", away) for away in AWAY] + [
    (kind, away) for kind in JOBS if kind != "batch" for away in ("no variable of AWS", "no keys", "nobody listens")])
def test_what_cannot_be_learnt_is_not_known_and_the_rest_is_shown(make, silent, kind, away):
    job = make(JOBS[kind])
    changes, words = AWAY[away]
    if kind == "batch" and away == "no variable of AWS":
        job.write(aws=None)
    if "image" in job.spec:  # a tag could not be resolved either, and the key would not be known
        job.write(image=job.spec["image"].split("@")[0].rsplit(":", 1)[0] + "@sha256:" + "0" * 64)
    known = cli.stoker("--json", "plan", job.spec_path, env=job.env(**here(job)), cwd=job.source).lines[0]
    assert known["cache"]["verdict"] == "cold" and "not_known" not in known, known
    env = environment(job, {**here(job), **changes}, silent)
    since = job.aws.mark()
    said, = plan(job, env, "--json").lines
    # A region that the spec names is known.
    assert said["cache"]["verdict"] == "unknown", said["cache"]
    assert said["cache"]["reason"].startswith("not known: ") and said["cache"]["hint"], said["cache"]
    if not (kind == "batch" and "region" in words):
        assert words in said["cache"]["reason"], said["cache"]
    assert {"what": "cache", "reason": said["cache"]["reason"], "hint": said["cache"]["hint"]} in said["not_known"]
    assert said["cache"]["graph_key"] == known["cache"]["graph_key"]
    for name in ("spec", "phases", "difference", "source", "health", "plan_digest"):
        assert said.get(name) == known.get(name), name
    assert said["requests"] == without_region(known["requests"], env), said["requests"]
    text = plan(job, env).out
    assert "\ncache:   not known: " in text and "if the cache is warm, train alone" in text, text
    for phase in ("precompile", "train"):
        assert f"\n{phase}:\n" in text, text
    # Agents of other tests may still be bringing their last files to folders of their own.
    asked = [row for row in job.aws.ledger(since) if row["service"] != "s3" or job.prefix in row["name"]]
    assert [row for row in asked if row["operation"] not in READS] == []
    assert not (job.root / "state").exists() or not list((job.root / "state").rglob("journal*"))


@pytest.fixture
def silents():
    """Five that never say anything: {name: [port, how many connections]}."""
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(socket.create_server(("127.0.0.1", 0)))
                   for name in ("S3", "ECR", "STS", "SECRETS_MANAGER", "METADATA")}

        def connections():
            found = {}
            for name, server in servers.items():
                server.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        stack.enter_context(server.accept()[0])
                        found[name] = found.get(name, 0) + 1
            return found
        yield {name: f"http://127.0.0.1:{server.getsockname()[1]}" for name, server in servers.items()}, connections


def test_services_that_do_not_answer_share_one_limit(make, silents):
    """The first is waited for; whoever would be asked after it is not."""
    job = make(BatchJob)
    job.write(promote={"url": "s3://elsewhere/models"}, gate=[{"metric": "loss", "max_drop": "1%"}],
              evaluate={"command": ["python3", "train.py"], "data": "s3://elsewhere/hold-out"},
              cache={"preload": ["s3://another/cache"]})
    urls, connections = silents
    env = job.env(AWS_ENDPOINT_URL=None, AWS_EC2_METADATA_DISABLED=None,
                  AWS_EC2_METADATA_SERVICE_ENDPOINT=urls["METADATA"],
                  **{f"AWS_ENDPOINT_URL_{name}": url for name, url in urls.items() if name != "METADATA"})
    said, = plan(job, env, "--json").lines
    assert connections() == {"S3": 1}
    reasons = {row["what"]: row["reason"] for row in said["not_known"]}
    assert reasons.keys() == {"cache", "earlier runs", "promoted model"}
    assert "nothing came or went for 2.5 s" in reasons["earlier runs"]
    assert "those asked before it did not answer" in reasons["cache"]
    # With credentials of the machine these are what is waited for.
    env = {name: value for name, value in env.items() if name not in KEYLESS}
    env |= {"AWS_METADATA_SERVICE_NUM_ATTEMPTS": "20", "AWS_METADATA_SERVICE_TIMEOUT": "60"}
    said, = plan(job, env, "--json").lines
    assert connections() == {"METADATA": 1}
    assert "nothing came or went for 2.5 s" in said["cache"]["reason"]


def test_a_process_for_credentials_is_waited_for_no_longer(make, tmp_path):
    job = make(BatchJob)
    (tmp_path / "config").write_text("[default]\ncredential_process = sleep 600\n")
    env = job.env(**KEYLESS, **here(job), AWS_CONFIG_FILE=str(tmp_path / "config"))
    said, = plan(job, env, "--json").lines
    assert "no output within 2.5 s" in said["cache"]["reason"], said["cache"]


READS = ("GetObject", "HeadObject", "ListObjectsV2", "HeadBucket", "GetCallerIdentity")


def without_region(requests, env):
    """What a plan shows where no region is set."""
    if "AWS_REGION" in env:
        return requests
    text = json.dumps(requests)
    return json.loads(text.replace('"eu-west-1"', '"<region>"').replace('"\\"eu-west-1\\""', '"\\"<region>\\""'))


def test_keys_that_have_expired_are_the_reason(make):
    job = make(BatchJob)
    job.aws.add_key("AKIDPASSING", "secret", token="token", expires=1.0)
    keys = {"AWS_ACCESS_KEY_ID": "AKIDPASSING", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
    said, = plan(job, job.env(**here(job), **keys), "--json").lines
    assert said["cache"]["verdict"] == "unknown" and "was refused" in said["cache"]["reason"], said["cache"]
    assert "credentials" in said["cache"]["hint"], said["cache"]


@pytest.mark.parametrize("away", ["no keys", "nobody listens", "nobody answers"])
def test_a_journal_that_is_elsewhere_is_no_reason_to_stop(make, silent, away):
    job = make(SagemakerJob)
    job.write(resources={**job.spec["resources"], "price": 36})
    env = environment(job, AWAY[away][0], silent)
    said, = plan(job, env, "--json").lines
    assert {row["what"] for row in said["not_known"]} == {"cache", "earlier runs"}, said["not_known"]
    assert said["cost"]["per_hour"] == 36 and "estimated" not in said["cost"]
    assert "\nruns:    not known: " in plan(job, env).out


def test_what_is_in_this_machines_folders_is_known_as_ever(make):
    """No network is needed, and none asked for, where nothing lies elsewhere."""
    job = make(BucketJob)
    job.write(workspace=None, checkpoint=None, compile={**job.spec["compile"], "cache_url": str(job.cache)})
    env = environment(job, {**NOTHING, **here(job)}, "")
    said, = plan(job, env, "--json").lines
    assert said["cache"]["verdict"] == "cold" and "not_known" not in said, said
    job.cache.write_text("no folder\n")
    refused = cli.stoker("plan", job.spec_path, env=env, cwd=job.source)
    assert refused.code == 4, str(refused)


def test_a_run_does_not_begin_on_what_is_not_known(make):
    job = make(BatchJob)
    env = job.env(**here(job), **{name: value or None for name, value in KEYLESS.items()})
    refused = cli.stoker("run", job.spec_path, env=env, cwd=job.source)
    assert refused.code == 4 and "credentials" in refused.err, str(refused)
    assert job.aws.effects("SubmitJob") == 0
