"""Servers that ignore the conditions of writes, or garble them: stoker tries them before it
trusts them, names the server and does not start; a lease that cannot be won has an end."""

import json
import re
import signal
import time

import pytest
import stoker as cli
from bucket_job import BUCKET

PROBE = "stoker-probe-"
LEASE = ("--lease", "1s")
NONE, MATCH = "If-None-Match", "If-Match"
# What a server does with which condition, and what it is then said to have answered.
SERVERS = {
    "ignores both": ({"kind": "unconditional"}, NONE, "200"),
    "ignores If-None-Match": ({"kind": "unconditional", "header": "if-none-match"}, NONE, "200"),
    "ignores If-Match": ({"kind": "unconditional", "header": "if-match"}, MATCH, "200"),
    "writes and says 412": ({"kind": "unconditional", "header": "if-match", "says": 412}, MATCH, "412"),
    "refuses a right If-Match": ({"kind": "precondition", "header": "if-match"}, MATCH, "412"),
    "refuses a right If-None-Match": ({"kind": "precondition", "header": "if-none-match"}, NONE, "412"),
    "has no If-None-Match": ({"kind": "error", "header": "if-none-match", "code": "NotImplemented", "status": 501}, NONE, "501"),
    "has no If-Match": ({"kind": "error", "header": "if-match", "code": "NotImplemented", "status": 501}, MATCH, "501"),
    "calls If-Match malformed": ({"kind": "error", "header": "if-match", "code": "InvalidArgument", "status": 400}, MATCH, "400"),
}


def let_server(job, what, **where):
    fault, header, answer = SERVERS[what]
    job.aws.fault(fault["kind"], operation="PutObject", count=0, **where,
                  **{name: value for name, value in fault.items() if name != "kind"})
    return header, answer


def is_named(job, result, bucket, header, answer):
    """The server, the bucket, the condition and the answer, with a cure."""
    assert result.code == 4, str(result)
    for word in (job.aws.url, f"'{bucket}'", f"{header}", answer):
        assert word in result.err, f"'{word}' is missing:\n{result}"
    assert header == NONE or NONE not in result.err.split("hint:")[0].split("cure:")[0], str(result)
    assert result.cure


def probes(job, bucket=BUCKET):
    """Attempts with conditions, by the ledger; and what is left of them."""
    tried = [entry for entry in job.aws.ledger(operation="PutObject")
             if entry["name"].startswith(f"{bucket}/") and PROBE in entry["name"] and entry["conditions"]]
    return tried, [key for key in job.aws.objects(bucket) if PROBE in key]


@pytest.fixture
def here(job):
    """Where the state is a folder of this machine."""
    return {"STOKER_STATE": str(job.root / "state-here")}


@pytest.mark.parametrize("what", SERVERS)
def test_a_server_whose_conditions_cannot_be_trusted_with_the_state_is_named(job, what):
    header, answer = let_server(job, what)
    result = job.run("--id", "one", code=None)
    is_named(job, result, BUCKET, header, answer)
    job.aws.clear_faults()
    assert probes(job)[1] == []
    assert not [key for key in job.aws.objects(BUCKET) if "/runs/one/" in key], "neither a lease nor an event"
    assert job.effects() == []
    job.run("--id", "one")


@pytest.mark.parametrize("what", ["ignores both", "refuses a right If-Match"])
@pytest.mark.parametrize("place", ["stoker", "cache", "ckpt"])
def test_every_bucket_that_rests_on_conditions_is_tried(job, here, place, what):
    job.aws.make_bucket("elsewhere")
    url = f"s3://elsewhere/{job.prefix}"
    job.write(**{"stoker": {"workspace": url}, "cache": {"compile": {**job.spec["compile"], "cache_url": url}},
                 "ckpt": {"checkpoint": {"url": url}}}[place])
    header, answer = let_server(job, what, key="^elsewhere/")
    result = job.run("--id", "one", code=None, env=here)
    is_named(job, result, "elsewhere", header, answer)
    job.aws.clear_faults()
    assert probes(job, "elsewhere")[1] == []
    assert job.stoker("events", "one", env=here).code == 9
    assert job.effects() == []


def test_each_bucket_is_tried_once_and_nothing_is_left(job):
    job.aws.make_bucket("elsewhere")
    job.write(checkpoint={"url": f"s3://elsewhere/{job.prefix}"})
    job.run("--id", "one")
    for bucket in (BUCKET, "elsewhere"):
        tried, left = probes(job, bucket)
        assert left == []
        by_header = {name: [entry["status"] for entry in tried if name in entry["conditions"]]
                     for name in ("if-none-match", "if-match")}
        assert by_header == {"if-none-match": [200, 412], "if-match": [200, 412]}
    # Who comes later comes with an endpoint of his own, perhaps, and tries it again.
    since = job.aws.mark()
    assert job.ok("validate", job.spec_path) and job.ok("plan", job.spec_path) and job.ok("status", "one")
    assert not [entry for entry in job.aws.ledger(since) if entry["effect"]], "looking changes nothing"


@pytest.mark.parametrize("kind", ["conflict", "unavailable", "throttle", "lost"])
def test_what_passes_is_no_verdict(job, kind):
    for nth in (1, 4, 8):
        job.aws.fault(kind, operation="PutObject", key=PROBE, nth=nth, count=1)
    job.run("--id", "one")
    assert job.aws.struck() == 3
    assert probes(job)[1] == []


def test_a_service_that_is_away_gets_no_verdict(job):
    job.aws.fault("unavailable", operation="PutObject", key=PROBE, count=0)
    assert job.run("--id", "one", code=75).cure
    job.aws.clear_faults()
    assert probes(job)[1] == []


def test_what_a_probe_that_was_killed_left_is_cleared_away_later(job):
    client = job.aws.client()
    client.put_object(Bucket=BUCKET, Key=f"{job.prefix}/stoker/{PROBE}0123456789abcdef", Body=b"old")
    client.put_object(Bucket=BUCKET, Key=f"{job.prefix}/stoker/{PROBE}fedcba9876543210", Body=b"another's, now")
    job.aws.fault("replace", operation="ListObjectsV2", count=0, pattern=r"(0123456789abcdef</Key><LastModified>)[^<]*",
                  text=r"\g<1>2026-01-01T00:00:00.000Z")
    job.run("--id", "one")
    assert [key.rpartition("-")[2] for key in probes(job)[1]] == ["fedcba9876543210"]


def held(job, **options):
    """A run whose driver was killed while its training waits."""
    job.hold("train", 8)
    driver = job.start("run", job.spec_path, "--id", "one", *LEASE, **options)
    job.wait_for_effect("holds")
    driver.send_signal(signal.SIGKILL)
    driver.communicate()


@pytest.mark.parametrize("what", ["ignores both", "refuses a right If-Match"])
@pytest.mark.parametrize("far_state", [True, False])
def test_whoever_takes_a_run_over_tries_them_too(job, here, what, far_state):
    """Another machine may come by another endpoint."""
    env = {} if far_state else here
    held(job, env=env)
    before = job.ok("events", "one", env=env).lines
    header, answer = let_server(job, what)
    result = job.stoker("resume", "one", *LEASE, env={**job.elsewhere(), **env})
    is_named(job, result, BUCKET, header, answer)
    job.aws.clear_faults()
    rows = [row for row in job.ok("events", "one", env=env).lines[len(before):]]
    assert {row["event"] for row in rows} <= {"driver.took_over", "driver.left"}, rows
    assert probes(job)[1] == []
    job.gate.touch()
    job.ok("resume", "one", *LEASE, env=env)
    assert len(job.effects("start")) == 2


def test_a_takeover_waits_for_a_service_that_is_away(job, here):
    held(job, env=here)
    job.aws.fault("unavailable", service="s3", count=0)
    driver = job.start("resume", "one", env=here)
    job.wait_for(lambda: job.aws.struck() >= 7 or driver.poll() is not None)
    assert driver.poll() is None
    job.aws.clear_faults()
    job.gate.touch()
    result = cli.finish(driver)
    assert result.code == 0, str(result)
    assert len(job.effects("start")) == 2


# --- leases ---

def lease_key(job):
    return f"{job.prefix}/state/runs/one/lease.json"


def test_a_lease_that_can_be_read_but_not_won_has_an_end(job):
    """Of this object alone the server says 412, however right the condition is."""
    job.write(limits={"unreachable": "8s"})
    held(job)
    job.aws.fault("precondition", operation="PutObject", header="if-match", key="/lease.json$", count=0)
    since, began = job.aws.mark(), time.monotonic()
    result = job.stoker("resume", "one", *LEASE)
    assert result.code == 75, str(result)
    took = time.monotonic() - began
    assert took >= 8
    for word in ("lease", "neither read nor acquired", "412", job.url["state"], "limits.unreachable"):
        assert word in result.err, f"'{word}' is missing:\n{result}"
    assert result.cure
    # And it was no storm of requests.
    assert len([entry for entry in job.aws.ledger(since) if entry["name"].endswith("/lease.json")]) < 20 + 5 * took
    job.aws.clear_faults()
    job.gate.touch()
    job.ok("resume", "one", *LEASE)
    assert len(job.effects("start")) == 2


def test_a_lease_that_was_contradictory_for_a_while_is_won_then(job):
    held(job)
    job.aws.fault("precondition", operation="PutObject", header="if-match", key="/lease.json$", count=3)
    job.gate.touch()
    job.ok("resume", "one", *LEASE)


GARBAGE = {"empty": b"", "no JSON": b"\x00\xff\x80not a lease", "cut": b'{"v":1,"run":"one","held":true,"ho', "a list": b"[1]",
           "nobody's": b"{}"}


@pytest.mark.parametrize("what", GARBAGE)
def test_a_lease_that_is_garbage_is_an_error_with_a_cure(job, what):
    held(job)
    job.aws.client().put_object(Bucket=BUCKET, Key=lease_key(job), Body=GARBAGE[what])
    result = job.stoker("resume", "one", *LEASE)
    assert result.code == 4, str(result)
    assert "lease.json" in result.err and "damaged" in result.err and job.url["state"] in result.err
    assert "lease.json" in result.cure
    assert job.aws.objects(BUCKET)[lease_key(job)] == GARBAGE[what]
    # What the cure says helps.
    job.aws.client().delete_object(Bucket=BUCKET, Key=lease_key(job))
    job.gate.touch()
    job.ok("resume", "one", *LEASE)
    assert len(job.effects("start")) == 2


def test_a_driver_whose_lease_is_overwritten_with_garbage_writes_it_anew(job):
    job.hold("train", 8)
    driver = job.start("run", job.spec_path, "--id", "one", "--lease", "10s")
    job.wait_for_effect("holds")
    job.aws.client().put_object(Bucket=BUCKET, Key=lease_key(job), Body=b"garbage")
    job.wait_for(lambda: b"nonce" in job.aws.objects(BUCKET)[lease_key(job)])
    job.gate.touch()
    result = cli.finish(driver)
    assert result.code == 0, str(result)


def test_a_finished_run_whose_lease_is_garbage_can_be_removed(job):
    job.run("--id", "one")
    job.aws.client().put_object(Bucket=BUCKET, Key=lease_key(job), Body=b"garbage")
    job.ok("rm", "one", *LEASE)
    assert not [key for key in job.aws.objects(BUCKET) if "/runs/one/" in key]


def test_what_is_said_of_a_server_has_no_controls_in_it(job):
    job.aws.fault("error", operation="PutObject", header="if-match", count=0, code="Nope", status=400,
                  message="\x1b[31mred\x07")
    result = job.run("--id", "one", code=4)
    assert not re.search(cli.CONTROL, result.err), repr(result.err)
    assert json.dumps(result.err)
