"""rm and list --prune: finished runs are forgotten, and nothing else goes."""

import json
import os
import random
import time

import crash
import pytest
import stoker as cli


@pytest.fixture(params=["sqlite", "dir"])
def state(project, request):
    """The options for a state of this kind, and its folder."""
    folder = project.root / "there"
    return ("--state", f"{request.param}:{folder}"), folder


def run(project, options, name, *argv, code=0):
    result = project.stoker(*options, "run", project.spec_path, "--id", name, *argv)
    assert result.code == code, str(result)


def runs(project, options) -> set:
    return {line["run"] for line in project.ok(*options, "--json", "list").lines}


def listing(folder) -> list:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_finished_run_is_forgotten_with_its_folders_and_nothing_else(project, state):
    options, folder = state
    run(project, options, "stays")
    before = listing(folder)
    cache = listing(project.cache)
    run(project, options, "goes", "--set", "hyperparameters.lr=0.5")
    assert (folder / "workspace" / "runs" / "goes").is_dir()
    assert (folder / "runs" / "goes").is_dir()
    result = project.ok(*options, "rm", "goes")
    assert "removed goes: fake, succeeded at 20" in result.out
    assert runs(project, options) == {"stays"}
    left = [name for name in listing(folder) if name not in before]
    assert not [name for name in left if "goes" in name], left
    assert [name for name in before if name not in listing(folder)] == []
    assert set(cache) <= set(listing(project.cache))
    assert project.stoker(*options, "status", "goes").code == 9


def test_json_says_what_was_removed(project, state):
    options, _ = state
    for name in ("one", "two"):
        run(project, options, name)
    lines = project.ok(*options, "--json", "rm", "one", "tw", "one").lines
    assert [line["run"] for line in lines] == ["one", "two"]
    for line in lines:
        assert line["removed"] is True and line["state"] == "succeeded"
        assert line["name"] == "fake" and line["ended"].endswith("Z")
    assert runs(project, options) == set()


def test_the_id_is_free_again(project, state):
    options, _ = state
    run(project, options, "one")
    project.ok(*options, "rm", "one")
    run(project, options, "one", "--set", "hyperparameters.lr=0.25")  # another plan
    rows = project.ok(*options, "events", "one").lines
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[-1]["event"] == "run.ended"


def test_one_wrong_name_and_none_is_removed(project, state):
    options, _ = state
    run(project, options, "one")
    result = project.stoker(*options, "rm", "one", "nosuch")
    assert result.code == 9 and "nosuch" in result.err and result.cure
    assert runs(project, options) == {"one"}


def wait_for_step(project, options, name):
    for _ in range(600):
        rows = project.stoker(*options, "events", name)
        if rows.code == 0 and any(row["event"] == "train.progress" or
                                  (row["event"], row.get("phase")) == ("attempt.claimed", "train")
                                  for row in rows.lines):
            return
        time.sleep(0.05)
    raise AssertionError("training never began")


def test_a_run_that_goes_on_is_refused_and_untouched(project, state):
    options, folder = state
    project.extra("import time\ndef step(args, number):\n    time.sleep(0.1)\n")  # five minutes
    process = project.start(*options, "run", project.spec_path, "--id", "busy",
                            "--set", "hyperparameters.max_steps=3000")
    try:
        wait_for_step(project, options, "busy")
        result = project.stoker(*options, "rm", "busy")
        assert result.code in (4, 7), str(result)
        assert "stoker stop busy" in result.cure
        assert (folder / "workspace" / "runs" / "busy").is_dir()
        assert project.stoker(*options, "list", "--prune", "0s").code == 0
        assert runs(project, options) == {"busy"}
    finally:
        project.stoker(*options, "stop", "busy")
        process.communicate(timeout=cli.SECONDS)
    assert project.ok(*options, "rm", "busy").code == 0


def test_no_link_is_followed(project, state):
    options, folder = state
    run(project, options, "one")
    outside = project.root / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    inside = folder / "workspace" / "runs" / "one"
    (inside / "link-to-folder").symlink_to(outside)
    (inside / "link-to-file").symlink_to(outside / "precious")
    project.ok(*options, "rm", "one")
    assert not inside.exists()
    assert (outside / "precious").read_text() == "kept"


@pytest.mark.parametrize("where", ["state", "workspace"])
def test_a_folder_that_is_a_link_is_refused(project, state, where):
    options, folder = state
    run(project, options, "one")
    top = folder if where == "state" else folder / "workspace"
    moved = project.root / "moved"
    os.rename(top / "runs" / "one", moved)
    (top / "runs" / "one").symlink_to(moved)
    before = listing(moved)
    result = project.stoker(*options, "rm", "one")
    assert result.code == 4, str(result)
    assert "link" in result.err and result.cure
    assert [name for name in listing(moved) if "lock" not in name and "lease" not in name] == \
        [name for name in before if "lock" not in name and "lease" not in name]


def test_a_removal_that_was_cut_short_can_be_finished(project, state):
    options, folder = state
    run(project, options, "one")
    project.ok(*options, "rm", "one")
    rest = folder / "runs" / "one" / "events"
    rest.mkdir(parents=True)
    (rest / "000000000007.json").write_text("{}")
    project.ok(*options, "rm", "one")
    assert not (folder / "runs" / "one").exists()
    # Or the id is used again.
    rest.mkdir(parents=True)
    (rest / "000000000002.json").write_text("{}")
    run(project, options, "one")
    assert runs(project, options) == {"one"}


def test_checkpoints_beneath_checkpoint_url_stay(project, state):
    options, _ = state
    kept = project.root / "checkpoints"
    project.write(checkpoint={"url": str(kept)})
    run(project, options, "one")
    (kept / "one" / "attempt-1").mkdir(parents=True, exist_ok=True)
    (kept / "one" / "attempt-1" / "model").write_text("weights")
    project.ok(*options, "rm", "one")
    assert (kept / "one" / "attempt-1" / "model").read_text() == "weights"


def test_prune_takes_what_ended_long_enough_ago_and_says_which(project, state):
    options, _ = state
    for name in ("old", "young"):
        run(project, options, name)
    nothing = project.ok(*options, "list", "--prune", "30d")
    assert "30d" in nothing.err and nothing.out == ""
    assert runs(project, options) == {"old", "young"}
    result = project.ok(*options, "--json", "list", "--prune", "0s")
    assert {line["run"] for line in result.lines} == {"old", "young"}
    assert runs(project, options) == set()


def test_prune_by_age(project, state, tmp_path):
    options, _ = state
    env = crash.clock_env(crash.other_clock(tmp_path), -2 * 3600)
    result = project.stoker(*options, "run", project.spec_path, "--id", "old", env=env)
    assert result.code == 0, str(result)
    run(project, options, "young")
    result = project.ok(*options, "list", "--prune", "1h")
    assert "removed old" in result.out and "young" not in result.out
    assert runs(project, options) == {"young"}


@pytest.mark.parametrize("age", ["", "soon", "-1d", "30", "1y"])
def test_an_age_that_is_none(project, age):
    result = project.stoker("list", "--prune", age)
    assert result.code == 2 and "30d" in result.cure
    assert not project.state.exists()


def test_failed_and_stopped_runs_are_finished_too(project, state):
    options, _ = state
    project.extra("def start(args):\n    raise SystemExit('no data')\n")
    run(project, options, "failed", code=1)
    line, = project.ok(*options, "--json", "rm", "failed").lines
    assert line["state"] == "failed"


def test_rm_where_nothing_is_creates_nothing(project):
    assert project.stoker("rm", "one").code == 9
    assert project.ok("list", "--prune", "1d").out == ""
    assert not project.state.exists()


def test_rm_of_a_workspace_of_its_own(project, state):
    options, folder = state
    workspace = project.root / "elsewhere"
    project.write(workspace=str(workspace))
    run(project, options, "one")
    agents = listing(workspace / "agents")
    project.ok(*options, "rm", "one")
    assert not (workspace / "runs" / "one").exists()
    assert listing(workspace / "agents") == agents
    assert json.loads(project.ok(*options, "--json", "list").out or "{}") == {}
    assert not (folder / "runs" / "one").exists()


# ---- what is nowhere else ----------------------------------------------------------

TENSORS = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
WHOLE = len(TENSORS).to_bytes(8, "little") + TENSORS + bytes(8)
SAVES = f"""
import os, pathlib


def end(args):
    if os.environ["STOKER_PHASE"] != "train":
        return
    root = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"])
    for step, size in ((3, 1000), (6, 40), (9, 1000)):  # that of step 6 is cut off
        (root / f"checkpoint-{{step}}").mkdir()
        (root / f"checkpoint-{{step}}/model.safetensors").write_bytes({WHOLE!r}[:size])
    if {{output!r}}:
        folder = pathlib.Path(os.environ["STOKER_OUTPUT_DIR"]) / "deep/er"
        folder.mkdir(parents=True)
        (folder / "embeddings.bin").write_bytes(b"x" * 3000)
"""


@pytest.fixture
def saved(project, state):
    """A finished run with two whole checkpoints and an output; where they are."""
    options, folder = state

    def go(*, output=True, **spec):
        project.extra(SAVES.replace("{output!r}", repr(output)))
        project.write(**spec)
        run(project, options, "one")
        return folder / "workspace/runs/one/train-1"
    return go


def files(folder) -> dict:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_only_copies_stay_and_are_named(project, state, saved):
    options, folder = state
    where = saved()
    before, output = files(where.parent), where.parent / "outputs/train-1"
    line, = project.ok(*options, "--json", "rm", "one", "--dry-run").lines
    assert line["removed"] is False and line["files"] > 3 and line["size_bytes"] > 100
    assert files(where.parent) == before and runs(project, options) == {"one"}, "nothing was changed"
    said = project.ok(*options, "rm", "one", "--dry-run").out
    assert said.startswith("would remove one: fake, succeeded at 20") and "checkpoint-9" in said, said
    done = project.ok(*options, "rm", "one")
    assert f"{line['files']} files" in done.out, done.out
    for step in (3, 9):
        assert f"checkpoint of step {step}" in done.out and str(where / f"checkpoints/checkpoint-{step}") in done.out
    assert str(output) in done.out and "2.9 KiB" in done.out
    assert "--with-checkpoints" in done.err
    left = files(where.parent)
    assert set(left) == {f"train-1/checkpoints/checkpoint-{step}{end}" for step in (3, 9)
                         for end in ("/model.safetensors", ".stoker.json")} | {
                             "outputs/train-1/node-0/deep/er/embeddings.bin"}
    assert all(left[name] == before[name] for name in left)
    assert runs(project, options) == set()
    kept = [(row["what"], row.get("step"), row["url"], row["files"], row["size_bytes"]) for row in line["kept"]]
    assert sorted(kept, key=str) == sorted([
        ("checkpoint", 3, str(where / "checkpoints/checkpoint-3"), 1, len(WHOLE)),
        ("checkpoint", 9, str(where / "checkpoints/checkpoint-9"), 1, len(WHOLE)),
        ("output", None, str(output), 1, 3000)], key=str)


def test_they_go_when_that_is_asked_for_now_or_later(project, state, saved):
    options, folder = state
    where = saved()
    project.ok(*options, "rm", "one")
    assert where.exists()
    # A run of that id would take them for its own.
    again = project.stoker(*options, "run", project.spec_path, "--id", "one")
    assert again.code == 3 and "kept" in again.err and "--with-checkpoints" in again.cure, again
    assert project.ok(*options, "rm", "one").out.count("kept:") == 3, "still there, still said"
    line, = project.ok(*options, "--json", "rm", "one", "--with-checkpoints").lines
    assert line["kept"] == [] and line["removed"] is True and line["size_bytes"] >= 3000
    assert not where.exists() and not (folder / "runs" / "one").exists()
    run(project, options, "one")
    project.ok(*options, "rm", "one", "--with-checkpoints")
    assert not (folder / "workspace/runs/one").exists()


def test_what_has_a_copy_beneath_checkpoint_url_goes(project, state, saved, tmp_path):
    options, _ = state
    where = saved(output=False, checkpoint={"url": str(tmp_path / "kept")})
    copies = files(tmp_path / "kept")
    assert any("checkpoint-9" in name for name in copies)
    done = project.ok(*options, "rm", "one")
    assert "kept" not in done.out and not where.exists()
    assert files(tmp_path / "kept") == copies


def test_a_copy_that_is_damaged_is_none(project, state, saved, tmp_path):
    options, _ = state
    where = saved(output=False, checkpoint={"url": str(tmp_path / "kept")})
    copy, = (tmp_path / "kept").rglob("checkpoint-9/model.safetensors")
    copy.write_bytes(copy.read_bytes()[:-3])
    done = project.ok(*options, "rm", "one").out
    assert done.count("kept:") == 1 and "step 9" in done, done
    assert list(where.rglob("checkpoint-9/model.safetensors"))


def test_prune_keeps_them_too(project, state, saved):
    options, _ = state
    where = saved()
    dry, = project.ok(*options, "--json", "list", "--prune", "0s", "--dry-run").lines
    assert runs(project, options) == {"one"} and len(dry["kept"]) == 3
    done = project.ok(*options, "list", "--prune", "0s").out
    assert done.count("kept:") == 3 and (where / "checkpoints/checkpoint-9").is_dir()
    assert project.stoker("list", "--dry-run").code == 2


def test_no_link_makes_something_of_others_an_only_copy_or_is_followed(project, state, saved):
    options, folder = state
    where = saved()
    outside = project.root / "outside"
    outside.mkdir()
    (outside / "checkpoint-5").mkdir()
    (outside / "checkpoint-5/model.safetensors").write_bytes(WHOLE)
    (where / "checkpoints" / "checkpoint-5").symlink_to(outside / "checkpoint-5")
    (where.parent / "train-2").symlink_to(outside)
    (where.parent / "outputs/train-2").symlink_to(outside)
    done = project.ok(*options, "rm", "one").out
    assert "checkpoint-5" not in done and "outside" not in done
    assert (outside / "checkpoint-5/model.safetensors").read_bytes() == WHOLE
    assert not (where.parent / "outputs/train-2").is_symlink()
    assert not (where.parent / "train-2").is_symlink() and not (where / "checkpoints/checkpoint-5").is_symlink()


@pytest.mark.parametrize("seed", range(6))
def test_a_removal_that_is_killed_leaves_the_run_or_nothing(project, state, seed):
    options, folder = state
    run(project, options, "one")
    events = project.ok(*options, "events", "one").lines
    delay = random.Random(seed).uniform(0.0, 0.12)
    process = project.start(*options, "rm", "one")
    time.sleep(delay)
    process.kill()
    process.communicate()
    listed = runs(project, options)
    if listed:
        assert project.ok(*options, "events", "one").lines == events
    again = project.stoker(*options, "rm", "one")
    assert again.code == 0 or (again.code == 9 and not listed), str(again)
    assert runs(project, options) == set()
    for path in (folder / "runs" / "one", folder / "workspace" / "runs" / "one"):
        assert not path.exists()
