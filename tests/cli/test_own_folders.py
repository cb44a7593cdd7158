"""What is no source: folders that stoker writes, what tools leave behind, other specs. And the
cure where a new file made the cache cold that no graph depends on."""

import json
import os
import re
import sqlite3
import subprocess
import tarfile

import pytest
import yaml


def git(project, *argv):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
           "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@example.com"}
    subprocess.run(["git", "-C", str(project.source), *argv], env=env, check=True, capture_output=True)


@pytest.fixture(params=["plain", "git"])
def within(request, project):
    """A project that keeps all that stoker writes in its own folder; perhaps under git."""
    project.write(workspace="./ws", checkpoint={"url": "./saved"},
                  compile={"kind": "jax", "cache_url": "./graphs", "max_steps": 2})
    if request.param == "git":
        git(project, "init", "-q", "-b", "main")
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", "first")
    project.commit = lambda: request.param == "git" and git(project, "commit", "-aqm", "next")
    return project


def go(project, state="mine"):
    return project.stoker("--state", state if ":" in str(state) else project.source / state, "run", project.spec_path)


def look(project, state="mine"):
    result = project.stoker("--state", state if ":" in str(state) else project.source / state, "--json", "plan", project.spec_path)
    assert result.code == 0, str(result)
    return result.lines[0]


def packed(project, *first):
    """The names of what a run of this spec takes along."""
    ran = project.stoker(*first, "run", project.spec_path)
    assert ran.code == 0, str(ran)
    created = next(row for row in project.ok(*first, "events", "@last").lines if row["event"] == "run.created")
    with tarfile.open(os.path.join(created["plan"]["workspace"], created["plan"]["source"]["bundle"])) as bundle:
        return set(bundle.getnames())


def facts(plan):
    return plan["source"]["files"], plan["source"]["digest"], plan["source"]["dirty"]


def test_no_folder_that_is_written_is_source(within):
    before = facts(look(within))
    first = go(within)
    assert first.code == 0, str(first)
    saved = within.source / "saved" / "step-7"
    saved.mkdir(parents=True, exist_ok=True)
    (saved / "weights.bin").write_bytes(b"w" * 100)
    assert (within.source / "ws").is_dir() and (within.source / "graphs").is_dir()
    after = look(within)
    assert facts(after) == before
    assert after["cache"]["verdict"] == "warm"


def test_nor_are_those_of_earlier_specs(within):
    assert go(within).code == 0
    (within.source / "saved").mkdir(exist_ok=True)
    (within.source / "saved" / "old.bin").write_bytes(b"w" * 100)
    within.write(workspace="./ws2", checkpoint={"url": "./saved2"},
                 compile={"kind": "jax", "cache_url": "./graphs2", "max_steps": 2})
    within.commit()
    assert packed(within, "--state", within.source / "mine") == {"stoker.yaml", "train.py"}


@pytest.mark.parametrize("kind", ["", "dir:"])
def test_nor_is_an_earlier_state_directory(within, kind):
    mine = within.source / "mine"
    assert go(within, f"{kind}{mine}").code == 0
    assert (mine / ("journal.json" if kind else "journal.db")).exists()
    assert packed(within, "--state", within.source / "other") == {"stoker.yaml", "train.py"}


@pytest.mark.parametrize("kind", ["", "dir:"])
def test_nor_is_one_in_which_no_run_ever_was(within, kind):
    mine = within.source / "mine"
    refused = within.stoker("--state", f"{kind}{mine}", "run", within.spec_path, "--set", "secrets.TOKEN=env:STK_TEST_UNSET")
    assert refused.code == 4 and mine.is_dir(), str(refused)
    assert packed(within, "--state", within.source / "other") == {"stoker.yaml", "train.py"}


def test_a_journal_of_somebody_else_is_source(project):
    folder = project.source / "diary"
    folder.mkdir()
    (folder / "journal.json").write_text('{"v": 2, "entries": []}')
    with sqlite3.connect(folder / "journal.db") as journal:
        journal.execute("CREATE TABLE entry(day TEXT)")
    assert {"diary/journal.json", "diary/journal.db"} <= packed(project)


def test_a_checkpoint_folder_that_is_the_source_is_refused(project):
    project.write(checkpoint={"url": "."})
    result = project.run(code=4)
    assert "both the source folder and a folder of stoker" in result.err and "hint:" in result.err


@pytest.mark.parametrize("under_git", [False, True])
def test_leavings_of_tools_are_no_source(project, under_git):
    if under_git:
        git(project, "init", "-q", "-b", "main")
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", "first")
    before = facts(project.plan())
    for name in ("__pycache__/train.cpython-311.pyc", ".venv/bin/python", "pkg/__pycache__/x.pyc", ".ipynb_checkpoints/a.ipynb",
                 "env-of-mine/pyvenv.cfg", "env-of-mine/lib/x.py", ".pytest_cache/v", "node_modules/x/index.js", ".DS_Store"):
        path = project.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert facts(project.plan()) == before


def test_what_the_user_takes_back_or_tracks_is_source(project):
    (project.source / ".venv").mkdir()
    (project.source / ".venv" / "wanted.py").write_text("x = 1\n")
    assert packed(project) == {"stoker.yaml", "train.py"}
    (project.source / ".gitignore").write_text("!.venv/\n")
    assert packed(project) == {"stoker.yaml", "train.py", ".gitignore", ".venv/wanted.py"}
    (project.source / ".gitignore").unlink()
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "add", "-f", ".venv")
    git(project, "commit", "-q", "-m", "first")
    assert packed(project) == {"stoker.yaml", "train.py", ".venv/wanted.py"}


def test_other_specs_are_no_part_of_the_key(project):
    project.run()
    (project.source / "large.yaml").write_text(yaml.safe_dump({**project.spec, "name": "large"}))
    (project.source / "broken.yml").write_text("version: 1\nname: x\ncommand: [a]\nnosuch: 2\n")
    assert project.plan()["cache"]["verdict"] == "warm"
    (project.source / "model.yaml").write_text("layers: 12\nname: small\n")
    plan = project.plan()
    assert plan["cache"]["verdict"] == "cold"
    assert [row["field"] for row in plan["cache"]["changed"]] == ["source:model.yaml"]
    assert "hint" not in plan["cache"]


def line_of(text):
    found = re.search(r"source: (\{include: (\[.*\])\})", text)
    assert found, text
    return json.loads(found[2])


@pytest.mark.parametrize("name", ["NOTES.md", "run.log", "curve.png", "sub/[odd] name.csv", "LICENSE"])
def test_a_new_file_that_decides_nothing_has_a_cure_that_works(project, name):
    (project.source / "README.md").write_text("read me\n")
    project.run()
    (project.source / name).parent.mkdir(exist_ok=True)
    (project.source / name).write_text("words\n")
    plan = project.plan()
    assert plan["cache"]["verdict"] == "cold" and name in plan["cache"]["hint"]
    why = project.ok("cache", "why", project.spec_path)
    include = line_of(why.out + why.err)
    assert include == line_of(project.ok("plan", project.spec_path).out)
    project.write(source={"include": include})
    assert project.plan()["cache"]["verdict"] == "warm"


def test_a_new_program_has_no_such_cure(project):
    project.run()
    (project.source / "layers.py").write_text("x = 1\n")
    assert "hint" not in project.plan()["cache"]
    assert "source.include" not in str(project.ok("cache", "why", project.spec_path))


def test_git_and_stoker_agree_on_what_is_ignored(project):
    """Also where a rule takes back one of another file, which libgit2 1.5 does not see."""
    files = {".gitignore": "*.json\n/data/*\n!/data/keep\nbuild/\n*.tmp\n!important.tmp\n\\#odd\n", "sub/.gitignore": "!keep.json\n/deep\n",
             "sub/keep.json": "", "sub/other.json": "", "data/x": "", "data/keep/y": "", "data/keep/z.json": "", "build/out.py": "",
             "sub/build/out": "", "a.tmp": "", "important.tmp": "", "#odd": "", "sub/deep/f": "", "sub/more/deep/f": "",
             "sub/more/.gitignore": "*\n!.gitignore\n!*/\n!*.py\n", "sub/more/x.py": "", "sub/more/x.txt": "", "sub/more/in/y.py": ""}
    for name, text in files.items():
        path = project.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    plain = packed(project)
    git(project, "init", "-q", "-b", "main")
    listed = subprocess.run(["git", "-C", str(project.source), "ls-files", "-co", "--exclude-standard", "-z"], check=True,
                            capture_output=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}).stdout.decode()
    assert plain == {name for name in listed.split("\0") if name}
    project.write(source={"allow_dirty": True})
    assert packed(project) == plain
