"""The graph key holds what compiles: on AWS the digest of the image, to which its tag is resolved,
and nothing of the machine that types."""

import hashlib
import json

import pytest
from batch_job import IMAGE, BatchJob
from bucket_job import BUCKET
from neuron_standin.install import Installation
from registry import Registry
from sagemaker_job import SagemakerJob

OTHER = "sha256:" + "0b" * 32
PINNED = IMAGE.rpartition(":")[0]
DEEP_LEARNING = "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training-neuronx:2.1"


@pytest.fixture(params=[BatchJob, SagemakerJob], ids=["batch", "sagemaker"])
def job(request, aws, tmp_path):
    made = request.param(tmp_path / "project", aws)
    yield made
    made.stop()


@pytest.fixture
def batch(aws, tmp_path):
    made = BatchJob(tmp_path / "project", aws)
    yield made
    made.stop()


def plan(job, *more, **options):
    found, = job.ok("--json", "plan", job.spec_path, *more, **options).lines
    return found


def key(job, *more, **options):
    cache = plan(job, *more, **options)["cache"]
    assert cache["verdict"] == "cold", cache
    return cache["graph_key"]


def digest_of(image):
    return "sha256:" + hashlib.sha256(image.encode()).hexdigest()


def sent_images(job):
    """Of every job that was started, in order."""
    if isinstance(job, BatchJob):
        return [each["container"]["image"] for each in job.jobs()]
    rows = job.aws.ledger(operation="CreateTrainingJob")
    return [job.described(row["name"])["AlgorithmSpecification"]["TrainingImage"] for row in rows if row["effect"]]


# --- what is in the key ---

@pytest.mark.parametrize("kind", ["jax", "neuron"])
def test_three_machines_with_three_sdks_or_none_have_one_key(job, tmp_path, kind):
    job.write(compile={**job.spec["compile"], "kind": kind}, command=["python3", "train.py"])
    keys = {key(job, env={"PATH": "/nonexistent"})}
    for number, version in enumerate(("2.19.1", "2.20.2", "2.25.3")):
        machine = Installation(tmp_path / f"machine{number}")
        machine.upgrade("neuronx-cc", version)
        machine.upgrade("jaxlib", f"0.{number}.0")
        home = tmp_path / f"home{number}"
        keys.add(key(job, env={"PATH": machine.path, "HOME": str(home)}))
    assert len(keys) == 1, keys


def test_the_toolkits_key_is_the_images_too(aws, tmp_path):
    job = SagemakerJob(tmp_path / "project", aws, sagemaker={"launcher": "toolkit"}, command=["python3", "train.py"],
                       checkpoint=None)
    job.write(compile={"kind": "neuron", "cache_url": job.url["cache"], "max_steps": 2})
    machine = Installation(tmp_path / "machine")
    assert key(job, env={"PATH": machine.path}) == key(job, env={"PATH": "/nonexistent"})
    aws.push(IMAGE, OTHER)
    moved = plan(job)
    images = [row["sends"][0]["body"]["AlgorithmSpecification"]["TrainingImage"] for row in moved["requests"]]
    assert images == [f"{PINNED}@{OTHER}"] * 2


def test_the_key_is_of_the_digest_whatever_names_it(batch):
    by_tag = key(batch)
    copy = "123456789012.dkr.ecr.us-west-2.amazonaws.com/copies/trainer:latest"
    batch.aws.push(copy, digest_of(IMAGE))
    since = batch.aws.mark()
    by_digest = key(batch, "--set", f"image={PINNED}@{digest_of(IMAGE)}")
    assert batch.aws.requests("BatchGetImage", since) == 0  # taken as it is
    # A tag that is left out is "latest"; the host says in which region.
    assert by_tag == by_digest == key(batch, "--set", f"image={copy.removesuffix(':latest')}")
    assert [row["region"] for row in batch.aws.ledger(since, "BatchGetImage")] == ["us-west-2"]
    batch.aws.push(IMAGE, OTHER)
    assert key(batch) != by_tag


@pytest.mark.parametrize("image", [DEEP_LEARNING, DEEP_LEARNING.replace("us-west-2", "cn-north-1").replace(
    ".com/", ".com.cn/"), DEEP_LEARNING.replace(".dkr.ecr.", ".dkr.ecr-fips."), DEEP_LEARNING.replace(
        ".dkr.ecr.us-west-2.amazonaws.com", ".dkr-ecr.us-west-2.on.aws")])
def test_another_accounts_image_is_asked_for_in_its_account_and_region(batch, image):
    region = "cn-north-1" if ".cn/" in image else "us-west-2"
    domain = "amazonaws.com.cn" if ".cn/" in image else "amazonaws.com"
    batch.aws.push(f"763104351884.dkr.ecr.{region}.{domain}/pytorch-training-neuronx:2.1", OTHER)
    batch.write(image=image)
    assert plan(batch)["requests"][0]["sends"][0]["body"]["containerProperties"]["image"] == \
        f"{image.rpartition(':')[0]}@{OTHER}"


def test_who_may_only_describe_images_is_answered_too(batch):
    before = key(batch)
    batch.aws.fault("denied", operation="BatchGetImage", count=0)
    assert key(batch) == before
    assert batch.aws.requests("DescribeImages") == 1


# --- a tag that leads nowhere ---

REFUSED = {
    "denied": (IMAGE, {"service": "ecr", "kind": "denied", "count": 0}, "AccessDenied", "ecr:BatchGetImage"),
    "no repository": (IMAGE.replace("trainer", "tariner"), None, "has no image 'tariner' with the tag '1'", "push it"),
    "no tag": (IMAGE + "1", None, "has no image 'trainer' with the tag '11'", "push it"),
    "no registry": ("localhost:9/team/trainer:1", None, "cannot ask the registry 'localhost:9'", "network"),
    "no digest": (f"{PINNED}@sha256:abc", None, "invalid digest 'sha256:abc'", "64 digits"),
    "no image": ("UPPER/case:1", None, "names no image", "HOST/REPOSITORY:TAG"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_tag_that_cannot_be_resolved_is_unknown_in_the_plan_and_refused_by_a_run(batch, case):
    image, fault, why, cure = REFUSED[case]
    batch.write(image=image)
    if fault:
        batch.aws.fault(**fault)
    found = plan(batch)
    cache = found["cache"]
    assert cache["verdict"] == "unknown" and why in cache["reason"] and cure in cache["hint"], cache
    assert "@sha256:…" in cache["hint"] and "graph_key" not in cache
    shown = batch.ok("plan", batch.spec_path).out
    assert why in shown and "not known" in shown, shown
    assert why in batch.ok("cache", "why", batch.spec_path).out
    refused = batch.stoker("run", batch.spec_path, "--id", "one")
    assert refused.code == 4 and why in refused.err and "@sha256:…" in refused.err, refused
    assert batch.jobs() == [] and batch.ok("list").lines == []
    assert batch.aws.effects("RegisterJobDefinition") == 0


def test_without_network_and_credentials_the_plan_is_made_all_the_same(batch):
    nobody = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "STOKER_STATE": str(batch.root / "state")}
    cache = plan(batch, env=nobody)["cache"]
    assert cache["verdict"] == "unknown" and "credentials" in cache["reason"], cache
    away = {"AWS_ENDPOINT_URL_ECR": "http://127.0.0.1:9", "STOKER_STATE": str(batch.root / "state")}
    cache = plan(batch, env=away)["cache"]
    assert cache["verdict"] == "unknown" and IMAGE in cache["reason"], cache
    assert batch.stoker("run", batch.spec_path, env=away).code == 4


def test_the_plan_of_a_sweep_asks_for_no_digest_where_nothing_is_compiled(batch):
    """A registry that does not answer would cost each cell its time."""
    batch.write(compile=None, sweep={"grid": {"env.X": ["1", "2", "3"]}})
    since = batch.aws.mark()
    assert len(plan(batch)["cells"]) == 3
    assert batch.aws.requests("BatchGetImage", since) == 0


# --- what runs ---

def test_both_phases_run_what_was_resolved_and_a_moved_tag_is_said(job):
    job.run("--id", "one")
    first = f"{PINNED}@{digest_of(IMAGE)}"
    assert sent_images(job) == [first, first]
    job.run("--id", "two")  # warm
    assert sent_images(job) == [first] * 3
    job.aws.push(IMAGE, OTHER)
    cache = plan(job)["cache"]
    assert cache["verdict"] == "cold" and cache["changed"] == [
        {"field": "image", "old": digest_of(IMAGE), "new": OTHER}], cache
    said = f"the tag of '{IMAGE}' has moved: {digest_of(IMAGE)} → {OTHER}"
    assert cache["reason"] == said and said in job.ok("cache", "why", job.spec_path).out
    # The manifest beside the cache has the compiler that the job found, and the key has not.
    lock, = [json.loads(body) for name, body in job.aws.objects(BUCKET).items()
             if "/cache/stoker/" in name and b'"graphs"' in body]
    assert lock["compiler"]["python"] and "compiler" not in lock["ingredients"]
    assert (lock["image"], lock["ingredients"]["image"]) == (IMAGE, digest_of(IMAGE))


def test_a_run_stays_with_its_image_and_says_that_the_tag_has_moved(batch):
    batch.hold("train", 5)
    driver = batch.start("--json", "run", batch.spec_path, "--id", "one")
    batch.wait_for_effect("holds")
    driver.kill()
    driver.communicate()
    batch.aws.push(IMAGE, OTHER)
    batch.gate.touch()
    # The same command again goes on with it, as resume does: its key is that of its own image.
    done = batch.stoker("--json", "run", batch.spec_path, "--id", "one", "--lease", "3s")
    assert done.code == 0, done
    moved, = batch.events("one", "image.moved")
    assert moved["changed"] == [{"field": "image", "old": digest_of(IMAGE), "new": OTHER}]
    assert "stays with the first" in moved["reason"]
    assert set(sent_images(batch)) == {f"{PINNED}@{digest_of(IMAGE)}"}


def test_a_run_goes_on_where_its_tag_cannot_be_asked_for_any_more(batch):
    batch.hold("train", 5)
    batch.start("--json", "run", batch.spec_path, "--id", "one")
    batch.wait_for_effect("holds")
    batch.started[0].kill()
    batch.started[0].communicate()
    batch.aws.fault("denied", service="ecr", count=0)
    batch.gate.touch()
    assert batch.stoker("--json", "resume", "one", "--lease", "3s").code == 0
    assert batch.events("one", "image.moved") == []


def test_a_compiler_that_an_image_brings_along_as_it_starts_is_compared_and_is_in_no_key(batch, tmp_path):
    """One digest, and yet another compiler: the training would compile all graphs again."""
    neuron = Installation(tmp_path / "neuron", STANDIN_INSTANCE="trn1.2xlarge").with_boto3()
    batch.aws.settings(image_env={"*": {**batch.image_env, "PATH": neuron.path}})
    neuron.train_script(batch.source / "train.py")
    batch.write(command=["torchrun", "train.py"], hyperparameters={"max_steps": 4, "save_steps": 2}, env=None,
                compile={"kind": "neuron", "cache_url": batch.url["cache"], "max_steps": 2, "quiet_period": "0s"})
    batch.run("--id", "one")
    before = plan(batch)["cache"]
    assert before["verdict"] == "warm"
    neuron.upgrade("neuronx-cc", "2.99.1.0+abc")
    assert plan(batch)["cache"] == before
    batch.run("--id", "two")
    assert batch.attempts("two") == [("train", 1), ("precompile", 1), ("train", 2)]
    refused, = [row for row in batch.events("two", "attempt.ended") if row["class"] == "compile"]
    assert refused["changed"][0]["field"] == "neuronx-cc" and refused["changed"][0]["new"] == "2.99.1.0+abc"
    assert batch.status("two")["jit"]["graphs"] == 0
    lock, = [json.loads(body) for name, body in batch.aws.objects(BUCKET).items()
             if "/cache/stoker/" in name and b'"graphs"' in body]
    assert lock["graph_key"] == before["graph_key"] and lock["compiler"]["neuronx-cc"] == "2.99.1.0+abc"
    assert all("2.99.1.0+abc" in graph["path"] for graph in lock["graphs"])
    batch.run("--id", "three")
    assert batch.attempts("three") == [("train", 1)]


# --- other registries ---

@pytest.fixture
def registry(tmp_path):
    world = Registry(tmp_path)
    yield world
    world.stop()


@pytest.mark.parametrize("bare", [False, True], ids=["head", "bytes"])
def test_any_registry_is_asked_as_everybody_may(batch, registry, bare):
    registry.bare = bare
    batch.write(image=registry.image)
    found = plan(batch, env={"SSL_CERT_FILE": str(registry.certificate)})
    assert found["cache"]["verdict"] == "cold", found["cache"]
    image = found["requests"][0]["sends"][0]["body"]["containerProperties"]["image"]
    assert image == f"{registry.image.removesuffix(':v1')}@{registry.digest}"
    assert registry.seen[1] == "GET /token?service=reg%2C%20istry&scope=repository%3Aa%2Fb%3Apull"


def test_a_registry_that_cannot_prove_who_it_is_or_wants_a_login_is_not_believed(batch, registry):
    batch.write(image=registry.image)
    cache = plan(batch)["cache"]
    assert cache["verdict"] == "unknown" and "certificate" in cache["reason"] and registry.seen == [], cache
    registry.login = True
    cache = plan(batch, env={"SSL_CERT_FILE": str(registry.certificate)})["cache"]
    assert cache["verdict"] == "unknown" and "login" in cache["reason"] and "@sha256:…" in cache["hint"], cache
    registry.login = False
    batch.write(image=registry.image.replace(":v1", ":v2"))
    cache = plan(batch, env={"SSL_CERT_FILE": str(registry.certificate)})["cache"]
    assert "has no image 'a/b' with the tag 'v2'" in cache["reason"], cache
