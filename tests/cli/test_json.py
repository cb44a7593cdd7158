"""The shapes that programs rely on, for every command: each line of stdout is
one JSON object of that shape, and nothing else is on stdout."""

import re

import jsonschema
import pytest

TEXT, INT, REAL, BOOL = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}


def shape(required=(), **fields):
    return {"type": "object", "properties": fields, "required": list(required)}


def words(*choices):
    return {"enum": list(choices)}


def items(of):
    return {"type": "array", "items": of}


AT = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"}
PHASE = words("precompile", "verify", "train", "evaluate", "infer")
PROBLEM = shape(["file", "message"], file=TEXT, line=INT, column=INT, field=TEXT, message=TEXT, hint=TEXT)
CHANGED = shape(["field"], field=TEXT)
PLAN = shape(
    ["spec", "engine", "cache", "phases", "requests"], spec={"type": ["string", "object"]}, engine=TEXT,
    cache=shape(["verdict"], verdict=words("warm", "cold", "none", "unknown"), graph_key=TEXT, graphs=INT,
                changed=items(CHANGED)),
    phases={"type": "array", "minItems": 1}, cost={"type": "object"}, requests={"type": "array"})
ATTEMPT = shape(
    ["phase", "attempt", "job", "state"], phase=PHASE, attempt=INT,
    job={"type": "string", "pattern": r"^stk-[a-zA-Z0-9._-]+-(precompile|train)-\d+$"},
    state=words("intended", "queued", "starting", "running", "stopping", "ended", "lost"),
    nodes={"type": ["integer", "array"]}, started=AT, ended=AT, exit=INT, **{"class": TEXT}, evidence=TEXT,
    action=words("retry", "wait", "exclude", "fall_back", "stop"), resumed_from=TEXT, first_step=INT,
    continuity=words("verified", "unverified", "failed"))
THROUGHPUT = shape(["mean", "n"], mean=REAL, n=INT,
                   step_seconds=shape(["p50", "p90", "p95", "n"], p50=REAL, p90=REAL, p95=REAL, n=INT))
BINS = ("queue", "provision", "pull", "setup", "health", "precompile", "verify", "restore", "steps",
        "jit", "checkpoint", "replayed", "hang", "backoff", "evaluate", "infer", "idle")
STATUS = shape(
    ["run", "name", "engine", "state", "attempts"], run=TEXT, name=TEXT, engine=TEXT,
    state=words("running", "waiting", "succeeded", "failed", "refused", "stopped"), phase=PHASE,
    waiting_for=TEXT, unseen_since=AT,
    driver={"anyOf": [{"type": "null"}, shape(["host", "pid", "epoch"], host=TEXT, pid=INT, epoch=INT)]},
    cache=shape(["verdict"], verdict=words("warm", "cold", "none"), graph_key=TEXT, graphs=INT,
                done=INT, failed=INT, locked=INT),
    jit=shape(["graphs"], graphs=INT, seconds=REAL, cost=REAL),
    progress=shape([], step=INT, of=INT, rate=REAL, eta=REAL),
    metrics={"type": "object"}, attempts=items(ATTEMPT),
    checkpoint=shape([], step=INT, url=TEXT),
    ledger=shape(["total", "unknown", *BINS], total=REAL, unknown=REAL, **dict.fromkeys(BINS, REAL)),
    throughput=THROUGHPUT, at_risk=items(shape(["limit", "reason"], limit=TEXT, reason=TEXT)),
    untold=items(shape(["rule", "reason"], rule=INT, reason=TEXT)),
    cost=shape(["accrued", "bins", "per_hour"], estimated=REAL, accrued=REAL, billable=REAL,
               kept=REAL, bins=shape([], **dict.fromkeys(BINS, REAL)),
               per_hour=REAL), exit_code=INT)
EVENT = shape(["v", "run", "seq", "at", "event"], v={"const": 1}, run=TEXT, seq=INT, at=AT,
              event={"type": "string", "pattern": r"^[a-z]+\.[a-z_]+$"})


def check(lines, schema):
    assert lines
    for line in lines:
        jsonschema.validate(line, schema)
    return lines


@pytest.fixture
def ended(project):
    project.run("--id", "done")
    return project


def test_run_prints_the_events_of_the_journal_and_nothing_else(project):
    result = project.stoker("--json", "run", project.spec_path, "--id", "done")
    assert result.code == 0, str(result)
    lines = check(result.lines, EVENT)
    assert lines == project.events("done")
    assert [line["seq"] for line in lines] == list(range(lines[0]["seq"], lines[0]["seq"] + len(lines)))
    kinds = [line["event"] for line in lines]
    assert kinds[0] == "run.created" and kinds[-1] == "run.ended"
    for kind in ("attempt.intended", "attempt.submitted", "attempt.claimed", "attempt.ended",
                 "cache.verified"):
        assert kind in kinds
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)


def test_intent_comes_before_the_submission_and_that_before_the_end(ended):
    kinds = [(row["event"], row.get("phase")) for row in ended.events("done")
             if row["event"].startswith("attempt.")]
    for phase in ("precompile", "train"):
        order = [kind for kind, of in kinds if of == phase]
        assert order.index("attempt.intended") < order.index("attempt.submitted")
        assert order.index("attempt.submitted") < order.index("attempt.ended")


def test_events(ended):
    plain = ended.ok("events", "done")
    assert check(plain.lines, EVENT) == ended.ok("--json", "events", "done").lines


def test_status(ended):
    status, = check(ended.ok("--json", "status", "done").lines, STATUS)
    assert status["run"] == "done" and status["name"] == "fake"
    assert [attempt["phase"] for attempt in status["attempts"]] == ["precompile", "train"]
    assert status["driver"] is None
    assert ended.ok("--json", "status").lines == [status]


def test_list(ended):
    ended.run("--id", "second", "--set", "hyperparameters.lr=0.5")
    schema = {**STATUS, "required": [name for name in STATUS["required"] if name != "attempts"]}
    lines = check(ended.ok("--json", "list").lines, schema)
    assert {line["run"] for line in lines} == {"done", "second"}
    assert not any("attempts" in line for line in lines)


def test_list_and_status_without_any_run(project):
    assert project.ok("--json", "list").out == ""
    assert project.ok("list").code == 0


def test_plan(ended):
    plan, = check(ended.ok("--json", "plan", ended.spec_path).lines, PLAN)
    assert plan["cache"]["verdict"] == "warm"
    assert re.fullmatch(r"[0-9a-f]{64}", plan["cache"]["graph_key"])
    assert plan["engine"] == "local"
    cold, = check(ended.ok("--json", "plan", ended.spec_path, "--set",
                           "hyperparameters.batch_size=64").lines, PLAN)
    assert cold["cache"]["verdict"] == "cold"
    assert cold["cache"]["graph_key"] != plan["cache"]["graph_key"]


def test_plan_requests_shows_both_phases(project):
    plan, = check(project.ok("--json", "plan", "--requests", project.spec_path).lines, PLAN)
    assert len(plan["requests"]) == 2
    assert not project.state.exists() or project.ok("--json", "list").out == ""


def test_validate(project):
    project.write(enigne="local")
    result = project.stoker("--json", "validate", project.spec_path)
    assert result.code == 3
    problem, = check(result.lines, PROBLEM)
    assert problem["hint"]


@pytest.mark.parametrize("argv", [
    ("cache", "ls", "CACHE"), ("cache", "verify", "CACHE"), ("cache", "verify", "SPEC"),
    ("cache", "why", "SPEC"), ("cache", "gc", "CACHE"), ("cache", "pull", "CACHE", "COPY"),
    ("cache", "push", "CACHE", "COPY", "--dry-run"), ("init", "--list"), ("version",), ("schema",), ("logs", "done"),
    ("logs", "done", "--phase", "precompile"), ("help",), ("plan", "--requests", "SPEC"),
    ("run", "--dry-run", "SPEC"), ("validate", "SPEC"), ("list",), ("status", "done"),
], ids=" ".join)
def test_every_command_prints_only_objects(ended, argv):
    argv = [{"CACHE": str(ended.cache), "COPY": str(ended.root / "copy"), "SPEC": str(ended.spec_path)}.get(word, word) for word in argv]
    result = ended.ok("--json", *argv)
    assert result.lines is not None
    assert not result.err or "error" not in result.err


def test_a_wrong_command_line_keeps_stdout_clean_for_programs(project):
    result = project.stoker("--json", "rnu")
    assert result.code == 2
    assert all(isinstance(line, dict) for line in result.lines)


def test_a_failed_run_says_so_in_its_last_event(project):
    project.extra("def start(args):\n    raise SystemExit('no data')\n")
    result = project.stoker("--json", "run", project.spec_path)
    assert result.code == 1
    last = check(result.lines, EVENT)[-1]
    assert (last["event"], last["state"], last["exit_code"]) == ("run.ended", "failed", 1)


def test_cache_ls_names_every_graph(ended):
    lines = ended.ok("--json", "cache", "ls", ended.cache).lines
    assert len(lines) == 3
    assert all(line["state"] == "done" and line["size_bytes"] > 0 for line in lines)


def test_quiet_says_nothing_when_all_is_well(project):
    result = project.stoker("--quiet", "run", project.spec_path)
    assert (result.code, result.err) == (0, "")


def test_throughput_leaves_the_first_ten_steps_out(project):
    project.extra("import time\ndef step(number, args):\n    time.sleep(1 if number <= 5 else 0.2)\n")
    project.write(compile=None)
    project.run("--set", "hyperparameters.max_steps=40")
    status = project.status()
    for found in (status["throughput"], status["attempts"][-1]["throughput"]):
        assert found["n"] == 25  # 15 to 40: the steps are printed by fives
        # 5 a second, were it not for the machine, which may stand still: right by its order.
        assert 0.5 < found["mean"] < 5.5 and "step_seconds" not in found
