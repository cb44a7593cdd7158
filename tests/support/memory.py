"""How much memory a process has held at most, in KiB, as the kernel counts it. What wait4()
and getrusage() tell instead begins with the size of whoever started the process."""

import threading
import time


def peak(pid):
    """So far; 0: it has ended."""
    try:
        with open(f"/proc/{pid}/status") as file:
            status = file.read()
    except OSError:
        return 0
    return int(status.split("VmHWM:")[1].split()[0]) if "VmHWM:" in status else 0


def exactly(env):
    """The same environment, but what is freed under the sanitizer is free: no memory is
    kept to find out who uses it later."""
    return {**env, "ASAN_OPTIONS": ":".join(filter(None, [env.get("ASAN_OPTIONS"), "quarantine_size_mb=0"]))}


class Watch:
    """Looks at a process until it ends: its peak, but for the last moment."""

    def __init__(self, process):
        self.process, self.peak = process, 0
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        while now := peak(self.process.pid):
            self.peak = max(self.peak, now)
            time.sleep(0.005)

    def end(self):
        """After it was waited for."""
        self.thread.join()
        return self.peak
