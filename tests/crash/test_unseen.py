"""Nobody looks at a job that goes on: what it does meanwhile is not known, and is told so."""

import signal
import time
from datetime import datetime, timezone

import crash
import pytest


def killed(driver):
    assert driver.kill()


def detached(driver):
    driver.process.send_signal(signal.SIGINT)
    assert driver.wait() == 8


@pytest.mark.parametrize("leave", [killed, detached])
def test_time_that_nobody_saw_is_unknown(site, leave):
    run = site.one(leave.__name__).hold("train", 12)
    driver = run.drive()
    run.wait_for_effect("holds")
    run.wait_for(lambda: [row for row in run.events("train.progress") if row.get("step") == 10])
    leave(driver)
    left = datetime.now(timezone.utc)
    before = run.status()
    time.sleep(6)
    after = run.status()
    for name in before["ledger"]:
        if name not in ("unknown", "total"):
            assert after["ledger"][name] == before["ledger"][name], (before["ledger"], after["ledger"])
    assert after["ledger"]["unknown"] >= 6, after["ledger"]
    since = datetime.fromisoformat(after["unseen_since"])
    assert since <= left and after["unseen_since"] == before["unseen_since"]
    assert since >= datetime.fromisoformat(run.events("train.progress")[-1]["at"])
    is_told(site, run, after["unseen_since"])
    run.release()
    assert run.resume().wait() == 0, run.story()
    last = run.status()
    assert "unseen_since" not in last, last
    assert last["ledger"]["unknown"] >= 6, last["ledger"]
    crash.check_ledger(run, last, run.events())


def is_told(site, run, since):
    """In words, as JSON, and in the list."""
    moment = since[:19]
    text = site.ok("status", run.id).out
    assert f"no driver since {moment}" in text and "resume" in text, text
    listed = [row for row in site.ok("--json", "list").lines if row["run"] == run.id]
    assert listed[0]["unseen_since"] == since
    line = [row for row in site.ok("list").out.splitlines() if row.startswith(run.id)]
    assert f"unseen since {moment}" in line[0], line


def test_the_agent_tells_the_next_driver_what_it_saw(site):
    """Steps went on all the while: once somebody looks again, that is known."""
    run = site.one("agent", "env.STEP_SECONDS=0.1", "hyperparameters.max_steps=250")
    driver = run.drive()
    run.wait_for_effect("saved")
    run.wait_for(lambda: run.events("train.progress"))
    assert driver.kill()
    before = run.status()["ledger"]
    time.sleep(8)
    alone = run.status()["ledger"]
    assert alone["steps"] == before["steps"] and alone["unknown"] >= 8
    assert run.resume().wait() == 0, run.story()
    rows = run.effects("start", "end")
    took = [row["at"] for row in rows if row["phase"] == "train"]
    last = run.status()
    spent = last["ledger"]["steps"] + last["ledger"]["checkpoint"]
    assert spent >= 0.8 * (took[1] - took[0]), (took, last["ledger"], run.story())
    assert last["ledger"]["unknown"] <= 0.1 * (took[1] - took[0]) + 1.5, last["ledger"]
    assert run.events("train.stretch"), run.story()
    assert abs(last["progress"]["rate"] * (took[1] - took[0]) / 250 - 1) < 0.2, last["progress"]
    crash.check_ledger(run, last, run.events())
