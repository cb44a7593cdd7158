"""Faults that doctor must find: what is planted, the words in which it is found, and what cures it. The cure is read from
what doctor prints wherever that is more than words. Faults that do not disturb each other share a set-up: one look finds
them all. tests/aws/test_doctor_faults.py holds the table against doctor and `run`."""

from dataclasses import dataclass
from typing import Callable

from batch_job import IMAGE
from examined import Examined, ExaminedLocal, ExaminedSagemaker
from planting import (account_has, agent_of_another_folder, both, broken_library, cleared, ends_soon, environment_changes,
                      fair_share, far_bucket, fault, field, field_is, give_share, image_of_aws, install, keys, make_bucket, make_room,
                      no_room, other_env, own_row, push, queue, queue_changes, raised, ram_as_seen, remove_field, rights_but,
                      rights_without_keys, says, state_below, state_in_a_file, statement, statement_is, unset, whole_tag,
                      workspace_in_a_file)

TRN, TRN_SPOT, G = "L-2C3B7624", "L-6B0D517C", "L-DB2E81BA"
USAGE, SPOT, POOL = "for training job usage", "for spot training job usage", "for training warm pool usage"
LONGEST = "Longest run time for a training job"
SAME = {"in": ["self"], "out": ["self"]}


def here(aws, root):
    return ExaminedLocal(root, aws)


def batch(aws, root):
    return Examined(root, aws)


def nodes(aws, root):
    """Two nodes of AWS Batch that speak over EFA."""
    job = Examined(root, aws)
    job.large()
    return job


def sagemaker(aws, root):
    """In a network of its own."""
    job = ExaminedSagemaker(root, aws)
    job.in_network()
    return job


ENGINES = {here: "local", batch: "batch", nodes: "batch", sagemaker: "sagemaker"}


@dataclass
class Fault:
    check: str
    plant: Callable
    words: str
    cure: Callable
    state: str = "fail"
    is_refused: bool = False  # `run` refuses with what was seen before its first job
    on: str = ""  # the end of what it is about, where several findings are of the check


@dataclass
class Group:
    set_up: Callable
    faults: list
    spreads: bool = False  # other findings fail too, as nothing can be asked


EFA = ("ec2", "templates", "eight")


def efa(interfaces, **more):
    return account_has(*EFA, to={"efa": interfaces, **more})


GROUPS = {
    # --- this machine and these credentials ---
    "a library that is broken": Group(here, [
        Fault("here.version", both(broken_library, state_below("/var/tmp")), "libcurl.so.4", install)],
        spreads=True),
    "this machine": Group(here, [
        Fault("here.agent", agent_of_another_folder, "has no 'stoker-node'", unset),
        Fault("here.tools", field_is("command", ["no-such-python", "train.py"]), "'no-such-python' is not found",
              field(["/usr/bin/python3", "train.py"])),
        Fault("here.state", state_below("/dev/shm"), "is in memory", unset, state="warn"),
        Fault("engine.check", workspace_in_a_file, "file/workspace': Not a directory", field("s3://bucket/again"),
              is_refused=True),
        Fault("aws.certificates", other_env(AWS_CA_BUNDLE="/no/such.pem"), "'/no/such.pem' cannot be read", unset)]),
    "no compiler": Group(here, [
        Fault("here.tools", field_is("compile.kind", "neuron"), "has no 'neuronx-cc'", field("jax"), state="warn")]),
    "a state in a file": Group(here, [
        Fault("here.state", state_in_a_file, "file/state': Not a directory", unset)]),
    "a full disk": Group(here, [
        Fault("here.disk", no_room, "0.0 GiB free", says("make room", make_room))]),
    "another account, and another clock": Group(here, [
        Fault("aws.account", field_is("aws", {"account": "111111111111"}), "are of account 123456789012, not 111111111111",
              field("123456789012"), is_refused=True),
        Fault("aws.clock", fault("date", operation="GetCallerIdentity", seconds=600), "behind that of sts",
              says("set this machine's clock", cleared), state="warn")]),
    "credentials that end soon": Group(here, [
        Fault("aws.credentials", ends_soon, "credentials by process", says(
            "renewed", lambda patient: keys(patient, "+1 day")), state="warn")]),
    "no credentials": Group(here, [
        Fault("aws.credentials", other_env(AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None), "no AWS credentials", unset)]),
    "a wrong secret": Group(here, [
        Fault("aws.account", other_env(AWS_SECRET_ACCESS_KEY="wrong"), "SignatureDoesNotMatch", says(
            "check the secret key", lambda patient: patient.env.clear()))], spreads=True),
    "no region": Group(here, [
        Fault("aws.region", other_env(AWS_REGION=None, AWS_DEFAULT_REGION=None), "no AWS region is set", unset)], spreads=True),
    "no name of a region": Group(here, [
        Fault("aws.region", other_env(AWS_REGION="no region"), "'no region' is not the name of an AWS region", says(
            "write a region such as", lambda patient: patient.env.clear()))], spreads=True),
    "a region that only the spec has, which comes too late for the state": Group(here, [
        Fault("here.state", both(field_is("aws", {"region": "eu-west-1"}), other_env(AWS_REGION=None, AWS_DEFAULT_REGION=None)),
              "state/journal.json': no AWS region is set", unset, is_refused=True)]),
    "no endpoint": Group(here, [
        Fault("aws.endpoints", other_env(AWS_ENDPOINT_URL_STS="sts.example"), "is not a URL of a service", unset)], spreads=True),
    "no proxy": Group(here, [
        Fault("aws.proxy", other_env(http_proxy="ftp://proxy:21"), "http_proxy is not the address of a proxy", unset)],
        spreads=True),

    # --- places in S3 ---
    "rights in places": Group(here, [
        Fault("bucket.list", rights_but(ListBucket="stoker", PutObject="cache", GetObject="ckpt", DeleteObject="state",
                                        AbortMultipartUpload="stoker"),
              "cannot list the workspace", statement, on="/stoker", is_refused=True),
        Fault("bucket.put", lambda patient: None, "cannot write to the compile cache", statement, on="/cache", is_refused=True),
        Fault("bucket.get", lambda patient: None, "cannot read from the place for checkpoints", statement, on="/ckpt",
              is_refused=True),
        Fault("bucket.delete", lambda patient: None, "cannot delete from the state", statement, on="/state", is_refused=True),
        Fault("bucket.multipart", lambda patient: None, "cannot abort an upload in parts", statement, on="/stoker")]),
    "keys of buckets": Group(here, [
        Fault("bucket.put", both(rights_without_keys, field_is("compile.cache_url", "s3://key-one/cache")),
              "kms:GenerateDataKey", statement, on="key-one/cache", is_refused=True),
        Fault("bucket.get", field_is("checkpoint.url", "s3://key-two/ckpt"), "kms:Decrypt", statement, on="key-two/ckpt",
              is_refused=True),
        Fault("bucket.put", both(field_is("workspace", "s3://key-three/stoker"), fault(
            "error", operation="PutObject", key="key-three", code="KMS.DisabledException", message="key/3 is disabled.")),
              "key/3 is disabled", says("enable the KMS key", cleared), on="key-three/stoker", is_refused=True)]),
    "places that cannot be relied on": Group(here, [
        Fault("bucket.region", field_is("checkpoint.url", "s3://nowhere-at-all/ckpt"), "404", make_bucket,
              on="nowhere-at-all/ckpt"),
        Fault("bucket.list", lambda patient: None, "NoSuchBucket", make_bucket, on="nowhere-at-all/ckpt", is_refused=True),
        Fault("bucket.region", far_bucket, "is in us-west-2, the jobs are in eu-west-1", field("s3://bucket/near"),
              state="warn", on="far-away/cache"),
        Fault("bucket.conditions", fault("unconditional", operation="PutObject", header="if-none-match", key="/stoker/"),
              "cannot be trusted with the workspace", says("put the workspace on a server", cleared), on="/stoker"),
        Fault("bucket.conditions", fault("unconditional", operation="PutObject", header="if-match", key="/state/"),
              "cannot be trusted with the state", says("put the state on a server", cleared), on="/state",
              is_refused=True),
        Fault("bucket.multipart", fault("denied", operation="CreateMultipartUpload", key="/state/"),
              "cannot begin an upload in parts", statement_is("s3:PutObject", cleared), on="/state")]),

    # --- AWS Batch ---
    "no such queue, and no such image": Group(batch, [
        Fault("batch.queue", field_is("batch.job_queue", "other"), "job queue 'other' not found", field("trn1"),
              is_refused=True),
        Fault("image.tag", field_is("image", IMAGE.replace("trainer:1", "trainer:2")), "trainer", push)]),
    "a queue that takes no jobs, an image for others": Group(batch, [
        Fault("batch.queue", queue_changes(state="DISABLED"), "takes no jobs: state DISABLED", says(
            "enable the queue", queue_changes(state="ENABLED")), is_refused=True),
        Fault("image.platform", account_has("image_platforms", IMAGE, to=["arm64"]), "made for arm64, the machines are amd64",
              says("--platform linux/amd64", account_has("image_platforms", IMAGE, to=["amd64"])))]),
    "no share": Group(batch, [
        Fault("batch.queue", fair_share, "'batch.share_identifier' is missing", give_share, is_refused=True)]),
    "a share too many": Group(batch, [
        Fault("batch.queue", field_is("batch.share_identifier", "team"), "does not use fair share", remove_field,
              is_refused=True)]),
    "an environment that is off": Group(batch, [
        Fault("batch.environments", environment_changes(state="DISABLED"), "starts no machines: state DISABLED", says(
            "enable it", environment_changes(state="ENABLED")))], spreads=True),
    "an environment that is invalid": Group(batch, [
        Fault("batch.environments", fault("replace", operation="DescribeComputeEnvironments",
                                          pattern='"VALID", "statusReason": "ComputeEnvironment Healthy"',
                                          text='"INVALID", "statusReason": "Not authorized to perform sts:AssumeRole"'),
              "INVALID: Not authorized to perform sts:AssumeRole", says("mend what the reason says", cleared))], spreads=True),
    "machines of another kind": Group(nodes, [
        Fault("batch.types", environment_changes(instanceTypes=["m5"]), "starts machines of trn1.32xlarge", says(
            "add the type to the compute environment", environment_changes(instanceTypes=["trn1"])))]),
    "machines that are too small": Group(nodes, [
        Fault("batch.vcpus", environment_changes(maxvCpus=128), "needs 256 vCPUs, the compute environment has 128", says(
            "raise maxvCpus", environment_changes(maxvCpus=256))),
        Fault("batch.memory", own_row("1024GiB"), "a machine of 'trn1.32xlarge' has 524288 MiB", ram_as_seen),
        Fault("batch.efa", efa(4), "maps 8 EFA interfaces, the launch template has 4", says(
            "that many network interfaces of type efa", efa(8))),
        Fault("network.zone", account_has("ec2", "offerings", to={"trn1.32xlarge": ["c"]}), "(eu-west-1a) offers", says(
            "a subnet in a zone that offers the type", account_has("ec2", "offerings", to={}))),
        Fault("network.addresses", account_has("ec2", "subnets", to={"subnet-1": {"free": 1}}),
              "2 nodes need an address each, the subnets have 1 free", says("free addresses", account_has(
                  "ec2", "subnets", to={}))),
        Fault("network.placement", account_has("ec2", "placement", to={"near": "spread"}), "is of strategy spread", says(
            "of strategy cluster", account_has("ec2", "placement", to={})), state="warn"),
        Fault("network.groups", account_has("ec2", "groups", to={"sg-1": {"in": []}}), "nodes need for EFA", says(
            "a rule in and a rule out of all protocols (-1)", account_has("ec2", "groups", to={"sg-1": SAME}))),
        Fault("quota.vcpus", account_has("quotas", TRN, to=128), "needs 256 vCPUs, has 128", raised)]),
    "things that are not there": Group(nodes, [
        Fault("batch.efa", account_has(*EFA, to=None), "eight", says("a launch template that exists", efa(8))),
        Fault("network.zone", account_has("ec2", "subnets", to={"subnet-1": None}), "subnet-1", says(
            "subnets that exist", account_has("ec2", "subnets", to={}))),
        Fault("network.placement", account_has("ec2", "placement", to={"near": None}), "near", says(
            "make the placement group", account_has("ec2", "placement", to={}))),
        Fault("network.groups", account_has("ec2", "groups", to={"sg-1": None}), "sg-1", says(
            "security groups that exist", account_has("ec2", "groups", to={})))]),
    "nodes that are apart": Group(nodes, [
        Fault("batch.efa", efa(9), "has 9 EFA interfaces, the type can have 8: no machine will start", says(
            "take the interfaces out", efa(8))),
        Fault("network.zone", both(environment_changes(subnets=["subnet-1", "subnet-2"]), account_has(
            "ec2", "subnets", "subnet-2", to={"zone": "b"})), "may start in several: eu-west-1a, eu-west-1b", says(
                "leave the compute environment one subnet", environment_changes(subnets=["subnet-1"]))),
        Fault("network.groups", account_has("ec2", "groups", to={"sg-1": {"out": ["all"]}}), "nodes need for EFA", says(
            "each with the group itself", account_has("ec2", "groups", to={"sg-1": SAME})))]),
    "nodes without EFA that are apart": Group(nodes, [
        Fault("network.zone", both(field_is("resources.efa", False), environment_changes(subnets=["subnet-1", "subnet-2"]),
                                   account_has("ec2", "subnets", "subnet-2", to={"zone": "b"})),
              "nodes may start in several zones", says("leave the compute environment one subnet", environment_changes(
                  subnets=["subnet-1"])), state="warn")]),
    "a bare environment": Group(nodes, [
        Fault("batch.efa", queue("bare", machines={
            "maxvCpus": 256, "launchTemplate": None, "placementGroup": None, "ec2Configuration": [
                {"imageType": "ECS_AL2023", "imageIdOverride": "ami-1"}]}),
              "maps 8 EFA interfaces, without a launch template a machine has 0", says("give the launch template",
                  environment_changes(launchTemplate={"launchTemplateName": "eight"}))),
        Fault("network.placement", lambda patient: None, "without a placement group", says(
            "name a placement group of strategy cluster", environment_changes(placementGroup="near")), state="warn")]),
    "GPUs": Group(batch, [
        Fault("quota.vcpus", both(queue("gpus", machines={"instanceTypes": ["g5"], "launchTemplate": None, "ec2Configuration": [
            {"imageType": "ECS_AL2023_NVIDIA"}]}), field_is(
            "resources.instance", "g5.12xlarge"), account_has("quotas", G, to=0)), "needs 48 vCPUs, has 0", raised)]),
    "Spot for several nodes": Group(nodes, [
        Fault("batch.spot", environment_changes(type="SPOT"), "has Spot machines only", says(
            "name a queue with On-Demand", environment_changes(type="EC2")), is_refused=True),
        Fault("quota.vcpus", account_has("quotas", TRN_SPOT, to=64), "needs 256 vCPUs, has 64", raised)]),
    "a machine image that is not for Neuron": Group(batch, [
        Fault("batch.machine_image", queue("bare", machines={"launchTemplate": None, "ec2Configuration": [
            {"imageType": "ECS_AL2023"}]}), "no machine image of AWS Batch's own is for Neuron", says(
                "give it a launch template", environment_changes(launchTemplate={"launchTemplateName": "neuron"})))]),

    # --- SageMaker ---
    "a network that is too small and shut": Group(sagemaker, [
        Fault("network.addresses", both(field_is("resources", {"instance": "ml.trn1.32xlarge", "nodes": 2}), account_has(
            "ec2", "subnets", to={"subnet-1": {"free": 1}})), "2 nodes need an address each", says(
                "free addresses", account_has("ec2", "subnets", to={}))),
        Fault("network.groups", account_has("ec2", "groups", to={"sg-1": {"out": ["all"]}}), "nodes need for EFA", says(
            "a rule in and a rule out", account_has("ec2", "groups", to={"sg-1": SAME}))),
        Fault("network.ways", account_has("ec2", "tables", to=[{"main": True, "to": {"0.0.0.0/0": "igw-1"}}]),
              "no way to s3 from subnet-1", says("to a NAT gateway", account_has("ec2", "tables", to=[
                  {"main": True, "to": {"0.0.0.0/0": "nat-1"}}]))),
        Fault("quota.machines", account_has("quotas", f"ml.trn1.32xlarge {USAGE}", to=1), "needs 2, has 1", raised),
        Fault("quota.warm_pool", both(field_is("sagemaker.warm_pool", "10m"), account_has(
            "quotas", f"ml.trn1.32xlarge {POOL}", to=0)), "needs 2, has 0", raised),
        Fault("quota.longest_run", field_is("sagemaker.max_runtime", "10d"), "needs 864000 s, has 432000", raised)]),
    "no way to logs": Group(sagemaker, [
        Fault("network.ways", both(account_has("ec2", "tables", to=[{"main": True, "to": {}}]), account_has(
            "ec2", "endpoints", to=[{"service": "s3", "type": "Gateway", "tables": [0]}])), "no way to logs from subnet-1",
              says("make VPC endpoints of these services", account_has("ec2", "tables", to=[
                  {"main": True, "to": {"0.0.0.0/0": "nat-1"}}])), state="warn"),
        Fault("network.groups", account_has("ec2", "groups", to={"sg-1": None}), "sg-1", says(
            "sagemaker.vpc", account_has("ec2", "groups", to={}))),
        Fault("quota.machines", both(field_is("sagemaker.spot", True), account_has("quotas", f"ml.c5.xlarge {SPOT}", to=0)),
              "needs 1, has 0", raised)]),
    "a tag that AWS never published": Group(sagemaker, [
        Fault("image.compatibility", both(field_is("resources", {"instance": "ml.trn1.2xlarge"}), image_of_aws),
              "has no tag of a form that is published there", whole_tag, state="warn")]),
}
