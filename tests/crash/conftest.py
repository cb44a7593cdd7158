"""What the crash tests need: sites of their own for each test."""

import crash
import pytest


@pytest.fixture
def new_site(tmp_path):
    """new_site(…): as crash.Site, without the folder."""
    made = []

    def new(*args, **changes):
        made.append(crash.Site(tmp_path / f"site-{len(made)}", *args, **changes))
        return made[-1]

    yield new
    for site in made:
        site.clear()


@pytest.fixture
def site(new_site):
    return new_site()
