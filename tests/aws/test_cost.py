"""What runs on services cost: estimated, accrued and billable, each beside a figure computed
from what the service says of its jobs; and limits that are reached in training."""

from datetime import datetime

import pytest
from batch_job import BatchJob
from sagemaker_job import SagemakerJob

PRICE = 36  # USD an hour and node: a cent a second


@pytest.fixture
def make(aws, tmp_path):
    made = []

    def build(kind, **changes):
        made.append(kind(tmp_path / "project", aws, **changes))
        made[0].write(resources={**made[0].spec["resources"], "price": PRICE})
        return made[0]
    yield build
    for job in made:
        job.stop()


def seconds(row: dict) -> float:
    return (row["stoppedAt"] - row["startedAt"]) / 1000


def test_a_run_on_batch_costs_what_its_jobs_had_their_machines_for(make):
    job = make(BatchJob)
    job.run("--id", "one")
    rows = {row["jobName"].rsplit("-", 2)[1]: seconds(row) for row in job.jobs()}
    assert set(rows) == {"precompile", "train"}
    status = job.status("one")
    cost = status["cost"]
    expected = sum(rows.values()) / 100
    assert cost["accrued"] == pytest.approx(expected, abs=0.002)
    assert cost["estimated"] == pytest.approx(cost["accrued"])  # sums of the same terms, in another order
    # Its machines were EC2's before that, which bills them: nobody here knows for what.
    assert "billable" not in cost and not any("billable" in row for row in status["attempts"])
    assert "billed" not in job.ok("status", "one").out
    # 8. The ledger's cost adds up to the cost.
    assert sum(cost["bins"].values()) == pytest.approx(cost["accrued"]) and cost["bins"]["pull"] > 0
    assert job.plan("--set", f"compile.cache_url={job.url['cache']}2")["cost"]["estimated"] == \
        pytest.approx(expected)


def kept_seconds(job, jobs) -> float:
    """For how long machines were kept, as the journal has it; and that this is what the service
    says. The last ones are given back before it says so: that is by our clock, and later than the
    service's by what the way there and back takes."""
    told = {row["job"]: row for row in kept_rows(job)}
    for each in jobs:
        row = told.get(each["TrainingJobName"], {"seconds": 0})
        retained = each.get("WarmPoolStatus", {}).get("ResourceRetainedBillableTimeInSeconds", 0)
        if each is not jobs[-1] or "at" not in row:
            assert abs(row["seconds"] - retained) <= (each is jobs[-1]), (row, each)
        else:
            until = datetime.fromisoformat(row["at"]) - each["TrainingEndTime"]
            assert retained - 1 <= row["seconds"] <= until.total_seconds(), (row, each)
    return sum(row["seconds"] for row in told.values())


def kept_rows(job) -> list:
    jobs = {(row["phase"], row["attempt"]): row["job"] for row in job.rows(kind="attempt.submitted")}
    return [{**row, "job": jobs[row["phase"], row["attempt"]]} for row in job.rows(kind="attempt.kept")]


@pytest.mark.parametrize("options", [{"warm_pool": "10m"}, {"spot": True, "max_runtime": "1h"}],
                         ids=["warm pool", "spot"])
def test_a_run_on_sagemaker_costs_what_is_billed_and_what_was_kept(make, options):
    job = make(SagemakerJob, sagemaker=options, **({"compile": None} if "spot" in options else {}))
    if "warm_pool" in options:  # a look at the cache that takes its time
        job.write(compile={**job.spec["compile"], "quiet_period": "2s"})
    job.run("--id", "one")
    names = [row["job"] for row in job.rows(kind="attempt.submitted")]
    jobs = [job.described(name) for name in names]
    kept = kept_seconds(job, jobs)
    held = sum((each["TrainingEndTime"] - each["TrainingStartTime"]).total_seconds() for each in jobs)
    billed = sum(each["BillableTimeInSeconds"] for each in jobs)
    assert len(jobs) == (1 if "spot" in options else 2) and (kept > 0) == ("warm_pool" in options)
    cost = job.status("one")["cost"]
    assert cost["billable"] == pytest.approx((billed + kept) / 100)
    assert cost.get("kept", 0) == pytest.approx(kept / 100)
    assert cost["accrued"] == pytest.approx((held + kept) / 100, abs=0.002)
    assert cost["billable"] - cost.get("kept", 0) == pytest.approx(billed / 100)
    assert sum(cost["bins"].values()) + cost.get("kept", 0) == pytest.approx(cost["accrued"])
    if "spot" in options:
        assert cost["billable"] < cost["accrued"]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "limits"), [(BatchJob, {"deadline": "110s"}), (SagemakerJob, {"cost": 1.1})],
                         ids=["deadline on batch", "cost on sagemaker"])
def test_a_limit_reached_in_training_saves_before(make, kind, limits):
    job = make(kind)
    job.write(compile=None,
              hyperparameters={"max_steps": 1000}, limits={**limits, "grace": "5s"},
              checkpoint={"url": job.url["ckpt"], "grace": "5s"},
              env={**job.spec["env"], "STEP_SECONDS": "0.5"})
    name = next(iter(limits))
    # The journal on this machine: it tells of progress sooner.
    here = {"STOKER_STATE": str(job.root / "state")}
    job.run("--id", "one", code=5, env=here)
    events = job.ok("events", "one", env=here).lines
    kinds = [row["event"] for row in events]
    assert [row["limit"] for row in events if row["event"] == "run.at_risk"] == [name]
    reached = next(row for row in events if row["event"] == "limit.reached")
    assert reached["limit"] == name and "was asked to save" in reached["reason"]
    saved = [row["step"] for row in events[kinds.index("limit.reached"):]
             if row["event"] == "checkpoint.complete"]
    told = job.effects("told")
    assert len(told) == 1 and max(saved) == job.effects("saved")[-1]["step"]
    status = job.ok("--json", "status", "one", env=here).lines[0]
    if name == "cost":
        assert status["cost"]["accrued"] <= 1.1
    else:
        assert status["ledger"]["total"] <= 110
