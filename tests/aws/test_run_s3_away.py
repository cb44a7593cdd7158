"""Drivers whose state lies on S3 while S3 hangs or is away: signals are obeyed, the lease is
waited for, and a stop that was asked for is not forgotten."""

import signal
import time

import pytest
import stoker as cli
from bucket_job import GIVEN_UP
from test_run_s3 import LEASE, events_are_whole, submitted

SOON = 6.5  # s; what the driver may take to leave


def held(job, *argv):
    job.hold("train", 8)
    driver = job.start("run", job.spec_path, "--id", "one", *argv)
    job.wait_for_effect("holds")
    return driver


@pytest.mark.parametrize("where", [{"key": "/runs/one/events/", "operation": "GetObject"}, {"service": "s3"}])
@pytest.mark.parametrize("after", [0, 8])
def test_a_signal_is_obeyed_although_s3_hangs(job, where, after):
    driver = held(job)
    job.aws.fault("hang", count=0, seconds=3600, **where)
    time.sleep(after)
    driver.send_signal(signal.SIGTERM)
    since = time.monotonic()
    result = cli.finish(driver)
    assert time.monotonic() - since < GIVEN_UP
    assert result.code == 8, str(result)


def test_a_signal_while_all_is_well_is_journalled(job):
    driver = held(job)
    driver.send_signal(signal.SIGTERM)
    assert cli.finish(driver).code == 8
    assert job.ok("events", "one").lines[-1]["event"] == "driver.left"


def test_a_driver_whose_lease_ran_out_while_s3_was_away_goes_on(job):
    driver = held(job, *LEASE)
    job.aws.fault("unavailable", service="s3", count=0)
    time.sleep(12)
    assert driver.poll() is None
    job.aws.clear_faults()
    job.gate.touch()
    result = cli.finish(driver)
    assert result.code == 0, str(result)
    rows = events_are_whole(job)
    assert submitted(rows) == [("precompile", 1), ("train", 1)]
    assert [row["epoch"] for row in rows if row["event"] == "driver.took_over"] == [1]


def test_a_stop_that_could_not_be_journalled_is_asked_for_again(job):
    job.write(hyperparameters={"max_steps": 4000})
    driver = job.start("run", job.spec_path, "--id", "one", "--on-interrupt", "stop")
    job.wait_for_effect("start")
    job.aws.fault("unavailable", operation="PutObject", key="/runs/one/events/", count=0)
    driver.send_signal(signal.SIGTERM)
    time.sleep(20)
    assert driver.poll() is None
    job.aws.clear_faults()
    result = cli.finish(driver)
    assert result.code == 6, str(result)
    assert "request.stop" in [row["event"] for row in events_are_whole(job)]


def test_who_asks_again_for_a_stop_that_cannot_be_journalled_is_let_go(job):
    driver = held(job, "--on-interrupt", "stop")
    job.aws.fault("unavailable", operation="PutObject", key="/runs/one/events/", count=0)
    driver.send_signal(signal.SIGTERM)
    time.sleep(SOON)
    assert driver.poll() is None
    driver.send_signal(signal.SIGTERM)
    result = cli.finish(driver)
    assert result.code == 75, str(result)
    assert "the stop could not be recorded" in result.err
    assert "stoker stop one" in result.err and "stoker resume one" in result.err


def test_a_driver_whose_lease_another_took_meanwhile_stands_down(job):
    """It is stopped for longer than its lease and goes on while S3 is away: what it finds
    when S3 is back is the lease of another."""
    driver = held(job, *LEASE)
    driver.send_signal(signal.SIGSTOP)
    time.sleep(4)
    second = job.start("resume", "one", *LEASE)
    job.wait_for(lambda: len([row for row in job.ok("events", "one").lines if row["event"] == "driver.took_over"]) == 2)
    job.aws.fault("unavailable", service="s3", count=12)
    driver.send_signal(signal.SIGCONT)
    first = cli.finish(driver)
    assert first.code == 7, str(first)
    job.aws.clear_faults()
    job.gate.touch()
    result = cli.finish(second)
    assert result.code == 0, str(result)
    assert submitted(events_are_whole(job)) == [("precompile", 1), ("train", 1)]


def test_a_service_that_stays_away_for_as_long_as_the_spec_allows_ends_the_driver(job):
    job.write(limits={"unreachable": "15s"})
    driver = held(job, *LEASE)
    since = time.monotonic()
    job.aws.fault("unavailable", service="s3", count=0)
    result = cli.finish(driver)
    assert result.code == 75, str(result)
    assert 15 <= time.monotonic() - since
    assert "is safe; 'stoker resume one' continues it" in result.err
    job.aws.clear_faults()
    job.gate.touch()
    job.ok("resume", "one")
    assert submitted(events_are_whole(job)) == [("precompile", 1), ("train", 1)]


def test_a_signal_while_it_takes_over_is_obeyed(job):
    driver = held(job, *LEASE)
    driver.kill()
    driver.communicate()
    job.aws.fault("delay", operation="PutObject", key="/runs/one/events/", count=0, seconds=4)
    since = job.aws.mark()
    second = job.start("resume", "one", *LEASE)
    job.wait_for(lambda: [row for row in job.aws.ledger(since, "PutObject") if "/lease" in row["name"]])
    time.sleep(2)
    second.send_signal(signal.SIGTERM)
    result = cli.finish(second)
    assert result.code == 8, str(result)
    job.aws.clear_faults()
    job.gate.touch()
    job.ok("resume", "one", *LEASE)
    assert submitted(events_are_whole(job)) == [("precompile", 1), ("train", 1)]


def test_nobody_is_told_twice_because_the_journal_is_away(job):
    told, away = job.root / "told", job.root / "away"
    tell = f"while ! [ -e {away} ]; do sleep 0.1; done; echo >>{told}"
    job.write(notify=[{"when": ["started"], "command": ["/bin/sh", "-c", tell]}])
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_effect("start", "precompile")
    job.aws.fault("unavailable", operation="PutObject", key="/runs/one/events/", count=0)
    away.touch()
    time.sleep(30)
    job.aws.clear_faults()
    result = cli.finish(driver)
    assert result.code == 0, str(result)
    assert len(told.read_text()) == 1
    assert [row["event"] for row in events_are_whole(job)].count("notify.sent") == 1


@pytest.mark.parametrize("kind", ["delay", "delay_after"])
@pytest.mark.parametrize("nth", [1, 3, 6, 9])
def test_a_driver_killed_while_an_append_is_on_its_way(job, kind, nth):
    """The event is not written yet, or it is and nobody has heard: the next driver goes by
    what is there."""
    job.aws.fault(kind, operation="PutObject", key="/runs/one/events/", nth=nth, seconds=3)
    driver = job.start("run", job.spec_path, "--id", "one", *LEASE)
    job.wait_for(lambda: job.aws.struck() or driver.poll() is not None)
    assert driver.poll() is None
    struck = time.monotonic()
    driver.kill()
    driver.communicate()
    result = job.stoker("run", job.spec_path, "--id", "one", *LEASE)
    assert result.code == 0, str(result)
    time.sleep(max(0.0, struck + 4 - time.monotonic()))  # what was on its way has come
    assert submitted(events_are_whole(job)) == [("precompile", 1), ("train", 1)]
