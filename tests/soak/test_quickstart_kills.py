"""The quickstart's own model, while its drivers are killed at moments drawn from
the seed: it is compiled once, trained once, and learns."""

import random
import shutil
import time

import crash
import pytest
import stoker as cli

QUICKSTART = cli.ROOT / "configs/quickstart"
TIMES = 3


class Quickstart(crash.Site):
    """A user's own copy of it."""

    def __init__(self, root):
        super().__init__(root)
        shutil.rmtree(self.source)
        self.source.mkdir()
        for path in QUICKSTART.iterdir():
            if path.is_file():
                shutil.copy(path, self.source)
        (self.source / ".gitignore").write_text(".venv/\n")
        (self.source / ".venv").symlink_to(QUICKSTART / ".venv")

    def one(self, run, *sets):
        made = super().one(run, *sets)
        made.sets = [each for each in made.sets if not each.startswith("env.")]
        return made


@pytest.mark.parametrize("number", range(TIMES))
def test_the_quickstart_is_trained_once_whoever_drives(tmp_path, number):
    site = Quickstart(tmp_path / "site")
    run = site.one(f"quickstart-{number}")
    chance = random.Random(f"{crash.SEED}/{run.id}")
    try:
        driver = run.drive()
        while True:
            limit = time.monotonic() + chance.uniform(0, 6)
            while time.monotonic() < limit and not driver.ended():
                time.sleep(0.01)
            if not driver.kill():
                break
            driver = crash.go_on(run, chance, None)
        assert len(run.drivers) > 3
        crash.check_journal(run)
        crash.check_nothing_left(run)
        assert run.status()["metrics"]["accuracy"] > 0.95
    finally:
        site.clear()
