"""What doctor finds out about the roles of jobs: whom they trust, what they may do by simulation, who may pass them; and
what it does where nobody may look."""

import copy
import json

import pytest
from aws import ACCESS
from examined import Examined, ExaminedSagemaker, bad, of

ROLE = "arn:aws:iam::123456789012:role/batch-job"
EXECUTION = "arn:aws:iam::123456789012:role/execution"
FAR_ROLE = "arn:aws:iam::123456789012:role/sagemaker"
ANYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}


def policy(*statements):
    return {"Version": "2012-10-17", "Statement": list(statements)}


def without(*actions):
    return policy(ANYTHING, {"Effect": "Deny", "Action": list(actions), "Resource": "*"})


def printed(job, role="job"):
    result = job.ok("--json", "doctor", "--policy", role, job.spec_path)
    return result.lines[0]


def listed(value):
    return value if isinstance(value, list) else [value]


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


# --- trust ---

def test_a_role_that_is_not_there(job):
    job.aws.settings(iam_roles={"batch-job": None})
    findings = job.doctor("--only", "role.*", code=4)
    wrong = of(findings, "role.trust", state="fail")
    assert wrong["code"] == "NoSuchEntity" and "batch.job_role" in wrong["cure"] and wrong["field"] == "batch.job_role"
    assert wrong["on"] == ROLE and of(findings, "role.rights")["state"] == "unknown"
    job.aws.settings(iam_roles={})
    assert bad(job.doctor("--only", "role.*")) == []


@pytest.mark.parametrize("trust", [["ec2.amazonaws.com"], ["sagemaker.amazonaws.com"], [ROLE], []])
def test_a_role_of_batch_that_trusts_somebody_else(job, trust):
    wrong = job.found("role.trust", iam_roles={"batch-job": {"trust": trust}})
    assert "does not trust ecs-tasks.amazonaws.com" in wrong["seen"] and '"Service":"ecs-tasks.amazonaws.com"' in wrong["cure"]


def test_a_role_of_sagemaker_that_trusts_somebody_else(far):
    wrong = far.found("role.trust", iam_roles={"sagemaker": {"trust": ["ecs-tasks.amazonaws.com"]}})
    assert "does not trust sagemaker.amazonaws.com" in wrong["seen"] and wrong["field"] == "sagemaker.role"


def test_a_role_of_another_account_is_not_looked_at(job):
    other = ROLE.replace("123456789012", "999999999999")
    findings = job.doctor("--only", "role.*", "--set", f"batch.job_role={other}")
    assert {row["check"] for row in bad(findings)} == {"role.trust", "role.rights"}
    assert all("another account" in row["seen"] for row in bad(findings))


# --- rights ---

def test_the_printed_policies_are_enough(job):
    job.write(batch={**job.spec["batch"], "execution_role": EXECUTION})
    job.aws.settings(policies={ROLE: printed(job), EXECUTION: printed(job, "execution")})
    findings = job.doctor()
    assert bad(findings) == []
    assert {row["on"] for row in findings if row["check"] == "role.rights"} == {ROLE, EXECUTION}
    assert all("by simulation" in row["seen"] and "VPC endpoints" in row["seen"] for row in findings
               if row["check"] == "role.rights")


def test_one_action_less_is_found(job):
    """Each action of each statement in turn would be the same."""
    whole = printed(job)
    for number, statement in enumerate(whole["Statement"]):
        action = listed(statement["Action"])[-1]
        less = copy.deepcopy(whole)
        left = [each for each in listed(statement["Action"]) if each != action]
        if left:
            less["Statement"][number]["Action"] = left
        else:
            del less["Statement"][number]
        wrong = job.found("role.rights", policies={ROLE: less})
        assert action in wrong["seen"] and action in wrong["cure"] and "by simulation" in wrong["seen"], wrong


def test_an_explicit_deny(job):
    wrong = job.found("role.rights", policies={ROLE: without("s3:PutObject")})
    assert "s3:PutObject on arn:aws:s3:::bucket/" in wrong["seen"] and "explicit deny" in wrong["cure"]


def test_an_execution_role_without_logs(job):
    job.write(batch={**job.spec["batch"], "execution_role": EXECUTION})
    wrong = job.found("role.rights", policies={EXECUTION: without("logs:PutLogEvents")})
    assert wrong["on"] == EXECUTION and wrong["field"] == "batch.execution_role" and "logs:PutLogEvents" in wrong["seen"]


def test_a_role_of_sagemaker_that_may_not_pull_or_use_the_key(far):
    far.found("role.rights", policies={FAR_ROLE: without("ecr:BatchGetImage")})
    far.write(sagemaker={**far.spec["sagemaker"], "kms": {"output": "arn:aws:kms:eu-west-1:123456789012:key/1"}})
    assert "kms:GenerateDataKey" in far.found("role.rights", policies={FAR_ROLE: without("kms:GenerateDataKey")})["seen"]


# --- passing ---

def test_a_caller_who_may_not_pass_the_role(job):
    wrong = job.found("role.pass", policies={ACCESS: without("iam:PassRole")})
    assert "user/tester may not pass the role" in wrong["seen"] and ROLE in wrong["cure"]
    assert '"iam:PassedToService":"ecs-tasks.amazonaws.com"' in wrong["cure"]


def test_a_caller_who_may_pass_it_to_another_service_alone(far):
    other = {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "*",
             "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}}
    looks = {"Effect": "Allow", "Action": ["s3:*", "iam:Get*", "iam:Simulate*"], "Resource": "*"}
    assert "sagemaker.amazonaws.com" in far.found("role.pass", policies={ACCESS: policy(looks, other)})["cure"]


def test_a_session_is_simulated_as_its_role(job):
    job.aws.add_key("ASIASESSION", "secret", token="token", arn="arn:aws:sts::123456789012:assumed-role/dev/me")
    job.aws.settings(iam_roles={"dev": {"path": "/team/"}})
    since = job.aws.mark()
    session = {"AWS_ACCESS_KEY_ID": "ASIASESSION", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
    assert bad(job.doctor("--only", "role.*", env=session)) == []
    asked = {row["name"] for row in job.aws.ledger(since, "SimulatePrincipalPolicy")}
    assert asked == {ROLE, "arn:aws:iam::123456789012:role/team/dev"}


# --- where nobody may look ---

SIMULATE = "iam:SimulatePrincipalPolicy"


def test_a_role_that_may_be_taken_on_is_tried_by_a_read(job):
    job.aws.settings(policies={ACCESS: without(SIMULATE)})
    findings = bad(job.doctor("--only", "role.*"))
    tried = of(findings, "role.rights", state="unknown")
    assert "taken on" in tried["seen"] and "3 places" in tried["seen"] and SIMULATE in tried["cure"]
    assert SIMULATE in of(findings, "role.pass", state="unknown")["cure"]
    job.aws.settings(policies={ACCESS: without(SIMULATE), ROLE: without("s3:ListBucket")})
    wrong = of(job.doctor("--only", "role.*", code=4), "role.rights", state="fail")
    assert "with the role the workspace cannot be listed" in wrong["seen"]
    job.aws.settings(policies={ACCESS: without(SIMULATE), ROLE: printed(job)})
    of(job.doctor("--only", "role.*"), "role.rights", state="unknown")


def test_else_the_policy_is_for_an_administrator(job):
    job.aws.settings(policies={ACCESS: without(SIMULATE, "sts:AssumeRole")})
    told = of(job.doctor("--only", "role.*"), "role.rights", state="unknown")
    assert told["code"] == "AccessDenied" and SIMULATE in told["cure"]
    assert json.loads(told["cure"][told["cure"].index("{"):]) == printed(job)


def test_a_missing_right_to_see_the_trust(job):
    job.aws.settings(policies={ACCESS: without("iam:GetRole")})
    unknown, = bad(job.doctor("--only", "role.*"))
    assert unknown["check"] == "role.trust" and "iam:GetRole" in unknown["cure"]


def test_iam_that_says_nothing_costs_its_own_findings(job):
    job.aws.fault("hang", service="iam", count=0, seconds=3600)
    assert {row["check"] for row in bad(job.doctor())} == {"role.trust", "role.rights", "role.pass"}
