"""What a run costs: before it runs, by the price and by what an earlier one took; after it, by
the ledger. And what the machines are said to be, by the catalogue and by one's own."""

from datetime import datetime

import pytest

BATCH = {"engine": "batch", "workspace": "s3://bucket/w", "image": "image:1", "batch": {"job_queue": "q"},
         "compile": None, "aws": {"region": "us-west-2"}}


def test_the_plan_tells_what_the_newest_run_like_it_cost(project):
    project.write(resources={"price": 36, "nodes": 1}, limits={"deadline": "30m", "cost": 20})
    before = project.plan()["cost"]
    assert before == {"per_hour": 36, "price": 36, "at_most": 18, "limit": "limits.deadline"}
    project.run("--id", "one")
    attempts = project.events("one", "attempt.claimed"), project.events("one", "attempt.ended")
    cost = project.status("one")["cost"]
    # Cold, as that run was.
    cold = project.plan("--set", f"compile.cache_url={project.root}/another")["cost"]
    assert cold["as_run"] == "one" and cold["estimated"] == pytest.approx(cost["accrued"])
    # The cache is warm now: phase 1 costs nothing any more.
    warm = project.plan()["cost"]
    assert 0 < warm["estimated"] < cost["accrued"]
    assert warm["estimated"] == pytest.approx(held(*attempts)["train"] * 36 / 3600, abs=1e-5)
    said = project.ok("plan", project.spec_path, "--set", "resources.price=72").out
    assert "cost:    72.00 USD an hour" in said
    assert f"about {2 * warm['estimated']:.2f} USD, like run one" in said
    assert "at most 20.00 USD, by limits.cost" in said
    # What an eager run costs says nothing about others.
    project.run("--id", "two", "--set", "debug=true")
    assert project.plan()["cost"] == warm
    # Another number of steps is another run.
    assert "estimated" not in project.plan("--set", "hyperparameters.max_steps=21")["cost"]


def held(claims, ends) -> dict:
    """Seconds by phase, from the journal alone."""
    return {end["phase"]: (datetime.fromisoformat(end["at"]) - datetime.fromisoformat(
        claim["since"])).total_seconds() for claim, end in zip(claims, ends, strict=True)}


def test_the_catalogue_prices_machines_and_counts_their_cores(project):
    project.write(**BATCH, resources={"instance": "trn1.32xlarge", "nodes": 2}, limits={"cost": 100},
                  command=["torchrun", "--nproc_per_node", 16, "train.py"])
    said = project.ok("plan", project.spec_path)
    assert "cost:    43.00 USD an hour: nodes: 2, trn1.32xlarge at 21.5 USD (us-east-1, 2026-07-20" in said.out
    assert "the price is that of us-east-1; prices in us-west-2 may differ" in said.out
    assert "16 of the 32 cores of 'trn1.32xlarge' stay unused: 10.75 of 21.50 USD an hour" in said.err
    assert project.plan()["cost"]["price_from"]["region"] == "us-east-1"
    more = project.stoker("validate", project.spec_path, "--set", "resources.instance=trn1.2xlarge")
    assert more.code == 3 and "16 workers on a node, but 'trn1.2xlarge' has 2 cores" in more.err


def test_a_cost_limit_without_a_price_is_refused_until_ones_own_catalogue_has_one(project):
    project.write(**BATCH, resources={"instance": "trn2.48xlarge"}, limits={"cost": 100})
    refused = project.stoker("plan", project.spec_path)
    assert refused.code == 3
    assert "'limits.cost' needs a price, and the catalogue has none of 'trn2.48xlarge'" in refused.err
    assert "resources: {price: 21.50}" in refused.err
    own = project.root / "own.yaml"
    own.write_text("version: 1\ninstances: {trn2.48xlarge: {price: 40, region: us-east-1, dated: 2026-11}}\n")
    env = {"STOKER_INSTANCES": str(own)}
    plan = project.ok("--json", "plan", project.spec_path, env=env).lines[0]
    assert plan["cost"]["per_hour"] == 40 and plan["cost"]["price_from"]["source"] == str(own)
    own.write_text("version: 1\ninstances: {trn2.48xlarge: {prise: 40}}\n")
    wrong = project.stoker("validate", project.spec_path, env=env)
    assert wrong.code == 3 and f"{own}:2:29: unknown field 'prise' of an instance type" in wrong.err
