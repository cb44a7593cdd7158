"""What services themselves do with the role of a job: SageMaker by "How to use SageMaker AI execution roles",
CreateTrainingJob, and ECS by AWS Batch's "IAM execution role". Whoever has no policy may do everything."""

import re

from standin import iam, rights
from standin.rights import Right

ECR = re.compile(r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([^:@]+)")
PULL = ("BatchCheckLayerAvailability", "BatchGetImage", "GetDownloadUrlForLayer")


def refused(front, role, needed):
    """The first right that the role lacks, in the words of an error; None: it has all."""
    name, policies = rights.policies_named(front, [role])
    if policies is None:
        return None
    lacks = None
    for right in needed:
        if rights.judge(front, name, policies, right) != iam.ALLOWED:
            lacks = lacks or (f"{role} is not authorized to perform: {right.action} on resource: {right.resource} "
                              f"because no identity-based policy allows the {right.action} action")
    return lacks


def of_image(image):
    found = ECR.match(image or "")
    if not found:
        return []
    account, region, repository = found.groups()
    return [Right("ecr:GetAuthorizationToken", "*"),
            *(Right(f"ecr:{each}", f"arn:aws:ecr:{region}:{account}:repository/{repository}") for each in PULL)]


def of_logs(region, account, group, actions, stream="node"):
    """Of the actions on a group, and of those that write into a stream of it."""
    arn = f"arn:aws:logs:{region}:{account}:log-group:{group}:log-stream:"
    return [Right(f"logs:{each}", arn + (stream if each == "PutLogEvents" else "")) for each in actions]


def of_network(region, account, vpc):
    if not vpc:
        return []
    arn = f"arn:aws:ec2:{region}:{account}:"
    interface = f"{arn}network-interface/eni-0123456789abcdef0"
    return [*(Right("ec2:CreateNetworkInterface", each) for each in (
                interface, *(f"{arn}subnet/{each}" for each in vpc["Subnets"]),
                *(f"{arn}security-group/{each}" for each in vpc["SecurityGroupIds"]))),
            *(Right(f"ec2:{each}", interface) for each in (
                "CreateNetworkInterfacePermission", "DeleteNetworkInterface", "DeleteNetworkInterfacePermission")),
            *(Right(f"ec2:Describe{each}", "*") for each in (
                "DhcpOptions", "NetworkInterfaces", "SecurityGroups", "Subnets", "Vpcs"))]


def of_keys(region, account, request):
    def key(name):
        return name if name.startswith("arn:") else f"arn:aws:kms:{region}:{account}:key/{name}"
    output, volume = request["OutputDataConfig"].get("KmsKeyId"), request["ResourceConfig"].get("VolumeKmsKeyId")
    return [*(Right(f"kms:{each}", key(output)) for each in ("Decrypt", "Encrypt", "GenerateDataKey") if output),
            *([Right("kms:CreateGrant", key(volume))] if volume else [])]


def of_channels(request):
    for each in request.get("InputDataConfig", []):
        bucket, _, prefix = each["DataSource"].get("S3DataSource", {}).get("S3Uri", "").removeprefix("s3://").partition("/")
        yield Right("s3:ListBucket", f"arn:aws:s3:::{bucket}", {"s3:prefix": prefix})
        yield Right("s3:GetObject", f"arn:aws:s3:::{bucket}/{prefix.rstrip('/')}/object")


def of_training(region, account, request, group):
    bucket, _, prefix = request["OutputDataConfig"]["S3OutputPath"].removeprefix("s3://").partition("/")
    debug = request.get("RemoteDebugConfig", {}).get("EnableRemoteDebug")
    return [*of_image(request["AlgorithmSpecification"].get("TrainingImage")), *of_channels(request),
            Right("s3:PutObject", f"arn:aws:s3:::{bucket}/{prefix}/model.tar.gz"),
            *of_logs(region, account, group, ("CreateLogGroup", "CreateLogStream", "DescribeLogStreams", "PutLogEvents")),
            Right("cloudwatch:PutMetricData", "*"),
            *of_network(region, account, request.get("VpcConfig")), *of_keys(region, account, request),
            *(Right(f"ssmmessages:{each}", "*") for each in (
                "CreateControlChannel", "CreateDataChannel", "OpenControlChannel", "OpenDataChannel") if debug)]


def of_task(region, account, images, group):
    return [*(right for image in images for right in of_image(image)),
            *of_logs(region, account, group, ("CreateLogStream", "PutLogEvents"))]
