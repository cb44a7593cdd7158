"""A disk that is full, a disk that fails, no descriptor left: each system call of run, resume, stop and of the
agent that can say so says it, once. A command goes on, or ends with one error and an exit code that fits, and
whoever repeats it gets what an undisturbed one would have given; an agent goes on, or its attempt is made again.

A run that is only watched tells the calls; then each error has a run of its own. `./test` takes a share of them,
STOKER_TEST_KILLS=all each (tests/soak)."""

import os
import re

import crash
import inject
import pytest
import stories

EVERY = "STOKER_TEST_KILLS" in os.environ
MET = 0.6
# The command, and of its errors one in so many.
STORIES = {"run": (stories.Runs, 90), "resume": (stories.Resumes, 45), "stop": (stories.Stops, 60)}
REFUSES = (4, 75)
# A stop without a journal ends the job, and the run is still to be.
DIRECTLY = "stopping the job directly"


# Cures that would not cure it.
WRONG_CURES = {"ENOSPC": (), "EIO": ("free space", "writable"), "EMFILE": ("free space", "writable")}


def check_refusal(run, driver, error):
    """It has said once what was wrong and what cures it, and ended as the table of exit codes has it."""
    assert driver.process.returncode in REFUSES, run.story()
    told = re.findall(r"^(?:stoker: )?error: ", driver.err(), re.MULTILINE)
    left = [row for row in driver.rows() if row["event"] == "driver.left"]
    assert len(told) == 1 or (left and not told), f"{len(told)} errors\n{run.story()}"
    assert not [cure for cure in WRONG_CURES[error] if cure in driver.err()], run.story()
    return True


def fail(story, by, codes):
    def play(run, place):
        """Whether the call was made at all."""
        point, error = place
        run.epilogue.append(f"{error} of {point}")
        trace = run.site.root / f"{run.id}.trace"
        driver = story.start(run, by.fail_at(point, error, trace))
        code = driver.wait()
        codes.append(code)
        said = stories.check_readable(run, driver)
        if code == 0 and DIRECTLY not in driver.err():
            stories.check_said(run, said, story.check(run, driver))
        else:
            assert code == 0 or check_refusal(run, driver, error)
            stories.check_said(run, said, story.check(run, story.recover(run)))
        return trace.exists() and (by.HOW != inject.HOW or "INJECTED" in trace.read_text())

    return play


@pytest.mark.parametrize("name", STORIES)
def test_a_call_that_fails_once_loses_nothing(tmp_path, name):
    story, every = STORIES[name]
    story, by, codes = story(), stories.disturber(tmp_path), []
    points = stories.Points(tmp_path, story, by, failures=True, every=1 if EVERY else every)
    points.play_all(fail(story, by, codes), f"{name} with an error", MET)
    print(f"{codes.count(0)} of them went by")
