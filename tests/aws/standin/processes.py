"""Jobs of SageMaker and Batch as what they would be in a container: processes of this
machine, one or more for each instance, whose lines go to CloudWatch Logs as they come.
Nothing outlives the stand-in: each process dies with the thread that watches it."""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import threading
import time
import uuid

from standin import behind

MOUNTS = 'mount -t tmpfs none /opt && mkdir /opt/ml && mount --bind "$1" /opt/ml && mount --bind "$2" /etc/hosts && ' \
         'shift 2 && exec "$@"'
# Other folders below /opt, each where the container has it.
SHOWN = 'mount -t tmpfs none /opt && while [ "$1" != -- ]; do mkdir -p "$2" && mount --bind "$1" "$2" || exit 125; ' \
        'shift 2; done; shift && exec "$@"'
SHM = 'mount -t tmpfs -o "size=$1m" none /dev/shm && shift && exec "$@"'
# Where control groups that limit memory are made, and the file of the limit: of version 1, of version 2.
GROUPS = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"))
LIMITED = 'echo $$ > "$1/cgroup.procs" && shift && exec "$@"'
LINE = 65536
LAST_LINES = 20  # seconds for them, where somebody in another session keeps the pipe


@functools.lru_cache(maxsize=None)
def namespaces():
    """What gives a process mounts of its own; () if this machine does not allow it."""
    options = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid():
        options.append("--map-root-user")
    try:
        done = subprocess.run([*options, "sh", "-c", "mount -t tmpfs none /opt"], capture_output=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(options) if done.returncode == 0 else ()


def limited(mib):
    """A control group with so much memory; None: this machine does not allow it."""
    for base, limit in GROUPS:
        path = os.path.join(base, f"standin-{uuid.uuid4().hex}")
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            with open(os.path.join(path, limit), "r+", encoding="ascii") as file:
                file.write(str(mib << 20))
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(path)
            continue
        return path
    return None


@functools.lru_cache(maxsize=None)
def limits():
    """True if the memory of a container is limited on this machine."""
    path = limited(64)
    if path:
        os.rmdir(path)
    return path is not None


class Logs:
    """A stream of CloudWatch Logs, in moto's hands."""

    def __init__(self, account, region, group, stream):
        self.backend, self.group, self.stream = behind.backend("logs")[account][region], group, stream
        self.lock = threading.Lock()

    def write(self, line):
        now = int(time.time() * 1000)
        with self.lock:
            self.backend.ensure_log_group(self.group)
            self.backend.ensure_log_stream(self.group, self.stream)
            self.backend.put_log_events(self.group, self.stream, [{"timestamp": now, "message": line}])


class Process:
    """One that is watched: `logs` has its lines; exit code as a container has it."""

    def __init__(self, argv, env, logs, folder, opt_ml=None, hosts=None, hear=None, shown=(), shm=0, memory=0, ended=lambda: None):
        self.logs, self.hear, self.code, self.ended = logs, hear, None, ended
        self.group = limited(memory) if memory else None
        command = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
        if opt_ml and namespaces():
            command = [*namespaces(), "sh", "-c", MOUNTS, "sh", str(opt_ml), str(hosts), *command]
        if shown and namespaces():
            pairs = [str(word) for pair in shown for word in pair]
            command = [*namespaces(), "sh", "-c", SHOWN, "sh", *pairs, "--", *command]
        if shm and namespaces():
            command = [*namespaces(), "sh", "-c", SHM, "sh", str(shm), *command]
        if self.group:
            command = ["sh", "-c", LIMITED, "sh", self.group, *command]
        try:
            self.process = subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            self.process, self.code = None, 127
            ended()
            logs.write(f"{argv[0]}: {error.strerror}")
            return
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in iter(lambda: self.process.stdout.readline(LINE), b""):
            text = line.decode(errors="replace").rstrip("\r\n")
            if self.hear:
                self.hear(text)
            if text:
                self.logs.write(text)

    def poll(self):
        if self.code is None and self.process.poll() is not None:
            self.signal(signal.SIGKILL)  # what it left behind: a container ends as a whole
            self.reader.join(LAST_LINES)
            if self.group:
                with contextlib.suppress(OSError):
                    os.rmdir(self.group)
            self.ended()
            status = self.process.returncode
            self.code = 128 - status if status < 0 else status
        return self.code

    def signal(self, number):
        """As a container is treated: its first process is asked, all of them are killed."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                (os.killpg if number == signal.SIGKILL else os.kill)(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
            self.poll()


def end(processes, stop_seconds, meanwhile=lambda: None):
    """First the polite signal, then the other; `meanwhile` is called again and again."""
    for each in processes:
        if each.poll() is None:
            each.signal(signal.SIGTERM)
    until = time.monotonic() + stop_seconds
    while time.monotonic() < until and any(each.poll() is None for each in processes):
        meanwhile()
        time.sleep(0.02)
    for each in processes:
        if each.poll() is None:
            each.kill()


class Floor:
    """The machines on which jobs run: all that is under way, and what every job has."""

    def __init__(self, front):
        self.front, self.lock, self.ended, self.threads = front, threading.Lock(), False, []

    def folder(self, name):
        path = os.path.join(self.front.folder, "jobs", f"{name}-{uuid.uuid4().hex[:8]}")
        os.makedirs(path)
        return path

    def start(self, run):
        """`run` on a thread of its own."""
        thread = threading.Thread(target=run, daemon=True)
        with self.lock:
            self.threads = [each for each in self.threads if each.is_alive()] + [thread]
        thread.start()

    def clear(self):
        """End all of them, and wait for it."""
        self.ended = True
        for thread in self.threads:
            thread.join(60)
        shutil.rmtree(os.path.join(self.front.folder, "jobs"), ignore_errors=True)
        self.threads, self.ended = [], False
