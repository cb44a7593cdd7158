"""kill -9 at each system call that changes something: every command that writes. What it has
said is true afterwards, the state can be read at once, and whoever repeats the command, or resumes
the run, gets what an undisturbed command would have given, once.

A run that is only watched tells the calls; then each has a run of its own, in which it is the
last. The state holds a run before: what only the first run of a state does is not killed here."""

import os

import crash
import damage
import inject
import preload
import pytest
import stories

EVERY_CALL = "STOKER_TEST_KILLS" in os.environ
MET = 0.8  # of the calls, at least: not every run makes the same number of them


class Salvages(stories.Resumes):
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
            return stories.check_readable(run, driver)
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


STORIES = {"run": stories.Runs, "resume": stories.Resumes, "stop": stories.Stops, "salvage": Salvages, "salvage-dir": SalvagesFiles}


def kill(story, by):
    def play(run, point):
        """Whether the call was made at all."""
        run.epilogue.append(f"killed at {point}")
        driver = story.start(run, by.kill_at(point))
        driver.process.wait(crash.PATIENCE)
        said = story.look(run, driver)
        recovered = story.recover(run)
        stories.check_said(run, said, story.check(run, recovered))
        return driver.process.returncode == -9

    return play


@pytest.mark.parametrize("name", STORIES)
def test_killed_at_each_call_it_goes_on(tmp_path, name):
    play_all(tmp_path, name, STORIES[name](), stories.disturber(tmp_path))


def test_without_strace_a_library_kills(tmp_path):
    story = stories.Runs()
    story.every = 25
    play_all(tmp_path, "run", story, preload.Preload(tmp_path))


def play_all(folder, name, story, by):
    points = stories.Points(folder, story, by, every=1 if EVERY_CALL else story.every)
    points.play_all(kill(story, by), f"{name} killed", MET)
