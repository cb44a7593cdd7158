"""The readings of runs with `launcher: toolkit`: no agent keeps them, so the driver does, from the service's
log. They are held against what this file reads from that log by itself, after kills of the driver at drawn
moments, with lines that the service loses, and with what is kept damaged."""

import os
import random
import signal
import time

import pytest
import readings
from bucket_job import BUCKET
from test_toolkit import ToolkitJob, neuron  # noqa: F401 (a fixture)

GROUP = "/aws/sagemaker/TrainingJobs"
SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))
METRICS = [
    {"name": "loss", "regex": "loss: ([0-9.]+)"},
    {"name": "step", "regex": "^step: ([0-9]+)"},
    {"name": "lr", "regex": r"lr: (\S+?),"},
    {"name": "accuracy", "regex": "accuracy: ([0-9.eE+-]+)"},
]

# Goes on until the file ENOUGH is there, then five steps more; LEAST lines in any case.
TRAIN = r'''
import os, time

if os.environ.get("LOCAL_RANK", "0") != "0":
    raise SystemExit(0)
rank, second = os.environ.get("GROUP_RANK", "0"), not os.environ["TRAINING_JOB_NAME"].endswith("-train-1")
enough = "ENOUGH-2" if second else "ENOUGH"


def say(text):
    os.write(1, text.encode())


say("loss: 9.5 before the first step\n")
number, left = 0, 5
while left:
    number += 1
    left -= os.path.exists(enough) and number >= LEAST
    loss = [1 / number, 6.25e-05, -0.1, float("nan"), float("inf"), 1e300 / number, number / 3][number % 7]
    say(f"step: {number} loss: {loss!r} lr: {5e-5 / number!r}, rank {rank} {second}\n")
    if number % 10 == 0:
        say(f"a line without a number\nevaluation: accuracy: {1 - 1 / number:.17g}\r of it: lr: 0.5, too\n")
    time.sleep(PAUSE)
say("accuracy: 0.975 at the end\n")
'''


class Job(ToolkitJob):
    def __init__(self, root, aws, neuron, nodes=1, least=1, pause=0.02):  # noqa: F811
        super().__init__(root, aws, neuron, metrics=METRICS, compile={"kind": "none"}, hyperparameters=None,
                         resources={"instance": "ml.trn1.2xlarge", "nodes": nodes})
        self.nodes, self.enough = nodes, root / "enough"
        (self.source / "train.py").write_text(TRAIN.replace("ENOUGH", str(self.enough)).replace("LEAST", str(least))
                                              .replace("PAUSE", str(pause)))

    def env(self, **more):
        # A journal on this machine: the next driver need not wait for a lease.
        return super().env(**{"STOKER_STATE": str(self.root / "state"), **more})

    def end(self, attempt=1):
        self.enough.with_name("enough" + ("" if attempt == 1 else "-2")).write_text("")

    def streams(self, run, attempt, node):
        found = self.aws.client("logs").describe_log_streams(
            logGroupName=GROUP, logStreamNamePrefix=f"stk-{run}-train-{attempt}/algo-{node + 1}-")["logStreams"]
        return [each["logStreamName"] for each in found]

    def log(self, run, attempt=1, node=0):
        """[(time in ms, message)] of a host, by the tests' own client."""
        logs, events = self.aws.client("logs"), []
        for stream in self.streams(run, attempt, node):
            token = None
            while True:
                page = logs.get_log_events(logGroupName=GROUP, logStreamName=stream, startFromHead=True,
                                           **({"nextToken": token} if token else {}))
                events += [(each["timestamp"], each["message"].encode()) for each in page["events"]]
                if page["nextForwardToken"] == token:
                    break
                token = page["nextForwardToken"]
        return sorted(events, key=lambda each: each[0])

    def lose(self, run, attempt=1, node=0):
        for stream in self.streams(run, attempt, node):
            self.aws.client("logs").delete_log_stream(logGroupName=GROUP, logStreamName=stream)

    def expected(self, run, attempts=1):
        logs = {(attempt, node): b"".join(text + b"\n" for _, text in self.log(run, attempt, node))
                for attempt in range(1, attempts + 1) for node in range(self.nodes)}
        return readings.marked({place: readings.of_log(log) for place, log in logs.items()})

    def printed(self, run):
        done = self.ok("metrics", run, "--csv")
        return readings.printed(done.out), done.err

    def lost(self, run):
        return [row for row in self.ok("--json", "metrics", run).lines if row.get("lost")]

    def series(self, run, attempt=1, node=0):
        """The objects of a host's series, in order."""
        prefix = f"stoker/runs/{run}/train-{attempt}/node-{node}/series/"
        return {key: value for key, value in sorted(self.aws.objects(BUCKET).items()) if key.startswith(prefix)}

    def kept(self, run, attempt=1, node=0):
        """How many readings are kept of a host."""
        return max((to for value in self.series(run, attempt, node).values() for _, to, _ in readings.kept(value)),
                   default=0)


@pytest.fixture
def make(aws, neuron, tmp_path):  # noqa: F811
    def made(**options):
        return Job(tmp_path / "project", aws, neuron, **options)
    return made


def wait_for(seen, *drivers):
    """No driver may end before."""
    until = time.monotonic() + 300
    while not seen():
        assert time.monotonic() < until, "it does not happen"
        for driver in drivers:
            assert driver.poll() is None, driver.communicate()
        time.sleep(0.05)


def kill(driver):
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def start(job, *argv):
    return job.start(*argv, start_new_session=True)


def finish(driver, code=0):
    out, err = driver.communicate(timeout=300)
    assert driver.returncode == code, (driver.returncode, out, err)


def more_requests(job, driver, count):
    mark = job.aws.mark()
    wait_for(lambda: job.aws.mark() >= mark + count, driver)


@pytest.mark.parametrize("nodes", [1, 2])
def test_every_reading_is_kept_once_whenever_the_driver_dies(make, nodes):
    job, chance = make(nodes=nodes), random.Random(SEED * 2 + nodes)
    job.aws.fault("job_fails", operation="CreateTrainingJob", count=1, when=str(job.root / "lost"), hard=True,
                  reason="InternalServerError: We encountered an internal error. Please try again.")
    driver = start(job, "run", job.spec_path, "--id", "one")
    wait_for(lambda: job.kept("one") > 0, driver)
    for kills in range(4):
        more_requests(job, driver, chance.randrange(1, 30))
        kill(driver)
        driver = start(job, "resume", "one")
        if kills == 1:
            (job.root / "lost").write_text("")  # from here on the second attempt
        if kills == 2:
            wait_for(lambda: job.kept("one", attempt=2) > 0, driver)
    job.end(attempt=2)
    finish(driver)
    expected = job.expected("one", attempts=2)
    found, said = job.printed("one")
    readings.same(found, expected)
    assert "lost" not in said and {row[5] for row in found} >= {"superseded", "replayed"}, said
    # Also at the service's times, and so that the service's log is not needed any more.
    at = {time for attempt in (1, 2) for node in range(nodes) for time, _ in job.log("one", attempt, node)}
    rows = job.ok("--json", "metrics", "one").lines
    assert {ms(row["at"]) for row in rows} <= at and not any(row.get("late") for row in rows)
    for attempt in (1, 2):
        for node in range(nodes):
            assert job.kept("one", attempt, node) == sum(row[:2] == (attempt, node) for row in expected)
            job.lose("one", attempt, node)
    readings.same(job.printed("one")[0], expected)
    assert not job.lost("one")


def ms(text):
    whole, part = text.rstrip("Z").split(".")
    import calendar
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * 1000 + int(part)


def test_lines_that_the_service_loses_are_marked(make):
    job = make()
    driver = start(job, "run", job.spec_path, "--id", "one")
    wait_for(lambda: job.kept("one") > 0, driver)
    kill(driver)
    count = job.kept("one")
    before = readings.of_log(b"".join(text + b"\n" for _, text in job.log("one")))[:count]
    job.lose("one")  # what came since is lost; the job writes on
    wait_for(lambda: job.streams("one", 1, 0))
    driver = start(job, "resume", "one")
    more_requests(job, driver, 5)
    job.end()
    finish(driver)
    behind = readings.of_log(b"".join(text + b"\n" for _, text in job.log("one")))
    last = [step for step, name, _ in before if name == "step"][-1]
    # A reading before the first step that is left belongs to the last one that is known.
    expected = [row[:2] + row[2:] for row in before] + [(last if step is None else step, *rest) for step, *rest in behind]
    found, said = job.printed("one")
    readings.same([(step, name, value) for _, _, step, name, value, _ in found], expected)
    loss, = job.lost("one")
    assert loss == {"run": "one", "attempt": 1, "node": 0, "after_step": last, "lost": True}, loss
    assert f"attempt 1, node 0, behind step {last}: the service has lost lines" in said, said
    page = job.root / "page.html"
    job.ok("report", "one", "--output", page)
    assert f"lost lines of the log, and readings with them: attempt 1, node 0, behind step {last}." in page.read_text()


def test_an_end_that_the_service_loses_is_marked(make):
    job = make()
    driver = start(job, "run", job.spec_path, "--id", "one")
    wait_for(lambda: job.kept("one") > 0, driver)
    kill(driver)
    count = job.kept("one")
    job.end()
    wait_for(lambda: job.aws.client("sagemaker").describe_training_job(
        TrainingJobName="stk-one-train-1")["TrainingJobStatus"] == "Completed")
    whole = job.expected("one")
    job.lose("one")
    # Nobody drives: what is kept is there, and nothing is said of the rest, which may yet come.
    readings.same(job.printed("one")[0], whole[:count])
    finish(start(job, "resume", "one"))
    found, said = job.printed("one")
    readings.same(found, whole[:count])
    assert [row["lost"] for row in job.lost("one")] == [True] and "has lost lines" in said, said


def test_what_is_kept_and_damaged_is_read_from_the_service_while_it_has_it(make):
    job = make(least=3000, pause=0.002)
    driver = start(job, "run", job.spec_path, "--id", "one")
    wait_for(lambda: job.kept("one") > 0, driver)
    kill(driver)
    job.end()
    finish(start(job, "resume", "one"))  # the next driver has objects of its own
    whole, s3, objects = job.expected("one"), job.aws.client(), job.series("one")
    keys = list(objects)
    assert len(keys) >= 2 and len(whole) > 900, (keys, len(whole))
    readings.same(job.printed("one")[0], whole)
    first, second = keys[0], keys[-1]
    torn = objects[first][:len(objects[first]) // 2]
    damaged = bytearray(objects[first])
    damaged[200] ^= 1
    for change in (torn, bytes(damaged), b"foreign" * 1000, b"", objects[second], None):
        if change is None:
            s3.delete_object(Bucket=BUCKET, Key=first)
        else:
            s3.put_object(Bucket=BUCKET, Key=first, Body=change)
        found, said = job.printed("one")
        readings.same(found, whole)
        assert "lost" not in said, said
    # Nobody has the first part any more: the rest is told, and that something is missing.
    job.lose("one")
    found, said = job.printed("one")
    place = readings.kept(objects[second])[0][0]
    readings.same(found, whole[place:])
    assert "attempt 1, node 0, before the first step: the service has lost lines" in said, said
    # With it again, all is there.
    s3.put_object(Bucket=BUCKET, Key=first, Body=objects[first])
    readings.same(job.printed("one")[0], whole)
    assert not job.lost("one")


def test_a_workspace_that_takes_no_readings_keeps_no_run_from_its_end(make):
    job = make()
    job.end()
    job.aws.fault("denied", operation="PutObject", key="/series/", count=0)
    job.run("--id", "one")
    assert job.aws.struck() > 0 and not job.series("one")
    readings.same(job.printed("one")[0], job.expected("one"))
    assert [row["event"] for row in job.events("one")][-1] == "run.ended"
