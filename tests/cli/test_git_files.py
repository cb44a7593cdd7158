"""What lies beneath .git is anybody's: it is read in a process of its own, with a deadline,
and only if it belongs to the user."""

import os
import resource
import subprocess

import pytest
import stoker as cli
from test_source import git, work_tree  # noqa: F401  the fixture


@pytest.fixture
def committed(work_tree):  # noqa: F811
    git(work_tree, "add", "-A")
    git(work_tree, "commit", "-q", "--allow-empty", "-m", "all of it")
    return work_tree


def refused(project):
    result = project.stoker("plan", project.spec_path)
    assert result.code == 4, str(result)
    return result


def test_a_fifo_beneath_git_keeps_nobody_waiting(committed):
    path = committed.source / ".git" / "index"
    path.unlink()
    os.mkfifo(path)
    result = refused(committed)
    assert str(committed.source) in result.err and ".git" in result.cure
    assert committed.ok("--json", "list").lines == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_user_is_read_only_if_the_user_says_so(committed, tmp_path):
    for top, folders, files in os.walk(committed.source):
        for one in [top, *(os.path.join(top, each) for each in folders + files)]:
            os.chown(one, 12345, 12345, follow_symlinks=False)
    result = refused(committed)
    assert "another user" in result.err and "safe.directory" in result.cure
    home = tmp_path / "home-of-one-who-trusts"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {committed.source}\n")
    trusting = committed.stoker("plan", committed.spec_path, env=committed.env(HOME=str(home)))
    assert trusting.code == 0, str(trusting)


def test_a_deep_tree_needs_one_descriptor_a_level(project):
    depth = 400
    deep = project.source
    for _ in range(depth):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "end.py").write_text("end = True\n")

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (depth + 100, depth + 100))

    done = subprocess.run([cli.BINARY, "--json", "plan", str(project.spec_path)], preexec_fn=few, text=True,
                          env=project.env(), capture_output=True, timeout=cli.SECONDS)
    assert done.returncode == 0, done.stderr
    cli.check(["--json", "plan"], done.stdout)


CORES = """
import resource


def start(args):
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    print("CORES", "none" if soft == 0 else "all" if soft == hard else soft, flush=True)
"""


@pytest.mark.parametrize("wanted, said", [(None, "none"), ("true", "all")])
def test_core_dumps_are_off_unless_the_spec_wants_them(project, wanted, said):
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        pytest.skip("this machine allows no core dumps at all")
    project.extra(CORES)
    project.run(*(["--set", f"resources.core_dumps={wanted}"] if wanted else []))
    assert f"CORES {said}" in project.logs("--phase", "train")


def test_a_file_that_may_not_grow_is_an_error_and_no_signal(project):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    done = subprocess.run([cli.BINARY, "run", str(project.spec_path)], preexec_fn=small, text=True,
                          env=project.env(), capture_output=True, timeout=cli.SECONDS)
    assert done.returncode > 0, f"killed by signal {-done.returncode}"
    assert "error:" in done.stderr
