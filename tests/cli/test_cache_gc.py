"""Old graphs go from a cache only where nobody needs them, and only when asked to."""

import os
import shutil
import time
from pathlib import Path

import pytest

DAY = 24 * 3600
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()


def age(path, days):
    then = time.time() - days * DAY
    os.utime(path, (then, then))


def stray(project, letter="a", days=30):
    """A whole graph that no lock names."""
    path = project.cache / f"jit_stray-{letter * 64}-cache"
    shutil.copy(project.entries()[0], path)
    age(path, days)
    return path


def gc(project, *argv):
    *rows, total = project.ok("--json", "cache", "gc", project.cache, *argv).lines
    return rows, total


def test_it_changes_nothing_until_it_is_told_to(project):
    project.run()
    old = stray(project)
    rows, total = gc(project)
    assert [(row["path"], row["action"]) for row in rows] == [(old.name, "remove")]
    assert (total["removed"], total["graphs"], total["size_bytes"]) == (False, 1, old.stat().st_size)
    assert total["kept"] == {"named": 3, "young": 0, "compiling": 0, "unknown": 0}
    said = project.ok("cache", "gc", project.cache)
    assert old.name.removesuffix("-cache") in said.out and "--delete" in said.err
    assert old.exists()


def test_the_run_stays_warm_however_old_its_graphs_are(project):
    project.run()
    for path in project.cache.rglob("*"):
        age(path, 400)
    old, young = stray(project), stray(project, "b", days=0.5)
    rows, total = gc(project, "--delete")
    assert [row["action"] for row in rows] == ["removed"]
    assert total["removed"] and total["graphs"] == 1 and total["kept"]["young"] == 1
    assert not old.exists() and young.exists()
    assert project.plan()["cache"]["verdict"] == "warm"
    project.ok("cache", "verify", project.cache)
    assert gc(project, "--delete")[1]["graphs"] == 0


@pytest.mark.parametrize(("given", "goes"), [("7d", 2), ("20d", 1), ("60d", 0)])
def test_older_than_says_how_old(project, given, goes):
    project.run()
    stray(project, "a", days=30), stray(project, "b", days=10)
    assert gc(project, "--older-than", given, "--delete")[1]["graphs"] == goes


@pytest.mark.parametrize("given", ["0", "1h", "23h", "86399s", "1439m"])
def test_less_than_a_day_is_refused(project, given):
    project.run()
    young, old = stray(project, days=0.5), stray(project, "b", days=30)
    said = project.stoker("cache", "gc", project.cache, "--older-than", given, "--delete")
    assert said.code == 2 and "--older-than" in said.err and "day" in said.cure, str(said)
    assert said.out == "" and young.exists() and old.exists()


def test_a_day_is_long_enough(project):
    project.run()
    young, old = stray(project, days=0.9), stray(project, "b", days=1.1)
    assert gc(project, "--older-than", "24h", "--delete")[1]["graphs"] == 1
    assert young.exists() and not old.exists()


def test_a_lock_that_cannot_be_read_protects_everything(project):
    project.run()
    old = stray(project)
    damaged = project.cache / "stoker" / f"{'0' * 64}.json"
    damaged.write_text("{")
    said = project.stoker("cache", "gc", project.cache, "--delete")
    assert said.code == 5 and damaged.name in said.err and "remove the manifest" in said.cure, str(said)
    assert old.exists() and said.out == ""
    damaged.unlink()
    assert gc(project, "--delete")[1]["graphs"] == 1


@pytest.fixture
def public(project):
    """A project whose cache others may look into, with an old stray in it; what
    keeps permissions means nothing to root."""
    project.run()
    for path in [project.cache, *project.cache.parents]:
        if path == Path("/tmp"):
            break
        path.chmod(0o755)
    for path in project.cache.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    project.stray = stray(project)
    return project


def as_nobody(project, *argv):
    return project.stoker(*argv, prefix=NOBODY, cwd="/")


def test_a_lock_without_permission_protects_everything(public):
    lock, = (public.cache / "stoker").glob("*.json")
    lock.chmod(0)
    said = as_nobody(public, "cache", "gc", public.cache, "--delete")
    assert said.code == 4 and lock.name in said.err and "ermission" in said.err, str(said)
    lock.chmod(0o644)
    lock.parent.chmod(0)
    said = as_nobody(public, "cache", "gc", public.cache, "--delete")
    lock.parent.chmod(0o755)
    assert said.code == 4 and "ermission" in said.err, str(said)
    assert public.stray.exists()


def test_a_graph_that_cannot_be_removed_is_named(public):
    public.cache.chmod(0o555)
    said = as_nobody(public, "--json", "cache", "gc", public.cache, "--delete")
    assert said.code == 4 and "jit_stray" in said.err and "ermission" in said.err, str(said)
    assert [list(line) for line in said.lines] == [["error"]]
    assert public.stray.exists()


def test_what_it_does_not_know_stays(project):
    project.run()
    strange = [project.cache / name for name in ("notes.txt", "jit_x-1234-cache", f"jit_x-{'c' * 64}-atime")]
    folder = project.cache / "other"
    folder.mkdir()
    strange.append(folder / f"jit_x-{'c' * 64}-cache")
    for path in strange:
        path.write_bytes(b"x" * 100)
        age(path, 400)
    link = project.cache / f"jit_link-{'d' * 64}-cache"
    link.symlink_to(project.spec_path)
    assert gc(project, "--delete")[1]["graphs"] == 0
    assert all(path.exists() for path in [*strange, link, project.spec_path])


def test_a_cache_without_a_lock_is_named_as_such(project):
    project.run()
    shutil.rmtree(project.cache / "stoker")
    for path in project.entries():
        age(path, 30)
    said = project.ok("cache", "gc", project.cache)
    assert "no compile manifest" in said.err
    assert len(project.entries()) == 3


def test_another_kind_of_url_is_refused(project):
    said = project.stoker("cache", "gc", "gs://bucket/cache", "--delete")
    assert said.code == 4 and "no store" in said.err and said.cure
    assert project.stoker("cache", "gc", project.root / "none").code == 4
