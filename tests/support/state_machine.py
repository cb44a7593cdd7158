"""Runs executions of a state machine in moto's interpreter of the States Language; what its tasks ask of a
service they ask of the stand-in. A process of its own, because loading moto takes seconds:

    python tests/support/state_machine.py < {"definition", "name": of the machine, "url", "region", "access",
    "secret", "executions": [names]}

prints [{"status", "output", "error", "cause", "states": those entered, in order}…]. They run one after the
other; waits and the pauses between two looks at a job are made shorter.

moto's tasks hand names of members on as they are written. Step Functions has them in PascalCase for every
service: here they are translated by the service's model, and one that it does not have is an error."""

import json
import sys
import time

import boto3
from botocore.config import Config
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_aws_sdk,
    state_task_service_batch,
    state_task_service_callback,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import StateTaskService
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.seconds import Seconds
from moto.stepfunctions.parser.models import StepFunctionsParserBackend

ROLE = "arn:aws:iam::123456789012:role/states"
pause = time.sleep
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


def patch(asked):
    def client_for(region, service, state_credentials=None):
        return boto3.client(service, region_name=region, endpoint_url=asked["url"], aws_access_key_id=asked["access"],
                            aws_secret_access_key=asked["secret"], config=Config(retries={"total_max_attempts": 1}))

    def operation_of(task, action):
        client = client_for(asked["region"], task._get_boto_service_name())
        action = action or task._get_boto_service_action()
        return client.meta.service_model.operation_model(client.meta.method_to_api_mapping[action])

    def request(self, parameters, boto_service_name=None, service_action_name=None):
        translate(parameters, operation_of(self, service_action_name).input_shape, True)

    def response(self, response, boto_service_name=None, service_action_name=None):
        response.pop("ResponseMetadata", None)
        translate(response, operation_of(self, service_action_name).output_shape, False)

    for module in (state_task_service_aws_sdk, state_task_service_batch):
        module.boto_client_for = client_for
    StateTaskService._normalise_parameters, StateTaskService._normalise_response = request, response
    state_task_service_callback._DELAY_SECONDS_SYNC_CONDITION_CHECK = 0.1
    Seconds._get_wait_seconds = lambda self, env: 0
    retrier_decl.time.sleep = lambda seconds: pause(min(seconds, 0.1))


def execute(backend, machine, name):
    machine.executions.clear()  # moto copies them, and cannot
    execution = backend.start_execution(machine.arn, name, "{}")
    while execution.exec_status in (None, "RUNNING"):
        pause(0.05)
    events = json.loads(json.dumps(execution.to_history_output(), default=str))["events"]
    entered = [event["stateEnteredEventDetails"]["name"] for event in events if "stateEnteredEventDetails" in event]
    return {"status": execution.exec_status.value, "output": execution.output, "error": execution.error,
            "cause": execution.cause, "states": entered}


def run(asked):
    patch(asked)
    backend = StepFunctionsParserBackend(asked["region"], "123456789012")
    machine = backend.create_state_machine(asked["name"], json.dumps(asked["definition"]), ROLE, {})
    return [execute(backend, machine, name) for name in asked["executions"]]


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin)), sys.stdout)
