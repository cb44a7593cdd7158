"""The services that are left to moto, reached as a WSGI application within this process;
it is loaded when the first of them is asked, because that takes seconds."""

import io
import threading

from standin.errors import Refusal
from standin.wire import Reply

lock = threading.Lock()
loaded = {}
# Names that AWS takes once and moto twice: operation → (parameter, code, who frees it)
UNIQUE = {"CreateTransformJob": ("TransformJobName", "ResourceInUse", None),
          "CreateModel": ("ModelName", "ValidationException", "DeleteModel"),
          "CreateModelPackageGroup": ("ModelPackageGroupName", "ValidationException", "DeleteModelPackageGroup")}
FREE = {free: create for create, (_, _, free) in UNIQUE.items() if free}
taken = set()


def application():
    with lock:
        if "app" not in loaded:
            from moto.server import DomainDispatcherApplication, create_backend_app
            loaded["app"] = DomainDispatcherApplication(create_backend_app)
        return loaded["app"]


def backend(service):
    """moto's own data of a service. Nobody else may be loading it at that time."""
    with lock:
        from moto.backends import get_backend
        loaded["backend"] = get_backend
        return get_backend(service)


def environ_of(request, body):
    environ = {"REQUEST_METHOD": request.method, "SCRIPT_NAME": "", "PATH_INFO": request.path,
               "QUERY_STRING": request.query, "RAW_URI": request.target, "REQUEST_URI": request.target,
               "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1",
               "REMOTE_ADDR": "127.0.0.1", "wsgi.version": (1, 0), "wsgi.url_scheme": "http",
               "wsgi.input": io.BytesIO(body), "wsgi.errors": io.StringIO(), "wsgi.multithread": True,
               "wsgi.multiprocess": False, "wsgi.run_once": False, "CONTENT_LENGTH": str(len(body))}
    for name, value in request.headers.items():
        if name == "content-type":
            environ["CONTENT_TYPE"] = value
        elif name != "content-length":
            environ["HTTP_" + name.upper().replace("-", "_")] = value
    return environ


def handle(call):
    if call.operation not in UNIQUE and call.operation not in FREE:
        return ask(call)
    create = call.operation if call.operation in UNIQUE else FREE[call.operation]
    parameter, code, _ = UNIQUE[create]
    mark = (call.who.account, call.region, create, call.params[parameter])
    with lock:
        if call.operation in UNIQUE and mark in taken:
            raise Refusal(code, f"{parameter} must be unique within an AWS account and region, and "
                          f"{call.params[parameter]} already exists", 400)
        if call.operation in UNIQUE:
            taken.add(mark)
        else:
            taken.discard(mark)
    reply = ask(call)
    if reply.status >= 300 and call.operation in UNIQUE:
        taken.discard(mark)
    return reply


def ask(call):
    answer = {}

    def start(status, headers, _=None):
        answer["status"], answer["headers"] = int(status.split(" ", 1)[0]), headers

    pieces = application()(environ_of(call.request, call.request.body.bytes()), start)
    body = b"".join(pieces)
    if hasattr(pieces, "close"):
        pieces.close()
    if answer["status"] >= 500:  # moto's own limits are not those of AWS
        raise RuntimeError(f"moto fails at {call.service} {call.operation}: {body[:300]!r}")
    dropped = ("content-length", "date", "server", "connection", "x-amzn-requestid", "access-control-allow-origin")
    headers = [(name, value) for name, value in answer["headers"] if name.lower() not in dropped]
    call.effect = answer["status"] < 300 and not call.operation.startswith(
        ("Get", "List", "Describe", "Filter", "Search", "Head"))
    return Reply(answer["status"], headers, body)


def clear():
    """Forget everything, if there is anything."""
    taken.clear()
    if loaded:
        from moto.moto_api._internal import moto_api_backend
        moto_api_backend.reset()
