"""The ready pieces of configs/pipeline: each runs a job as a step, is killed and repeated, and the
job is not doubled. The units of systemd are read by systemd itself where it is installed."""

import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest
import stoker as cli
import yaml

PIECES = cli.ROOT / "configs/pipeline"
SCRIPT = """\
import os, time
with open(os.environ["TRACE"], "a") as file:
    print("started", file=file)
for step in range(1, 6):
    print(f"step: {step}", flush=True)
    while step == 3 and os.path.exists(os.environ["HOLD"]):
        time.sleep(0.05)
"""


def action():
    """The script of the Actions step, as the runner would write and start it."""
    step = yaml.safe_load((PIECES / "action.yml").read_text())["runs"]["steps"][0]
    assert step["shell"] == "bash" and set(step["env"]) == {"SPEC", "RUN_ID", "STOKER_STATE"}
    return step["run"]


PIECE = {
    "bash": lambda spec: ["/bin/bash", str(PIECES / "step.sh"), str(spec), "nightly"],
    "python": lambda spec: [sys.executable, str(PIECES / "step.py"), str(spec), "nightly"],
    "actions": lambda spec: ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", action()],
}


@pytest.fixture
def step(project, tmp_path):
    """Starts a piece in a session of its own, with the program on its PATH."""
    hold, trace, programs = tmp_path / "hold", tmp_path / "trace", tmp_path / "bin"
    programs.mkdir()
    (programs / "stoker").symlink_to(cli.BINARY)
    hold.touch()
    (project.source / "train.py").write_text(SCRIPT)
    project.write(compile=None, hyperparameters=None, env={"HOLD": str(hold), "TRACE": str(trace)})
    env = project.env(PATH=f"{programs}:/usr/bin:/bin", SPEC=str(project.spec_path), RUN_ID="nightly",
                      STOKER_STATE=str(project.state))

    def start(name):
        return subprocess.Popen(PIECE[name](project.spec_path), env=env, cwd=project.source, start_new_session=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield start, hold, trace, env
    hold.unlink(missing_ok=True)
    subprocess.run(["stoker", "stop", "nightly"], env=env, capture_output=True, check=False)


def kill_in_training(process, env):
    """The step and its driver, once the job has come to its hold."""
    cli.until(lambda: "step: 3" in subprocess.run(["stoker", "logs", "nightly"], env=env, capture_output=True, text=True,
                                                  check=False).stdout, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("name", PIECE)
def test_a_step_that_is_killed_and_repeated_does_not_double_the_job(project, step, name):
    start, hold, trace, env = step
    kill_in_training(start(name), env)
    hold.unlink()
    for _ in ("the rest of the run", "nothing more"):
        again = start(name)
        said = again.communicate(timeout=cli.SECONDS)
        assert again.returncode == 0, said
    assert trace.read_text() == "started\n"


@pytest.mark.parametrize("name", PIECE)
def test_a_step_fails_as_the_run_does(project, step, name):
    start, hold, _, _ = step
    hold.unlink()
    (project.source / "train.py").write_text("raise SystemExit('no data')\n")
    project.write(retry={"attempts": 1, "backoff": {"first": "0s", "max": "0s"}})
    process = start(name)
    out, err = process.communicate(timeout=cli.SECONDS)
    assert process.returncode == 1 and "no data" in out + err, (out, err)


def test_the_unit_continues_a_run_whose_driver_was_killed(project, step):
    start, hold, trace, env = step
    kill_in_training(start("bash"), env)
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str
    unit.read(PIECES / "stoker-resume.service")
    assert unit["Service"]["Type"] == "oneshot" and unit["Service"]["KillMode"] == "process"
    done = subprocess.run(shlex.split(unit["Service"]["ExecStart"]), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    hold.unlink()
    assert subprocess.run(["stoker", "wait", "nightly"], env=env, check=False).returncode == 0
    assert trace.read_text() == "started\n"


def test_systemd_takes_the_units(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        pytest.skip("systemd is not installed here")
    for name in ("stoker-resume.service", "stoker-resume.timer"):
        text = (PIECES / name).read_text()
        (tmp_path / name).write_text(text.replace("ExecStart=stoker", f"ExecStart={shutil.which('true')}"))
    done = subprocess.run([analyze, "--user", "verify", *map(str, tmp_path.iterdir())], capture_output=True, text=True,
                          env={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": os.environ["PATH"]}, check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines()
            if re.search(r"stoker-resume\.\w+:", line) and "man stoker" not in line]
    assert not said, said
