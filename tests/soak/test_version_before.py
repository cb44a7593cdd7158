"""A run that an older stoker began is finished by this one: the older driver is killed at each
place of a run, with its agents or without, and its journal is read and gone on with.

STOKER_BEFORE names the older binary, from a build of all targets of another checkout."""

import os
import time
from pathlib import Path

import crash
import pytest

BEFORE = os.environ.get("STOKER_BEFORE")
EVENTS = 24  # of a run of the one-second trainer that nothing disturbs, about


@pytest.mark.skipif(not BEFORE, reason="STOKER_BEFORE names no older binary")
@pytest.mark.parametrize("journal", ["sqlite", "dir"])
@pytest.mark.parametrize("with_agents", [False, True])
@pytest.mark.parametrize("count", range(1, EVENTS, 2))
def test_a_run_of_an_older_driver_is_finished(tmp_path, journal, with_agents, count):
    site = crash.Site(tmp_path / "site", journal)
    run = site.one("before")
    try:
        driver = run.drive(binary=Path(BEFORE))
        while driver.count() < count and not driver.ended():
            time.sleep(0.002)
        killed = driver.kill()
        if with_agents:
            run.kill_all()
        if killed:
            assert (run.resume() if run.is_created() else run.drive()).wait() == 0, run.story()
        assert run.status()["state"] == "succeeded", run.story()
        assert len([row for row in run.effects("end") if row["phase"] == "train"]) == 1, run.story()
        for command in (["status", run.id], ["list"], ["logs", run.id]):
            assert site.stoker(*command).code == 0, run.story()
        crash.check_nothing_left(run)
    finally:
        site.clear()
