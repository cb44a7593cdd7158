"""What a command leaves in STOKER_OUTPUT_DIR is in the workspace when its attempt is over, whatever the engine
and however it ends: a folder for each attempt and node, and `status` says where."""

import os
import signal

import pytest
import stoker as cli
from batch_job import BatchJob
from bucket_job import BUCKET, BucketJob

ROLE = "arn:aws:iam::123456789012:role/sagemaker"
IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/training:1"
BIG = 6 << 20  # more than goes up in one piece
# An attempt fails after the first; names as nobody wants them, and what is no file.
LEAVES = f"""
import pathlib, socket, time
out = pathlib.Path(os.environ['STOKER_OUTPUT_DIR'])
def leave(name, content):
    path = os.path.join(os.fsencode(out), name if isinstance(name, bytes) else name.encode())
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file: file.write(content)
mine = f"{{os.environ['STOKER_PHASE']}} {{attempt[1]}} {{os.environ['STOKER_NODE_RANK']}}".encode()
leave('mine.txt', mine)
leave('sub/deeper/big.bin', b'x' * {BIG})
leave('-rf', b'dash')
leave('new\\nline %', b'newline')
leave(b'not-\\xff-utf8', b'bytes')
leave('100 % "quoted" Ü & <x>', b'letters')
(out / 'empty/folder').mkdir(parents=True)
(out / 'latest').symlink_to('mine.txt')
(out / 'same-folder').symlink_to('sub')
(out / 'away').symlink_to('/etc/passwd')
(out / 'far').symlink_to('../../..')
(out / 'nowhere').symlink_to('nonesuch')
os.mkfifo(out / 'fifo')
if attempt == ('train', 1):
    there = pathlib.Path(os.environ['EFFECTS'] + '.left')  # a node that dies ends its peers: not before they left theirs
    with there.open('a') as file: file.write('x')
    while os.environ['STOKER_NODE_RANK'] == '0' and len(there.read_text()) < int(os.environ['STOKER_NODES']):
        time.sleep(0.05)
    if os.environ['STOKER_NODE_RANK'] == '0': os.kill(os.getpid(), 9)
"""
LEFT = {"mine.txt", "sub/deeper/big.bin", "-rf", "new%0Aline %25", "not-%FF-utf8", '100 % "quoted" Ü & <x>'}
SIMPLE = """
import pathlib
(pathlib.Path(os.environ['STOKER_OUTPUT_DIR']) / 'result').write_text(f'{attempt[1]}')
"""
NO_COMPILE = {"compile": None, "hyperparameters": {"max_steps": 6}}


def make_job(kind, root, aws, **changes):
    nodes = 2 if kind.endswith("-2") else 1
    changes = {**NO_COMPILE, **changes}
    if kind.startswith("batch"):
        return BatchJob(root, aws, resources={"instance": "trn1.32xlarge" if nodes > 1 else "trn1.2xlarge",
                                              "nodes": nodes}, **changes)
    if kind.startswith("sagemaker"):
        return BucketJob(root, aws, engine="sagemaker", image=IMAGE, **{
            "resources": {"instance": "ml.c5.xlarge", "nodes": nodes},
            "sagemaker": {"role": ROLE, "work_dir": "/opt/ml/stoker"}, **changes})
    return BucketJob(root, aws, resources={"nodes": nodes}, **changes)


@pytest.fixture
def make(aws, tmp_path):
    made = []

    def make(kind, **changes):
        made.append(make_job(kind, tmp_path / "project", aws, **changes))
        return made[-1]

    yield make
    for job in made:
        job.stop()


def outputs_of(job, run="one"):
    prefix = f"{job.prefix}/stoker/runs/{run}/outputs/"
    return {key.removeprefix(prefix): body for key, body in job.aws.objects(BUCKET).items() if key.startswith(prefix)}


@pytest.mark.parametrize("kind", ["local", "local-2", "batch", "batch-2", "sagemaker"])
def test_of_each_attempt_and_node(make, kind):
    job = make(kind)
    job.also(LEAVES)
    if kind == "local":  # phase 1 leaves nothing
        job.write(compile={"kind": "jax", "cache_url": job.url["cache"], "max_steps": 2, "quiet_period": "0s"})
    result = job.run("--id", "one")
    nodes = range(2 if kind.endswith("-2") else 1)
    found = outputs_of(job)
    whole = {f"train-{attempt}/node-{node}/{name}" for attempt in (1, 2) for node in nodes for name in LEFT}
    assert set(found) == whole
    for attempt in (1, 2):
        for node in nodes:
            assert found[f"train-{attempt}/node-{node}/mine.txt"] == f"train {attempt} {node}".encode()
            assert len(found[f"train-{attempt}/node-{node}/sub/deeper/big.bin"]) == BIG
    url = f"{job.url['stoker']}/runs/one/outputs/train-2"
    told = job.status("one")["outputs"]
    assert (told["url"], told["phase"], told["attempt"]) == (url, "train", 2)
    assert told["files"] == len(LEFT) * len(nodes) and told["size_bytes"] > BIG * len(nodes)
    assert told["left"] == 4 * len(nodes)
    assert url in job.ok("status", "one").out and url in result.text
    ends = job.events("one", "attempt.ended")
    assert [row["class"] for row in ends if row["phase"] == "train"][-1] == "none"
    rows = [row["reason"] for row in job.events("one", "outputs.left")]
    assert len(rows) == 2 and all("'away' is a link out of the folder" in row and "'fifo' is not a file" in row for row in rows), rows
    assert f"outputs of train 2 are missing in the workspace: {rows[1]}" in result.text
    if kind.startswith("local"):  # whose folder is on this machine
        return
    said, = job.ok("--json", "rm", "one").lines
    urls = [f"{job.url['stoker']}/runs/one/outputs/train-{attempt}" for attempt in (1, 2)]
    assert [(row["what"], row["url"], row["files"]) for row in said["kept"]] == [
        ("output", url, len(LEFT) * len(nodes)) for url in urls] and outputs_of(job) == found
    job.ok("rm", "one", "--with-checkpoints")
    assert outputs_of(job) == {}


@pytest.mark.parametrize("how", ["drain", "signal"])
@pytest.mark.parametrize("kind", ["local", "batch-2", "sagemaker"])
def test_of_one_that_is_stopped(make, kind, how):
    job = make(kind, retry={"attempts": 1})
    job.also(SIMPLE)
    job.hold("train", 4)
    job.write(checkpoint={**job.spec["checkpoint"], "grace": "2s"})  # it is held: it will not save
    nodes = 2 if kind == "batch-2" else 1
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for(lambda: len(job.effects("holds")) == nodes)
    if how == "drain":
        job.ok("stop", "one")
    elif kind == "local":
        for pid in job.agents():
            os.kill(pid, signal.SIGTERM)
    elif kind == "sagemaker":
        job.aws.client("sagemaker").stop_training_job(TrainingJobName="stk-one-train-1")
    else:
        job.batch.terminate_job(jobId=job.jobs()[0]["jobId"], reason="enough")
    assert cli.finish(driver).code != 0
    assert outputs_of(job) == {f"train-1/node-{node}/result": b"1" for node in range(nodes)}
    assert job.status("one")["outputs"]["files"] == nodes


def test_a_start_of_the_service_does_not_write_over_the_one_before(make, aws):
    job = make("sagemaker", sagemaker={"role": ROLE, "work_dir": "/opt/ml/stoker", "spot": True, "max_runtime": "1h"})
    job.also(SIMPLE)
    job.hold("train", 4)
    taken = job.root / "taken"
    aws.fault("job_interrupted", operation="CreateTrainingJob", when=str(taken))
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_effect("holds")
    taken.touch()
    job.wait_for(lambda: len(job.effects("start")) == 2)
    job.gate.touch()
    assert cli.finish(driver).code == 0
    assert set(outputs_of(job)) == {"train-1/node-0/result", "train-1/node-0.restart-1/result"}


def test_what_is_refused_is_no_success(make, aws):
    job = make("local")
    job.also(SIMPLE)
    aws.fault("denied", operation="PutObject", key="/outputs/train-", count=0)
    job.run("--id", "one", code=4)
    row, = job.events("one", "attempt.ended")
    assert row["class"] == "quota-permission" and "cannot upload the outputs" in row["evidence"], row
    assert "PutObject" in row["evidence"] and "AccessDenied" in job.events("one", "outputs.left")[0]["reason"]
    status = job.status("one")
    assert status["outputs"]["files"] == 0 and status["checkpoint"]["step"] == 6
    assert "AccessDenied" in job.ok("status", "one").out


def test_a_failure_keeps_its_own_cause(make, aws):
    job = make("local", retry={"attempts": 1})
    job.also(SIMPLE + "raise TypeError('mine')\n")
    aws.fault("denied", operation="PutObject", key="/outputs/train-", count=0)
    job.run("--id", "one", code=1)
    row, = job.events("one", "attempt.ended")
    assert row["class"] == "user-code" and "TypeError: mine" in row["evidence"]
    assert "AccessDenied" in job.events("one", "outputs.left")[0]["reason"]


def test_a_service_that_is_away_for_a_moment_is_waited_for(make, aws):
    job = make("local")
    job.also(SIMPLE)
    aws.fault("unavailable", operation="PutObject", key="/outputs/train-", count=6)
    job.run("--id", "one")
    assert outputs_of(job) == {"train-1/node-0/result": b"1"} and aws.struck() == 6
    assert job.events("one", "outputs.left") == []


def test_what_the_time_after_a_signal_is_too_short_for_is_told(make, aws):
    job = make("local", retry={"attempts": 1}, limits={"grace": "3s"})
    job.also(SIMPLE)
    job.hold("train", 6)
    aws.fault("hang", operation="PutObject", key="/outputs/train-", count=0, seconds=60)
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_marks("one", [5])
    job.wait_for_effect("holds")
    agent, = job.agents()
    os.kill(agent, signal.SIGTERM)
    result = cli.finish(driver)
    assert result.code == 1 and job.agents() == []
    row, = job.events("one", "outputs.left")
    assert "node 0: cannot upload the outputs: the time between the signal and the end was too short" in row["reason"]
    assert job.events("one", "attempt.ended")[0]["stopped"] == "signal"
    assert job.status("one")["outputs"]["files"] == 0


def test_a_process_that_dies_in_bringing_them_is_followed_by_another(make, aws):
    """And it is spared when what the command left behind is killed."""
    job = make("local")
    job.also(SIMPLE)
    job.hold("train", 6)
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_effect("holds")
    others = set(job.agents(helpers=True))
    aws.fault("hang", operation="PutObject", key="/outputs/train-", seconds=600)
    job.gate.touch()
    job.wait_for(lambda: aws.struck() == 1)
    new, = set(job.agents(helpers=True)) - others
    os.kill(new, signal.SIGKILL)
    assert cli.finish(driver).code == 0
    assert outputs_of(job) == {"train-1/node-0/result": b"1"}


def test_a_killed_agent_hides_no_checkpoint(make):
    """Of its outputs nothing is promised; the next attempt has its own."""
    job = make("local")
    job.also(SIMPLE)
    job.hold("train", 6)
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_marks("one", [5])
    job.wait_for_effect("holds")
    agent, = job.agents()
    os.kill(agent, signal.SIGKILL)
    job.gate.touch()
    assert cli.finish(driver).code == 0
    assert set(outputs_of(job)) == {"train-2/node-0/result"} and job.status("one")["outputs"]["attempt"] == 2
