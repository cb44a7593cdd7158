"""What ends an attempt or a run by itself: hangs, wrong code, memory and disks
that are full, limits; and what must not be taken for any of them."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import crash
import pytest


def classes(run, phase="train"):
    return [row["class"] for row in run.events("attempt.ended") if row["phase"] == phase]


# --- hangs ---

def test_a_script_that_hangs_after_step_50_is_restarted(site):
    site.also("""
usual = step


def step(number, args):
    if number == 51 and attempt == ("train", 1):
        note("hangs")
        time.sleep(3600)
    usual(number, args)
""")
    run = site.one("hangs", "hyperparameters.max_steps=60", "env.STEP_SECONDS=0.02", "limits.stall=10s")
    driver = run.drive()
    run.wait_for_effect("hangs")
    assert driver.wait() == 0, run.story()
    assert classes(run) == ["timeout-hang", "none"], run.story()
    ended = run.events("attempt.ended")[1]
    assert ended["hang"] >= 10, run.story()
    start = [row for row in run.effects("start") if row["phase"] == "train"][-1]
    assert start["done"] == 50, run.story()
    crash.check_nothing_left(run)


# Each takes longer than the limit, with pauses that are far shorter than it.
SLOW = {
    "compiles": """
def start(args):
    for i in range(22):
        time.sleep(0.5)
        print(f"Compiling jit(part_{i}) with global shapes and types", flush=True)
    return 1
""",
    "is silent at first": """
def start(args):
    time.sleep(11)
    return 1
""",
    "saves": """
quick = save


def save(number):
    if number == 10:
        folder = Path(os.environ["STOKER_CHECKPOINT_DIR"]) / "tmp-checkpoint-10"
        folder.mkdir(parents=True)
        with (folder / "model.safetensors").open("wb", buffering=0) as file:
            for _ in range(44):
                file.write(bytes(100))
                time.sleep(0.25)
    quick(number)
""",
    "draws a bar": """
usual = step


def step(number, args):
    if number == 11:
        for i in range(44):
            print(f"\\r{i:3}% of a step", end="", flush=True)
            time.sleep(0.25)
        print(flush=True)
    usual(number, args)
""",
}


@pytest.mark.parametrize("what", SLOW)
def test_a_script_is_not_taken_for_hanging_because_it(site, what):
    site.write(compile=None)
    site.also(SLOW[what])
    run = site.one("slow", "limits.stall=8s")
    run.sets = [each for each in run.sets if not each.startswith("compile.")]
    assert run.drive().wait() == 0, run.story()
    assert classes(run) == ["none"], run.story()
    if what == "saves":
        assert run.status()["ledger"]["checkpoint"] >= 5, run.story()


def test_a_precompile_that_takes_too_long_is_stopped_without_a_driver_too(site):
    site.also("""
def start(args):
    if attempt == ("precompile", 1):
        note("takes long")
        time.sleep(3600)
    return 1
""")
    run = site.one("long", "compile.timeout=12s", "limits.grace=1s")
    driver = run.drive()
    run.wait_for_effect("takes long", "precompile")
    driver.kill()
    run.wait_for(lambda: not run.agents())
    assert run.resume().wait() == 0, run.story()
    assert classes(run, "precompile") == ["timeout-hang", "none"], run.story()
    assert "compile.timeout" in run.events("attempt.ended")[0]["evidence"]
    crash.check_nothing_left(run)


# --- the user's own ---

def test_wrong_code_is_tried_once(site):
    site.also("""
def end(args):
    return no_such_name
""")
    run = site.one("wrong")
    assert run.drive().wait() == 1, run.story()
    assert classes(run, "precompile") == ["user-code"], run.story()
    assert "NameError" in run.events("attempt.ended")[0]["evidence"]
    assert run.events("run.ended")[0]["state"] == "failed"


def test_wrong_code_in_training_is_tried_once(site):
    site.also("""
def end(args):
    if attempt[0] == "train":
        raise ValueError("the labels do not fit")
""")
    run = site.one("wrong")
    assert run.drive().wait() == 1, run.story()
    assert classes(run) == ["user-code"], run.story()
    assert run.resume().wait() == 1


# --- memory and disks ---

@contextlib.contextmanager
def little_memory(size):
    """The beginning of a command line that runs it in a cgroup of this size."""
    old, new = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    base, limit = (old, "memory.limit_in_bytes") if old.is_dir() else (new, "memory.max")
    group = base / f"stoker-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(size))
        (group / "cgroup.procs").read_text()
    except OSError as error:
        pytest.skip(f"needs a memory cgroup of its own: {error}")
    try:
        yield ("sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh")
    finally:
        until = time.monotonic() + crash.LEFT
        while (group / "cgroup.procs").read_text() and time.monotonic() < until:
            time.sleep(0.1)
        with contextlib.suppress(OSError):
            group.rmdir()


EAT = """
def eat():
    note("eats")
    food = []
    while True:
        food.append(bytearray(os.urandom(1 << 20) * 16))
"""


@pytest.mark.parametrize("phase", ["precompile", "train"])
def test_memory_that_runs_out(site, phase):
    site.also(EAT + f"""

usual = step


def step(number, args):
    if attempt[0] == {phase!r} and number == 2:
        eat()
    usual(number, args)
""")
    run = site.one("hungry")
    with little_memory(512 << 20) as prefix:
        driver = run.drive(prefix=prefix)
        code = driver.wait()
        crash.check_nothing_left(run)
    # Compiling is tried once more, with fewer workers; training as it is cannot do better.
    ended = [row for row in run.events("attempt.ended") if row["phase"] == phase]
    workers = [row.get("workers") for row in run.events("attempt.intended") if row["phase"] == phase]
    assert len(ended) == (2 if phase == "precompile" else 1), run.story()
    assert workers == ([None, 1] if phase == "precompile" else [None]), run.story()
    assert all("memory" in row["evidence"] and "memory" in row["hint"] for row in ended), run.story()
    assert code == 1 and "memory" in run.events("run.ended")[0]["hint"], run.story()


def test_a_disk_that_is_full_is_named(site):
    mount = site.root / "small"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "none", mount],
                      capture_output=True).returncode != 0:
        pytest.skip("needs root: a file system of its own")
    try:
        site.also("""
quick = save


def save(number):
    if attempt[0] == "train" and number == 10:
        Path(os.environ["STOKER_CHECKPOINT_DIR"], "big").write_bytes(bytes(200 << 20))
    quick(number)
""")
        run = site.one("full", f"workspace={mount}")
        assert run.drive().wait() == 1, run.story()
        assert len(classes(run)) == 1, run.story()
        ended, over = run.events("attempt.ended")[-1], run.events("run.ended")[0]
        assert ended["mount"] == str(mount), run.story()
        assert "No space left on device" in ended["evidence"], run.story()
        assert str(mount) in over["hint"], run.story()
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


# --- limits ---

LIMITS = {
    "deadline": ["limits.deadline=15s"],
    "cost": ["limits.cost=15", "resources.price=3600"],  # a dollar a second
}


@pytest.mark.parametrize("limit", LIMITS)
def test_before_a_limit_stops_it_the_training_may_save(site, limit):
    run = site.one("limited", "hyperparameters.max_steps=1000", "env.STEP_SECONDS=0.1", *LIMITS[limit])
    assert run.drive().wait() == 5, run.story()
    story = run.story()
    reached, = run.events("limit.reached")
    assert reached["limit"] == limit, story
    told, = run.effects("told")
    saved = [row for row in run.effects("saved") if row["at"] > told["at"]]
    assert saved, story
    complete = run.events("checkpoint.complete")[-1]
    assert complete["step"] >= saved[0]["step"] and complete["seq"] > reached["seq"], story
    assert run.events("run.ended")[0]["exit_code"] == 5, story
    assert run.resume().wait() == 5
    crash.check_nothing_left(run)


def test_stop_lets_the_training_save(site):
    run = site.one("asked", "hyperparameters.max_steps=1000", "env.STEP_SECONDS=0.1")
    driver = run.drive()
    run.wait_for(lambda: [row for row in run.effects("saved") if row["phase"] == "train"])
    site.ok("stop", run.id)
    assert driver.wait() == 6, run.story()
    told, = run.effects("told")
    assert [row for row in run.effects("saved") if row["at"] > told["at"]], run.story()
    crash.check_nothing_left(run)


def record(run, attempt="train-1"):
    return run.site.state / "workspace/runs" / run.id / attempt / "engine.json"


def test_an_attempt_that_cannot_be_seen_is_waited_for_and_not_replaced(site):
    run = site.one("lost", "limits.unreachable=3s").hold("train", 3)
    driver = run.drive()
    run.wait_for_effect("holds")
    away = record(run).rename(record(run).with_name("away"))
    run.wait_for(lambda: run.events("attempt.lost"))
    assert run.status()["attempts"][-1]["state"] == "lost"
    assert driver.wait() == 75, run.story()
    assert [row["limit"] for row in run.events("limit.reached")] == ["unreachable"]
    assert len(run.agents()) == 1, run.story()
    away.rename(record(run))
    run.release()
    assert run.resume().wait() == 0, run.story()
    assert run.events("attempt.found"), run.story()
    crash.check_once(run)


def test_a_refused_stop_keeps_no_driver_at_a_job_out_of_sight(site):
    """Its patience began when it lost sight of the job, and not with the first refused stop."""
    run = site.one("unstoppable", "limits.unreachable=3s").hold("precompile", 1)
    driver = run.drive()
    run.wait_for_effect("holds", "precompile")
    path = record(run, "precompile-1")
    here = path.read_text()
    path.write_text(json.dumps({**json.loads(here), "boot": "01234567-89ab-4cde-8f01-23456789abcd"}))
    run.wait_for(lambda: run.events("attempt.lost"))
    site.ok("stop", run.id)
    assert driver.wait() == 75, run.story()
    # By who drove it, and by the stop, which drives a run that has no driver.
    assert {row["limit"] for row in run.events("limit.reached")} == {"unreachable"}, run.story()
    path.write_text(here)
    assert run.resume().wait() == 6, run.story()
    crash.check_nothing_left(run)


def take_for_ended(run):
    """The engine is made to report an attempt as ended that lives on: its record
    tells of another boot, its lock is lost, and who resumes sees no process of it."""
    prefix = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs root: a namespace of processes of its own")
    text = json.loads(record(run).read_text())
    text["boot"] = "01234567-89ab-4cde-8f01-23456789abcd"
    record(run).write_text(json.dumps(text))
    (record(run).parent / "node-0/lock").unlink()
    return run.resume(prefix=prefix)


def test_an_orphan_stops_itself(site):
    run = site.one("orphan").hold("train", 3)
    driver = run.drive()
    orphan = run.wait_for_effect("holds")
    agent, = run.agents()
    driver.kill()
    driver = take_for_ended(run)
    run.wait_for(lambda: [row for row in run.effects("holds") if row["attempt"] == 2])
    # Both are there; the orphan is fenced off at its next look at the claim.
    run.wait_for(lambda: crash.process_gone(agent) and crash.process_gone(orphan["pid"]))
    run.release()
    assert driver.wait() == 0, run.story()
    ends = [(row["phase"], row["attempt"]) for row in run.effects("end")]
    assert ends == [("precompile", 1), ("train", 2)], run.story()
    report = json.loads((record(run).parent / "node-0/report.json").read_text())
    assert report["state"] == "not_mine" and report["stopped"] == "superseded", report
    crash.check_nothing_left(run)


def test_a_checkpoint_of_an_orphan_is_not_marked(site):
    """It saves until it is killed, for as long as it may after it was told to end. What its agent
    had marked until then counts, so the next attempt may begin behind it."""
    site.also("""
usual, usual_start, usual_end = step, start, end
if attempt == ("train", 1):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
first = None


def start(args):
    global first
    first = usual_start(args) or 1
    args.max_steps = max(args.max_steps, first + 12)
    return first


def end(args):
    if args.max_steps < 1000:  # else it has learned what was saved at no such step
        usual_end(args)


def step(number, args):
    while attempt == ("train", 1) and number == 3:
        save(1000 + len(os.listdir(os.environ["STOKER_CHECKPOINT_DIR"])))
        time.sleep(0.1)
    if attempt[0] == "train" and attempt[1] > 1 and number == first:
        os.environ["HOLD"] = os.environ["HOLD"].replace(":12:", f":{number}:")
    usual(number, args)
""")
    run = site.one("orphan", "limits.grace=2s").hold("train", 12)
    driver = run.drive()
    run.wait_for(lambda: [row for row in run.effects("saved") if row["step"] >= 1000])
    driver.kill()
    driver = take_for_ended(run)
    held = run.wait_for_effect("holds")
    assert held["attempt"] == 2
    first = run.effects("start")[1]
    run.wait_for(lambda: crash.process_gone(first["pid"]))
    claimed, = run.wait_for(lambda: [row for row in run.events("attempt.claimed") if row["job"].endswith("-train-2")])
    late = [row for row in run.effects("saved") if row["attempt"] == 1 and row["at"] > crash.seconds(claimed["since"])]
    run.release()
    assert driver.wait() == 0, run.story()
    assert late, run.story()
    marks = {path.name for path in record(run).parent.rglob("*.stoker.json")}
    assert not marks & {f"checkpoint-{row['step']}.stoker.json" for row in late}, marks
    crash.check_nothing_left(run)


def test_an_attempt_that_stays_in_the_queue_is_given_up(site):
    """As seen from here: its agent is there and never says a word."""
    assert site.one("first").drive().wait() == 0
    for name in ("loader", "stoker-node"):
        for path in (site.state / "workspace/agents").rglob(name):
            path.unlink()
            path.write_text("#!/bin/sh\nwhile :; do sleep 1; done\n")
            path.chmod(0o700)
    run = site.one("silent", "limits.queue=2s", "limits.grace=1s")
    assert run.drive().wait() == 5, run.story()
    assert [row["limit"] for row in run.events("limit.reached")] == ["queue"], run.story()
    assert run.effects() == []
    assert run.resume().wait() == 5
    crash.check_nothing_left(run)


def stop_while_it_unpacks(site, mebibytes):
    """A run whose agent is stopped between its claim and the start of its command;
    None if the machine was too fast for that."""
    with (site.source / "large.bin").open("wb") as file:
        file.truncate(mebibytes << 20)
    run = site.one(f"slow-{mebibytes}", "limits.start=1s", "limits.grace=1s")
    driver = run.drive()
    run.wait_for(lambda: run.is_created() and run.events("attempt.claimed"))
    for agent in run.agents():
        os.kill(agent, signal.SIGSTOP)
    # What it said last, before its driver has read it.
    report = json.loads((record(run).parent.parent / "precompile-1/node-0/report.json").read_text())
    if report["state"] == "starting" or run.events("limit.reached"):
        return run, driver
    run.kill_all()
    driver.kill()
    return None


def test_a_command_that_does_not_begin_is_given_up(site):
    run, driver = next(filter(None, (stop_while_it_unpacks(site, size) for size in (400, 800, 1600))))
    assert driver.wait() == 5, run.story()
    assert not run.events("attempt.started"), run.story()
    assert [row["limit"] for row in run.events("limit.reached")] == ["start"], run.story()
    assert run.effects() == []
    crash.check_nothing_left(run)
