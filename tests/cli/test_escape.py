"""Nothing that a job prints can drive a terminal: no control byte of a log, a
name or a spec is passed on."""

import json
import re

import pytest
import stoker as cli

EVIL = ("\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "\x1bP+q\x1b\\", "\u009b31m", "\u202eevil\u202c",
        "\x08\x08\x08", "\x7f", "a\rb", "\x00", "\u2066x\u2069", "\x0e\x0f", "\x1b]8;;http://x\x1b\\y")

SCRIPT = """
import os
import sys

EVIL = {evil!r}


def step(number, args):
    if number == 1:
        for text in EVIL:
            os.write(1, ("out " + text + " end\\n").encode())
            os.write(2, ("err " + text + " end\\n").encode())
        os.write(1, b"raw \\xff\\xfe\\x9b31m\\xc3 end\\n")


def end(args):
    if {fail} and os.environ["STOKER_PHASE"] == "train":
        raise ValueError("bad \\x1b[31m value \\u202e here \\x9b")
"""


def no_control(*texts):
    for text in texts:
        found = cli.CONTROL.search(text)
        assert not found, f"{found[0]!r} in {text[max(0, found.start() - 80):found.end() + 40]!r}"
        assert not re.search("[\udc80-\udcff]", text), "bytes that are not UTF-8 were passed on"


@pytest.mark.parametrize("fail", [False, True])
def test_no_control_byte_of_a_log_reaches_the_terminal(project, fail):
    project.extra(SCRIPT.format(evil=EVIL, fail=fail))
    result = project.run("--id", "evil", code=1 if fail else 0)
    no_control(result.out, result.err)
    for argv in (("status", "evil"), ("logs", "evil"), ("logs", "evil", "--phase", "precompile"),
                 ("list",), ("events", "evil"), ("--json", "status", "evil"),
                 ("--color", "always", "--json", "events", "evil")):
        result = project.ok(*argv)
        no_control(result.out, result.err)
    logs = project.logs()
    assert "out " in logs and "red end" in logs, "the text around them stays"


def test_logs_as_json_carry_no_raw_control_either(project):
    project.extra(SCRIPT.format(evil=EVIL, fail=False))
    project.run("--id", "evil")
    result = project.ok("--json", "logs", "evil")
    no_control(result.out)
    assert any("red end" in json.dumps(line) for line in result.lines)


def test_spec_text_is_escaped(project):
    project.write(tags={"team": "a\u202eb"}, env={"X": "\x1b[31m"})
    for argv in (("plan", project.spec_path), ("validate", project.spec_path),
                 ("plan", "--requests", project.spec_path)):
        result = project.stoker(*argv)
        no_control(result.out, result.err)


def test_a_file_name_is_escaped(tmp_path):
    odd = tmp_path / "a\x1b[31m\nb.yaml"
    odd.write_text("nothing\n")
    result = cli.stoker("validate", odd)
    assert result.code == 3
    no_control(result.out, result.err)


def test_a_line_of_a_megabyte_does_no_harm(project):
    project.extra("def start(args):\n    print('x' * 3_000_000, flush=True)\n")
    project.run("--id", "long")
    assert project.status("long")["state"] == "succeeded"
    assert "step: 20" in project.logs()


FORGED = "a\nerror: forged"


def test_a_file_name_of_the_source_forges_no_line(project):
    project.run()
    (project.source / FORGED).write_text("x")
    assert project.plan()["cache"]["verdict"] == "cold"
    for argv in (("plan", project.spec_path), ("cache", "why", project.spec_path), ("status",)):
        result = project.ok(*argv)
        assert not [line for line in result.text.splitlines() if line.startswith("error: forged")], str(result)
    assert "a\\x0aerror: forged" in project.ok("cache", "why", project.spec_path).out


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_the_name_of_a_spec_forges_no_line(project, command):
    odd = project.source / f"{FORGED}.yaml"
    odd.write_text("nothing\n")
    for path in (odd, project.source / f"{FORGED}.absent"):
        result = project.stoker(command, path)
        assert result.code in (3, 4), str(result)
        assert not [line for line in result.text.splitlines() if line.startswith("error: forged")], str(result)


def test_a_name_in_the_source_forges_no_line_of_a_refusal(project):
    (project.source / FORGED).symlink_to("/etc/passwd")
    result = project.stoker("plan", project.spec_path)
    assert result.code != 0
    assert not [line for line in result.text.splitlines() if line.startswith("error: forged")], str(result)


def test_a_line_of_which_the_end_is_not_shown_says_so(project):
    project.extra("def start(args):\n    print('y' * 50_000, flush=True)\n")
    project.run("--id", "long")
    (cut,) = [line for line in project.logs().splitlines() if line.startswith("yyy")]
    kept = cut.index(" ")
    assert cut == f"{'y' * kept} … ({50_000 - kept} more bytes)"
    (row,) = [row for row in project.ok("--json", "logs", "long").lines if row["line"].startswith("yyy")]
    assert len(row["line"]) + row["cut_bytes"] == 50_000
