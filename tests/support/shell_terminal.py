"""A program on a terminal of its own, typed at and read from: for what shells do
only when somebody sits there."""

import os
import pty
import re
import select
import signal
import time

ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>]|\][^\x07]*\x07)")


class ShellTerminal:
    def __init__(self, argv, env, cwd):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                os.execve(argv[0], argv, env)
            finally:
                os._exit(127)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def type(self, text):
        self.seen = ""
        os.write(self.fd, text.encode())

    def until(self, pattern, seconds=120):
        """Everything shown since the last typing, once the pattern is among it."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            ready, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{pattern!r} never came:\n{self.seen}"
            try:
                read = os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                read = ""
            assert read, f"it ended before {pattern!r} came:\n{self.seen}"
            self.seen += ESCAPES.sub("", read)
        return self.seen
