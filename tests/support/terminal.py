"""A terminal with stoker in it: a pty, and as much of a VT as the block needs. What
else is written to it, it remembers as foreign: there must be none."""

import codecs
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

import stoker as cli

SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


def columns_of(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Screen:
    """Rows of cells, and where the cursor is. Rows that scroll off are kept."""

    def __init__(self, columns: int, rows: int):
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.gone: list[str] = []
        self.x = self.y = 0
        self.pending = False  # the cursor is behind the last column
        self.wrap = self.cursor = True
        self.overflows = 0  # characters for which a row had no room, where none may wrap
        self.colors: set[str] = set()
        self.foreign: list[str] = []

    def resize(self, columns: int, rows: int) -> None:
        """Cut or padded, as a terminal does that does not wrap anew."""
        while len(self.cells) > rows:
            if self.y < len(self.cells) - 1:
                self.cells.pop()
            else:
                self.gone.append(self.row(0))
                self.cells.pop(0)
                self.y -= 1
        while len(self.cells) < rows:
            self.cells.append([])
        self.cells = [(row + [" "] * columns)[:columns] for row in self.cells]
        self.columns, self.rows = columns, rows
        self.x, self.pending = min(self.x, columns - 1), False

    def row(self, number: int) -> str:
        return "".join(self.cells[number]).rstrip()

    @property
    def text(self) -> str:
        return "\n".join(self.row(number) for number in range(self.rows)).rstrip()

    @property
    def all(self) -> str:
        return "\n".join([*self.gone, self.text])

    def down(self) -> None:
        if self.y < self.rows - 1:
            self.y += 1
            return
        self.gone.append(self.row(0))
        self.cells.pop(0)
        self.cells.append([" "] * self.columns)

    def put(self, char: str) -> None:
        columns = columns_of(char)
        if columns == 0:
            return
        if self.pending or self.x + columns > self.columns:
            if not self.wrap:
                self.overflows += 1
                return
            self.x, self.pending = 0, False
            self.down()
        self.cells[self.y][self.x] = char
        if columns == 2:
            self.cells[self.y][self.x + 1] = ""
        self.x += columns
        if self.x == self.columns:
            self.x, self.pending = self.columns - 1, True

    def control(self, private: str, number: str, letter: str) -> None:
        if private and (number, letter) in (("25", "h"), ("25", "l")):
            self.cursor = letter == "h"
        elif private and (number, letter) in (("7", "h"), ("7", "l")):
            self.wrap = letter == "h"
        elif not private and letter == "m":
            self.colors.add(number)
        elif not private and letter in "AB" and number.isdigit():
            step = int(number) if letter == "B" else -int(number)
            self.y = min(max(self.y + step, 0), self.rows - 1)
            self.pending = False
        elif not private and not number and letter in "JK":
            self.cells[self.y][self.x:] = [" "] * (self.columns - self.x)
            for below in range(self.y + 1, self.rows if letter == "J" else 0):
                self.cells[below] = [" "] * self.columns
        else:
            self.foreign.append(f"\x1b[{private}{number}{letter}")

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            found = SEQUENCE.match(text, at)
            if found:
                self.control(*found.groups())
                at = found.end()
                continue
            char = text[at]
            at += 1
            if char == "\r":
                self.x, self.pending = 0, False
            elif char == "\n":
                self.pending = False
                self.down()
            elif cli.CONTROL.match(char) or char == "\t":
                self.foreign.append(char)
            else:
                self.put(char)


class Terminal:
    """stoker as the foreground process of a terminal of its own."""

    def __init__(self, *argv: object, env: dict, cwd, columns: int = 80, rows: int = 24, **options):
        self.screen = Screen(columns, rows)
        self.master, slave = os.openpty()
        self.set_size(columns, rows)
        self.raw = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="strict")
        options.setdefault("stdin", slave)
        options.setdefault("stdout", slave)

        def own_terminal():
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            # What a shell puts in the background ignores these, and so would we.
            for number in (signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)

        self.process = subprocess.Popen(
            [str(cli.BINARY), *map(str, argv)], env=env, cwd=cwd, stderr=slave, start_new_session=True,
            preexec_fn=own_terminal, **options)
        self.slave = slave  # stays open, so that what is left can be read after the end

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        self.read(0)
        self.set_size(columns, rows)
        self.screen.resize(columns, rows)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    @property
    def echoes(self) -> bool:
        flags = termios.tcgetattr(self.slave)[3]
        return bool(flags & termios.ECHO) and bool(flags & termios.ICANON)

    def read(self, seconds: float) -> bool:
        """What it writes within that time, at most one piece of it."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        text = self.decoder.decode(os.read(self.master, 1 << 16))
        self.raw += text
        self.screen.feed(text)
        return True

    def until(self, what, seconds: float = cli.SECONDS):
        """Read until the word is on the screen, or the function says so."""
        end = time.monotonic() + seconds
        there = what if callable(what) else (lambda: what in self.screen.text)
        while not there():
            left = end - time.monotonic()
            assert left > 0, f"never came: {what}\n{self.screen.all}"
            self.read(min(left, 0.2))
        return self

    def pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)
        while self.read(0):  # what came while we were not looking
            pass

    def finish(self, seconds: float = cli.SECONDS) -> int:
        self.until(lambda: self.process.poll() is not None, seconds)
        while self.read(0.05):
            pass
        assert "Sanitizer" not in self.raw, self.raw
        return self.process.returncode

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
