"""What an account has (networks, machines, roles, quotas), as boto3 reads it from the stand-in."""

import botocore.exceptions
import pytest

ROLE = "arn:aws:iam::123456789012:role/job"
PUT = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::b/*"}]}


def code(call, **params):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**params)
    return caught.value.response["Error"]["Code"]


def test_networks_and_machines(aws):
    ec2 = aws.client("ec2")
    aws.settings(ec2={"subnets": {"subnet-2": {"zone": "b", "free": 3}, "subnet-9": None}, "groups": {"sg-2": {"in": ["all"]}},
                      "templates": {"eight": {"efa": 8, "placement": "near"}}, "placement": {"far": "spread"},
                      "offerings": {"trn1.32xlarge": ["b"]}, "types": {"trn1.2xlarge": {"memory": 1024}},
                      "tables": [{"subnets": ["subnet-2"], "to": {"pl-1": "vpce-0"}}],
                      "endpoints": [{"service": "s3", "type": "Gateway", "tables": [0]}]})
    rows = ec2.describe_subnets(SubnetIds=["subnet-1", "subnet-2"])["Subnets"]
    assert [(row["AvailabilityZone"], row["AvailableIpAddressCount"]) for row in rows] == [("eu-west-1a", 250), ("eu-west-1b", 3)]
    assert code(ec2.describe_subnets, SubnetIds=["subnet-9"]) == "InvalidSubnetID.NotFound"
    group, = ec2.describe_security_groups(GroupIds=["sg-2"])["SecurityGroups"]
    assert group["IpPermissions"][0]["IpRanges"] == [{"CidrIp": "0.0.0.0/0"}] and len(group["IpPermissionsEgress"]) == 2
    version, = ec2.describe_launch_template_versions(LaunchTemplateName="eight", Versions=["$Default"])["LaunchTemplateVersions"]
    assert len(version["LaunchTemplateData"]["NetworkInterfaces"]) == 8
    assert version["LaunchTemplateData"]["Placement"] == {"GroupName": "near"}
    assert ec2.describe_placement_groups(GroupNames=["far"])["PlacementGroups"][0]["Strategy"] == "spread"
    found = ec2.describe_instance_type_offerings(LocationType="availability-zone", Filters=[
        {"Name": "instance-type", "Values": ["trn1.32xlarge"]}])["InstanceTypeOfferings"]
    assert [row["Location"] for row in found] == ["eu-west-1b"]
    assert ec2.describe_instance_types(InstanceTypes=["trn1.2xlarge"])["InstanceTypes"][0]["MemoryInfo"] == {"SizeInMiB": 1024}
    table, = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": ["vpc-1"]}])["RouteTables"]
    assert table["Routes"][1] == {"DestinationPrefixListId": "pl-1", "GatewayId": "vpce-0", "State": "active"}
    endpoint, = ec2.describe_vpc_endpoints(Filters=[{"Name": "vpc-id", "Values": ["vpc-1"]}])["VpcEndpoints"]
    assert endpoint["ServiceName"] == "com.amazonaws.eu-west-1.s3" and endpoint["RouteTableIds"] == ["rtb-0"]


def test_roles_and_what_they_may_do(aws):
    iam = aws.client("iam")
    aws.settings(iam_roles={"job": {"trust": ["ecs-tasks.amazonaws.com"]}, "none": None}, policies={ROLE: PUT})
    role = iam.get_role(RoleName="job")["Role"]
    assert role["Arn"] == ROLE
    assert role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {"Service": "ecs-tasks.amazonaws.com"}
    assert code(iam.get_role, RoleName="none") == "NoSuchEntity"
    rows = iam.simulate_principal_policy(PolicySourceArn=ROLE, ActionNames=["s3:PutObject", "s3:GetObject"],
                                         ResourceArns=["arn:aws:s3:::b/k"])["EvaluationResults"]
    assert [row["EvalDecision"] for row in rows] == ["allowed", "implicitDeny"]
    assert code(iam.simulate_principal_policy, PolicySourceArn=ROLE.replace("job", "none"), ActionNames=["s3:PutObject"]) == \
        "NoSuchEntity"


def test_quotas(aws):
    quotas = aws.client("service-quotas")
    aws.settings(quotas={"L-2C3B7624": 128, "ml.trn1.2xlarge for training job usage": 1})
    assert quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-2C3B7624")["Quota"]["Value"] == 128
    rows = [row for page in quotas.get_paginator("list_service_quotas").paginate(ServiceCode="sagemaker")
            for row in page["Quotas"]]
    values = {row["QuotaName"]: row["Value"] for row in rows}
    assert len(values) > 100 and values["ml.trn1.2xlarge for training job usage"] == 1
