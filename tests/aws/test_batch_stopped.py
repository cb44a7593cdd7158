"""A job of AWS Batch that somebody else ends, at the console: whatever its nodes say of that, nobody is to blame,
nothing is ended by us, and it is not started again."""


import pytest
import stoker as cli
from batch_job import BatchJob

WORDS = "too dear: insufficient capacity, PREEMPTED by the next quarter"  # no cause, whatever they sound like
SLOW = """
import signal
def slowly(*_):
    open(f'{os.environ["EFFECTS"]}-asked', 'w').close()
    while not os.path.exists(os.environ["GATE"]): time.sleep(0.05)
    os._exit(3)
if os.environ['STOKER_NODE_RANK'] == '0': signal.signal(signal.SIGTERM, slowly)
"""


@pytest.fixture
def make(aws, tmp_path):
    made = []

    def make(nodes, **changes):
        job = BatchJob(tmp_path / "project", aws, compile=None, checkpoint=None,
                       resources={"instance": "trn1.32xlarge" if nodes > 1 else "trn1.2xlarge", "nodes": nodes}, **changes)
        made.append(job)
        return job

    yield make
    for job in made:
        job.stop()


def held(job, nodes):
    """Its driver; its commands wait."""
    job.hold("train", 2)
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    cli.until(lambda: len(job.effects("holds")) == nodes)
    return driver


def status_of(job, node):
    row, = job.batch.describe_jobs(jobs=[f"{job.jobs()[0]['jobId']}#{node}"])["jobs"]
    return row["status"]


def is_not_started_again(job, driver, how="terminated", words=WORDS):
    result = cli.finish(driver)
    row, = job.events("one", "attempt.ended")
    assert (row["class"], result.code) == ("stopped", 6), row
    assert row["evidence"] == f"it was {how}: {words}", row
    assert len(job.jobs()) == 1 and job.status("one")["state"] == "stopped"
    assert job.aws.effects("TerminateJob") + job.aws.effects("CancelJob") == 1
    assert job.aws.requests("TerminateJob") + job.aws.requests("CancelJob") == 1


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_node_that_leaves_before_the_main_one_is_not_blamed(make, taken_over):
    """The job runs on, one of its nodes has failed: as in the death of a machine."""
    job = make(2)
    gate = job.root / "slow"
    job.write(env={**job.spec["env"], "GATE": str(gate)})
    job.also(SLOW)
    driver = held(job, 2)
    if taken_over:
        driver.kill()
        driver.communicate()
    job.batch.terminate_job(jobId=job.jobs()[0]["jobId"], reason=WORDS)
    cli.until(lambda: status_of(job, 1) == "FAILED")
    assert job.jobs()[0]["status"] == "RUNNING"
    since = job.aws.mark()
    if taken_over:
        driver = job.start("--json", "resume", "one", "--lease", "3s")
    cli.until(lambda: len([row for row in job.aws.ledger(since, "DescribeJobs")]) >= 2 or driver.poll() is not None)
    gate.touch()
    job.gate.touch()  # another attempt would end
    is_not_started_again(job, driver)


@pytest.mark.parametrize("nodes", [1, 2])
def test_agents_that_have_no_time_to_report_hide_nobodys_wish(make, nodes):
    job = make(nodes)
    job.aws.settings(stop_seconds=0)
    driver = held(job, nodes)
    job.batch.terminate_job(jobId=job.jobs()[0]["jobId"], reason=WORDS)
    result = cli.finish(driver)
    row, = job.events("one", "attempt.ended")
    assert (row["class"], result.code) == ("stopped", 6), row
    assert row["evidence"].startswith(f"it was terminated: {WORDS}") and len(job.jobs()) == 1


@pytest.mark.parametrize("how", ["terminated", "cancelled"])
def test_a_job_that_never_had_its_machines(make, how):
    job = make(2)
    job.aws.fault("job_pending", operation="SubmitJob", seconds=600, reason="CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - no")
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    waiting, = cli.until(job.jobs)
    cli.until(lambda: job.events("one", "attempt.waiting"))
    (job.batch.cancel_job if how == "cancelled" else job.batch.terminate_job)(jobId=waiting["jobId"], reason=WORDS)
    result = cli.finish(driver)
    row, = job.events("one", "attempt.ended")
    assert (row["class"], result.code, len(job.jobs())) == ("stopped", 6, 1), row
    assert row["evidence"] == f"it was {how}: {WORDS}"


def test_what_the_queue_itself_gives_up_is_waited_for(make):
    """By the same mark in the description: but that is the service's own doing."""
    job = make(2, retry={"attempts": 2, "backoff": {"first": "0s", "max": "0s"}})
    job.aws.fault("job_pending", operation="SubmitJob", seconds=600)
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    waiting, = cli.until(job.jobs)
    cli.until(lambda: job.events("one", "attempt.submitted"))
    job.batch.cancel_job(jobId=waiting["jobId"], reason="Canceled by JobStateTimeLimit action due to reason: "
                         "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - no")
    assert cli.finish(driver).code == 0
    assert [row["class"] for row in job.events("one", "attempt.ended")] == ["capacity", "none"]
