"""The model that a training begins from: pinned before the run exists, brought to each attempt of phase 1 and of
the training, proved there, and in no key."""

import json
import os
from pathlib import Path

import pytest
from project import Project

DATA = Path(__file__).resolve().parent / "data"
# Each attempt says from what it began. The first of the training saves, and fails; the second resumes.
BEGINS = """
import json, os, pathlib
parent = os.environ.get("STOKER_INIT_FROM")
with open(os.environ["EFFECTS"], "a") as file:
    print(os.environ["STOKER_PHASE"], os.environ["STOKER_ATTEMPT"], parent,
          os.environ.get("STOKER_RESUME_FROM", "-"), file=file)
if parent: assert pathlib.Path(parent).exists()
def start(args):
    resumed = os.environ.get("STOKER_RESUME_FROM")
    return int(resumed.rsplit("-", 1)[1]) if resumed else 0
def step(number, args):
    if os.environ["STOKER_PHASE"] != "train" or number != 5: return
    folder = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"], "step-5")
    if folder.exists(): return
    folder.mkdir()
    (folder / "state.json").write_text("{}")
    (folder / "meta.json").write_text(json.dumps({"step": 5, "state_bytes": 2}))
def end(args):
    if os.environ["STOKER_PHASE"] == "train" and os.environ["STOKER_ATTEMPT"] == "1": os.kill(os.getpid(), 9)
"""


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path)
    made.extra(BEGINS)
    effects = tmp_path / "effects"
    made.write(env={"EFFECTS": str(effects)}, workspace=str(tmp_path / "workspace"))
    made.began = lambda: [line.split() for line in effects.read_text().splitlines()]
    made.model = tmp_path / "models" / "base.pt"
    made.model.parent.mkdir()
    return made


def torch_file(to: Path) -> None:
    """What PyTorch itself has written, on another device and with another number of processes."""
    to.write_bytes(bytes.fromhex((DATA / "torch-save-cuda-16.hex").read_text()))


def test_a_file_of_torch_is_the_parent_of_every_attempt(project):
    torch_file(project.model)
    project.write(parent={"from": str(project.model)})
    project.run("--id", "one")
    began = project.began()
    assert [row[:2] for row in began] == [["precompile", "1"], ["train", "1"], ["train", "2"]]
    assert {row[2] for row in began} == {str(project.model)}
    assert began[1][3] == "-" and began[2][3].endswith("/step-5")  # this run's own
    given = project.events("one", "run.created")[0]["inputs"]["parent"]
    assert given["url"] == str(project.model) and given["kind"] == "files"
    pin = json.loads((project.root / f"workspace/pins/{given['digest']}.json").read_text())
    assert pin["files"][0]["size"] == project.model.stat().st_size and pin["url"] == given["url"]
    # The next week's parent is another one: the cache is warm all the same, and so is the plan the same.
    first = project.events("one", "run.created")[0]
    project.model.write_bytes(project.model.read_bytes())
    other = project.model.with_name("other.safetensors")
    body = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    other.write_bytes(len(body).to_bytes(8, "little") + body + b"\0" * 4)
    project.write(parent={"from": str(other)})
    project.run("--id", "two")
    assert project.attempts("two") == [("train", 1), ("train", 2)]
    second = project.events("two", "run.created")[0]
    assert second["inputs"]["parent"]["digest"] != given["digest"]
    assert second["plan"]["compile"]["graph_key"] == first["plan"]["compile"]["graph_key"]
    # The same id goes on with what it was given first, and does not look at the model again.
    other.unlink()
    assert project.run("--id", "two").code == 0


def test_a_damaged_parent_is_refused_before_there_is_a_run(project):
    torch_file(project.model)
    whole = project.model.read_bytes()
    for broken in (whole[:-1], whole[: len(whole) // 2], b""):
        project.model.write_bytes(broken)
        project.write(parent={"from": str(project.model)})
        result = project.run("--id", "one", code=4)
        assert "base.pt" in result.err and "'parent'" in result.cure
        assert project.stoker("status", "one").code == 9
    project.model.unlink()
    assert "not found" in project.run("--id", "one", code=4).err


def test_a_parent_that_changes_ends_the_run_with_its_file(project):
    torch_file(project.model)
    # Phase 1 itself changes the model: before the training it is no longer what the run was given.
    project.extra(BEGINS + f"""
if os.environ["STOKER_PHASE"] == "precompile":
    with open({str(project.model)!r}, "r+b") as file:
        file.seek(40); file.write(b"x")
""")
    project.write(parent={"from": str(project.model)})
    result = project.run("--id", "one", code=4)
    assert "'base.pt' has changed" in result.text, result
    assert project.status("one")["state"] == "refused"
    ended = project.events("one", "attempt.ended")[-1]
    assert ended["phase"] == "train" and ended["attempt"] == 1 and ended["class"] == "quota-permission"


def nxd(folder: Path, dp: int, tp: int, torch: bytes) -> None:
    for part, ranks in (("model", 1), ("optim", dp)):
        (folder / part).mkdir(parents=True)
        for data in range(ranks):
            for tensor in range(tp):
                (folder / part / f"dp_rank_{data:02}_tp_rank_{tensor:02}_pp_rank_00.pt").write_bytes(torch)
    (folder / "checkpoint").write_text("1")
    (folder / "done").write_text("1")


def test_shards_of_another_world_size_are_refused_before_a_job(project):
    torch_file(project.model)
    folder = project.model.with_name("step_100")
    nxd(folder, 4, 2, project.model.read_bytes())
    bin_ = project.root / "bin"
    bin_.mkdir()
    (bin_ / "torchrun").write_text('#!/bin/sh\nshift\nexec /usr/bin/python3 "$@"\n')
    os.chmod(bin_ / "torchrun", 0o755)
    project.write(command=[str(bin_ / "torchrun"), "--nproc_per_node=16", "train.py"],
                  parent={"from": str(folder)})
    result = project.run("--id", "one", code=4)
    assert "saved by 8 processes" in result.err and "16" in result.err and "parent.reshard" in result.cure
    assert project.stoker("status", "one").code == 9
    project.write(parent={"from": str(folder), "reshard": True})
    project.run("--id", "one")
    project.write(command=[str(bin_ / "torchrun"), "--nproc_per_node=8", "train.py"], parent={"from": str(folder)})
    project.run("--id", "two")
    # The marks of its own checkpoints tell the world size.
    mark = json.loads(next(project.root.glob("workspace/runs/two/train-1/checkpoints/*.stoker.json")).read_text())
    assert mark["world_size"] == 8


def test_the_promoted_version_is_the_parent_if_the_spec_says_so(project):
    torch_file(project.model)
    project.write(parent={"from": "promoted", "first": str(project.model)})
    # While nothing is promoted, there is parent.first.
    project.run("--id", "one")
    first = project.events("one", "run.created")[0]["inputs"]
    assert first["parent"]["url"] == str(project.model) and "generation" not in first["parent"]
    project.ok("promote", "one", "--force", "--reason", "the first")
    project.run("--id", "two")
    given = project.events("two", "run.created")[0]["inputs"]
    assert given["parent"]["generation"] == given["pointer"]["generation"] == 1
    model = Path(given["parent"]["url"])
    assert "versions/one/model/" in str(model) and model.name == "step-5"
    assert [row[2] for row in project.began()[-2:]] == [str(model)] * 2
    # One byte of it flipped: every byte is summed before the command begins.
    state = model / "state.json"
    state.chmod(0o600)
    state.write_bytes(b"[]")
    result = project.run("--id", "three", code=4)
    assert "'state.json' has changed" in result.text
    assert project.attempts("three") == [("train", 1)]
