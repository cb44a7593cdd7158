"""IAM's evaluation of identity-based policies, by its documentation ("Policy evaluation logic", "IAM JSON policy
elements"): what no statement allows is denied, and what one denies stays denied. Strict: what it does not know it does
not take, so that no test passes by a statement that nobody read."""

import re

ALLOWED, DENIED, FORBIDDEN = "allowed", "denied", "forbidden"  # by a statement; by none; by a Deny
STATEMENT = {"Sid", "Effect", "Action", "Resource", "Condition"}
CONDITIONS = {"StringEquals": ("equals", True), "StringNotEquals": ("equals", False),
              "StringLike": ("like", True), "StringNotLike": ("like", False)}
KEYS = re.compile(r"s3:prefix|iam:passedtoservice|aws:requesttag/.+", re.IGNORECASE)
ACTION = re.compile(r"\*|[a-z0-9-]+:[a-z0-9*?]+", re.IGNORECASE)
ARN_PARTS = 6


def listed(value):
    return value if isinstance(value, list) else [value]


def pattern(text, ignore_case=False):
    """`*` any characters, `?` one; `${*}`, `${?}` and `${$}` stand for themselves."""
    out = ""
    for piece in re.findall(r"\$\{[*?$]\}|\$\{|.", text, re.DOTALL):
        if piece == "${":
            raise ValueError(f"no policy variables here: {text}")
        out += {"*": ".*", "?": "."}.get(piece) or re.escape(piece[2] if len(piece) == 4 else piece)
    return re.compile(out, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def like(text, value, ignore_case=False):
    return pattern(text, ignore_case).fullmatch(value) is not None


def is_resource(text, arn):
    """The parts of an ARN are compared one by one, so that no wildcard reaches into the next; the last is free."""
    if text == "*":
        return True
    wanted, given = text.split(":", ARN_PARTS - 1), arn.split(":", ARN_PARTS - 1)
    return len(wanted) == len(given) and all(like(each, part) for each, part in zip(wanted, given))


def holds(conditions, context):
    """All operators and all keys must hold; of a key's values one is enough. A key that the request does not have
    holds for the negated operators and for those with IfExists."""
    context = {name.lower(): value for name, value in context.items()}
    for operator, keys in conditions.items():
        base = operator.removesuffix("IfExists")
        how, is_positive = CONDITIONS[base]
        for key, values in keys.items():
            value = context.get(key.lower())
            if value is None:
                if is_positive and base == operator:
                    return False
                continue
            found = any(like(each, value) if how == "like" else each == value for each in listed(values))
            if found != is_positive:
                return False
    return True


def applies(statement, action, resource, context):
    return (any(like(each, action, True) for each in listed(statement["Action"]))
            and any(is_resource(each, resource) for each in listed(statement["Resource"]))
            and holds(statement.get("Condition", {}), context))


def evaluate(policies, action, resource, context=None):
    """What becomes of an action on a resource; a request's context is a value for each condition key that it has."""
    effects = {statement["Effect"] for policy in policies for statement in listed(policy["Statement"])
               if applies(statement, action, resource, context or {})}
    return FORBIDDEN if "Deny" in effects else ALLOWED if "Allow" in effects else DENIED


def check(policy):
    """Raises ValueError for what IAM, or this evaluator, does not take."""
    if not isinstance(policy, dict) or policy.keys() != {"Version", "Statement"} or policy["Version"] != "2012-10-17":
        raise ValueError("a policy has a Version, 2012-10-17, and a Statement")
    sids = set()
    for statement in listed(policy["Statement"]):
        if not isinstance(statement, dict) or statement.keys() - STATEMENT:
            raise ValueError(f"not a statement: {statement}")
        if missing := {"Effect", "Action", "Resource"} - statement.keys():
            raise ValueError(f"a statement without {', '.join(sorted(missing))}: {statement}")
        if statement["Effect"] not in ("Allow", "Deny"):
            raise ValueError(f"no such effect: {statement['Effect']}")
        sid = statement.get("Sid", "")
        if not re.fullmatch("[A-Za-z0-9]*", sid) or (sid and sid in sids):
            raise ValueError(f"a Sid has letters and digits, and stands once in a policy: {sid}")
        sids.add(sid)
        check_words(statement)
    return policy


def check_words(statement):
    if not listed(statement["Action"]) or not listed(statement["Resource"]):
        raise ValueError(f"neither Action nor Resource may be empty: {statement}")
    for each in listed(statement["Action"]):
        if not ACTION.fullmatch(each):
            raise ValueError(f"not an action: {each}")
    for each in listed(statement["Resource"]):
        pattern(each)
        if each != "*" and not (each.startswith("arn:") and each.count(":") >= ARN_PARTS - 1):
            raise ValueError(f"not the ARN of a resource: {each}")
    for operator, keys in statement.get("Condition", {}).items():
        if operator.removesuffix("IfExists") not in CONDITIONS:
            raise ValueError(f"the stand-in knows no condition {operator}")
        for key, values in keys.items():
            if not KEYS.fullmatch(key):
                raise ValueError(f"the stand-in knows no condition key {key}")
            for each in listed(values):
                pattern(each)
