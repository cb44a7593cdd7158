"""Runs whose workspace, cache, checkpoints and state lie on S3: the local engine works as
it does in folders, and whoever comes from another home goes on where another stopped."""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
import stoker as cli
from bucket_job import BUCKET

LEASE = ("--lease", "3s")
SECRET_WORDS = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")


def events_are_whole(job, run="one", **options):
    """Numbered without a gap, each written once, and one end; the rows."""
    rows = job.ok("events", run, **options).lines
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["event"] for row in rows].count("run.ended") == 1
    effects = Counter(entry["name"] for entry in job.aws.ledger() if entry["effect"] and entry["operation"] == "PutObject"
                      and f"/{job.prefix}/state/runs/{run}/events/" in entry["name"])
    assert set(effects.values()) == {1} and len(effects) == len(rows)
    return rows


def submitted(rows):
    return [(row["phase"], row["attempt"]) for row in rows if row["event"] == "attempt.submitted"]


def test_a_run_with_everything_on_s3_and_the_next_one_is_warm_from_another_home(job):
    job.run("--id", "one")
    rows = events_are_whole(job)
    assert submitted(rows) == [("precompile", 1), ("train", 1)]
    other = job.elsewhere()
    status, = job.ok("--json", "status", "one", env=other).lines
    assert (status["state"], status["progress"]["step"], status["jit"]["graphs"]) == ("succeeded", 25, 0)
    assert status["checkpoint"] == {"step": 25, "url": f"{job.url['ckpt']}/one/attempt-1/checkpoint-25"}
    assert "step: 25" in job.ok("logs", "one", env=other).out
    job.run("--id", "two", env=other)
    assert submitted(events_are_whole(job, "two", env=other)) == [("train", 1)]
    assert [row["run"] for row in job.ok("--json", "list", env=other).lines] == ["two", "one"]
    # A pipeline's repeated step does not double, from wherever it is repeated.
    assert job.run("--id", "one", env=other).code == 0
    assert len(job.effects("start")) == 3


def test_what_is_there_is_not_sent_again(job):
    job.run("--id", "one")
    since = job.aws.mark()
    job.run("--id", "two")
    again = [entry["name"] for entry in job.aws.ledger(since) if entry["effect"] and
             re.search(r"/stoker/(agents|sources)/", entry["name"] or "") and entry["operation"] == "PutObject"]
    assert again == []
    fetched = [entry["name"] for entry in job.aws.ledger(since, "GetObject") if "/agents/" in entry["name"]]
    assert fetched == []  # this machine has it


def test_a_run_that_goes_on_costs_few_requests(job):
    job.hold("train", 5)
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    job.wait_for_effect("holds")

    def calm():
        begun = job.aws.mark()
        time.sleep(3)
        return len(job.aws.ledger(begun)) <= 5

    job.wait_for(calm)  # nothing of the beginning is still to come
    since, seconds = job.aws.mark(), 30
    time.sleep(seconds)
    idle = Counter(entry["operation"] for entry in job.aws.ledger(since))
    job.gate.touch()
    assert cli.finish(driver).code == 0
    # Per minute: the journal 12, the lease 6, two looks of the agent 12, checkpoints 4 …
    assert sum(idle.values()) <= 30, idle
    # And a look from elsewhere reads the journal and little else.
    since = job.aws.mark()
    job.ok("status", "one", env=job.elsewhere())
    assert len(job.aws.ledger(since)) < 60


def test_no_key_reaches_the_command_the_log_or_the_disk(job):
    job.also("print('env', json.dumps(dict(os.environ)), flush=True)")
    job.run("--id", "one", "-v")
    env = json.loads(re.search(r"^env (\{.*\})$", job.ok("logs", "one").out, re.M)[1])
    assert not [name for name in env if name.startswith("AWS_")]
    for path in Path(job.root).rglob("*"):
        if path.is_file() and path.stat().st_size < 1 << 20:
            text = path.read_bytes()
            assert not any(word.encode() in text for word in SECRET_WORDS), path
    for key, text in job.aws.objects(BUCKET).items():
        assert not any(word.encode() in text for word in SECRET_WORDS), key


def test_a_command_may_have_other_keys_than_its_agent(job):
    job.write(secrets={"AWS_ACCESS_KEY_ID": "env:THEIRS"})
    job.also("print('key', os.environ['AWS_ACCESS_KEY_ID'], flush=True)")
    job.run("--id", "one", env={"THEIRS": "AKIDTHEIRS"})
    assert "key AKIDTHEIRS" in job.ok("logs", "one").out


def kill(driver):
    driver.kill()
    driver.communicate()


def test_a_run_whose_driver_was_killed_is_taken_over_from_another_home(job):
    job.hold("train", 8)
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_effect("holds")
    kill(driver)
    second = job.start("--json", "resume", "one", env=job.elsewhere())
    time.sleep(1)
    job.gate.touch()
    result = cli.finish(second)
    assert result.code == 0, str(result)
    rows = events_are_whole(job)
    assert submitted(rows) == [("precompile", 1), ("train", 1)]
    assert len(job.effects("start")) == 2  # one a phase
    assert rows[-1]["state"] == "succeeded"
    assert [row["epoch"] for row in rows if row["event"] == "driver.took_over"] == [1, 2]


FAR = """mount -t tmpfs none "$1" && mount -t proc none /proc && hostname far && shift && exec "$@" """


def far_away(job, home, *argv):
    """The same from another machine: another name, other process ids, and nothing of the
    first home."""
    with contextlib.suppress(OSError):
        probe = subprocess.run(["unshare", "--mount", "--pid", "--uts", "--fork", "true"], capture_output=True)
        if probe.returncode != 0:
            pytest.skip(f"no namespaces of our own here: {probe.stderr.decode().strip()}")
    return job.start(*argv, env=job.elsewhere(), prefix=("unshare", "--mount", "--pid", "--uts", "--fork",
                                                         "/bin/sh", "-c", FAR, "far", str(home)))


def test_another_machine_takes_over_and_waits_for_what_it_cannot_see(job):
    job.hold("train", 8)
    driver = job.start("run", job.spec_path, "--id", "one", *LEASE)
    job.wait_for_effect("holds")
    kill(driver)
    # The log is asked for later than the report, and next time, too: the end is known before it is due.
    job.aws.fault("delay_after", operation="GetObject", key="train-1/node-0/log/", count=0, seconds=2)
    second = far_away(job, job.home, "--json", "resume", "one", *LEASE)
    job.wait_for(lambda: "attempt.lost" in [row["event"] for row in job.ok("events", "one").lines])
    took = [row for row in job.ok("events", "one").lines if row["event"] == "driver.took_over"][-1]
    assert took["host"] == "far"
    job.gate.touch()
    result = cli.finish(second)
    assert result.code == 0, str(result)
    rows = events_are_whole(job)
    assert submitted(rows) == [("precompile", 1), ("train", 1)]
    assert rows[-1]["state"] == "succeeded"
    assert len(job.effects("start")) == 2
    ended = [row for row in rows if row["event"] == "attempt.ended"][-1]
    assert (ended["phase"], ended["exit"]) == ("train", 0)
    # It read the whole log, in pieces.
    assert [row["step"] for row in rows if row["event"] == "train.progress"][-1] == 25


def says_much_and_holds(job):
    job.also("print('x' * 100_000 if attempt[0] == 'train' else '', flush=True)\n"
             "print('after it', flush=True)")
    job.hold("train", 8)
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_effect("holds")
    return driver


def test_logs_can_be_read_from_another_machine_while_they_grow(job):
    driver = says_much_and_holds(job)
    job.wait_for(lambda: "after it" in cli.finish(far_away(job, job.home, "logs", "one")).out)
    job.gate.touch()
    assert cli.finish(driver).code == 0
    near = job.ok("logs", "one").out
    assert cli.finish(far_away(job, job.home, "logs", "one")).out == near
    assert near.count("\nstep: 25 ") == 1


def test_of_two_drivers_one_wins_and_the_other_exits_7(job):
    job.hold("train", 8)
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_effect("holds")
    driver.send_signal(signal.SIGTERM)
    assert cli.finish(driver).code == 8
    both = [job.start("resume", "one", env=job.elsewhere(f"home-{i}")) for i in range(2)]
    job.wait_for(lambda: any(process.poll() is not None for process in both))
    job.gate.touch()
    results = [cli.finish(process) for process in both]
    assert sorted(result.code for result in results) == [0, 7], "\n".join(map(str, results))
    rows = events_are_whole(job)
    assert submitted(rows) == [("precompile", 1), ("train", 1)]


@pytest.mark.parametrize("seed", range(3))
def test_whenever_a_driver_is_killed_the_next_one_heals_it(job, seed):
    chance = random.Random(seed)
    result, kills = None, 0
    while result is None:
        argv = ("run", job.spec_path, "--id", "one")
        driver = job.start(*argv, env=job.elsewhere(f"home-{kills % 2}"))
        time.sleep(chance.uniform(0.2, 2.5))
        if kills < 8 and driver.poll() is None:
            kill(driver)
            kills += 1
        else:
            result = cli.finish(driver)
    assert result.code == 0, str(result)
    rows = events_are_whole(job)
    assert rows[-1]["state"] == "succeeded"
    ends = [row for row in job.effects("end") if row["phase"] == "train"]
    assert len(ends) == 1, ends


def test_replies_that_are_lost_and_services_that_stumble_change_nothing(job):
    job.aws.fault("lost", operation="PutObject", key="/runs/one/events/", nth=3, count=3)
    job.aws.fault("lost", operation="PutObject", key="/(claim|engine)", count=2)
    job.aws.fault("throttle", operation="GetObject", nth=10, count=4)
    job.aws.fault("internal", operation="ListObjectsV2", nth=2, count=2)
    job.run("--id", "one")
    rows = job.ok("events", "one").lines
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert submitted(rows) == [("precompile", 1), ("train", 1)]
    assert len(job.effects("start")) == 2
    assert job.aws.struck() >= 8


@pytest.mark.parametrize("operation, right", [("ListObjectsV2", "s3:ListBucket"), ("PutObject", "s3:PutObject"),
                                              ("GetObject", "s3:GetObject"), ("DeleteObject", "s3:DeleteObject")])
@pytest.mark.parametrize("place, what", [("stoker", "workspace"), ("ckpt", "place for checkpoints")])
def test_a_right_that_is_missing_is_named_before_anything_begins(job, operation, right, place, what):
    where = {"prefix" if operation == "ListObjectsV2" else "key": f"/{place}/stoker-probe-"}
    job.aws.fault("denied", operation=operation, count=0, **where)
    result = job.run("--id", "one", code=4)
    assert f"{what} '{job.url[place]}'" in result.err, str(result)
    assert right in result.err and result.cure
    job.aws.clear_faults()
    assert job.stoker("events", "one").code == 9
    assert job.effects() == []


def test_a_stop_drains_and_a_removal_leaves_nothing(job):
    job.write(hyperparameters={"max_steps": 4000})
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_effect("saved")
    assert job.ok("stop", "one", env=job.elsewhere()).code == 0
    assert cli.finish(driver).code == 6
    rows = events_are_whole(job)
    assert rows[-1]["state"] == "stopped"
    assert any(row["event"] == "checkpoint.complete" for row in rows)
    job.ok("rm", "one", env=job.elsewhere())
    left = [key for key in job.aws.objects(BUCKET) if "/runs/one/" in key]
    assert left == []
    job.write(hyperparameters={"max_steps": 25})
    job.run("--id", "one")
    assert "step: 4000" not in job.ok("logs", "one").out


def test_what_only_the_workspace_has_stays_and_is_counted(job):
    job.write(checkpoint={"keep": "all"})
    job.also("import pathlib\n(pathlib.Path(os.environ['STOKER_OUTPUT_DIR']) / 'result').write_bytes(b'x' * 500)")
    job.run("--id", "one")
    here, = [path for path in job.root.rglob("result") if "runs/one/train-1/" in str(path)]
    status, = job.ok("--json", "status", "one").lines
    step, url = status["checkpoint"]["step"], status["checkpoint"]["url"]
    before = {key for key in job.aws.objects(BUCKET) if "/runs/one/" in key}
    dry, = job.ok("--json", "rm", "one", "--dry-run", env=job.elsewhere()).lines
    assert {key for key in job.aws.objects(BUCKET) if "/runs/one/" in key} == before
    assert url in [row["url"] for row in dry["kept"]] and dry["size_bytes"] > 1000, dry
    said = job.ok("rm", "one").out
    assert not here.exists() and said.count("kept:") == len(dry["kept"]), "what was brought is a copy"
    assert f"checkpoint of step {step}" in said and url in said, said
    left = {key for key in job.aws.objects(BUCKET) if "/runs/one/" in key}
    inside = url.removeprefix(f"s3://{BUCKET}/")
    assert any(key.startswith(inside + "/") for key in left)
    assert {key for key in left if not key.endswith("/kept.json")} < before
    output, = [row for row in dry["kept"] if row["what"] == "output"]
    assert output["url"] == status["outputs"]["url"] and output["size_bytes"] == 500
    assert not [key for key in left if "/checkpoints/" not in key and not key.endswith(("/kept.json", "/result"))], left
    assert len([key for key in left if key.endswith("/outputs/train-1/node-0/result")]) == 1
    refused = job.stoker("run", job.spec_path, "--id", "one", env=job.elsewhere("third"))
    assert refused.code == 3 and "--with-checkpoints" in refused.cure, refused
    gone, = job.ok("--json", "rm", "one", "--with-checkpoints", env=job.elsewhere("third")).lines
    assert gone["files"] == len(left) and gone["kept"] == []
    assert not [key for key in job.aws.objects(BUCKET) if "/runs/one/" in key]


def test_several_nodes_meet_in_the_workspace(job):
    job.write(resources={"nodes": 2})
    job.run("--id", "one")
    rows = events_are_whole(job)
    assert submitted(rows) == [("precompile", 1), ("train", 1)]
    assert {(row["phase"], row["rank"]) for row in job.effects("start")} == \
        {("precompile", 0), ("precompile", 1), ("train", 0), ("train", 1)}
    assert "step: 25" in job.ok("logs", "one", "--node", "0", env=job.elsewhere()).out


def test_a_service_that_is_away_for_a_while_is_waited_for(job):
    """State here, everything else there: the lease does not depend on it."""
    here = {"STOKER_STATE": str(job.root / "state-here")}
    job.hold("train", 8)
    driver = job.start("run", job.spec_path, "--id", "one", env=here)
    job.wait_for_effect("holds")
    job.aws.fault("unavailable", service="s3", count=0)
    job.gate.touch()
    time.sleep(12)
    assert driver.poll() is None
    job.aws.clear_faults()
    result = cli.finish(driver)
    assert result.code == 0, str(result)
    rows = job.ok("events", "one", env=here).lines
    assert submitted(rows) == [("precompile", 1), ("train", 1)]
    assert len(job.effects("start")) == 2


def test_a_run_that_ended_well_exits_well_although_its_journal_cannot_be_read_then(job):
    job.hold("train", 8)
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for_effect("holds")
    # After its last event it writes what makes reading cheap: time to come between.
    job.aws.fault("delay", operation="PutObject", key="/runs/one/chunks/", count=0, seconds=20)
    job.gate.touch()
    job.wait_for(lambda: any(b'"run.ended"' in text for key, text in job.aws.objects(BUCKET).items()
                             if "/one/events/" in key))
    job.aws.fault("unavailable", operation="GetObject", key="/runs/one/", count=0)
    result = cli.finish(driver)
    assert result.code == 0 and "no summary can be made" in result.err, str(result)


def test_a_detached_driver_has_the_same_keys_and_state(job):
    result = job.ok("run", job.spec_path, "--id", "one", "--detach")
    assert result.out.strip() == "one"
    assert job.stoker("attach", "one", env=job.elsewhere()).code == 0
    assert job.ok("--json", "status", "one").lines[0]["state"] == "succeeded"


def test_a_state_in_a_bucket_that_is_not_there_is_refused(job):
    result = job.stoker("--state", "s3://no-such-bucket/x", "list")
    assert result.code == 4 and "no-such-bucket" in result.err and result.cure
    result = job.stoker("--state", "s3://", "list")
    assert result.code in (2, 4) and result.cure


def pieces(job, run="one"):
    """Where the pieces of the training's log begin, and how long they are."""
    folder = f"{job.prefix}/stoker/runs/{run}/train-1/node-0/log/"
    return sorted((int(key.removeprefix(folder)), len(body)) for key, body in job.aws.objects(BUCKET).items()
                  if key.startswith(folder))


def test_a_log_goes_on_where_the_courier_that_died_has_brought_it(job):
    """Who reads it from far away stands in one of its pieces."""
    driver = says_much_and_holds(job)
    before = job.wait_for(lambda: pieces(job))
    for pid in job.agents(helpers=True):
        os.kill(pid, signal.SIGKILL)
    time.sleep(3)  # others are started
    job.gate.touch()
    assert cli.finish(driver).code == 0
    after = pieces(job)
    assert [start for start, _ in before] == [start for start, _ in after][:len(before)]
    assert all(start + size == later for (start, size), (later, _) in zip(after, after[1:])), after
    assert cli.finish(far_away(job, job.home, "logs", "one")).out.count("\nstep: 25 ") == 1


def test_a_claim_that_cannot_be_read_for_a_while_is_waited_for(job):
    job.aws.fault("unavailable", operation="GetObject", key="/runs/one/claim/", count=0)
    driver = job.start("run", job.spec_path, "--id", "one")
    job.wait_for(lambda: driver.poll() is not None or job.aws.struck() >= 7)  # more than one request is tried
    assert driver.poll() is None
    job.aws.clear_faults()
    result = cli.finish(driver)
    assert result.code == 0, str(result)
    assert submitted(job.ok("events", "one").lines) == [("precompile", 1), ("train", 1)]


def test_who_waits_for_a_claim_asks_ever_more_rarely(job):
    job.write(resources={"nodes": 2})
    job.aws.fault("delay", operation="PutObject", key="/runs/one/claim/", count=0, until=str(job.gate))
    driver = job.start("run", job.spec_path, "--id", "one")

    def asked():
        return [row for row in job.aws.ledger(operation="GetObject") if "/runs/one/claim/" in row["name"]]

    job.wait_for(asked)
    time.sleep(8)
    job.wait_for(lambda: len(asked()) >= 3)
    assert len(asked()) <= 15, len(asked())
    job.gate.touch()
    assert cli.finish(driver).code == 0


def test_a_sweep_with_everything_on_s3_goes_on_from_another_home(job):
    job.write(sweep={"list": [{}, {"tags.try": "2"}], "parallel": 2})
    done = job.stoker("--json", "sweep", job.spec_path, "--id", "s")
    assert done.code == 0, str(done)
    assert [row["run"] for row in done.lines] == ["s-1-1", "s-2-1"]
    phases = [phase for run in ("s-1-1", "s-2-1") for phase, _ in submitted(events_are_whole(job, run))]
    assert sorted(phases) == ["precompile", "train", "train"], "equal graphs compile once"
    other, since = job.elsewhere(), len(job.effects("start"))
    assert job.ok("--json", "compare", "s", env=other).lines == done.lines
    again = job.stoker("--json", "sweep", job.spec_path, "--id", "s", env=other)
    assert again.code == 0 and again.lines == done.lines and len(job.effects("start")) == since
