"""IAM, as far as roles are looked at: who may take them on, and what their policies would allow. The setting
`iam_roles` says what an account has: name → {"path": "/", "trust": [service or ARN], "account"}; a role that it does
not name is there for every service, None is not there. Policies are those of the setting `policies` (rights.py)."""

import json
from urllib.parse import quote

from standin import iam
from standin.answers import answer
from standin.errors import Refusal

SERVICES = ["sagemaker.amazonaws.com", "ecs-tasks.amazonaws.com", "scheduler.amazonaws.com"]
DECISIONS = {iam.ALLOWED: "allowed", iam.DENIED: "implicitDeny", iam.FORBIDDEN: "explicitDeny"}


def partition(call):
    return {"cn": "aws-cn", "us-gov": "aws-us-gov"}.get(call.region.rpartition("-")[0].rpartition("-")[0], "aws")


def missing(name):
    return Refusal("NoSuchEntity", f"The role with name {name} cannot be found.", 404)


def find(call, name):
    found = call.front.settings["iam_roles"].get(name, {})
    if found is None:
        raise missing(name)
    return {"path": "/", "trust": SERVICES, **found}


def trust_of(who):
    services = [each for each in who if ".amazonaws.com" in each]
    return {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "sts:AssumeRole",
         "Principal": {"AWS": each} if each not in services else {"Service": each}} for each in who]}


def get(call):
    name = call.params["RoleName"]
    role = find(call, name)
    return answer(call, {"Role": {
        "Path": role["path"], "RoleName": name, "RoleId": "AROA" + "X" * 17, "CreateDate": "2026-01-01T00:00:00Z",
        "Arn": f"arn:{partition(call)}:iam::{call.who.account}:role{role['path']}{name}",
        "AssumeRolePolicyDocument": quote(json.dumps(trust_of(role["trust"])))}})


def policies_of(call, source):
    """Of a role, or of the user whose keys these are."""
    if ":role/" in source:
        find(call, source.rpartition("/")[2])
    elif source != call.who.arn:
        raise Refusal("NoSuchEntity", f"{source} cannot be found.", 404)
    found = call.front.settings["policies"]
    for name in (source, call.who.access if source == call.who.arn else source):
        if name in found:
            return iam.listed(found[name])
    return [{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}]


def simulate(call):
    policies = policies_of(call, call.params["PolicySourceArn"])
    context = {row["ContextKeyName"]: row["ContextKeyValues"][0] for row in call.params.get("ContextEntries", [])}
    rows = [{"EvalActionName": action, "EvalResourceName": resource, "MatchedStatements": [], "MissingContextValues": [],
             "EvalDecision": DECISIONS[iam.evaluate(policies, action, resource, context)]}
            for action in call.params["ActionNames"] for resource in call.params.get("ResourceArns", ["*"])]
    return answer(call, {"EvaluationResults": rows, "IsTruncated": False})


HANDLERS = {"GetRole": get, "SimulatePrincipalPolicy": simulate}
