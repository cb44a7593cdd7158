"""Flags of the Neuron compiler that make it keep its graphs elsewhere than in compile.cache_url, or
nowhere: phase 1 and training would be paid for, and nothing be found again."""

import pytest
import stoker as cli

HEAD = "version: 1\nname: x\ncompile: {kind: neuron, cache_url: ./cache, max_steps: 5}\n"
COMMAND = "command: [torchrun, train.py]\n"

# name: (text, field); the mark « stands where the problem is reported to be
WRONG = {
    "with =": (HEAD + COMMAND + "env: {NEURON_CC_FLAGS: «--cache_dir=/x}\n", "env.NEURON_CC_FLAGS"),
    "in two words": (HEAD + COMMAND + "env: {NEURON_CC_FLAGS: «-O1 --cache_dir /x}\n", "env.NEURON_CC_FLAGS"),
    "quoted within": (HEAD + COMMAND + "env:\n  NEURON_CC_FLAGS: «'-O1 \"--cache_dir=/x y\"'\n", "env.NEURON_CC_FLAGS"),
    "its name quoted": (HEAD + COMMAND + "env:\n  NEURON_CC_FLAGS: «\"'--cache_dir'=/x\"\n", "env.NEURON_CC_FLAGS"),
    "on several lines": (HEAD + COMMAND + "env:\n  NEURON_CC_FLAGS: «>-\n    -O1\n    --no_cache\n", "env.NEURON_CC_FLAGS"),
    "after a tab": (HEAD + COMMAND + "env: {NEURON_CC_FLAGS: «\"-O1\\t--no_cache\"}\n", "env.NEURON_CC_FLAGS"),
    "with a dash": (HEAD + COMMAND + "env: {NEURON_CC_FLAGS: «--no-cache}\n", "env.NEURON_CC_FLAGS"),
    "from a variable": (HEAD + COMMAND + "env: {NEURON_CC_FLAGS: «\"-O1 ${OWN_FLAGS}\"}\n", "env.NEURON_CC_FLAGS"),
    "of phase 1": ("version: 1\nname: x\n" + COMMAND + "compile:\n  kind: neuron\n  cache_url: s3://bucket/c\n"
                   "  overrides: {env: {NEURON_CC_FLAGS: «--no_cache}}\n", "compile.overrides.env.NEURON_CC_FLAGS"),
    "without phase 1": ("version: 1\nname: x\n" + COMMAND + "compile: {kind: neuron, mode: jit, cache_url: ./c}\n"
                        "env: {NEURON_CC_FLAGS: «--cache_dir=/x}\n", "env.NEURON_CC_FLAGS"),
    "for env": (HEAD + "command: [env, «NEURON_CC_FLAGS=--cache_dir=/x -O1, torchrun, train.py]\n", "command[1]"),
    "for env, to be split": (HEAD + "command: [env, -S, «NEURON_CC_FLAGS=--no_cache torchrun train.py]\n", "command[2]"),
    "in a shell's line": (HEAD + "command: [bash, -c, «\"NEURON_CC_FLAGS='-O1 --cache_dir /x' torchrun train.py\"]\n",
                          "command[2]"),
    "exported": (HEAD + "command: [/bin/sh, -ec, «'cd x;export NEURON_CC_FLAGS=\"$NEURON_CC_FLAGS --no_cache\"&& torchrun t.py']\n",
                 "command[2]"),
    "appended": (HEAD + "command: [bash, -c, «'NEURON_CC_FLAGS+=\" --no_cache\" torchrun t.py']\n", "command[2]"),
    "handed on by a launcher": (HEAD + "command: [mpirun, -x, «NEURON_CC_FLAGS=--no_cache, python3, train.py]\n", "command[2]"),
}

FINE = {
    "a script's own flag": HEAD + "command: [torchrun, train.py, --cache_dir, /hf, --no_cache]\n",
    "a hyperparameter": HEAD + COMMAND + "hyperparameters: {cache_dir: /hf, no_cache: true}\n",
    "the script's, in a shell's line": HEAD + "command: [sh, -c, 'NEURON_CC_FLAGS=-O1 torchrun t.py --cache_dir /hf']\n",
    "another variable": HEAD + COMMAND + "env: {MY_NEURON_CC_FLAGS: --cache_dir=/x, HF_ARGS: --no_cache}\n",
    "another variable of env": HEAD + "command: [env, MY_NEURON_CC_FLAGS=--no_cache, torchrun, train.py]\n",
    "within another flag": HEAD + COMMAND + "env: {NEURON_CC_FLAGS: '--dump=--no_cache'}\n",
    "no cache URL": "version: 1\nname: x\n" + COMMAND + "env: {NEURON_CC_FLAGS: --cache_dir=/x --no_cache}\n",
    "another compiler's cache": "version: 1\nname: x\n" + COMMAND + "compile: {kind: jax, cache_url: ./c, max_steps: 5}\n"
                                "env: {NEURON_CC_FLAGS: --no_cache}\n",
}

ENV = {"OWN_FLAGS": "--cache_dir=s3://bucket/own"}


def place(text):
    before, _, after = text.partition("«")
    return before + after, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


@pytest.mark.parametrize("name", WRONG)
def test_a_flag_that_beats_the_cache_url_is_an_error(tmp_path, name):
    text, field = WRONG[name]
    text, line, column = place(text)
    (tmp_path / "spec.yaml").write_text(text)
    env = cli.environment(XDG_STATE_HOME=str(tmp_path / "state"), **ENV)
    told = cli.stoker("--json", "validate", "spec.yaml", cwd=tmp_path, env=env)
    assert told.code == 3, str(told)
    problem, = [row for row in told.lines if not row.get("lint")]
    assert (problem["line"], problem["column"], problem["field"]) == (line, column, field), problem
    assert "NEURON_CC_FLAGS" in problem["message"] and "remove the option" in problem["hint"], problem
    assert "cache_dir" in problem["message"] or "no_cache" in problem["message"].replace("-", "_"), problem
    for command in ("plan", "run"):
        refused = cli.stoker(command, "spec.yaml", cwd=tmp_path, env=env)
        assert refused.code == 3 and f"spec.yaml:{line}:{column}: " in refused.err, str(refused)


@pytest.mark.parametrize("name", FINE)
def test_what_beats_no_cache_url_is_none(tmp_path, name):
    (tmp_path / "spec.yaml").write_text(FINE[name])
    told = cli.stoker("--json", "validate", "spec.yaml", cwd=tmp_path)
    assert told.code == 0, str(told)


def test_both_flags_and_those_of_an_override_are_named(tmp_path):
    (tmp_path / "spec.yaml").write_text(HEAD + COMMAND)
    flags = "--cache_dir=/x --no_cache"
    told = cli.stoker("--json", "validate", "spec.yaml", "--set", f"env.NEURON_CC_FLAGS={flags}",
                      "--set", "compile.overrides.env.NEURON_CC_FLAGS=--no_cache", cwd=tmp_path)
    assert told.code == 3, str(told)
    rows = [row for row in told.lines if not row.get("lint")]
    assert {row["file"] for row in rows} == {"--set"} and len(rows) == 3, rows
