"""The workspace lies on a file system that hangs, as a network file system does whose server is away: bindfs, stopped
while a training runs. What the agent is told reaches the command all the same, and once the file system answers again the
run goes on as if nothing had happened."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import crash
import pytest

# On the way out it touches nothing that hangs.
TELLS = """
import signal
signal.signal(signal.SIGTERM, lambda *_: (note("asked"), os._exit(143)))
"""
# More than all buffers on the way to the log take.
LINES = 60000
PRINTS = f"""
real_hold = hold
def hold(number):
    real_hold(number)
    if attempt == ("train", 1) and number == 8:
        for i in range({LINES}):
            print("line", i, "x" * 80)
        note("printed")
"""


class Mount:
    """A folder that answers as long as its process runs."""

    def __init__(self, folder: Path):
        self.real, self.path = folder / "real", folder / "mounted"
        self.real.mkdir(parents=True)
        self.path.mkdir()
        self.process = subprocess.Popen(["bindfs", "-f", self.real, self.path], stderr=subprocess.PIPE)

    def is_there(self) -> bool:
        return os.path.ismount(self.path) or self.process.poll() is not None

    def hang(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def answer(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        self.answer()
        subprocess.run(["umount", "--lazy", self.path], check=False)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def mount(tmp_path):
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or not shutil.which("bindfs"):
        pytest.skip("mounting bindfs takes root, /dev/fuse and Debian's bindfs")
    mount = Mount(tmp_path / "site")
    yield mount
    mount.remove()


@pytest.fixture
def site(mount, tmp_path):
    site = crash.Site(tmp_path / "site", workspace=str(mount.path / "workspace"))
    crash.Run(site, "mounted").wait_for(mount.is_there)
    if mount.process.poll() is not None:
        pytest.skip(f"bindfs cannot mount here: {mount.process.stderr.read().decode()[:200]}")
    yield site
    mount.answer()
    site.clear()


def children(pid: int) -> list:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def waits_in(pid: int, call: str) -> bool:
    """In that function of the kernel."""
    try:
        return call in Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return False


def is_caught(pid: int) -> bool:
    """By the file system that hangs."""
    return waits_in(pid, "request_wait_answer")


def begin(site, mount, name: str, script):
    """A run whose training holds while the workspace hangs; its driver, and its agent, a helper of which is caught."""
    site.also(script)
    run = site.one(name).hold("train", 8)
    driver = run.drive()
    run.wait_for_effect("holds")
    agent, = run.agents()
    mount.hang()
    run.wait_for(lambda: [pid for pid in children(agent) if is_caught(pid)])
    return run, driver, agent


def test_a_signal_reaches_the_command_though_the_workspace_hangs(site, mount):
    run, driver, agent = begin(site, mount, "signal", TELLS)
    os.kill(agent, signal.SIGTERM)
    run.wait_for_effect("asked")
    assert not is_caught(agent)
    run.release()
    mount.answer()
    assert driver.wait() == 0, run.story()
    first, = [row for row in run.events("attempt.ended") if (row["phase"], row["attempt"]) == ("train", 1)]
    assert first["stopped"] == "signal", run.story()
    assert site.status(run.id)["state"] == "succeeded"
    crash.check_nothing_left(run)


def test_a_run_goes_on_when_the_workspace_answers_again(site, mount):
    run, driver, agent = begin(site, mount, "goes-on", PRINTS)
    run.release()
    command = run.effects("start")[-1]["pid"]
    run.wait_for(lambda: waits_in(command, "pipe_write"))
    assert not is_caught(agent)
    mount.answer()
    assert driver.wait() == 0, run.story()
    crash.check_once(run)
    log = site.ok("logs", run.id).out
    assert [line.split()[1] for line in log.splitlines() if line.startswith("line ")] == \
        [str(number) for number in range(LINES)]
