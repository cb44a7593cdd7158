"""`loggers`: ids by which wandb and MLflow go on with one run in every attempt, and never in phase 1."""

import pytest

NAMES = ("WANDB_RUN_ID", "WANDB_RESUME", "MLFLOW_RUN_ID")
SHOW = f"""
import os, pathlib
names = {NAMES!r}
line = " ".join(f"{{name}}={{os.environ.get(name)}}" for name in names)
with open({{path!r}}, "a") as file:
    file.write(f"{{os.environ['STOKER_PHASE']}} {{os.environ['STOKER_ATTEMPT']}} {{line}}\\n")
if os.environ["STOKER_PHASE"] == "train" and os.environ["STOKER_ATTEMPT"] == "1":
    raise RuntimeError("once")
"""
BOTH = ["wandb", "mlflow"]


def told(project, *, env=None, spec_env=None, **changes) -> dict:
    """{(phase, attempt): [value or None of each of NAMES]} as the script has found them."""
    path = project.root / "told"
    project.extra(SHOW.replace("{path!r}", repr(str(path))))
    project.write(env=spec_env, **changes)
    project.run("--id", "one", env=env or {})
    rows = {}
    for line in path.read_text().splitlines():
        phase, attempt, *values = line.split()
        found = [value.partition("=")[2] for value in values]
        rows[phase, int(attempt)] = [None if value == "None" else value for value in found]
    return rows


def test_the_ids_are_stable_over_attempts_and_absent_in_phase_1(project):
    assert told(project, loggers=BOTH) == {("precompile", 1): [None, None, None],
                                           ("train", 1): ["one", "allow", "one"], ("train", 2): ["one", "allow", "one"]}


def test_nothing_is_set_for_what_the_spec_does_not_name(project):
    assert set(map(tuple, told(project).values())) == {(None, None, None)}


def test_only_the_loggers_that_are_named_get_an_id(project):
    rows = told(project, loggers=["wandb"])
    assert rows["train", 1] == rows["train", 2] == ["one", "allow", None]


def test_a_value_of_ones_own_stays_and_is_withheld_in_phase_1(project):
    own = "0123456789abcdef0123456789abcdef"
    rows = told(project, loggers=BOTH, env={"WANDB_RESUME": "must"}, pass_env=["WANDB_RESUME"], spec_env={"MLFLOW_RUN_ID": own})
    assert rows == {("precompile", 1): [None, None, None],
                    ("train", 1): ["one", "must", own], ("train", 2): ["one", "must", own]}


def test_plan_shows_them_as_a_difference_of_the_phases(project):
    project.write(loggers=BOTH)
    fields = {row["field"]: row for row in project.plan()["difference"]}
    assert {f"env.{name}" for name in NAMES} <= set(fields)
    assert fields["env.WANDB_RUN_ID"]["train"] == "<id>"


@pytest.mark.parametrize("env, warned", [({}, True), ({"MLFLOW_RUN_ID": "0123456789abcdef"}, False)])
def test_mlflow_is_warned_of_without_a_run_of_its_own(project, env, warned):
    project.write(loggers=["mlflow"], env=env)
    result = project.ok("validate", project.spec_path)
    assert ("start_run()" in result.err + result.out) == warned, str(result)


def test_an_unknown_logger_is_an_error(project):
    project.write(loggers=["comet"])
    result = project.stoker("validate", project.spec_path)
    assert result.code == 3 and "wandb" in result.err + result.out, str(result)
