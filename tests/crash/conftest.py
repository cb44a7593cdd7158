"""What the crash tests need: a site of its own for each test."""

import crash
import pytest


@pytest.fixture
def site(tmp_path):
    return crash.Site(tmp_path / "site")
