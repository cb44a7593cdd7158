"""`stoker metrics` of a run whose workspace is a bucket: every reading that the logs there hold, also for
who comes from another home, and also without the series beside them."""

import readings


def put_in_order(s3, bucket, prefix):
    """The bytes of all objects below it, one behind the other."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = sorted(each["Key"] for page in pages for each in page.get("Contents", []))
    return keys, b"".join(s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys)


def test_100000_readings_with_two_forced_retries(job):
    s3 = job.aws.client()
    (job.source / "train.py").write_text(readings.TRAIN)
    job.write(metrics=readings.METRICS, compile={"kind": "none"}, hyperparameters=None,
              env={"STEPS": "33500", "DIES": "[15000, 25000]", "KEPT": "15"})
    job.run("--id", "one")
    bucket, prefix = job.url["stoker"][len("s3://"):].split("/", 1)
    logs = {(attempt, 0): put_in_order(s3, bucket, f"{prefix}/runs/one/train-{attempt}/node-0/log/")[1] for attempt in (1, 2, 3)}
    expected = readings.marked({place: readings.of_log(log) for place, log in logs.items()})
    assert len(expected) > 100000
    for home in ({}, job.elsewhere()):
        readings.same(readings.printed(job.ok("metrics", "one", "--csv", env=home).out), expected)
    # The agents have kept them: in few objects, each of whole blocks, and none of more than its log.
    points = 0
    for attempt in (1, 2, 3):
        keys, series = put_in_order(s3, bucket, f"{prefix}/runs/one/train-{attempt}/node-0/series/")
        blocks = readings.kept(series)
        assert keys and blocks and len(keys) <= 33 and blocks[-1][1] <= len(logs[attempt, 0])
        assert [begin for begin, _, _ in blocks[1:]] == sorted(begin for begin, _, _ in blocks[1:])
        points += sum(count for _, _, count in blocks)
        for key in keys[len(keys) // 2:]:
            s3.delete_object(Bucket=bucket, Key=key)
        s3.put_object(Bucket=bucket, Key=keys[0][:-1] + "x", Body=b"foreign" * 300000)
    assert points > 0
    readings.same(readings.printed(job.ok("metrics", "one", "--csv", env=job.elsewhere()).out), expected)
