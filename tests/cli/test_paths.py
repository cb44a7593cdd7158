"""Paths of a spec as a person types them: ~/ is the home, $HOME is warned of, and what this version cannot
do yet is said before it is tried."""

import json

import pytest
import stoker as cli

HEAD = "version: 1\nname: x\ncommand: [python3, train.py]\n"


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


class Place:
    """A home with a job in it, and somebody who is at home there."""

    def __init__(self, root):
        self.root, self.home = root, root / "home"
        self.job = self.home / "job"
        self.job.mkdir(parents=True)
        (self.job / "train.py").write_text("pass\n")

    def write(self, text):
        (self.job / "stoker.yaml").write_text(HEAD + text)
        return self

    def stoker(self, *argv, **env):
        whole = cli.environment(**{"HOME": str(self.home), "XDG_STATE_HOME": str(self.root / "state"), **env})
        return cli.stoker(*argv, env={name: value for name, value in whole.items() if value is not None}, cwd=self.job)

    def plan(self, *argv, **env):
        said = self.stoker("--json", "plan", "stoker.yaml", *argv, **env)
        assert said.code == 0, str(said)
        return said.lines[0]

    def problems(self, *argv, code=3, **env):
        said = self.stoker("--json", "validate", "stoker.yaml", *argv, **env)
        assert said.code == code, str(said)
        return said.lines


def test_home_is_expanded_in_every_path(place):
    (place.home / "model.json").write_text("{}")
    (place.home / "code").mkdir()
    (place.home / "code/train.py").write_text("pass\n")
    place.write("workspace: ~/ws\nsource: {path: ~/code}\nsecrets: {KEY: file:~/key}\ncheckpoint: {url: ~/ckpt/}\n"
                "compile: {kind: jax, cache_url: dir:~/cache, depends_on: [~/model.json], max_steps: 2}\n")
    plan = place.plan()
    home = str(place.home)
    spec = plan["spec"]
    assert (spec["workspace"], spec["source"]["path"]) == (f"{home}/ws", f"{home}/code")
    assert (spec["checkpoint"]["url"], spec["secrets"]["KEY"]) == (f"{home}/ckpt/", f"file:{home}/key")
    assert (spec["compile"]["cache_url"], spec["compile"]["depends_on"]) == (f"dir:{home}/cache", [f"{home}/model.json"])
    assert plan["source"]["root"] == f"{home}/code"
    request = plan["requests"][-1]
    assert request["workspace"] == f"{home}/ws" and request["checkpoint"]["root"].startswith(f"{home}/ckpt")
    assert request["compile"]["cache"] == f"{home}/cache"
    assert "~" not in json.dumps(plan)


@pytest.mark.parametrize("field", ["data: {url: ~/data}", "infer: {command: [a], input: /in, output: ~/out}"])
def test_paths_in_sections_are_checked_alike(place, field):
    place.write(f"{field}\n").problems(code=0)
    place.write(field.replace("~/", "~other/") + "\n")
    assert "another user" in [row for row in place.problems() if not row.get("lint")][0]["message"]


def test_a_run_goes_there_and_makes_no_folder_of_that_name(place):
    place.write("workspace: ~/ws\nenv: {A: ~/stays}\ncheckpoint: {url: ~/ckpt}\n")
    (place.job / "train.py").write_text("import os\nprint('A is', os.environ['A'])\n")
    (place.job / "stoker.yaml").write_text((place.job / "stoker.yaml").read_text().replace("python3", "/usr/bin/python3"))
    done = place.stoker("run", "stoker.yaml", "--id", "one")
    assert done.code == 0, str(done)
    assert (place.home / "ws").is_dir() and not list(place.root.rglob("~*"))
    assert "A is ~/stays" in place.stoker("logs", "one").out, "a variable is no path"


@pytest.mark.parametrize("text", ["workspace: ./~/x\n", "workspace: a~/x\n", "workspace: s3://bucket/~/x\n"])
def test_elsewhere_it_is_a_sign_like_others(place, text):
    assert place.write(text).plan(AWS_REGION="eu-west-1")["spec"]["workspace"] == text.split()[1]


def test_the_home_alone_and_by_override(place):
    place.write("workspace: '~'\n")
    assert place.plan()["spec"]["workspace"] == str(place.home)
    assert place.plan("--set", "workspace=~/other")["spec"]["workspace"] == f"{place.home}/other"


def test_other_homes_and_none_are_errors_with_their_place(place):
    place.write("workspace: ~bob/ws\n")
    problem, = place.problems()
    assert (problem["line"], problem["column"], problem["field"]) == (4, 12, "workspace"), problem
    assert "another user" in problem["message"] and "write the path out" in problem["hint"], problem
    place.write("workspace: ~/ws\n")
    for home in (None, "", "relative"):
        problem, = place.problems(HOME=home)
        assert (problem["line"], problem["column"]) == (4, 12) and "HOME" in problem["message"], problem
    assert place.plan(HOME="/elsewhere")["spec"]["workspace"] == "/elsewhere/ws"


def test_whose_home_it_is_changes_no_graph(place):
    place.write("compile: {kind: jax, cache_url: ~/cache, depends_on: [~/model.json], max_steps: 2}\n")
    keys = set()
    for name in ("home", "other"):
        (place.root / name).mkdir(exist_ok=True)
        (place.root / name / "model.json").write_text("{}")
        keys.add(place.plan(HOME=str(place.root / name))["cache"]["graph_key"])
    assert len(keys) == 1
    (place.root / "other/model.json").write_text("{ }")
    assert place.plan(HOME=str(place.root / "other"))["cache"]["graph_key"] not in keys


@pytest.mark.parametrize("scheme", ["", "dir:"])
def test_no_shell_expands_what_follows_an_equals_sign(place, scheme):
    place.write("compile: {kind: none}\n")
    made = place.stoker(f"--state={scheme}~/mine", "run", "stoker.yaml", "--id", "one")
    assert made.code == 0, str(made)
    assert (place.home / "mine").is_dir() and not list(place.root.rglob("~*"))
    for argv, env in (((f"--state={scheme}{place.home}/mine", "list"), {}), (("list",), {"STOKER_STATE": f"{scheme}~/mine"})):
        assert "one" in place.stoker(*argv, **env).out, argv
    (place.home / "graphs").mkdir()
    listed = place.stoker("cache", "ls", f"{scheme}~/graphs")
    assert listed.code == 0, str(listed)


@pytest.mark.parametrize("text, field", [
    ("env: {DATA: ~/data}\n", "env.DATA"), ("hyperparameters: {data: ~/data}\n", "hyperparameters.data"),
    ("notify: [{when: [failed], command: [~/page-me]}]\n", "notify[0].command[0]")])
def test_the_home_in_what_is_no_path_is_warned_of(place, text, field):
    row, = place.write(text).problems(code=0)
    assert row["lint"] and row["field"] == field and "~/" in row["message"] and "${HOME}/" in row["hint"], row


# name: (text, field, name of the variable)
TAKEN_AS_TEXT = {
    "a path": ("workspace: «$HOME/ws\n", "workspace", "HOME"),
    "a path with a name in small letters": ("checkpoint: {url: «/data/$user/ckpt}\n", "checkpoint.url", "user"),
    "a variable": ("env: {PATH: «'$HOME/bin:$PATH'}\n", "env.PATH", "HOME"),
    "a hyperparameter": ("hyperparameters: {output_dir: «$SCRATCH/out}\n", "hyperparameters.output_dir", "SCRATCH"),
    "a list among hyperparameters": ("hyperparameters: {dirs: [a, «$SCRATCH/out]}\n", "hyperparameters.dirs[1]", "SCRATCH"),
    "a file of a secret": ("secrets: {KEY: «file:$HOME/key}\n", "secrets.KEY", "HOME"),
    "what the agent knows": ("env: {OUT: «/out/$STOKER_RUN}\n", "env.OUT", "STOKER_RUN"),
    "a notification": ("notify: [{when: [failed], command: [«$HOME/page-me]}]\n", "notify[0].command[0]", "HOME"),
    "after an escaped one": ("env: {A: «'$$HOME is $HOME'}\n", "env.A", "HOME"),
}


@pytest.mark.parametrize("name", TAKEN_AS_TEXT)
def test_a_variable_of_a_shell_is_warned_of(place, name):
    text, field, variable = TAKEN_AS_TEXT[name]
    before, _, after = (HEAD + text).partition("«")
    place.write(before.removeprefix(HEAD) + after)
    row, = place.problems(code=0)
    assert row["lint"] and row["field"] == field, row
    assert f"'${variable}'" in row["message"] and f"${{{variable}}}" in row["hint"], row
    assert (row["line"], row["column"]) == (before.count("\n") + 1, len(before) - before.rfind("\n")), row
    said = place.stoker("validate", "stoker.yaml")
    assert said.code == 0 and "warning" in said.err and f"${{{variable}}}" in said.cure, str(said)


@pytest.mark.parametrize("text", [
    "env: {A: 'costs $5', B: $$HOME, C: 'a$', D: $name, E: '${HOME}'}\n",
    "metrics: [{name: loss, regex: 'loss=([0-9.eE+-]+)$END'}]\n",
    "evaluate: {command: [sh, -c, 'cd $HOME && ls'], metric: a}\nmetrics: [{name: a, regex: '(.+)'}]\n",
    "slurm: {setup: 'source $HOME/env'}\n"])
def test_what_is_no_variable_or_a_shells_is_not(place, text):
    rows = place.write(text).problems(code=0)
    assert not [row for row in rows if "no variable" in row["message"]], rows
    (place.job / "stoker.yaml").write_text("version: 1\nname: x\ncommand: [/bin/bash, -lc, 'cd $HOME; ls $DATA']\n")
    assert place.problems(code=0) == []


def test_command_words_before_a_shell_are_warned_of(place):
    (place.job / "stoker.yaml").write_text("version: 1\nname: x\ncommand: [$HOME/run, '$X', sh, -c, 'ls $HOME']\n")
    assert [row["field"] for row in place.problems(code=0) if row.get("lint")] == ["command[0]"]


NOT_YET = ["engine: slurm\nworkspace: /shared\n", "source: {path: 'git@host:a/b.git', rev: v1}\n"]


@pytest.mark.parametrize("text", NOT_YET)
def test_validate_warns_of_what_run_refuses_in_the_same_words(place, text):
    place.write(text)
    rows = [row for row in place.problems(code=0) if "not part of this version" in row["message"]]
    assert rows and all(row["lint"] and row["hint"] for row in rows), rows
    people = place.stoker("validate", "stoker.yaml")
    assert people.code == 0 and "is valid" in people.out, str(people)
    for command in ("plan", "run"):
        refused = place.stoker(command, "stoker.yaml")
        assert refused.code == 4, str(refused)
        for row in rows:
            where = f"stoker.yaml:{row['line']}:{row['column']}: "
            assert f"error: {where}{row['message']}" in refused.err, str(refused)
            assert f"{where}warning: {row['message']}" in people.err, str(people)
            assert row["hint"] in people.err and row["hint"] in refused.err
            assert refused.err.count(row["message"]) == 1, str(refused)
