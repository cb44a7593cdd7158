"""State in a bucket that is damaged is said to be, with the object, the run and a cure; other runs
go on, and the damaged one can be removed."""

import random

import pytest
import stoker as cli
from bucket_job import BUCKET

SEED, FLIPS = 1, 4


@pytest.fixture
def two(job):
    """Finished runs; `true` is what the journal tells of each."""
    for run in ("other", "victim"):
        job.run("--id", run)
    job.true = {run: job.ok("events", run).lines for run in ("other", "victim")}
    return job


def put(job, name, body):
    job.aws.client().put_object(Bucket=BUCKET, Key=name, Body=body)


def remove(job, name):
    job.aws.client().delete_object(Bucket=BUCKET, Key=name)


def key(job, name):
    return f"{job.prefix}/state/runs/victim/{name}"


def names(job, folder):
    return sorted(name for name in job.aws.objects(BUCKET) if name.startswith(key(job, f"{folder}/")))


def check_told(result, *words):
    assert result.code == 4, str(result)
    assert all(word in result.err for word in words), str(result)
    assert "stoker rm victim" in result.cure, str(result)


def check_all(job, *words):
    """Every command says it, elsewhere too; the other run is told, and the damaged one can go."""
    away = job.elsewhere()
    for argv in (("status", "victim"), ("events", "victim"), ("resume", "victim"), ("stop", "victim"),
                 ("run", job.spec_path, "--id", "victim")):
        check_told(job.stoker(*argv, env=away), *words)
    listed = job.stoker("--json", "list", env=away)
    assert listed.code == 4, str(listed)
    states = {line["run"]: line["state"] for line in listed.lines if "run" in line}
    assert states == {"other": "succeeded", "victim": "damaged"}, str(listed)
    assert job.ok("events", "other", env=away).lines == job.true["other"]
    job.ok("rm", "victim", env=away)
    assert [line["run"] for line in job.ok("--json", "list").lines] == ["other"]
    assert not names(job, "events") and not names(job, "chunks")


def drop_copies(job):
    """Of events that are damaged the copies in chunks are read; where there are none, damage is said."""
    for name in names(job, "chunks"):
        remove(job, name)


def test_an_event_that_is_not_what_was_written(two):
    drop_copies(two)
    name, whole = key(two, f"events/{4:012}.json"), two.aws.objects(BUCKET)
    body = whole[name]
    for damaged in (b"", body[:len(body) // 2], body.replace(b'"at":"2', b'"at":"1'), None):
        if damaged is None:
            remove(two, name)
        else:
            put(two, name, damaged)
        check_all(two, f"events/{4:012}.json", "event 4 of run victim")
        for each in [name for name in whole if "/runs/victim/" in name]:
            put(two, each, whole[each])


def test_the_copies_are_read_where_they_are_whole(two):
    name = key(two, f"events/{4:012}.json")
    put(two, name, b"")
    assert two.ok("events", "victim", env=two.elsewhere()).lines == two.true["victim"]


def test_flips_are_found_or_change_nothing(two):
    chance = random.Random(SEED)
    whole = {name: two.aws.objects(BUCKET)[name] for name in [*names(two, "events"), *names(two, "chunks")]}
    for _ in range(FLIPS):
        name = chance.choice(list(whole))
        at = chance.randrange(len(whole[name]))
        damaged = bytearray(whole[name])
        damaged[at] ^= 1 << chance.randrange(8)
        put(two, name, bytes(damaged))
        for keep in (True, False):
            if not keep:
                drop_copies(two)
            result = two.stoker("events", "victim", env=two.elsewhere())
            assert result.lines == two.true["victim"][:len(result.lines)], f"byte {at} of {name}\n{result}"
            if result.code != 0 or len(result.lines) != len(two.true["victim"]):
                check_told(result, "of run victim", f"/{name.split('/')[-2]}/")
        for each, body in whole.items():
            put(two, each, body)


def test_a_mark_or_a_lease_that_is_none(two):
    mark, lease = f"{two.prefix}/state/journal.json", key(two, "lease.json")
    kept = two.aws.objects(BUCKET)[mark]
    for body in (b"", b"{", b"\0" * 40):
        put(two, mark, body)
        result = two.stoker("list")
        assert result.code == 4 and "journal.json" in result.err and "write" in result.cure, str(result)
        put(two, mark, kept)
        put(two, lease, body)
        assert two.ok("events", "victim").lines == two.true["victim"]
    two.ok("rm", "victim")
    assert [line["run"] for line in two.ok("--json", "list").lines] == ["other"]


def leave(job):
    """A run whose driver is dead; its job waits at the gate. Its events."""
    job.hold("train", 3)
    driver = job.start("run", job.spec_path, "--id", "victim")
    job.wait_for_effect("holds")
    driver.kill()
    driver.wait()
    return job.ok("events", "victim").lines


def salvaged(job, before, ended):
    """After `resume --salvage`: it has succeeded once, and what was damaged is kept."""
    seq = next(row["seq"] for row in before if (row["event"], row.get("phase")) == ("attempt.submitted", "train"))
    drop_copies(job)
    lost = {row["seq"]: job.aws.objects(BUCKET)[key(job, f"events/{row['seq']:012}.json")]
            for row in before if row["seq"] > seq}
    remove(job, key(job, f"events/{seq:012}.json"))
    assert "victim --salvage" in job.stoker("status", "victim").cure
    if ended:
        job.gate.touch()
        job.wait_for_effect("end")
    salvage = job.start("--json", "resume", "victim", "--salvage")
    job.gate.touch()
    done = cli.finish(salvage)
    assert done.code == 0, str(done)
    rows = job.ok("events", "victim", env=job.elsewhere()).lines
    kinds = [row["event"] for row in rows]
    assert rows[:seq - 1] == before[:seq - 1] and kinds[seq - 1] == "journal.salvaged", kinds
    assert kinds.count("journal.settled") == 1 and rows[-1]["state"] == "succeeded", kinds
    assert {job.aws.objects(BUCKET)[name] for name in names(job, "damaged")} == set(lost.values())
    assert rows[seq - 1]["put_aside"] == len(lost)
    assert [(row["phase"], row["attempt"]) for row in job.effects() if row["what"] == "start"] == [
        ("precompile", 1), ("train", 1)]


@pytest.mark.parametrize("ended", [False, True], ids=["running", "ended"])
def test_a_damaged_run_goes_on_with_its_job(job, ended):
    salvaged(job, leave(job), ended)
