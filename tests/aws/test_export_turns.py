"""What `export` writes carries through real turns: the jobs of the steps are real drivers on the Batch stand-in, or
in processing jobs of the runner. Each visits the phases that `retrain` visits, and ends with its verdict, also where
drivers are ended early (by Batch and SageMaker; Airflow's tasks run on), attempts fail, or a gate says no.
STOKER_TEST_TURNS is the number of schedules."""

import contextlib
import json
import os
import random
import secrets
import signal
import threading
import time

import airflow_dag
import pytest
import stoker as cli
import test_export
from aws import REGION
from batch_job import ROLE, BatchJob
from pipeline_runner import Execution
from project import PYTHON
from test_export import DRIVER, MOMENT, PIPELINE_RUN, interpret, run_of

SCHEDULES = int(os.environ.get("STOKER_TEST_TURNS", "2"))
SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))
# A model is the list of files that it was given; the weeks' file says what is wrong with them, and what fails.
MODEL = '''
import json, os, pathlib, sys
what, data = sys.argv[1], pathlib.Path(os.environ.get("STOKER_DATA_DIR", "/nonexistent"))
once = pathlib.Path(os.environ["ONCE"]) / f"{os.environ['STOKER_RUN']}-{what}"
if what in os.environ["FAILS"].split(",") and not once.exists():
    once.touch()
    sys.exit(1)
if what == "train":
    files = {path.name: path.read_text() for path in data.iterdir()}
    folder = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"]) / "step-1"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps(files))
    (folder / "meta.json").write_text(json.dumps({"step": 1, "state_bytes": (folder / "state.json").stat().st_size}))
    print("step: 1", flush=True)
else:
    files = json.loads((pathlib.Path(os.environ["STOKER_MODEL"]) / "state.json").read_text())
    out = pathlib.Path(os.environ["STOKER_OUTPUT_DIR"])
    good = sum("bad" not in text for text in files.values()) / len(files)
    (out / ("metrics.json" if what == "evaluate" else "found.json")).write_text(json.dumps({"accuracy": good}))
'''


class Turns(BatchJob):
    """A spec whose every turn begins anew: its own data, workspace, state and models."""

    def __init__(self, root, aws):
        super().__init__(root, aws, compile=None)
        (self.source / "model.py").write_text(MODEL)
        self.write(command=[PYTHON, "model.py", "train"], hyperparameters=None,
                   metrics=[{"name": "step", "regex": "^step: ([0-9]+)"}],
                   driver={"image": DRIVER, "job_queue": "drivers", "role": ROLE})

    def anew(self, bad, fails):
        self.prefix = secrets.token_hex(4)
        self.url = {name: f"s3://bucket/{self.prefix}/{name}" for name in self.url}
        once = self.root / f"once-{self.prefix}"
        once.mkdir()
        place = f"s3://bucket/{self.prefix}"
        self.write(env={"ONCE": str(once), "FAILS": ",".join(fails)},
                   workspace=self.url["stoker"], checkpoint={"url": self.url["ckpt"]},
                   data={"url": f"{place}/drops", "settle": "0s", "fetch": True},
                   evaluate={"command": [PYTHON, "model.py", "evaluate"], "data": f"{place}/held"},
                   gate=[{"metric": "accuracy", "at_least": 0.9}],
                   infer={"command": [PYTHON, "model.py", "infer"], "output": f"{place}/found"},
                   promote={"url": f"{place}/models"})
        s3 = self.aws.client("s3")
        for key, text in (("drops/1.csv", "bad" if bad else "good"), ("held/1.csv", "held")):
            s3.put_object(Bucket="bucket", Key=f"{self.prefix}/{key}", Body=text.encode())

    def driver_environment(self):
        return self.env(PATH=f"{cli.BINARY.parent}:/usr/bin:/bin")

    def export(self, kind):
        done = self.ok("--region", REGION, "export", self.spec_path, "--to", kind)
        return done.out if kind == "airflow" else json.loads(done.out)

    def driver(self, run):
        """The number of its driver, which grows with each; 0: it has none."""
        said = self.stoker("--json", "status", run)
        return (said.lines[0].get("driver") or {"epoch": 0})["epoch"] if said.code == 0 else 0

    def visited(self, run):
        """Phases in order, and how the run ended."""
        phases = dict.fromkeys(row["phase"] for row in self.events(run, "attempt.submitted"))
        return list(phases), self.status(run)["exit_code"]


def schedule(number):
    draw = random.Random(f"{SEED} {number}")
    return {"bad": draw.random() < 0.3, "fails": [each for each in ("train", "evaluate", "infer") if draw.random() < 0.3],
            "ended": draw.choice([None, "train", "evaluate", "gate", "infer", "promote"]), "after": draw.uniform(0, 1.5)}


def end_group(job, driver, after):
    """As a service ends a job early: a SIGTERM to all of it, which is over when the last process is. The job has
    a driver by then, unless it is over before."""
    while not driver() and job.poll() is None:
        time.sleep(0.1)
    time.sleep(after)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGTERM)
        job.wait()
        while True:
            os.killpg(job.pid, 0)
            time.sleep(0.02)


def end_batch_job(aws, name, driver, after, over):
    """The same to the job of this name, once. The driver of the step before may not be gone from the state yet."""
    batch, before = aws.client("batch"), 0
    while not over.wait(0.1):
        found = batch.list_jobs(jobQueue="drivers", filters=[{"name": "JOB_NAME", "values": [name]}])["jobSummaryList"]
        if not found:
            before = driver()
        elif found[0]["status"] == "RUNNING" and driver() > before:
            over.wait(after)
            batch.terminate_job(jobId=found[0]["jobId"], reason="the machine is needed")
            return


@pytest.mark.long
@pytest.mark.parametrize("number", range(SCHEDULES))
def test_a_turn_is_the_same_turn_wherever_it_is_driven_from(aws, tmp_path, number):
    drawn = schedule(number)
    more = {"bad": drawn["bad"], "fails": drawn["fails"]}
    turns = Turns(tmp_path / "project", aws)
    turns.anew(**more)
    code = turns.stoker("retrain", turns.spec_path, "--id", "alone").code
    wanted = turns.visited("alone")
    assert wanted[1] == code == (5 if drawn["bad"] else 0)
    test_export.make_queue(aws)
    aws.push(DRIVER)

    turns.anew(**more)
    environment = turns.driver_environment()
    aws.settings(image_env={"*": turns.image_env, DRIVER: {**turns.sanitizer(), **{
        name: environment[name] for name in ("PATH", "STOKER_STATE")}}})
    over = threading.Event()
    name = f"stoker-{run_of('weekly')}-{drawn['ended']}"
    ender = threading.Thread(target=end_batch_job, args=(
        aws, name, lambda: turns.driver(run_of("weekly")), drawn["after"], over))
    ender.start()
    made, = interpret(aws, turns.export("step-functions"), "weekly")
    over.set()
    ender.join()
    assert made["status"] == "SUCCEEDED" and json.loads(made["output"])["exit_code"] == code, f"{drawn}\n{made}"
    assert turns.visited(run_of("weekly")) == wanted, drawn

    def end(phase, job, at):
        if phase == drawn["ended"] and at == 0:
            end_group(job, lambda: turns.driver(run), drawn["after"])
            return True
        return False
    turns.anew(**more)
    run = "fake-" + PIPELINE_RUN.rpartition("-")[2]
    execution = Execution(turns.export("sagemaker-pipeline"), PIPELINE_RUN.rpartition("-")[2], tmp_path / "jobs",
                          turns.driver_environment(), tmp_path, end)
    execution.run()
    assert turns.visited(run) == wanted, drawn

    turns.anew(**more)
    states = airflow_dag.run(airflow_dag.load(turns.export("airflow")), MOMENT, turns.driver_environment())
    assert turns.visited(MOMENT.strftime("fake-%Y%m%dt%H%M%S")) == wanted, (drawn, states)
    assert states["promote"] == ("skipped" if code else "success")
