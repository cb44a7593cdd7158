"""What `doctor --policy` prints for each combination of what takes rights: S3, keys of KMS, of the bucket too, secrets, a network of one's
own, Spot and further roles. A run passes with exactly that, each thing has its statements if it is there and none if it
is not, and a run needs all of them. All combinations with STOKER_TEST_POLICIES=all, as in tests/soak."""

import itertools

import pytest
from batch_job import ROLE, BatchJob
from bucket_job import BucketJob
from sagemaker_job import ROLE as SAGEMAKER_ROLE
from sagemaker_job import SagemakerJob
from standin import iam
from test_policy_printed import ALL, EXECUTION_ROLE, LOOKS, OTHER_ACCESS, asked, check, encrypt, needless, printed, types

SECRETS = {"TOKEN": "secretsmanager:team/token#key", "OTHER": "ssm:/team/other"}
KEYS = {"output": "0123-of-output", "volume": "arn:aws:kms:eu-west-1:123456789012:key/4567-of-volume"}
NETWORK = {"subnets": ["subnet-1", "subnet-2"], "security_groups": ["sg-1"]}
# What each thing has statements for, by the begins of their Sids, in the policy of whom; Spot needs none.
SIDS = {"kms": {"job": ("VolumeKey", "OutputKey")}, "vpc": {"job": ("Network",)}, "spot": {},
        "secrets": {"job": ("Secrets", "Parameters")}, "execution": {"submitter": ("JobsExecutionRole",)},
        "s3": {"submitter": ("ReadAndWrite",)}, "key": {"submitter": ("Encrypted",), "job": ("Encrypted",)}}


def sagemaker(root, aws, on):
    of = {"kms": {"kms": KEYS}, "vpc": {"vpc": NETWORK}, "spot": {"spot": True}, "secrets": {}}
    more = {name: value for each in on for name, value in of.get(each, {}).items()}
    return SagemakerJob(root, aws, secrets=SECRETS if "secrets" in on else {}, sagemaker=more)


def batch(root, aws, on):
    class Queue(BatchJob):
        def make_queue(self, name, kind="EC2", **more):
            super().make_queue(name, kind="SPOT" if "spot" in on else kind, **more)

    job = Queue(root, aws, secrets=SECRETS if "secrets" in on else {})
    if "execution" in on:
        job.write(batch={**job.spec["batch"], "execution_role": EXECUTION_ROLE})
    return job


def local(root, aws, on):
    job = BucketJob(root, aws, secrets=SECRETS if "secrets" in on else {})
    if "s3" not in on:
        job.write(workspace=str(root / "workspace"), checkpoint={"url": str(root / "checkpoints")},
                  compile={**job.spec["compile"], "cache_url": str(root / "cache")})
        job.url["state"] = str(root / "state")
    return job


ENGINES = {"local": (local, ("s3", "secrets", "key"), {"submitter": OTHER_ACCESS}),
           "batch": (batch, ("secrets", "execution", "spot", "key"),
                     {"submitter": OTHER_ACCESS, "job": ROLE, "execution": EXECUTION_ROLE}),
           "sagemaker": (sagemaker, ("kms", "vpc", "secrets", "spot", "key"), {"submitter": OTHER_ACCESS, "job": SAGEMAKER_ROLE})}
MOST = 3  # of an engine, where not all are tried: each thing is in one of them, and each is left out of one


def combinations():
    for engine, (_, things, _) in ENGINES.items():
        every = [tuple(each for each, is_on in zip(things, chosen) if is_on)
                 for chosen in itertools.product((False, True), repeat=len(things))]
        some = [(), things[::2], things[1::2]]
        for on in every if ALL else some[:MOST]:
            if engine == "local" and "key" in on and "s3" not in on:
                continue
            yield pytest.param(engine, on, id=f"{engine}-{'-'.join(on) or 'bare'}")


def begins_of(thing, role, engine):
    """Jobs of this machine have the rights of whoever types."""
    return [begin for whose, begins in SIDS[thing].items() if whose == role or engine == "local" for begin in begins]


def has(policy, begin):
    return any(each["Sid"].startswith(begin) for each in policy["Statement"])


@pytest.mark.long
@pytest.mark.parametrize(("engine", "on"), list(combinations()))
def test_each_thing_has_its_statements_and_a_run_needs_them(aws, tmp_path, engine, on):
    make, things, principals = ENGINES[engine]
    aws.client("secretsmanager").create_secret(Name="team/token", SecretString='{"key": "value"}')
    aws.client("ssm").put_parameter(Name="/team/other", Value="value", Type="SecureString")
    job = make(tmp_path / "project", aws, on)
    if "key" in on:
        encrypt(job)
    try:
        if not on and engine == "local":
            assert "needs a right" in job.stoker("doctor", "--policy", "submitter", job.spec_path).text
            policies = {"submitter": {"Version": "2012-10-17", "Statement": []}}
        else:
            policies = {role: printed(job, role) for role in principals}
        aws.settings(policies={whose: policies[role] for role, whose in principals.items()})
        types(job, "run", job.spec_path, "--id", "one")
        rows = asked(job)
        assert {row[1] for row in rows if row[4] != iam.ALLOWED} <= LOOKS, [row for row in rows if row[4] != iam.ALLOWED]
        for role, policy in policies.items():
            check(policy)
            for thing in things:
                for begin in begins_of(thing, role, engine):
                    assert has(policy, begin) == (thing in on), f"{role}, {begin}: {policy}"
            left = needless(policy, [row for row in rows if row[0] == principals[role] and row[4] == iam.ALLOWED])
            begins = tuple(begin for thing in things for begin in begins_of(thing, role, engine) if thing != "s3")
            assert not [what for what in left if what.startswith(begins)], left
    finally:
        job.stop()
