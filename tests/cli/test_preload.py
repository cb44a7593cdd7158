"""`cache.preload`: an empty compile cache is filled from others before a run begins, whole or gone on with."""

import os
import random
import shutil
import signal
import time

import pytest
import stoker as cli

SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))
BEGUN = "stoker/claims/preload.begun"


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and not str(path.relative_to(folder)).startswith("stoker/claims/")}


@pytest.fixture
def other(project):
    """The cache of another team, which has all graphs; our own is empty."""
    project.run("--id", "theirs")
    other = project.root / "other"
    shutil.move(project.cache, other)
    return other


def preload(project, *urls):
    project.write(cache={"preload": [str(url) for url in urls]})


def words(project, run):
    event, = project.events(run, "cache.preloaded")
    return event["reason"]


def phases(project, run):
    return [phase for phase, _ in project.attempts(run)]


def test_an_empty_cache_is_filled_and_no_phase_1_is_needed(project, other):
    preload(project, other)
    assert f"preload: {other}, if the cache is empty when the run begins\n" in project.ok("plan", project.spec_path).out
    assert project.plan()["preload"] == [{"url": str(other)}] and not project.cache.exists()
    project.run("--id", "one")
    assert phases(project, "one") == ["train"] and project.status("one")["jit"]["graphs"] == 0
    assert words(project, "one").startswith(f"the compile cache was empty, and is preloaded from '{other}': 4 objects, ")
    assert files(project.cache) == files(other)
    assert not (project.cache / BEGUN).exists()
    project.run("--id", "two")
    assert words(project, "two") == "the compile cache is not empty: nothing is preloaded"
    before = len(project.events("one"))
    project.run("--id", "one")
    assert len(project.events("one")) == before


def test_a_cache_that_has_entries_is_left_as_it_is(project, other):
    project.cache.mkdir()
    (project.cache / "mine-cache").write_bytes(b"mine")
    preload(project, other)
    project.run("--id", "one")
    assert words(project, "one") == "the compile cache is not empty: nothing is preloaded"
    assert phases(project, "one") == ["precompile", "train"]


def test_what_is_not_there_is_told_and_the_next_is_asked(project, other):
    nothing = project.root / "typo"
    preload(project, nothing, other)
    assert project.plan()["preload"] == [{"url": str(nothing), "why": "nothing is there"}, {"url": str(other)}]
    assert f"preload: {nothing}: nothing can be had from there: nothing is there\n         {other}, if " in \
        project.ok("plan", project.spec_path).out
    result = project.run("--id", "one")
    assert f"'{nothing}': not preloaded: nothing is there; '{other}': 4 objects" in words(project, "one")
    assert "not preloaded: nothing is there" in result.text and phases(project, "one") == ["train"]


def test_nothing_to_be_had_is_a_run_that_compiles(project):
    (project.root / "file").write_text("no folder")
    preload(project, project.root / "typo", project.root / "file")
    project.run("--id", "one")
    assert words(project, "one").count("not preloaded: ") == 2
    assert phases(project, "one") == ["precompile", "train"] and not (project.cache / BEGUN).exists()


def test_a_damaged_entry_is_no_warm_cache(project, other):
    entry = sorted(other.glob("*-cache"))[0]
    entry.write_bytes(entry.read_bytes()[:-7])
    preload(project, other)
    project.run("--id", "one")
    assert phases(project, "one") == ["precompile", "train"] and project.status("one")["jit"]["graphs"] == 0
    assert project.ok("--json", "cache", "verify", project.cache).lines[-1]["ok"] == 3


def test_without_preload_nothing_of_it_is_there(project):
    assert "preload" not in project.plan() and "cache" not in project.plan()["spec"]
    project.run("--id", "one")
    assert project.events("one", "cache.preloaded") == []


@pytest.mark.parametrize("value, said", [(["gs://x/y"], "must be a directory or an s3://bucket/prefix URL"), ([{"a": 1}], "must be a string"),
                                         (["x"] * 17, "has 17 items, more than 16")])
def test_bad_values(project, value, said):
    project.write(cache={"preload": value})
    result = project.stoker("validate", project.spec_path)
    assert result.code == 3 and said in result.text, str(result)


def fill(other, count=400):
    for i in range(count):
        (other / f"jit_filler-{i:04d}-cache").write_bytes(os.urandom(2000))


def test_killed_in_the_copy_and_gone_on_with(project, other):
    fill(other)
    preload(project, other)
    chance = random.Random(SEED)
    kills = 0
    for _ in range(6):
        process = project.start("run", project.spec_path, "--id", "one")
        cli.until(lambda p=process: (project.cache / BEGUN).exists() or p.poll() is not None)
        landed = chance.randrange(0, 400)
        cli.until(lambda p=process, n=landed: len(list(project.cache.glob("jit_*"))) >= n or p.poll() is not None)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        cli.finish(process)
        for path in project.cache.glob("*-cache"):
            assert path.read_bytes() == (other / path.name).read_bytes(), "whole, or not there"
        if not (project.cache / BEGUN).exists():
            break
    assert kills
    project.run("--id", "one")
    assert phases(project, "one") == ["train"] and not (project.cache / BEGUN).exists()
    assert {name: body for name, body in files(project.cache).items() if ".stk-tmp-" not in name} == files(other)


def test_two_runs_that_share_the_empty_cache_copy_one_at_a_time(project, other):
    fill(other)
    preload(project, other)
    both = [project.start("run", project.spec_path, "--id", run) for run in ("one", "two")]
    for process in both:
        result = cli.finish(process)
        assert result.code == 0, str(result)
    said = sorted(words(project, run) for run in ("one", "two"))
    assert said[0] == "the compile cache is not empty: nothing is preloaded" and "was empty, and is preloaded" in said[1]
    assert phases(project, "one") == phases(project, "two") == ["train"]
    assert files(project.cache) == files(other)


def test_a_run_in_the_background_copies_there_and_hears_a_stop(project, other):
    """The first run stands still in the middle of its copy, so that the second waits."""
    fill(other)
    preload(project, other)
    one = project.start("run", project.spec_path, "--id", "one")
    cli.until(lambda: len(list(project.cache.glob("jit_filler-*"))) > 20)
    one.send_signal(signal.SIGSTOP)
    assert (project.cache / BEGUN).exists()
    project.ok("run", project.spec_path, "--id", "two", "--detach")
    assert project.status("two")["driver"] and not project.events("two", "cache.preloaded")
    project.ok("stop", "two")
    assert project.stoker("wait", "two").code == 6 and phases(project, "two") == []
    # A stop of the copy itself: it is heard between two objects.
    stop = project.start("stop", "one")
    cli.until(lambda: project.events("one", "request.stop"))
    time.sleep(1.1)  # longer than between two looks, of which none is due before
    one.send_signal(signal.SIGCONT)
    assert cli.finish(one).code == 6 and cli.finish(stop).code == 0
    assert (project.cache / BEGUN).exists() and not project.events("one", "cache.preloaded")
    assert len(list(project.cache.glob("jit_filler-*"))) < 400
    project.run("--id", "three")
    assert phases(project, "three") == ["train"] and files(project.cache) == files(other)
