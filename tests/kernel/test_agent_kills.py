"""kill -9 of the agent, and of each helper that it starts, at each call that changes something: the driver
lives on, or is killed with it and the run resumed. An agent that dies costs its attempt, and the next one
begins at the newest checkpoint that was marked; a helper costs nothing: the agent starts another one.

The agent is killed by strace at a system call, a helper by nth_call.c at a call of the C library; where ptrace is
refused the agent is too. A run that is only watched tells the calls; then each has a run of its own."""

import os
import queue
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import crash
import inject
import preload
import pytest
import stories
import wrapped

AT_A_TIME = stories.AT_A_TIME
EVERY_CALL = "STOKER_TEST_KILLS" in os.environ
MET = 0.6  # of the calls, at least: how often an agent writes, and when, differs from run to run
ERRORS_EVERY = 40  # of the errors one in so many, in ./test
ALWAYS = "/proc/cpuinfo"  # a processor that has no name for a moment has no other one
STEPS = 15
BEGINS = "/order.json"


class Story:
    """Who is killed, in which attempt; of the calls, one in `every` in ./test."""

    def __init__(self, role, attempt, every):
        self.role, self.attempt, self.every = role, attempt, every
        self.is_agent = role == "main"


STORIES = {
    "agent-precompile": Story("main", "precompile-1", 12),
    "agent-train": Story("main", "train-1", 12),
    "checkpointer": Story("stoker-ckpt", "train-1", 8),
}


class Sites:
    """One for each thread, with an agent that can be killed, and a first run behind each."""

    def __init__(self, folder):
        self.folder, self.free = folder, queue.Queue()
        self.agent = wrapped.Agent(folder / "wrapped")
        self.sites = [crash.Site(folder / str(number), hyperparameters={"max_steps": STEPS})
                      for number in range(AT_A_TIME)]
        for site in self.sites:
            self.free.put(site)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            assert not any(pool.map(self.first, self.sites))

    def first(self, site):
        return site.one("first").drive(env=self.agent.env()).wait()

    def clear(self):
        for site in self.sites:
            site.clear()


class Points:
    """The calls that the victim of a story makes."""

    def __init__(self, sites, name):
        self.sites, self.story, self.name, self.agent = sites, STORIES[name], name, sites.agent
        self.by_strace = self.story.is_agent and not inject.refused()
        site = sites.free.get()
        self.points = self.watch(self.run(site, "watched"))[::1 if EVERY_CALL else self.story.every]
        sites.free.put(site)

    def run(self, site, name):
        return site.one(f"{self.name}-{name}", "env.STEP_SECONDS=0.01")

    def drive(self, run, **options):
        return run.drive(env=self.agent.env(), **options)

    def watch(self, run):
        told = self.sites.folder / f"{self.name}.told"
        if self.by_strace:
            self.agent.trace(run.id, self.story.attempt, inject.watch(told))
        else:
            self.agent.count(run.id, self.story.attempt, role=self.story.role, log=told)
        assert self.drive(run).wait() == 0, run.story()
        crash.check_once(run)
        if self.by_strace:
            places = inject.failures(told, BEGINS)
            self.failures = [place for number, place in enumerate(places) if EVERY_CALL or
                             number % ERRORS_EVERY == 0 or ALWAYS in place[0].line]
            return inject.points(told, BEGINS)
        return preload.points(told)

    def play(self, number):
        """Whether somebody was killed at all."""
        site, point = self.sites.free.get(), self.points[number]
        try:
            run = self.run(site, f"point-{number}")
            run.epilogue.append(f"{self.story.role} of {self.story.attempt} killed at {point}")
            mark = self.sites.folder / f"{run.id}.mark"
            if self.by_strace:
                self.agent.trace(run.id, self.story.attempt, inject.kill_at(point))
            else:
                self.agent.count(run.id, self.story.attempt, role=self.story.role, call=point.name,
                                 number=point.nth, mark=mark)
            check = self.check_retried if self.story.is_agent else self.check_unharmed
            return check(run, self.go_on(run, number), mark)
        finally:
            self.sites.free.put(site)

    def go_on(self, run, number):
        """To the end. Every other driver is killed in the attempt, and the run resumed."""
        driver = self.drive(run)
        if number % 2:
            run.wait_for(lambda: driver.ended() or driver.count_of("attempt.submitted", self.story.attempt))
            time.sleep(random.Random(f"{crash.SEED}/{number}").uniform(0, 0.5))
            if driver.kill():
                driver = run.resume(env=self.agent.env())
        assert driver.wait() == 0, run.story()
        return run.events()

    def fail(self, number):
        """The call of the agent fails instead, once. Whether it was made at all."""
        site, (point, error) = self.sites.free.get(), self.failures[number]
        try:
            run = self.run(site, f"error-{number}")
            run.epilogue.append(f"{error} of {point} of {self.story.attempt}")
            trace = self.sites.folder / f"{run.id}.trace"
            self.agent.trace(run.id, self.story.attempt, inject.fail_at(point, error, trace))
            driver = self.drive(run)
            assert driver.wait() == 0, run.story()
            self.check_retried(run, run.events(), None)
            return "INJECTED" in trace.read_text()
        finally:
            self.sites.free.put(site)

    def check_unharmed(self, run, _, mark):
        crash.check_once(run)
        return mark.exists()

    def check_retried(self, run, rows, _):
        """Whoever trained did so alone, and went on from what was marked before."""
        story = crash.Story(run)
        crash.check_order(rows, story)
        assert rows[-1]["event"] == "run.ended" and rows[-1]["state"] == "succeeded", story
        crash.check_ledger(run, run.status(), rows)
        crash.check_nothing_left(run)
        intended = [(row["phase"], row["attempt"]) for row in rows if row["event"] == "attempt.intended"]
        assert len(intended) == len(set(intended)) <= 3, story
        effects = [(row["phase"], row["attempt"]) for row in run.effects()]
        assert effects == sorted(effects), f"two attempts at once\n{story}"
        assert not [row for row in rows if row["event"] == "jit.compiled" and row["graphs"]], story
        for start in run.effects("start"):
            if start["phase"] == "train":
                assert start["done"] >= saved_before(run, rows, start["attempt"]), story
        assert run.effects("end")[-1]["phase"] == "train", story
        return len(intended) == 3


def saved_before(run, rows, attempt):
    """The newest checkpoint that was marked, or shown, before this attempt of the training was intended."""
    first = next(row for row in rows if row["event"] == "attempt.intended" and
                 (row["phase"], row["attempt"]) == ("train", attempt))
    steps = [row["step"] for row in rows if row["event"] == "checkpoint.complete" and row["seq"] < first["seq"]]
    begun = crash.datetime.fromisoformat(first["at"]).timestamp()
    for mark in Path(run.site.state).glob(f"workspace/runs/{run.id}/train-*/checkpoints/checkpoint-*.stoker.json"):
        if mark.stat().st_mtime < begun - 0.01:
            steps.append(int(mark.name.split("-")[1].split(".")[0]))
    return max(steps, default=0)


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    sites = Sites(tmp_path_factory.mktemp("agent"))
    yield sites
    sites.clear()


@pytest.mark.parametrize("name", STORIES)
def test_whoever_is_killed_the_run_goes_on(sites, name):
    points = Points(sites, name)
    how = "strace" if points.by_strace else "a preloaded library"
    stories.play_places(points.play, len(points.points), AT_A_TIME, f"{name} killed by {how}", MET)


@pytest.mark.parametrize("name", [name for name, story in STORIES.items() if story.is_agent])
def test_an_error_costs_an_attempt_at_most(sites, name):
    if why := inject.refused():
        pytest.skip(why)
    points = Points(sites, name)
    stories.play_places(points.fail, len(points.failures), AT_A_TIME, f"{name} with an error", MET)
