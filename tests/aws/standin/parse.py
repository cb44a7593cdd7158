"""From what stands on the wire to the parameters of an operation, by the service's model:
names as the model has them, scalars from text turned into what they should be. What does
not fit the model at all is a problem, reported with its path."""

import functools
import json
from email.utils import parsedate_to_datetime
from urllib.parse import unquote
from xml.etree import ElementTree

SCALARS = ("string", "integer", "long", "float", "double", "boolean", "timestamp", "blob", "character")
# Headers of the protocol itself, and names that SDKs add to a query.
OUTSIDE = {"x-amz-content-sha256", "x-amz-date", "x-amz-security-token", "x-amz-trailer", "x-amz-user-agent",
           "x-amz-decoded-content-length", "x-amz-target", "x-amz-sdk-checksum-algorithm", "x-amz-te"}
PRESIGNED = {"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders",
             "X-Amz-Security-Token", "X-Amz-Signature", "x-id", "X-Amz-Content-Sha256"}


def scalar(text, shape, path, problems):
    """What text stands for."""
    kind = shape.type_name
    try:
        if kind in ("integer", "long"):
            return int(text)
        if kind in ("float", "double"):
            return float(text)
        if kind == "boolean":
            return {"true": True, "false": False}[text.lower()]
        if kind == "timestamp" and shape.serialization.get("timestampFormat") != "iso8601" and "," in text:
            return parsedate_to_datetime(text).timestamp()
    except (ValueError, KeyError, TypeError):
        problems.append(f"Value '{text}' at '{path}' is not of type {kind}")
        return None
    return text


def json_body(call, problems):
    body = call.request.body.bytes()
    try:
        found = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        problems.append("the body is no JSON object")
        return {}
    return found


@functools.lru_cache(maxsize=None)
def places(shape):
    """Where the members of a rest operation's input stand: (uri, query, headers, prefixes,
    payload, rest of body), each name on the wire → member."""
    uri, query, headers, prefixes, body = {}, {}, {}, {}, {}
    payload = shape.serialization.get("payload") if shape else None
    for name, member in (shape.members if shape else {}).items():
        where, wire = member.serialization.get("location"), member.serialization.get("name", name)
        if where == "uri":
            uri[wire] = name
        elif where == "querystring":
            query[wire] = name
        elif where == "header":
            headers[wire.lower()] = name
        elif where == "headers":
            prefixes[wire.lower()] = name
        elif name != payload:
            body[wire] = name
    return uri, query, headers, prefixes, payload, body


def rest_places(call, shape, fixed, problems):
    """The parameters that stand in path, query and headers. `fixed`: names in the query
    that belong to the operation's path."""
    uri, query, headers, prefixes, payload, body = places(shape)
    params = {}
    for wire, name in uri.items():
        text = call.params.get(wire)
        if text:
            params[name] = scalar(text, shape.members[name], name, problems)
    for wire, text in call.query.items():
        name = query.get(wire)
        if name is None:
            if wire not in fixed and wire not in PRESIGNED:
                problems.append(f"Unknown parameter in the query: '{wire}'")
            continue
        member = shape.members[name]
        if member.type_name == "list":
            params[name] = [scalar(text, member.member, name, problems)]
        elif member.type_name in SCALARS:
            params[name] = scalar(text, member, name, problems)
    for wire, text in call.request.headers.items():
        name = headers.get(wire)
        if name is not None:
            member = shape.members[name]
            params[name] = [word.strip() for word in text.split(",")] if member.type_name == "list" else \
                scalar(text, member, name, problems)
        elif wire.startswith("x-amz-") and wire not in OUTSIDE and not wire.startswith("x-amz-checksum-"):
            prefix = next((prefix for prefix in prefixes if wire.startswith(prefix)), None)
            if prefix is None:
                problems.append(f"Unknown header: '{wire}'")
            else:
                params.setdefault(prefixes[prefix], {})[wire[len(prefix):]] = text
    return params, payload, body


def rest_json(call, shape, problems):
    fixed = dict.fromkeys(())
    params, payload, body = rest_places(call, shape, fixed, problems)
    if payload and shape.members[payload].type_name in ("blob", "string"):
        params[payload] = call.request.body.bytes()
    elif payload:
        params[payload] = json_body(call, problems)
    elif call.request.body.size:
        for wire, value in json_body(call, problems).items():
            params[body.get(wire, wire)] = value  # what nobody knows is found by the validation
    return params


def from_xml(node, shape, path, problems):
    if shape.type_name == "structure":
        return structure_from_xml(node, shape, path, problems)
    if shape.type_name == "list":
        return [from_xml(child, shape.member, f"{path}.{number}", problems)
                for number, child in enumerate(node, 1)]
    return scalar(node.text or "", shape, path, problems)


def structure_from_xml(node, shape, path, problems):
    names = {member.serialization.get("name", name): name for name, member in shape.members.items()}
    for name, member in shape.members.items():
        if member.type_name == "list" and member.serialization.get("flattened"):
            names[member.serialization.get("name", member.member.serialization.get("name", name))] = name
    found = {}
    for child in node:
        tag = child.tag.rpartition("}")[2]
        name = names.get(tag)
        if name is None:
            problems.append(f"Unknown element: '{path}/{tag}'")
            continue
        member = shape.members[name]
        if member.type_name == "list" and member.serialization.get("flattened"):
            found.setdefault(name, []).append(from_xml(child, member.member, f"{path}.{name}", problems))
        elif name in found:
            problems.append(f"Element twice: '{path}/{tag}'")
        else:
            found[name] = from_xml(child, member, f"{path}.{name}", problems)
    return found


def rest_xml(call, shape, fixed, problems):
    params, payload, _ = rest_places(call, shape, fixed, problems)
    if payload and shape.members[payload].type_name == "structure":
        if call.request.body.size:
            try:
                root = ElementTree.fromstring(call.request.body.bytes())
            except ElementTree.ParseError:
                problems.append("the body is no XML")
                return params
            member = shape.members[payload]
            wanted = member.serialization.get("name", payload)
            if root.tag.rpartition("}")[2] != wanted:
                problems.append(f"the body's root is not '{wanted}'")
            params[payload] = structure_from_xml(root, member, payload, problems)
    elif payload:
        params[payload] = b""  # of an object: any bytes do
    elif call.request.body.size and call.request.method in ("GET", "HEAD", "DELETE"):
        problems.append("the operation takes no body")
    return params


def tree_of(form):
    """Dotted names as nested dictionaries."""
    root = {}
    for name, value in form.items():
        node = root
        words = name.split(".")
        for word in words[:-1]:
            node = node.setdefault(word, {})
            if not isinstance(node, dict):
                return None
        node[words[-1]] = value
    return root


def from_form(node, shape, path, ec2, problems):
    if shape.type_name == "structure":
        if not isinstance(node, dict):
            problems.append(f"'{path}' is not a structure")
            return {}
        names = {}
        for name, member in shape.members.items():
            wire = member.serialization.get("name", name)
            if ec2:
                wire = member.serialization.get("queryName") or wire[:1].upper() + wire[1:]
            elif member.type_name == "list" and member.serialization.get("flattened"):
                wire = member.member.serialization.get("name", wire)
            names[wire] = name
        found = {}
        for wire, value in node.items():
            name = names.get(wire)
            if name is None:
                problems.append(f"Unknown parameter: '{path}{wire}'")
            else:
                found[name] = from_form(value, shape.members[name], f"{path}{wire}.", ec2, problems)
        return found
    if shape.type_name in ("list", "map"):
        inner = "member" if shape.type_name == "list" else "entry"
        if isinstance(node, dict) and not ec2 and not shape.serialization.get("flattened"):
            node = node.get(shape.member.serialization.get("name", inner) if shape.type_name == "list" else inner)
        if not isinstance(node, dict) or not all(word.isdigit() for word in node):
            problems.append(f"'{path}' is not a {shape.type_name}")
            return [] if shape.type_name == "list" else {}
        rows = [node[word] for word in sorted(node, key=int)]
        if shape.type_name == "map":
            return {row.get("key"): from_form(row.get("value"), shape.value, path, ec2, problems) for row in rows}
        return [from_form(row, shape.member, f"{path}{number}.", ec2, problems)
                for number, row in enumerate(rows, 1)]
    if isinstance(node, dict):
        problems.append(f"'{path}' is not a {shape.type_name}")
        return None
    return scalar(node, shape, path.rstrip("."), problems)


def form(call, shape, problems):
    fields = {name: value for name, value in call.query.items() if name not in ("Action", "Version")}
    tree = tree_of(fields)
    if tree is None:
        problems.append("a parameter is both a value and a structure")
        return {}
    if shape is None:
        problems.extend(f"Unknown parameter: '{name}'" for name in tree)
        return {}
    return from_form(tree, shape, "", call.protocol == "ec2", problems)


def parameters(call, shape, fixed, problems):
    """The parameters of a request. `fixed`: see rest_places()."""
    if call.protocol == "s3":
        call.params = {"Bucket": call.bucket, "Key": call.key}
        return rest_xml(call, shape, fixed, problems)
    if call.protocol == "rest-json":
        call.params = {name: unquote(text) for name, text in call.params.items()}
        return rest_json(call, shape, problems)
    if call.protocol == "json":
        return json_body(call, problems)
    return form(call, shape, problems)
