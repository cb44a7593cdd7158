"""From a traced graph to a compiled one, as the framework's wrapper around the
compiler does it: a hit, an extraction, a compilation, an old failure again, or
a wait for somebody else's lock."""

import os
import subprocess
import time
import uuid
from pathlib import Path

from neuron_standin import settings, versions
from neuron_standin.cache import Cache, Entry
from neuron_standin.files import graph_name
from neuron_standin.flags import Flags
from neuron_standin.log import Logger

POLL = 0.02  # seconds between two looks at a lock


class CompileFailed(RuntimeError):
    pass


class Wrapper:
    def __init__(self, workers: int = 0):
        self.flags = Flags()
        self.workers = workers  # of the front-end; 0 in a training script
        self.logger = Logger("NEURON_CC_WRAPPER", self.flags.log_level)
        user = os.environ.get("USER", "no-user")
        self.workdir = Path(self.flags.wrapper.get(
            "--compile_workdir", f"{settings.get('STANDIN_TMP')}/{user}/neuroncc_compile_workdir"))

    def obtain(self, cache: Cache, graph_hash: str, graph: bytes) -> None:
        """What a training process needs to go on with this graph."""
        entry = cache.entry(graph_hash, self.flags)
        if self.flags.no_cache:
            self.run_compiler(entry, graph, 0)
            return
        if os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY") == "1" and not entry.is_done:
            entry.put_input(graph, self.flags)
            self.logger.info(f"Extracting graphs ({entry.input}) for ahead-of-time parallel compilation. "
                             f"No compilation was done.")
            return
        mine = False
        try:
            mine = self.wait(entry)
            if entry.is_done:
                self.hit(entry)
            else:
                self.compile(entry, graph)
        finally:
            if mine:
                entry.unlock()

    def wait(self, entry: Entry) -> bool:
        """True with the lock held; False once there is a result without it."""
        minute, started, said = settings.number("STANDIN_MINUTE"), time.monotonic(), 0.0
        entry.folder.mkdir(parents=True, exist_ok=True)
        while not entry.is_done and not (entry.is_failed and not self.flags.retry_failed):
            if entry.try_lock():
                return True
            waited = time.monotonic() - started
            if waited - said >= minute:
                said = waited
                self.logger.info(f"Another process must be compiling {entry.input}, "
                                 f"been waiting for: {waited / minute:.1f} minutes")
            time.sleep(POLL)
        return False

    def hit(self, entry: Entry) -> None:
        end = ". Exiting with a successfully compiled graph." if versions.NUMBERS < (2, 13) else ""
        self.logger.info(f"Using a cached neff at {entry.neff}{end}")
        if os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY") != "1":
            entry.check()

    def compile(self, entry: Entry, graph: bytes) -> int:
        """With the lock held. Returns how many tries were needed beyond one."""
        if entry.is_done:  # since another's lock was dropped
            self.hit(entry)
            return 0
        if entry.is_failed and not self.flags.retry_failed:
            text = entry.log.read_text()
            self.logger.error(f"Got a cached failed neff at {entry.neff}. Will skip compilation, please set "
                              f"--retry_failed_compilation for recompilation: \n {text}")
            raise CompileFailed(text)
        entry.put_input(graph, self.flags)
        tries = 1 + int(os.environ.get("NEURON_PARALLEL_COMPILE_MAX_RETRIES", "0")) * (self.workers > 0)
        for retry in range(tries):
            try:
                neff = self.run_compiler(entry, graph, retry)
            except CompileFailed as failure:
                text = str(failure)
                continue
            entry.put_compiled(neff, settings.names("STANDIN_FULL_DISK", graph_name(graph)))
            if versions.GENERATION == "2022":
                self.logger.info("Exiting with a successfully compiled graph")
            if versions.SAYS_COMPLETED:
                words = "Ready:" if settings.flag("STANDIN_OTHER_WORDS") else "Compilation Successfully Completed for"
                self.logger.info(f"{words} model.{entry.key}.hlo_module.pb")
            return retry
        self.logger.error(f"Compilation failed for {self.workdir}/model.{entry.key}.hlo_module.pb "
                          f"after {tries - 1} retries.")
        entry.put_failure(text)
        raise CompileFailed(text)

    def run_compiler(self, entry: Entry, graph: bytes, retry: int) -> bytes:
        """One call of neuronx-cc, found in PATH as the real wrapper finds it."""
        folder = self.workdir / str(uuid.uuid4())
        folder.mkdir(parents=True)
        suffix = "hlo.pb" if versions.NUMBERS < (2, 13) else "hlo_module.pb"
        source, output = folder / f"model.{entry.key}.{suffix}", folder / f"model.{entry.key}.neff"
        source.write_bytes(graph)
        target = f"--target={self.flags.target}"
        if versions.LIST_COMMAND:
            command = ["neuronx-cc", target, "compile", "--framework", "XLA", str(source)]
        else:
            command = ["neuronx-cc", "compile", target, "--framework=XLA", str(source)]
        command += ["--output", str(output), *self.flags.compiler, "--verbose=35"]
        if versions.GENERATION == "2022":
            self.logger.info(f"No candidate found under {entry.folder}.")
        else:
            shown = str(command) if versions.LIST_COMMAND else " ".join(command)
            self.logger.info(f"{'Compiling by' if settings.flag('STANDIN_OTHER_WORDS') else 'Call compiler with cmd'}: {shown}")
        # What the real compiler would know by itself.
        told = {"STANDIN_CC_VERSION": versions.COMPILER, "NEURON_STANDIN_TRY": str(retry), "NEURON_STANDIN_WORKERS": str(self.workers)}
        try:
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **told})
            if done.returncode == 0:
                return output.read_bytes()
            return self.refuse(command, done)
        finally:
            for path in (source, output):
                path.unlink(missing_ok=True)
            folder.rmdir()

    def refuse(self, command: list[str], done: subprocess.CompletedProcess) -> bytes:
        if done.returncode < 0:
            self.logger.error(f"parallel compilation with neuronx-cc exited with error."
                              f"Received error code: {done.returncode}")
        text = f"Failed compilation with {command}: {done.stderr.strip()}\n"
        self.logger.error(text)
        raise CompileFailed(f"{text}Command '{command}' returned non-zero exit status {done.returncode}.")
