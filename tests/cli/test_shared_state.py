"""State on a shared file system: the journal as objects, the lease as one."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest
import stoker as cli

LEASE = "3s"  # in place of a minute


class Shared:
    """A project whose state is a folder of objects."""

    def __init__(self, project):
        self.project = project
        self.folder = project.root / "shared"
        self.state = ("--state", f"dir:{self.folder}")

    def slow(self, seconds: float):
        self.project.extra(f"import time\ndef step(*args):\n    time.sleep({seconds})\n")

    def held(self):
        """Its training waits for release()."""
        self.project.extra(f"import os, time\ndef start(*args):\n    while os.environ['STOKER_PHASE'] == 'train' and "
                           f"not os.path.exists({str(self.project.root / 'go')!r}):\n        time.sleep(0.05)\n")

    def release(self):
        (self.project.root / "go").touch()

    def start(self, *argv):
        return self.project.start(*self.state, *argv)

    def run(self, *argv):
        return self.start("--json", "run", self.project.spec_path, "--id", "one", *argv)

    def ok(self, *argv):
        return self.project.ok(*self.state, *argv)

    def events(self) -> list:
        result = self.project.stoker(*self.state, "events", "one")
        return result.lines if result.code == 0 else []

    def wait(self, what, seconds=cli.SECONDS):
        """Until an event is there that `what` accepts; the event."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for row in self.events():
                if what(row):
                    return row
            time.sleep(0.05)
        raise AssertionError(f"it did not happen; only {[row['event'] for row in self.events()]}")

    def training(self):
        return self.wait(lambda row: (row["event"], row.get("phase")) == ("attempt.claimed", "train"))

    def lease(self) -> dict:
        return json.loads((self.folder / "runs" / "one" / "lease.json").read_text())

    def trainings(self) -> int:
        return len([row for row in self.events()
                    if (row["event"], row["phase"] if "phase" in row else "") ==
                    ("attempt.submitted", "train")])


@pytest.fixture
def shared(project):
    made, started = Shared(project), []
    start = made.start
    made.start = lambda *argv: started.append(start(*argv)) or started[-1]
    yield made
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_a_run_on_dir_state_is_as_any_other(shared):
    state, project = shared.state, shared.project
    result = project.stoker(*state, "--json", "run", project.spec_path, "--id", "one")
    assert result.code == 0, str(result)
    assert result.lines == shared.events()
    status, = shared.ok("--json", "status", "@last").lines
    assert (status["run"], status["state"]) == ("one", "succeeded")
    assert project.stoker(*state, "run", project.spec_path, "--id", "one").code == 0
    assert shared.events() == result.lines
    assert shared.lease()["held"] is False


def test_a_stopped_driver_that_was_replaced_stands_down_without_an_effect(shared):
    shared.slow(0.5)
    first = shared.run("--lease", LEASE)
    shared.training()
    os.kill(first.pid, signal.SIGSTOP)
    before = len(shared.events())
    time.sleep(3)
    second = shared.start("--json", "resume", "one", "--lease", LEASE)
    taken = shared.wait(lambda row: row["event"] == "driver.took_over" and row["epoch"] == 2)
    assert taken["pid"] == second.pid
    assert taken["seq"] == before + 1
    lease = shared.lease()
    os.kill(first.pid, signal.SIGCONT)
    result = cli.finish(first)
    assert result.code == 7, str(result)
    assert str(second.pid) in result.err or "took run one over" in result.err
    assert shared.lease()["nonce"] == lease["nonce"]
    assert cli.finish(second).code == 0
    rows = shared.events()
    assert [row["event"] for row in rows].count("driver.left") == 0
    assert [row["event"] for row in rows].count("driver.took_over") == 2
    assert rows[-1]["event"] == "run.ended" and rows[-1]["state"] == "succeeded"
    # Its own words end where it was stopped; what it reads afterwards is another's.
    *said, last = result.lines
    assert said == rows[:len(said)] and last["error"]["name"] == "busy", last
    assert shared.trainings() == 1


def test_a_stopped_driver_that_nobody_replaced_goes_on(shared):
    shared.slow(0.3)
    driver = shared.run("--lease", "1s")
    shared.training()
    os.kill(driver.pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(driver.pid, signal.SIGCONT)
    assert cli.finish(driver).code == 0
    assert shared.trainings() == 1


def test_a_driver_that_was_killed_here_is_replaced_at_once(shared):
    """Its lease is good for longer than anything here waits."""
    shared.slow(0.2)
    driver = shared.run("--lease", "1h")
    shared.training()
    driver.kill()
    driver.wait()
    second = shared.start("resume", "one", "--lease", "1h")
    shared.wait(lambda row: row["event"] == "driver.took_over" and row["epoch"] == 2)
    assert cli.finish(second).code == 0
    assert shared.trainings() == 1


def test_a_driver_of_which_nothing_is_known_is_waited_for(shared):
    """As one on another machine: its process cannot be asked."""
    shared.slow(0.4)
    driver = shared.run("--lease", LEASE)
    shared.training()
    driver.kill()
    driver.wait()
    path = shared.folder / "runs" / "one" / "lease.json"
    path.write_text(json.dumps({**shared.lease(), "place": "elsewhere", "host": "far"}))
    start = time.monotonic()
    second = shared.start("resume", "one", "--lease", LEASE)
    shared.wait(lambda row: row["event"] == "driver.took_over" and row["epoch"] == 2)
    assert time.monotonic() - start >= 3
    result = cli.finish(second)
    assert result.code == 0, str(result)
    assert "on far" in result.err
    assert shared.trainings() == 1


def test_of_two_that_resume_one_drives(shared):
    shared.held()
    driver = shared.run()
    shared.training()
    driver.send_signal(signal.SIGTERM)
    assert cli.finish(driver).code == 8
    both = [shared.start("resume", "one") for _ in range(2)]
    while all(process.poll() is None for process in both):
        time.sleep(0.05)
    shared.release()
    results = [cli.finish(process) for process in both]
    assert sorted(result.code for result in results) == [0, 7], "\n".join(map(str, results))
    busy, = [result for result in results if result.code == 7]
    other, = [process for process in both if process.returncode == 0]
    assert str(other.pid) in busy.err and busy.cure
    assert shared.trainings() == 1


def ended(rows) -> bool:
    return any(row["event"] == "run.ended" for row in rows)


@pytest.mark.parametrize("seed", range(2))
def test_drivers_that_are_stopped_and_continued_at_random_share_one_run(shared, seed):
    shared.slow(0.2)
    chance, short = random.Random(seed), ("--lease", "600ms")
    drivers, stopped, end = [shared.run(*short)], [], time.monotonic() + 60
    while time.monotonic() < end and not ended(rows := shared.events()):
        living = [driver for driver in drivers if driver.poll() is None and driver not in stopped]
        act = chance.random()
        if act < 0.35 and living:
            stopped.append(chance.choice(living))
            stopped[-1].send_signal(signal.SIGSTOP)
        elif act < 0.7 and stopped:
            stopped.pop(chance.randrange(len(stopped))).send_signal(signal.SIGCONT)
        elif len(living) < 3 and rows:
            drivers.append(shared.start("--json", "resume", "one", *short))
        time.sleep(chance.uniform(0.05, 0.8))
    for driver in stopped:
        driver.send_signal(signal.SIGCONT)
    results = [cli.finish(driver) for driver in drivers]
    if not ended(shared.events()):  # each of them met another that was there
        results.append(shared.project.stoker(*shared.state, "resume", "one", *short))
    rows = shared.events()
    said = "\n".join(map(str, results))
    assert {result.code for result in results} <= {0, 7}, said
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["event"] for row in rows].count("run.ended") == 1
    assert rows[-1]["state"] == "succeeded", said
    assert shared.trainings() == 1


def test_stop_reaches_the_driver_through_the_journal(shared):
    shared.slow(0.2)
    shared.project.write(checkpoint=None)
    driver = shared.run("--set", "hyperparameters.max_steps=500")
    shared.training()
    assert shared.ok("stop", "one").code == 0
    assert cli.finish(driver).code == 6
    assert shared.events()[-1]["state"] == "stopped"


def test_the_other_kind_of_state_is_refused_with_a_cure(shared):
    project = shared.project
    assert project.stoker(*shared.state, "run", project.spec_path, "--id", "one").code == 0
    result = project.stoker("--state", f"sqlite:{shared.folder}", "list")
    assert result.code == 4
    assert "dir" in result.err and "sqlite" in result.cure
    # By its path alone it is what it is.
    assert project.ok("--state", shared.folder, "--json", "list").lines[0]["run"] == "one"
    result = project.stoker("--state", "ftp:/x", "list")
    assert result.code == 2 and "dir:DIRECTORY" in result.cure


@pytest.fixture
def network_folder(project):
    """A folder on a file system that counts as a network: FUSE, over a real one."""
    real, mounted = project.root / "real", project.root / "mounted"
    real.mkdir()
    mounted.mkdir()
    done = subprocess.run([shutil.which("bindfs") or "bindfs", real, mounted], capture_output=True) \
        if shutil.which("bindfs") else None
    if not done or done.returncode != 0:
        pytest.skip(f"bindfs cannot mount here: {done.stderr.decode()[:200] if done else 'not installed'}")
    yield mounted
    subprocess.run(["umount", mounted], check=False) if os.geteuid() == 0 else \
        subprocess.run(["fusermount", "-u", mounted], check=False)


def test_on_a_network_file_system_the_state_is_objects_without_being_told(project, network_folder):
    state = network_folder / "not" / "there" / "yet"
    assert project.stoker("--state", state, "run", project.spec_path, "--id", "one").code == 0
    assert (state / "journal.json").exists() and not (state / "journal.db").exists()
    assert project.ok("--state", state, "--json", "list").lines[0]["state"] == "succeeded"
    assert project.ok("--state", f"dir:{state}", "rm", "one").code == 0
    result = project.stoker("--state", f"sqlite:{network_folder}", "run", project.spec_path)
    assert result.code == 4
    assert f"dir:{network_folder}" in result.cure
    assert not (network_folder / "journal.db").exists()


def test_help_does_not_speak_of_options_for_tests(project):
    for words in (("help", "run"), ("help", "resume"), ("help", "rm"), ("help", "list")):
        assert "--lease" not in project.ok(*words).out
    assert "lease" not in project.stoker("run", "--leas", "1s", project.spec_path).err.split("hint")[1]
