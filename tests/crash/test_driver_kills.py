"""kill -9 of the driver at moments drawn from fixed seeds, over all phases and
several runs at a time, its successors too: the run is finished all the same,
and every phase took effect exactly once."""

import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import crash
import pytest

KILLED = int(os.environ.get("STOKER_TEST_KILLS", "60"))
AT_A_TIME = 6
HOUR = 3600

# Where a driver was when it died, by the newest event that it had journalled. One
# in two stories waits for one of these, so that the short phases are met as surely
# as the long ones.
PHASES = {
    "planned": ("start", "run.created", "driver.took_over", "cache.checked"),
    "precompile": ("attempt.intended precompile", "attempt.submitted precompile",
                   "attempt.claimed precompile", "attempt.started precompile", "compile.progress"),
    "verify": ("attempt.ended precompile", "cache.verified"),
    "train": ("attempt.intended train", "attempt.submitted train", "attempt.claimed train",
              "attempt.started train", "train.progress"),
    "ending": ("jit.compiled", "attempt.ended train", "run.ended train"),
}
EVENTS = [event for events in PHASES.values() for event in events]


def one_clock(folder, number):
    return None, None


def two_clocks(folder, number):
    """One of the two machines that drive it is an hour ahead or behind."""
    wrong = crash.clock_env(folder / "other_clock.so", random.Random(number).choice([-HOUR, HOUR]))
    return (wrong, None) if number % 4 == 0 else (None, wrong)


def first_event(number):
    return EVENTS[number // 2 % len(EVENTS)] if number % 2 else None


class Stories:
    def __init__(self, folder, kind):
        self.pool = ThreadPoolExecutor(AT_A_TIME)
        self.site = site = crash.Site(folder, "dir" if kind == "dir" else "sqlite")
        clocks = one_clock
        if kind == "clock":
            crash.other_clock(folder)
            clocks = two_clocks
        self.runs = [site.one(f"{kind}-{number}") for number in range(KILLED)]
        self.fates = [self.pool.submit(crash.play, run, first_event(number), *clocks(folder, number))
                      for number, run in enumerate(self.runs)]


@pytest.fixture(scope="module", params=["sqlite", "dir", "clock"])
def stories(request, tmp_path_factory):
    stories = Stories(tmp_path_factory.mktemp(request.param), request.param)
    with stories.pool:
        yield stories
    stories.site.clear()


@pytest.mark.parametrize("number", range(KILLED))
def test_a_run_whose_driver_is_killed_is_finished_once(stories, number):
    stories.fates[number].result()
    crash.check_once(stories.runs[number])


def test_the_moments_lie_in_all_phases(stories):
    met = sum((fates.result() for fates in stories.fates), Counter())
    print(f"{met.total()} kills: {dict(met)}")
    assert met.total() >= KILLED * 0.8, met
    for phase, events in PHASES.items():
        assert sum(met[event] for event in events) > 0, f"never killed in {phase}: {met}"


def test_the_same_id_again_adds_nothing(stories):
    run = stories.runs[0]
    stories.fates[0].result()
    before = len(run.events())
    assert run.drive().wait() == 0
    assert len(run.events()) == before
