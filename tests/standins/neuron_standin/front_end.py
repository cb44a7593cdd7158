"""What neuron_parallel_compile does: a trial run that only names graphs, then
workers that compile those it named, then a summary that is not the whole truth.
The list of graphs exists only in the trial's output, a locked graph is passed
over in silence, and a worker that dies is not counted."""

import concurrent.futures
import json
import math
import os
import shutil
import subprocess
import time
from pathlib import Path

from neuron_standin import settings, versions
from neuron_standin.cache import Cache, Entry, place
from neuron_standin.files import graph_name
from neuron_standin.log import Logger, write
from neuron_standin.wrapper import CompileFailed, Wrapper

MARK = "Extracting graphs ("


def default_workers() -> int:
    """One for each 64 GiB of memory."""
    told = settings.get("STANDIN_MEMORY_GIB")
    memory = int(told) << 30 if told else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return math.ceil(memory / (64 << 30))


def trial_run(command: list[str], log_path: Path, path_log: Path, logger: Logger) -> int:
    """Runs it in extraction mode; its output goes through byte by byte."""
    logger.info("Running trial run (add option to terminate trial run early; "
                "also ignore trial run's generated outputs, i.e. loss, checkpoints)")
    if "torchrun" in command and any("--redirect" in word for word in command):
        logger.error("neuron_parallel_compile is currently incompatible with torchrun redirect.")
        return 1
    env = {**os.environ, "NEURON_EXTRACT_GRAPHS_ONLY": "1",
           "NEURON_PARALLEL_COMPILE_CACHE_PATH_LOG": str(path_log)}
    logger.info(f"Running cmd: {command}")
    status = -1
    try:
        with log_path.open("wb") as copy, subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env) as process:
            while data := os.read(process.stdout.fileno(), 65536):
                copy.write(data)
                write(data)
        status = process.returncode
    except OSError as error:
        logger.error(str(error))
    if status == 0:
        return 0
    logger.error("There was an error in the training script.")
    if os.environ.get("NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE"):
        logger.info("NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE is set, continuing to compile")
        return 0
    return 1


def graphs_in(log_path: Path, logger: Logger) -> list[str]:
    """The inputs that the trial's output names; each as often as a rank did."""
    data = log_path.read_bytes()
    if settings.flag("STANDIN_STRICT_UTF8"):
        try:
            data.decode()
        except UnicodeDecodeError as error:
            data = data[:error.start]
    found = []
    for line in data.decode(errors="ignore").split("\n"):
        if MARK in line:
            found.append(line.split(MARK, 1)[1].split(")", 1)[0])
    count = f" {len(found)}" if versions.COUNTS_LIST else ""
    shown = "\n\t".join(found)
    logger.info(f"New graph list from script{count}: {shown}")
    return found


class Worker:
    """One of the pool's processes."""

    def __init__(self, number: int, workers: int, url: str, level: str):
        self.number = number
        self.wrapper = Wrapper(workers)
        self.logger = Logger("NEURON_PARALLEL_COMPILE", level)
        self.cache = Cache(self.wrapper.flags, url)

    def die(self, entry: Entry) -> None:
        how = settings.choice("STANDIN_DEAD_WORKER", "pool", "file")
        if self.number == 0 and how == "pool":
            os._exit(1)  # and the lock stays
        if self.number == 0 and how == "file":
            raise FileNotFoundError(2, "No such file or directory", f"{self.wrapper.workdir}/model.{entry.key}.neff")

    def compile(self, path: str) -> tuple | None:
        """(status, retries, seconds); None where there is nothing to do for it."""
        entry = Entry(place(path).parent)
        if entry.is_done or not entry.try_lock():
            return None
        began = time.time()
        try:
            self.die(entry)
            status, retry = self.guarded(entry)
        finally:
            entry.unlock()
        return status, retry, time.time() - began

    def guarded(self, entry: Entry) -> tuple[bool, int]:
        try:
            graph = entry.input.read_bytes()
            retry = self.wrapper.compile(entry, graph)
            if settings.names("STANDIN_SOFT_FAIL", graph_name(graph)):
                raise TypeError("stat: path should be string, bytes, os.PathLike or integer, not NoneType")
            return True, retry
        except CompileFailed as failure:
            self.logger.error(f"Process {os.getpid()} failed compilation: {failure}")
        except (OSError, TypeError) as error:
            self.logger.error(f"Subprocess {os.getpid()} encountered error: {error}")
        return False, 0

    def run(self, tasks: list[str]) -> dict:
        self.logger.info(f"worker {self.number} starts dynamic scheduleing on {len(tasks)}....")
        results = {}
        for path in tasks:
            result = self.compile(path)
            if result:
                results[path] = result
        self.logger.info(f"worker {self.number} finished with num of tasks {len(results)}....")
        self.cache.scan([Entry(place(path).parent) for path in dict.fromkeys(tasks)])
        return results


def work(number: int, workers: int, url: str, level: str, tasks: list[str]) -> dict:
    return Worker(number, workers, url, level).run(tasks)


class Summary:
    """What one node compiled: one block, and three lines."""

    def __init__(self):
        self.report, self.counts, self.start = {}, {}, time.time()

    def add(self, path: str, status: bool, retry: int, seconds: float) -> None:
        if path not in self.report:
            self.counts[status] = self.counts.get(status, 0) + 1
        self.report[path] = {"status": status, "retry": retry}
        if versions.TIMED_SUMMARY:
            self.report[path]["compile_time"] = seconds

    def text(self) -> str:
        block = {"compilation_summary": {str(key).lower(): count for key, count in self.counts.items()},
                 "compilation_report": self.report}
        if versions.TIMED_SUMMARY:
            block |= {"start_time": self.start, "compilation_time": time.time() - self.start}
        return json.dumps(block, indent=4)

    def show(self, logger: Logger) -> None:
        text = self.text()
        logger.info("Done." if settings.flag("STANDIN_OTHER_WORDS") else text)
        logger.info(f"Total graphs: {len(self.report)}")
        logger.info(f"Total successful compilations: {self.counts.get(True, 0)}")
        logger.info(f"Total failed compilations: {self.counts.get(False, 0)}")
        if os.environ.get("NEURON_PARALLEL_COMPILE_DUMP_RESULTS"):
            now = time.time()
            Path(f"neuron_parallel_compile_results_{now}.json").write_text(text)
            Path(f"total_neuron_parallel_compile_results_{now}.json").write_text(
                json.dumps({"total_neuron_parallel_compile_time": now - self.start}, indent=4))


def compile_all(url: str, workers: int, tasks: list[str], logger: Logger) -> int:
    """The number of failed graphs, as far as the summary knows."""
    if not tasks:
        logger.info("No todo hlos found in cache or hlo_tasklist, "
                    "parallel_compile return before spawning workers....")
        return 0
    tasks, summary = sorted(tasks), Summary()
    with concurrent.futures.ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(work, number, workers, url, logger.lowest, tasks) for number in range(workers)]
        for number, future in enumerate(futures):
            try:
                for path, result in future.result().items():
                    summary.add(path, *result)
            except Exception as error:  # whatever a worker died of
                logger.info(f"sub-process {number} got exception: {error}")
    summary.show(logger)
    return summary.counts.get(False, 0)


def exit_status(failed: int) -> int:
    """As the operating system will see it."""
    told = settings.get("STANDIN_EXIT")
    if told.isdigit():
        return int(told)
    if told not in ("", "count", "zero"):
        raise settings.Unknown("stand-in: STANDIN_EXIT is count, zero or a number")
    counts = told == "count" or (told == "" and versions.COUNTS_FAILURES)
    return failed % 256 if counts else 0


class FrontEnd:
    def __init__(self, options, command: list[str]):
        self.options, self.command = options, command
        self.logger = Logger("NEURON_PARALLEL_COMPILE", options.log_level)
        self.workdir = Path(options.parallel_compile_workdir)

    def collect(self) -> int:
        if self.workdir.exists():
            self.logger.info(f"Removing existing workdir {self.workdir}")
            shutil.rmtree(self.workdir)
        self.workdir.mkdir(parents=True)
        self.log_path = self.workdir / f"trial_run_pid{os.getpid()}_log.txt"
        self.path_log = self.workdir / f"cache_path_pid{os.getpid()}_log.txt"
        return trial_run(self.command, self.log_path, self.path_log, self.logger)

    def collect_and_compile(self) -> int:
        status = self.collect()
        if status:
            return status
        graphs = graphs_in(self.log_path, self.logger)
        told = self.path_log.read_text() if self.path_log.exists() else None
        return self.compile(Cache(Wrapper().flags, told), graphs)

    def compile(self, cache: Cache, graphs: list[str] | None = None) -> int:
        tasks = cache.scan()["todo"] if graphs is None else graphs
        return exit_status(compile_all(cache.url, self.options.num_parallel, tasks, self.logger))

    def maintain(self, cache: Cache) -> int:
        """clean, clear-locks, clear-neffs, scan and scan-with-failed."""
        what = self.options.command
        if what == "clean":
            cache.clean()
            self.logger.info("Cleanup done.")
        elif what == "clear-locks":
            for entry in cache.entries():
                entry.unlock()
            self.logger.info("Cleanup locks done.")
        elif what == "clear-neffs":
            for entry in cache.entries():
                for path in (entry.neff, entry.done, entry.log):
                    path.unlink(missing_ok=True)
            self.logger.info("Cleanup neffs done.")
        else:
            found = cache.scan()
            shown = "\n \t".join(f"{name}[{len(found[name])}]: {found[name]}"
                                 for name in ("todo", "locked", "done", "failed"))
            self.logger.info(f"cache scan for {cache.url}: \n \t{shown}\n")
        return 0

    def run(self) -> int:
        if self.options.command == "collect":
            return self.collect()
        if self.options.command == "collect-and-compile":
            return self.collect_and_compile()
        cache = Cache(Wrapper().flags)
        return self.compile(cache) if self.options.command == "compile" else self.maintain(cache)
