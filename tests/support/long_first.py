"""The longest tests of a part begin first: one that begins last keeps all other workers waiting for its end. For a
conftest.py:

    from long_first import pytest_collection_modifyitems

    @pytest.mark.long
    def test_that_takes_a_minute(): …"""

import os

import pytest


def spread(items, is_long, workers):
    """The same items. xdist's worksteal gives each worker an equal share in a row, so each share begins with long ones."""
    long, rest, found = [each for each in items if is_long(each)], [each for each in items if not is_long(each)], []
    for worker in range(workers):
        mine = long[worker::workers]
        size = (len(items) - len(found)) // (workers - worker)
        fill = max(0, size - len(mine))
        found, rest = found + mine + rest[:fill], rest[fill:]
    return found + rest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items[:] = spread(items, lambda item: item.get_closest_marker("long"),
                      int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
