"""A machine with the stand-ins installed, for the tests that hold them against
what the AWS Neuron SDK documentation and real logs show."""

import os
import re
import subprocess
import threading
from pathlib import Path

import pytest
from neuron_standin.install import Installation

RESULT_SECONDS = 300  # only a hang takes longer, however busy the machine is


class Result:
    def __init__(self, done):
        self.code, self.raw = done.returncode, done.stdout
        self.out, self.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def said(self, pattern):
        """What the pattern's group holds, wherever it matches."""
        return re.findall(pattern, self.out)

    def modules(self, what):
        """Keys of graphs in the messages that begin so."""
        return self.said(re.escape(what) + r"[^\n]*?(MODULE_[0-9]+\+[0-9a-f]{8})")

    def __str__(self):
        return f"[{self.code}]\n{self.out}--- stderr\n{self.err}"


class Machine:
    def __init__(self, root):
        self.root, self.cache = root, root / "cache"
        self.neuron = Installation(root / "neuron")
        self.work = root / "work"
        self.work.mkdir()
        self.script = self.neuron.train_script(self.work / "train.py")

    def env(self, **more):
        return {"PATH": self.neuron.path, "HOME": str(self.root), "TMPDIR": str(self.root), "USER": "tester",
                "NEURON_COMPILE_CACHE_URL": str(self.cache), **more}

    def start(self, *argv, **env):
        return subprocess.Popen([str(word) for word in argv], cwd=self.work, env=self.env(**env),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def read_until(self, process, pattern):
        """Its output up to the line that matches; what does not come ends the test."""
        watch = threading.Timer(RESULT_SECONDS, process.kill)
        watch.start()
        try:
            for line in process.stdout:
                if re.search(pattern, line.decode(errors="replace")):
                    return
        finally:
            watch.cancel()
        raise AssertionError(f"no line was like {pattern}")

    def run(self, *argv, **env):
        return Result(subprocess.run([str(word) for word in argv], cwd=self.work, env=self.env(**env),
                                     capture_output=True, timeout=RESULT_SECONDS))

    def train(self, *options, **env):
        return self.run("python3", self.script, *options, **env)

    def precompile(self, *options, front=(), **env):
        """The front-end before a run of two steps."""
        return self.run("neuron_parallel_compile", *front, "python3", self.script, "--max_steps", 2, *options, **env)

    def files(self):
        """Names in the cache, by graph."""
        found = {}
        for path in self.cache.rglob("*"):
            if path.is_file():
                found.setdefault(path.parent.name, set()).add(path.name)
        return found

    def folders(self, name):
        """Of the graphs that have a file of this name."""
        return sorted(path.parent for path in self.cache.rglob(name))


@pytest.fixture
def machine(tmp_path):
    assert not [name for name in os.environ if name.startswith(("STANDIN_", "NEURON_"))]
    return Machine(Path(tmp_path))
