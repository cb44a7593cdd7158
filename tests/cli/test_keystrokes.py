"""Lines that people from other tools type first (keystrokes.txt): stoker does what they say, or names
the exact line that does, and that line then works."""

import re
import shlex
from datetime import timedelta
from pathlib import Path

import many_runs
import pytest
import stoker as cli
from project import Project

LINES = [line for line in Path(__file__).with_name("keystrokes.txt").read_text().splitlines()
         if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with runs that have ended: gpu-7 was made from the spec as it stands."""
    project = Project(tmp_path_factory.mktemp("keystrokes") / "project")
    project.write(command=["sh", "-c", "echo step: $N"], compile=None, hyperparameters=None, env={"N": "1"},
                  source={"path": ".", "include": ["train.py"]})
    project.run("--id", "gpu-7")
    rows = many_runs.later(many_runs.rows_of(project.state / "stoker", "gpu-7"), timedelta(hours=-1))
    many_runs.add(project.state / "stoker", {f"old-{number}": rows for number in (1, 2, 3)})
    return project


@pytest.mark.parametrize("line", LINES)
def test_it_does_that_or_names_the_line_that_does(project, line):
    line, _, code = line.partition(" !")
    keys, _, meant = line.partition(" => ")
    result = project.stoker(*shlex.split(keys))
    if not meant:
        assert result.code == 0, str(result)
        return
    assert result.code == 2 and not result.out, str(result)
    named = re.search(r"'(?:stoker )?(.*)'", result.cure)
    assert named and named[1] == meant, str(result)
    again = project.stoker(*shlex.split(named[1]))
    assert code == "*" or again.code == int(code or 0), str(again)


def test_there_are_enough_of_them():
    assert len(LINES) >= 60


def test_a_word_that_a_shell_would_read_is_not_put_into_a_line(project):
    result = project.stoker("cancel", "a;b\x1b")
    assert result.code == 2 and "stoker stop'" in result.cure and not cli.CONTROL.search(result.err), str(result)
