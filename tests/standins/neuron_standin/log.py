"""Lines as the real tools print them: three generations of prefixes, whatever a
launcher puts in front, and no respect for what other ranks are printing."""

import os
import sys
import time

from neuron_standin import settings, versions

LEVELS = {"DEBUG": 0, "INFO": 1, "WARNING": 2, "ERROR": 3}
OLD_TAGS = {"NEURON_PARALLEL_COMPILE": "PARALLEL_COMPILE"}


def launcher_prefix() -> str:
    return (settings.get("STANDIN_LINE_PREFIX")
            .replace("{rank}", os.environ.get("RANK", "0"))
            .replace("{node}", str(settings.node_rank()))
            .replace("{pid}", str(os.getpid())))


def write(data: bytes) -> None:
    """All of it, whole or torn. A reader that is gone is none of our business."""
    try:
        if settings.flag("STANDIN_TORN_LINES") and len(data) > 1:
            half = len(data) // 2
            os.write(1, data[:half])
            time.sleep(0.001)
            data = data[half:]
        while data:
            data = data[os.write(1, data):]
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def say(text: str) -> None:
    """One or more lines on stdout, each behind the launcher's prefix."""
    prefix = launcher_prefix()
    sys.stdout.flush()
    write("".join(f"{prefix}{line}\n" for line in text.split("\n")).encode(errors="surrogateescape"))


def dots(count: int) -> None:
    """The compiler's progress: no newline follows, so somebody's line does."""
    if launcher_prefix():
        say("." * count)
    else:
        write(b"." * count)


def stamp() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now)) + f".000{int(now * 1000) % 1000:03d}"


def prefix(tag: str, level: str) -> str:
    if versions.GENERATION == "2022":
        return f"{stamp()}: {level} ||{OLD_TAGS.get(tag, 'NCC_WRAPPER')}||: "
    if versions.GENERATION == "2023":
        return f"{stamp()}:  {os.getpid()}  {level} ||{tag}||: "
    return f"{stamp()}:  {os.getpid()}  [{level}]: "


class Logger:
    def __init__(self, tag: str, lowest: str = "INFO"):
        self.tag, self.lowest = tag, lowest

    def log(self, level: str, text: str) -> None:
        if LEVELS[level] >= LEVELS[self.lowest]:
            say(prefix(self.tag, level) + text)

    def info(self, text: str) -> None:
        self.log("INFO", text)

    def error(self, text: str) -> None:
        self.log("ERROR", text)
