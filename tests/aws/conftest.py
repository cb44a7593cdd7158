"""AWS for every test here: one stand-in a worker, as good as new at the start of each
test. What it offers: tests/support/aws.py."""

import pytest
from aws import Aws
from bucket_job import BucketJob
from long_first import pytest_collection_modifyitems  # noqa: F401
from who import World


@pytest.fixture(scope="session")
def aws_process(tmp_path_factory):
    aws = Aws(tmp_path_factory.mktemp("standin"))
    yield aws
    aws.stop()


@pytest.fixture
def aws(aws_process):
    aws_process.reset()
    yield aws_process
    assert aws_process.control("GET", "broken") == []
    aws_process.reset()


@pytest.fixture
def s3(aws):
    """A client of boto3, with a bucket named "bucket"."""
    aws.make_bucket("bucket")
    return aws.client("s3")


@pytest.fixture
def world(aws, tmp_path):
    """A home with AWS files, in which who_lines looks for credentials."""
    world = World(aws, tmp_path)
    yield world
    world.stop()


@pytest.fixture
def job(aws, tmp_path):
    """The one-second trainer with everything on S3."""
    made = BucketJob(tmp_path / "project", aws)
    yield made
    made.stop()
