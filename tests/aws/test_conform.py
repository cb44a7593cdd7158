"""configs/live/conform against the stand-in: each row that it tries is as taken; where the stand-in is otherwise, that
row alone turns; nothing is left behind, however it ends; without a yes nothing is begun."""

import json
import re
import signal
import subprocess
import sys

import pytest
import stoker as cli
import yaml
from aws import REGION

CONFORM = cli.ROOT / "configs/live/conform"
ROLE = "arn:aws:iam::123456789012:role/secret-role"
BUCKET = "account-123456789012"
TRIED = ["batch-gone", "clock", "link-end", "pipeline-limits", "s3-conditions", "s3-copy-checksum", "s3-parts-checksum",
         "s3-parts-condition", "s3-region", "sagemaker-unknown"]


@pytest.fixture
def conform(aws, tmp_path):
    """Starts it with these words; `conform.folder` has its results."""
    aws.make_bucket(BUCKET)
    folder = tmp_path / "results"

    def start(*words, yes=True):
        argv = [CONFORM, "--region", REGION, "--bucket", BUCKET, "--stoker", cli.BINARY, "--output", folder, *words]
        env = aws.env(HOME=str(tmp_path), CONFORM_PYTHON=sys.executable, PYTHONDONTWRITEBYTECODE="1")
        return subprocess.Popen([str(word) for word in argv + (["--yes"] if yes else [])], env=env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    start.folder = folder
    return start


def ended(process):
    out, err = process.communicate(timeout=cli.SECONDS)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def verdicts(conform):
    rows = json.loads((conform.folder / "results.json").read_text())["rows"]
    return {name: row["verdict"] for name, row in rows.items() if row["seen"] != "conform has no trial of this row"}


def left(aws):
    """All that it could have left."""
    uploads = aws.client("s3").list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    pipelines = aws.client("sagemaker").list_pipelines()["PipelineSummaries"]
    return [*aws.objects(BUCKET), *(row["Key"] for row in uploads), *(row["PipelineName"] for row in pipelines)]


def test_each_trial_is_of_a_row_that_costs_requests_alone():
    text = (cli.ROOT / "configs/live/rows.yaml").read_text()
    shapes = {row["id"]: row["shape"] for group in yaml.safe_load(text)["groups"] for row in group["rows"]}
    tried = re.findall(r'^@trial\("([a-z0-9-]+)"\)$', (cli.ROOT / "configs/live/trials.py").read_text(), re.MULTILINE)
    assert sorted(tried) == TRIED
    assert {shapes[row]["by"] for row in tried} == {"requests"} and not any(shapes[row].get("named") for row in tried)


def test_all_rows_are_as_taken(aws, conform):
    code, out, err = ended(conform("--role", ROLE))
    assert code == 0, (out, err)
    assert sorted(verdicts(conform)) == TRIED and set(verdicts(conform).values()) == {"as taken"}
    assert left(aws) == []
    data = json.loads((conform.folder / "results.json").read_text())
    assert all(data["rows"][name]["requests"] for name in TRIED)
    assert data["rows"]["batch-shm"]["verdict"] == "not tried" and "neuron-efa" not in data["rows"]
    table = (conform.folder / "results.md").read_text()
    assert f", {REGION}, stoker " in table.split("\n")[0]
    for text in (table, json.dumps(data)):
        assert BUCKET not in text and "123456789012" not in text and "secret-role" not in text


# Those that make something; the requests of a run with them: 1 first, then 8, 8, 5, 2 and 1.
EFFECTS = ["s3-conditions", "s3-parts-condition", "s3-parts-checksum", "s3-copy-checksum", "pipeline-limits"]
REPLACED = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


@pytest.mark.parametrize("row, kind, fields", [
    ("s3-conditions", "unconditional", {"operation": "PutObject", "key": "/conditions$"}),
    ("s3-conditions", "precondition", {"operation": "PutObject", "key": "/conditions$", "nth": 3, "count": 1}),
    ("s3-parts-condition", "unconditional", {"operation": "CompleteMultipartUpload", "key": "/parts-condition$"}),
    ("s3-parts-checksum", "replace", {"operation": "CompleteMultipartUpload", "key": "/parts-checksum$",
                                      "pattern": "<ChecksumSHA256>[^<]*", "text": f"<ChecksumSHA256>{REPLACED}"}),
    ("s3-copy-checksum", "replace", {"operation": "CopyObject", "pattern": "<ChecksumSHA256>[^<]*</ChecksumSHA256>"}),
    ("s3-region", "header", {"operation": "HeadBucket", "name": "x-amz-bucket-region", "value": None}),
    ("clock", "date", {"operation": "GetCallerIdentity", "seconds": 3600}),
    ("link-end", "replace", {"operation": "GetObject", "key": "/link$", "pattern": "Request has expired"}),
    ("sagemaker-unknown", "error", {"operation": "DescribeTrainingJob", "code": "ResourceNotFound", "message": "no"}),
    ("batch-gone", "error", {"operation": "TerminateJob", "code": "ClientException", "message": "no such job"}),
    ("pipeline-limits", "error", {"operation": "CreatePipeline", "code": "ValidationException", "message": "40 steps"}),
])
def test_what_is_otherwise_turns_its_row_alone(aws, conform, row, kind, fields):
    aws.fault(kind, **{"count": 0, **fields})
    code, out, err = ended(conform("--role", ROLE))
    assert {name for name, verdict in verdicts(conform).items() if verdict != "as taken"} == {row}, (out, err)
    assert verdicts(conform)[row] == "otherwise" and code == 1
    assert left(aws) == []


@pytest.mark.parametrize("words, yes, why", [
    ((), False, "without a terminal say --yes"), (("--budget", "0.05"), True, "above the budget")])
def test_unasked_and_above_the_budget_nothing_is_begun(aws, conform, words, yes, why):
    mark = aws.mark()
    code, out, err = ended(conform(*words, yes=yes))
    assert code == 4 and why in err and "USD at most" in out, (out, err)
    assert aws.requests(since=mark) == 0 and not conform.folder.exists()


def test_without_access_nothing_is_begun(aws, conform):
    aws.fault("denied", service="s3", count=0)
    mark = aws.mark()
    code, _, err = ended(conform())
    assert code == 4 and "no access to the bucket" in err and BUCKET not in err.replace("--bucket", "")
    assert aws.effects(since=mark) == 0 and not conform.folder.exists()


def test_a_right_that_is_missing_is_no_verdict(aws, conform):
    aws.fault("denied", operation="TerminateJob", count=0)
    code, _, _ = ended(conform("--rows", "batch-gone", "--rows", "s3-region"))
    assert verdicts(conform) == {"batch-gone": "not tried", "s3-region": "as taken"} and code == 0


def test_a_bucket_with_versions_is_told(aws, conform):
    aws.fault("header", operation="PutObject", name="x-amz-version-id", value="v1", count=0)
    code, out, _ = ended(conform("--rows", "link-end"))
    assert code == 0 and "the bucket keeps versions" in out
    assert "keeps versions" not in ended(conform("--rows", "s3-region"))[1]


def test_a_row_that_must_be_named_is_not_chosen_by_a_glob(conform):
    assert ended(conform("--rows", "neuron-*"))[0] == 0
    assert json.loads((conform.folder / "results.json").read_text())["rows"] == {}
    code, _, err = ended(conform("--rows", "no-such-row"))
    assert code == 2 and "no-such-row" in err


def held(aws, conform, nth, until):
    """It waits in its request of this number."""
    aws.fault("delay", nth=nth, until=str(until))
    process = conform("--role", ROLE, *(word for row in EFFECTS for word in ("--rows", row)))
    cli.until(lambda: aws.struck() > 0, process)
    return process


@pytest.mark.parametrize("nth", [2, 4, 7, 10, 11, 13, 16, 19, 23, 25])
def test_killed_anywhere_it_leaves_what_clean_removes(aws, conform, tmp_path, nth):
    mark = aws.mark()
    process = held(aws, conform, nth, tmp_path / "go")
    process.kill()
    process.communicate()
    (tmp_path / "go").touch()
    cli.until(lambda: aws.requests(since=mark) == nth)  # what it had asked for last takes effect all the same
    assert left(aws) or nth == 2
    code, out, err = ended(conform("--clean", yes=False))
    assert (code, left(aws)) == (0, []), (out, err)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing(aws, conform, tmp_path, number):
    process = held(aws, conform, 8, tmp_path / "go")
    process.send_signal(number)
    (tmp_path / "go").touch()
    code, out, err = ended(process)
    assert (code, left(aws)) == (128 + number, []), (out, err)


def test_a_repeat_goes_on_where_it_was(aws, conform, tmp_path):
    assert ended(conform("--rows", "s3-*"))[0] == 0
    mark = aws.mark()
    assert ended(conform("--role", ROLE))[0] == 0
    assert sorted(verdicts(conform)) == TRIED
    assert aws.requests("PutObject", since=mark) == 1  # of link-end
    code, _, err = ended(conform("--bucket", "another-bucket"))
    assert code == 2 and "another region or bucket" in err


def test_clean_without_results_finds_all_runs(aws, conform):
    aws.client("s3").put_object(Bucket=BUCKET, Key="stoker-conform-0123456789abcdef/link", Body=b"x")
    aws.client("s3").put_object(Bucket=BUCKET, Key="mine", Body=b"x")
    assert ended(conform("--clean", yes=False))[0] == 0
    assert left(aws) == ["mine"]
