"""EC2, as far as networks and machines are asked about. The setting `ec2` says what an account has; what it does not
name is there as it should be, and None is not there:

  subnets     id → {"zone": "a", "free": 250, "vpc": "vpc-1"}
  groups      id → {"in": [rule], "out": [rule], "vpc"}; a rule: "self" (all of the group's own), "all" (any address), or
              {"protocol", "group"} of another
  placement   name → its strategy
  templates   name or id → {"efa": interfaces, "groups": [id], "placement": name, "subnet": id}
  offerings   type → zones
  types       type → {"memory": MiB, "efa": interfaces}
  tables      [{"subnets": [id], "main": bool, "to": {destination: "nat-…", "igw-…", "vpce-…"}}]: of vpc-1
  endpoints   [{"service": "s3", "type": "Gateway" or "Interface", "tables": [number], "state", "dns": bool}]"""

import functools
import gzip
import importlib.util
import json
from pathlib import Path

from standin.answers import answer
from standin.errors import Refusal

VPC, ZONES, TABLES = "vpc-1", "abc", [{"main": True, "to": {"0.0.0.0/0": "nat-1"}}]


def setting(call, kind, default):
    return call.front.settings["ec2"].get(kind, default)


def named(call, kind, name, code, default):
    """What the setting says of it, over the default."""
    found = setting(call, kind, {}).get(name, default)
    if found is None:
        raise Refusal(code, f"The {kind} '{name}' does not exist", 400)
    return {**default, **found} if isinstance(found, dict) else found


def filters(call):
    return {row["Name"]: row["Values"] for row in call.params.get("Filters", [])}


def only(call, *known):
    """What a handler does not know must not be ignored."""
    if unknown := call.params.keys() - set(known):
        raise NotImplementedError(f"{call.operation} with {unknown}")


def subnets(call):
    only(call, "SubnetIds")
    rows = []
    for name in call.params["SubnetIds"]:
        each = named(call, "subnets", name, "InvalidSubnetID.NotFound", {"zone": "a", "free": 250, "vpc": VPC})
        rows.append({"SubnetId": name, "VpcId": each["vpc"], "AvailabilityZone": f"{call.region}{each['zone']}",
                     "AvailableIpAddressCount": each["free"], "CidrBlock": "10.0.0.0/24", "State": "available"})
    return answer(call, {"Subnets": rows})


def rule(text, group):
    if text == "self":
        return {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group, "UserId": "123456789012"}], "IpRanges": []}
    if text == "all":
        return {"IpProtocol": "-1", "UserIdGroupPairs": [], "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    return {"IpProtocol": text["protocol"], "FromPort": 22, "ToPort": 22, "UserIdGroupPairs": [{"GroupId": text["group"]}],
            "IpRanges": []}


def groups(call):
    only(call, "GroupIds")
    rows = []
    for name in call.params["GroupIds"]:
        each = named(call, "groups", name, "InvalidGroup.NotFound", {"in": ["self"], "out": ["self", "all"], "vpc": VPC})
        rows.append({"GroupId": name, "GroupName": name, "VpcId": each["vpc"], "Description": "",
                     "IpPermissions": [rule(text, name) for text in each["in"]],
                     "IpPermissionsEgress": [rule(text, name) for text in each["out"]]})
    return answer(call, {"SecurityGroups": rows})


def placement(call):
    only(call, "GroupNames")
    rows = [{"GroupName": name, "State": "available", "GroupId": f"pg-{name}", "Strategy": named(
        call, "placement", name, "InvalidPlacementGroup.Unknown", "cluster")} for name in call.params["GroupNames"]]
    return answer(call, {"PlacementGroups": rows})


def templates(call):
    only(call, "LaunchTemplateId", "LaunchTemplateName", "Versions")
    by_id = "LaunchTemplateId" in call.params
    name = call.params["LaunchTemplateId" if by_id else "LaunchTemplateName"]
    code = "InvalidLaunchTemplateId.NotFound" if by_id else "InvalidLaunchTemplateName.NotFoundException"
    each, data = named(call, "templates", name, code, {"efa": 0}), {}
    network = {"Groups": each.get("groups"), "SubnetId": each.get("subnet")}
    if each["efa"]:
        data["NetworkInterfaces"] = [{"DeviceIndex": min(number, 1), "NetworkCardIndex": number, "InterfaceType": "efa",
                                      **network} for number in range(each["efa"])]
    elif each.get("groups"):
        data["SecurityGroupIds"] = each["groups"]
    if "placement" in each:
        data["Placement"] = {"GroupName": each["placement"]}
    return answer(call, {"LaunchTemplateVersions": [
        {"LaunchTemplateId": "lt-1", "LaunchTemplateName": name, "VersionNumber": 1, "DefaultVersion": True,
         "LaunchTemplateData": data}]})


def offerings(call):
    only(call, "LocationType", "Filters")
    if call.params["LocationType"] != "availability-zone" or filters(call).keys() != {"instance-type"}:
        raise NotImplementedError(f"{call.operation} by {call.params}")
    return answer(call, {"InstanceTypeOfferings": [
        {"InstanceType": kind, "LocationType": "availability-zone", "Location": f"{call.region}{zone}"}
        for kind in filters(call)["instance-type"] for zone in setting(call, "offerings", {}).get(kind, ZONES)]})


@functools.lru_cache(maxsize=None)
def described():
    """EC2's descriptions, as moto has them."""
    moto = Path(importlib.util.find_spec("moto").origin).parent  # importing it would take seconds
    with gzip.open(moto / "ec2/resources/instance_types.json.gz") as file:
        return json.load(file)


def types(call):
    only(call, "InstanceTypes")
    rows = []
    for name in call.params["InstanceTypes"]:
        if name not in described():
            raise Refusal("InvalidInstanceType", f"The following supplied instance types do not exist: [{name}]", 400)
        known, other = described()[name], setting(call, "types", {}).get(name, {})
        efa = other.get("efa", known["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0))
        rows.append({"InstanceType": name, "VCpuInfo": {"DefaultVCpus": known["VCpuInfo"]["DefaultVCpus"]},
                     "MemoryInfo": {"SizeInMiB": other.get("memory", known["MemoryInfo"]["SizeInMiB"])},
                     "NetworkInfo": {"EfaSupported": efa > 0, "EfaInfo": {"MaximumEfaInterfaces": efa} if efa else None}})
    return answer(call, {"InstanceTypes": rows})


TARGETS = {"nat": "NatGatewayId", "igw": "GatewayId", "vpce": "GatewayId", "tgw": "TransitGatewayId"}


def route(destination, target):
    to = "DestinationPrefixListId" if destination.startswith("pl-") else "DestinationCidrBlock"
    return {to: destination, TARGETS[target.partition("-")[0]]: target, "State": "active"}


def tables(call):
    only(call, "Filters")
    if filters(call) != {"vpc-id": [VPC]}:
        return answer(call, {"RouteTables": []})
    rows = []
    for number, each in enumerate(setting(call, "tables", TABLES)):
        associations = [{"Main": False, "SubnetId": name} for name in each.get("subnets", [])]
        rows.append({"RouteTableId": f"rtb-{number}", "VpcId": VPC,
                     "Associations": [*associations, *([{"Main": True}] if each.get("main") else [])],
                     "Routes": [{"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "State": "active"},
                                *(route(*pair) for pair in each["to"].items())]})
    return answer(call, {"RouteTables": rows})


def endpoints(call):
    only(call, "Filters")
    rows = [{"VpcEndpointId": f"vpce-{number}", "VpcId": VPC, "VpcEndpointType": each["type"],
             "ServiceName": f"com.amazonaws.{call.region}.{each['service']}", "State": each.get("state", "Available"),
             "RouteTableIds": [f"rtb-{table}" for table in each.get("tables", [])],
             "PrivateDnsEnabled": each.get("dns", each["type"] == "Interface")}
            for number, each in enumerate(setting(call, "endpoints", []))]
    return answer(call, {"VpcEndpoints": rows if filters(call) == {"vpc-id": [VPC]} else []})


HANDLERS = {"DescribeSubnets": subnets, "DescribeSecurityGroups": groups, "DescribePlacementGroups": placement,
            "DescribeLaunchTemplateVersions": templates, "DescribeInstanceTypeOfferings": offerings,
            "DescribeInstanceTypes": types, "DescribeRouteTables": tables, "DescribeVpcEndpoints": endpoints}
