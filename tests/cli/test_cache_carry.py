"""`cache pull` and `cache push` between directories: what goes along, what is said of it, and
that the copy is as warm as the original."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from stoker import BINARY, environment, stoker

SUPPORT = Path(__file__).resolve().parents[1] / "support"


def carry(*argv, code=0):
    result = stoker("--json", "cache", *argv)
    assert result.code == code, str(result)
    *rows, total = result.lines
    return rows, total


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and not path.name.startswith(".stk-tmp-")}


@pytest.fixture
def cache(tmp_path):
    """Graphs of both kinds, with what does not travel."""
    module = tmp_path / "cache/neuronxcc-2.15.128+abc/MODULE_123+0a1b2c3d"
    module.mkdir(parents=True)
    (module / "model.neff").write_bytes(b"n" * 3000)
    (module / "model.done").write_bytes(b"")
    (module / "model.hlo_module.pb").write_bytes(b"graph")
    (module / "model.hlo_module.pb.lock").write_bytes(b"")
    (tmp_path / "cache/jit_f-aa-cache").write_bytes(b"jax")
    (tmp_path / "cache/stoker/claims").mkdir(parents=True)
    (tmp_path / "cache/stoker/claims/k.json").write_text("{}")
    (tmp_path / "cache/stoker/k.json").write_text("{}")
    return tmp_path / "cache"


STAY = ("neuronxcc-2.15.128+abc/MODULE_123+0a1b2c3d/model.hlo_module.pb.lock", "stoker/claims/k.json")


@pytest.mark.parametrize("command", ["pull", "push"])
def test_all_but_locks_and_claims_goes_along(cache, tmp_path, command):
    rows, total = carry(command, cache, tmp_path / "copy")
    expected = {key: content for key, content in files(cache).items() if key not in STAY}
    assert files(tmp_path / "copy") == expected
    assert {row["path"] for row in rows} == set(expected) and {row["action"] for row in rows} == {"moved"}
    assert total == {"dry_run": False, "moved": 5, "moved_bytes": 3010, "unchanged": 0, "unchanged_bytes": 0,
                     "refused": 0, "failed": 0}
    rows, total = carry(command, cache, tmp_path / "copy")
    assert rows == [] and total["moved"] == 0 and total["unchanged"] == 5


def test_a_dry_run_tells_and_does_nothing(cache, tmp_path):
    rows, total = carry("pull", cache, tmp_path / "copy", "--dry-run")
    assert total["dry_run"] and total["moved"] == 5 and {row["action"] for row in rows} == {"move"}
    assert not (tmp_path / "copy").exists()
    said = stoker("cache", "pull", cache, tmp_path / "copy", "--dry-run")
    assert "model.neff" in said.out and "to move: 5 objects" in said.out


def test_only_what_begins_so(cache, tmp_path):
    carry("push", cache, tmp_path / "copy", "--only", "stoker/")
    assert list(files(tmp_path / "copy")) == ["stoker/k.json"]
    for wrong in ("../", "a//b", "/etc"):
        assert stoker("cache", "push", cache, tmp_path / "copy", "--only", wrong).code == 2


def test_what_cannot_be_a_file_is_told_and_the_rest_goes_on(cache, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/stoker").write_text("a file where a folder must be")
    said = stoker("cache", "pull", cache, tmp_path / "copy")
    assert said.code == 0 and "refused: 1" in said.out
    assert "stoker/k.json" in said.err and "a folder must be" in said.err
    assert len(files(tmp_path / "copy")) == 5
    rows, total = carry("pull", cache, tmp_path / "copy")
    assert total["refused"] == 1 and rows[0]["action"] == "refused" and rows[0]["why"]


@pytest.fixture(scope="session")
def case_blind(tmp_path_factory):
    """A directory whose names are compared without regard to case, as on some file systems."""
    library = tmp_path_factory.mktemp("library") / "case_blind.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", library,
                    SUPPORT / "case_blind.c"], check=True)
    linked = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout
    first = re.findall(r"=> (\S*libasan\S*)", linked)  # it wants to be the first library
    return lambda folder: environment(LD_PRELOAD=" ".join([*first, str(library)]), CASE_BLIND=str(folder))


def test_names_that_are_one_here_do_not_overwrite_each_other(tmp_path, case_blind):
    names = ["Dir/a", "dir/b", "x/File", "x/file", "x/other", "x/FILE.d/1", "x/file.D/2"]
    for name in names:
        path = tmp_path / "from" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    for _ in range(2):
        result = stoker("--json", "cache", "pull", tmp_path / "from", tmp_path / "to", env=case_blind(tmp_path / "to"))
        assert result.code == 0, str(result)
        assert {row["path"] for row in result.lines if row.get("action") == "refused"} == \
            {"dir/b", "x/file", "x/file.D/2"}
        assert files(tmp_path / "to") == {name: name.encode() for name in ("Dir/a", "x/File", "x/FILE.d/1", "x/other")}
    assert result.lines[-1]["unchanged"] == 4
    result = stoker("--json", "cache", "pull", tmp_path / "from", tmp_path / "to")
    assert result.lines[-1]["moved"] == 3  # elsewhere they are names of their own


def test_names_cannot_steer_a_terminal(cache, tmp_path):
    (cache / "jit_\x1b[31mred-cache").write_bytes(b"x")
    said = stoker("cache", "pull", cache, tmp_path / "copy", "-v")
    assert "\x1b" not in said.text and "\\x1b" in said.out


@pytest.mark.parametrize(("argv", "words"), [
    (("pull", "CACHE", "s3://bucket/x"), "is not a directory"),
    (("push", "s3://bucket/x", "COPY"), "is not a directory"),
    (("pull", "NOWHERE", "COPY"), "no cache directory"),
    (("push", "NOWHERE", "COPY"), "no cache directory"),
    (("pull", "CACHE", "CACHE"), "one directory"),
    (("push", "CACHE", "CACHE/below"), "lies in the other"),
])
def test_what_makes_no_sense_is_refused(cache, tmp_path, argv, words):
    names = {"CACHE": str(cache), "COPY": str(tmp_path / "copy"), "NOWHERE": str(tmp_path / "nowhere")}
    argv = [word.replace("CACHE", str(cache)) if "CACHE" in word else names.get(word, word) for word in argv]
    before = files(cache)
    said = stoker("cache", *argv)
    assert said.code == 4 and words in said.err and said.cure, str(said)
    assert files(cache) == before and not (tmp_path / "copy").exists()


def test_the_copy_is_as_warm_as_the_original(project):
    project.run()
    assert project.plan()["cache"]["verdict"] == "warm"
    copy = project.root / "copy"
    carry("push", project.cache, copy)
    shutil.rmtree(project.cache)
    os.mkdir(project.cache)
    assert project.plan()["cache"]["verdict"] == "cold"
    carry("pull", copy, project.cache)
    assert project.plan()["cache"]["verdict"] == "warm"
    project.ok("cache", "verify", project.cache)
