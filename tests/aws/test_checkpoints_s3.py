"""Checkpoints in a bucket: a training goes on from the newest one that is what it was when it
was marked, on whatever machine; and what was interrupted on the way there heals."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from bucket_job import BUCKET, GIVEN_UP

HELD = 12  # the training waits before this step: 5 and 10 are saved


@pytest.fixture
def job(job):
    job.hold("train", HELD)
    return job


def interrupted(job, run="saved", told=False):
    """A run whose driver and command are dead; what was saved is in the bucket, and in its
    journal if that is to be `told`."""
    driver = job.start("run", job.spec_path, "--id", run)
    held = job.wait_for_effect("holds")
    job.wait_for_marks(run, [5, 10])
    job.wait_for(lambda: not told or 10 in [row["step"] for row in job.events(run, "checkpoint.complete")])
    driver.kill()
    driver.communicate()
    os.kill(held["pid"], signal.SIGKILL)
    job.gate.touch()
    job.wait_for(lambda: not job.agents())
    return run


def resumed(job, run, **where):
    result = job.stoker("resume", run, env=where)
    assert result.code == 0, str(result)
    return result


def last_start(job):
    return [row for row in job.effects("start") if row["phase"] == "train"][-1]


def chosen(job, run):
    return job.events(run, "checkpoint.chosen")[-1]


def check(job, run, step, rejected=()):
    resumed(job, run)
    said = chosen(job, run)
    assert said.get("step") == step, said
    assert [Path(row["url"]).name for row in said.get("rejected") or []] == list(rejected), said
    assert last_start(job)["done"] == (step or 0)
    assert len([row for row in job.effects("end") if row["phase"] == "train"]) == 1
    attempt = job.status(run)["attempts"][-1]
    if step:
        assert attempt["continuity"] == "verified"
        assert attempt["resumed_from"] == f"{job.url['ckpt']}/{run}/attempt-1/checkpoint-{step}"
    return said


def key_of(job, run, step, name="model.safetensors"):
    return f"{job.prefix}/ckpt/{run}/attempt-1/checkpoint-{step}/{name}"


def truncate(job, s3, run):
    body = s3.get_object(Bucket=BUCKET, Key=key_of(job, run, 10))["Body"].read()
    s3.put_object(Bucket=BUCKET, Key=key_of(job, run, 10), Body=body[:-100])
    return "bytes, not"


def overwrite(job, s3, run):
    """As many bytes, others."""
    body = s3.get_object(Bucket=BUCKET, Key=key_of(job, run, 10))["Body"].read()
    s3.put_object(Bucket=BUCKET, Key=key_of(job, run, 10), Body=body[:-1] + bytes([body[-1] ^ 1]))
    return "has changed since it was marked"


def delete(job, s3, run):
    s3.delete_object(Bucket=BUCKET, Key=key_of(job, run, 10, "optimizer.pt"))
    return "is missing"


def add(job, s3, run):
    s3.put_object(Bucket=BUCKET, Key=key_of(job, run, 10, "late/more.bin"), Body=b"x")
    return "files, not"


def take_all(job, s3, run):
    for name in ("model.safetensors", "optimizer.pt", "trainer_state.json"):
        s3.delete_object(Bucket=BUCKET, Key=key_of(job, run, 10, name))
    return "not found"


def test_a_killed_training_goes_on_from_the_bucket(job):
    run = interrupted(job)
    check(job, run, 10)
    source = last_start(job)["resumed_from"]
    assert source.startswith(str(job.home)), "it was fetched to this machine"
    assert not Path(source).exists(), "and is not kept there"
    job.wait_for_marks(run, [15, 20, 25], attempt=2)


def test_another_machine_goes_on_from_the_bucket(job):
    run = interrupted(job)
    resumed(job, run, **job.elsewhere())
    assert last_start(job)["done"] == 10
    assert last_start(job)["resumed_from"].startswith(str(job.root / "other"))


@pytest.mark.parametrize("damage", [truncate, overwrite, delete, add, take_all], ids=lambda damage: damage.__name__)
def test_the_one_before_a_damaged_checkpoint_is_used(job, damage):
    run = interrupted(job)
    why = damage(job, job.aws.client(), run)
    said = check(job, run, 5, ["checkpoint-10"])
    assert why in said["rejected"][0]["why"], said


def test_scratch_is_used_when_none_holds(job):
    run = interrupted(job)
    s3 = job.aws.client()
    truncate(job, s3, run)
    s3.delete_object(Bucket=BUCKET, Key=key_of(job, run, 5))
    check(job, run, None, ["checkpoint-10", "checkpoint-5"])


def test_a_place_that_holds_nothing_any_more_is_told_and_not_begun_anew_without_a_word(job):
    run = interrupted(job, told=True)
    s3, place = job.aws.client(), f"{job.prefix}/ckpt/"
    for key in [key for key in job.aws.objects(BUCKET) if key.startswith(place)]:
        s3.delete_object(Bucket=BUCKET, Key=key)
    starts = len(job.effects("start"))
    result = job.stoker("resume", run)
    assert result.code != 0 and "step 10" in str(result) and "put any object below" in str(result), str(result)
    assert f"{job.url['ckpt']}/{run}/attempt-1/" in str(result), str(result)
    assert len(job.effects("start")) == starts
    s3.put_object(Bucket=BUCKET, Key=f"{place}{run}/attempt-1/none", Body=b"")
    check(job, run, None)


def test_nothing_is_downloaded_to_prove_it(job):
    run = interrupted(job)
    since = job.aws.mark()
    job.stoker("resume", run)
    driver = [row for row in job.aws.ledger(since, "GetObject") if "/checkpoint-" in row["name"]
              and "attempt-1" in row["name"] and "marks" not in row["name"]]
    names = {row["name"] for row in driver}
    assert all("checkpoint-10/" in name for name in names), names
    assert len(names) == 3


def test_what_has_no_mark_is_never_used(job):
    run = interrupted(job)
    s3 = job.aws.client()
    for name in ("model.safetensors", "optimizer.pt"):
        body = s3.get_object(Bucket=BUCKET, Key=key_of(job, run, 10, name))["Body"].read()
        s3.put_object(Bucket=BUCKET, Key=key_of(job, run, 20, name), Body=body)
    s3.put_object(Bucket=BUCKET, Key=key_of(job, run, 20, "trainer_state.json"),
                  Body=json.dumps({"global_step": 20, "learned": -1}).encode())
    check(job, run, 10)


@pytest.mark.parametrize("rubbish", [b"", b"{", b"[]", b'{"v":1}', b"\0" * 5000])
def test_a_mark_that_is_rubbish_is_passed_over(job, rubbish):
    run = interrupted(job)
    job.aws.client().put_object(Bucket=BUCKET, Body=rubbish,
                                Key=f"{job.prefix}/ckpt/{run}/attempt-1/marks/checkpoint-10.stoker.json")
    resumed(job, run)
    assert last_start(job)["done"] == 5


def test_what_phase_one_saved_is_never_sent(job):
    job.gate.touch()
    job.run("--id", "clean")
    assert [row["phase"] for row in job.effects("saved")].count("precompile") == 1
    sent = [row["name"] for row in job.aws.ledger(operation="PutObject") if "checkpoint-2/" in row["name"]]
    assert sent == []


def test_only_as_many_as_are_to_be_kept_stay(job):
    job.gate.touch()
    job.write(checkpoint={"url": job.url["ckpt"], "keep": 2})
    job.run("--id", "few")
    assert job.marks("few") == [20, 25]
    root = f"{job.prefix}/ckpt/few/attempt-1/"
    left = {key.removeprefix(root).split("/")[0] for key in job.aws.objects(BUCKET) if key.startswith(root)}
    assert left == {"marks", "checkpoint-20", "checkpoint-25"}


def test_without_a_url_they_lie_in_the_workspace(job):
    job.gate.touch()
    job.write(checkpoint={"kind": "auto"})
    job.run("--id", "plain")
    assert f"{job.prefix}/stoker/runs/plain/train-1/checkpoints/checkpoint-25/model.safetensors" \
        in job.aws.objects(BUCKET)
    assert job.status("plain")["checkpoint"] == {
        "step": 25, "url": f"{job.url['stoker']}/runs/plain/train-1/checkpoints/checkpoint-25"}


def test_a_sending_that_is_killed_is_gone_on_with(job):
    """The third file of a checkpoint hangs while its sender is killed: the next one sends
    that file, and what had arrived is not sent again."""
    job.aws.fault("delay", operation="PutObject", key="checkpoint-5/trainer_state", seconds=20)
    driver = job.start("run", job.spec_path, "--id", "hurt")
    job.wait_for_effect("holds")
    job.wait_for(job.aws.struck)
    assert job.aws.struck() == 1
    for pid in job.agents(helpers=True):
        os.kill(pid, signal.SIGKILL)
    job.wait_for_marks("hurt", [5, 10])
    job.gate.touch()
    out, err = driver.communicate(timeout=300)
    assert driver.returncode == 0, out + err
    assert job.marks("hurt") == [5, 10, 15, 20, 25]
    sent = [row["name"] for row in job.aws.ledger(operation="PutObject") if "/checkpoint-5/" in row["name"]]
    assert sent.count(f"{BUCKET}/{key_of(job, 'hurt', 5)}") == 1, sent
    objects = job.aws.objects(BUCKET)
    for step in job.marks("hurt"):
        mark = json.loads(objects[f"{job.prefix}/ckpt/hurt/attempt-1/marks/checkpoint-{step}.stoker.json"])
        for file in mark["files"]:
            assert len(objects[key_of(job, "hurt", step, file["path"])]) == file["size"]


@pytest.mark.parametrize("kind", ["lost", "throttle", "internal", "reset_body", "conflict"])
def test_what_goes_wrong_on_the_way_does_no_harm(job, kind):
    job.gate.touch()
    job.aws.fault(kind, operation="PutObject", key="checkpoint-", count=4)
    job.run("--id", "rough")
    assert job.marks("rough") == [5, 10, 15, 20, 25]
    assert job.aws.struck() == 4


@pytest.mark.parametrize("kind", ["throttle", "truncate", "corrupt", "reset_before"])
def test_what_goes_wrong_on_the_way_back_does_no_harm(job, kind):
    run = interrupted(job)
    job.aws.fault(kind, operation="GetObject", key="attempt-1/checkpoint-", count=2)
    resumed(job, run)
    assert last_start(job)["done"] == 10
    assert job.aws.struck() == 2


def test_what_was_saved_last_is_brought_when_the_service_is_back(job):
    driver = job.start("run", job.spec_path, "--id", "saved")
    job.wait_for_effect("holds")
    job.wait_for_marks("saved", [5, 10])
    job.aws.fault("unavailable", operation="PutObject", key="/ckpt/", count=0)
    job.gate.touch()
    job.wait_for_effect("end")
    time.sleep(20)  # longer than an upload is tried
    assert driver.poll() is None
    job.aws.clear_faults()
    driver.communicate()
    assert driver.returncode == 0
    assert 25 in job.marks("saved")
    assert job.status("saved")["checkpoint"]["step"] == 25


def node_of(agent):
    return int(Path(f"/proc/{agent}/cmdline").read_bytes().split(b"\0")[-2])


def train_ends(job, run):
    return [row for row in job.events(run, "attempt.ended") if row["phase"] == "train"]


def test_a_training_whose_checkpoints_may_not_be_written_has_not_ended_well(job):
    """What it saved would be found by nobody: the attempt fails, says S3's own words, and
    where the checkpoints are."""
    job.aws.fault("denied", operation="PutObject", key="/ckpt/.*/checkpoint-", count=0)
    job.gate.touch()
    result = job.run("--id", "saved", code=4)
    ended = train_ends(job, "saved")
    assert len(ended) == 1 and ended[0]["class"] == "quota-permission", ended
    said = json.dumps(ended[0])
    assert "AccessDenied" in said and "'checkpoint-5' exists in" in said, said
    folder = Path(said.split("exists in '", 1)[1].split("'", 1)[0])
    assert str(folder).startswith(str(job.home))
    assert sorted(int(path.name.split("-")[1]) for path in folder.glob("checkpoint-*")) == [5, 10, 15, 20, 25]
    assert "AccessDenied" in result.err + result.out, str(result)
    assert job.marks("saved") == []


def leaves_when_told(job, driver, agent):
    """Although nothing that it asks for is ever answered: what hangs is not cleared before."""
    os.kill(agent, signal.SIGTERM)
    told = time.monotonic()
    job.wait_for(lambda: agent not in job.agents())
    assert time.monotonic() - told < GIVEN_UP
    job.aws.clear_faults()
    driver.kill()
    driver.communicate()


@pytest.mark.parametrize("where", [{"operation": "PutObject", "key": "/ckpt/"}, {"service": "s3"}],
                         ids=["checkpoints", "everything"])
def test_who_is_told_to_stop_goes_within_the_grace_whatever_s3_does(job, where):
    job.write(limits={"grace": "3s"}, retry={"attempts": 1})
    driver = job.start("run", job.spec_path, "--id", "saved")
    job.wait_for_effect("holds")
    job.wait_for_marks("saved", [5, 10])
    job.aws.fault("hang", count=0, seconds=600, **where)
    job.gate.touch()
    job.wait_for_effect("end")
    time.sleep(3)  # it is at what was saved last
    agent, = job.agents()
    leaves_when_told(job, driver, agent)


@pytest.mark.parametrize("node", [0, 1])
def test_who_is_one_of_several_and_told_to_stop_goes_within_the_grace_too(job, node):
    """When its command is over it looks whether the others were told to leave: it must not
    miss what it is told itself meanwhile."""
    job.write(resources={"nodes": 2}, limits={"grace": "3s"}, retry={"attempts": 1})
    driver = job.start("run", job.spec_path, "--id", "saved")
    job.wait_for_effect("holds")
    job.wait_for_marks("saved", [5, 10])
    found = {pid: node_of(pid) for pid in job.agents()}
    assert sorted(found.values()) == [0, 1], found
    agent, = [pid for pid in found if found[pid] == node]
    job.aws.fault("hang", count=0, seconds=600, service="s3")
    job.gate.touch()
    job.wait_for_effect("end")
    time.sleep(3)
    leaves_when_told(job, driver, agent)


def test_who_waits_for_its_claim_and_is_told_to_stop_has_been_stopped_and_has_not_failed(job):
    job.write(retry={"attempts": 1})
    job.aws.fault("hang", count=0, seconds=600, key="claim/train")
    driver = job.start("run", job.spec_path, "--id", "saved")
    job.wait_for(job.aws.struck)
    agent, = job.agents()
    leaves_when_told(job, driver, agent)
    report, = [body for key, body in job.aws.objects(BUCKET).items() if key.endswith("train-1/node-0/report.json")]
    said = json.loads(report)
    assert (said["state"], said["stopped"], said.get("error")) == ("ended", "signal", None), said


def test_what_a_later_look_brings_is_not_lost(job):
    """Graphs that could not be brought are worth another last look; if that brings the
    checkpoints too that the one before could not, nothing is amiss."""
    text = (job.source / "train.py").read_text()
    late = text.replace('call("end", args)\n', 'if os.environ["STOKER_PHASE"] == "train":\n'
                        '        compile_graph("late", "float32[1]")\n    call("end", args)\n')
    assert late != text
    (job.source / "train.py").write_text(late)
    job.aws.fault("denied", operation="PutObject", key="cache/jit_late", count=2)
    job.aws.fault("denied", operation="PutObject", key="/ckpt/.*/checkpoint-25/model", count=2)
    job.gate.touch()
    job.run("--id", "saved")
    assert job.aws.struck() == 4
    assert [row["class"] for row in train_ends(job, "saved")] == ["none"]
    assert 25 in job.marks("saved")


def test_a_checkpoint_that_is_one_object_is_copied_without_those_beside_it(job, tmp_path):
    job.also("""def save(number):
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    file = Path(os.environ["STOKER_CHECKPOINT_DIR"]) / f"step-{number}.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
""")
    job.gate.touch()
    job.run("--id", "one")
    url = job.status("one")["checkpoint"]["url"]
    assert url.endswith("/step-25.safetensors")
    job.aws.client().put_object(Bucket=BUCKET, Key=url.split(f"{BUCKET}/", 1)[1] + ".more", Body=b"another")
    job.ok("cp", "one:checkpoint", tmp_path / "models")
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["step-25.safetensors"]
