"""What SageMaker and Batch refuse beyond what their models say. Sources: API references of
CreateTrainingJob and RegisterJobDefinition, SageMaker's guide on warm pools and managed Spot."""

from standin.errors import Refusal

NVME = ("ml.p3dn.", "ml.p4d.", "ml.p4de.", "ml.p5.", "ml.g4dn.", "ml.g5.", "ml.trn1.", "ml.trn1n.", "ml.trn2.", "ml.c5d.",
        "ml.m5d.", "ml.r5d.")


def twice(names):
    names = list(names)
    return next((name for name in names if names.count(name) > 1), None)


# SageMaker

def refused(message):
    return Refusal("ValidationException", message, 400)


def check_tags(tags):
    if (key := twice(tag["Key"] for tag in tags)) is not None:
        raise refused(f"Duplicate tag keys found: {key}")
    for tag in tags:
        if tag["Key"].lower().startswith("aws:"):
            raise refused("aws: prefixed tag key names are not allowed for external use.")


def check_machines(request):
    machines, spot = request["ResourceConfig"], request.get("EnableManagedSpotTraining", False)
    groups = machines.get("InstanceGroups", [])
    if groups and ("InstanceType" in machines or "InstanceCount" in machines):
        raise refused("You can only specify InstanceGroups, or InstanceType and InstanceCount")
    if not groups and not ("InstanceType" in machines and "InstanceCount" in machines):
        raise refused("InstanceType and InstanceCount are required without InstanceGroups")
    if (name := twice(group["InstanceGroupName"] for group in groups)) is not None:
        raise refused(f"Instance group names must be unique: {name}")
    kinds = [group["InstanceType"] for group in groups] or [machines["InstanceType"]]
    if "VolumeKmsKeyId" in machines and all(kind.startswith(NVME) for kind in kinds):
        raise refused("VolumeKmsKeyId is not supported for instance types with local storage")
    if machines.get("KeepAlivePeriodInSeconds") and (spot or groups):
        raise refused("KeepAlivePeriodInSeconds is not supported with managed spot training or instance groups")
    stop = request["StoppingCondition"]
    if "MaxWaitTimeInSeconds" in stop and not spot:
        raise refused("MaxWaitTimeInSeconds can only be set when EnableManagedSpotTraining is true")


def check_training(request):
    algorithm, channels = request["AlgorithmSpecification"], request.get("InputDataConfig", [])
    if ("TrainingImage" in algorithm) == ("AlgorithmName" in algorithm):
        raise refused("Exactly one of TrainingImage and AlgorithmName is required")
    if (name := twice(channel["ChannelName"] for channel in channels)) is not None:
        raise refused(f"Channel names must be unique: {name}")
    check_tags(request.get("Tags", []))
    check_machines(request)


# Batch

def wrong(message):
    return Refusal("ClientException", f"Error executing request, Exception : {message}", 400)


def check_amount(resource):
    kind, text = resource["type"], resource["value"]
    try:
        amount = float(text) if kind == "VCPU" else int(text)
    except ValueError:
        raise wrong(f"{kind} must be a number: {text}") from None
    if amount <= 0 or (kind == "MEMORY" and amount < 4):
        raise wrong(f"{kind} is too small: {text}")


def check_container(properties):
    """Of a job definition, or overrides of a job."""
    resources = properties.get("resourceRequirements", [])
    if (kind := twice(resource["type"] for resource in resources)) is not None:
        raise wrong(f"resourceRequirements has {kind} more than once")
    for resource in resources:
        check_amount(resource)
    volumes = [volume.get("name") for volume in properties.get("volumes", [])]
    if (name := twice(volumes)) is not None:
        raise wrong(f"volume {name} is there more than once")
    for mount in properties.get("mountPoints", []):
        if mount.get("sourceVolume") not in volumes:
            raise wrong(f"Unknown volume '{mount.get('sourceVolume')}'.")
    targets = [mount.get("containerPath") for mount in properties.get("mountPoints", [])]
    if (path := twice(targets)) is not None:
        raise wrong(f"Duplicate container path: {path}")


def check_instances(groups):
    """All nodes of a job are of one instance type."""
    kinds = {kind for group in groups for kind in group.get("instanceTypes", [])}
    if len(kinds) > 1:
        raise wrong(f"all node groups must have the same instance type: {', '.join(sorted(kinds))}")
