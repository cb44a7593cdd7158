"""kill -9 of the driver at moments drawn from fixed seeds, over all phases and
several runs at a time, its successors too: the run is finished all the same,
and every phase took effect exactly once."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import crash
import pytest

KILLED = 60
AT_A_TIME = 6


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    site = crash.Site(tmp_path_factory.mktemp("kills"))
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        runs = [site.one(f"killed-{seed}") for seed in range(KILLED)]
        yield [(run, pool.submit(crash.play, run, run.id)) for run in runs]


@pytest.mark.parametrize("seed", range(KILLED))
def test_a_run_whose_driver_is_killed_is_finished_once(stories, seed):
    run, fates = stories[seed]
    fates.result()
    crash.check_once(run)


def test_the_moments_lie_in_all_phases(stories, record_property):
    met = sum((fates.result() for _, fates in stories), Counter())
    print(f"{sum(met.values())} kills: {dict(met)}")
    record_property("kills", dict(met))
    assert sum(met.values()) >= KILLED * 0.8, met
    for event in ("run.created", "attempt.intended precompile", "attempt.submitted precompile",
                  "attempt.claimed precompile", "attempt.intended train",
                  "attempt.submitted train", "attempt.claimed train"):
        assert met[event] > 0, f"never killed after {event}: {met}"


def test_the_same_id_again_adds_nothing(stories):
    run, fates = stories[0]
    fates.result()
    before = len(run.events())
    assert run.drive().wait() == 0
    assert len(run.events()) == before
