"""Commands that are disturbed at one of their system calls: what comes before each, who repeats it, and what
has to be true in the end; and the sites in which that is played, as many at once as there are.

A run that is only watched tells the calls. The state holds a run before: what only the first run of a
state does, the delivery of agent and source, is not disturbed here."""

import queue
import time
from concurrent.futures import ThreadPoolExecutor

import crash
import inject
import preload

AT_A_TIME = 4


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


class Points:
    """The sites of a story, each for one thread, and the places at which its command is disturbed."""

    def __init__(self, folder, story, by, failures=False, every=1):
        """`by`: what disturbs it, inject or a Preload; `failures`: by errors and not by a kill. Of the
        places one in so many is taken."""
        self.story, self.folder, self.by, self.free = story, folder, by, queue.Queue()
        for number in range(AT_A_TIME):
            site = crash.Site(folder / str(number), story.journal,
                              hyperparameters={"max_steps": 3}, **story.changes)
            site.also(story.extra)
            self.free.put(site)
        self.sites = list(self.free.queue)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            assert not any(pool.map(lambda site: self.new(site, "first").drive().wait(), self.sites))
        run, trace = self.new(self.sites[0], "watched"), folder / "trace"
        story.begin(run)
        driver = story.start(run, by.watch(trace))
        story.check(run, driver)
        self.points = (by.failures if failures else by.points)(trace)[::every]

    def new(self, site, name):
        return site.one(name, "env.STEP_SECONDS=0.01")

    def play_all(self, play, what, least):
        """`play(run, point)`: whether it met what it was after. The rest: see play_places."""
        try:
            play_places(lambda number: self.play(play, number), len(self.points), AT_A_TIME,
                        f"{what} by {self.by.HOW}", least)
        finally:
            self.clear()

    def play(self, play, number):
        site = self.free.get()
        try:
            run = self.new(site, f"point-{number}")
            self.story.begin(run)
            return play(run, self.points[number])
        finally:
            self.free.put(site)

    def clear(self):
        for site in self.sites:
            site.clear()


def disturber(folder):
    """What disturbs commands here: strace, or a library where ptrace is refused."""
    return preload.Preload(folder) if inject.refused() else inject


def play_places(play, count, at_a_time, what, least):
    """`play(number)` for each place: whether it met what it was after. None may fail, and of all of them at
    least this share is met: not every run makes the same calls."""
    begin, met, failed = time.monotonic(), 0, []
    with ThreadPoolExecutor(at_a_time) as pool:
        for future in [pool.submit(play, number) for number in range(count)]:
            try:
                met += bool(future.result())
            except AssertionError as why:
                failed.append(str(why))
    print(f"{what}: {met} of {count} calls met, in {time.monotonic() - begin:.0f} s")
    assert not failed, f"{len(failed)} of {count}\n" + "\n".join(failed[:5])
    assert met >= least * count


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
