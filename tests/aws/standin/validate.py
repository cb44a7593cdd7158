"""Are these parameters such as the service's model allows? Required and unknown members,
types, lengths, ranges, patterns and enumerations, all of them at once, in the words that
AWS uses."""

import base64
import functools
import re

from standin import errors, parse, services

# Posix classes of Java's patterns, as Python knows them.
JAVA = (("\\p{Alnum}", "A-Za-z0-9"), ("\\p{Alpha}", "A-Za-z"), ("\\p{Digit}", "0-9"), ("\\p{Graph}", "!-~"),
        ("\\p{Print}", " -~"), ("\\p{ASCII}", "\\x00-\\x7f"), ("\\p{L}", "^\\W\\d_"), ("\\p{N}", "\\d"),
        ("\\p{Z}", "\\s"), ("\\p{P}", "!-/:-@\\[-`{-~"), ("\\p{S}", "$+<=>^`|~"), ("\\p{M}", ""))


@functools.lru_cache(maxsize=None)
def compiled(pattern):
    """None: Python has no such pattern."""
    text = pattern
    letters = "\\p{L}" in text
    if letters:  # within a class: \w stands for letters and digits
        text = text.replace("\\p{L}", "\\w").replace("\\p{N}", "\\d")
    for name, replacement in JAVA:
        text = text.replace(name, replacement)
    try:
        return re.compile(text, re.DOTALL)
    except re.error:
        return None


def fault(problems, value, path, text):
    shown = value if len(str(value)) <= 200 else f"{str(value)[:200]}..."
    problems.append(f"Value '{shown}' at '{path}' failed to satisfy constraint: {text}")


def check_bounds(size, shape, value, path, what, problems):
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and size < low:
        fault(problems, value, path, f"Member must have {what} greater than or equal to {low}")
    if high is not None and size > high:
        fault(problems, value, path, f"Member must have {what} less than or equal to {high}")


def check_string(value, shape, path, problems):
    if not isinstance(value, str):
        return problems.append(f"'{path}' is not a string")
    check_bounds(len(value), shape, value, path, "length", problems)
    if shape.enum and value not in shape.enum:
        fault(problems, value, path, f"Member must satisfy enum value set: [{', '.join(shape.enum)}]")
    pattern = shape.metadata.get("pattern")
    if pattern and (known := compiled(pattern)) and not known.fullmatch(value):
        fault(problems, value, path, f"Member must satisfy regular expression pattern: {pattern}")
    return None


def check_number(value, shape, path, problems):
    whole = shape.type_name in ("integer", "long")
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        return problems.append(f"'{path}' is not of type {shape.type_name}")
    if whole and not -(1 << 63) <= value < 1 << 63:
        return problems.append(f"'{path}' is out of range")
    check_bounds(value, shape, value, path, "value", problems)
    return None


def check_structure(value, shape, path, problems):
    if not isinstance(value, dict):
        return problems.append(f"'{path}' is not a structure")
    for name in shape.required_members:
        if value.get(name) is None:
            problems.append(f"Value null at '{path}{name}' failed to satisfy constraint: Member must not be null")
    if shape.is_tagged_union and sum(each is not None for each in value.values()) != 1:
        problems.append(f"'{path.rstrip('.')}' must have exactly one member set")
    for name, inner in value.items():
        member = shape.members.get(name)
        if member is None:
            problems.append(f"Unknown parameter: '{path}{name}'")
        elif inner is not None:
            check(inner, member, f"{path}{name}.", problems)
    return None


def check(value, shape, path, problems):
    kind, name = shape.type_name, path.rstrip(".")
    if kind == "structure":
        check_structure(value, shape, path, problems)
    elif kind == "list":
        if not isinstance(value, list):
            problems.append(f"'{name}' is not a list")
            return
        check_bounds(len(value), shape, value, name, "length", problems)
        for number, inner in enumerate(value, 1):
            check(inner, shape.member, f"{name}.{number}.member.", problems)
    elif kind == "map":
        if not isinstance(value, dict):
            problems.append(f"'{name}' is not a map")
            return
        check_bounds(len(value), shape, value, name, "length", problems)
        for key, inner in value.items():
            check(key, shape.key, f"{name}.{key}.key", problems)
            check(inner, shape.value, f"{name}.{key}.member.", problems)
    elif kind == "string":
        check_string(value, shape, name, problems)
    elif kind in ("integer", "long", "float", "double"):
        check_number(value, shape, name, problems)
    elif kind == "boolean" and not isinstance(value, bool):
        problems.append(f"'{name}' is not a boolean")
    elif kind == "blob":
        check_blob(value, shape, name, problems)
    elif kind == "timestamp" and (isinstance(value, bool) or not isinstance(value, (int, float, str))):
        problems.append(f"'{name}' is not a timestamp")


def check_blob(value, shape, path, problems):
    if isinstance(value, bytes):
        return
    try:
        raw = base64.b64decode(value, validate=True)
    except (ValueError, TypeError):
        problems.append(f"'{path}' is not base64")
        return
    check_bounds(len(raw), shape, "(bytes)", path, "length", problems)


@functools.lru_cache(maxsize=None)
def fixed_names(service, operation):
    """Names that an operation's path carries in its query."""
    uri = services.model(service).operation_model(operation).http["requestUri"]
    return frozenset(part.partition("=")[0] for part in uri.partition("?")[2].split("&") if part)


def request(call):
    """Sets call.params; refuses what the model does not allow."""
    problems = []
    shape = services.shape_of(call.service, call.operation)
    call.params = parse.parameters(call, shape, fixed_names(call.service, call.operation), problems)
    if shape is not None:
        check_structure(call.params, shape, "", problems)
    elif call.params:
        problems.append("the operation takes no parameters")
    if problems:
        text = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''} detected: {'; '.join(problems)}"
        raise errors.generic("invalid", call.protocol, text, call.service)
