"""The stoker binary from the outside: started as a user would, with an
environment that holds nothing by accident."""

import io
import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import published

ROOT = Path(__file__).resolve().parents[2]
BINARY = (ROOT / os.environ.get("STOKER", "build/asan/stoker")).resolve()
SECONDS = 600  # only a hang takes longer, however busy the machine is
# Under nohup, tests would hand SIGHUP on as ignored, and a terminal that closes would mean nothing.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Anything that moves a cursor, changes a colour or reorders text: C0 without
# tab and newline, DEL, C1, and the bidirectional controls.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")


@dataclass
class Result:
    code: int
    out: str
    err: str
    argv: list

    @property
    def lines(self) -> list:
        """stdout as JSON: one object a line and nothing else."""
        found = []
        for line in self.out.splitlines():
            value = json.loads(line)
            assert isinstance(value, dict), f"not an object: {line}"
            found.append(value)
        return found

    @property
    def text(self) -> str:
        """What a person at a terminal sees."""
        return self.out + self.err

    @property
    def cure(self) -> str:
        """What it says to do about it."""
        found = re.findall(r"(?:hint|cure): *(.*)", self.text)
        assert found, f"no cure is named:\n{self}"
        return "\n".join(found)

    def __str__(self) -> str:
        return f"$ stoker {' '.join(map(str, self.argv))}\n[{self.code}]\n{self.out}--- stderr\n{self.err}"


def environment(**more: str) -> dict:
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "USER": "tester"}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
        if name in os.environ:
            env[name] = os.environ[name]
    env.update(more)
    return env


def check(argv: list, out: bytes | str) -> None:
    """Holds what these arguments printed on stdout against the published schemas."""
    published.check(str(BINARY), argv, out)


class Lines(io.BufferedReader):
    """The stdout of a process, whose lines are checked as they are read."""

    def __init__(self, raw: io.RawIOBase, argv: list):
        super().__init__(raw)
        self.argv = argv

    def readline(self, size: int = -1) -> bytes:
        line = super().readline(size)
        check(self.argv, line)
        return line


class Process(subprocess.Popen):
    """stoker with arguments; its JSON is checked whichever way it is read."""

    def __init__(self, argv: list, *, words: list, **options):
        super().__init__(argv, **options)
        self.words = words
        if isinstance(self.stdout, io.BufferedReader):
            self.stdout = Lines(self.stdout.detach(), words)

    def communicate(self, *args, **options):
        out, err = super().communicate(*args, **options)
        check(self.words, out)
        return out, err


def start(*argv: object, env: dict | None = None, binary: Path = BINARY, prefix: tuple = (),
          **options) -> subprocess.Popen:
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    words = [os.fspath(as_argument(word)) for word in argv]
    return Process([*prefix, str(binary), *words], words=words,
                   env=env if env is not None else environment(), **options)


def as_argument(value: object) -> object:
    return value if isinstance(value, (str, bytes, Path)) else str(value)


def finish(process: subprocess.Popen, argv: tuple = (), seconds: float = SECONDS) -> Result:
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        out, err = process.communicate(timeout=SECONDS)
        raise AssertionError(f"stoker {argv} did not end in {seconds} s\n{err.decode(errors='replace')}")
    result = Result(process.returncode, (out or b"").decode(errors="surrogateescape"),
                    (err or b"").decode(errors="surrogateescape"), list(argv))
    assert "Sanitizer" not in result.err and "runtime error:" not in result.err, str(result)
    return result


def stoker(*argv: object, **options) -> Result:
    return finish(start(*argv, **options), argv)


def until(seen, process: subprocess.Popen | None = None):
    """What `seen` returns, once that is true, which it must become before `process` ends."""
    limit = time.monotonic() + SECONDS
    while True:
        ended = process is not None and process.poll() is not None
        if found := seen():
            return found
        assert not ended, str(finish(process))
        assert time.monotonic() < limit, f"not in {SECONDS} s"
        time.sleep(0.05)
