"""What a phase 1 leaves in the cache that did not come to its end, and what its graphs that
failed look like, from the outside."""

import json
import os
import re
import signal

import pytest
import stoker as cli
from neuron_job import phases, verdict
from neuron_standin import plant

LONG = 300  # seconds of a compilation: longer than a test looks at it
WORDS = "An unsupported operator was used"


def locks(job):
    return sorted(job.cache.rglob("*.lock"))


def calls_the_compiler(job, run):
    """The lock comes first, then the word in the log, then the compiler's first dot."""
    cli.until(lambda: locks(job))
    cli.until(lambda: re.search(r"Call compiler.*\n.*\.$", job.stoker("logs", run).text, re.MULTILINE))


@pytest.fixture
def compiling(job, neuron):
    """A run whose phase 1 is in the middle of its first graph. The compiler has read how long
    it takes: that may be changed for the next one."""
    neuron.set(STANDIN_COMPILE_SECONDS=LONG)
    driver = job.start("run", job.spec_path, "--id", "first", env={"PATH": job.path})
    calls_the_compiler(job, "first")
    yield driver
    if driver.poll() is None:
        driver.kill()
    driver.communicate()


def repaired(job, run):
    return [row for row in job.events(run, "cache.repaired") if row["removed"][0]["state"] == "locked"]


def runs_in_one_go(job, neuron):
    neuron.set(STANDIN_COMPILE_SECONDS=None)
    job.go()
    assert phases(job) == [("precompile", "none"), ("train", "none")]
    assert verdict(job)["compiled"] == verdict(job)["graphs"] > 0


def test_a_stopped_phase_1_takes_its_locks_along(job, neuron, compiling):
    job.ok("stop", "first")
    compiling.wait(cli.SECONDS)
    row, = repaired(job, "first")
    assert "precompile 1 was compiling" in row["reason"] and len(row["removed"]) == 1, row
    assert locks(job) == []
    assert [ended["class"] for ended in job.events("first", "attempt.ended")] == ["stopped"]
    runs_in_one_go(job, neuron)


def test_a_lock_that_may_be_another_jobs_stays(job, compiling):
    """Made while the run compiled, on a graph that it has extracted and not come to yet."""
    own, = locks(job)
    other = [path for path in sorted(job.cache.glob("neuronxcc-*/MODULE_*")) if path != own.parent][-1]
    planted = plant.lock(other)
    job.ok("stop", "first")
    compiling.wait(cli.SECONDS)
    assert locks(job) == [planted]


def test_a_waiting_run_finds_no_lock_of_the_stopped_one(job, neuron, compiling):
    waits = job.start("run", job.spec_path, "--id", "second", env={"PATH": job.path})
    cli.until(lambda: job.stoker("events", "second").text.count("cache.waiting"))
    neuron.set(STANDIN_COMPILE_SECONDS=None)
    job.ok("stop", "first")
    compiling.wait(cli.SECONDS)
    waits.communicate(timeout=cli.SECONDS)
    assert waits.returncode == 0
    assert job.attempts("second") == [("precompile", 1), ("train", 1)]


def test_each_attempt_that_runs_out_of_time_takes_its_locks_along(job, neuron):
    neuron.set(STANDIN_COMPILE_SECONDS=LONG)
    job.go("compile.timeout=12s", "retry.attempts=2", code=1)
    assert phases(job) == [("precompile", "timeout-hang")] * 2
    assert locks(job) == [] and len(repaired(job, "@last")) == 2
    runs_in_one_go(job, neuron)


def processes(job, what="cmdline"):
    """Of this test, by their command line or by what they were given as environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/{what}", "rb").read().split(b"\0")
        except OSError:
            continue
        if int(pid) != os.getpid() and str(job.root).encode() in b" ".join(words):
            yield int(pid), words


def agents(job):
    return [pid for pid, words in processes(job) if any(word.endswith(b"stoker-node") for word in words)]


def test_who_takes_up_a_run_whose_agent_was_killed_clears_its_locks(job, neuron, compiling):
    compiling.kill()
    compiling.communicate()
    killed = agents(job)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert killed and locks(job)
    neuron.set(STANDIN_COMPILE_SECONDS=None)
    job.ok("resume", "first", env={"PATH": job.path})
    assert len(repaired(job, "first")) == 1 and locks(job) == []
    assert job.events("first", "cache.verified")[-1]["complete"]


def test_who_meets_the_locks_of_a_killed_run_is_told_how_to_clear_them(job, neuron, compiling):
    """Nobody but that run knows which are its own, and whether it is dead."""
    compiling.kill()
    compiling.communicate()
    for pid in agents(job) + [pid for pid, _ in processes(job, "environ")]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    neuron.set(STANDIN_COMPILE_SECONDS=None)
    claim, = job.cache.glob("stoker/claims/*.json")
    claim.write_text(json.dumps(json.loads(claim.read_text()) | {"valid_ms": 1000}))
    result = job.go(code=5)
    assert locks(job) and "'stoker stop first'" in job.status()["hint"], result
    job.ok("stop", "first")
    assert len(repaired(job, "first")) == 1 and locks(job) == []
    job.go()


def test_all_locks_of_a_run_are_named_in_one_command(job):
    job.go()
    for lock in job.cache.glob("stoker/*.json"):
        lock.unlink()
    planted = []
    for folder in sorted(job.cache.glob("neuronxcc-*/MODULE_*"))[:2]:
        for name in ("model.neff", "model.done"):
            (folder / name).unlink()
        planted.append(plant.lock(folder, 3 * 3600))
    job.go(code=5)
    hint = job.status()["hint"]
    command = hint[hint.index("cd '"):]
    assert os.system(command) == 0, hint
    assert not any(lock.exists() for lock in planted), hint
    job.go()


# --- graphs that fail ---

def test_a_graph_that_failed_is_not_counted_as_compiled(job, neuron):
    neuron.set(STANDIN_FAIL_GRAPHS="save_step")
    result = job.go(code=1)
    said, status = verdict(job), job.status()
    assert (said["compiled"], said["done"], said["failed"]) == (2, 2, 1), said
    assert (status["graphs"]["compiled"], status["graphs"]["failed"]) == (2, 1), status["graphs"]
    assert "2 graphs compiled" in result.text and "3 compiled" not in result.text, result


def test_the_compilers_own_words_are_shown_and_the_graph(job, neuron):
    neuron.set(STANDIN_FAIL_GRAPHS="save_step")
    result = job.go(code=1)
    ended, = job.events(kind="attempt.ended")
    problem, = verdict(job)["sources"]["problems"]
    assert WORDS in ended["evidence"] and WORDS in problem["what"], (ended, problem)
    assert WORDS in result.text and problem["graph"] in result.text, result


def test_the_same_failure_is_of_the_same_class_in_the_next_run(job, neuron):
    """And is no more than tried: what was stored of it is gone."""
    neuron.set(STANDIN_FAIL_GRAPHS="save_step")
    for _ in range(2):
        job.go(code=1)
        assert phases(job) == [("precompile", "user-code")]
        assert job.events(kind="run.ended")[0]["class"] == "user-code"
    neuron.set(STANDIN_FAIL_GRAPHS=None)
    job.go()
    assert verdict(job)["compiled"] == 1
