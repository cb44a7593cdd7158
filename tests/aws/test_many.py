"""A thousand jobs through one handle of an engine: few requests, in step with the services'
limits, none of which is throttled."""

from many import LIMITS, Many, busiest_second

COUNT = 1000


def throttled(entries):
    return [entry for entry in entries if entry["code"] in ("ThrottlingException", "TooManyRequestsException")]


def test_a_thousand_jobs_of_batch(aws, tmp_path):
    many = Many(tmp_path / "many", aws, COUNT)
    batch = many.begin_batch()
    first, *_ = ids = [batch.list_jobs(jobQueue="queue", filters=[{"name": "JOB_NAME", "values": [name]}])
                       ["jobSummaryList"][0]["jobId"] for name in many.names[:2]]
    assert len(ids) == 2
    batch.terminate_job(jobId=first, reason="the test ends it")
    aws.settings(limits=LIMITS)
    since = aws.mark()
    rounds = many.run("watch", "batch", rounds=2, pause=2.2)
    assert [line.get("error") for line in rounds] == [None, None]
    assert rounds[0]["states"] == rounds[1]["states"] == {"running": COUNT - 1, "ended": 1}
    entries = aws.ledger(since)
    # A hundred a question; an end is one, and is not asked for again.
    assert [entry["operation"] for entry in entries] == ["DescribeJobs"] * 20
    assert busiest_second(entries, "DescribeJobs") <= LIMITS["DescribeJobs"]
    assert throttled(entries) == []


def test_a_thousand_jobs_of_sagemaker(aws, tmp_path):
    many = Many(tmp_path / "many", aws, COUNT)
    sagemaker = many.begin_sagemaker()
    sagemaker.stop_training_job(TrainingJobName=many.names[7])
    aws.settings(limits=LIMITS)
    since = aws.mark()
    lines = many.run("watch", "sagemaker")
    assert lines[0].get("error") is None
    assert lines[0]["states"] == {"running": COUNT - 1, "ended": 1}
    entries = aws.ledger(since)
    # A list tells of a hundred; only what has ended is described.
    assert [entry["operation"] for entry in entries] == ["ListTrainingJobs"] * 10 + ["DescribeTrainingJob"]
    assert busiest_second(entries, "ListTrainingJobs") <= LIMITS["ListTrainingJobs"]
    assert throttled(entries) == []


def test_a_few_are_described_each(aws, tmp_path):
    many = Many(tmp_path / "many", aws, 5)
    many.begin_sagemaker()
    since = aws.mark()
    assert many.run("watch", "sagemaker")[0]["states"] == {"running": 5}
    assert [entry["operation"] for entry in aws.ledger(since)] == ["DescribeTrainingJob"] * 5


def test_a_hundred_submits(aws, s3, tmp_path):
    """As fast as the service takes them, whoever else submits there."""
    many = Many(tmp_path / "many", aws, 100)
    many.queue()
    aws.settings(held=True, limits=LIMITS)
    since = aws.mark()
    lines = many.run("submit", "batch", workspace="s3://bucket/stoker")
    entries = aws.ledger(since)
    assert lines[0]["states"] == {"submitted": 100}, lines
    assert sum(entry["effect"] for entry in entries if entry["operation"] == "SubmitJob") == 100
    assert throttled(entries) == []
    assert busiest_second(entries, "SubmitJob") <= LIMITS["SubmitJob"]
    assert lines[0]["wall"] < 90  # five seconds, where the machine does not stand still
