"""Who drives: two that want to, one that is stopped, one that is asked to stop
the run, one whose terminal goes, and a machine that was restarted."""

import contextlib
import fcntl
import os
import pty
import signal
import sqlite3
import subprocess
import termios
import time

import crash
import pytest


def trained(run):
    """A driver is at work and the training has begun; it waits until release()."""
    run.hold("train", 3)
    driver = run.drive()
    run.wait_for_effect("holds")
    return driver


def exit_codes(run, both):
    """Of two drivers of a run that is held: it may go on as soon as one has given way."""
    run.wait_for(lambda: any(driver.ended() for driver in both))
    run.release()
    return [driver.wait() for driver in both]


@pytest.mark.parametrize("number", range(4))
def test_of_two_resumes_at_once_one_drives(site, number):
    phase = ("precompile", "train")[number % 2]
    run = site.one("two").hold(phase, 2)
    driver = run.drive()
    run.wait_for_effect("holds", phase)
    driver.kill()
    both = [run.resume(), run.resume()]
    codes = exit_codes(run, both)
    assert sorted(codes) == [0, 7], run.story()
    assert "is driven by" in both[codes.index(7)].err(), run.story()
    crash.check_once(run)


def test_the_same_id_twice_at_once_is_one_run(site):
    run = site.one("one").hold("precompile", 1)
    codes = exit_codes(run, [run.drive(), run.drive()])
    assert sorted(codes) == [0, 7], run.story()
    crash.check_once(run)


def test_a_stopped_driver_keeps_its_run(site):
    run = site.one("stopped")
    driver = trained(run)
    driver.process.send_signal(signal.SIGSTOP)
    try:
        other = run.resume()
        assert other.wait() == 7
        assert f"pid {driver.pid}" in other.err(), run.story()
        run.release()
        run.wait_for_effect("end")
        assert not run.events("run.ended")
    finally:
        driver.process.send_signal(signal.SIGCONT)
    assert driver.wait() == 0
    crash.check_once(run)


def test_one_stopped_in_the_middle_of_a_write_keeps_its_run_and_holds_up_no_reader(site):
    run = site.one("writing")
    driver = trained(run)
    driver.process.send_signal(signal.SIGSTOP)
    journal = sqlite3.connect(site.state / "journal.db", isolation_level=None)
    try:
        with contextlib.suppress(sqlite3.OperationalError):  # the driver itself is writing
            journal.execute("BEGIN IMMEDIATE")
        other = run.resume()
        assert other.wait() == 7
        assert f"pid {driver.pid}" in other.err(), run.story()
        assert run.status()["driver"]["pid"] == driver.pid
        another = site.one("another").drive()
        assert another.wait() == 75
        assert "database is locked" in another.err() and "stopped" in another.err()
    finally:
        journal.close()
        run.release()
        driver.process.send_signal(signal.SIGCONT)
    assert driver.wait() == 0
    crash.check_once(run)


def test_nobody_resumes_what_is_driven_and_all_passes_over_it(site):
    run = site.one("driven")
    driver = trained(run)
    assert run.resume().wait() == 7
    assert site.ok("resume", "--all").code == 0
    run.release()
    assert driver.wait() == 0
    crash.check_once(run)


@pytest.mark.parametrize("phase", ["precompile", "train"])
def test_stop_from_a_second_terminal(site, phase):
    run = site.one("stop", "env.STEP_SECONDS=3")
    if phase == "precompile":  # which has two steps only
        run.hold(phase, 2)
    driver = run.drive()
    run.wait_for_effect("start", phase)
    site.ok("stop", run.id, "--reason", "enough of it")
    assert driver.wait() == 6, run.story()
    assert driver.fate == ""
    rows = run.events()
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[-1]["state"] == "stopped" and rows[-1]["exit_code"] == 6, run.story()
    assert [row.get("reason") for row in rows if row["event"] == "request.stop"] == ["enough of it"]
    assert "enough of it" in rows[-1].get("reason", ""), run.story()
    assert run.status()["state"] == "stopped"
    assert not [row for row in run.effects("end") if row["phase"] == phase]
    crash.check_nothing_left(run)


def goes_on(run):
    """A driver is at work, and the training has minutes to go: it does not end by itself."""
    run.sets += ["env.STEP_SECONDS=0.5", "hyperparameters.max_steps=1000"]
    driver = run.drive()
    run.wait_for_effect("start")
    return driver


def test_stop_of_a_run_that_nobody_drives(site):
    run = site.one("alone")
    driver = goes_on(run)
    driver.kill()
    site.ok("stop", run.id)
    assert run.status()["state"] == "stopped"
    crash.check_nothing_left(run)
    assert run.resume().wait() == 6


@pytest.mark.parametrize("journal", ["sqlite", "dir"])
def test_stop_takes_over_when_the_driver_dies_before_it_heard(new_site, journal):
    run = new_site(journal).one("deaf")
    driver = goes_on(run)
    driver.pause_between_writes()
    stop = run.drive("stop", run.id)
    run.wait_for(lambda: run.events("request.stop"))
    time.sleep(0.5)
    driver.kill()
    assert stop.wait() == 0, run.story()
    assert run.status()["state"] == "stopped"
    crash.check_nothing_left(run)


@pytest.mark.parametrize("journal", ["sqlite", "dir"])
def test_attach_ends_when_the_driver_was_killed(new_site, journal):
    site = new_site(journal)
    run = site.one("orphaned")
    driver = goes_on(run)
    attached = run.drive("--json", "attach", run.id)
    run.wait_for(attached.count)
    driver.kill()
    assert attached.wait() == 4
    assert "stoker resume orphaned" in attached.err(), run.story()
    site.ok("stop", run.id)
    crash.check_nothing_left(run)


def test_attach_follows_to_the_end(site):
    run = site.one("followed")
    driver = trained(run)
    attached = run.drive("--json", "attach", run.id)
    run.wait_for(attached.count)
    run.release()
    assert attached.wait() == 0 and driver.wait() == 0
    assert attached.count() == len(run.events())


def on_a_terminal(run, *argv):
    """Started by a session leader with a terminal of its own; what is written
    there is not read. Returns the process and our end of the terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([crash.cli.BINARY, *map(str, argv)], env=run.site.env(),
                               cwd=run.site.source, stdin=theirs, stdout=theirs, stderr=theirs,
                               start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(theirs)
    return process, ours


def test_a_detached_run_outlives_its_terminal(site):
    run = site.one("detached").hold("precompile", 1)
    process, terminal = on_a_terminal(run, *run.argv()[1:], "--detach")
    assert process.wait(crash.PATIENCE) == 0
    os.close(terminal)
    driver = run.status()["driver"]
    assert driver["pid"] != process.pid and not crash.process_gone(driver["pid"])
    run.release()
    run.wait_for(lambda: run.events("run.ended"))
    crash.check_once(run)


def test_a_terminal_that_is_closed_leaves_the_job_running(site):
    run = site.one("closed").hold("train", 3)
    process, terminal = on_a_terminal(run, *run.argv()[1:], "--on-hangup", "detach")
    run.wait_for_effect("holds")
    os.close(terminal)
    assert process.wait(crash.PATIENCE) == 8
    assert run.events()[-1]["event"] == "driver.left"
    run.release()
    run.wait_for_effect("end")
    assert run.resume().wait() == 0
    crash.check_once(run)


def test_resume_all_takes_up_every_run_without_a_driver(site):
    runs = [site.one(f"many-{number}") for number in range(4)]
    for run in runs:
        trained(run).kill()
        run.release()
    site.ok("resume", "--all")
    for run in runs:
        run.wait_for(lambda run=run: run.events("run.ended"))
        crash.check_once(run)
    assert site.ok("resume", "--all").out == ""


def test_resume_goes_on_without_the_spec_and_its_source(site):
    run = site.one("moved")
    trained(run).kill()
    run.release()
    for path in site.source.iterdir():
        path.unlink()
    assert run.resume().wait() == 0
    crash.check_once(run)


def other_boot(folder):
    """A command line's beginning that makes the machine look restarted."""
    fresh = folder / "boot_id"
    fresh.write_text("01234567-89ab-4cde-8f01-23456789abcd\n")
    mount = f"mount --bind {fresh} /proc/sys/kernel/random/boot_id"
    prefix = ("unshare", "--mount", "--propagation", "private", "sh", "-c", mount + ' && exec "$@"', "sh")
    if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs root: a mount namespace of its own")
    return prefix


@pytest.mark.parametrize("phase", ["precompile", "train"])
def test_resume_all_after_the_machine_was_restarted(site, phase):
    run = site.one("reboot").hold(phase, 2)
    prefix = other_boot(site.root)
    driver = run.drive()
    run.wait_for_effect("holds", phase)
    driver.kill()
    run.kill_all()
    run.release()
    result = site.stoker("resume", "--all", prefix=prefix)
    assert result.code == 0, str(result)
    run.wait_for(lambda: run.events("run.ended"))
    assert run.status()["state"] == "succeeded", run.story()
    ended = [row for row in run.events("attempt.ended") if row["phase"] == phase]
    assert [row["class"] for row in ended] in (["transient-infra", "none"], ["hardware-node", "none"])
    assert "restarted" in ended[0]["evidence"]
    assert len([row for row in run.effects("end") if row["phase"] == "train"]) == 1
    crash.check_nothing_left(run)
