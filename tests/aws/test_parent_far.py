"""A parent in a bucket: each node of phase 1 and of every attempt has it on its own disk, proved to be what the run was
given; what has changed or is damaged there ends the run with the file."""

import hashlib
import json
from pathlib import Path

import pytest
from batch_job import BatchJob
from bucket_job import BUCKET

TORCH = bytes.fromhex((Path(__file__).resolve().parents[1] / "cli/data/torch-save-cuda-16.hex").read_text())
# Each command keeps what it finds; the first training fails on both nodes, none before both have kept theirs: the first
# failure ends the other node's command.
BEGINS = f"""
import hashlib, pathlib, time
parent = pathlib.Path(os.environ['STOKER_INIT_FROM'])
sums = {{str(path.relative_to(parent)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in [parent, *parent.rglob('*')] if path.is_file() and not path.name.startswith('.')}}
with open(os.environ['EFFECTS'] + '.parents', 'a') as file:
    print(json.dumps([*attempt, int(os.environ['STOKER_NODE_RANK']), parent.name, sums]), file=file)
def kept():
    with open(os.environ['EFFECTS'] + '.parents') as file:
        return sum(json.loads(line)[:2] == ['train', 1] for line in file)
if attempt == ('train', 1):
    while kept() < 2: time.sleep(0.05)
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def job(aws, tmp_path):
    made = BatchJob(tmp_path / "project", aws, resources={"instance": "trn1.32xlarge", "nodes": 2})
    made.also("import json, os\n" + BEGINS)
    made.parents = lambda: [json.loads(line) for line in
                            Path(f"{made.effects_path}.parents").read_text().splitlines()]
    yield made
    made.stop()


def put(job, name: str, body: bytes) -> None:
    job.aws.client().put_object(Bucket=BUCKET, Key=f"{job.prefix}/models/{name}", Body=body)


def test_a_folder_in_a_bucket_is_on_every_node(job):
    whole = {"model-00001-of-00002.pt": TORCH, "model-00002-of-00002.pt": TORCH,
             "deep/vocabulary.txt": b"a b c"}
    for name, body in whole.items():
        put(job, f"base/{name}", body)
    job.write(parent={"from": f"s3://{BUCKET}/{job.prefix}/models/base/"})
    job.run("--id", "one")
    sums = {name: hashlib.sha256(body).hexdigest() for name, body in whole.items()}
    found = job.parents()
    assert {tuple(row[:3]) for row in found} == {
        (phase, attempt, node) for phase, attempt in [("precompile", 1), ("train", 1), ("train", 2)] for node in (0, 1)}
    for row in found:
        assert row[3:] == ["base", sums], row
    # Without the file that an index or a number promises it is none, and there is no run.
    job.aws.client().delete_object(Bucket=BUCKET, Key=f"{job.prefix}/models/base/model-00002-of-00002.pt")
    result = job.run("--id", "two", code=4)
    assert "model-00002-of-00002.pt" in result.err and job.stoker("status", "two").code == 9


def test_what_is_damaged_or_changes_in_the_bucket_ends_the_run(job):
    # As long as promised, but cut by its own format: only who has the bytes can tell.
    put(job, "cut.pt", TORCH[:-10])
    job.write(parent={"from": f"s3://{BUCKET}/{job.prefix}/models/cut.pt"})
    result = job.run("--id", "one", code=4)
    assert "cut.pt" in result.text and job.status("one")["state"] == "refused"
    assert job.attempts("one") == [("precompile", 1)]
    # Replaced by another model of the same size, between phase 1 and the training.
    body = TORCH
    put(job, "base.pt", body)
    job.write(parent={"from": f"s3://{BUCKET}/{job.prefix}/models/base.pt"})
    job.hold("precompile", 1)
    driver = job.start("run", job.spec_path, "--id", "two")
    job.wait_for_effect("holds", phase="precompile")
    put(job, "base.pt", body[:100] + b"\0" + body[101:])
    job.gate.touch()
    out, err = driver.communicate()
    assert driver.returncode == 4, (out, err)
    assert b"'base.pt' has changed" in (out + err if isinstance(out, bytes) else (out + err).encode())
