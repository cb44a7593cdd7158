"""What runs on services cost: estimated, accrued and billable, each beside a figure computed
from what the service says of its jobs; and limits that are reached in training."""

import pytest
from batch_job import BatchJob

PRICE = 36  # USD an hour and node: a cent a second


@pytest.fixture
def job(aws, tmp_path):
    made = BatchJob(tmp_path / "project", aws)
    yield made
    made.stop()


def seconds(row: dict) -> float:
    return (row["stoppedAt"] - row["startedAt"]) / 1000


def test_a_run_on_batch_costs_what_its_jobs_had_their_machines_for(job):
    job.write(resources={"instance": "trn1.2xlarge", "price": PRICE})
    job.run("--id", "one")
    rows = {row["jobName"].rsplit("-", 2)[1]: seconds(row) for row in job.jobs()}
    assert set(rows) == {"precompile", "train"}
    status = job.status("one")
    cost = status["cost"]
    expected = sum(rows.values()) / 100
    assert cost["billable"] == pytest.approx(expected)
    assert cost["accrued"] == pytest.approx(expected, abs=0.002)
    assert cost["estimated"] == cost["billable"]
    # 8. The ledger's cost adds up to the cost.
    assert sum(cost["bins"].values()) == pytest.approx(cost["accrued"]) and cost["bins"]["pull"] > 0
    assert {row["phase"]: row["billable"] for row in status["attempts"]} == pytest.approx(rows)
    assert f"billed: {cost['billable']:.2f} USD" in job.ok("status", "one").out
    assert job.plan("--set", f"compile.cache_url={job.url['cache']}2")["cost"]["estimated"] == \
        pytest.approx(expected)


@pytest.mark.parametrize("limits", [{"deadline": "110s"}, {"cost": 1.1}], ids=["deadline", "cost"])
def test_a_limit_reached_in_training_saves_before(job, limits):
    job.write(resources={"instance": "trn1.2xlarge", "price": PRICE}, compile=None,
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
    assert reached["limit"] == name and "was told to save" in reached["reason"]
    saved = [row["step"] for row in events[kinds.index("limit.reached"):]
             if row["event"] == "checkpoint.complete"]
    told = job.effects("told")
    assert len(told) == 1 and max(saved) == job.effects("saved")[-1]["step"]
    assert job.effects("saved")[-1]["at"] > told[0]["at"]
    status = job.ok("--json", "status", "one", env=here).lines[0]
    (row,) = job.jobs()
    if name == "cost":
        assert status["cost"]["accrued"] <= 1.1
    else:
        assert status["ledger"]["total"] <= 110
    assert status["cost"]["billable"] == pytest.approx(seconds(row) / 100)
