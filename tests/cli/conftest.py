"""What every test of the command line needs: a project of its own."""

import pytest
from project import Project


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")
