"""Checkpoints of several nodes on machines of their own: each brings its shard to the bucket,
what all have brought is marked, and each goes on with all of it."""

import json

import pytest
from batch_job import BatchJob
from bucket_job import BUCKET
from sagemaker_job import SagemakerJob
from test_checkpoints_s3 import train_ends

HELD = 12  # the training waits before this step: 5 and 10 are saved

# Each rank saves one file of its own, and one that all have.
SHARDS = '''
def step(number, args):
    global learned
    hold(number)
    time.sleep(0.04)
    learned += number
    if number % EVERY == 0:
        save_shard(number)


def save_shard(number):
    if rank() == 0:
        save(number)
    folder = Path(os.environ["STOKER_CHECKPOINT_DIR"]) / f"checkpoint-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"rank-{rank()}.bin").write_text(f"{number} of {rank()}")
    (folder / "config.json").write_text(CONFIG)


CONFIG = "{}"
begin = start


def start(args):
    first = begin(args)
    if first > 1:
        found = sorted(path.name for path in Path(os.environ["STOKER_RESUME_FROM"]).glob("rank-*.bin"))
        note("shards", found=found, words=[(Path(os.environ["STOKER_RESUME_FROM"]) / name).read_text() for name in found])
    return first
'''


@pytest.fixture
def make(aws, tmp_path):
    made = []

    def make(nodes):
        made.append(BatchJob(tmp_path / "project", aws, resources={"instance": "trn1.32xlarge", "nodes": nodes}))
        return made[-1]

    yield make
    for job in made:
        job.stop()


def objects_of(job, run, step, attempt=1):
    root = f"{job.prefix}/ckpt/{run}/attempt-{attempt}/checkpoint-{step}/"
    return {key.removeprefix(root) for key in job.aws.objects(BUCKET) if key.startswith(root)}


def lose_host(job):
    running, = [row for row in job.jobs() if row["status"] == "RUNNING"]
    job.batch.terminate_job(jobId=running["jobId"], reason="Host EC2 (instance i-0123456789abcdef0) terminated.")


def test_each_node_brings_its_shard_and_goes_on_with_all_of_them(make):
    nodes = 4
    job = make(nodes)
    job.also(SHARDS)
    job.hold("train", HELD)
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_marks("one", [5, 10], seconds=180)
    shards = {f"rank-{rank}.bin" for rank in range(nodes)}
    assert objects_of(job, "one", 10) == shards | {
        "config.json", "model.safetensors", "optimizer.pt", "trainer_state.json"}
    lose_host(job)
    job.gate.touch()
    out, err = driver.communicate(timeout=300)
    assert driver.returncode == 0, f"{out}{err}{train_ends(job, 'one')}"
    seen = [row for row in job.effects("shards") if row["attempt"] == 2]
    assert sorted(row["rank"] for row in seen) == list(range(nodes))
    assert all(set(row["found"]) == shards for row in seen), seen
    assert all(row["words"] == [f"10 of {rank}" for rank in range(nodes)] for row in seen), seen
    assert job.marks("one", attempt=2) == [15, 20, 25]
    mark = json.loads(job.aws.objects(BUCKET)[f"{job.prefix}/ckpt/one/attempt-2/marks/checkpoint-25.stoker.json"])
    assert mark["attempt"] == 2 and {file["path"] for file in mark["files"]} == objects_of(job, "one", 25, 2)


def test_what_node_0_alone_saves_is_marked_although_others_have_nothing(make):
    job = make(2)
    job.run("--id", "one")
    assert job.marks("one") == [5, 10, 15, 20, 25]
    looks = [row for row in job.aws.ledger(operation="GetObject") if row["name"].endswith("/shards/node-0.json")]
    assert len(looks) < 20


def test_nodes_that_do_not_agree_on_a_file_are_named(make):
    job = make(2)
    job.also(SHARDS.replace('CONFIG = "{}"', 'CONFIG = str(rank())'))
    job.write(retry={"attempts": 1})
    result = job.stoker("run", job.spec_path, "--id", "one")
    assert result.code != 0 and "'config.json'" in str(result), str(result)
    ended = train_ends(job, "one")[-1]
    assert ended["class"] == "user-config" and "node" in ended["evidence"], ended
    assert job.marks("one") == []


# Told to stop while it waits, each saves what it has; the last one takes its time. The second
# attempt waits five steps later.
LEAVES = '''
import signal

waits_at = 12 + 5 * (attempt[1] - 1)
os.environ["HOLD"] = f"train:{waits_at}:{os.environ['GATE']}"


def leave(*_):
    time.sleep(1.5 * rank())
    save_shard(waits_at - 1)
    os._exit(143)


signal.signal(signal.SIGTERM, leave)
'''


def test_on_sagemaker_the_last_shards_are_saved_within_its_grace_and_gone_on_from(aws, tmp_path):
    job = SagemakerJob(tmp_path / "project", aws, nodes=2, compile=None, sagemaker={"spot": True, "max_runtime": "1h"})
    aws.settings(stop_seconds=120)  # between SIGTERM and SIGKILL, as the service has it
    job.also(SHARDS + LEAVES)
    job.write(env={**job.spec["env"], "GATE": str(job.gate)})
    # One job fails, the next one is reclaimed, and begun anew.
    for kind in ("job_fails", "job_interrupted"):
        aws.fault(kind, operation="CreateTrainingJob", when=str(tmp_path / kind))
    driver = job.start("run", job.spec_path, "--id", "one")
    for count, kind in enumerate(("job_fails", "job_interrupted"), 1):
        job.wait_for(lambda count=count: len(job.effects("holds")) == 2 * count)
        (tmp_path / kind).touch()
    job.wait_for(lambda: len(job.effects("holds")) == 6)
    job.gate.touch()
    out, err = driver.communicate(timeout=300)
    assert driver.returncode == 0, f"{out}{err}{train_ends(job, 'one')}"
    assert job.submitted() == [("train", 1), ("train", 2)]
    assert job.marks("one") == [5, 10, 11] and job.marks("one", attempt=2) == [15, 16, 20, 25]
    words = [row["words"] for row in job.effects("shards")]
    assert words == [["11 of 0", "11 of 1"]] * 2 + [["16 of 0", "16 of 1"]] * 2
    report = json.loads(aws.objects(BUCKET)[f"{job.prefix}/stoker/runs/one/train-2/node-0/report.json"])
    assert (report["restart"], report["resumed"]["step"]) == (1, 16)
    assert "/attempt-2/" in report["resumed"]["url"]
    went_on, = job.rows(kind="train.continuity")
    assert went_on["continuity"] == "verified" and 12 <= went_on["first_step"] <= 16
    assert {row["learned"] for row in job.effects("end")} == {25 * 26 // 2}
