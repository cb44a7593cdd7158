"""Step Functions: moto's state machines and its interpreter of the States Language, whose tasks ask the stand-in's other
services with the machine's role. Waits, and the pauses between two looks at a job, are made shorter.

moto's tasks hand names of members on as they are written. Step Functions has them in PascalCase for every service: here
they are translated by the service's model, and one that it does not have is an error."""

import threading
import time
from types import SimpleNamespace

import boto3
from botocore import xform_name
from botocore.config import Config

from standin import behind, services

lock = threading.Lock()
of = {}  # "front": whose machines they are, as soon as moto's interpreter is loaded
clients = {}
MANAGED = {"name", "value"}  # moto's own MANAGED_BY_AWS is in the service's form already


def pascal(name):
    return name[0].upper() + name[1:]


def translate(value, shape, to_service):
    """In place: the names of structures, not the keys of maps."""
    if shape.type_name == "structure":
        names = {pascal(name): name for name in shape.members}
        names = names if to_service else {name: upper for upper, name in names.items()}
        members = dict(value)
        value.clear()
        for name, member in members.items():
            if to_service and name not in names and name not in MANAGED:
                raise ValueError(f"{shape.name} has no member '{name}'")
            other = names.get(name, name)
            value[other] = member
            translate(member, shape.members[other if to_service or name not in names else name], to_service)
    elif shape.type_name == "list":
        for member in value:
            translate(member, shape.member, to_service)
    elif shape.type_name == "map":
        for member in value.values():
            translate(member, shape.value, to_service)


def client_for(region, service, state_credentials):
    """A client of the stand-in, with keys of the role."""
    keyring, role = of["front"].keyring, state_credentials.role_arn
    with lock:
        client, access = clients.get((region, service, role), (None, None))
        if client is None or keyring.find(access) is None:
            account, name = role.split(":")[4], role.rpartition("/")[2]
            key = keyring.issue(3600, account, f"arn:aws:sts::{account}:assumed-role/{name}/states")
            client = boto3.session.Session().client(
                service, region, endpoint_url=of["front"].url, aws_access_key_id=key.access,
                aws_secret_access_key=key.secret, aws_session_token=key.token, config=Config(retries={"total_max_attempts": 1}))
            clients[region, service, role] = client, key.access
    return client


def operation_of(task, action):
    model, method = services.model(task._get_boto_service_name()), action or task._get_boto_service_action()
    return next(model.operation_model(name) for name in model.operation_names if xform_name(name) == method)


def load():
    """moto's interpreter, once."""
    from moto.core.config import default_user_config
    from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
    from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
        state_task_service_aws_sdk,
        state_task_service_batch,
        state_task_service_callback,
    )
    from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import StateTaskService
    from moto.stepfunctions.parser.asl.component.state.wait.wait_function.seconds import Seconds
    from moto.stepfunctions.parser.backend.execution import Execution

    def request(self, parameters, boto_service_name=None, service_action_name=None):
        translate(parameters, operation_of(self, service_action_name).input_shape, True)

    def response(self, response, boto_service_name=None, service_action_name=None):
        response.pop("ResponseMetadata", None)
        translate(response, operation_of(self, service_action_name).output_shape, False)

    as_json = state_task_service_batch.to_json_str
    state_task_service_batch.to_json_str = lambda job: of["front"].settings["job_cause"] or as_json(job)
    for module in (state_task_service_aws_sdk, state_task_service_batch):
        module.boto_client_for = client_for
    StateTaskService._normalise_parameters, StateTaskService._normalise_response = request, response
    state_task_service_callback._DELAY_SECONDS_SYNC_CONDITION_CHECK = 0.1
    Seconds._get_wait_seconds = lambda self, env: 0
    retrier_decl.time = SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, 0.1)))
    Execution.__deepcopy__ = lambda self, memo: self  # moto copies a machine with them, and cannot
    default_user_config["stepfunctions"] = {"execute_state_machine": True}


def handle(call):
    behind.application()
    with lock:
        if not of:
            load()
        of["front"] = call.front
    return behind.ask(call)
