"""A service of the engine takes requests and says nothing. The driver's state is elsewhere, and another driver
watches its lease."""

import time

import pytest
import stoker as cli
from batch_job import BatchJob

BLOCKED = 25  # s; the lease is to be renewed after 20 s, and the driver waits for an answer


@pytest.fixture
def job(aws, tmp_path):
    job = BatchJob(tmp_path / "project", aws, compile=None, checkpoint=None)
    yield job
    job.stop()


def test_a_request_that_hangs_does_not_cost_the_driver_its_lease(job):
    """A lease is taken by others once it has not been renewed for 60 s."""
    job.hold("train", 2)
    driver = job.start("--json", "run", job.spec_path, "--id", "one")
    job.wait_for_effect("holds")
    asked = job.aws.requests("DescribeJobs")
    job.aws.fault("hang", operation="DescribeJobs", count=0, seconds=3600)
    job.wait_for(lambda: job.aws.requests("DescribeJobs") > asked)
    time.sleep(BLOCKED)
    second = cli.finish(job.start("resume", "one"), seconds=180)
    assert second.code == 7, str(second)
    assert driver.poll() is None
    job.aws.clear_faults()
    job.gate.touch()
    first = cli.finish(driver)
    assert first.code == 0, str(first)
    assert len(job.jobs()) == 1
