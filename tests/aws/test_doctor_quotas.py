"""Quotas that are too small for the jobs are found before anything is sent, and are gone once they are raised."""

import pytest
from examined import Examined, ExaminedSagemaker, bad, of

TRN, TRN_SPOT, G = "L-2C3B7624", "L-6B0D517C", "L-DB2E81BA"
USAGE, SPOT, POOL = "for training job usage", "for spot training job usage", "for training warm pool usage"
LONGEST = "Longest run time for a training job"


@pytest.fixture
def job(aws, tmp_path):
    made = Examined(tmp_path / "project", aws)
    yield made
    made.stop()


@pytest.fixture
def far(aws, tmp_path):
    made = ExaminedSagemaker(tmp_path / "project", aws)
    yield made
    made.stop()


def test_vcpus_of_the_family(job):
    job.large(nodes=2)
    wrong = job.found("quota.vcpus", quotas={TRN: 128})
    assert "needs 256 vCPUs, has 128" in wrong["seen"] and TRN in wrong["seen"] and wrong["field"] == "resources.nodes"
    assert f"--quota-code {TRN} --desired-value 256" in wrong["cure"]
    job.aws.settings(quotas={TRN: 256, TRN_SPOT: 0, G: 0})
    assert bad(job.doctor()) == [], "quotas of other machines do not matter"


def test_vcpus_on_spot(job):
    job.make_queue("spot", kind="SPOT")
    job.write(batch={**job.spec["batch"], "job_queue": "spot"})
    job.aws.settings(quotas={TRN: 0})
    assert bad(job.doctor("--only", "quota.*")) == []
    assert TRN_SPOT in job.found("quota.vcpus", quotas={TRN: 0, TRN_SPOT: 4})["seen"]


def test_vcpus_of_gpus(job):
    job.make_queue("gpus", machines={"instanceTypes": ["g5"], "launchTemplate": None})
    job.write(batch={**job.spec["batch"], "job_queue": "gpus"}, resources={"instance": "g5.12xlarge"})
    assert "needs 48 vCPUs, has 0" in job.found("quota.vcpus", quotas={G: 0})["seen"]


def test_a_quota_that_nobody_has_asked_to_raise_is_the_default(job):
    job.aws.fault("error", operation="GetServiceQuota", code="NoSuchResourceException", count=0)
    assert bad(job.doctor("--only", "quota.*")) == []
    job.found("quota.vcpus", quotas={TRN: 0})


def test_training_jobs(far):
    far.write(resources={"instance": "ml.trn1.32xlarge", "nodes": 4})
    wrong = far.found("quota.machines", quotas={f"ml.trn1.32xlarge {USAGE}": 2})
    assert f"ml.trn1.32xlarge {USAGE}" in wrong["seen"] and "needs 4, has 2" in wrong["seen"]
    assert "--service-code sagemaker --quota-code L-" in wrong["cure"]


def test_spot(far):
    far.write(sagemaker={**far.spec["sagemaker"], "spot": True})
    far.aws.settings(quotas={f"ml.c5.xlarge {USAGE}": 0})
    assert bad(far.doctor("--only", "quota.*")) == []
    far.found("quota.machines", quotas={f"ml.c5.xlarge {SPOT}": 0})


def test_a_warm_pool(far):
    far.aws.settings(quotas={f"ml.c5.xlarge {POOL}": 0})
    assert bad(far.doctor("--only", "quota.*")) == []
    far.write(sagemaker={**far.spec["sagemaker"], "warm_pool": "10m"})
    far.aws.settings(quotas={})
    assert far.found("quota.warm_pool", quotas={f"ml.c5.xlarge {POOL}": 0})["field"] == "sagemaker.warm_pool"


def test_the_longest_run(far):
    far.write(sagemaker={**far.spec["sagemaker"], "max_runtime": "10d"})
    wrong, = bad(far.doctor("--only", "quota.*", code=4))
    assert wrong["check"] == "quota.longest_run" and "needs 864000 s, has 432000" in wrong["seen"]
    far.aws.settings(quotas={LONGEST: 864000})
    assert bad(far.doctor("--only", "quota.*")) == []


def test_a_type_that_has_no_quota_there_is_not_known(far):
    assert f"lists no quota 'ml.c5.xlarge {USAGE}'" in far.found("quota.machines", "unknown", quotas={
        f"ml.c5.xlarge {USAGE}": None})["seen"]


def test_a_missing_right_to_look_at_quotas_of_ec2(job):
    job.aws.fault("denied", service="servicequotas", count=0)
    unknown, = bad(job.doctor())
    assert unknown["check"] == "quota.vcpus" and "servicequotas:GetServiceQuota" in unknown["cure"]


def test_a_missing_right_to_look_at_quotas_of_sagemaker(far):
    far.aws.fault("denied", service="servicequotas", count=0)
    unknown = bad(far.doctor("--only", "quota.*"))
    assert {row["state"] for row in unknown} == {"unknown"}
    assert "servicequotas:ListServiceQuotas" in of(unknown, "quota.machines")["cure"]


def test_quotas_that_say_nothing_cost_their_own_findings(far):
    far.aws.fault("hang", service="servicequotas", count=0, seconds=3600)
    assert {row["check"] for row in bad(far.doctor())} == {
        "quota.machines", "quota.warm_pool", "quota.longest_run"}
