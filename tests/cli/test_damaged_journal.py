"""A journal that is damaged is said to be, with its file, the run and a cure; what is read of it
is true; and the other runs, as well as the damaged one's removal, go on as ever."""

import contextlib
import json
import os
import random
import shutil
import sqlite3
import time

import crash
import pytest

FLIPS, CUTS = 5, 3  # of each kind of journal and run
CURE = ("restore", "move", "write", "remove", "delete")


class Kept:
    """A site with a finished run `other`, and `victim`, finished or left by its driver; put back
    before each damage."""

    def __init__(self, root, journal: str, is_open: bool):
        self.site = crash.Site(root, journal)
        self.is_open, self.state = is_open, self.site.state
        try:
            assert self.site.one("other").drive().wait() == 0
            victim = self.site.one("victim")
            if is_open:
                self.leave(victim.hold("train", 3))
            else:
                assert victim.drive().wait() == 0, victim.story()
        finally:
            self.site.clear()
        self.backup = root / "backup"
        self.agents = root / "agents"  # large, and never changed
        os.rename(self.state / "workspace/agents", self.agents)
        os.rename(self.state, self.backup)
        self.restore()
        self.spec, self.third = victim.argv()[1:], self.site.one("third").argv()[1:]
        self.true = {run: self.site.ok("events", run).lines for run in ("other", "victim")}
        self.restore()

    def leave(self, victim):
        driver = victim.drive()
        victim.wait_for_effect("holds")
        assert driver.kill()
        victim.release()
        victim.wait_for(lambda: not victim.processes())

    def restore(self):
        if self.state.exists():
            os.rename(self.state / "workspace/agents", self.agents)
            shutil.rmtree(self.state)
        shutil.copytree(self.backup, self.state, symlinks=True)
        os.rename(self.agents, self.state / "workspace/agents")

    def files(self) -> list:
        """Those of the journal, which lie there now."""
        if self.site.journal == "sqlite":
            return [path for path in sorted(self.state.glob("journal.db*"))
                    if not path.name.endswith("-shm") and path.stat().st_size > 0]
        return [self.state / "journal.json", *sorted((self.state / "runs" / "victim").rglob("events/*"))]

    def stoker(self, *argv):
        return self.site.stoker(*argv)


@pytest.fixture(scope="module", params=["sqlite-finished", "sqlite-open", "dir-finished", "dir-open"])
def kept(request, tmp_path_factory):
    journal, _, kind = request.param.partition("-")
    return Kept(tmp_path_factory.mktemp("damaged") / request.param, journal, kind == "open")


def check_told(kept, result, what):
    """An error that helps: which file, which run where it is of one, what to do."""
    assert result.code == 4, f"{what}\n{result}"
    assert str(kept.state) in result.err, f"{what}\n{result}"
    assert any(word in result.cure for word in CURE), f"{what}\n{result}"


def check_events(kept, run, what) -> bool:
    """What is told of a run is all that there is, or damage is said: is it whole?"""
    result = kept.stoker("events", run)
    if result.code == 0:
        assert result.lines == kept.true[run], f"{what}\n{result}"
        return True
    check_told(kept, result, what)
    assert run in result.err or "is no database" in result.err or "journal" in result.err, f"{what}\n{result}"
    assert result.lines == kept.true[run][:len(result.lines)], f"{what}\n{result}"
    return False


def check_all(kept, what):
    """Every command on a state that may be damaged."""
    other, victim = (check_events(kept, run, what) for run in ("other", "victim"))
    # Without -v a run that has ended is shown by its summary, which its events do not change.
    listed = kept.stoker("--json", "-v", "list")
    names = {line["run"]: line["state"] for line in listed.lines if "run" in line}
    assert listed.code == (0 if other and victim else 4), f"{what}\n{listed}"
    if other:
        assert names["other"] == "succeeded", f"{what}\n{listed}"
        assert "victim" in names and (names["victim"] != "damaged") == victim, f"{what}\n{listed}"
    for argv in (("status", "victim"), ("logs", "victim"), ("status", "other")):
        result = kept.stoker(*argv)
        whole = other if argv[1] == "other" else victim
        if whole:
            assert result.code == 0, f"{what}\n{result}"
        elif argv[0] != "logs" or result.code != 0:
            check_told(kept, result, what)
    for argv in (("resume", "victim"), ("stop", "victim"), kept.spec):
        result = kept.stoker(*argv)
        if not victim:
            check_told(kept, result, what)
        assert result.code in (0, 4, 6), f"{what}\n{result}"
    if other:
        check_removal(kept, what)


def check_removal(kept, what):
    """The damaged run can be forgotten, and another begun; the other is still there."""
    removed = kept.stoker("rm", "victim")
    assert removed.code == 0, f"{what}\n{removed}"
    listed = kept.stoker("--json", "list")
    assert listed.code == 0, f"{what}\n{listed}"
    assert [line["run"] for line in listed.lines] == ["other"], f"{what}\n{listed}"
    assert check_events(kept, "other", what)


def flip(path, at, bit):
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def test_a_flipped_byte_is_found_or_changes_nothing(kept):
    chance = random.Random(f"{crash.SEED}/flips/{kept.site.journal}/{kept.is_open}")
    for _ in range(FLIPS):
        kept.restore()
        path = chance.choice(kept.files())
        at, bit = chance.randrange(path.stat().st_size), chance.randrange(8)
        flip(path, at, bit)
        check_all(kept, f"bit {bit} of byte {at} of {path}")


def test_a_cut_file_is_found_or_changes_nothing(kept):
    chance = random.Random(f"{crash.SEED}/cuts/{kept.site.journal}/{kept.is_open}")
    for turn in range(CUTS):
        kept.restore()
        path = chance.choice(kept.files())
        size = chance.randrange(path.stat().st_size) if turn else 0
        os.truncate(path, size)
        check_all(kept, f"{path} cut to {size} bytes")


def event(kept, seq):
    return kept.state / f"runs/victim/events/{seq:012}.json"


def change(kept, sql, *values):
    with contextlib.closing(sqlite3.connect(kept.state / "journal.db")) as db, db:
        assert db.execute(sql, values).rowcount > 0


def take_out(kept, seq):
    if kept.site.journal == "sqlite":
        change(kept, "DELETE FROM event WHERE run='victim' AND seq=?", seq)
    else:
        event(kept, seq).unlink()


def empty(kept, seq):
    if kept.site.journal == "sqlite":
        change(kept, "UPDATE event SET body='' WHERE run='victim' AND seq=?", seq)
    else:
        event(kept, seq).write_bytes(b"")


def exchange(kept, seq):
    """Two events that are each right."""
    if kept.site.journal == "sqlite":
        for old, new in ((seq, -1), (seq + 1, seq), (-1, seq + 1)):
            change(kept, "UPDATE event SET seq=? WHERE run='victim' AND seq=?", new, old)
    else:
        kept_one = event(kept, seq).read_bytes()
        event(kept, seq).write_bytes(event(kept, seq + 1).read_bytes())
        event(kept, seq + 1).write_bytes(kept_one)


def alter(kept, seq):
    """Another time: a right event, and nobody wrote it."""
    year = kept.true["victim"][seq - 1]["at"][:4]
    if kept.site.journal == "sqlite":
        change(kept, "UPDATE event SET body=replace(body, '\"at\":\"' || ?, '\"at\":\"1999') "
                     "WHERE run='victim' AND seq=?", year, seq)
    else:
        path = event(kept, seq)
        path.write_text(path.read_text().replace(f'"at":"{year}', '"at":"1999'))


@pytest.mark.parametrize("damage", [take_out, empty, exchange, alter], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("seq", [1, 4])
def test_an_event_that_is_not_what_was_written_is_named(kept, damage, seq):
    kept.restore()
    damage(kept, seq)
    result = kept.stoker("status", "victim")
    check_told(kept, result, damage.__name__)
    assert f"event {seq} of run victim" in result.err, str(result)
    assert "stoker rm victim" in result.cure, str(result)
    if seq > 1:
        check_all(kept, damage.__name__)


def test_no_event_loses_its_sum_by_one_bit(kept):
    """As if a version had written it that knew none."""
    kept.restore()
    for row in kept.true["victim"][3:5]:
        if kept.site.journal == "sqlite":
            change(kept, "UPDATE event SET body=replace(body, '\"sum\"', '\"rum\"') WHERE run='victim' AND seq=?",
                   row["seq"])
        else:
            path = event(kept, row["seq"])
            path.write_text(path.read_text().replace('"sum"', '"rum"'))
    result = kept.stoker("events", "victim")
    check_told(kept, result, "rum")
    assert result.lines == kept.true["victim"][:3], str(result)


def test_the_events_up_to_the_damage_are_shown(kept):
    kept.restore()
    alter(kept, 4)
    result = kept.stoker("events", "victim")
    assert result.code == 4 and result.lines == kept.true["victim"][:3], str(result)


def without_sum(row: dict) -> str:
    return json.dumps({name: value for name, value in row.items() if name != "sum"}, separators=(",", ":"))


def rewrite(kept, count):
    """The first events are those of a version that knew no sums, as far as `count` says."""
    for row in kept.true["victim"][:count]:
        if kept.site.journal == "sqlite":
            change(kept, "UPDATE event SET body=? WHERE run='victim' AND seq=?", without_sum(row), row["seq"])
        else:
            path = event(kept, row["seq"])
            path.write_text(path.read_text()[:path.read_text().index('"event":')] +
                            f'"event":{without_sum(row)}}}\n')


def test_a_journal_of_the_version_before_is_read_and_gone_on_with(kept):
    kept.restore()
    rewrite(kept, len(kept.true["victim"]))
    for path in kept.state.glob("runs/*/journal.end"):
        path.unlink()
    shutil.rmtree(kept.state / "runs/victim/chunks", ignore_errors=True)
    rows = kept.stoker("events", "victim").lines
    assert [row.get("sum") for row in rows] == [None] * len(kept.true["victim"])
    assert kept.stoker("resume", "victim").code == 0
    after = kept.stoker("events", "victim").lines
    assert after[:len(rows)] == rows
    assert all(len(row["sum"]) == 64 for row in after[len(rows):])
    assert len(after) > len(rows) or not kept.is_open
    status = kept.stoker("--json", "status", "victim")
    assert status.code == 0 and status.lines[0]["state"] == "succeeded", str(status)


def test_a_driver_of_the_version_before_may_write_between(kept):
    """It drives, and a `stop` of this version tells it to end."""
    if not kept.is_open:
        pytest.skip("nobody writes to it any more")
    kept.restore()
    last = kept.true["victim"][-1]
    old = without_sum({"v": 1, "run": "victim", "seq": last["seq"] + 1, "at": last["at"], "event": "driver.left",
                       "epoch": 1, "reason": "interrupted"})
    if kept.site.journal == "sqlite":
        change(kept, "INSERT INTO event VALUES('victim', ?, ?)", last["seq"] + 1, old)
    else:
        event(kept, last["seq"] + 1).write_text(f'{{"by":"{"0" * 32}","event":{old}}}\n')
    assert len(kept.stoker("events", "victim").lines) == last["seq"] + 1
    assert kept.stoker("resume", "victim").code == 0
    assert kept.stoker("--json", "status", "victim").lines[0]["state"] == "succeeded"


def put_link(path):
    path.symlink_to(path)


def put_device(path):
    path.symlink_to("/dev/zero")


OBSTACLES = {"pipe": os.mkfifo, "folder": lambda path: path.mkdir(), "loop": put_link, "device": put_device}


def names(kept) -> list:
    lease = "runs/victim/driver.lock" if kept.site.journal == "sqlite" else "runs/victim/lease.json"
    own = ["journal.db", "journal.db-shm", "journal.db-wal"] if kept.site.journal == "sqlite" else \
        ["journal.json", "runs/victim/events", "runs/victim/events/000000000002.json"]
    return [*own, lease]


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_what_is_no_file_is_refused_at_once(kept, obstacle):
    for name in names(kept):
        if (name, obstacle) == ("runs/victim/events", "folder"):
            continue  # it is one
        kept.restore()
        path = kept.state / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        OBSTACLES[obstacle](path)
        begin = time.monotonic()
        for argv in (("list",), ("status", "victim"), ("logs", "victim"), ("resume", "victim"), ("stop", "victim"),
                     *((kept.spec, kept.third) if obstacle == "pipe" else ())):
            result = kept.stoker(*argv)
            assert result.code in (0, 4), f"{obstacle} {name}\n{result}"
            if result.code == 4:
                check_told(kept, result, f"{obstacle} {name}")
        assert time.monotonic() - begin < crash.PATIENCE
        if kept.is_open and "events" not in name and name.startswith("runs/"):
            shutil.rmtree(path) if obstacle == "folder" else path.unlink()  # the cure
            assert kept.stoker("resume", "victim").code == 0, f"{obstacle} {name}"
        if name.startswith("runs/"):
            check_removal_beside_third(kept, f"{obstacle} {name}")


def check_removal_beside_third(kept, what):
    assert kept.stoker("rm", "victim").code == 0, what
    assert kept.stoker("rm", "third").code == (0 if "pipe" in what else 9), what
    listed = kept.stoker("--json", "list")
    assert listed.code == 0 and [line["run"] for line in listed.lines] == ["other"], f"{what}\n{listed}"


def test_a_database_that_is_gone_is_not_no_runs(kept):
    if kept.site.journal != "sqlite":
        pytest.skip("of the database")
    for rest in ([], ["journal.db"]):
        kept.restore()
        for path in kept.state.glob("journal.db*"):
            if path.name in rest:
                os.truncate(path, 0)
            else:
                path.unlink()
        for argv in (("list",), ("status", "victim"), kept.third):
            result = kept.stoker(*argv)
            check_told(kept, result, argv)
            assert "no runs" not in result.err and "victim" in result.err, str(result)


def test_a_log_of_writes_that_is_gone_or_garbage(kept):
    """What a killed driver wrote last lies in there; the index of it is made anew."""
    wal, index = (kept.state / f"journal.db-{end}" for end in ("wal", "shm"))
    kept.restore()
    if not wal.exists():
        pytest.skip("there is none")
    index.write_bytes(os.urandom(32768))
    assert check_events(kept, "victim", "its index is garbage")
    for spoil in (lambda: wal.unlink(), lambda: wal.write_bytes(os.urandom(40000)),
                  lambda: os.truncate(wal, wal.stat().st_size // 2)):
        kept.restore()
        spoil()
        assert not check_events(kept, "victim", "its log is gone")
        result = kept.stoker("resume", "victim")
        check_told(kept, result, "its log is gone")


def test_whoever_goes_on_without_the_lost_end_says_so(kept):
    """The cure that is named works: the run goes on from what is there."""
    wal = kept.state / "journal.db-wal"
    kept.restore()
    if not wal.exists():
        pytest.skip("there is no log")
    take_last = len(kept.true["victim"])
    change(kept, "DELETE FROM event WHERE run='victim' AND seq=?", take_last)
    result = kept.stoker("resume", "victim")
    check_told(kept, result, "its end is lost")
    assert "stoker resume victim --salvage" in result.cure
    assert kept.stoker("resume", "victim", "--salvage").code == 0
    assert kept.stoker("resume", "victim").code == 0


def test_state_is_for_its_owner_alone(kept):
    kept.restore()
    for path in (kept.state / "runs").rglob("*"):
        if path.is_file() and "workspace" not in path.parts:
            assert path.stat().st_mode & 0o077 == 0, path
    for path in kept.state.glob("journal*"):
        assert path.stat().st_mode & 0o077 == 0, path
