"""Checkpoints of several nodes on machines of their own: each brings its shard to the bucket,
what all have brought is marked, and each goes on with all of it."""

import json

import pytest
from batch_job import BatchJob
from bucket_job import BUCKET
from test_checkpoints_s3 import marks, train_ends, wait_for_marks

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
    wait_for_marks(job, "one", [5, 10], seconds=90)
    shards = {f"rank-{rank}.bin" for rank in range(nodes)}
    assert objects_of(job, "one", 10) == shards | {
        "config.json", "model.safetensors", "optimizer.pt", "trainer_state.json"}
    lose_host(job)
    job.gate.touch()
    out, err = driver.communicate(timeout=150)
    assert driver.returncode == 0, f"{out}{err}{train_ends(job, 'one')}"
    seen = [row for row in job.effects("shards") if row["attempt"] == 2]
    assert sorted(row["rank"] for row in seen) == list(range(nodes))
    assert all(set(row["found"]) == shards for row in seen), seen
    assert all(row["words"] == [f"10 of {rank}" for rank in range(nodes)] for row in seen), seen
    assert marks(job, "one", attempt=2) == [15, 20, 25]
    mark = json.loads(job.aws.objects(BUCKET)[f"{job.prefix}/ckpt/one/attempt-2/marks/checkpoint-25.stoker.json"])
    assert mark["attempt"] == 2 and {file["path"] for file in mark["files"]} == objects_of(job, "one", 25, 2)


def test_what_node_0_alone_saves_is_marked_although_others_have_nothing(make):
    job = make(2)
    job.run("--id", "one")
    assert marks(job, "one") == [5, 10, 15, 20, 25]
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
    assert marks(job, "one") == []
