"""A run whose journal is damaged while its job is under way: `stop` ends the job all the same."""

import os

import crash
import pytest


def spoil(site):
    """One letter of each copy of an event in the middle, as a disk may return it."""
    count = 0
    for path in site.state.rglob("*"):
        if not path.is_file() or path.is_relative_to(site.state / "workspace"):
            continue
        text = path.read_bytes()
        if b'"attempt.submitted"' in text:
            place = text.index(b'"attempt.submitted"')
            with path.open("r+b") as file:
                while place >= 0:
                    file.seek(place + 3)
                    file.write(b"X")
                    place = text.find(b'"attempt.submitted"', place + 1)
                    count += 1
    assert count


@pytest.mark.parametrize("driven", [True, False], ids=["driven", "left"])
def test_a_job_of_a_damaged_run_is_stopped(site, driven):
    run = site.one("spoilt", "limits.grace=2s").hold("train", 12)
    driver = run.drive()
    held = run.wait_for_effect("holds")
    if not driven:
        driver.kill()
    spoil(site)
    stopped = site.stoker("stop", "spoilt")
    assert stopped.code == 4 and "stoker rm spoilt" in stopped.cure, str(stopped)
    assert "damaged" in stopped.err and "is stopped" in stopped.err, str(stopped)
    run.wait_for(lambda: crash.process_gone(held["pid"]))
    if driven:
        assert driver.wait() in (4, 6)
    else:
        assert site.ok("rm", "spoilt").code == 0


def test_a_lease_that_nobody_can_read_keeps_no_job_from_being_stopped(site):
    run = site.one("one").hold("train", 3)
    run.drive()
    run.wait_for_effect("holds")
    run.drivers[-1].kill()
    lease = site.state / "runs/one/driver.lock"
    lease.unlink()
    os.mkfifo(lease)
    told = site.stoker("stop", run.id)
    assert told.code == 0 and str(lease) in told.err, str(told)
    run.wait_for(lambda: not run.processes())
    lease.unlink()
    assert run.resume().wait() == 6 and run.status()["state"] == "stopped"
