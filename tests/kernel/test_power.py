"""The power goes in the middle of a run: state, workspace, cache and checkpoints lie on a disk of which every
write is known (power.py). After each cut the run is taken up on what was left, and cut again on the way.

What was shown to a user before a cut is there after it: events, and marked checkpoints. The run goes on to its
end, no attempt runs twice, and no training compiles what phase 1 has proved.

It takes place on the kernel of this machine, so what the cut does not end is not ended: the boot id is the
same after it, and no process of the run is left."""

import json
import os
import random
import threading
import time

import crash
import power
import pytest

CUTS = int(os.environ.get("STOKER_TEST_CUTS", "4"))  # of one journal, anywhere; each is cut a second time
# And as soon as these are shown: what they rest on must be on the disk.
TELLING = ("attempt.ended precompile", "cache.verified", "checkpoint.complete", "attempt.ended train")
STEPS = 30


class Shown:
    """The events that a driver shows, and how much of the log of the disk there was by then."""

    def __init__(self, disk, driver):
        self.disk, self.driver, self.rows, self.over = disk, driver, [], threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def watch(self):
        while True:
            over = self.over.is_set()
            rows = self.driver.rows()[len(self.rows):]
            written = self.disk.written()
            self.rows += [(written, row) for row in rows]
            if over:
                return
            time.sleep(0.002)

    def before(self, position):
        return [row for written, row in self.rows if written <= position]


class Powered:
    """A site on a disk whose power is cut; what tells what happened is outside of it."""

    def __init__(self, folder, journal):
        self.disk, self.journal, self.folder, self.site = power.Disk(folder), journal, folder, None
        self.effects = folder / "effects"
        (folder / "drivers").mkdir()

    def lay_out(self):
        with self.disk.mounted(self.disk.image):
            root = self.disk.root / "site"
            self.site = crash.Site(root, self.journal, hyperparameters={"max_steps": STEPS})
            (root / "drivers").symlink_to(self.folder / "drivers")
        self.run = self.site.one("cut", "env.STEP_SECONDS=0.02")
        self.run.notes = self.effects
        self.run.sets[0] = f"env.EFFECTS={self.effects}"

    def go_on(self, image, known):
        """From this image to the end, recorded; the events that were shown. `known`: those that must be there."""
        self.effects.unlink(missing_ok=True)
        with self.disk.recorded(image):
            driver = self.run.resume() if self.check_known(known) else self.run.drive()
            with Shown(self.disk, driver) as shown:
                code = driver.wait()
            assert code == 0, self.run.story()
            self.check_end(known)
        return shown

    def check_known(self, known):
        """What was shown is there; whether the run is."""
        listed = self.site.ok("--json", "list")
        assert not {"damaged", "unreadable"} & {line["state"] for line in listed.lines}, str(listed)
        rows = self.run.events() if self.run.is_listed() else []
        for row in known:
            assert row in rows, f"shown, and lost: {row}\n{self.run.story()}"
        return bool(rows)

    def check_end(self, known):
        rows, story = self.run.events(), crash.Story(self.run)
        crash.check_order(rows, story)
        assert all(row in rows for row in known), story
        assert rows[-1]["event"] == "run.ended" and rows[-1]["state"] == "succeeded", story
        kinds = [row["event"] for row in rows]
        assert kinds.count("run.created") == kinds.count("run.ended") == 1, story
        starts = [(row["phase"], row["attempt"]) for row in self.run.effects("start")]
        assert len(starts) == len(set(starts)), f"an attempt began twice: {starts}\n{story}"
        ended = {(row["phase"], row["attempt"]) for row in known if row["event"] == "attempt.ended"}
        assert not ended & set(starts), f"it had ended: {starts}\n{story}"
        assert not [row for row in rows if row["event"] == "jit.compiled" and row["graphs"]], story
        saved = max((row["step"] for row in known if row["event"] == "checkpoint.complete"), default=0)
        assert all(row["done"] >= saved for row in self.run.effects("start") if row["phase"] == "train"), story
        crash.check_nothing_left(self.run)


def written(records, count):
    """Length of the log with so many records."""
    offset, data, at = records[count - 1] if count else (0, b"", -16)
    return at + 16 + len(data)


def anywhere(records, shown, chance, count):
    """Numbers of records after which the power goes; the run has begun there, or is about to."""
    first = next((i for i, (_, _, at) in enumerate(records) if at >= shown.rows[0][0]), 0) // 2
    return chance.sample(range(first, len(records)), min(count, len(records) - first))


def telling(records, shown):
    """The same for the moments at which one of TELLING was shown."""
    told = {}
    for position, row in shown.rows:
        for name in (row["event"], f"{row['event']} {row.get('phase', '')}"):
            if name in TELLING:
                told.setdefault(name, position)
    assert len(told) == len(TELLING), told
    return [sum(at < position for _, _, at in records) for position in told.values()]


@pytest.mark.parametrize("journal", ["sqlite", "dir"])
def test_what_was_shown_before_a_power_cut_is_there_after_it(journal):
    if why := power.refused():
        pytest.skip(why)
    chance = random.Random(f"{crash.SEED}/{journal}")
    with power.folder() as folder:
        powered = Powered(folder, journal)
        powered.lay_out()
        base = powered.disk.copy("begun.img")
        whole = powered.go_on(base, [])
        records = powered.disk.records(powered.disk.written())
        cuts = sorted(anywhere(records, whole, chance, CUTS) + telling(records, whole))
        images = power.Cuts(powered.disk.image, records, folder)
        for number, cut in enumerate(cuts):
            known = whole.before(written(records, cut))
            image = images.make(cut, chance if number % 2 else None)
            before = powered.disk.copy("before.img", image)
            again = powered.go_on(image, known)
            if not again.rows:
                continue
            second = powered.disk.records(powered.disk.written())
            place, = anywhere(second, again, chance, 1)
            both = known + again.before(written(second, place))
            powered.go_on(power.Cuts(before, second, folder / "inner").make(place, chance), both)
        print(f"{journal}: {len(cuts)} cuts of {len(records)} writes and flushes, each cut once more; "
              f"{len(cuts) // 2} with writes lost that were not flushed")
