"""kill -9 at each system call that changes something: every command that writes. What it has
said is true afterwards, the state can be read at once, and whoever repeats the command, or resumes
the run, gets what an undisturbed command would have given, once.

A run that is only watched tells the calls; then each has a run of its own, in which it is the
last. The state holds a run before: what only the first run of a state does is not killed here."""

import os
import queue
import time
from concurrent.futures import ThreadPoolExecutor

import crash
import damage
import inject
import pytest

AT_A_TIME = 4
EVERY_CALL = "STOKER_TEST_KILLS" in os.environ
MET = 0.8  # of the calls, at least: not every run makes the same number of them


class Story:
    """A command that is killed, what comes before it, and what has to be true in the end."""

    journal, changes = "sqlite", {}
    every = 1  # of its calls, one in so many; with STOKER_TEST_KILLS each of them
    extra = ""  # that the trainer of its site does

    def begin(self, run):
        pass

    def start(self, run, prefix):
        """The command that is killed."""
        return run.drive(prefix=prefix, env=inject.env())

    def recover(self, run, **options):
        """What a person would say then."""
        return run.resume(**options) if run.is_listed() else run.drive(**options)

    def look(self, run, driver):
        """At the moment of the kill. What the dead driver said."""
        return check_readable(run, driver)

    def check(self, run, driver):
        """Its events, if all is as it has to be."""
        assert driver.wait() == 0, run.story()
        return crash.check_once(run)


class Runs(Story):
    pass


class Resumes(Story):
    """The job is at work; its driver is dead."""

    def begin(self, run):
        driver = run.hold("train", 2).drive()
        run.wait_for_effect("holds")
        driver.kill()
        run.release()

    def start(self, run, prefix):
        return run.resume(prefix=prefix, env=inject.env())


class Stops(Resumes):
    """The same of a long training, which saves only when it is asked to; it is to be stopped."""

    extra = "EVERY = 10**9"

    def begin(self, run):
        run.sets.append("hyperparameters.max_steps=1000000")
        driver = run.drive()
        run.wait_for_effect("start", "train")
        driver.kill()

    def start(self, run, prefix):
        return run.drive("stop", run.id, prefix=prefix, env=inject.env())

    def recover(self, run, **options):
        return run.drive("stop", run.id, **options)

    def check(self, run, driver):
        assert driver.wait() == 0, run.story()
        return crash.check_stopped(run)


class Salvages(Resumes):
    """The same, and its journal has a gap: it is damaged until it is whole again, and never
    anything between. Whoever resumes it without more is refused, or goes on rightly."""

    every = 9

    def begin(self, run):
        super().begin(run)
        damage.put(run, damage.seq_of(run.events(), "attempt.intended", "train"), None)

    def start(self, run, prefix):
        return run.drive("--json", "resume", run.id, "--salvage", prefix=prefix, env=inject.env())

    def look(self, run, driver):
        states = {line["run"]: line["state"] for line in run.site.stoker("--json", "list").lines if "run" in line}
        if states.pop(run.id) != "damaged":
            return check_readable(run, driver)
        assert "damaged" not in states.values(), f"{states}\n{run.story()}"
        plain = run.site.stoker("resume", run.id)
        assert plain.code == 4 and "--salvage" in plain.cure, f"{plain}\n{run.story()}"
        return driver.rows()

    def recover(self, run, **options):
        plain = run.resume(**options)
        if plain.wait() == 4:
            return run.drive("--json", "resume", run.id, "--salvage", **options)
        return plain

    def check(self, run, driver):
        rows = super().check(run, driver)
        assert len([row for row in rows if row["event"] == "journal.salvaged"]) == 1, run.story()
        return rows


class SalvagesFiles(Salvages):
    journal, every = "dir", 27


STORIES = {"run": Runs, "resume": Resumes, "stop": Stops, "salvage": Salvages, "salvage-dir": SalvagesFiles}


class Points:
    """The sites of a story, each for one thread, and the calls that its command makes."""

    def __init__(self, folder, story):
        self.story, self.folder, self.free = story, folder, queue.Queue()
        for number in range(AT_A_TIME):
            site = crash.Site(folder / str(number), story.journal,
                              hyperparameters={"max_steps": 3}, **story.changes)
            site.also(story.extra)
            self.free.put(site)
        self.sites = list(self.free.queue)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            # The first run of a state delivers agent and source; it has stories of its own.
            assert not any(pool.map(lambda site: self.new(site, "first").drive().wait(), self.sites))
        run, trace = self.new(self.sites[0], "watched"), folder / "trace"
        story.begin(run)
        driver = story.start(run, inject.watch(trace))
        story.check(run, driver)
        self.points = inject.points(trace)[::1 if EVERY_CALL else story.every]

    def new(self, site, name):
        return site.one(name, "env.STEP_SECONDS=0.01")

    def play(self, number):
        """Whether the call was made at all."""
        site, point = self.free.get(), self.points[number]
        try:
            run = self.new(site, f"point-{number}")
            run.epilogue.append(f"killed at {point}")
            self.story.begin(run)
            driver = self.story.start(run, inject.kill_at(point))
            driver.process.wait(crash.PATIENCE)
            said = self.story.look(run, driver)
            recovered = self.story.recover(run)
            check_said(run, said, self.story.check(run, recovered))
            return driver.process.returncode == -9
        finally:
            self.free.put(site)

    def clear(self):
        for site in self.sites:
            site.clear()


def check_readable(run, driver) -> list:
    """At this moment, and what the dead driver said is true: its events."""
    said = driver.rows()
    listed = run.site.stoker("--json", "list")
    assert listed.code == 0, f"{listed}\n{run.story()}"
    states = {line["run"]: line["state"] for line in listed.lines}
    assert not {"damaged", "unreadable"} & set(states.values()), f"{listed}\n{run.story()}"
    check_said(run, said, run.events() if run.id in states else [])
    return said


def check_said(run, said, events):
    for row in said:
        assert row in events, f"shown, and forgotten: {row}\n{run.story()}"


@pytest.mark.parametrize("name", STORIES)
def test_killed_at_each_call_it_goes_on(tmp_path, name):
    if why := inject.refused():
        pytest.skip(why)
    points = Points(tmp_path, STORIES[name]())
    begin, failed, met = time.monotonic(), [], 0
    try:
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            for future in [pool.submit(points.play, number) for number in range(len(points.points))]:
                try:
                    met += future.result()
                except AssertionError as why:
                    failed.append(str(why))
    finally:
        points.clear()
    print(f"{name}: {len(points.points)} calls, killed at {met} of them, in {time.monotonic() - begin:.0f} s")
    assert not failed, f"{len(failed)} of {len(points.points)}\n" + "\n".join(failed[:5])
    assert met >= MET * len(points.points)
