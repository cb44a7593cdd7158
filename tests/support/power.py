"""A disk whose power is cut: an ext4 on a loop device on a file that records every block written
(block_log.c), and images of what such a disk holds when it stops after any of the writes.

It needs root, /dev/fuse, loop devices and libfuse3. What a killed test leaves mounted, the next
one takes down."""

import contextlib
import functools
import os
import random
import re
import shlex
import shutil
import struct
import subprocess
import time
from pathlib import Path

from project import SUPPORT

SIZE = 160 << 20  # bytes of a disk; sparse
FLUSH = -1        # the offset of a record that is none of a write
MARK = "stoker-power."  # followed by the pid of the process whose mounts lie beneath


def call(*argv: object) -> str:
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    assert done.returncode == 0, f"{shlex.join(done.args)}: {done.returncode}\n{done.stderr}"
    return done.stdout.strip()


def library_flags() -> list:
    return call("pkg-config", "--cflags", "--libs", "fuse3").split()


def recorder(folder: Path) -> Path:
    """The program of block_log.c, built."""
    built = folder / "block_log"
    call("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", built, SUPPORT / "block_log.c", *library_flags())
    return built


@functools.cache
def refused() -> str | None:
    """Why no disk can be made here, or None. It is tried: containers refuse in many ways."""
    if os.geteuid() != 0:
        return "power cuts need root, to mount"
    if not os.path.exists("/dev/fuse"):
        return "power cuts need /dev/fuse"
    clean()
    folder = Path(f"/tmp/{MARK}{os.getpid()}") / "try"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        disk = Disk(folder)
        with disk.recorded(disk.image):
            pass
    except (AssertionError, OSError) as why:
        return f"power cuts do not work here: {str(why)[:300]}"
    finally:
        clean(os.getpid())
    return None


def clean(pid: int | None = None) -> None:
    """Unmount and detach what processes have left behind that are gone (or this one)."""
    def is_left(text: str) -> bool:
        found = re.search(re.escape(MARK) + r"(\d+)/", text)
        return bool(found) and (int(found[1]) == pid or not os.path.exists(f"/proc/{found[1]}"))

    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in reversed([mount for mount in mounts if is_left(mount)]):
        subprocess.run(["umount", "--lazy", mount], capture_output=True)
    listed = subprocess.run(["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"],
                            capture_output=True, text=True).stdout
    for line in filter(is_left, listed.splitlines()):
        subprocess.run(["losetup", "--detach", line.split()[0]], capture_output=True)
    for folder in Path("/tmp").glob(f"{MARK}*"):
        if is_left(f"{folder}/"):
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def folder():
    """A folder for disks, which is clean again afterwards."""
    made = Path(f"/tmp/{MARK}{os.getpid()}") / "disks"
    made.mkdir(parents=True)
    try:
        yield made
    finally:
        clean(os.getpid())


class Disk:
    """A disk beneath `folder`; whichever image is in, its files are at `root`."""

    def __init__(self, folder: Path):
        self.folder, self.root = folder, folder / "root"
        self.fuse, self.log = folder / "fuse", folder / "log"
        for each in (self.root, self.fuse):
            each.mkdir()
        self.program = recorder(folder)
        self.image = folder / "base.img"
        with self.image.open("wb") as file:
            file.truncate(SIZE)
        call("mkfs.ext4", "-q", "-m", "0", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image)

    @contextlib.contextmanager
    def recorded(self, image: Path):
        """The image mounted, with a fresh log of what is written to it."""
        self.log.unlink(missing_ok=True)
        process = subprocess.Popen([self.program, image, self.log, self.fuse, "-f", "-s"], stderr=subprocess.PIPE)
        try:
            limit = time.monotonic() + 60
            while not (self.fuse / "disk").exists():
                assert process.poll() is None and time.monotonic() < limit, process.communicate()[1]
                time.sleep(0.005)
            with self.mounted(self.fuse / "disk"):
                yield self
        finally:
            # A loop device lets go of its file some time after it was detached.
            limit = time.monotonic() + 60
            while subprocess.run(["umount", self.fuse], capture_output=True).returncode and time.monotonic() < limit:
                time.sleep(0.02)
            process.wait(60)

    @contextlib.contextmanager
    def mounted(self, image: Path):
        """A fresh loop device for each mount: an old one may remember blocks."""
        device = call("losetup", "--find", "--show", image)
        try:
            call("mount", "-t", "ext4", device, self.root)
            try:
                yield self
            finally:
                call("umount", self.root)
        finally:
            call("losetup", "--detach", device)

    def copy(self, name: str, image: Path | None = None) -> Path:
        """A copy of an image, by default of the disk as it was made."""
        call("cp", "--sparse=always", image or self.image, self.folder / name)
        return self.folder / name

    def written(self) -> int:
        """Bytes of the log: what is written from now on comes behind them."""
        return self.log.stat().st_size

    def records(self, end: int) -> list:
        """(offset, bytes) of all that lie within the first `end` bytes of the log; no bytes: a flush."""
        data, at, found = self.log.read_bytes()[:end], 0, []
        while at + 16 <= len(data):
            offset, size = struct.unpack_from("<qq", data, at)
            if at + 16 + size > len(data):
                break
            found.append((offset, data[at + 16:at + 16 + size], at))
            at += 16 + size
        return found


class Cuts:
    """Images of a disk that stopped after some of the writes recorded on it, in ascending order."""

    def __init__(self, base: Path, records: list, folder: Path):
        self.records, self.done = records, 0
        folder.mkdir(exist_ok=True)
        self.rolling, self.image = folder / "rolling.img", folder / "cut.img"
        call("cp", "--sparse=always", base, self.rolling)

    def make(self, count: int, chance: random.Random | None) -> Path:
        """The disk after `count` records; with `chance`, a random half of the writes since the last
        flush is missing."""
        assert count >= self.done
        flushed = max((i for i in range(count) if self.records[i][0] == FLUSH), default=0)
        with self.rolling.open("r+b") as file:
            self.apply(file, range(self.done, max(flushed, self.done)))
            self.done = max(flushed, self.done)
        call("cp", "--sparse=always", self.rolling, self.image)
        with self.image.open("r+b") as file:
            self.apply(file, [i for i in range(self.done, count) if chance is None or chance.random() < 0.5])
        return self.image

    def apply(self, file, numbers) -> None:
        for number in numbers:
            offset, data, _ = self.records[number]
            if offset != FLUSH:
                file.seek(offset)
                file.write(data)
