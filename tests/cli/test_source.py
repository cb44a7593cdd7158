"""What exactly runs: a pinned commit or pinned content, unpacked anew for each
attempt."""

import os
import subprocess

import pytest


def git(project, *argv):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
           "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@example.com"}
    return subprocess.run(["git", "-C", str(project.source), *argv], env=env, check=True,
                          capture_output=True, text=True).stdout.strip()


@pytest.fixture
def work_tree(project):
    git(project, "init", "-q", "-b", "main")
    (project.source / ".gitignore").write_text("data/\n*.log\n")
    (project.source / "data").mkdir()
    (project.source / "data" / "big.bin").write_bytes(b"\0" * 1000)
    (project.source / "old.log").write_text("old\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "first")
    return project


LIST = """
import os


def start(args):
    found = sorted(os.path.relpath(os.path.join(top, name)) for top, _, names in os.walk(".") for name in names)
    print("FILES", " ".join(found), flush=True)
    with open("left-behind", "w") as left:
        left.write("x")
"""


def listed(project, phase="train"):
    line = next(line for line in project.logs("--phase", phase).splitlines() if line.startswith("FILES "))
    return [name for name in line.split()[1:] if "__pycache__" not in name]


def test_a_dirty_work_tree_is_refused_with_the_cure(work_tree):
    (work_tree.source / "train.py").write_text((work_tree.source / "train.py").read_text() + "# more\n")
    result = work_tree.run(code=4)
    assert "train.py" in result.err and "hint:" in result.err
    assert "allow_dirty" in result.err.split("hint:", 1)[1]
    assert work_tree.ok("--json", "list").lines == []


def test_an_untracked_file_is_dirt_too(work_tree):
    (work_tree.source / "new.py").write_text('"""New."""\n')
    result = work_tree.run(code=4)
    assert "new.py" in result.err


def test_allow_dirty_runs_what_is_there_and_keeps_the_patch(work_tree):
    work_tree.write(source={"allow_dirty": True})
    work_tree.extra("def start(args):\n    print('DIRTY RUN', flush=True)\n")
    work_tree.run()
    assert "DIRTY RUN" in work_tree.logs()
    created, = work_tree.events(kind="run.created")
    assert created["plan"]["source"]["dirty"] is True
    patches = list(work_tree.state.rglob("*.patch"))
    assert patches and "DIRTY RUN" in patches[0].read_text()


def test_a_clean_work_tree_runs_its_commit_and_says_which(work_tree):
    work_tree.run()
    created, = work_tree.events(kind="run.created")
    assert created["plan"]["source"]["commit"] == git(work_tree, "rev-parse", "HEAD")
    assert git(work_tree, "rev-parse", "HEAD")[:7] in work_tree.ok("plan", work_tree.spec_path).out


def test_what_git_ignores_does_not_travel(work_tree):
    work_tree.extra(LIST)
    git(work_tree, "add", "-A")
    git(work_tree, "commit", "-q", "-m", "list")
    work_tree.run()
    files = listed(work_tree)
    assert "train.py" in files
    assert not {"data/big.bin", "old.log", ".git/HEAD"} & set(files)


def test_gitignore_counts_in_a_plain_folder_too(project):
    (project.source / ".gitignore").write_text("*.log\n")
    (project.source / "old.log").write_text("old\n")
    project.extra(LIST)
    project.run()
    assert "old.log" not in listed(project)


def test_a_link_brings_an_ignored_folder_along(work_tree):
    work_tree.extra(LIST + "    print('SIZE', os.path.getsize('data/big.bin'), flush=True)\n")
    work_tree.write(source={"link": ["data/"]})
    git(work_tree, "add", "-A")
    git(work_tree, "commit", "-q", "-m", "link")
    work_tree.run()
    assert "SIZE 1000" in work_tree.logs()


def test_include_narrows_what_travels_and_what_counts_as_dirty(work_tree):
    work_tree.extra(LIST)
    work_tree.write(source={"include": ["*.py"]})
    git(work_tree, "add", "-A")
    git(work_tree, "commit", "-q", "-m", "include")
    (work_tree.source / "notes.txt").write_text("not included\n")
    work_tree.run()
    assert set(listed(work_tree)) == {"train.py", "extra.py"}


def test_each_attempt_starts_from_a_fresh_unpack(project):
    project.extra(LIST)
    project.run()
    assert "left-behind" not in listed(project, "precompile") + listed(project, "train")
    assert not (project.source / "left-behind").exists()


def test_an_older_commit_runs_by_its_revision(work_tree):
    first = git(work_tree, "rev-parse", "HEAD")
    work_tree.extra("def start(args):\n    print('SECOND', flush=True)\n")
    git(work_tree, "add", "-A")
    git(work_tree, "commit", "-q", "-m", "second")
    work_tree.run("--set", f"source.rev={first}")
    assert "SECOND" not in work_tree.logs()
    work_tree.run()
    assert "SECOND" in work_tree.logs()


def test_an_unknown_revision_is_named(work_tree):
    result = work_tree.run("--set", "source.rev=nosuch", code=3)
    assert "nosuch" in result.err and "hint:" in result.err


def test_hooks_of_the_repository_do_not_run(work_tree):
    hook = work_tree.source / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {work_tree.root}/hooked\n")
    hook.chmod(0o755)
    work_tree.run()
    assert not (work_tree.root / "hooked").exists()


def test_the_bundle_is_the_same_wherever_it_is_packed(project, tmp_path):
    project.run("--id", "a")
    other = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(project.source), str(other)], check=True)
    project.ok("run", other / "stoker.yaml", "--id", "b")
    digests = {project.events(run, "run.created")[0]["plan"]["source"]["digest"] for run in ("a", "b")}
    assert len(digests) == 1
