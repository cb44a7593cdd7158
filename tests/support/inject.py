"""A process killed at one system call, by strace. A point is a name and a number: the nth call of
that name that the process's first thread makes. A run that is only watched tells the points.

strace counts each name by itself and each process by itself (strace(1), "Tampering"). A signal on
entry comes before the call: a kill at one call is a kill behind the change before it. Processes
that the watched one starts are not watched.

Where ptrace is refused (a container without CAP_SYS_PTRACE, yama) preload.py does the same, nearly."""

import functools
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

# What changes a file, a process or another machine. Record locks are left out but for the lease's
# (F_OFD_SETLK): they are gone with their process, so a kill at one is a kill at the change behind it.
CHANGES = re.compile(
    r"(?:p?write(?:v|v2|64)?|fsync|fdatasync|syncfs|sync_file_range|rename(?:at|at2)?|unlink(?:at)?|"
    r"(?:sym)?link(?:at)?|f?truncate|mkdir(?:at)?|rmdir|f?chmod(?:at)?|f?chown(?:at)?|utimensat|"
    r"fallocate|copy_file_range|sendfile|splice|[fl]?setxattr|connect|send(?:to|msg|mmsg)|"
    r"clone3?|v?fork|execve|kill|tgkill|pidfd_send_signal|flock)\("
    r"|open(?:at)?\(.*O_(?:CREAT|TRUNC|TMPFILE)|fcntl\(.*F_OFD_SETLK")
# The first thing that each program does (cmd/main.c, node/agent_main.c). Before that the loader works.
BEGINS = "rt_sigaction(SIGXFSZ"


HOW = "strace"


@dataclass(frozen=True)
class Point:
    name: str
    nth: int
    line: str  # as strace shows it

    def __str__(self) -> str:
        return f"{self.name}#{self.nth} {self.line[:160]}"


@functools.cache
def refused() -> str | None:
    """Why no process can be watched here, or None. STOKER_TEST_PTRACE=no: as if it were refused."""
    if os.environ.get("STOKER_TEST_PTRACE") == "no":
        return "STOKER_TEST_PTRACE says so"
    tried = subprocess.run(["strace", "-o", "/dev/null", "-e", "inject=exit_group:signal=KILL:when=1", "true"],
                           capture_output=True, text=True)
    return None if tried.returncode == -9 else f"strace does not work here: {tried.stderr.strip()[:200]}"


def env() -> dict:
    """The leak checker does not work beneath another tracer."""
    return {"ASAN_OPTIONS": ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))}


def watch(trace: Path) -> tuple:
    """What stands before a command, so that `points` can read its calls from `trace`."""
    return ("strace", "-o", str(trace), "-s", "48")


def points(trace: Path, begins: str = BEGINS) -> list:
    """The calls that change something, in order; `begins`: a part of the line before the first."""
    count, found, begun = {}, [], False
    for line in trace.read_text(errors="replace").splitlines():
        name = line.partition("(")[0]
        count[name] = count.get(name, 0) + 1
        if begun and CHANGES.match(line) and "ENOSYS" not in line:
            found.append(Point(name, count[name], line))
        begun = begun or begins in line
    assert found, f"nothing is changed in {trace}"
    return found


def kill_at(point: Point) -> tuple:
    return ("strace", "-o", "/dev/null", "-e", f"trace={point.name}", "-e",
            f"inject={point.name}:signal=KILL:when={point.nth}")


def fail_at(point: Point, error: str, trace: Path) -> tuple:
    """The call is not made, and returns this error (a name, as strace takes it); `trace` has it as INJECTED."""
    return ("strace", "-o", str(trace), "-e", f"trace={point.name}", "-e",
            f"inject={point.name}:error={error}:when={point.nth}")


# Calls that make a descriptor, of which there may be no more; and what else a full or failing disk refuses.
MAKES_FD = re.compile(r"(?:open(?:at)?|pipe2|socket|epoll_create1|timerfd_create|signalfd4|memfd_create|pidfd_open)\(")
FILLS = re.compile(r"(?:p?write(?:v|64)?|fallocate|ftruncate|copy_file_range|sendfile|mkdir(?:at)?|"
                   r"(?:sym)?link(?:at)?|rename(?:at|at2)?|fsync|fdatasync)\(|open(?:at)?\(.*O_CREAT")
FAILS = re.compile(FILLS.pattern + r"|(?:syncfs|unlink(?:at)?|rmdir|f?chmod(?:at)?|utimensat)\(")


def errors_of(line: str) -> list:
    return [error for error, calls in (("ENOSPC", FILLS), ("EIO", FAILS), ("EMFILE", MAKES_FD)) if calls.match(line)]


def failures(trace: Path, begins: str = BEGINS) -> list:
    """(point, error): each legal one of ENOSPC, EIO and EMFILE for the calls in `trace`, in order."""
    count, found, begun = {}, [], False
    for line in trace.read_text(errors="replace").splitlines():
        name = line.partition("(")[0]
        count[name] = count.get(name, 0) + 1
        if begun and "ENOSYS" not in line:
            found += [(Point(name, count[name], line), error) for error in errors_of(line)]
        begun = begun or begins in line
    assert found, f"nothing can fail in {trace}"
    return found
