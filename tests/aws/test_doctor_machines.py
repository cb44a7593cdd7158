"""What doctor sees of machines, networks and quotas where it depends on more than one thing, and where it may not look.
The plain faults are in test_doctor_faults.py."""

import pytest
from examined import Examined, ExaminedSagemaker, bad, of

LOOKS = {"DescribeSubnets": "network.zone", "DescribeInstanceTypeOfferings": "network.zone",
         "DescribeInstanceTypes": "batch.memory", "DescribeLaunchTemplateVersions": "batch.efa",
         "DescribeSecurityGroups": "network.groups", "DescribePlacementGroups": "network.placement"}
FAR_LOOKS = {"DescribeRouteTables": "network.ways", "DescribeVpcEndpoints": "network.ways",
             "DescribeSecurityGroups": "network.groups"}
EFA = {"templates": {"eight": {"efa": 8}}}
TRN, USAGE = "L-2C3B7624", "for training job usage"


@pytest.fixture
def job(aws, tmp_path):
    made = Examined(tmp_path / "project", aws)
    yield made
    made.stop()


@pytest.fixture
def far(aws, tmp_path):
    """On SageMaker, in a network of its own."""
    made = ExaminedSagemaker(tmp_path / "project", aws)
    made.in_network()
    yield made
    made.stop()


# --- networks ---

RULES = {"nothing out": {"out": []}, "one port": {"in": [{"protocol": "tcp", "group": "sg-1"}]}}


@pytest.mark.parametrize("rules", RULES)
def test_a_security_group_that_keeps_nodes_apart(job, rules):
    job.large()
    wrong = job.found("network.groups", ec2={**EFA, "groups": {"sg-1": RULES[rules]}})
    assert "EFA" in wrong["seen"] and "-1" in wrong["cure"]


def test_groups_of_the_launch_template_count_where_the_environment_has_none(job):
    job.large(securityGroupIds=None)
    templates = {"templates": {"eight": {"efa": 8, "groups": ["sg-7"]}}}
    job.aws.settings(ec2=templates)
    assert bad(job.doctor()) == []
    job.found("network.groups", ec2={**templates, "groups": {"sg-7": {"in": []}}})


# --- SageMaker in a VPC ---

PRIVATE = {"tables": [{"main": True, "to": {}}]}
SERVICES = ("s3", "logs", "ecr.api", "ecr.dkr", "sts")
ENDPOINTS = [{"service": name, "type": "Interface"} for name in SERVICES[1:]]
GATEWAY = {"service": "s3", "type": "Gateway", "tables": [0]}
WAYS = {
    "the gateway is in another table": ([{**GATEWAY, "tables": [1]}, *ENDPOINTS], "fail"),
    "no endpoint of S3": (ENDPOINTS, "fail"),
    "one that is not ready": ([{**GATEWAY, "state": "Pending"}, *ENDPOINTS], "fail"),
    "no endpoint of logs": ([GATEWAY, *ENDPOINTS[1:]], "warn"),
    "one without private names": ([GATEWAY, *ENDPOINTS[:3], {**ENDPOINTS[3], "dns": False}], "warn")}


@pytest.mark.parametrize("what", WAYS)
def test_services_that_cannot_be_reached(far, what):
    endpoints, state = WAYS[what]
    wrong = far.found("network.ways", state, ec2={**PRIVATE, "endpoints": endpoints})
    assert ("s3" in wrong["seen"]) == (state == "fail") and "VPC endpoints" in wrong["cure"]


def test_a_table_of_the_subnet_rules_the_main_one(far):
    tables = [{"main": True, "to": {"0.0.0.0/0": "nat-1"}}, {"subnets": ["subnet-1"], "to": {}}]
    far.found("network.ways", ec2={"tables": tables})


# --- rights ---

@pytest.mark.parametrize("operation", LOOKS)
def test_a_missing_right_to_look_at_machines(job, operation):
    job.large()
    job.aws.fault("denied", operation=operation, count=0)
    unknown = bad(job.doctor("--only", "[bn]*"))
    assert {row["state"] for row in unknown} == {"unknown"}
    assert f"ec2:{operation}" in of(unknown, LOOKS[operation])["cure"]


@pytest.mark.parametrize("operation", FAR_LOOKS)
def test_a_missing_right_to_look_at_a_network(far, operation):
    far.aws.fault("denied", operation=operation, count=0)
    unknown, = bad(far.doctor("--only", "network.*"))
    assert unknown["check"] == FAR_LOOKS[operation] and f"ec2:{operation}" in unknown["cure"]


# --- quotas ---

def test_a_quota_that_nobody_has_asked_to_raise_is_the_default(job):
    job.aws.fault("error", operation="GetServiceQuota", code="NoSuchResourceException", count=0)
    assert bad(job.doctor("--only", "quota.*")) == []
    job.found("quota.vcpus", quotas={TRN: 0})


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
