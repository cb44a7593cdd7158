"""The JSON Schema and the templates, looked at by an independent validator; the
golden specs have their own look at it in test_golden.py."""

import json
from pathlib import Path

import jsonschema
import pytest
import stoker as cli
import yaml

TEMPLATES = sorted((cli.ROOT / "templates").glob("*.yaml"))


@pytest.fixture(scope="module")
def validator():
    result = cli.stoker("schema")
    assert result.code == 0
    schema = json.loads(result.out)
    kind = jsonschema.validators.validator_for(schema, default=None)
    assert kind is jsonschema.Draft202012Validator
    kind.check_schema(schema)
    return kind(schema)


class Loader(yaml.SafeLoader):
    """YAML as the spec reads it: dates stay text, keys must be unique."""


Loader.yaml_implicit_resolvers = {
    key: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for key, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def load(path):
    return yaml.load(path.read_text(), Loader)


def test_there_are_templates():
    assert len(TEMPLATES) >= 4


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_the_schema_accepts_every_template(validator, path):
    validator.validate(load(path))


def test_the_schema_accepts_the_quickstart(validator):
    validator.validate(load(cli.ROOT / "configs/quickstart/stoker.yaml"))


HEAD = {"version": 1, "name": "x", "command": ["a"]}
REFUSED = {
    "unknown field": {**HEAD, "enigne": "local"},
    "unknown nested field": {**HEAD, "retry": {"atempts": 1}},
    "text for a number": {**HEAD, "retry": {"attempts": "many"}},
    "out of range": {**HEAD, "retry": {"attempts": 0}},
    "bad choice": {**HEAD, "engine": "loacl"},
    "no unit": {**HEAD, "limits": {"grace": "60"}},
    "wrong unit": {**HEAD, "resources": {"shm": "8gigs"}},
    "no name": {"version": 1, "command": ["a"]},
    "no command": {"version": 1, "name": "x"},
    "empty command": {**HEAD, "command": []},
    "other version": {**HEAD, "version": 2},
    "scalar for a list": {**HEAD, "command": "python3"},
    "scalar for a section": {**HEAD, "retry": 5},
    "bad variable name": {**HEAD, "env": {"A-B": "1"}},
    "metric without regex": {**HEAD, "metrics": [{"name": "a"}]},
    "secret in plain text": {**HEAD, "secrets": {"TOKEN": "hunter2"}},
    "a list": [1],
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_schema_refuses_what_a_schema_can(validator, name):
    assert not validator.is_valid(REFUSED[name])


def names():
    return [path.stem for path in TEMPLATES]


def test_init_lists_every_template():
    listed = cli.stoker("init", "--list")
    assert listed.code == 0
    for name in names():
        assert name in listed.out


def test_init_lists_templates_by_the_steps_of_porting_a_model():
    steps, at = {}, None
    for line in cli.stoker("init", "--list").out.splitlines():
        if line.startswith("  "):
            steps[at].append(line.split()[0])
        else:
            steps[at := line] = []
    assert list(steps) == ["does it fit", "make it run", "make it fast", "make it converge", "keep it up to date"]
    assert sorted(name for each in steps.values() for name in each) == names()
    assert all(steps.values())
    rows = [json.loads(line) for line in cli.stoker("init", "--list", "--json").out.splitlines()]
    assert [(row["step"], row["template"]) for row in rows] == [
        (step, name) for step, each in steps.items() for name in each]
    page = (cli.ROOT / "docs/porting.md").read_text().lower()
    assert all(f"## {number}. {step}" in page for number, step in enumerate(steps, 1))


@pytest.mark.parametrize("name", names())
def test_what_init_writes_is_valid_and_commented(tmp_path, name):
    result = cli.stoker("init", "--template", name, "mine.yaml", cwd=tmp_path)
    assert result.code == 0, str(result)
    assert "#" in (tmp_path / "mine.yaml").read_text()
    checked = cli.stoker("validate", "mine.yaml", cwd=tmp_path)
    assert checked.code == 0, str(checked)


def test_init_without_a_name_writes_a_spec_that_validates(tmp_path):
    result = cli.stoker("init", cwd=tmp_path)
    assert result.code == 0, str(result)
    written, = Path(tmp_path).iterdir()
    assert cli.stoker("validate", written).code == 0


def test_init_never_overwrites(tmp_path):
    (tmp_path / "mine.yaml").write_text("precious\n")
    result = cli.stoker("init", "mine.yaml", cwd=tmp_path)
    assert result.code in (2, 4), str(result)
    assert "mine.yaml" in result.err and "hint:" in result.err
    assert (tmp_path / "mine.yaml").read_text() == "precious\n"


def test_the_schema_describes_every_field_for_editors(validator):
    missing = []

    def walk(node, path):
        for name, child in node.get("properties", {}).items():
            if not child.get("description") and "$ref" not in child:
                missing.append(f"{path}{name}")
            walk(child, f"{path}{name}.")

    walk(validator.schema, "")
    assert missing == []
