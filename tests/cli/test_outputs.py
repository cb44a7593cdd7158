"""What a command leaves in STOKER_OUTPUT_DIR, where the workspace is a directory: it lies there from the beginning."""

import json
import os

from project import Project

LEAVES = """
import os, pathlib
out = pathlib.Path(os.environ["STOKER_OUTPUT_DIR"])
(out / "deep").mkdir()
(out / "deep" / "result").write_text(os.environ["STOKER_PHASE"] + os.environ["STOKER_ATTEMPT"])
(out / "to").symlink_to("/etc")
if os.environ["STOKER_PHASE"] == "train" and os.environ["STOKER_ATTEMPT"] == "1": os.kill(os.getpid(), 9)
"""


def test_the_folder_is_in_the_workspace(tmp_path):
    project = Project(tmp_path)
    project.extra(LEAVES)
    workspace = tmp_path / "workspace"
    project.write(workspace=str(workspace))
    result = project.stoker("run", project.spec_path, "--id", "one")
    assert result.code == 0, result
    folder = workspace / "runs/one/outputs"
    # Phase 1 leaves none, and of each attempt there is its own.
    assert sorted(path.name for path in folder.iterdir()) == ["train-1", "train-2"]
    for attempt in (1, 2):
        assert (folder / f"train-{attempt}/node-0/deep/result").read_text() == f"train{attempt}"
        assert os.readlink(folder / f"train-{attempt}/node-0/to") == "/etc"
    status = json.loads(project.stoker("--json", "status", "one").out)
    assert status["outputs"] == {"url": str(folder / "train-2"), "phase": "train", "attempt": 2}
    assert f"outputs:    {folder / 'train-2'}\n" in project.stoker("status", "one").out
    assert str(folder / "train-2") in result.err + result.out
    # Without any there is nothing to tell.
    project.extra("")
    assert project.stoker("run", project.spec_path, "--id", "two").code == 0
    assert "outputs" not in json.loads(project.stoker("--json", "status", "two").out)
    assert project.stoker("rm", "one").code == 0 and (folder / "train-1/node-0/deep/result").exists()
    assert project.stoker("rm", "one", "--with-checkpoints").code == 0 and not (workspace / "runs/one").exists()
