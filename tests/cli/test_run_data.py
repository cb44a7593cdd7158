"""Data in a directory: what a run is given is fixed before it begins, and reaches every attempt of every phase."""

import json
import os

import given
import pytest
from project import Project

DIES_ONCE = 'if os.environ["STOKER_PHASE"] == "train" and os.environ["STOKER_ATTEMPT"] == "1": os.kill(os.getpid(), 9)\n'


@pytest.fixture
def job(tmp_path):
    job = Project(tmp_path)
    job.data, job.given = tmp_path / "drops", tmp_path / "given"
    job.data.mkdir()
    job.extra(given.sees(job.given) + DIES_ONCE)
    return job


def put(job, name, text):
    path = job.data / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def inputs(job, run):
    return job.ok("events", run).lines[0]["inputs"]


def names(job, rows):
    return [row["url"].removeprefix(f"{job.data}/") for row in rows]


def test_every_attempt_of_every_phase_has_the_first_manifest(job):
    put(job, "a/1.csv", "one")
    put(job, "2.csv", "two")
    put(job, "notes.txt", "none")
    job.write(data={"url": str(job.data), "include": ["**/*.csv"], "fetch": True})
    result = job.run("--id", "one")
    assert "2 of 3 objects in" in result.err
    attempts = given.seen(job.given)
    assert [(line["phase"], line["attempt"]) for line in attempts] == [("precompile", 1), ("train", 1), ("train", 2)]
    for line in attempts:
        assert names(job, line["rows"]) == ["2.csv", "a/1.csv"] and all(row["new"] for row in line["rows"])
        assert line["files"] == {"2.csv": ["two", True], "a/1.csv": ["one", True]}
    first = inputs(job, "one")["data"]
    assert first["objects"] == first["new"] == 2 and first["bytes"] == 6 and first["excluded"] == 1
    with open(first["manifest"], encoding="utf-8") as file:
        assert [json.loads(line) for line in file] == attempts[0]["rows"]
    # The same id goes on with what it was given first, without a look at the data.
    put(job, "3.csv", "three")
    for path in job.data.rglob("*.csv"):
        path.unlink()
    job.run("--id", "one")
    # Nor is it part of the plan, or of a graph key: another run with other data is warm.
    put(job, "4.csv", "four")
    warm = job.run("--id", "two")
    assert [(line["phase"], names(job, line["rows"])) for line in given.seen(job.given)] == [("train", ["4.csv"])] * 2, warm


@pytest.mark.parametrize("data, why", [
    ({"url": "../nowhere"}, "there is no"),
    ({"url": "../drops", "include": ["*.parquet"]}, "matches data.include"),
    ({"url": "../drops", "settle": "30d"}, "no object of"),
    ({"url": "../list.jsonl"}, "line 1"),
])
def test_wrong_data_begins_nothing(job, data, why):
    (job.data / "a.csv").write_text("1")
    (job.root / "list.jsonl").write_text("{}\n")
    job.write(data=data)
    result = job.run("--id", "one", code=4)
    assert why in result.err, (job.ok("events", "one").out)
    assert job.stoker("status", "one").code == 9


def test_a_file_that_changes_before_it_is_linked_ends_the_run(job):
    put(job, "a", "one")
    job.write(data={"url": str(job.data), "fetch": True})
    job.extra(given.sees(job.given) + f"import shutil; shutil.rmtree({str(job.data)!r})\n" + DIES_ONCE)
    job.write(compile=None, retry={"attempts": 2, "backoff": {"first": "0s", "max": "0s"}})
    job.run("--id", "one", code=4)
    ends = [row for row in job.ok("events", "one").lines if row["event"] == "attempt.ended"]
    assert f"'{job.data}/a' is no longer what the manifest of this run lists" in ends[-1]["evidence"]


def test_the_files_of_a_list_are_linked(job):
    """Their ETags are the list's own; their sizes are compared."""
    put(job, "a", "one")
    listed = job.root / "list.jsonl"
    job.write(data={"url": str(listed), "fetch": True}, compile=None, retry={"attempts": 2, "backoff": {"first": "0s", "max": "0s"}})
    job.extra(given.sees(job.given))
    listed.write_text(json.dumps({"url": f"{job.data}/a", "size": 3, "etag": "v1"}))
    job.run("--id", "one")
    line, = given.seen(job.given)
    assert [file for file in line["files"].values()] == [["one", True]]
    listed.write_text(json.dumps({"url": f"{job.data}/a", "size": 4, "etag": "v1"}))
    job.run("--id", "two", code=4)
    ends = [row for row in job.ok("events", "two").lines if row["event"] == "attempt.ended"]
    assert f"'{job.data}/a' is no longer what the manifest of this run lists" in ends[-1]["evidence"]
