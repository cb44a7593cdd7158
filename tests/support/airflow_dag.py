"""Runs the text of a DAG as Airflow would, as far as such a text goes: its modules are replaced by a BashOperator
and a DAG that know nothing else. That the real ones (Airflow 3.3.2) run it alike was tried by hand with
tests/soak/airflow_dag.py."""

import re
import subprocess
import sys
import types
from datetime import datetime

import jinja2


class AirflowException(Exception):
    """A task has failed, and is tried again."""


class AirflowFailException(AirflowException):
    """It is not."""


class AirflowSkipException(AirflowException):
    """What follows is skipped."""


class BashOperator:
    """`execute` is that of Airflow's own, as far as exit codes go; env and cwd are given."""

    def __init__(self, *, task_id, bash_command, cwd, skip_on_exit_code, retries, retry_delay):
        self.task_id, self.bash_command, self.cwd = task_id, bash_command, cwd
        self.skip_on_exit_code, self.retries, self.retry_delay = skip_on_exit_code, retries, retry_delay
        self.following = []
        DAG.open.tasks.append(self)

    def __rshift__(self, other):
        self.following.append(other)
        return other

    def execute(self, context):
        command = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(self.bash_command).render(context)
        code = subprocess.run(["bash", "-c", command], cwd=self.cwd, env=context["env"], check=False).returncode
        if code == self.skip_on_exit_code:
            raise AirflowSkipException(f"Bash command returned exit code {code}. Skipping.")
        if code != 0:
            raise AirflowException(f"Bash command failed. The command returned a non-zero exit code {code}.")


class DAG:
    open = None

    def __init__(self, **settings):
        self.settings, self.tasks = settings, []

    def __enter__(self):
        DAG.open = self
        return self

    def __exit__(self, *_):
        DAG.open = None


def load(text: str) -> DAG:
    names = {"AirflowException": AirflowException, "AirflowFailException": AirflowFailException,
             "AirflowSkipException": AirflowSkipException}
    modules = {"pendulum": {"datetime": lambda *numbers, tz: datetime(*numbers)}, "airflow.sdk": {"DAG": DAG},
               "airflow.sdk.exceptions": names, "airflow.providers.standard.operators.bash": {"BashOperator": BashOperator}}
    parents = {name[:dot.start()] for name in modules for dot in re.finditer(r"\.", name)}
    before = {name: sys.modules.get(name) for name in {*modules, *parents}}
    for name in before:
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(modules.get(name, {}))
    try:
        found = {"__name__": "dag"}
        exec(compile(text, "dag.py", "exec"), found)  # noqa: S102 - it is what is tested
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return found["dag"]


def run(dag: DAG, moment: datetime, environment: dict) -> dict:
    """{task: "success" | "skipped" | "failed" | "upstream_failed"} of a run."""
    states, dag_run = {}, types.SimpleNamespace(logical_date=moment, run_after=moment)
    first, = [task for task in dag.tasks if not any(task in each.following for each in dag.tasks)]
    task, before = first, "success"
    while task:
        states[task.task_id] = before = (attempt(task, {"dag_run": dag_run, "env": environment})
                                         if before == "success" else {"failed": "upstream_failed"}.get(before, before))
        task = task.following[0] if task.following else None
    return states


def attempt(task: BashOperator, context: dict) -> str:
    for _ in range(task.retries + 1):
        try:
            task.execute(context)
            return "success"
        except AirflowSkipException:
            return "skipped"
        except AirflowFailException:
            return "failed"
        except AirflowException:
            continue
    return "failed"
