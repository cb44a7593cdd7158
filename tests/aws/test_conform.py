"""configs/live/conform against the stand-in: each row that it tries is as taken; where the stand-in is otherwise, those
rows alone turn (each by itself where STOKER_TEST_CONFORM=all); nothing is left behind, however it ends; without a yes
nothing is begun."""

import json
import os
import random
import signal

import pytest
import stoker as cli
from aws import REGION
from conforming import (
    ALWAYS, BUCKET, DEVICE_IMAGE, DEVICES, JOBS, LATER, LONG, NAMED, ON_DEVICES, OTHERWISE, QUEUE, REQUESTS, ROLE, ROLES, SDK,
    SILENT, SPOT, TOOLS, Conform, asked, ended, groups, rows, trials, turn,
)
from standin.processes import limits

WHOLE = os.environ.get("STOKER_TEST_CONFORM") == "all"  # there is time for that
# What this machine must let the stand-in do.
ALLOWED = {"container-memory": limits(), "processing-write": os.geteuid() == 0}
EVERY = [row for row in (*REQUESTS, *JOBS, *NAMED) if ALLOWED.get(row, True)]  # but those that last long


def drawn(rows, count):
    """So many of them, or all."""
    return rows if WHOLE else random.Random(int(os.environ.get("STOKER_TEST_SEED", "1"))).sample(rows, count)


@pytest.fixture
def conform(aws, tmp_path):
    return Conform(aws, tmp_path)


def test_each_trial_is_of_a_row():
    shapes = rows()
    assert set(trials()) == {row for row, shape in shapes.items() if "untried" not in shape}
    assert set(REQUESTS) <= set(trials())
    assert {shapes[row]["by"] for row in REQUESTS} == {"requests"} and not any(shapes[row].get("named") for row in REQUESTS)


def test_each_trial_can_turn():
    assert {row for row, _, _ in OTHERWISE} == {*REQUESTS, *JOBS, *NAMED, *LONG, *SPOT} and set(TOOLS) == set(ON_DEVICES)
    assert {*REQUESTS, *JOBS, *NAMED, *LONG, *SPOT, *TOOLS} == set(trials())


def test_all_rows_are_as_taken(conform):
    code, out, err = conform.everything([*EVERY, "neuron-timeout"])
    assert code == 0, (out, err)
    assert conform.turned() == {} and sorted(conform.verdicts()) == sorted(EVERY)
    assert conform.left() == []
    data = conform.data()
    assert all(data["rows"][name]["requests"] for name in EVERY)
    assert data["rows"]["neuron-timeout"]["verdict"] == "not tried" and "neuron-efa" not in data["rows"]
    table = (conform.folder / "results.md").read_text()
    assert f", {REGION}, stoker " in table.split("\n")[0]
    for text in (table, json.dumps(data)):
        assert BUCKET not in text and "123456789012" not in text and "secret-role" not in text and QUEUE not in text


# Those that make something; the requests of a run with them: 1 first, then 8, 8, 5, 2 and 1.
EFFECTS = ["s3-conditions", "s3-parts-condition", "s3-parts-checksum", "s3-copy-checksum", "pipeline-limits"]


@pytest.mark.parametrize("group", drawn(groups(), 1))
def test_what_is_otherwise_turns_its_rows(aws, conform, group):
    """Several at once."""
    for _, kind, fields in group:
        turn(aws, kind, fields)
    code, out, err = conform.everything(EVERY)
    wanted = {row for row, _, _ in group} & set(EVERY)
    silent = {other for row in wanted for other in SILENT.get(row, [])}
    assert set(conform.turned()) == wanted | silent, (conform.turned(), out, err)
    assert {name for name, verdict in conform.verdicts().items() if verdict == "otherwise"} == wanted and code == 1
    assert conform.left() == []


@pytest.mark.skipif(not WHOLE, reason="it takes the services' own times")
@pytest.mark.parametrize("turned", [None, *LONG])
def test_rows_that_last_long(aws, conform, turned):
    aws.settings(stop_seconds=30, training_stop_seconds=120)
    for _, kind, fields in [each for each in OTHERWISE if each[0] == turned]:
        turn(aws, kind, fields)
    code, out, err = conform.everything(LONG)
    assert set(conform.turned()) == ({turned} if turned else set()) and code == bool(turned), (out, err)
    assert conform.left() == []


@pytest.mark.skipif(not WHOLE, reason="STOKER_TEST_CONFORM=all takes a quarter of an hour")
@pytest.mark.parametrize("row, kind, fields", [each for each in OTHERWISE if each[0] in EVERY])
def test_what_is_otherwise_turns_its_row_alone(aws, conform, row, kind, fields):
    turn(aws, kind, fields)
    code, out, err = conform.everything(EVERY)
    assert set(conform.turned()) == {row, *SILENT.get(row, [])}, (conform.turned(), out, err)
    assert [name for name, verdict in conform.verdicts().items() if verdict == "otherwise"] == [row] and code == 1
    assert conform.left() == []


@pytest.mark.parametrize("turned", [False, True])
def test_spot_machines_run_no_job_of_several_nodes(aws, conform, turned):
    conform.make_spot_queue()
    conform.watch = 0.1
    for _, kind, fields in [each for each in OTHERWISE if turned and each[0] in SPOT]:
        turn(aws, kind, fields)
    code, out, err = conform.run("--queue", QUEUE, *asked(["batch-spot-nodes", "batch-shm"]))
    assert conform.verdicts() == {"batch-spot-nodes": "otherwise" if turned else "as taken", "batch-shm": "not tried"}, out
    assert code == turned and conform.left() == []


def on_devices(conform, kind, **otherwise):
    names, machines = DEVICES[kind]
    conform.make_device_queue(**machines, **otherwise)
    code, out, err = conform.everything(names, "--image", DEVICE_IMAGE, "--budget", "20")
    assert code in (0, 1) and conform.left() == [] and sorted(conform.verdicts()) == names, (out, err)
    return conform.turned()


@pytest.mark.parametrize("kind", DEVICES if WHOLE else ["neuron", "gpus"])
def test_rows_on_accelerators_are_as_taken(conform, kind):
    assert on_devices(conform, kind) == {}


@pytest.mark.parametrize("row", drawn(sorted(TOOLS), 1))
def test_where_the_tools_are_otherwise_their_row_turns(conform, row):
    turned = on_devices(conform, ON_DEVICES[row], **TOOLS[row])
    assert set(turned) == {row, *SILENT.get(row, [])}, turned
    assert [name for name, verdict in conform.verdicts().items() if verdict == "otherwise"] == [row], turned


@pytest.mark.parametrize("words, yes, why", [
    ((), False, "without a terminal say --yes"), (("--budget", "0.05"), True, "above the budget")])
def test_unasked_and_above_the_budget_nothing_is_begun(aws, conform, words, yes, why):
    mark = aws.mark()
    code, out, err = conform.run("--role", ROLE, *words, yes=yes)
    assert code == 4 and why in err and "USD at most" in out, (out, err)
    assert aws.requests(since=mark) == 0 and not conform.folder.exists()
    code, out, err = conform.run("--role", ROLE, "--queue", QUEUE, *words, yes=yes)
    assert code == 4 and why in err and "USD at most" in out, (out, err)
    assert aws.effects(since=mark) == 0 and not conform.folder.exists()


def test_without_access_nothing_is_begun(aws, conform):
    aws.fault("denied", service="s3", count=0)
    mark = aws.mark()
    code, out, err = conform.run()
    assert code == 4 and "doctor has found what will fail" in err and "bucket.list of" in out, (out, err)
    assert BUCKET not in out + err.replace("--bucket", "")
    assert aws.effects(since=mark) == 0 and not conform.folder.exists()


def test_what_doctor_finds_to_fail_is_not_begun(aws, conform):
    aws.client("batch").update_job_queue(jobQueue=QUEUE, state="DISABLED")
    mark = aws.mark()
    code, out, err = conform.everything(["batch-tags"])
    assert code == 4 and "doctor has found what will fail" in err and "doctor: fail: batch.queue" in out, (out, err)
    assert conform.left() == [] and not conform.folder.exists() and QUEUE not in out
    assert all("/.stoker-doctor/" in row["name"] for row in aws.ledger(mark) if row["effect"]), "its probes alone"


def test_a_right_that_is_missing_is_no_verdict(aws, conform):
    aws.fault("denied", operation="TerminateJob", count=0)
    code, _, _ = conform.run("--rows", "batch-gone", "--rows", "s3-region")
    assert conform.verdicts() == {"batch-gone": "not tried", "s3-region": "as taken"} and code == 0


def test_what_is_missing_is_named(aws, conform):
    code, out, _ = conform.run(*asked(["batch-tags", "pipeline-limits", "batch-efa", "states-cause", "scheduler-target",
                                         "neuron-timeout"]))
    seen = {name: row["seen"] for name, row in conform.data()["rows"].items()}
    assert code == 0 and seen == {"batch-tags": "it needs --queue", "pipeline-limits": "it needs --role",
                                  "batch-efa": "it needs --image",
                                  "states-cause": "it needs --states-role",
                                  "scheduler-target": "it needs --scheduler-role",
                                  "neuron-timeout": rows()["neuron-timeout"]["untried"]}
    code, out, _ = conform.run(*asked(["batch-tags"]), "--queue", "nowhere")
    assert code == 0 and "no queue" in conform.data()["rows"]["batch-tags"]["seen"] and "nowhere" not in str(conform.data())


def test_jobs_are_estimated_by_the_smallest_type_of_the_queue(aws, conform):
    batch = aws.client("batch")
    batch.create_compute_environment(computeEnvironmentName="dear", type="MANAGED", computeResources={
        "type": "EC2", "maxvCpus": 64, "instanceTypes": ["m5.4xlarge"], "subnets": ["subnet-1"], "instanceRole": "r"})
    batch.update_job_queue(jobQueue=QUEUE, computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "dear"}])
    _, out, _ = conform.run("--queue", QUEUE, *asked(["batch-tags"]), yes=False)
    assert "batch-tags: 0.04 USD" in out  # 3 minutes at 0.768


def test_a_bucket_with_versions_is_told(aws, conform):
    aws.fault("header", operation="PutObject", name="x-amz-version-id", value="v1", count=0)
    code, out, _ = conform.run("--rows", "link-end")
    assert code == 0 and "the bucket keeps versions" in out
    assert "keeps versions" not in conform.run("--rows", "s3-region")[1]


def test_a_row_that_must_be_named_is_not_chosen_by_a_glob(conform):
    code, _, err = conform.run("--rows", "neuron-*")
    assert code == 2 and "have to be named whole: neuron-" in err and not conform.folder.exists()
    assert conform.run("--rows", "neuron-*", "--rows", "s3-region")[0] == 2
    assert conform.run("--rows", "s3-reg*")[0] == 0 and [*conform.verdicts()] == ["s3-region"]
    code, out, _ = conform.run("--rows", "s3-reg*")
    assert code == 0 and "0 rows, 0.00 USD at most; 1 are known already" in out
    code, _, err = conform.run("--rows", "no-such-row")
    assert code == 2 and "no-such-row" in err


@pytest.mark.parametrize("budget", ["nan", "inf", "-1", "much", ""])
def test_a_budget_that_limits_nothing_is_refused(aws, conform, budget):
    mark = aws.mark()
    code, _, err = conform.run("--rows", "s3-region", f"--budget={budget}")
    assert code == 2 and "--budget" in err and aws.requests(since=mark) == 0


def held(aws, conform, nth, until):
    """It waits in its request of this number."""
    aws.fault("delay", nth=nth, until=str(until), header=SDK)
    process = conform.start("--role", ROLE, *asked(EFFECTS))
    cli.until(lambda: aws.struck() > 0, process)
    return process


@pytest.mark.parametrize("nth", drawn([2, 4, 7, 10, 11, 13, 16, 19, 23, 25], 4))
def test_killed_anywhere_it_leaves_what_clean_removes(aws, conform, tmp_path, nth):
    mark = aws.mark()
    process = held(aws, conform, nth, tmp_path / "go")
    process.kill()
    process.communicate()
    (tmp_path / "go").touch()
    # What it had asked for last takes effect all the same.
    cli.until(lambda: len([row for row in aws.ledger(mark) if row["fault"]]) == 1)
    assert conform.left() or nth == 2
    code, out, err = conform.run("--clean", yes=False)
    assert (code, conform.left()) == (0, []), (out, err)


@pytest.mark.parametrize("number", drawn([signal.SIGTERM, signal.SIGINT, signal.SIGHUP], 1))
def test_a_signal_ends_it_and_leaves_nothing(aws, conform, tmp_path, number):
    process = held(aws, conform, 8, tmp_path / "go")
    process.send_signal(number)
    (tmp_path / "go").touch()
    code, out, err = ended(process)
    assert (code, conform.left()) == (128 + number, []), (out, err)


# Jobs by the SDK, and of a run of stoker's, a pipeline; what conform asks next, and which of such requests that is.
RUNNING = [("batch-reason", "-held", "TerminateJob", 1), ("batch-two-reasons", "-goes-on", "TerminateJob", 1),
           ("sagemaker-name", "-single", "DeleteTrainingJob", 1), ("batch-grace", "-b-stop-train-1", "TerminateJob", 3),
           ("sagemaker-grace", "-s-stop-train-1", "StopTrainingJob", 2),
           ("processing-write", "-write", "DescribeProcessingJob", 1),
           ("pipeline-conditions", "-conditions", "DescribePipelineExecution", 1)]


def running(conform, until, row, part, operation, nth):
    """It waits in this request, behind the start of a job whose name ends so."""
    if operation.startswith("Describe"):  # what nothing holds
        conform.aws.settings(job_seconds=600)
    conform.aws.fault("delay", operation=operation, nth=nth, header=SDK, until=str(until))
    process = conform.start("--role", ROLE, "--queue", QUEUE, *asked([row]))
    cli.until(lambda: conform.aws.struck() > 0 or process.poll() is not None)
    assert process.poll() is None, ended(process)
    assert conform.runs(part)
    return process


@pytest.mark.parametrize("case", drawn(RUNNING, 2))
def test_killed_while_a_job_runs_clean_ends_it(aws, conform, tmp_path, case):
    process = running(conform, tmp_path / "go", *case)
    process.kill()
    process.communicate()
    (tmp_path / "go").touch()
    assert conform.left()
    code, out, err = conform.run("--clean", yes=False)
    assert (code, conform.left()) == (0, []), (out, err)


@pytest.mark.parametrize("case", drawn(RUNNING, 1))
def test_a_signal_ends_a_job_that_runs(aws, conform, tmp_path, case):
    process = running(conform, tmp_path / "go", *case)
    process.send_signal(signal.SIGTERM)
    (tmp_path / "go").touch()
    code, out, err = ended(process)
    assert (code, conform.left()) == (128 + signal.SIGTERM, []), (out, err)


# What conform asks next, behind the begin of what begins jobs.
BEGINS = {"states-cause": "DescribeExecution", "scheduler-target": "ListJobs"}


@pytest.mark.parametrize("row, number", drawn(
    [(row, number) for row in BEGINS for number in (signal.SIGKILL, signal.SIGTERM)], 2))
def test_what_would_begin_jobs_is_removed(aws, conform, tmp_path, row, number):
    aws.fault("job_pending", operation="SubmitJob", key="-train$", seconds=ALWAYS)
    aws.settings(ring_soon=0)
    held = aws.fault("delay", operation=BEGINS[row], header=SDK, until=str(tmp_path / "go"))
    process = conform.start(*ROLES, "--queue", QUEUE, *asked([row]))
    cli.until(lambda: any(rule["id"] == held and rule["struck"] for rule in aws.control("GET", "faults")), process)
    assert len(conform.beginners()) == 1
    process.send_signal(number)
    (tmp_path / "go").touch()
    code, out, err = ended(process)
    assert code == (-number if number == signal.SIGKILL else 128 + number), (out, err)
    if number == signal.SIGKILL:
        assert conform.beginners()
        code, out, err = conform.run("--clean", yes=False)
        assert code == 0, (out, err)
    assert conform.left() == []


def test_what_takes_days_is_begun_once(aws, conform):
    words = ["--queue", QUEUE, *asked([LATER])]
    assert conform.run(*words)[0] == 0
    first, mark = conform.data()["rows"][LATER]["seen"], aws.mark()
    assert conform.run(*words)[0] == 0
    assert conform.data()["rows"][LATER]["seen"] == first and "run conform again after" in first
    assert aws.requests("SubmitJob", mark) == 0


def test_a_repeat_goes_on_where_it_was(aws, conform):
    assert conform.run("--rows", "s3-*")[0] == 0
    mark = aws.mark()
    assert conform.run(*asked(REQUESTS), "--role", ROLE)[0] == 0
    assert sorted(conform.verdicts()) == REQUESTS
    puts = [row for row in aws.ledger(mark, "PutObject") if "/.stoker-doctor/" not in row["name"]]
    assert len(puts) == 1  # of link-end
    code, _, err = conform.run("--bucket", "another-bucket")
    assert code == 2 and "another region or bucket" in err


def test_clean_without_results_finds_all_runs(aws, conform):
    aws.client("s3").put_object(Bucket=BUCKET, Key="stoker-conform-0123456789abcdef/link", Body=b"x")
    aws.client("s3").put_object(Bucket=BUCKET, Key="mine", Body=b"x")
    assert conform.run("--clean", yes=False)[0] == 0
    assert conform.left() == ["mine"]
