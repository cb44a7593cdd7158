"""Answers of services that are asked what an account has, held to the official models: what a model does not have is
a mistake of the stand-in's own."""

import json
import uuid
from xml.sax.saxutils import escape

from standin import services, validate
from standin.wire import Reply


def text_of(value):
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else escape(str(value))


def element(name, value, shape):
    if shape.type_name == "structure":
        inner = "".join(element(shape.members[key].serialization.get("name", key), each, shape.members[key])
                        for key, each in value.items() if each is not None)
    elif shape.type_name == "list":
        inner = "".join(element(shape.member.serialization.get("name", "member"), each, shape.member) for each in value)
    else:
        inner = text_of(value)
    return f"<{name}>{inner}</{name}>"


def document(call, body, shape):
    operation, space = call.operation, services.model(call.service).metadata
    if call.protocol == "ec2":
        inner = element(f"{operation}Response", body, shape)
        head = f'<{operation}Response xmlns="http://ec2.amazonaws.com/doc/{space["apiVersion"]}/">'
        return inner.replace(f"<{operation}Response>", f"{head}<requestId>{uuid.uuid4()}</requestId>", 1)
    return (f'<{operation}Response xmlns="{space["xmlNamespace"]}">{element(f"{operation}Result", body, shape)}'
            f"<ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata></{operation}Response>")


def answer(call, body):
    shape = services.model(call.service).operation_model(call.operation).output_shape
    problems = []
    validate.check(body, shape, "", problems)
    if problems:
        raise ValueError(f"no answer of {call.service} {call.operation}: {problems}")
    if call.protocol == "json":
        return Reply(200, [("Content-Type", "application/x-amz-json-1.1")], json.dumps(body).encode())
    return Reply(200, [("Content-Type", "text/xml;charset=UTF-8")], document(call, body, shape).encode())
