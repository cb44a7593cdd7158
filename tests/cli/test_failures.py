"""Jobs that fail: the right phase, the last lines of what the job said, the
cure, the exit code, and the same in `status`."""

import json
import os
import signal
import subprocess
import time
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
import stoker as cli

BOOM = """
import os


def start(args):
    if os.environ["STOKER_PHASE"] == "{phase}":
        helper()


def helper():
    raise ValueError("expected 10 classes, data has 11")
"""


def fails(project, phase, code=1):
    """Runs it; everything a person must learn is said and kept."""
    result = project.run(code=code)
    status = project.status()
    assert status["state"] == ("failed" if code == 1 else "refused")
    assert status["exit_code"] == code
    assert status["phase"] == phase
    last = status["attempts"][-1]
    assert last["phase"] == phase and last["state"] == "ended"
    said = project.ok("status", "@last").out
    assert phase in said
    return result, status, last


@pytest.mark.parametrize("phase", ["precompile", "train"])
def test_a_script_that_raises_fails_in_its_phase_with_its_traceback(project, phase):
    project.extra(BOOM.format(phase=phase))
    result, status, last = fails(project, phase)
    assert "ValueError: expected 10 classes, data has 11" in result.text
    assert "extra.py" in result.text and "in helper" in result.text
    assert phase in result.text
    assert result.cure
    assert last["class"] == "user-code"
    assert last["exit"] == 1
    assert "ValueError: expected 10 classes" in last["evidence"]
    assert last["action"] == "stop"
    assert "ValueError: expected 10 classes" in project.ok("status", "@last").out


@pytest.mark.parametrize("phase", ["precompile", "train"])
def test_user_code_is_not_retried(project, phase):
    project.extra(BOOM.format(phase=phase))
    project.run(code=1)
    assert [number for name, number in project.attempts() if name == phase] == [1]


MEMORY = """
import os


def start(args):
    if os.environ["STOKER_PHASE"] == "precompile" and os.environ.get("STOKER_COMPILE_WORKERS") != "1":
        raise MemoryError("too many compilers at once")
"""


def test_a_compilation_that_ran_out_of_memory_is_tried_once_with_fewer_workers(project):
    project.extra(MEMORY)
    project.run("--set", "retry.backoff.first=0s", "--set", "retry.backoff.max=0s")
    assert project.attempts() == [("precompile", 1), ("precompile", 2), ("train", 1)]
    assert project.status()["attempts"][1]["workers"] == 1


def test_a_phase_one_that_fails_is_never_followed_by_training(project):
    project.extra(BOOM.format(phase="precompile"))
    project.run(code=1)
    assert project.attempts() == [("precompile", 1)]


def test_a_missing_program_is_named_with_the_cure(project):
    project.write(command=["no-such-trainer", "train.py"])
    result, status, last = fails(project, "precompile")
    assert "no-such-trainer" in result.text and result.cure
    assert last["exit"] == 127


def test_a_missing_script_is_named(project):
    project.write(command=["/usr/bin/python3", "trian.py"])
    result, status, last = fails(project, "precompile")
    assert "trian.py" in result.text and result.cure


def test_a_missing_module_is_named_with_the_cure(project):
    project.extra("import no_such_module\n")
    result, status, last = fails(project, "precompile")
    assert "No module named 'no_such_module'" in result.text
    assert "no_such_module" in result.cure
    assert last["class"] == "user-config"


def test_a_program_that_may_not_be_executed_says_so(project):
    (project.source / "tool").write_text("#!/bin/sh\n")
    (project.source / "tool").chmod(0o644)
    project.write(command=["./tool"])
    result, status, last = fails(project, "precompile")
    assert last["exit"] == 126
    assert "./tool" in result.text and result.cure


def test_a_wrong_argument_shows_what_argparse_said(project):
    project.spec["hyperparameters"]["momentum"] = 0.9
    project.write()
    result, status, last = fails(project, "precompile")
    assert "unrecognized arguments: --momentum 0.9" in result.text
    assert last["exit"] == 2


def test_a_script_killed_by_a_signal_is_told_apart(project):
    project.extra("import os\n\n\ndef end(args):\n    os.kill(os.getpid(), 11)\n")
    result = project.run(code=1)
    assert "SIGSEGV" in result.text or "signal 11" in result.text
    assert project.status()["attempts"][0]["exit"] == 139


def test_a_job_that_names_no_graph_never_reaches_training(project):
    """None named is incomplete: the gate says no."""
    (project.source / "train.py").write_text('"""Says nothing."""\n')
    result = project.run(code=5)
    assert result.cure
    assert {phase for phase, _ in project.attempts()} == {"precompile"}
    status = project.status()
    assert status["state"] == "refused" and status["exit_code"] == 5


def test_on_incomplete_train_trains_all_the_same(project):
    (project.source / "train.py").write_text('"""Says nothing."""\n')
    project.spec["compile"]["on_incomplete"] = "train"
    project.write()
    project.run()
    assert project.attempts()[-1][0] == "train"


def test_a_failed_write_to_the_cache_is_incomplete_not_success(project):
    project.extra("""
import __main__
import os


def end(args):
    if os.environ["STOKER_PHASE"] == "precompile":
        for name in os.listdir(os.environ["JAX_COMPILATION_CACHE_DIR"]):
            path = os.path.join(os.environ["JAX_COMPILATION_CACHE_DIR"], name)
            if name.startswith("jit_eval_step"):
                os.truncate(path, 0)
""")
    result = project.run(code=5)
    assert "eval_step" in result.text
    assert {phase for phase, _ in project.attempts()} == {"precompile"}


SLOW = """
import os
import time


def step(number, args):
    if os.environ["STOKER_PHASE"] == "train" and number == 5:
        print("half way", flush=True)
        for _ in range(6000):
            if os.path.exists({gate!r}):
                return
            time.sleep(0.1)
"""


def start_slow(project, *argv, says="half way"):
    gate = project.root / "go"
    project.extra(SLOW.replace("half way", says).format(gate=str(gate)))
    process = project.start("run", project.spec_path, "--id", "slow", *argv)
    for _ in range(600):
        if process.poll() is not None:
            break
        logs = project.stoker("logs", "slow", "--phase", "train")
        if logs.code == 0 and says in logs.out:
            return process, gate
        time.sleep(0.1)
    out, err = process.communicate()
    raise AssertionError(f"training never started\n{err.decode()}")


def test_an_interrupt_detaches_and_the_job_runs_on(project):
    process, gate = start_slow(project)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=cli.SECONDS)
    assert process.returncode == 8, err.decode()
    assert b"detached" in err and b"resume slow" in err
    assert project.status("slow")["state"] in ("running", "waiting")
    gate.touch()
    project.run("--id", "slow")
    assert project.attempts("slow") == [("precompile", 1), ("train", 1)]


def test_an_interrupt_stops_the_job_where_that_was_asked_for(project):
    process, gate = start_slow(project, "--on-interrupt", "stop")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=cli.SECONDS)
    assert process.returncode == 6, err.decode()
    assert project.status("slow")["state"] == "stopped"


def test_a_second_driver_is_told_that_the_run_is_driven(project):
    process, gate = start_slow(project)
    result = project.run("--id", "slow", code=7)
    assert "slow" in result.text and str(process.pid) in result.text
    driver = project.status("slow")["driver"]
    assert driver["pid"] == process.pid
    gate.touch()
    process.communicate(timeout=cli.SECONDS)
    assert process.returncode == 0


@pytest.mark.parametrize("kind", ["", "dir:"])
def test_a_driver_that_is_dead_is_not_shown_as_driving(project, kind):
    state = ("--state", f"{kind}{project.root / 'other'}")
    gate = project.root / "go"
    project.extra(SLOW.format(gate=str(gate)))
    process = project.start(*state, "run", project.spec_path, "--id", "slow")
    status = {}
    while status.get("phase") != "train":
        assert process.poll() is None
        time.sleep(0.1)
        found = project.stoker(*state, "--json", "status", "slow")
        status = found.lines[0] if found.code == 0 else {}
    assert status["driver"]["pid"] == process.pid and status.get("waiting_for", "") != "a driver"
    process.kill()
    process.communicate(timeout=cli.SECONDS)
    for argv in (("status", "slow"), ("list",)):
        (status,) = project.ok(*state, "--json", *argv).lines
        assert status["driver"] is None and status["state"] == "waiting", status
        assert status["waiting_for"].startswith("a driver"), status
    assert "resume" in project.ok(*state, "status", "slow").out
    assert "no driver, unseen since " in project.ok(*state, "list").out.splitlines()[1]
    gate.touch()
    project.ok(*state, "run", project.spec_path, "--id", "slow")


def test_logs_follow_until_the_run_has_ended(project):
    process, gate = start_slow(project)
    follower = project.start("logs", "slow", "-f", "--phase", "train")
    time.sleep(0.5)
    assert follower.poll() is None
    gate.touch()
    process.communicate(timeout=cli.SECONDS)
    out, err = follower.communicate(timeout=cli.SECONDS)
    assert follower.returncode == 0
    assert b"half way" in out and b"step: 20 " in out


def test_a_killed_driver_leaves_a_run_that_goes_on(project):
    process, gate = start_slow(project)
    process.kill()
    process.communicate(timeout=cli.SECONDS)
    gate.touch()
    project.run("--id", "slow")
    assert project.attempts("slow") == [("precompile", 1), ("train", 1)]
    assert json.dumps(project.status("slow")["state"]) == '"succeeded"'


@pytest.mark.parametrize("phase, other", [("precompile", "train:      not reached"), ("train", "precompile: ")])
def test_a_summary_says_what_was_not_reached(project, phase, other):
    project.extra(BOOM.format(phase=phase))
    result = project.run(code=1)
    assert other in result.out and "not needed" not in result.out, str(result)


def test_what_never_became_a_run_is_not_announced(project):
    project.write(secrets={"TOKEN": "env:STK_TEST_UNSET"})
    result = project.run("--id", "none", code=4)
    assert "run none" not in result.text, str(result)
    project.write(secrets=None)
    assert "run none of fake" in project.run("--id", "none").err


CURES = [
    (("plan", "SPEC", "--set", "source.path=nope"), 3, ["--set: source.path=nope: ", "nope"], ["source.path"]),
    (("plan", "SPEC", "--set", "source.rev=v1"), 3, ["--set: source.rev=v1: "], ["source.rev"]),
    (("plan", "SPEC", "--set", "source.link=[x]"), 3, ["--set: source.link=[x]: "], ["source.link"]),
    (("plan", "SPEC", "--set", "source.include=[zzz]"), 3, ["--set: source.include=[zzz]: "], ["pattern"]),
    (("plan", "SPEC", "--set", "compile.depends_on=[zzz]"), 4, ["--set: compile.depends_on=[zzz]: "], ["file"]),
    (("run", "SPEC", "--set", "secrets.X=file:/nope"), 4, ["'X'", "/nope"], ["secrets.X"]),
    (("run", "SPEC", "--set", "workspace=/proc/xx"), 4, ["/proc/xx"], ["workspace"]),
    (("run", "SPEC", "--set", "compile.cache_url=/proc/xx"), 4, ["/proc/xx", "cache"], ["compile.cache_url"]),
    (("init", "/nodir/x.yaml"), 4, ["/nodir/x.yaml"], ["folder"]),
    (("cache", "verify", "SPEC", "--set", "compile.kind=none"), 4, ["no cache"], ["compile.kind"]),
]


@pytest.mark.parametrize("argv, code, message, cure", CURES, ids=[" ".join(argv) for argv, *_ in CURES])
def test_what_cannot_be_done_names_the_cause_and_the_cure(project, argv, code, message, cure):
    result = project.stoker(*[project.spec_path if word == "SPEC" else word for word in argv])
    assert result.code == code, str(result)
    said = result.err.split("hint:")[0]
    for word in message:
        assert word in said, str(result)
    for word in cure:
        assert word in result.cure, str(result)
    assert not project.ok("--json", "list").lines, "no run was made"


def test_a_cache_folder_is_made_as_the_compiler_would_make_it(project):
    project.run("--set", f"compile.cache_url={project.root}/deep/er/cache")
    assert (project.root / "deep/er").stat().st_mode & 0o777 == 0o777 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_file_name_that_is_not_utf8_names_the_cure(project):
    (project.source / os.fsdecode(b"bad\xff")).write_text("x")
    result = project.stoker("plan", project.spec_path)
    assert result.code == 4 and "UTF-8" in result.err and "rename" in result.cure


def test_a_closed_standard_output_is_told_from_a_full_disk():
    command = ["/bin/sh", "-c", f"exec {cli.BINARY} version >&-"]
    done = subprocess.run(command, capture_output=True, text=True, env=cli.environment(), timeout=cli.SECONDS)
    assert done.returncode == 4 and "closed" in done.stderr and "free space" not in done.stderr, done.stderr


def test_a_damaged_cache_names_the_cures(project):
    project.run()
    project.entries()[0].write_bytes(b"")
    by_spec = project.stoker("cache", "verify", project.spec_path)
    assert by_spec.code == 5 and "stoker run" in by_spec.cure
    by_url = project.stoker("cache", "verify", project.cache)
    assert by_url.code == 5 and "run the spec again" in by_url.cure and "stoker/" in by_url.cure
    project.run()
    damaged = project.cache / "stoker" / f"{'0' * 64}.json"
    damaged.write_text("{")
    result = project.stoker("cache", "verify", project.cache)
    assert result.code == 5 and damaged.name in result.out and "remove the damaged compile manifests" in result.cure
    project.ok("cache", "verify", project.spec_path)
    damaged.unlink()
    project.ok("cache", "verify", project.cache)


def test_a_driver_that_takes_over_does_not_repeat_progress_at_once(project):
    process, gate = start_slow(project, says="step: 5 half")
    while not project.events("slow", "train.progress"):
        time.sleep(0.1)
    process.kill()
    process.communicate(timeout=cli.SECONDS)
    process = project.start("run", project.spec_path, "--id", "slow")
    time.sleep(2)
    gate.touch()
    assert cli.finish(process).code == 0
    rows = project.events("slow", "train.progress")
    assert rows[-1]["step"] == 20, rows
    times = [datetime.fromisoformat(row["at"]) for row in rows[:-1]]  # the last one is of the end
    assert all(later - earlier > timedelta(seconds=9) for earlier, later in pairwise(times)), rows


def test_the_state_of_an_older_version_is_closed_to_others(project):
    project.run()
    state = project.state / "stoker"
    for path in (state, state / "runs", state / "journal.db"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    project.ok("list")
    assert state.stat().st_mode & 0o077, "who only reads changes nothing"
    project.run()
    for path in (state, state / "runs", state / "journal.db"):
        assert path.stat().st_mode & 0o077 == 0, path
    (state / "mine.txt").write_text("x")
    state.chmod(0o755)
    project.run()
    assert state.stat().st_mode & 0o777 == 0o755, "a folder of other things too"
