"""`derive`: values that follow from others, worked out by libjq in a process that may do nothing."""

import json
import os
import subprocess

import pytest
import stoker as cli

DERIVE = cli.BINARY.parent / "stoker-derive"


@pytest.fixture
def job(project):
    (project.source / "job.sh").write_text('echo "$@" > "$STOKER_OUTPUT_DIR/words"; env > "$STOKER_OUTPUT_DIR/env"\n')
    project.write(command=["sh", "job.sh"], compile=None, hyperparameters={"batch_size": 32}, derive={})
    return project


def derive(job, expression, **fields):
    job.write(derive={"hyperparameters.lr": expression}, **fields)


def derived(job, *argv) -> dict:
    plan, = job.ok("plan", job.spec_path, "--json", *argv).lines
    return {row["field"]: row["value"] for row in plan["derived"]}


def refused(job, expression, **fields):
    """The problem of that expression: [message, line, column]."""
    derive(job, expression, **fields)
    result = job.stoker("validate", job.spec_path, "--json")
    assert result.code == 3, str(result)
    problem, = (line for line in result.lines if "error" not in line and not line.get("lint"))
    assert problem["hint"] and problem["field"] == "derive.hyperparameters.lr"
    return problem


# --- values --------------------------------------------------------------------------------

# BERT's rule, 5e-5 at 32 samples; its published rows, and digits that read back the same.
PUBLISHED = {32: "5e-05", 64: "0.0001", 128: "0.0002", 256: "0.0004", 512: "0.0008", 1024: "0.0016", 40: "6.25e-05",
             96: "0.00015000000000000001"}


@pytest.mark.parametrize("batch", PUBLISHED)
def test_the_published_learning_rates(job, batch):
    derive(job, "5e-5/32*$global_batch", hyperparameters={"batch_size": batch})
    value = derived(job)["hyperparameters.lr"]
    assert value == PUBLISHED[batch] and float(value) == 5e-5 / 32 * batch
    assert f"--batch_size {batch} --lr {value}" in job.ok("plan", job.spec_path).out


@pytest.mark.parametrize("expression, value", [
    ("$batch_size*3", "96"), ("1e15", "1000000000000000"), ("2e22", "2e+22"), ("-0", "0"), ("0.1+0.2", "0.30000000000000004"),
    ("1/3", "0.3333333333333333"), ("5e-324", "5e-324"), ("1.7976931348623157e308", "1.7976931348623157e+308"), ("true", "true"), ('"a b"', "a b"),
    (".hyperparameters.batch_size/2", "16"), ('.hyperparameters["batch_size"]', "32"), (".resources.nodes", "1"),
    ("if $nodes > 1 then 2 else 3 end", "3"), ("[1,5,2]|max", "5"), ('"a,b"|split(",")|length', "2"),
    ("def f(x): x*x; f($batch_size)", "1024"), ("7 as $own | $own", "7"), ('{env: 1, now: 2} | .env + .now', "3"),
    ("0|strftime(\"%Y\")", "1970"), (7, "7"), ("12 # $ENV, now", "12")])
def test_values(job, expression, value):
    derive(job, expression)
    assert derived(job) == {"hyperparameters.lr": value}


def test_each_value_sees_those_before_it_and_types_are_the_fields_own(job):
    job.write(derive={"samples_per_step": "$batch_size*4", "hyperparameters.steps": "1000/$global_batch|floor",
                      "env.X": '"\\($steps)h"', "env.Y": "$steps", "limits.deadline": '"\\($steps)h"', "resources.nodes": "2",
                      "hyperparameters.world": "$world_size", "hyperparameters.text": '"7"'})
    assert derived(job) == {"samples_per_step": "128", "hyperparameters.steps": "7", "env.X": "7h", "env.Y": "7",
                            "limits.deadline": "7h", "resources.nodes": "2", "hyperparameters.world": "2", "hyperparameters.text": "7"}
    plan, = job.ok("plan", job.spec_path, "--json").lines
    assert plan["spec"]["samples_per_step"] == 128 and plan["spec"]["resources"]["nodes"] == 2
    assert plan["spec"]["hyperparameters"] == {"batch_size": 32, "steps": 7, "world": 2, "text": "7"}
    assert plan["spec"]["env"] == {"X": "7h", "Y": "7"} and plan["spec"]["limits"]["deadline"] == "7h"
    said = job.ok("plan", job.spec_path).out
    assert "derived: samples_per_step = 128, by $batch_size*4\n" in said


def test_a_value_that_is_written_is_replaced_where_it_stands_and_one_that_is_set_stays(job):
    job.write(hyperparameters={"lr": 1, "batch_size": 64}, derive={"hyperparameters.lr": "5e-5/32*$global_batch"})
    assert "--lr 0.0001 --batch_size 64" in job.ok("plan", job.spec_path).out
    plan, = job.ok("plan", job.spec_path, "--json", "--set", "hyperparameters.lr=3e-4").lines
    assert "derived" not in plan and plan["phases"][0]["command"][2:4] == ["--lr", "3e-4"]
    assert derived(job, "--set", "derive.hyperparameters.lr=$batch_size") == {"hyperparameters.lr": "64"}
    assert derived(job, "--set", "hyperparameters.batch_size=128") == {"hyperparameters.lr": "0.0002"}


def test_a_run_has_the_value_and_its_repeat_the_same_plan(job):
    derive(job, "5e-5/32*$global_batch", hyperparameters={"batch_size": 40})
    job.ok("run", job.spec_path, "--id", "one")
    job.ok("run", job.spec_path, "--id", "one")
    job.ok("cp", "one:outputs", job.root / "out")
    words, = (job.root / "out").rglob("words")
    assert words.read_text() == "--batch_size 40 --lr 6.25e-05\n"
    derive(job, "5e-5/16*$global_batch", hyperparameters={"batch_size": 40})
    assert job.stoker("run", job.spec_path, "--id", "one").code == 3


def test_nothing_derived_is_a_plan_as_before(job):
    job.write(derive=None)
    plan, = job.ok("plan", job.spec_path, "--json").lines
    assert "derive" not in plan["spec"] and "derived" not in plan


# --- sweeps --------------------------------------------------------------------------------

def test_every_cell_of_a_sweep_has_its_own(job):
    job.write(derive={"hyperparameters.lr": "5e-5/32*$global_batch"},
              sweep={"list": [{}, {"hyperparameters.batch_size": 64}, {"hyperparameters.lr": 0.5},
                              {"hyperparameters.batch_size": 512, "derive.hyperparameters.lr": "$batch_size/1024"}]})
    plan, = job.ok("plan", job.spec_path, "--json").lines
    assert [cell.get("derived", [{}])[0].get("value") for cell in plan["cells"]] == ["5e-05", "0.0001", None, "0.5"]
    assert {row["field"]: row["new"] for row in plan["cells"][1]["differences"]} == {
        "hyperparameters.batch_size": 64, "hyperparameters.lr": 0.0001}
    job.ok("sweep", job.spec_path, "--id", "s")
    rows = job.ok("list", "--json").lines
    assert sorted(row["run"] for row in rows) == [f"s-{cell}-1" for cell in (1, 2, 3, 4)]
    for cell, lr in ((1, "5e-05"), (2, "0.0001"), (3, "0.5"), (4, "0.5")):
        job.ok("cp", f"s-{cell}-1:outputs", job.root / f"out{cell}")
        words, = (job.root / f"out{cell}").rglob("words")
        assert words.read_text().split()[-1] == lr


def test_a_sweep_may_have_its_own_derived_values_after_those_of_the_spec(job):
    job.write(hyperparameters={"batch_size": 32, "lr": 1, "warmup": 1}, derive={"hyperparameters.lr": "5e-5/32*$global_batch"},
              sweep={"grid": {"hyperparameters.batch_size": [32, 64]}, "derive": {"hyperparameters.warmup": "$lr*1000"}})
    plan, = job.ok("plan", job.spec_path, "--json").lines
    assert [[row["value"] for row in cell["derived"]] for cell in plan["cells"]] == [["5e-05", "0.05"], ["0.0001", "0.1"]]
    job.write(sweep={"grid": {"hyperparameters.batch_size": [32]}, "derive": {"sweep.repeat": "2"}})
    assert "'sweep.repeat' cannot be derived" in job.stoker("plan", job.spec_path).text


def test_a_cell_without_a_number_is_named_before_anything_begins(job):
    job.write(derive={"resources.nodes": "$batch_size/$parts"},
              sweep={"grid": {"hyperparameters.parts": [32, 0]}}, hyperparameters={"batch_size": 32, "parts": 32})
    for command in ("sweep", "plan"):
        result = job.stoker(command, job.spec_path)
        assert result.code == 3 and "cell 2 (parts=0)" in result.text and "cannot be divided" in result.text, str(result)
    job.write(derive={"resources.nodes": "$batch_size/$parts"},
              sweep={"grid": {"hyperparameters.parts": [32, 5]}}, hyperparameters={"batch_size": 32, "parts": 32})
    result = job.stoker("sweep", job.spec_path)
    assert result.code == 3 and "'resources.nodes' must be an integer, not '6.4'" in result.text
    assert job.ok("list", "--json").lines == []


# --- what is wrong -------------------------------------------------------------------------

@pytest.mark.parametrize("expression, name", [
    ("1 + env.HOME", "env"), ("$ENV.HOME", "$ENV"), ("[ $ ENV ]", "$ENV"), ("input", "input"), ("[inputs]", "inputs"), ("now", "now"),
    ("1|debug", "debug"), ("halt", "halt"), ("1|halt_error", "halt_error"), ("1|stderr", "stderr"), ("input_filename", "input_filename"),
    ('import "x" as x; 1', "import"), ('include "x"; 1', "include"), ("0|localtime", "localtime"), ("get_search_list", "get_search_list"),
    ('"x"|modulemeta', "modulemeta"), ("$__prog_args", "$__prog_args"), ('"a\\("\\(now)")"', "now"), (".[0,env:1]", "env")])
def test_what_reads_the_outside_is_refused_where_it_stands(job, expression, name):
    derive(job, expression)
    problem = refused(job, expression)
    assert problem["message"].startswith(f"'{name}', for 'hyperparameters.lr', is refused: it ")
    line = job.spec_path.read_text().splitlines()[problem["line"] - 1]
    if '"' not in expression:  # which JSON writes with a backslash: the place of the whole
        assert line[problem["column"] - 1:].startswith(name[0]) and line[problem["column"] - 1:].replace(" ", "").startswith(name)


def test_a_block_of_lines_has_its_own_places(job):
    job.spec_path.write_text("version: 1\nname: x\ncommand: [a]\nderive:\n  hyperparameters.lr: |\n    # a rate\n    5e-5 *\n      now\n")
    problem, = job.stoker("validate", job.spec_path, "--json").lines
    assert (problem["line"], problem["column"]) == (8, 7)


@pytest.mark.parametrize("expression, words", [
    ("nan", "gives nan;"), ("infinite", "gives an infinite number"), ("1e999", "gives an infinite number"), ("null", "gives null"),
    (".nothing.there", "gives null"), ("1,2", "gives more than one value"), ("empty", "gives no value"), ("[1]", "gives an array"),
    ("{}", "gives an object"), ('error("boom \\u001b[31m")', "fails: boom"), ("$batch_size/0", "cannot be divided"), ("1 +", "is invalid: syntax error"),
    ("(", "is invalid: syntax error"), ("$nothing", "'$nothing', for 'hyperparameters.lr', is not defined"),
    ("nothing(1)", "'nothing', for 'hyperparameters.lr', is not defined"), ('"$" + "{X}"', "holds '${'"), ('"x"*5000', "gives a longer string"),
    ('"a\\u0000b"', "gives a string with a zero byte"),
    ("[" * 300 + "]" * 300, "nested more than 256 deep"), ('"' + "x" * 5000 + '"', "longer than 4096 bytes"),
    ("$__loc__", "gives an object"), ("", "gives an object")])
def test_what_is_no_value_is_told(job, expression, words):
    assert words in refused(job, expression)["message"]


def test_names_that_cannot_be_known(job):
    derive(job, "$world_size", command=["torchrun", "--nproc_per_node", "gpu", "train.py"])
    problem = refused(job, "$world_size", command=["torchrun", "--nproc_per_node", "gpu", "train.py"])
    assert "$world_size, for 'hyperparameters.lr', cannot be known: only the job will know" in problem["message"]
    assert "neither batch_size nor" in refused(job, "$global_batch", hyperparameters={"lr": 1})["message"]


def test_a_whole_number_that_would_change_on_its_way_is_refused(job):
    for seed in (2**53 + 1, -2**53 - 1, -2**63):
        problem = refused(job, "$seed", hyperparameters={"seed": seed})
        assert f"$seed, for 'hyperparameters.lr', is {seed}: numbers" in problem["message"]
    derive(job, "$seed", hyperparameters={"seed": 2**53})
    assert derived(job) == {"hyperparameters.lr": str(2**53)}


@pytest.mark.parametrize("field, words", [
    ("nothing.x", "unknown field 'nothing.x' in 'derive'"), ("hyperparameters", "is no field, but has fields"),
    ("version", "cannot be derived"), ("sweep.repeat", "cannot be derived"), ("derive.name", "cannot be derived"),
    ("secrets.X", "cannot be derived"), ("env.A-B", "must be a variable name")])
def test_fields_that_cannot_be_derived(job, field, words):
    job.write(derive={field: "1"})
    result = job.stoker("validate", job.spec_path)
    assert result.code == 3 and words in result.text, str(result)


def test_secrets_are_not_to_be_seen(job):
    for expression in (".secrets", ".env.API_TOKEN", ".env_file", ".pass_env", ".derive", ".sweep"):
        problem = refused(job, expression, env={"API_TOKEN": "hush-hush"}, secrets={"S": "env:S"})
        assert "gives null" in problem["message"] and "hush" not in json.dumps(problem)


# --- limits --------------------------------------------------------------------------------

@pytest.mark.parametrize("expression", [
    "[range(1e9)]", "last(range(1e12))", "[limit(1e9; repeat(1))]", "def f: 1 + f; f", "def f: [.,.] | f; f", "until(false; .)",
    '"x" * 1e8 | . * 1e8', "def f(x): f(x | x); f(1)", '[range(1e7)] | map(tostring) | join(",") | fromjson | length'])
def test_hostile_expressions_end_within_their_limits(job, expression):
    message = refused(job, expression)["message"]
    assert "more than 64 MiB of memory" in message or "more than 1 s of processor time" in message or "too long" in message, message


def evaluate(request, **options):
    done = subprocess.run([DERIVE], input=json.dumps(request), capture_output=True, text=True, **options)
    return json.loads(done.stdout) if done.stdout else done.returncode


def test_the_program_has_nothing_though_nobody_checked_the_expression(tmp_path):
    """Its own walls, behind the refusals of `stoker`."""
    (tmp_path / "m.jq").write_text("def x: 1;")
    home = {"HOME": str(tmp_path), "SECRET": "hush", "PATH": os.environ["PATH"]}
    (tmp_path / ".jq").write_text("def from_home: 42;")

    def ask(expression):
        return evaluate({"expression": expression, "values": {}, "spec": {}}, env=home, cwd=tmp_path)
    assert ask("env|length") == ask("$ENV|length") == {"number": 0}
    assert ask("[inputs]|length") == {"number": 0} and ask("input") == {"error": "No more inputs"} or ask("input") == {"error": "break"}
    assert "invalid" in ask("from_home")
    assert not isinstance(ask('import "./m" as m; m::x'), dict) or "invalid" in ask('import "./m" as m; m::x')
    assert ask("1+1") == {"number": 2}


def test_the_program_is_missing(job, tmp_path):
    derive(job, "1")
    alone = tmp_path / "stoker"
    alone.hardlink_to(cli.BINARY) if cli.BINARY.stat().st_dev == tmp_path.stat().st_dev else alone.write_bytes(cli.BINARY.read_bytes())
    alone.chmod(0o755)
    done = subprocess.run([alone, "validate", job.spec_path], capture_output=True, text=True, env=cli.environment())
    assert done.returncode == 3 and "stoker's own 'stoker-derive' is missing" in done.stderr, done.stderr
