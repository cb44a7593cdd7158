"""The persistent cache in a directory or in S3: names, states of an entry, locks. As with
the real one a lock is the existence of a file or object: who dies leaves it behind."""

import errno
import os
import shutil
import uuid
from pathlib import Path

from neuron_standin import files, settings, versions
from neuron_standin.flags import Flags
from neuron_standin.log import Logger
from neuron_standin.s3 import S3Path

SMALLEST = 1024  # bytes: less is no compiled graph


def url_in_use(flags: Flags) -> str:
    return flags.wrapper.get("--cache_dir") or os.environ.get("NEURON_COMPILE_CACHE_URL") or settings.get(
        "STANDIN_DEFAULT_CACHE")


def place(url: str) -> Path | S3Path:
    """What a name in a log or a variable means."""
    if url.startswith("s3://"):
        return S3Path(url)
    if "://" in url and not url.startswith("file://"):
        raise SystemExit(f"stand-in: {url}: only directories and S3 are known here")
    return Path(url.removeprefix("file://"))


class Entry:
    def __init__(self, folder: Path | S3Path):
        self.folder, self.key = folder, folder.name
        self.input = folder / versions.INPUT_NAME
        self.flags = folder / versions.FLAGS_NAME
        self.neff, self.done = folder / "model.neff", folder / "model.done"
        self.log, self.lock = folder / "model.log", folder / (
            versions.INPUT_NAME + settings.get("STANDIN_LOCK_SUFFIX"))

    @property
    def is_done(self) -> bool:
        if self.log.exists() or not self.neff.exists():
            return False
        return self.done.exists() if versions.HAS_MARKER else self.neff.stat().st_size > SMALLEST

    @property
    def is_failed(self) -> bool:
        return self.log.exists()

    @property
    def is_locked(self) -> bool:
        return self.lock.exists()

    @property
    def state(self) -> str:
        for name in ("done", "failed", "locked"):
            if getattr(self, f"is_{name}"):
                return name
        return "todo"

    def put_input(self, graph: bytes, flags: Flags) -> None:
        """What is to be compiled; any number of ranks do this at once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path, content in ((self.flags, flags.file_content.encode()), (self.input, graph)):
            if not path.exists():
                part = self.folder / f".{path.name}.{uuid.uuid4().hex}"
                part.write_bytes(content)
                part.rename(path)

    def try_lock(self) -> bool:
        if isinstance(self.lock, S3Path):
            return self.lock.try_create()
        try:
            os.close(os.open(self.lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            return False
        return True

    def unlock(self) -> None:
        self.lock.unlink(missing_ok=True)

    def put_compiled(self, neff: bytes, full_disk: bool) -> None:
        if full_disk:
            self.neff.write_bytes(neff[:len(neff) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.neff.write_bytes(neff)
        self.log.unlink(missing_ok=True)
        if versions.HAS_MARKER:
            self.done.touch()

    def put_failure(self, text: str) -> None:
        self.done.unlink(missing_ok=True)
        self.neff.unlink(missing_ok=True)
        if settings.get("STANDIN_FAILED_NEFF_BYTES"):
            self.neff.write_bytes(b"x" * int(settings.number("STANDIN_FAILED_NEFF_BYTES")))
        self.log.write_text(text)

    def check(self) -> None:
        """What a device would find when it loads the graph."""
        if not files.is_whole(self.neff.read_bytes()):
            raise RuntimeError(f"NEFF is invalid: {self.neff}")


class Cache:
    def __init__(self, flags: Flags, url: str | None = None):
        self.url = url or url_in_use(flags)
        self.root = place(self.url)
        self.logger = Logger("NEURON_CACHE", flags.log_level)
        self.logger.info(f"Compile cache path: {self.url}")

    @property
    def folder(self) -> Path | S3Path:
        return self.root / f"neuronxcc-{versions.COMPILER}"

    def entry(self, graph_hash: str, flags: Flags) -> Entry:
        return Entry(self.folder / f"MODULE_{graph_hash}+{flags.hash}")

    def clean(self) -> None:
        if isinstance(self.root, S3Path):
            for path in self.root.below():
                path.unlink()
        else:
            shutil.rmtree(self.root, ignore_errors=True)

    def entries(self) -> list[Entry]:
        found = [Entry(path.parent) for path in self.folder.glob(f"MODULE_*/{versions.INPUT_NAME}")]
        return sorted(found, key=lambda entry: entry.key)

    def scan(self, entries: list[Entry] | None = None) -> dict[str, list[str]]:
        """Inputs by state, and the line that shows their numbers."""
        entries = self.entries() if entries is None else entries
        found = {"todo": [], "locked": [], "failed": [], "done": []}
        for entry in entries:
            found[entry.state].append(str(entry.input))
        self.logger.info(
            f"Current remaining items are {len(found['todo'])}, locked are {len(found['locked'])}, "
            f"failed are {len(found['failed'])}, done are {len(found['done'])}, total is {len(entries)}")
        return found
