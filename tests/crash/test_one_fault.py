"""One call to the outside fails, once, wherever the driver makes one: the run is finished all
the same, no job is left to itself, a stop reaches it, and the end is recorded.

Which calls there are, one run finds out; then each has a run of its own in which it fails.
`./test` draws a share of them by seed; STOKER_TEST_FAULTS=all takes each (tests/soak)."""

import errno
import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import crash
import pytest
from project import SUPPORT

SHARE = os.environ.get("STOKER_TEST_FAULTS", "40")
AT_A_TIME = 4
ERRORS = [errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOSPC]
STEPS = 12
# What asks for the run, and whether the run is stopped on the way.
STORIES = ["run", "taken-over", "stopped"]


def library(folder: Path) -> Path:
    built = folder / "one_fault.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", built,
                    SUPPORT / "one_fault.c"], check=True)
    return built


class Faults:
    def __init__(self, folder: Path):
        self.site = crash.Site(folder, hyperparameters={"max_steps": STEPS}, workspace=str(folder / "workspace"))
        self.library = library(folder)
        self.folder = folder
        # The second run of one source: everything that is there only once is there.
        assert self.new("first").drive().wait() == 0
        self.places = {}
        for story in STORIES:
            run, log = self.new(f"listed-{story}"), folder / f"places-{story}"
            self.tell(run, story, self.env(run, FAULT_LOG=str(log)))
            for line in log.read_text().splitlines():
                self.places.setdefault(line, []).append(story)
        chance = random.Random(crash.SEED)
        drawn = lines = sorted(self.places)
        if SHARE != "all":
            drawn = chance.sample(lines, min(int(SHARE), len(lines)))
        self.drawn = [(line, chance.choice(ERRORS), chance.choice(self.places[line])) for line in drawn]

    def new(self, run: str) -> crash.Run:
        return self.site.one(run, "env.STEP_SECONDS=0.02")

    def env(self, run: crash.Run, **more: str) -> dict:
        env = crash.clock_env(self.library, 0)
        env.pop("OTHER_CLOCK_S")
        roots = [self.site.state, self.site.root / "workspace", self.site.root / "caches"]
        return {**env, "FAULT_ROOTS": ":".join(map(str, roots)), **more}

    def finish(self, run: crash.Run, driver: crash.Driver, code: int = 0) -> None:
        ended = driver.wait()
        if ended != code:
            # It may end only while nothing of the run is at work; then it is taken up again.
            assert not run.processes(), f"exit {ended}, and a job is left to itself\n{run.story()}"
            assert ended in (4, 75), run.story()
            again = run.drive() if not run.is_created() else run.resume()
            assert again.wait() == code, run.story()
        crash.check_nothing_left(run)

    def tell(self, run: crash.Run, story: str, env: dict) -> None:
        """The story with a driver in which a call fails."""
        if story == "run":
            self.finish(run, run.drive(env=env))
        elif story == "taken-over":
            first = run.hold("train", 8).drive()
            run.wait_for_effect("holds")
            first.kill()
            driver = run.resume(env=env)
            run.release()
            self.finish(run, driver)
        else:
            self.stop(run, run.hold("train", 8).drive(env=env))
            return
        crash.check_journal(run)

    def stop(self, run: crash.Run, driver: crash.Driver) -> None:
        run.wait_for(lambda: driver.ended() or any(row["phase"] == "train" for row in run.effects("holds")))
        if driver.ended():
            run.release()
            self.finish(run, driver)
            return
        stopped = self.site.stoker("stop", run.id)
        assert stopped.code == 0, f"{stopped}\n{run.story()}"
        self.finish(run, driver, 6)
        assert run.status()["state"] == "stopped", run.story()

    def play(self, number: int) -> bool:
        """Whether the call was made at all: what a driver does is not the same each time."""
        line, error, story = self.drawn[number]
        run, log = self.new(f"fault-{number}"), self.folder / f"fault-{number}"
        run.epilogue.append(f"{line}: {errno.errorcode[error]}, {story}")
        self.tell(run, story, self.env(run, FAULT_LOG=str(log), FAULT_PLACE=line.split()[0], FAULT_ERRNO=str(error)))
        return line in log.read_text().splitlines()


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    faults = Faults(tmp_path_factory.mktemp("faults"))
    yield faults
    faults.site.clear()


def test_one_call_that_fails_leaves_no_job_to_itself(faults):
    print(f"{len(faults.places)} places, {len(faults.drawn)} of them fail")
    assert len(faults.places) > 100, faults.places
    failed, met = [], 0
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for future in [pool.submit(faults.play, number) for number in range(len(faults.drawn))]:
            try:
                met += future.result()
            except AssertionError as why:
                failed.append(str(why))
    print(f"{met} of them were met")
    assert met >= len(faults.drawn) * 0.7
    assert not failed, f"{len(failed)} of {len(faults.drawn)}\n" + "\n".join(
        why.partition("assert")[0] for why in failed)
