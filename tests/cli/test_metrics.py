"""`stoker metrics`: every reading that the logs of a run hold, bit for bit, whatever happens to the
run, its agents and the files beside the logs."""

import csv
import io
import os
import random
import re
import signal
import time
from datetime import datetime, timedelta

import crash
import pytest
import readings
from project import PYTHON, Project
from terminal import Terminal

SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))


class Readings(Project):
    """A training that prints many numbers, and may die on the way."""

    def __init__(self, root, steps=200, dies=(), **changes):
        super().__init__(root)
        self.workspace = root / "workspace"
        (self.source / "train.py").write_text(readings.TRAIN)
        self.write(**{"workspace": str(self.workspace), "compile": {"kind": "none"}, "metrics": readings.METRICS,
                      "env": {"STEPS": str(steps), "DIES": str(list(dies)), "KEPT": "15"}, "hyperparameters": None,
                      "retry": {"attempts": 4, "backoff": {"first": "0s", "max": "0s"}}, **changes})

    def folder(self, run="one"):
        return self.workspace / "runs" / run

    def series(self, attempt=1, node=0, run="one"):
        return self.folder(run) / f"train-{attempt}/node-{node}/series"

    def holds(self, nodes=1, attempts=1, run="one"):
        """What is printed is what the logs say; the rows."""
        rows = readings.printed(self.ok("metrics", run, "--csv").out)
        readings.same(rows, readings.of_run(self.folder(run), nodes, attempts))
        return rows


@pytest.fixture
def trained(tmp_path):
    """A run whose script dies once, and is taken up before that."""
    job = Readings(tmp_path / "project", steps=120, dies=[70])
    job.run("--id", "one")
    return job


def test_100000_readings_with_two_forced_retries(tmp_path):
    job = Readings(tmp_path / "project", steps=33500, dies=[15000, 25000])
    job.run("--id", "one")
    assert job.attempts("one") == [("train", 1), ("train", 2), ("train", 3)]
    rows = job.holds(attempts=3)
    assert len(rows) > 100000
    marks = [row[-1] for row in rows]
    # 15 steps each time, of three numbers; those of a thousandth step have one more.
    assert marks.count("replayed") == 2 * 15 * 3 + 2 and marks.count("superseded") == 2 * 15 * 3 + 2
    curve = [row[2] for row in rows if row[3] == "step" and row[-1] != "superseded"]
    assert curve == list(range(1, 33501))
    blocks = [readings.kept(job.series(attempt).read_bytes()) for attempt in (1, 2, 3)]
    points = sum(count for each in blocks for _, _, count in each)
    assert points > 0 and sum(job.series(n).stat().st_size for n in (1, 2, 3)) <= 40 * points
    assert job.series().stat().st_mode & 0o777 == 0o600


def test_what_is_asked_for_is_what_is_printed(trained):
    rows = trained.holds(attempts=2)
    assert {row[-1] for row in rows} == {"", "replayed", "superseded"}
    csv = trained.ok("metrics", "one", "loss", "accuracy", "--csv").out
    assert readings.printed(csv) == [row for row in rows if row[3] in ("loss", "accuracy")]
    assert readings.printed(trained.ok("metrics", "one", "--attempt", "2", "--csv").out) == [row for row in rows if row[0] == 2]
    assert trained.ok("metrics", "one", "--node", "1", "--csv").out == "attempt,node,at,step,name,value,mark\n"
    lines = trained.ok("--json", "metrics", "one").lines
    assert len(lines) == len(rows)
    for line, (attempt, node, step, name, value, mark) in zip(lines, rows):
        assert (line["attempt"], line["node"], line.get("step"), line["name"]) == (attempt, node, step, name)
        assert readings.bits(float(line["value"])) == value
        assert (line["counts"], line.get("replayed", False)) == (mark != "superseded", mark == "replayed" or
                                                                  (mark == "superseded" and attempt > 1))
    text = trained.ok("metrics").out
    assert re.search(r"^\d{4}-\d\d-\d\dT[\d:.]+Z +1 +0 +50 +loss +6\.25e-05$", text, re.MULTILINE)
    assert re.search(r"Z +1 +0 +57 +loss +6\.25e-05  superseded$", text, re.MULTILINE)
    assert re.search(r"Z +2 +0 +57 +loss +6\.25e-05  replayed$", text, re.MULTILINE)
    assert text.splitlines()[0].split() == ["TIME", "ATTEMPT", "NODE", "STEP", "NAME", "VALUE"]
    # Whole, though the pattern cuts them.
    values = {row["value"] for row in lines if row["name"] == "loss"}
    assert {6.25e-05, -0.1, "nan", "inf"} <= values


def test_two_nodes(tmp_path):
    job = Readings(tmp_path / "project", steps=300, dies=[100], resources={"nodes": 2})
    job.run("--id", "one")
    rows = job.holds(nodes=2, attempts=2)
    assert {row[:2] for row in rows} >= {(1, 0), (2, 0), (2, 1)}


def test_a_run_in_progress(tmp_path):
    job = Readings(tmp_path / "project")
    gate = tmp_path / "gate"
    job.write(env={**job.spec["env"], "GATE": str(gate)})
    script = readings.TRAIN.replace("    if number % 1000", "    sys.stdout.flush()\n    while number == 100 and not "
                                    "os.path.exists(os.environ['GATE']): time.sleep(.01)\n    if number % 1000")
    (job.source / "train.py").write_text("import time\n" + script)
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    try:
        # The agent keeps them by itself, without a question, soon after they came.
        end = time.monotonic() + crash.PATIENCE
        while not job.series().exists() or sum(n for _, _, n in readings.kept(job.series().read_bytes())) < 298:
            assert time.monotonic() < end
            time.sleep(0.05)
        rows = job.holds()
        assert rows[-1][2:4] == (100, "lr") and {row[-1] for row in rows} == {""}
    finally:
        gate.touch()
        assert driver.wait(crash.PATIENCE) == 0
        driver.communicate()
    assert job.holds()[-1][2:4] == (200, "accuracy")


@pytest.mark.parametrize("harm", ["gone", "cut", "torn", "foreign", "of another run", "a folder", "a pipe", "not to be read",
                                  "longer than the log"])
def test_whatever_is_in_the_file_of_a_series_nothing_is_lost(trained, harm):
    before = trained.holds(attempts=2)
    path = trained.series()
    whole = path.read_bytes()
    assert len(whole) > 500
    if harm == "cut":
        path.write_bytes(whole[:len(whole) // 2])
    elif harm == "torn":
        path.write_bytes(whole[:200] + bytes(50) + whole[250:])
    elif harm == "foreign":
        path.write_bytes(os.urandom(5000))
    elif harm == "of another run":
        other = Readings(trained.root / "other", steps=50)
        other.run("--id", "two")
        path.write_bytes(other.series(run="two").read_bytes())
    elif harm == "not to be read":
        path.chmod(0)
    elif harm == "longer than the log":
        path.write_bytes(whole + trained.series(2).read_bytes())
    else:
        path.unlink()
    if harm == "a folder":
        path.mkdir()
    if harm == "a pipe":
        os.mkfifo(path)
    assert trained.holds(attempts=2) == before


def test_a_log_that_was_cut_has_no_more_readings_than_it_holds(trained):
    log = trained.folder() / "train-2/node-0/log"
    log.write_bytes(log.read_bytes()[:len(log.read_bytes()) // 2])
    trained.holds(attempts=2)


def test_a_run_without_metrics_says_so(tmp_path):
    job = Readings(tmp_path / "project", steps=5, metrics=None)
    job.run("--id", "one")
    said = job.stoker("metrics", "one")
    assert said.code == 4 and "the spec of run one has no metrics" in said.err and "stoker help metrics" in said.cure
    assert job.stoker("metrics", "two").code == 9


def test_wrong_questions(trained):
    said = trained.stoker("metrics", "one", "lost")
    assert said.code == 2 and "run one has no metric 'lost'" in said.err and "loss, step, lr, accuracy" in said.cure
    assert trained.stoker("metrics", "one", "--attempt", "x").code == 2
    said = trained.stoker("--json", "metrics", "one", "--csv")
    assert said.code == 2 and "exclude each other" in said.err


def test_a_pattern_that_matches_nothing_is_no_error(tmp_path):
    job = Readings(tmp_path / "project", steps=5, metrics=[{"name": "never", "regex": "nothing of that: ([0-9]+)"}])
    job.run("--id", "one")
    said = job.ok("metrics", "one")
    assert said.out.count("\n") == 1 and "no such number" in said.err


def test_numbers_of_phase_1_never_enter(project):
    project.write(workspace=str(project.root / "workspace"))
    project.run("--id", "one")
    assert "step: 2 loss" in project.ok("logs", "one", "--phase", "precompile").out
    lines = project.ok("--json", "metrics", "one", "step").lines
    assert [line["value"] for line in lines] == [5, 10, 15, 20]


def killed(tmp_path, seed):
    """A run whose agents and drivers are killed at drawn moments, and what is said of it in the end."""
    chance = random.Random(seed)
    site = crash.Site(tmp_path / "site", compile={"kind": "none"}, hyperparameters={"max_steps": 60},
                      workspace=str(tmp_path / "workspace"), metrics=readings.METRICS,
                      retry={"attempts": 9, "without_progress": 9, "backoff": {"first": "0s", "max": "0s"}})
    site.also("plain = step\ndef step(number, args):\n    plain(number, args)\n    for i in range(200):\n"
              "        print(f'step: {number} loss: {i / number!r} lr: {5e-5 / number!r}, {i}')\n"
              "    sys.stdout.flush()\n")
    run = site.one("one")
    run.sets = [each for each in run.sets if not each.startswith("compile.")]
    driver = run.drive()
    try:
        for _ in range(chance.randrange(1, 4)):
            run.wait_for(lambda: run.agents() or driver.process.poll() is not None)
            time.sleep(chance.uniform(0, 1.2))
            if driver.process.poll() is not None:
                break
            for agent in run.agents() if chance.random() < 0.7 else []:
                os.kill(agent, signal.SIGKILL)
            if chance.random() < 0.5:
                driver.process.kill()
                driver.process.wait()
                driver = run.resume()
        assert driver.process.wait(crash.PATIENCE) == 0, run.story()
        run.wait_for(lambda: not run.processes())
        rows = readings.printed(site.ok("metrics", "one", "--csv").out)
        attempts = max(row["attempt"] for row in run.events("attempt.intended"))
        readings.same(rows, readings.of_run(tmp_path / "workspace/runs/one", 1, attempts))
        steps = sorted({row[2] for row in rows if row[-1] != "superseded" and row[3] == "step"})
        assert steps == list(range(1, 61))
    finally:
        site.clear()


@pytest.mark.parametrize("seed", [SEED * 1000 + each for each in range(4)])
def test_kills_at_drawn_moments_lose_nothing(tmp_path, seed):
    killed(tmp_path, seed)


DEFINITIONS = [{"Name": "train:loss, \"smooth\"", "Regex": "loss: ([0-9\\.]+)"}, {"Name": "step", "Regex": "^step: ([0-9]+)"}]


def test_metric_definitions_word_for_word(tmp_path):
    job = Readings(tmp_path / "project", steps=30, metrics=[readings.METRICS[2]], metric_definitions=DEFINITIONS)
    job.run("--id", "one")
    log = readings.of_log((job.folder() / "train-1/node-0/log").read_bytes(), ("loss", "step", "lr"))
    rows = readings.printed(job.ok("metrics", "one", "--csv").out)
    names = {"loss": DEFINITIONS[0]["Name"], "step": "step", "lr": "lr"}
    assert sorted(row[2:5] for row in rows if row[2]) == sorted((step, names[name], value) for step, name, value in log if step)
    assert job.ok("metrics", "one", DEFINITIONS[0]["Name"], "--csv").out.count("\n") == 32
    assert job.status("one")["metrics"][DEFINITIONS[0]["Name"]] == -0.1  # whole


STEADY = """import time
for number in range(1, 41):
    time.sleep(0.05)
    print(f"WORDS", flush=True)
"""


def steady(tmp_path, words, **changes):
    job = Readings(tmp_path / "project", **changes)
    (job.source / "train.py").write_text(STEADY.replace("WORDS", words))
    job.run("--id", "one")
    return job, job.status("one"), job.ok("status", "one").out


def near(one, other):
    assert abs(one - other) <= 1e-9 * abs(other), (one, other)


def test_samples_of_a_step_by_the_spec(tmp_path):
    _, status, text = steady(tmp_path, "step: {number}", samples_per_step=512)
    assert status["progress"]["step"] == 40 and status["progress"]["rate"] > 0
    near(status["progress"]["samples_per_second"], 512 * status["progress"]["rate"])
    near(status["throughput"]["samples_per_second"], 512 * status["throughput"]["mean"])
    assert re.search(r"progress: .* steps/s, [\d.e+]+ samples/s", text) and re.search(r"throughput: .* samples/s over", text)


def test_a_terminal_shows_local_times_in_80_columns(tmp_path):
    job, _, _ = steady(tmp_path, "step: {number}")
    wanted = [datetime.fromisoformat(row["at"]) + timedelta(hours=9)
              for row in csv.DictReader(io.StringIO(job.ok("metrics", "one", "--csv").out))]
    with Terminal("metrics", "one", env=job.env(TERM="xterm", TZ="JST-9"), cwd=job.source) as one:
        assert one.finish() == 0
        rows = one.raw.replace("\r", "").splitlines()
    assert rows[0].split() == ["TIME", "ATTEMPT", "NODE", "STEP", "NAME", "VALUE"]
    assert [row[:15].split()[-1] for row in rows[1:]] == [f"{at:%H:%M:%S}" for at in wanted]
    assert max(map(len, rows)) <= 80 - len("  superseded")


def test_samples_that_the_log_counts(tmp_path):
    metrics = [readings.METRICS[1], {"name": "samples", "regex": "seen ([0-9]+)"}]
    job, status, _ = steady(tmp_path, "step: {number} seen {7 + 48 * number}", metrics=metrics)
    near(status["throughput"]["samples_per_second"], 48 * status["throughput"]["mean"])
    assert [row["event"] for row in job.events("one", "train.progress") if row.get("samples_per_second")]


def test_epochs_where_there_are_no_steps(tmp_path):
    metrics = [{"name": "epoch", "regex": "epoch ([0-9.]+)"}, {"name": "loss", "regex": "loss ([0-9.]+)"}]
    job, status, text = steady(tmp_path, "epoch {number / 4} loss {1 / number}", metrics=metrics, hyperparameters={"epochs": 10})
    assert (status["progress"]["step"], status["progress"]["of"], status["progress"]["unit"]) == (10, 10, "epoch")
    assert "progress:   epoch 10 of 10" in text and "steps/s" not in text
    rows = readings.printed(job.ok("metrics", "one", "--csv").out)
    assert rows[0] == (1, 0, 0, "epoch", readings.bits(0.25), "") and rows[-1] == (1, 0, 10, "loss", readings.bits(1 / 40), "")
    # A step is what counts, if there is one.
    job.write(metrics=[*metrics, {"name": "step", "regex": "0.([0-9]+)$"}])
    job.run("--id", "two")
    assert "unit" not in job.status("two")["progress"]


def test_epochs_say_nothing_of_a_resume(tmp_path):
    """A checkpoint is numbered by steps, so its number and an epoch are not compared."""
    metrics = [{"name": "epoch", "regex": "rank ([0-9]+) of"}, {"name": "loss", "regex": "loss: ([0-9.]+)"}]
    job = Readings(tmp_path / "project", steps=120, dies=[70], metrics=metrics)
    job.run("--id", "one")
    continuity, = job.events("one", "train.continuity")
    assert continuity["continuity"] == "unverified" and "epochs" in continuity["reason"]
