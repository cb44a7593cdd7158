"""What is no change of a graph: a comment, a blank line, the order of flags. And what is one."""

import ast
import hashlib
import io
import json
import random
import sysconfig
import tokenize
import warnings
from pathlib import Path

import pytest
from project import Project

FILES = 80
COMMENTS = ("# note", "#", "# it's \"quoted\"", "# '''", '# """ open', "# f'{x", "# ends in \\", "#\tαβγ", "# x = (")
LIBRARY = Path(sysconfig.get_paths()["stdlib"])


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def cache(project, *more):
    return project.plan(*more)["cache"]


def phases(project, run):
    return [phase for phase, _ in project.attempts(run)]


# --- comments and blank lines ---

def tokens_of(text):
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def meaning(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.dump(ast.parse(text))


def corpus(chance):
    """Texts that real people wrote, with all that their editors put there."""
    found = []
    paths = sorted(LIBRARY.glob("**/*.py"))
    chance.shuffle(paths)
    for path in paths:
        if len(found) == FILES:
            break
        if "site-packages" in path.parts or "lib2to3" in path.parts or path.stat().st_size > 50000:
            continue
        try:
            text = path.read_bytes().decode()
            meaning(text), tokens_of(text)
        except (SyntaxError, UnicodeDecodeError, ValueError, tokenize.TokenError):
            continue
        if "\r" not in text and "\f" not in text and "\0" not in text and text.strip():
            found.append(text)
    return found


def commented(text, chance):
    """The same program: comments come, go and change, as Python's own tokenizer tells where."""
    lines = text.split("\n")
    edits = {}
    for token in tokens_of(text):
        row = token.start[0] - 1
        if token.type == tokenize.COMMENT and row > 1 and chance.random() < 0.5:
            edits[row] = lines[row][:token.start[1]] + chance.choice(COMMENTS) * chance.randrange(2)
        elif token.type in (tokenize.NEWLINE, tokenize.NL) and token.string and row > 1 and row not in edits:
            kind = chance.randrange(6)
            if kind == 0:
                edits[row] = lines[row] + " " * chance.randrange(1, 4) + chance.choice(COMMENTS)
            elif kind == 1:
                edits[row] = lines[row] + "\n" * chance.randrange(1, 3) + " " * chance.randrange(9)
            elif kind == 2:
                edits[row] = lines[row] + "\n" + "\t" * chance.randrange(3) + chance.choice(COMMENTS)
    new = "\n".join(edits.get(row, line) for row, line in enumerate(lines))
    assert meaning(new) == meaning(text)
    return new


def changed(text, chance):
    """Another program, or the same in other words: not only comments."""
    lines = text.split("\n")
    strings = [token for token in tokens_of(text) if token.type == tokenize.STRING]
    code = [token for token in tokens_of(text) if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.OP)]
    if strings and chance.random() < 0.7:
        # Within a string everything counts, also what looks like a comment or is a blank line.
        token = chance.choice(strings)
        row, column = token.end[0] - 1, token.end[1]
        long = token.string.endswith(("'''", '"""'))
        more = chance.choice(["#", " # no comment", "\n", "\n\n", "\n   # no comment\n"] if long else ["#", " #x", " "])
        column -= 3 if long else 1
    else:
        token = chance.choice(code)
        row, column, more = token.end[0] - 1, token.end[1], "x"
    lines[row] = lines[row][:column] + more + lines[row][column:]
    return "\n".join(lines)


def test_comments_and_blank_lines_leave_a_cache_warm_and_every_other_change_is_named(project):
    chance = random.Random(20161)
    folder = project.source / "library"
    folder.mkdir()
    texts = {f"m{number:03}.py": text for number, text in enumerate(corpus(chance))}
    assert len(texts) == FILES
    for name, text in texts.items():
        (folder / name).write_text(text)
    project.run("--id", "one")
    before = project.plan()
    for name, text in texts.items():
        (folder / name).write_text(commented(text, chance))
    after = project.plan()
    assert after["cache"]["verdict"] == "warm" and after["cache"]["changed"] == [], after["cache"]
    # The source is another one all the same, and that is what runs.
    assert after["source"]["digest"] != before["source"]["digest"]
    project.run("--id", "two")
    assert phases(project, "two") == ["train"]
    for name, text in texts.items():
        (folder / name).write_text(changed(text, chance))
    why, = project.ok("--json", "cache", "why", project.spec_path).lines
    assert {row["field"] for row in why["changed"]} == {f"source:library/{name}" for name in texts}


def test_what_is_not_python_or_not_certain_counts_to_the_byte(project):
    texts = {"run.sh": "echo 1\n", "model.yaml": "a: 1\n", "open.py": "x = '''\n", "latin.py": "# coding: utf-7\nx = 1\n"}
    for name, text in texts.items():
        (project.source / name).write_text(text)
    project.run("--id", "one")
    for name, text in texts.items():
        (project.source / name).write_text(f"{text}# a comment\n")
    assert [row["field"] for row in cache(project)["changed"]] == sorted(f"source:{name}" for name in texts)


def test_the_files_of_a_commit_and_those_it_depends_on_are_read_alike(project):
    outside = project.root / "kernel.py"
    outside.write_text("x = 1  # one\n")
    project.write(compile={**project.spec["compile"], "depends_on": [str(outside)]})
    key = cache(project)["graph_key"]
    outside.write_text("# the first\n\nx = 1\n")
    assert cache(project)["graph_key"] == key
    outside.write_text("x = 2\n")
    assert cache(project)["graph_key"] != key


# --- flags ---

FLAGS = "--model-type transformer --auto-cast all --auto-cast-type bf16 -O1 --tensorizer-options='--a --b'"


@pytest.fixture
def flagged(project):
    def write(flags, variable="NEURON_CC_FLAGS"):
        project.write(env={variable: flags})
        return cache(project)
    return write


@pytest.mark.parametrize("same", [
    "-O1 --auto-cast-type bf16 --auto-cast all --tensorizer-options='--a --b' --model-type transformer",
    "  --auto-cast-type bf16\n--model-type transformer -O1 --auto-cast all '--tensorizer-options=--a --b'",
    f"--retry_failed_compilation {FLAGS} --log_level INFO"])
def test_flags_in_another_order_are_the_same_flags(project, flagged, same):
    flagged(FLAGS)
    project.run("--id", "one")
    assert flagged(same)["verdict"] == "warm"
    changed = flagged(same.replace("bf16", "fp16"))
    assert changed["verdict"] == "cold"
    row, = changed["changed"]
    assert row["field"] == "env.NEURON_CC_FLAGS" and "bf16" in row["old"] and "fp16" in row["new"]


@pytest.mark.parametrize("one, other", [
    ("-O1 -O2", "-O2 -O1"),
    ("-O1 --optlevel 2", "--optlevel 2 -O1"),
    ("--model-type a --model-type b", "--model-type b --model-type a"),
    ("--enable-x --disable-x", "--disable-x --enable-x"),
    ("--optlev 1 --optlevel 2", "--optlevel 2 --optlev 1"),
    ("--model-type a --auto-cast b", "--model-type b --auto-cast a"),
    ("--tensorizer-options='--a --b'", "--tensorizer-options='--b --a'"),
    ("--list a b", "--list b a"),
    ("a b --x", "b a --x"),
    ("--x -1 --y -2", "--x -2 --y -1"),
    ("--x -- --y --z", "--x -- --z --y"),
    ("--x '--y z' --a", "--a '--y z' --x"),
    ("--x 'open --y", "--y --x 'open")])
def test_where_the_order_may_count_it_does(flagged, one, other):
    assert flagged(one)["graph_key"] != flagged(other)["graph_key"]


def test_xla_flags_too_and_other_variables_are_as_they_are(flagged):
    one, other = "--xla_a=1 --xla_b='x y' --xla_c", "--xla_c --xla_b='x y' --xla_a=1"
    assert flagged(one, "XLA_FLAGS")["graph_key"] == flagged(other, "XLA_FLAGS")["graph_key"]
    assert flagged("--xla_a=1 --xla_a=2", "XLA_FLAGS")["graph_key"] != flagged("--xla_a=2 --xla_a=1", "XLA_FLAGS")["graph_key"]
    assert flagged("a b", "XLA_FLAGS")["graph_key"] != flagged("b a", "XLA_FLAGS")["graph_key"]
    assert flagged(one, "MY_FLAGS")["graph_key"] != flagged(other, "MY_FLAGS")["graph_key"]


# --- keys of earlier versions ---

def test_a_lock_by_earlier_rules_is_cold_and_no_change_of_the_users_is_blamed(project):
    project.run("--id", "one")
    path, = [path for path in project.cache.glob("stoker/*.json")]
    lock = json.loads(path.read_text())
    del lock["ingredients"]["key_rules"]
    lock["ingredients"]["source"]["train.py"] = "0" * 64
    text = json.dumps(lock["ingredients"], sort_keys=True, separators=(",", ":"))
    lock["graph_key"] = hashlib.sha256(text.encode()).hexdigest()
    path.unlink()
    path.with_name(f"{lock['graph_key']}.json").write_text(json.dumps(lock))
    said = cache(project)
    assert said["verdict"] == "cold" and "earlier version of stoker" in said["reason"], said
    assert [row["field"] for row in said["changed"]] == ["key_rules"], said
    project.run("--id", "two")
    assert phases(project, "two") == ["precompile", "train"]
    assert cache(project)["verdict"] == "warm"


# --- variables ---

@pytest.mark.parametrize("name, decides", [("NEURON_RT_VIRTUAL_CORE_SIZE", True), ("NEURON_LOGICAL_NC_CONFIG", True),
                                           ("NEURON_RT_EXEC_TIMEOUT", False), ("NEURON_RT_LOG_LEVEL", False)])
def test_how_many_cores_make_one_decides_and_what_the_runtime_does_else_does_not(project, name, decides):
    project.write(env={name: "1"})
    before = cache(project)["graph_key"]
    project.write(env={name: "2"})
    assert (cache(project)["graph_key"] != before) == decides
