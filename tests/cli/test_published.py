"""Texts for programs: the published schemas, the pages about them, errors as a last line of JSON,
and the annotations of GitHub Actions."""

import contextlib
import functools
import json
import re
import sqlite3

import jsonschema
import published
import pytest
import stoker as cli

NAMES = sorted({"spec", "events"} | {name for names in re.findall(
    r'^LINE\("\w+", "([^"]*)"', (cli.ROOT / "jobs/report/printed/lines.def").read_text(), re.M) for name in names.split()})


@functools.cache
def printed(*argv) -> str:
    done = cli.stoker(*argv)
    assert done.code == 0, str(done)
    return done.out


@functools.cache
def table() -> list:
    """What `help json` says of each key."""
    return [json.loads(line) for line in printed("--json", "help", "json").splitlines()]


def last_error(result: cli.Result) -> dict:
    line = result.lines[-1]
    assert list(line) == ["error"], str(result)
    assert line["error"]["code"] == result.code
    assert "error: " in result.err
    return line["error"]


@pytest.mark.parametrize("of", NAMES)
def test_each_schema_is_one_and_is_closed(of):
    schema = json.loads(printed("schema", "--of", of))
    jsonschema.Draft202012Validator.check_schema(schema)
    if of == "spec":
        assert schema == json.loads(printed("schema"))
        return
    for name, one in schema["$defs"].items():
        assert one["additionalProperties"] is False or of == "version", name
        assert one["description"], name
        for key, value in one["properties"].items():
            assert "$ref" not in value or value["$ref"].removeprefix("#/$defs/") in schema["$defs"], (name, key)


def test_every_row_of_the_table_is_in_a_schema_and_none_is_left_over():
    defs = {}
    for of in set(NAMES) - {"spec"}:
        defs |= json.loads(printed("schema", "--of", of)).get("$defs", {})
    rows = [row for row in table() if row["key"] != "*"]
    # A part that is only keys of other parts has no schema of its own.
    within = {name for path in (cli.ROOT / "jobs/report/printed").glob("*.def")
              for name in re.findall(r'^KEYS_OF\("(\w+)"\)', path.read_text(), re.M)} - set(defs)
    for row in rows:
        if row["of"] in within:
            assert any(row["key"] in one["properties"] for one in defs.values()), row
            continue
        one = defs[row["of"] if row["of"] != "event" else "run.created"]
        assert row["key"] in one["properties"] and (row["key"] not in one["required"]) == row["optional"], row
    told = {row["of"] for row in rows}
    # Keys of the others are those of another part, or any.
    assert {name for name in defs if name not in told} <= {"versions", "cache_why", "difference", "stats_node"}, told


def test_an_unknown_schema_is_a_wrong_command_line():
    done = cli.stoker("--json", "schema", "--of", "stauts")
    error = last_error(done)
    assert error["name"] == "usage" and sorted(error["hint"].split()[-1].split("|")) == NAMES, str(done)


def test_the_units_follow_one_rule():
    """Instants are RFC 3339, durations seconds as numbers, and sizes in bytes say so in their name."""
    assert len(table()) > 500
    for row in table():
        unit, where = row.get("unit"), (row["of"], row["key"])
        assert row["meaning"] or row["type"] == "one of damaged", where
        assert (row["type"] == "instant") == (unit == "UTC"), where
        assert (unit == "bytes") == row["key"].endswith("_bytes"), where
        assert unit != "s" or row["type"] in ("number", "by name: number"), where
        assert not row["key"].endswith("_ms"), where


def test_the_page_in_docs_is_that_of_the_tables():
    made = printed("manual", "json.md", "-")
    assert (cli.ROOT / "docs/json.md").read_text() == made, "stoker manual json.md - > docs/json.md"


def test_the_pages_name_every_line_part_and_event():
    page = printed("help", "json")
    names = {row["of"] for row in table()}
    assert len(names) > 120
    assert [name for name in names if not re.search(rf"(?m)^ *{re.escape(name)}$|^  {re.escape(name)} ", page)] == []
    assert ".TH \"STOKER-JSON\" \"7\"" in printed("manual", "stoker-json", "2026-01-01")


@pytest.mark.parametrize("line, wrong", [
    ({"shell": "zsh", "script": "x"}, {"shell": "zsh"}),
    ({"error": {"code": 2, "name": "usage", "message": "m"}}, {"error": {"code": 2, "name": "usage", "message": "m", "more": 1}}),
], ids=["a missing key", "a key too many"])
def test_the_recorder_notices(line, wrong):
    binary = str(cli.BINARY)
    published.check(binary, ["completion", "zsh", "--json"], json.dumps(line) + "\n")
    with pytest.raises(AssertionError, match="does not have this line"):
        published.check(binary, ["completion", "zsh", "--json"], json.dumps(wrong) + "\n")
    published.check(binary, ["completion", "zsh"], "no JSON\n")
    published.check(binary, ["completion", "zsh", "--json"], '{"shell":"zsh","script":"a\u2028b"}\n')


def test_the_recorder_checks_an_event_by_its_name(project):
    project.write(compile=None)
    project.run("--id", "one")
    row = project.events("one", "attempt.claimed")[0]
    for change in ({"since": 12}, {"step": 1}, {"event": "attempt.moon"}):
        with pytest.raises(AssertionError):
            published.check(str(cli.BINARY), ["events", "one"], json.dumps({**row, **change}) + "\n")


@pytest.mark.parametrize("argv, code, name", [
    (("rnu",), 2, "usage"), (("status", "--nope"), 2, "usage"), (("init", "stoker.yaml"), 4, "refused"),
    (("plan", "nowhere.yaml"), 3, "spec"), (("completion", "csh"), 2, "usage"), (("help", "nothing-like-it"), 2, "usage"),
])
def test_an_error_is_the_last_line(project, argv, code, name):
    done = project.stoker("--json", *argv)
    error = last_error(done)
    assert (error["code"], error["name"]) == (code, name), str(done)
    assert error["message"] in done.err and error["hint"] in done.err
    plain = project.stoker(*argv)
    assert plain.out == "" and plain.err == done.err


def test_an_error_names_file_line_and_field(project):
    project.write(source={"path": "nowhere"})
    error = last_error(project.stoker("--json", "plan", project.spec_path))
    text = project.spec_path.read_text().splitlines()
    assert error["file"] == str(project.spec_path) and "nowhere" in text[error["line"] - 1], error
    assert error["field"] == "source.path" and error["column"] > 0


@pytest.mark.parametrize("command", [("plan",), ("run",), ("cache", "why")], ids=" ".join)
def test_problems_of_a_spec_come_before_the_error(project, command):
    project.write(enigne="local", nmae="x")
    done = project.stoker("--json", *command, project.spec_path)
    assert done.code == 3
    assert {line["field"] for line in done.lines[:-1]} == {"enigne", "nmae"}
    assert last_error(done)["file"] == str(project.spec_path)


def test_validate_prints_problems_and_no_error(project):
    project.write(enigne="local")
    done = project.stoker("--json", "validate", project.spec_path, "nowhere.yaml")
    assert done.code == 3 and ["field" in line for line in done.lines] == [True, False], str(done)
    assert done.lines[1]["file"] == "nowhere.yaml"
    assert project.stoker("validate", "--format", "json", project.spec_path, "nowhere.yaml").out == done.out


def test_runs_that_cannot_be_pruned_or_resumed_are_an_error_at_the_end(project):
    """Every one is told on stderr; for programs the last one ends the command."""
    project.write(compile=None)
    for at, run in enumerate(("one", "two", "three")):
        project.run("--id", run, "--set", f"hyperparameters.lr=0.{at + 1}")
    with contextlib.closing(sqlite3.connect(project.state / "stoker/journal.db")) as db, db:
        db.execute("UPDATE event SET body='{' WHERE run IN ('one', 'two') AND seq=3")
        db.execute("DELETE FROM summary WHERE run IN ('one', 'two')")  # else a run that has ended is not read again
    for argv in (("list", "--prune", "1d"), ("resume", "--all")):
        done = project.stoker("--json", *argv)
        error = last_error(done)
        assert error["name"] == "refused" and error["damage"] and "two" in error["message"], str(done)
        assert len(done.lines) == 1 and done.err.count("error:") == 2, str(done)
    rows = project.stoker("--json", "list").lines
    assert [row["state"] for row in rows] == ["succeeded", "damaged", "damaged"]


def test_annotations_of_github_actions(project):
    project.write(enigne="local", limits={"stall": "5x"})
    done = project.stoker("validate", "--format", "github", "stoker.yaml", "nowhere, 100%:.yaml")
    assert done.code == 3, str(done)
    lines = done.out.splitlines()
    found = [re.fullmatch(r"::(error|warning) file=([^:,]+)(?:,line=(\d+),col=(\d+))?,title=([^:,]+)::(.+)", line)
             for line in lines]
    assert len(lines) == 3 and all(found), done.out
    assert {one.group(5) for one in found} == {"enigne", "limits.stall", "stoker"}
    for one in found[:2]:
        assert one.group(2) == "stoker.yaml" and one.group(5).split(".")[-1] in \
            project.spec_path.read_text().splitlines()[int(one.group(3)) - 1]
        assert "%0A" in one.group(6), "the cure is on a line of its own"
    assert found[2].group(2) == "nowhere%2C 100%25%3A.yaml"
    assert not any(sign in done.err for sign in ("error:", "hint:"))


def test_a_valid_spec_has_no_annotation(project):
    done = project.stoker("validate", "--format", "github", "stoker.yaml")
    assert done.code == 0 and "::" not in done.out, str(done)


def test_formats_exclude_each_other(project):
    done = project.stoker("--json", "validate", "--format", "github", "stoker.yaml")
    assert done.code == 2 and "--format github" in last_error(done)["message"]
    assert project.stoker("validate", "--format", "junit", "stoker.yaml").code == 2
