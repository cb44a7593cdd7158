"""docs/porting.md: each of its four steps with its starter spec as `stoker init` writes it, on the
stand-ins for Neuron's tools; what a reader would adapt is set on the command line."""

import re

import pytest
import stoker as cli

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
        (step, f"{step}.yaml") for step in STEPS]


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
