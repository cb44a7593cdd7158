"""Two graph keys that share entries of one cache: what a run of one of them had
to compile again is as good for the other."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def pair(project):
    """switch(which): the source with or without code that changes no graph; both keys have a lock."""
    script = project.source / "train.py"
    texts = {"plain": script.read_text(), "longer": script.read_text() + "THAT_IS = 'all'\n"}

    def switch(which: str):
        script.write_text(texts[which])

    project.run()
    switch("longer")
    project.run()
    assert project.events(kind="cache.verified")[-1]["compiled"] == 0
    return switch


def cut(entry: Path) -> None:
    entry.write_bytes(entry.read_bytes()[:-7])


def phases(project):
    return [phase for phase, _ in project.attempts()]


def locks(project) -> dict:
    return {path: json.loads(path.read_text()) for path in (project.cache / "stoker").glob("*.json")}


def test_a_repaired_entry_leaves_both_keys_warm(project, pair):
    entry = project.entries()[1]
    cut(entry)
    project.run()
    assert phases(project) == ["precompile", "train"]
    verified = project.events(kind="cache.verified")[-1]
    assert verified["compiled"] == 1
    assert [row["graphs"] for row in verified["sources"]["refreshed"]] == [1]
    verify = project.ok("--json", "cache", "verify", project.cache).lines[-1]
    assert (verify["graphs"], verify["ok"], verify["behind"]) == (3, 3, 0)
    repaired = entry.read_bytes()
    for which in ("plain", "longer", "plain"):
        pair(which)
        assert project.plan()["cache"]["verdict"] == "warm", which
        project.run()
        assert phases(project) == ["train"], which
        assert project.status()["jit"]["graphs"] == 0
    assert entry.read_bytes() == repaired


def test_a_lock_that_missed_the_repair_takes_it_over_at_its_next_run(project, pair):
    """As after a driver that was killed between the two locks."""
    before = locks(project)
    entry = project.entries()[1]
    cut(entry)
    project.run()
    own = project.plan()["cache"]["graph_key"]
    for path, lock in before.items():
        if lock["graph_key"] != own:
            path.write_text(json.dumps(lock))
    repaired = entry.read_bytes()
    verify = project.ok("--json", "cache", "verify", project.cache).lines[-1]
    assert (verify["complete"], verify["ok"], verify["behind"]) == (True, 3, 1)
    pair("plain")
    assert project.plan()["cache"]["verdict"] == "warm"
    assert "other runs" in project.ok("cache", "why", project.spec_path).out
    project.ok("cache", "verify", project.spec_path)
    project.run()
    assert phases(project) == ["train"]
    assert "taken over" in project.events(kind="cache.checked")[-1]["reason"]
    assert entry.read_bytes() == repaired
    assert project.ok("--json", "cache", "verify", project.cache).lines[-1]["behind"] == 0


def test_an_entry_of_unknown_origin_is_not_believed_by_either(project, pair):
    entry = project.entries()[1]
    entry.write_bytes(entry.read_bytes() + b"\0")
    strange = entry.read_bytes()
    for which in ("plain", "longer"):
        pair(which)
        assert project.plan()["cache"]["verdict"] == "cold"
    assert project.stoker("cache", "verify", project.cache).code == 5
    project.run()
    assert phases(project) == ["precompile", "train"]
    assert entry.read_bytes() != strange
