"""What is named must be there after a power cut, by what the kernel was asked: strace shows that each file and
folder of a checkpoint was synced, behind its last write, before the mark that names it; each entry of the cache
before the compile manifest that names it; and that the manifest is read again before each attempt of the training.
A file system that cannot sync folders is accepted, and named once."""

import errno
import re
from pathlib import Path

import crash
import inject
import preload
import pytest
import wrapped

CALLS = ("openat", "write", "pwrite64", "ftruncate", "fsync", "fdatasync", "link", "linkat", "rename", "renameat",
         "renameat2")
SYNCED = re.compile(r"f(?:data)?sync\(\d+<([^>]+)>\) += 0")
CHANGED = re.compile(r"(?:write|pwrite64|ftruncate)\(\d+<([^>]+)>")
NAMED = re.compile(r'(?:link|rename)(?:at2?)?\(.*"([^"]+)"')
# Saves into folders of folders, and by a rename; fails twice, as a network does.
TRAINER = """
save_flat = save


def save(number):
    part = Path(os.environ["STOKER_CHECKPOINT_DIR"]) / f"tmp-checkpoint-{number}/parts/rank-0"
    part.mkdir(parents=True)
    (part / "shard.bin").write_bytes(b"x" * 3000)
    save_flat(number)
    if attempt in (("train", 1), ("train", 2)) and number == 5 * attempt[1]:
        raise ConnectionResetError("[Errno 104] Connection reset by peer")
"""


@pytest.fixture
def site(tmp_path):
    site = crash.Site(tmp_path / "site", "dir", hyperparameters={"max_steps": 20})
    yield site
    site.clear()


class Log:
    """What all processes of a run asked of the kernel, in order."""

    def __init__(self, path):
        self.lines, begun = [], {}
        for line in path.read_text(errors="replace").splitlines():
            pid = line.split()[0]
            if line.endswith("<unfinished ...>"):
                begun[pid] = line.removesuffix(" <unfinished ...>")
                line = "" if "sync(" in line else begun[pid]  # a sync counts where it ends
            elif "sync resumed>" in line:
                line = begun.pop(pid) + line.partition("resumed>")[2]
            self.lines.append(line)

    def named(self, pattern):
        """(line number, name) wherever a name was given to a file."""
        found = [(number, NAMED.search(line)) for number, line in enumerate(self.lines)]
        return [(number, name.group(1)) for number, name in found if name and re.search(pattern, name.group(1))]

    def last(self, pattern, path, before):
        """The last line of that kind before a line; -1: none. A file may have had a name of its own until then."""
        names = {str(path), re.sub(r"/checkpoint-(\d+)/", r"/tmp-checkpoint-\1/", str(path))}
        for number in range(before - 1, -1, -1):
            found = pattern.search(self.lines[number])
            if found and found.group(1) in names:
                return number
        return -1

    def check_synced(self, path, before):
        synced = self.last(SYNCED, path, before)
        assert synced >= 0, f"{path} was not synced before {self.lines[before]}"
        assert path.is_dir() or synced > self.last(CHANGED, path, before), f"{path} was written after it was synced"


@pytest.fixture
def watched(site, tmp_path):
    """A run and the log of its calls, from end to end."""
    if why := inject.refused():
        pytest.skip(why)
    site.also(TRAINER)
    run, trace = site.one("watched", "env.STEP_SECONDS=0.01"), tmp_path / "trace"
    prefix = ("strace", "-f", "-y", "-s", "300", "-e", f"trace={','.join(CALLS)}", "-o", str(trace))
    assert run.drive(prefix=prefix, env=inject.env()).wait() == 0, run.story()
    return run, Log(trace)


def test_nothing_is_named_that_is_not_synced(site, watched):
    run, log = watched
    marks = log.named(r"checkpoint-\d+\.stoker\.json$")
    assert len(marks) >= 4, run.story()
    for number, name in marks:
        root = re.search(r'<([^>]+)>, "[^"]+\.stoker\.json"', log.lines[number]).group(1)
        folder = Path(root, name.rpartition("/")[2].removesuffix(".stoker.json"))
        for path in (folder.parent, folder, *folder.rglob("*")):
            log.check_synced(path, number)
    entries = list((site.root / "caches/watched").glob("*-cache"))
    manifests = log.named(r"(?:^|/)[0-9a-f]{64}\.json$")
    assert len(entries) == 3 and manifests, run.story()
    for path in (*entries, entries[0].parent):
        log.check_synced(path, manifests[-1][0])


def test_the_manifest_is_read_before_each_attempt_of_the_training(watched):
    run, log = watched
    intended = [row["seq"] for row in run.events("attempt.intended") if row["phase"] == "train"]
    assert len(intended) == 3, run.story()
    events = dict((int(Path(name).stem), number) for number, name in reversed(log.named(r"(?:^|/)\d{12}\.json$")))
    ended = [row["seq"] for row in run.events("attempt.ended")]
    for seq in intended:
        begin = events[max(each for each in ended if each < seq)]
        between = "\n".join(log.lines[begin:events[seq]])
        assert re.search(r'openat\(.*[0-9a-f]{64}\.json", O_RDONLY', between), f"event {seq}\n{between}"


def test_a_file_system_that_cannot_sync_folders_is_named_once(site, tmp_path):
    site.also(TRAINER)
    agent, library = wrapped.Agent(tmp_path / "wrapped"), preload.Preload(tmp_path)
    run = site.one("refused", "env.STEP_SECONDS=0.01")
    for attempt in ("precompile-1", "train-1", "train-2", "train-3"):
        agent.count(run.id, attempt, role="nobody", folders=errno.EINVAL)
    driver = run.drive(prefix=library.prefix(folders=errno.EINVAL), env=agent.env())
    assert driver.wait() == 0, run.story()
    told = [row for row in run.events("environment.checked") if "cannot sync folders" in row["reason"]]
    assert len(told) == 1 and "node" not in told[0] and str(site.state) in told[0]["reason"], run.story()
    assert len(run.events("checkpoint.complete")) >= 4, run.story()


def test_a_file_system_that_syncs_folders_is_not_named(site):
    run = site.one("quiet", "env.STEP_SECONDS=0.01")
    assert run.drive().wait() == 0
    assert not run.events("environment.checked"), run.story()
