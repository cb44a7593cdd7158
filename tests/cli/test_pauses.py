"""A phase at a time: --until pauses a run, the same command with a later phase goes on, --outcome says
how it went, and nobody drives a paused run who was not asked to."""

import json


def until(project, tmp_path, phase, code=0):
    """The events that the step added, and what it wrote."""
    known = len(project.events("one")) if (tmp_path / "begun").exists() else 0
    words = ["--until", phase] if phase else []
    project.run("--id", "one", *words, "--outcome", tmp_path / "outcome.json", code=code)
    (tmp_path / "begun").touch()
    return project.events("one")[known:], json.loads((tmp_path / "outcome.json").read_text())


def kinds(events):
    return [event["event"] for event in events]


def test_each_phase_is_a_step_of_its_own(project, tmp_path):
    events, outcome = until(project, tmp_path, "precompile")
    assert kinds(events)[-1] == "run.paused" and events[-1]["phase"] == "precompile"
    assert "cache.verified" not in kinds(events) and "attempt.ended" in kinds(events)
    assert outcome == {"exit_code": 0, "name": "fake", "phase": "precompile", "run": "one", "verdict": "paused"}
    status = project.status("one")
    assert status["state"] == "paused" and status["driver"] is None and "exit_code" not in status

    assert until(project, tmp_path, "precompile")[0] == []  # it is past that, and nothing is done twice
    events, _ = until(project, tmp_path, "verify")
    assert "cache.verified" in kinds(events) and kinds(events)[-1] == "run.paused"
    assert project.attempts("one") == [("precompile", 1)]
    assert until(project, tmp_path, "precompile")[0] == []

    # The training is the last phase of this run: its end is the run's.
    events, outcome = until(project, tmp_path, "train")
    assert kinds(events)[-1] == "run.ended" and outcome["verdict"] == "succeeded"
    assert project.attempts("one") == [("precompile", 1), ("train", 1)]
    assert until(project, tmp_path, "precompile")[0] == []
    status = project.status("one")
    assert status["ledger"]["idle"] > 0


def test_a_paused_run_is_left_alone_until_it_is_asked_for(project, tmp_path):
    until(project, tmp_path, "verify")
    project.ok("resume", "--all")
    assert project.status("one")["state"] == "paused"
    assert kinds(project.events("one"))[-1] == "run.paused"
    shown = project.ok("resume", "one")
    assert "paused" not in shown.text
    assert project.status("one")["state"] == "succeeded"


def test_a_paused_run_can_be_stopped(project, tmp_path):
    until(project, tmp_path, "verify")
    project.ok("stop", "one", "--reason", "not this week")
    status = project.status("one")
    assert status["state"] == "stopped" and "not this week" in status["reason"]
    assert project.attempts("one") == [("precompile", 1)]


def test_an_outcome_is_written_however_it_went(project, tmp_path):
    project.extra('def step(number, args):\n    raise SystemExit("no")\n')
    project.write(compile=None, retry={"attempts": 1})
    _, outcome = until(project, tmp_path, "train", code=1)
    assert outcome == {"exit_code": 1, "name": "fake", "phase": "train", "run": "one", "verdict": "failed"}
    project.write(nonsense=1)
    project.run("--id", "two", "--outcome", tmp_path / "bad.json", code=3)
    assert json.loads((tmp_path / "bad.json").read_text()) == {"exit_code": 3}
    project.write(nonsense=None)
    refused = project.run("--id", "one", "--outcome", tmp_path / "no" / "such", code=4)
    assert "cannot write the outcome" in refused.text


def test_a_run_in_the_background_pauses_too(project, tmp_path):
    project.run("--id", "one", "--detach", "--until", "verify")
    while project.status("one")["state"] in ("running", "waiting"):
        pass
    assert project.status("one")["state"] == "paused"
    assert project.attempts("one") == [("precompile", 1)]
