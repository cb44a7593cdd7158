"""Data on S3: the manifest and, with fetch, the objects are on the node before the command starts."""

import given


def test_objects_are_downloaded_and_proved(job):
    s3 = job.aws.client("s3")
    for name, text in (("a/1.csv", "one"), ("2.csv", "two"), ("été", "x" * 5000)):
        s3.put_object(Bucket="bucket", Key=f"{job.prefix}/data/{name}", Body=text.encode())
    where = job.root / "given"
    job.also(given.sees(where))
    url = f"s3://bucket/{job.prefix}/data"
    job.write(data={"url": url, "settle": "0s", "fetch": True})
    job.run("--id", "one")
    lines = given.seen(where)
    assert {line["phase"] for line in lines} == {"precompile", "train"}
    for line in lines:
        assert line["files"] == {"2.csv": ["two", False], "a/1.csv": ["one", False], "été": ["x" * 5000, False]}
        assert [row["url"] for row in line["rows"]] == [f"{url}/{name}" for name in ("2.csv", "a/1.csv", "été")]
    first = job.ok("events", "one").lines[0]["inputs"]["data"]
    assert first["objects"] == 3 and first["manifest"].startswith(job.url["stoker"] + "/data/")
