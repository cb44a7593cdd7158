"""Which service and which operation a request is for, by the official service models
that botocore carries."""

import functools
import re

from botocore.loaders import Loader
from botocore.model import ServiceModel

# signing name → the model's name; the rest are equal
MODELS = {"states": "stepfunctions", "servicequotas": "service-quotas"}
PROTOCOLS = {"rest-xml": "s3", "query": "query", "json": "json", "rest-json": "rest-json", "ec2": "ec2"}
KNOWN = ("s3", "sts", "logs", "secretsmanager", "ssm", "sagemaker", "batch", "scheduler", "states", "ecr", "ec2",
         "ecs", "iam", "servicequotas", "pricing", "sso", "sso-oidc")


@functools.lru_cache(maxsize=None)
def model(service):
    name = MODELS.get(service, service)
    return ServiceModel(Loader().load_service_model(name, "service-2"), name)


@functools.lru_cache(maxsize=None)
def protocol(service):
    """One of the words that errors.py knows."""
    if service not in KNOWN:
        return "json"
    spoken = model(service).metadata.get("protocols", []) + [model(service).metadata["protocol"]]
    return next(PROTOCOLS[word] for word in spoken if word in PROTOCOLS)


@functools.lru_cache(maxsize=None)
def routes(service):
    """(method, pattern of the path, operation) of a service that speaks by paths; those
    with more fixed text first."""
    found = []
    for name in model(service).operation_names:
        http = model(service).operation_model(name).http
        path = http["requestUri"].partition("?")[0]
        pattern = re.sub(r"\\\{(\w+)(\\\+)?\\\}", lambda match: f"(?P<{match[1]}>{'.+' if match[2] else '[^/]+'})",
                         re.escape(path))
        found.append((len(re.sub(r"\{.*?\}", "", path)), http["method"], re.compile(pattern), name))
    return [row[1:] for row in sorted(found, key=lambda row: -row[0])]


@functools.lru_cache(maxsize=None)
def shape_of(service, operation):
    """The input's shape; None: the operation takes nothing. KeyError: there is none such."""
    models = model(service)
    if operation not in models.operation_names:
        raise KeyError(operation)
    return models.operation_model(operation).input_shape


def find(call):
    """Set the operation, for services other than S3: False if there is none such."""
    request, service = call.request, call.service
    if call.protocol == "json":
        prefix, _, operation = request.header("x-amz-target", "").rpartition(".")
        if prefix != model(service).metadata["targetPrefix"] or request.method != "POST":
            return False
        call.operation = operation
    elif call.protocol in ("query", "ec2"):
        call.operation = call.query.get("Action", "")
        if call.query.get("Version") != model(service).metadata["apiVersion"]:
            return False
    else:
        for method, pattern, operation in routes(service):
            match = pattern.fullmatch(request.path)
            if match and method == request.method:
                call.operation, call.params = operation, dict(match.groupdict())
                break
    return call.operation in model(service).operation_names
