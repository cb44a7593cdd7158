"""docs/porting.md: each of its first four steps with its starter spec as `stoker init` writes it, on the
stand-ins for Neuron's tools (the fifth is docs/retraining.md, which e2e runs); what a reader would adapt is set on the command line."""

import re

import pytest
import stoker as cli
import yaml

PAGE = (cli.ROOT / "docs/porting.md").read_text()
STEPS = ["fit", "first-run", "fast", "converge"]
# What the stand-ins' script takes, on a machine of two cores.
ADAPTED = ["resources.instance=trn1.2xlarge", "health.device=false",
           "hyperparameters.seq_len=null", "hyperparameters.seq_length=4", "source.allow_dirty=true"]
SHORT = {
    "fit": [],
    "first-run": ["hyperparameters.max_steps=20", "hyperparameters.eval_steps=10", "hyperparameters.save_steps=10"],
    "fast": ["hyperparameters.max_steps=20", "hyperparameters.log_steps=null",
             "compile.overrides.hyperparameters.log_steps=null"],
    "converge": ["hyperparameters.max_steps=20", "hyperparameters.eval_steps=10", "hyperparameters.save_steps=10"],
}


@pytest.fixture
def port(project, neuron):
    neuron.train_script(project.source / "train.py")
    project.spec_path.unlink()

    def go(step, *sets, code=0):
        project.ok("init", "--template", step, f"{step}.yaml")
        words = [word for each in [*ADAPTED, *SHORT[step], *sets] for word in ("--set", each)]
        result = project.stoker("run", f"{step}.yaml", *words, env={"PATH": neuron.path})
        assert result.code == code, str(result)
        return project.status()
    return go


def test_the_page_names_the_starter_spec_of_each_step():
    assert re.findall(r"^    stoker init --template (\S+) (\S+)$", PAGE, re.M) == [
        (step, f"{step}.yaml") for step in [*STEPS, "retrain"]]


@pytest.mark.parametrize("step", STEPS)
def test_each_step_runs_with_its_starter_spec(port, step):
    status = port(step)
    ahead = step != "fit"
    assert [row["phase"] for row in status["attempts"]] == ["precompile"] * ahead + ["train"]
    assert status["progress"]["step"] == (20 if ahead else 2)


def test_a_model_that_does_not_fit_is_told_what_to_change(port, neuron):
    neuron.set(STANDIN_FAIL_GRAPHS="train_step",
               STANDIN_FAIL_TEXT="[NCC_EOOM001] The combined memory needed exceeds the high-bandwidth memory limit.")
    status = port("fit", code=1)
    assert "batch" in str(status["attempts"][-1]) and "NCC_EOOM001" in str(status), status


def test_a_shape_that_varies_ends_the_measurement(port):
    """The training is far too long to end well before it is stopped, on any machine."""
    status = port("fast", "hyperparameters.growing_shapes=true", "hyperparameters.max_steps=100000", code=5)
    assert "graph" in status["reason"], status["reason"]


def test_every_code_on_the_page_is_a_row_of_the_failure_table():
    rows = (cli.ROOT / "jobs/flow/failure_table_device.c").read_text() + \
        (cli.ROOT / "jobs/flow/failure_table_program.c").read_text()
    named = re.findall(r"\b(?:NCC_E\w+|NRT_\w+)\b", PAGE)
    assert len(named) > 10
    for code in named:
        assert any(f'"{code[:end]}"' in rows for end in range(9, len(code) + 1)), code


# ---- further starter specs ----------------------------------------------------------

ESTIMATOR = {
    "entry_point": "command", "source_dir": "source.path", "role": "sagemaker.role", "instance_type": "resources.instance",
    "instance_count": "resources.nodes", "hyperparameters": "hyperparameters", "metric_definitions": "metric_definitions",
    "use_spot_instances": "sagemaker.spot", "max_run": "sagemaker.max_runtime", "max_wait": "sagemaker.max_wait",
    "checkpoint_s3_uri": "checkpoint.url", "keep_alive_period_in_seconds": "sagemaker.warm_pool", "environment": "env",
    "volume_size": "sagemaker.volume", "subnets": "sagemaker.vpc.subnets",
    "security_group_ids": "sagemaker.vpc.security_groups", "tags": "tags", "image_uri": "image",
    "disable_profiler": "sagemaker.profiler"}
REFUSED = {"compiler_config": "compiles while the training runs", "debugger_hook_config": "always off"}


def places(text) -> dict:
    """The field below each name of an argument, by its path."""
    found, path, names = {}, [], []
    for line in text.splitlines():
        if said := re.match(r" *# Estimator: ([a-z_0-9, ]+)$", line):
            names = said[1].split(", ")
        elif field := re.match(r"( *)(?:# )?([a-z_]+):(.*)", line):
            path = [*path[:len(field[1]) // 2], field[2]]
            inner = re.findall(r"([a-z_]+): \[", field[3]) if len(names) > 1 else []
            for at, name in enumerate(names):
                found[name] = ".".join([*path, *inner[at:at + 1]])
            names = []
    return found


def test_the_estimator_has_each_argument_where_it_belongs():
    text = (cli.ROOT / "templates/estimator.yaml").read_text()
    named = places(text)
    assert {name: named.get(name) for name in ESTIMATOR} == ESTIMATOR
    for name in REFUSED:
        assert re.search(rf"^#   {name}\b", text, re.M)


@pytest.mark.parametrize("name", [*ESTIMATOR, *REFUSED])
def test_an_argument_of_an_estimator_leads_to_its_field(project, name):
    """What somebody pastes from Python is told where it goes, and what has no place, why."""
    here = ESTIMATOR.get(name) == name
    text = project.spec_path.read_text()
    if not here:
        project.spec_path.write_text(f"{text}{name}: 1\n")
    result = project.stoker("validate", project.spec_path)
    assert result.code == (0 if here else 3), str(result)
    if name in ESTIMATOR and not here:
        assert f"did you mean '{ESTIMATOR[name]}'" in result.cure, str(result)
    if name in REFUSED:
        assert f"unknown field '{name}'" in result.err and REFUSED[name] in result.cure, str(result)


TAKES_WORKERS = '''"""The stand-ins' script, which loads nothing that workers could load."""
import argparse
import runpy
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--num_workers", type=int, required=True)
sys.argv[1:] = parser.parse_known_args()[1]
runpy.run_path("model.py", run_name="__main__")
'''


def test_the_ladder_runs_with_its_starter_spec(project, neuron):
    """Each cell once: six rows, whose flags and batch decide about graphs, and whose workers do not."""
    neuron.train_script(project.source / "model.py")
    (project.source / "train.py").write_text(TAKES_WORKERS)
    project.spec_path.unlink()
    project.ok("init", "--template", "ladder", "ladder.yaml")
    sets = [*ADAPTED[:2], "hyperparameters.max_steps=30", "compile.overrides.hyperparameters.max_steps=3", "sweep.repeat=1"]
    words = [word for each in sets for word in ("--set", each)]
    plan, = project.ok("plan", "ladder.yaml", "--json", *words, env={"PATH": neuron.path}).lines
    assert [cell.get("equal_graphs") for cell in plan["cells"]] == [None, 1, None, None, None, 5]
    result = project.stoker("sweep", "ladder.yaml", "--id", "l", "--json", *words, env={"PATH": neuron.path})
    assert result.code == 0, str(result)
    rows = result.lines
    assert [row["run"] for row in rows] == [f"l-{cell}-1" for cell in range(1, 7)]
    assert [row["same_quality"] for row in rows] == [True] * 4 + [False] * 2
    verdicts = [row["verdict"] for row in rows]
    assert set(verdicts) <= {"baseline", "one run: no interval", "no steps measured", "no steps of the baseline"}, verdicts
    batch = yaml.safe_load((cli.ROOT / "templates/ladder.yaml").read_text())["hyperparameters"]["batch_size"]
    for row in rows:
        if "step_seconds_mean" in row:
            samples = 2 * batch * (1 if row["run"] in ("l-1-1", "l-2-1") else 2)
            assert row["samples_per_second"] == pytest.approx(samples / row["step_seconds_mean"], rel=1e-9)
