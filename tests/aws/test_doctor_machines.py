"""What doctor sees of machines and networks: each planted fault is found before anything is sent, with its cure, and is
gone once cured."""

import pytest
from examined import Examined, ExaminedSagemaker, bad, of

LOOKS = {"DescribeSubnets": "network.zone", "DescribeInstanceTypeOfferings": "network.zone",
         "DescribeInstanceTypes": "batch.memory", "DescribeLaunchTemplateVersions": "batch.efa",
         "DescribeSecurityGroups": "network.groups", "DescribePlacementGroups": "network.placement"}
FAR_LOOKS = {"DescribeRouteTables": "network.ways", "DescribeVpcEndpoints": "network.ways",
             "DescribeSecurityGroups": "network.groups"}
TWO_ZONES = {"subnets": {"subnet-2": {"zone": "b"}}}
EFA = {"templates": {"eight": {"efa": 8}}}


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


# --- machines ---

def test_a_machine_with_less_memory_than_the_catalogue_says(job):
    wrong = job.found("batch.memory", ec2={"types": {"trn1.2xlarge": {"memory": 16384}}})
    assert "30475 MiB" in wrong["seen"] and "16384 MiB" in wrong["seen"] and wrong["field"] == "resources.instance"


@pytest.mark.parametrize("efa, words", [(0, "launch template has 0"), (4, "launch template has 4"),
                                        (9, "the type can have 8")])
def test_a_launch_template_with_other_interfaces_than_jobs_need(job, efa, words):
    job.large()
    wrong = job.found("batch.efa", ec2={"templates": {"eight": {"efa": efa}}})
    assert words in wrong["seen"], wrong


def test_no_launch_template_for_nodes_with_efa(job):
    job.large(launchTemplate=None, ec2Configuration=[{"imageType": "ECS_AL2023", "imageIdOverride": "ami-1"}])
    assert "without a launch template" in of(job.doctor("--only", "batch.efa", code=4), "batch.efa")["seen"]
    job.large(queue="other")
    assert bad(job.doctor()) == []


def test_a_launch_template_that_is_not_there(job):
    wrong = job.found("batch.efa", ec2={"templates": {"neuron": None}})
    assert wrong["code"] == "InvalidLaunchTemplateName.NotFoundException" and "launch template" in wrong["cure"]


def test_a_template_for_the_type_rules_the_common_one(job):
    job.large(launchTemplate={"launchTemplateName": "neuron", "overrides": [
        {"launchTemplateName": "eight", "targetInstanceTypes": ["trn1"]}]})
    assert bad(job.doctor()) == []


@pytest.mark.parametrize("fair", [True, False])
def test_a_share_and_a_queue_that_do_not_fit(job, fair):
    policy = job.batch.create_scheduling_policy(name="fair", fairsharePolicy={})["arn"]
    job.make_queue("fair", schedulingPolicyArn=policy)
    share = {"share_identifier": "team"}
    queue, other = ("fair", "trn1") if fair else ("trn1", "fair")
    job.write(batch={**job.spec["batch"], "job_queue": queue, **({} if fair else share)})
    wrong = of(job.doctor("--only", "batch.*", code=4), "batch.queue", state="fail")
    assert wrong["field"] == "batch.share_identifier" and wrong["cure"]
    assert wrong["seen"] in job.run(code=None).err and job.jobs() == []
    assert bad(job.doctor("--only", "batch.*", "--set", f"batch.job_queue={other}")) == []


# --- networks ---

def test_no_zone_of_the_subnets_offers_the_type(job):
    wrong = job.found("network.zone", ec2={"offerings": {"trn1.2xlarge": ["c"]}})
    assert "eu-west-1a" in wrong["seen"] and "trn1.2xlarge" in wrong["seen"] and wrong["field"] == "batch.job_queue"


def test_nodes_that_may_start_in_several_zones(job):
    job.large(subnets=["subnet-1", "subnet-2"])
    job.aws.settings(ec2={**EFA, "offerings": {"trn1.32xlarge": ["a"]}, **TWO_ZONES})
    assert bad(job.doctor()) == [], "machines start in the zone that offers them"
    assert "several" in job.found("network.zone", ec2={**EFA, **TWO_ZONES})["seen"]


def test_nodes_without_efa_in_several_zones_are_warned_of(job):
    job.large(subnets=["subnet-1", "subnet-2"])
    job.write(resources={**job.spec["resources"], "efa": False})
    assert "several zones" in job.found("network.zone", "warn", ec2={**EFA, **TWO_ZONES})["seen"]


def test_a_subnet_that_is_not_there(job):
    findings = bad(job.doctor("--only", "network.*", "--set", "name=fake"))
    assert findings == []
    job.aws.settings(ec2={"subnets": {"subnet-1": None}})
    wrong = {row["check"]: row for row in bad(job.doctor("--only", "network.*", code=4))}
    assert wrong["network.zone"]["state"] == "fail" and wrong["network.zone"]["code"] == "InvalidSubnetID.NotFound"
    assert "subnets that exist" in wrong["network.zone"]["cure"] and wrong["network.addresses"]["state"] == "unknown"
    job.aws.settings(ec2={})
    assert bad(job.doctor("--only", "network.*")) == []


def test_too_few_addresses(job):
    job.large(nodes=4)
    wrong = job.found("network.addresses", ec2={**EFA, "subnets": {"subnet-1": {"free": 3}}})
    assert "4 nodes need" in wrong["seen"] and "3 free" in wrong["seen"]


@pytest.mark.parametrize("strategy", ["spread", "partition"])
def test_a_placement_group_of_another_strategy(job, strategy):
    job.large()
    assert strategy in job.found("network.placement", "warn", ec2={**EFA, "placement": {"near": strategy}})["seen"]


def test_no_placement_group(job):
    job.large(placementGroup=None)
    assert "without a placement group" in of(job.doctor("--only", "network.*"), "network.placement", state="warn")["seen"]
    job.aws.settings(ec2={"templates": {"eight": {"efa": 8, "placement": "near"}}})
    assert bad(job.doctor()) == []


def test_a_placement_group_that_is_not_there(job):
    job.large()
    wrong = job.found("network.placement", ec2={**EFA, "placement": {"near": None}})
    assert wrong["code"] == "InvalidPlacementGroup.Unknown" and "make the placement group" in wrong["cure"]


RULES = {"nothing in": {"in": []}, "nothing out": {"out": []}, "out to addresses, which EFA does not have": {"out": ["all"]},
         "one port": {"in": [{"protocol": "tcp", "group": "sg-1"}]}}


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


def test_endpoints_stand_in_for_a_way_out(far):
    far.aws.settings(ec2={**PRIVATE, "endpoints": [GATEWAY, *ENDPOINTS]})
    assert bad(far.doctor()) == []


def test_an_internet_gateway_is_no_way_for_machines_without_addresses(far):
    wrong = far.found("network.ways", ec2={"tables": [{"main": True, "to": {"0.0.0.0/0": "igw-1"}}]})
    assert "s3 from subnet-1" in wrong["seen"] and "NAT" in wrong["cure"] and wrong["field"] == "sagemaker.vpc.subnets"


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


def test_a_network_of_sagemaker_that_is_too_small_or_shut(far):
    far.write(resources={"instance": "ml.trn1.32xlarge", "nodes": 2})
    far.found("network.addresses", ec2={"subnets": {"subnet-1": {"free": 1}}})
    far.found("network.groups", ec2={"groups": {"sg-1": {"out": ["all"]}}})
    assert "sagemaker.vpc" in far.found("network.groups", ec2={"groups": {"sg-1": None}})["cure"]


# --- rights, and silence ---

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
    unknown, = bad(far.doctor())
    assert unknown["check"] == FAR_LOOKS[operation] and f"ec2:{operation}" in unknown["cure"]


def test_ec2_that_says_nothing_costs_its_own_findings(job):
    job.aws.fault("hang", service="ec2", count=0, seconds=3600)
    assert {row["check"] for row in bad(job.doctor())} == {"batch.memory", "batch.efa"} | {
        f"network.{name}" for name in ("zone", "addresses", "placement", "groups")}
