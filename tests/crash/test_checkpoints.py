"""What a training goes on from when its newest checkpoint is no good, and what
it never goes on from."""

import json
import os
import shutil
import signal
from pathlib import Path

import crash
import pytest

SAVED = [5, 10]
HELD = 12


def interrupted(site, *sets):
    """A run whose driver and command are dead; its agent has marked what was saved."""
    run = site.one("saved", *sets).hold("train", HELD)
    driver = run.drive()
    held = run.wait_for_effect("holds")
    driver.kill()
    os.kill(held["pid"], signal.SIGKILL)
    run.wait_for(lambda: not run.processes())
    run.release()
    return run


def saved(run, step, attempt=1):
    found = list((run.site.state / "workspace/runs" / run.id / f"train-{attempt}").rglob(f"checkpoint-{step}"))
    return [path for path in found if not path.is_symlink()][0]


def check_resumed(run, step, rejected=()):
    assert run.resume().wait() == 0, run.story()
    story = run.story()
    chosen = run.events("checkpoint.chosen")[-1]
    assert chosen.get("step") == step, story
    passed_over = chosen.get("rejected") or []
    assert [Path(row["url"]).name for row in passed_over] == list(rejected), story
    assert all(row["why"] for row in passed_over), story
    start = [row for row in run.effects("start") if row["phase"] == "train"][-1]
    assert start["done"] == (step or 0), story
    assert len([row for row in run.effects("end") if row["phase"] == "train"]) == 1, story
    attempt = run.status()["attempts"][-1]
    if step:
        assert attempt["continuity"] == "verified", story
        assert attempt["resumed_from"] == str(saved(run, step)), story
    crash.check_nothing_left(run)


def truncate(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def truncate_archive(folder):
    path = folder / "optimizer.pt"
    path.write_bytes(path.read_bytes()[:200])


def take_half(folder):
    for path in sorted(folder.iterdir())[::2]:
        path.unlink()


def garble_header(folder):
    path = folder / "model.safetensors"
    path.write_bytes(b"\xff" * 64 + path.read_bytes()[64:])


def empty_state(folder):
    (folder / "trainer_state.json").write_text("")


def grow(folder):
    with (folder / "model.safetensors").open("ab") as file:
        file.write(b"more")


@pytest.mark.parametrize("damage", [truncate, truncate_archive, take_half, garble_header, empty_state,
                                    grow, shutil.rmtree], ids=lambda damage: damage.__name__)
def test_the_one_before_a_damaged_checkpoint_is_used(site, damage):
    run = interrupted(site)
    damage(saved(run, 10))
    check_resumed(run, 5, ["checkpoint-10"])


def test_the_newest_is_used_when_nothing_is_wrong(site):
    check_resumed(interrupted(site), 10)


def test_scratch_is_used_when_all_are_damaged(site):
    run = interrupted(site)
    truncate(saved(run, 10))
    garble_header(saved(run, 5))
    check_resumed(run, None, ["checkpoint-10", "checkpoint-5"])


def test_a_whole_checkpoint_without_a_mark_is_never_used(site):
    run = interrupted(site)
    newest = saved(run, 10)
    shutil.copytree(newest, newest.with_name("checkpoint-20"))
    state = newest.with_name("checkpoint-20") / "trainer_state.json"
    state.write_text(json.dumps({"global_step": 20, "learned": -1}))
    check_resumed(run, 10)


def test_a_mark_of_another_run_is_not_believed(site):
    run = interrupted(site)
    newest = saved(run, 10)
    mark = newest.with_name("checkpoint-10.stoker.json")
    mark.write_text(mark.read_text().replace('"run":"saved"', '"run":"other"'))
    assert '"run":"other"' in mark.read_text()
    run.resume().wait()
    start = [row for row in run.effects("start") if row["phase"] == "train"][-1]
    assert start["done"] == 5, run.story()


@pytest.mark.parametrize("rubbish", ["", "{", "[]", '{"v":1}', "\0" * 5000])
def test_a_mark_that_is_rubbish_is_passed_over(site, rubbish):
    run = interrupted(site)
    saved(run, 10).with_name("checkpoint-10.stoker.json").write_text(rubbish)
    assert run.resume().wait() == 0, run.story()
    start = [row for row in run.effects("start") if row["phase"] == "train"][-1]
    assert start["done"] == 5, run.story()


def test_what_phase_one_saved_is_never_used(site):
    """A trial run saves zeros; a training that dies before its first checkpoint
    begins from nothing."""
    run = site.one("zeros").hold("train", 3)
    driver = run.drive()
    held = run.wait_for_effect("holds")
    assert [row["phase"] for row in run.effects("saved")] == ["precompile"]
    os.kill(held["pid"], signal.SIGKILL)
    run.release()
    assert driver.wait() == 0, run.story()
    starts = [row for row in run.effects("start") if row["phase"] == "train"]
    assert [(row["attempt"], row["done"], row["resumed_from"]) for row in starts] == \
        [(1, 0, None), (2, 0, None)], run.story()
    left = list((site.state / "workspace/runs" / run.id / "precompile-1").rglob("*checkpoint-*"))
    assert left == [], left


def test_nothing_is_deleted(site):
    run = interrupted(site)
    check_resumed(run, 10)
    for step in SAVED:
        assert (saved(run, step) / "trainer_state.json").exists()
    for step in (15, 20, 25):
        assert (saved(run, step, 2) / "trainer_state.json").exists()


def test_a_script_that_ignores_its_checkpoint_is_stopped(site):
    text = (site.source / "extra.py").read_text()
    assert text.count('os.environ.get("STOKER_RESUME_FROM")') == 1
    (site.source / "extra.py").write_text(text.replace('os.environ.get("STOKER_RESUME_FROM")', "None"))
    run = interrupted(site)
    run.gate.unlink()  # it waits at the same step again until it is stopped
    assert run.resume().wait() == 1, run.story()
    continuity, = run.events("train.continuity")
    assert continuity["continuity"] == "failed" and continuity["first_step"] <= 10, run.story()
    assert run.events("run.ended")[0]["class"] == "user-config", run.story()
    assert not [row for row in run.effects("end") if row["phase"] == "train"]
    crash.check_nothing_left(run)


def test_checkpoints_are_brought_to_their_url_and_resumed_from_there(site):
    url = site.root / "kept"
    run = interrupted(site, f"checkpoint.url={url}")
    shutil.rmtree(saved(run, 10).parent)
    assert run.resume().wait() == 0, run.story()
    start = [row for row in run.effects("start") if row["phase"] == "train"][-1]
    assert start["done"] == 10 and start["resumed_from"].startswith(str(url)), run.story()
    assert (url / run.id / "attempt-2" / "checkpoint-25.stoker.json").exists(), run.story()
