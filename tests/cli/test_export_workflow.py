"""`export SPEC --to …`: every definition has a step for each phase that a retraining of this spec has, all of
them one command; what cannot be driven from there is refused, and nothing secret is written."""

import ast
import json

import pytest

PHASES = ["precompile", "verify", "train", "evaluate", "gate", "infer", "promote"]
KINDS = ("step-functions", "sagemaker-pipeline", "airflow")
STATE = ("--state", "s3://bucket/state", "--region", "eu-west-1")


@pytest.fixture
def turn(project):
    project.write(name="M5.Text_encoder", engine="batch", workspace="s3://bucket/stoker", image="registry/trainer:1",
                  resources={"instance": "trn1.2xlarge"}, health={"device": False},
                  compile={"kind": "jax", "cache_url": "s3://bucket/cache"}, checkpoint={"url": "s3://bucket/ckpt"},
                  data={"url": "s3://bucket/clicks/"},
                  evaluate={"command": ["python3", "evaluate.py"], "metric": "accuracy", "max_drop": "0.1%"},
                  infer={"command": ["python3", "infer.py"], "output": "s3://bucket/embeddings/"},
                  schedule={"cron": "0 3 * * MON", "timezone": "Europe/Berlin"},
                  driver={"image": "registry/driver:1", "job_queue": "drivers",
                          "role": "arn:aws:iam::123456789012:role/driver"},
                  batch={"job_queue": "trn1"}, aws={"region": "eu-west-1"})
    return project


def definition(project, kind, *words):
    return json.loads(project.ok(*STATE, "export", "stoker.yaml", "--to", kind, *words).out)


def constants(text):
    """The names that the module of a DAG binds to plain values."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            found[node.targets[0].id] = ast.literal_eval(node.value)
    return found


def processing(steps):
    for step in steps:
        if step["Type"] == "Processing":
            yield step
        for more in ("IfSteps", "ElseSteps"):
            yield from processing(step.get("Arguments", {}).get(more, []))


def phases(project, *words):
    """Of each kind, in order."""
    states = definition(project, "step-functions", *words)["States"]
    tasks = [state["Parameters"]["Parameters"]["phase"] for state in states.values()
             if state.get("Resource", "").endswith("submitJob.sync")]
    steps = [step["Name"] for step in processing(definition(project, "sagemaker-pipeline", *words)["Steps"])]
    dag = constants(project.ok(*STATE, "export", "stoker.yaml", "--to", "airflow", *words).out)["PHASES"]
    assert tasks == steps == dag
    return tasks


def test_a_step_for_each_phase_that_there_is(turn):
    assert phases(turn) == PHASES
    turn.write(infer=None)
    assert phases(turn, "--set", "compile.mode=jit") == ["train", "evaluate", "gate", "promote"]
    turn.write(evaluate=None, compile=None, promote={"when": "always"})
    assert phases(turn) == ["train", "promote"]


def test_each_step_is_the_same_command(turn):
    states = definition(turn, "step-functions", "--set", "retry.attempts=3")["States"]
    words = states["register it"]["Parameters"]["ContainerProperties"]["Command"]
    common = ["stoker", *STATE, "retrain", "stoker.yaml", "--set", "retry.attempts=3", "--id"]
    assert words == [*common, "Ref::run", "--until", "Ref::phase"]
    steps = definition(turn, "sagemaker-pipeline", "--set", "retry.attempts=3")["Steps"]
    name = {"Std:Join": {"On": "-", "Values": ["m5-text-encoder", {"Get": "Execution.PipelineExecutionId"}]}}
    outcome = "/opt/ml/processing/outcome/outcome.json"
    for step in processing(steps):
        found = ["stoker", *step["Arguments"]["AppSpecification"]["ContainerArguments"]]
        assert found == [*common, name, "--until", step["Name"], "--outcome", outcome]
    found = constants(turn.ok(*STATE, "export", "--to", "airflow", "--set", "retry.attempts=3").out)
    assert found["COMMAND"] == " ".join(common[:-1]) + " "
    assert found["ID"].startswith("m5-text-encoder-{{") and found["FOLDER"] == str(turn.source)


def test_words_reach_bash_and_jinja_as_they_are(turn):
    (turn.source / "it's {{ mine }}").mkdir()
    spec = turn.spec_path.rename(turn.source / "it's {{ mine }}/a spec.yaml")
    text = turn.ok("export", spec, "--to", "airflow").out
    compile(text, "dag.py", "exec")
    found = constants(text)
    assert found["FOLDER"] == str(turn.source)
    rendered = found["COMMAND"].replace('{{ "{" }}', "{")
    assert "{{" not in found["COMMAND"].replace('{{ "{" }}', "")
    import shlex
    assert shlex.split(rendered) == ["stoker", "retrain", str(spec)]


def test_a_file_is_written_whole_and_told(turn):
    for kind in KINDS:
        assert "the spec expands" not in turn.ok(*STATE, "export", "--to", kind).err
        row, = turn.ok("--json", *STATE, "export", "stoker.yaml", "--to", kind, "-o", f"{kind}.out").lines
        assert row == {"to": kind, "path": f"{kind}.out", "steps": PHASES}
        text = (turn.source / f"{kind}.out").read_text()
        assert text == turn.ok(*STATE, "export", "--to", kind).out
        assert turn.ok(*STATE, "export", "stoker.yaml", "again", "--to", kind).out == "again\n"
        assert (turn.source / "again").read_text() == text


def test_no_secret_is_in_any_of_them(turn):
    turn.write(secrets={"WANDB_API_KEY": "secretsmanager:wandb"}, env={"NOTE": "${HIDDEN_WORD}"},
               tags={"token": "tag-word"})
    for kind in KINDS:
        made = turn.ok(*STATE, "export", "--to", kind, env={"HIDDEN_WORD": "hunter2"})
        assert "the spec expands HIDDEN_WORD: each step needs it in its environment" in made.err
        for word in ("hunter2", "secretsmanager", "wandb", "tag-word"):
            assert word not in made.out + made.err
        refused = turn.stoker(*STATE, "export", "--to", kind, "--set", "env.API_TOKEN=hunter2", env={"HIDDEN_WORD": "x"})
        assert refused.code == 2 and "secrets" in refused.err and "hunter2" not in refused.out + refused.err


@pytest.mark.parametrize("change, words, code, said", [
    ({"driver": {"job_queue": "drivers", "role": "arn:aws:iam::123456789012:role/driver"}}, (), 3, "driver.image"),
    ({"driver": {"image": "registry/driver:1", "role": "arn:aws:iam::123456789012:role/driver"}}, (), 3, "driver.job_queue"),
    ({"driver": {"image": "registry/driver:1", "job_queue": "drivers"}}, (), 3, "driver.role"),
    ({"driver": None}, (), 3, "driver.image"),
    ({"engine": "local", "workspace": None, "batch": None, "image": None}, (), 4, "container"),
    ({}, ("--state", "sqlite:/tmp/state"), 4, "--state s3://"),
    ({}, ("-",), 2, "stdin|read a spec"),
    ({}, ("missing.yaml",), 3, "missing.yaml"),
    ({}, ("--json",), 2, "--output"),
    ({}, ("a.yaml", "b", "-o", "c"), 2, "two places"),
    ({}, ("--to", "cron"), 2, "step-functions"),
])
def test_what_cannot_be_is_refused(turn, change, words, code, said):
    turn.write(**change)
    result = turn.stoker(*STATE, "export", "--to", "step-functions", *words)
    assert result.code == code and any(word in result.err for word in said.split("|")), str(result)
    assert result.out == "" or "--json" in words


def test_a_word_that_is_too_long_for_a_processing_job_is_refused(turn):
    """SageMaker's model: 256 characters."""
    def export(count):
        words = "tags.note=".ljust(count, "x")
        return turn.stoker(*STATE, "export", "--to", "sagemaker-pipeline", "--set", words)
    assert export(256).code == 0
    result = export(257)
    assert result.code == 4 and "has 257 characters" in result.err and result.out == "", str(result)


def test_a_run_takes_no_overrides(turn):
    result = turn.stoker("export", "@last", "--to", "csv", "--set", "resources.nodes=2")
    assert result.code == 2 and "--set" in result.err
