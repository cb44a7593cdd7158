"""Which rights a request needs, by AWS's Service Authorization Reference, and whether the policy of its keys gives
them. The setting `policies` says whose policy is which: an access key, or the ARN of a user or role → a policy, or a
list of them. Whoever has none may do everything. The setting `bucket_keys` says by which key of KMS a bucket encrypts
what is written to it."""

import json
from urllib.parse import unquote

from standin import errors, iam
from standin.errors import Refusal

OBJECT = {  # of S3, on an object
    "GetObject": "GetObject", "HeadObject": "GetObject", "PutObject": "PutObject", "CopyObject": "PutObject",
    "DeleteObject": "DeleteObject", "CreateMultipartUpload": "PutObject", "UploadPart": "PutObject",
    "UploadPartCopy": "PutObject", "CompleteMultipartUpload": "PutObject",
    "AbortMultipartUpload": "AbortMultipartUpload", "ListParts": "ListMultipartUploadParts",
    "GetObjectTagging": "GetObjectTagging"}
BUCKET = {  # of S3, on a bucket
    "ListObjectsV2": "ListBucket", "ListObjects": "ListBucket", "HeadBucket": "ListBucket",
    "ListMultipartUploads": "ListBucketMultipartUploads", "CreateBucket": "CreateBucket",
    "DeleteBucket": "DeleteBucket", "GetBucketLocation": "GetBucketLocation",
    "GetBucketVersioning": "GetBucketVersioning"}
KEYED = {"PutObject": ("GenerateDataKey",), "CopyObject": ("GenerateDataKey",), "GetObject": ("Decrypt",),
         "CreateMultipartUpload": ("GenerateDataKey", "Decrypt"), "UploadPart": ("GenerateDataKey", "Decrypt"),
         "UploadPartCopy": ("GenerateDataKey", "Decrypt"), "CompleteMultipartUpload": ("Decrypt",)}
READS = ("GetObject", "HeadObject", "CopyObject", "UploadPartCopy")  # 403 for a missing object without ListBucket
# Other services: operation → the resource that its action, of the same name, is on; "*": it has no type.
TRAINING, DEFINITION = "sagemaker:training-job/{TrainingJobName}", "batch:job-definition/{jobDefinitionName}"
GROUP, STREAM = "logs:log-group:{logGroupName}:log-stream:", "logs:log-group:{logGroupName}:log-stream:{logStreamName}"
ASKED = {  # of EC2 and Service Quotas: none has a resource type
    "ec2": ("DescribeSubnets", "DescribeSecurityGroups", "DescribePlacementGroups", "DescribeRouteTables",
            "DescribeVpcEndpoints", "DescribeInstanceTypes", "DescribeInstanceTypeOfferings",
            "DescribeLaunchTemplateVersions"),
    "servicequotas": ("GetServiceQuota", "GetAWSDefaultServiceQuota", "ListServiceQuotas")}
REPOSITORY, SCHEDULE = "ecr:repository/{repositoryName}", "scheduler:schedule/{GroupName}/{Name}"
ON = {
    "sts": {"GetCallerIdentity": None, "AssumeRoleWithWebIdentity": None, "AssumeRole": "{RoleArn}"},
    "logs": {"GetLogEvents": STREAM, "FilterLogEvents": GROUP, "DescribeLogStreams": GROUP},
    "secretsmanager": {"GetSecretValue": "secretsmanager:secret:{SecretId}-a1B2c3"},
    "ssm": {"GetParameter": "ssm:parameter/{Name}"},
    "sagemaker": dict.fromkeys(("CreateTrainingJob", "DescribeTrainingJob", "StopTrainingJob", "UpdateTrainingJob"),
                               TRAINING),
    "batch": {"RegisterJobDefinition": DEFINITION, "SubmitJob": None, "TerminateJob": "batch:job/{jobId}",
              **dict.fromkeys(("DescribeJobDefinitions", "DescribeJobs", "ListJobs", "DescribeJobQueues",
                               "DescribeComputeEnvironments"), "*")},
    "ecr": dict.fromkeys(("BatchGetImage", "GetDownloadUrlForLayer", "DescribeImages"), REPOSITORY),
    "scheduler": {"ListSchedules": "*", **dict.fromkeys(("CreateSchedule", "GetSchedule", "UpdateSchedule",
                                                         "DeleteSchedule"), SCHEDULE)},
    "iam": {"GetRole": "iam:role/{RoleName}", "SimulatePrincipalPolicy": "{PolicySourceArn}"},
    **{service: dict.fromkeys(names, "*") for service, names in ASKED.items()},
}
PASSED_TO = {"sagemaker": "sagemaker.amazonaws.com", "batch": "ecs-tasks.amazonaws.com",
             "scheduler": "scheduler.amazonaws.com"}
ROLE_FIELDS = ("RoleArn", "jobRoleArn", "executionRoleArn")


class Right:
    def __init__(self, action, resource, context=None):
        self.action, self.resource, self.context = action, resource, context or {}


def check(policies):
    """Raises ValueError unless the setting is one."""
    if not isinstance(policies, dict):
        raise ValueError("policies: whose → policy")
    for each in policies.values():
        for policy in iam.listed(each):
            iam.check(policy)


def policies_named(front, names):
    """Whose policies they are by the first of the names that has some, and which; None: he may do everything."""
    policies = front.settings["policies"]
    found = next((name for name in names if name in policies), None)
    return found, None if found is None else iam.listed(policies[found])


def policies_of(call):
    """The same of the keys that signed."""
    who = call.who
    if who is None:
        return None, None
    kind, _, rest = who.arn.rpartition(":")[2].partition("/")
    names = [who.access, who.arn]
    if kind == "assumed-role":
        names.append(f"arn:aws:iam::{who.account}:role/{rest.partition('/')[0]}")
    return policies_named(call.front, names)


def arn(call, service, rest):
    return f"arn:aws:{service}:{call.region}:{call.who.account}:{rest}"


def of_s3(call):
    action, bucket = OBJECT.get(call.operation), f"arn:aws:s3:::{call.bucket}"
    if action:
        yield Right(f"s3:{action}", f"{bucket}/{call.key}")
        if call.request.method != "GET" and call.request.method != "HEAD" and call.header("if-match") is not None:
            yield Right("s3:GetObject", f"{bucket}/{call.key}")
        keys = call.front.settings["bucket_keys"]
        if source := call.header("x-amz-copy-source"):
            source = unquote(source).lstrip("/")
            yield Right("s3:GetObject", f"arn:aws:s3:::{source}")
            if key := keys.get(source.partition("/")[0]):
                yield Right("kms:Decrypt", key)
        if key := keys.get(call.bucket):
            yield from (Right(f"kms:{each}", key) for each in KEYED.get(call.operation, ()))
            if call.operation == "HeadObject" and call.header("x-amz-checksum-mode"):
                yield Right("kms:Decrypt", key)
    elif call.operation in BUCKET:
        prefix = call.query.get("prefix") if call.operation.startswith("ListObjects") else None
        yield Right(f"s3:{BUCKET[call.operation]}", bucket, {} if prefix is None else {"s3:prefix": prefix})
    elif call.operation == "ListBuckets":
        yield Right("s3:ListAllMyBuckets", "*")
    else:
        raise unknown(call)


def roles_in(params):
    for name, value in params.items() if isinstance(params, dict) else enumerate(params):
        if name in ROLE_FIELDS:
            yield value
        elif isinstance(value, (dict, list)):
            yield from roles_in(value)


def tags_in(call):
    """{name: value} of the tags that a request gives."""
    given = call.params.get("tags") or call.params.get("Tags") or {}
    return given if isinstance(given, dict) else {tag["Key"]: tag["Value"] for tag in given}


def filled(call, text):
    """The ARN of what a request is about."""
    params = {"GroupName": "default", "logStreamName": "", **call.params}
    name = text.partition("{")[2].partition("}")[0]
    if str(params.get(name, "")).startswith("arn:"):
        return params[name]
    if call.service == "iam":
        return f"arn:aws:iam::{call.who.account}:role/{call.params['RoleName']}"
    service, _, rest = text.partition(":")
    rest = rest.format_map({**params, "Name": str(params.get("Name", "")).lstrip("/")})
    if service == "ecr" and params.get("registryId"):
        return f"arn:aws:ecr:{call.region}:{params['registryId']}:{rest}"
    return arn(call, service, rest)


def of_other(call):
    table = ON.get(call.service, {})
    if call.operation not in table:
        raise unknown(call)
    action, text = f"{call.service}:{call.operation}", table[call.operation]
    tags = {f"aws:RequestTag/{name}": value for name, value in tags_in(call).items()}
    if call.operation == "SubmitJob":
        for kind, name in (("job-definition", call.params["jobDefinition"]), ("job-queue", call.params["jobQueue"])):
            yield Right(action, name if name.startswith("arn:") else arn(call, "batch", f"{kind}/{name}"), tags)
        text = "batch:job/"
    elif text:
        yield Right(action, text if text == "*" else filled(call, text), tags)
    if tags and call.service in ("batch", "sagemaker"):
        yield Right("batch:TagResource" if call.service == "batch" else "sagemaker:AddTags", filled(call, text), tags)
    if call.service in PASSED_TO:
        for role in dict.fromkeys(roles_in(call.params)):
            yield Right("iam:PassRole", role, {"iam:PassedToService": PASSED_TO[call.service]})


def unknown(call):
    """A test with policies must not pass because nobody thought of an operation."""
    return NotImplementedError(f"no rights are known for {call.service} {call.operation}")


def refusal(call, right, verdict):
    why = f"with an explicit deny in an identity-based policy: {right.action}" if verdict == iam.FORBIDDEN \
        else f"because no identity-based policy allows the {right.action} action"
    resource = json.dumps(right.resource) if right.action.startswith("s3:") else right.resource
    return errors.generic("denied", call.protocol, f"User: {call.who.arn} is not authorized to perform: {right.action} "
                          f"on resource: {resource} {why}", call.service)


def judge(front, name, policies, right):
    """What becomes of it, which is noted for `GET asked`."""
    verdict = iam.evaluate(policies, right.action, right.resource, right.context)
    front.asked.append([name, right.action, right.resource, right.context, verdict])
    return verdict


def require(call, whose, rights):
    name, policies = whose
    for right in rights:
        verdict = judge(call.front, name, policies, right)
        if verdict != iam.ALLOWED:
            raise refusal(call, right, verdict)


def ask(call):
    """Refuses what the policies do not allow."""
    whose = policies_of(call)
    if whose[1] is not None:
        require(call, whose, of_s3(call) if call.service == "s3" else of_other(call))


def hide(call, error):
    """The error for a missing object: whoever may not list is not told that it is missing."""
    whose = policies_of(call)
    if whose[1] is None or error.code != "NoSuchKey" or call.operation not in READS:
        return error
    bucket = call.bucket
    if source := call.header("x-amz-copy-source"):
        bucket = unquote(source).lstrip("/").partition("/")[0]
    try:
        require(call, whose, [Right("s3:ListBucket", f"arn:aws:s3:::{bucket}")])
    except Refusal as denied:
        return denied
    return error
