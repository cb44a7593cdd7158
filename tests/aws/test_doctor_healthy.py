"""Set-ups in which nothing is wrong, on every engine, in several partitions, some with few rights: doctor fails none of
them, writes nothing but its probes, and leaves none. A right that is missing makes findings unknown, with its name."""

import pytest
from aws import ACCESS
from batch_job import IMAGE
from bucket_job import BUCKET
from examined import FOLDER, Examined, ExaminedLocal, ExaminedSagemaker, bad

EFA = {"templates": {"eight": {"efa": 8}, "four": {"efa": 4}}}
DIGEST = "sha256:" + "ab" * 32
PRIVATE = {"tables": [{"main": True, "to": {}}], "endpoints": [
    {"service": "s3", "type": "Gateway", "tables": [0]},
    *({"service": name, "type": "Interface"} for name in ("logs", "ecr.api", "ecr.dkr", "sts"))]}


def queue(name="own", policy=False, kind="EC2", **machines):
    """A job on a queue of its own."""
    def change(job):
        more = {"schedulingPolicyArn": job.batch.create_scheduling_policy(name="fair", fairsharePolicy={})["arn"]} if policy \
            else {}
        job.make_queue(name, kind=kind, machines=machines, **more)
        job.write(batch={**job.spec["batch"], "job_queue": name, **({"share_identifier": "team"} if policy else {})})
    return change


def fields(**changes):
    return lambda job: job.write(**{name: {**job.spec.get(name, {}), **value} if isinstance(value, dict) else value
                                    for name, value in changes.items()})


def account(**settings):
    return lambda job: job.aws.settings(**settings)


def several(*changes):
    return lambda job: [change(job) for change in changes]


def large(nodes, **machines):
    return lambda job: job.large(nodes=nodes, **machines)


def gpus(kind, nodes, template):
    more = {"launchTemplate": {"launchTemplateName": template}} if template else {
        "launchTemplate": None, "ec2Configuration": [{"imageType": "ECS_AL2023_NVIDIA"}]}
    return several(queue(instanceTypes=[kind], maxvCpus=1024, placementGroup="near", **more), account(ec2=EFA),
                   fields(resources={"instance": kind, "nodes": nodes}))


def two_environments(job):
    job.environment("off-env", instanceTypes=["m5"])
    job.environment("on-env")
    job.batch.create_job_queue(jobQueueName="two", priority=1, computeEnvironmentOrder=[
        {"order": 1, "computeEnvironment": "off-env"}, {"order": 2, "computeEnvironment": "on-env"}])
    job.write(batch={**job.spec["batch"], "job_queue": "two"})


def elsewhere(region, partition="aws", domain="amazonaws.com"):
    """All of it in another region."""
    def change(job):
        image = f"123456789012.dkr.ecr.{region}.{domain}/trainer:1"
        job.batch = job.aws.client("batch", region=region)
        job.make_queue("trn1")
        job.aws.push(image)
        job.aws.client(region=region).create_bucket(Bucket="there", CreateBucketConfiguration={"LocationConstraint": region})
        job.write(image=image, aws={"region": region}, workspace="s3://there/stoker", checkpoint={"url": "s3://there/ckpt"},
                  compile={**job.spec["compile"], "cache_url": "s3://there/cache"},
                  batch={**job.spec["batch"], "job_role": f"arn:{partition}:iam::123456789012:role/batch-job"})
        job.region = region
    return change


def without(*actions):
    """Rights to look that the caller does not have."""
    statement = [{"Effect": "Allow", "Action": "*", "Resource": "*"},
                 {"Effect": "Deny", "Action": list(actions), "Resource": "*"}]
    return account(policies={ACCESS: {"Version": "2012-10-17", "Statement": statement}})


BATCH = {
    "one node": several(),
    "two nodes over EFA": large(2),
    "sixteen nodes": large(16),
    "nodes without EFA": several(large(2), fields(resources={"efa": False})),
    "a placement group in the template": several(large(2, placementGroup=None), account(ec2={
        "templates": {"eight": {"efa": 8, "placement": "near"}}})),
    "groups in the template": several(large(2, securityGroupIds=None), account(ec2={
        "templates": {"eight": {"efa": 8, "groups": ["sg-3"]}}})),
    "a template for the type": large(2, launchTemplate={"launchTemplateName": "none", "overrides": [
        {"launchTemplateName": "eight", "targetInstanceTypes": ["trn1.32xlarge"]}]}),
    "subnets of which one offers the type": several(large(2, subnets=["subnet-1", "subnet-2"]), account(ec2={
        **EFA, "subnets": {"subnet-2": {"zone": "b"}}, "offerings": {"trn1.32xlarge": ["a"]}})),
    "quotas that just suffice": several(large(2), account(quotas={"L-2C3B7624": 256, "L-6B0D517C": 0, "L-DB2E81BA": 0})),
    "Spot, one node": several(queue(kind="SPOT"), account(quotas={"L-2C3B7624": 0})),
    "fair share": queue(policy=True),
    "two environments": two_environments,
    "one g5.12xlarge": gpus("g5.12xlarge", 1, None),
    "two p4d.24xlarge": gpus("p4d.24xlarge", 2, "four"),
    "no accelerator": several(queue(instanceTypes=["optimal"], launchTemplate=None, ec2Configuration=[
        {"imageType": "ECS_AL2023"}]), fields(resources={
        "instance": "m5.xlarge"})),
    "an image for one architecture": account(image_platforms={IMAGE: ["amd64"]}),
    "an image without an index": account(image_platforms={IMAGE: "amd64"}),
    "no checkpoints": lambda job: job.write(checkpoint=None),
    "an execution role": fields(batch={"execution_role": "arn:aws:iam::123456789012:role/execution"}),
    "us-west-2": elsewhere("us-west-2"),
    "ap-southeast-2": elsewhere("ap-southeast-2"),
    "China": elsewhere("cn-north-1", "aws-cn", "amazonaws.com.cn"),
    "GovCloud": elsewhere("us-gov-west-1", "aws-us-gov"),
    "no right to see EC2": several(large(2), without("ec2:*")),
    "no right to see quotas": without("servicequotas:*"),
    "no right to see queues": without("batch:Describe*"),
    "no right to see images": without("ecr:*"),
    "no right to see roles": without("iam:*"),
    "no right to see anything": several(large(2), without(
        "ec2:*", "servicequotas:*", "iam:*", "batch:Describe*", "ecr:*", "sts:AssumeRole")),
}
SAGEMAKER = {
    "one machine": account(quotas={"ml.c5.xlarge for training warm pool usage": 0}),
    "two trn1.32xlarge": fields(resources={"instance": "ml.trn1.32xlarge", "nodes": 2}),
    "Spot": several(fields(sagemaker={"spot": True}), account(quotas={"ml.c5.xlarge for training job usage": 0})),
    "a warm pool": fields(sagemaker={"warm_pool": "10m"}),
    "a short run": several(fields(sagemaker={"max_runtime": "1h"}), account(quotas={"Longest run time for a training job": 3600})),
    "a VPC with NAT": ExaminedSagemaker.in_network,
    "a VPC with endpoints": several(ExaminedSagemaker.in_network, account(ec2=PRIVATE)),
    "two nodes in a VPC": several(ExaminedSagemaker.in_network, fields(resources={"instance": "ml.trn1.32xlarge", "nodes": 2})),
    "keys": fields(sagemaker={"kms": {"output": "arn:aws:kms:eu-west-1:123456789012:key/1"}}),
    "an image by digest": lambda job: job.write(image=f"{IMAGE.rpartition(':')[0]}@{job.aws.push(IMAGE, DIGEST)}"),
    "no right to see EC2": several(ExaminedSagemaker.in_network, without("ec2:*")),
    "no right to see quotas": without("servicequotas:*"),
    "no right to see roles": without("iam:*", "sts:AssumeRole"),
}


def look(job, *argv, **env):
    since = job.aws.mark()
    findings = job.doctor(*argv, env=env)
    assert {row["state"] for row in findings if row["state"] != "ok" and not row["check"].startswith("here.")} <= {"unknown"}, \
        bad(findings)
    assert all(f"/{FOLDER}" in row["name"] for row in job.aws.ledger(since) if row["effect"] and row["service"] == "s3")
    assert not [row for row in job.aws.ledger(since) if row["effect"] and row["service"] not in ("s3", "sts")]
    assert job.probes() == []
    return bad(findings)


@pytest.mark.parametrize("what", BATCH)
def test_nothing_fails_on_aws_batch(aws, tmp_path, what):
    job = Examined(tmp_path / "project", aws)
    job.region = "eu-west-1"
    BATCH[what](job)
    elsewhere_env = {} if job.region == "eu-west-1" else {
        "AWS_REGION": job.region, "AWS_DEFAULT_REGION": job.region, "STOKER_STATE": "s3://there/state"}
    unknown = look(job, **elsewhere_env)
    assert bool(unknown) == what.startswith("no right"), unknown
    assert all(row.get("cure") or "not tried" in row["seen"] for row in unknown)


@pytest.mark.parametrize("what", SAGEMAKER)
def test_nothing_fails_on_sagemaker(aws, tmp_path, what):
    job = ExaminedSagemaker(tmp_path / "project", aws)
    SAGEMAKER[what](job)
    unknown = look(job)
    assert bool(unknown) == what.startswith("no right"), unknown


def test_nothing_fails_here_with_everything_in_buckets(aws, tmp_path):
    job = ExaminedLocal(tmp_path / "project", aws)
    assert look(job) == []
    assert {row["state"] for row in look(job, "--read-only")} == {"unknown"}
    assert BUCKET in job.url["cache"]
