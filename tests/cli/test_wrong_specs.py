"""Wrong specs, one row each: exit 3 with file, line, column, message and cure.
The mark « stands where the problem is reported to be."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import stoker as cli

HEAD = "version: 1\nname: x\ncommand: [python3, train.py]\n"

# name: (text, field or None, words of the message, words of the hint)
WRONG = {
    "unknown field": (HEAD + "«enigne: local\n", "enigne", ["enigne"], ["engine"]),
    "unknown nested field": (HEAD + "retry:\n  «atempts: 3\n", "retry.atempts", ["atempts"], ["attempts"]),
    "unknown field far from any": (HEAD + "«zzzzqqqq: 1\n", "zzzzqqqq", ["zzzzqqqq"], []),
    "field of another section": (HEAD + "«max_steps: 10\n", "max_steps", ["max_steps"], []),
    "duplicate key": (HEAD + "«name: y\n", "name", ["name", "duplicate"], []),
    "duplicate nested key": (HEAD + "retry:\n  attempts: 1\n  «attempts: 2\n", "retry.attempts", ["attempts"], []),
    "text for a number": (HEAD + "retry:\n  attempts: «many\n", "retry.attempts", ["many"], []),
    "real for a whole number": (HEAD + "retry:\n  attempts: «2.5\n", "retry.attempts", ["2.5"], []),
    "number too large for any": (HEAD + "retry:\n  attempts: «99999999999999999999\n", "retry.attempts", [], []),
    "below the range": (HEAD + "resources:\n  nodes: «0\n", "resources.nodes", ["0"], ["1"]),
    "above the range": (HEAD + "retry:\n  attempts: «5000\n", "retry.attempts", ["5000"], ["1000"]),
    "negative": (HEAD + "resources:\n  nodes: «-4\n", "resources.nodes", ["-4"], []),
    "duration without unit": (HEAD + "limits:\n  grace: «60\n", "limits.grace", ["60"], ["60s"]),
    "duration of unknown unit": (HEAD + "limits:\n  grace: «60sec\n", "limits.grace", ["60sec"], ["s"]),
    "size in wrong unit": (HEAD + "resources:\n  shm: «8gigs\n", "resources.shm", ["8gigs"], ["GiB"]),
    "bad choice": (HEAD + "engine: «loacl\n", "engine", ["loacl"], ["local"]),
    "bad boolean": (HEAD + "source:\n  allow_dirty: «maybe\n", "source.allow_dirty", ["maybe"], ["true"]),
    "scalar for a section": (HEAD + "retry: «5\n", "retry", ["retry"], []),
    "section for a scalar": (HEAD + "name2: 1\n".replace("name2: 1", "workspace:\n  «a: b"), "workspace", ["workspace"], []),
    "scalar for a list": ("version: 1\nname: x\ncommand: «python3\n", "command", ["command"], ["["]),
    "empty command": ("version: 1\nname: x\ncommand: «[]\n", "command", ["command"], []),
    "bad regex": (HEAD + "metrics:\n  - {name: loss, regex: «'loss: (['}\n", "metrics[0].regex", ["regex"], []),
    "regex without a group": (HEAD + "metrics:\n  - {name: loss, regex: «'loss: [0-9.]+'}\n", "metrics[0].regex", ["group"], ["("]),
    "metric twice": (HEAD + "metrics:\n  - {name: a, regex: '(.)'}\n  - {name: «a, regex: '(.)'}\n", None, ["a"], []),
    "metric without regex": (HEAD + "metrics:\n  - «{name: a}\n", "metrics[0].regex", ["regex"], []),
    "unset variable": (HEAD + "workspace: «${STK_TEST_UNSET}/x\n", "workspace", ["STK_TEST_UNSET"], [":-"]),
    "unclosed variable": (HEAD + "workspace: «${HOME\n", "workspace", ["${"], ["$$"]),
    "unknown version": ("version: «2\nname: x\ncommand: [a]\n", "version", ["2"], ["1"]),
    "bad name": ("version: 1\nname: «a/b\ncommand: [a]\n", "name", ["a/b"], []),
    "bad variable name": (HEAD + "env:\n  «A-B: 1\n", None, ["A-B"], []),
    "secret in plain text": (HEAD + "secrets:\n  TOKEN: «hunter2\n", "secrets.TOKEN", [], ["env:"]),
    "tab indentation": (HEAD + "retry:\n«\tattempts: 1\n", None, ["tab"], ["space"]),
    "unclosed quote": (HEAD + "workspace: «'abc\n", None, [], []),
    "unclosed bracket": ("version: 1\nname: x\ncommand: «[a, b\n", None, [], []),
    "unknown alias": (HEAD + "workspace: «*nowhere\n", None, ["nowhere"], []),
    "list at the top": ("«- a\n- b\n", None, [], []),
    "scalar at the top": ("«hello\n", None, [], []),
    "two documents": (HEAD + "«---\nversion: 1\n", None, ["document"], []),
    "absolute include": (HEAD + "source:\n  include: [«/etc/passwd]\n", "source.include[0]", ["/etc/passwd"], []),
    "include that leads out": (HEAD + "source:\n  include: [«../x]\n", "source.include[0]", ["../x"], []),
    "ignore of nothing known": (HEAD + "compile:\n  ignore: [«hyperparams.lr]\n", "compile.ignore[0]", ["hyperparams.lr"], ["hyperparameters"]),
    "dash in a flag": ("version: 1\nname: x\ncommand: [python3, train.py, «\u2013\u2013lr=1]\n", "command[2]", ["en dash", "\u2013"], ["--"]),
    "dash in a variable": (HEAD + "env: {NEURON_CC_FLAGS: «\"\u2013O1\"}\n", "env.NEURON_CC_FLAGS", ["en dash"], ["-"]),
    "bad cron": (HEAD + "promote: {when: manual}\nschedule:\n  cron: «61 3 * * MON\n", "schedule.cron", [], []),
}


def place(text):
    before, mark, after = text.partition("«")
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return before + after, line, column


def check(tmp_path, text, env=None, code=3):
    path = tmp_path / "spec.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    human = cli.stoker("validate", "spec.yaml", cwd=tmp_path, env=env)
    machine = cli.stoker("--json", "validate", "spec.yaml", cwd=tmp_path, env=env)
    assert human.code == machine.code == code, str(human)
    assert not cli.CONTROL.search(human.out + human.err), ascii(human.err)
    return human, machine.lines


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_spec(tmp_path, name):
    text, field, message, hint = WRONG[name]
    text, line, column = place(text)
    human, problems = check(tmp_path, text)
    problem = problems[0]
    assert problem["file"] == "spec.yaml"
    assert (problem["line"], problem["column"]) == (line, column), problem
    if field:
        assert problem["field"] == field, problem
    assert problem.get("hint"), problem
    for word in message:
        assert word in problem["message"], problem
    for word in hint:
        assert word in f"{problem['message']} {problem['hint']}", problem
    said = human.out + human.err
    assert f"spec.yaml:{line}:{column}: " in said and "hint: " in said, said
    assert len(problems) == 1, problems


def test_there_are_enough_wrong_specs():
    assert len(WRONG) >= 25


def test_every_problem_is_reported_in_one_go_in_file_order(tmp_path):
    text = ("version: 1\nname: a/b\nenigne: local\ncommand: []\nretry: {attempts: many, "
            "backoff: {first: 1}}\n")
    human, problems = check(tmp_path, text)
    assert [problem["line"] for problem in problems] == [2, 3, 4, 5, 5]
    assert human.err.count("hint: ") + human.out.count("hint: ") == 5


def test_missing_required_fields_are_all_named(tmp_path):
    human, problems = check(tmp_path, "version: 1\n")
    assert {problem["field"] for problem in problems} == {"name", "command"}


def test_an_override_that_is_wrong_names_itself(project):
    for override, words in (("retry.attempts=many", "many"), ("retry.atempts=1", "attempts"),
                            ("nosuch.field=1", "nosuch")):
        result = project.stoker("plan", project.spec_path, "--set", override)
        assert result.code == 3, str(result)
        assert "--set" in result.err and words in result.err and "hint:" in result.err


BAD_BYTES = {
    "empty": b"",
    "only a comment": b"# nothing\n",
    "NUL": HEAD.encode() + b"env: {A: \"a\0b\"}\n",
    "not UTF-8": HEAD.encode() + b"env: {A: \xff\xfe\xfa}\n",
    "UTF-16": HEAD.encode("utf-16"),
    "binary": bytes(range(256)) * 64,
    "ELF": Path("/bin/true").read_bytes()[:4096],
    "control characters": HEAD.encode() + b"env: {A: \x07\x1b]0;x\x07}\n",
    "10 MiB": HEAD.encode() + b"# " + b"x" * (10 << 20) + b"\n",
    "10 MiB on one line": b"a" * (10 << 20),
    "deep": b"a: " + b"[" * 100000,
    "deep maps": b"{a: " * 20000,
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bytes_that_are_no_spec(tmp_path, name):
    human, problems = check(tmp_path, BAD_BYTES[name])
    assert "spec.yaml" in human.err + human.out and "hint: " in human.err + human.out
    assert len(human.err) < 10000


def test_an_alias_bomb_is_refused_quickly_and_by_name(tmp_path):
    text = HEAD + "env:\n  A: &a0 [x, x, x, x, x, x, x, x, x]\n"
    for level in range(1, 12):
        text += f"  B{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n"
    human, problems = check(tmp_path, text)
    assert any("unfolds" in problem["message"] for problem in problems), problems


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_a_missing_file_and_a_directory(tmp_path, command):
    for path in ("nowhere.yaml", str(tmp_path)):
        result = cli.stoker(command, path, cwd=tmp_path, env=cli.environment(XDG_STATE_HOME=str(tmp_path / "s")))
        assert result.code == 3, str(result)
        assert path in result.err and "hint:" in result.err


def test_a_pipe_or_device_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe", "/dev/zero", "/dev/tty"):
        result = cli.stoker("validate", path, cwd=tmp_path)
        assert result.code == 3, str(result)


def test_an_unreadable_file_as_a_user_without_rights():
    """Root may read everything, so this is tried as somebody else."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        spec = folder / "spec.yaml"
        spec.write_text(HEAD)
        spec.chmod(0)
        binary = folder / "stoker"
        shutil.copy(cli.BINARY, binary)
        binary.chmod(0o755)
        prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
        tried = subprocess.run([*prefix, str(binary), "version"], capture_output=True,
                               env=cli.environment())
        if tried.returncode != 0:
            pytest.skip(f"cannot run as another user here: {tried.stderr.decode()[:200]}")
        result = cli.stoker("validate", spec, binary=binary, prefix=prefix, cwd="/")
        assert result.code == 3, str(result)
        assert "spec.yaml" in result.err and "ermission" in result.err and "hint:" in result.err


def test_several_specs_are_checked_in_one_go(tmp_path):
    (tmp_path / "good.yaml").write_text(HEAD)
    (tmp_path / "bad.yaml").write_text(HEAD + "enigne: local\n")
    (tmp_path / "worse.yaml").write_text("nothing\n")
    result = cli.stoker("--json", "validate", "good.yaml", "bad.yaml", "worse.yaml", cwd=tmp_path)
    assert result.code == 3
    assert [line["file"] for line in result.lines] == ["bad.yaml", "worse.yaml"]


def test_a_good_spec_is_silent_for_programs_and_short_for_people(project):
    assert project.ok("--json", "validate", project.spec_path).out == ""
    human = project.ok("validate", project.spec_path)
    assert len(human.out.splitlines()) <= 1


def test_validate_reads_nothing_but_the_spec(project):
    shutil.rmtree(project.source / ".git", ignore_errors=True)
    (project.source / "train.py").unlink()
    project.ok("validate", project.spec_path)
    assert not project.state.exists() and not project.cache.exists()


UNREADY = {
    "engine": "slurm",
    "slurm": {"partition": "trn"},
}


@pytest.mark.parametrize("field", UNREADY)
def test_what_this_version_cannot_do_is_refused_by_name_and_place(project, field):
    if field == "engine":
        project.write(engine="slurm", workspace=str(project.root / "ws"))
    else:
        project.write(**{field: UNREADY[field]})
    project.ok("validate", project.spec_path)
    result = project.run(code=4)
    line = next(number for number, text in enumerate(project.spec_path.read_text().splitlines(), 1)
                if text.startswith(f"{field}:"))
    named = re.search(rf"stoker\.yaml:(\d+):\d+: .*{field}", result.err)
    assert named and int(named[1]) >= line, str(result)
    assert project.ok("--json", "list").lines == []


def test_neuron_without_its_tools_says_what_is_missing(project):
    project.spec["compile"] = {"kind": "neuron", "cache_url": str(project.cache)}
    project.write()
    project.ok("validate", project.spec_path)
    result = project.run(code=1)
    assert "cannot find 'neuron_parallel_compile' in PATH" in result.text and "install the program" in result.text


LINTS = {
    "a long phase 1": (HEAD + "compile: {kind: jax, cache_url: /c, max_steps: 100}\n", "100"),
    "a quote in a flag": (HEAD + "env: {NEURON_CC_FLAGS: '--model-type \u201ctransformer\u201d'}\n", "quot"),
    "an own cache": (HEAD + "env: {NEURON_CC_FLAGS: --cache_dir=/x}\n", "cache"),
    "optlevel in letters": (HEAD + "env: {NEURON_CC_FLAGS: --optlevel O1}\n", "optlevel"),
    "a cut number": (HEAD + "metrics: [{name: loss, regex: 'loss: ([0-9.]+)'}]\n", "6.25"),
}


@pytest.mark.parametrize("name", LINTS)
def test_lints_warn_and_do_not_refuse(tmp_path, name):
    text, word = LINTS[name]
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    human = cli.stoker("validate", path)
    assert human.code == 0
    assert "warning" in human.err and word in human.err and human.cure
    lines = cli.stoker("--json", "validate", path).lines
    assert lines and all(set(line) >= {"file", "line", "column", "message", "hint"} for line in lines)
