"""kill -9 of each part of a run in each phase: what happened is classified, the
phase is done again, the training from its newest complete checkpoint, and once
only."""

import os
import signal

import crash
import pytest

SAVED = 10  # newest checkpoint when the training is met
HELD = 12   # the step before which it is


def met(run, phase, ranks=1):
    """A driver at work; the phase has come to a place where it waits for us."""
    run.hold(phase, HELD if phase == "train" else 2)
    driver = run.drive()
    for rank in range(ranks):
        run.wait_for_effect("holds", phase, rank + 1)
    return driver


def trainer(run, rank=0):
    return [row["pid"] for row in run.effects("start") if row["rank"] == rank][-1]


def end_it(run, driver, phase):
    """The attempt has ended with nothing of it left; then the next one may pass."""
    run.wait_for(lambda: [row for row in run.events("attempt.ended") if row["phase"] == phase])
    run.release()
    assert driver.wait() == 0, run.story()


def marked(run):
    """The newest checkpoint has its mark."""
    return [row for row in run.events("checkpoint.complete") if row["step"] == SAVED]


def check_recovered(run, phase, from_step, node=0, ranks=1):
    story = run.story()
    ended = [row for row in run.events("attempt.ended") if row["phase"] == phase]
    assert [row["attempt"] for row in ended] == [1, 2], story
    assert ended[0]["class"] not in ("none", "user-code", "user-config"), story
    assert ended[0]["node"] == node and ended[0]["evidence"], story
    assert ended[1]["class"] == "none", story
    ends = [(row["rank"], row["attempt"]) for row in run.effects("end") if row["phase"] == phase]
    assert sorted(ends) == [(rank, 2) for rank in range(ranks)], story
    again = [row for row in run.effects("start") if (row["phase"], row["attempt"]) == (phase, 2)]
    assert [row["done"] for row in again] == [from_step] * ranks, story
    status = run.status()
    assert (status["state"], status["exit_code"]) == ("succeeded", 0), story
    attempt = [row for row in status["attempts"] if (row["phase"], row["attempt"]) == (phase, 2)][0]
    if from_step:
        assert attempt["resumed_from"].endswith(f"/checkpoint-{from_step}"), story
        assert attempt["continuity"] == "verified", story
        assert attempt["first_step"] > from_step, story
    else:
        assert not attempt.get("resumed_from"), story
    crash.check_nothing_left(run)


@pytest.mark.parametrize("phase", ["precompile", "train"])
def test_the_command_is_killed(site, phase):
    run = site.one("command")
    driver = met(run, phase)
    os.kill(trainer(run), signal.SIGKILL)
    end_it(run, driver, phase)
    ended = run.events("attempt.ended")[-2 if phase == "train" else 0]
    assert (ended["exit"], ended["signal"]) == (137, 9), run.story()
    check_recovered(run, phase, SAVED if phase == "train" else 0)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("phase", ["precompile", "train"])
def test_one_of_two_ranks_is_killed(site, phase, rank):
    run = site.one("ranks", "resources.nodes=2")
    driver = met(run, phase, 2)
    os.kill(trainer(run, rank), signal.SIGKILL)
    end_it(run, driver, phase)
    check_recovered(run, phase, SAVED if phase == "train" else 0, rank, 2)


@pytest.mark.parametrize("phase", ["precompile", "train"])
def test_the_agent_is_killed(site, phase):
    run = site.one("agent")
    driver = met(run, phase)
    if phase == "train":
        run.wait_for(lambda: marked(run))
    agent, = run.agents()
    os.kill(agent, signal.SIGKILL)
    end_it(run, driver, phase)
    check_recovered(run, phase, SAVED if phase == "train" else 0)


@pytest.mark.parametrize("phase", ["precompile", "train"])
def test_everything_is_killed(site, phase):
    run = site.one("all")
    driver = met(run, phase)
    if phase == "train":
        run.wait_for(lambda: marked(run))
    driver.kill()
    run.kill_all()
    run.release()
    assert run.resume().wait() == 0, run.story()
    check_recovered(run, phase, SAVED if phase == "train" else 0)


def test_the_driver_and_the_command_are_killed(site):
    run = site.one("both")
    driver = met(run, "train")
    driver.kill()
    os.kill(trainer(run), signal.SIGKILL)
    run.wait_for(lambda: not run.processes())
    run.release()
    assert run.resume().wait() == 0, run.story()
    check_recovered(run, "train", SAVED)


def test_killed_again_and_again_without_progress_it_gives_up(site):
    run = site.one("hopeless").hold("train", 3)
    driver = run.drive()
    killed = set()
    while not driver.ended():
        for row in run.effects("holds"):
            if row["pid"] not in killed:
                killed.add(row["pid"])
                os.kill(row["pid"], signal.SIGKILL)
    assert driver.wait() == 1, run.story()
    assert 2 <= len(killed) <= 6, run.story()
    ended = run.events("run.ended")[0]
    assert ended["state"] == "failed" and "without" in ended["reason"], run.story()
    assert not [row for row in run.effects("end") if row["phase"] == "train"]
    crash.check_nothing_left(run)
