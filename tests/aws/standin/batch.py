"""AWS Batch with jobs that run as processes: definitions with revisions, queues, and jobs
with retries, several nodes, arrays and dependencies. moto would need Docker for them and
ignores retries, overrides and filters."""

import json
import re
import time

from standin import batch_jobs, ecs, rules
from standin.errors import Refusal
from standin.wire import Reply

SUBMIT_BYTES, DEFINITION_BYTES = 30 << 10, 24 << 10
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
WAITING = ("SUBMITTED", "PENDING", "RUNNABLE")


class State:
    """What an account has in a region."""

    def __init__(self):
        self.definitions, self.queues, self.environments, self.policies, self.jobs = {}, {}, {}, {}, {}


def state_of(call):
    return call.front.batch.setdefault((call.who.account, call.region), State())


def reply(value):
    return Reply(200, [("Content-Type", "application/json")], json.dumps(value).encode())


def wrong(message):
    return Refusal("ClientException", message, 400)


def arn(call, what):
    return f"arn:aws:batch:{call.region}:{call.who.account}:{what}"


def check_name(name):
    if not NAME.fullmatch(name):
        raise wrong(f"Error executing request, Exception : Name {name} should match valid pattern")
    return name


def found_in(table, name, what):
    """By name or ARN."""
    short = name.rpartition("/")[2]
    if short not in table:
        raise wrong(f"Error executing request, Exception : {what} {name} does not exist")
    return table[short]


# Definitions

def register(call):
    state, request = state_of(call), call.params
    if call.request.body.size > DEFINITION_BYTES:
        raise wrong(f"Job definition size must be less than {DEFINITION_BYTES} bytes")
    name = check_name(request["jobDefinitionName"])
    kind = request["type"]
    if (kind == "multinode") != ("nodeProperties" in request) or kind not in ("container", "multinode"):
        raise wrong("Error executing request, Exception : properties do not fit the type")
    if kind == "container" and ("containerProperties" in request) == ("ecsProperties" in request):
        raise wrong("Error executing request, Exception : exactly one of containerProperties and ecsProperties is needed")
    for each in (request, *request.get("nodeProperties", {}).get("nodeRangeProperties", [])):
        if "ecsProperties" in each:
            ecs.check(each["ecsProperties"])
    for properties in batch_jobs.containers_of(request):
        batch_jobs.check_environment(properties.get("environment", []))
        rules.check_container(properties)
        kinds = {each["type"] for each in properties.get("resourceRequirements", [])}
        if not ({"VCPU"} <= kinds or "vcpus" in properties) or not ({"MEMORY"} <= kinds or "memory" in properties):
            raise wrong("Error executing request, Exception : Container properties must specify vcpus and memory")
    batch_jobs.check_retries(request.get("retryStrategy", {}))
    batch_jobs.check_timeout(request.get("timeout"))
    if kind == "multinode":
        batch_jobs.check_ranges(request["nodeProperties"])
        rules.check_instances(request["nodeProperties"]["nodeRangeProperties"])
    with call.front.floor.lock:
        revisions = state.definitions.setdefault(name, [])
        revision = len(revisions) + 1
        revisions.append({**request, "revision": revision, "status": "ACTIVE",
                          "jobDefinitionArn": arn(call, f"job-definition/{name}:{revision}")})
    call.effect = True
    return reply({"jobDefinitionName": name, "jobDefinitionArn": revisions[-1]["jobDefinitionArn"],
                  "revision": revision})


def definition_of(state, word):
    name, _, revision = word.rpartition("/")[2].partition(":")
    active = [each for each in state.definitions.get(name, [])
              if each["status"] == "ACTIVE" and revision in ("", str(each["revision"]))]
    if not active:
        raise wrong(f"Error executing request, Exception : JobDefinition {word} is not found or not ACTIVE")
    return active[-1]


def deregister(call):
    definition_of(state_of(call), call.params["jobDefinition"])["status"] = "INACTIVE"
    call.effect = True
    return reply({})


def paged(call, rows, name, most=100):
    size = min(call.params.get("maxResults", most), most)
    token = call.params.get("nextToken", "0")
    if not token.isdigit():
        raise wrong("Error executing request, Exception : nextToken is not valid")
    start = int(token)
    more = {"nextToken": str(start + size)} if start + size < len(rows) else {}
    return reply({name: rows[start:start + size], **more})


def describe_definitions(call):
    wanted, rows = call.params, []
    for each in (each for revisions in state_of(call).definitions.values() for each in revisions):
        word = f"{each['jobDefinitionName']}:{each['revision']}"
        listed = wanted.get("jobDefinitions")
        if (listed is None or word in [name.rpartition("/")[2] for name in listed]
                or each["jobDefinitionName"] in listed) and wanted.get("jobDefinitionName") in (
                    None, each["jobDefinitionName"]) and wanted.get("status") in (None, each["status"]):
            rows.append(each)
    return paged(call, sorted(rows, key=lambda each: -each["revision"]), "jobDefinitions")


# Queues, compute environments, scheduling policies: as far as jobs need them

def create_named(table, name_field, arn_field, kind, more):
    def create(call):
        state = state_of(call)
        rows, name = getattr(state, table), check_name(call.params[name_field])
        with call.front.floor.lock:
            if name in rows:
                raise wrong("Error executing request, Exception : Object already exists")
            rows[name] = {**call.params, arn_field: arn(call, f"{kind}/{name}"), **more}
        if table == "queues":
            for each in call.params["computeEnvironmentOrder"]:
                if each["computeEnvironment"].rpartition("/")[2] not in state.environments:
                    del rows[name]
                    raise wrong(f"Error executing request, Exception : {each['computeEnvironment']} does not exist")
        call.effect = True
        return reply({name_field: name, arn_field: rows[name][arn_field]} if name_field != "name" else {
            "name": name, "arn": rows[name][arn_field]})
    return create


def describe_named(table, wanted_field, answer):
    def describe(call):
        rows, wanted = getattr(state_of(call), table), call.params.get(wanted_field)
        names = [name.rpartition("/")[2] for name in wanted] if wanted else list(rows)
        return paged(call, [rows[name] for name in names if name in rows], answer)
    return describe


def update_queue(call):
    queue = found_in(state_of(call).queues, call.params["jobQueue"], "Job queue")
    queue.update({name: value for name, value in call.params.items() if name != "jobQueue"})
    call.effect = True
    return reply({"jobQueueName": queue["jobQueueName"], "jobQueueArn": queue["jobQueueArn"]})


def update_environment(call):
    environment = found_in(state_of(call).environments, call.params["computeEnvironment"], "Compute environment")
    environment.update({name: value for name, value in call.params.items() if name == "state"})
    environment["computeResources"].update(call.params.get("computeResources", {}))
    call.effect = True
    return reply({name: environment[name] for name in ("computeEnvironmentName", "computeEnvironmentArn")})


# Jobs

def submit(call):
    state, request = state_of(call), call.params
    if call.request.body.size > SUBMIT_BYTES:
        raise wrong(f"Error executing request, Exception : Job size must be less than {SUBMIT_BYTES} bytes")
    check_name(request["jobName"])
    queue = found_in(state.queues, request["jobQueue"], "Job queue")
    if queue.get("state", "ENABLED") != "ENABLED":
        raise wrong("Error executing request, Exception : Job queue is disabled")
    if ("shareIdentifier" in request) != ("schedulingPolicyArn" in queue):
        raise wrong("Error executing request, Exception : shareIdentifier is required with a fair-share queue, and "
                    "only there")
    definition = definition_of(state, request["jobDefinition"])
    if "nodeProperties" not in definition and "nodeOverrides" in request:
        raise wrong("Error executing request, Exception : nodeOverrides are for multi-node parallel jobs")
    if "nodeProperties" in definition and ("containerOverrides" in request or "arrayProperties" in request):
        raise wrong("Error executing request, Exception : containerOverrides and arrayProperties are not for "
                    "multi-node parallel jobs")
    for overrides in batch_jobs.overrides_of(request):
        batch_jobs.check_environment(overrides.get("environment", []))
    batch_jobs.check_retries(request.get("retryStrategy", {}))
    batch_jobs.check_timeout(request.get("timeout"))
    for each in request.get("dependsOn", []):
        if "jobId" in each and each["jobId"] not in state.jobs:
            raise wrong(f"Error executing request, Exception : Job {each['jobId']} does not exist")
    job = batch_jobs.Job(call, state, request, definition, queue["jobQueueArn"])
    with call.front.floor.lock:
        state.jobs[job.id] = job
        for child in job.children:
            state.jobs[child.id] = child
    call.effect = True
    call.front.floor.start(job.run)
    return reply({"jobName": job.name, "jobId": job.id, "jobArn": job.arn})


def known_jobs(call):
    """But for those that have ended long ago."""
    settings = call.front.settings
    since = (time.time() + settings["batch_later"] - settings["known_seconds"]) * 1000
    return {name: job for name, job in state_of(call).jobs.items() if job.stopped is None or job.stopped > since}


def describe(call):
    if not 1 <= len(call.params["jobs"]) <= 100:
        raise wrong("Error executing request, Exception : at most 100 jobs can be described")
    jobs = known_jobs(call)
    ids = [name.rpartition("/")[2] for name in call.params["jobs"]]
    return reply({"jobs": [jobs[name].describe() for name in ids if name in jobs]})


def listing(call):
    state, wanted, jobs = state_of(call), call.params, known_jobs(call).values()
    where = [name for name in ("jobQueue", "arrayJobId", "multiNodeJobId") if name in wanted]
    if len(where) != 1:
        raise wrong("Error executing request, Exception : exactly one of jobQueue, arrayJobId and multiNodeJobId")
    if where == ["jobQueue"]:
        queue = found_in(state.queues, wanted["jobQueue"], "Job queue")["jobQueueArn"]
        rows = [job for job in jobs if job.queue == queue and job.parent is None]
    else:
        rows = [job for job in jobs if job.parent and job.parent.id == wanted[where[0]]]
    filters = wanted.get("filters", [])
    if len(filters) > 1:
        raise wrong("Error executing request, Exception : only one filter is supported")
    if filters:
        rows = [job for job in rows if batch_jobs.passes(job, filters[0])]
    else:
        status = wanted.get("jobStatus", "RUNNING")
        rows = [job for job in rows if job.status == status]
    rows.sort(key=lambda job: -job.created)
    return paged(call, [job.summary() for job in rows], "jobSummaryList", 100 if filters else 1000)


def cancel(call):
    job = state_of(call).jobs.get(call.params["jobId"])
    if job is None:
        raise wrong(f"Error executing request, Exception : Job {call.params['jobId']} does not exist")
    if job.status in WAITING:
        call.effect = not job.ending
        job.ask_to_end(call.params["reason"], "cancelled")
    return reply({})  # later it succeeds and does nothing, as at AWS


def terminate(call):
    job = state_of(call).jobs.get(call.params["jobId"])
    if job is None:
        raise wrong(f"Error executing request, Exception : Job {call.params['jobId']} does not exist")
    if job.status not in ("SUCCEEDED", "FAILED"):
        call.effect = not job.ending
        job.ask_to_end(call.params["reason"], "terminated")
    return reply({})


def tags(call):
    wanted, state = call.params["resourceArn"], state_of(call)
    for job in state.jobs.values():
        if job.arn == wanted:
            return reply({"tags": job.request.get("tags", {})})
    for row in (*state.queues.values(), *(each for revisions in state.definitions.values() for each in revisions)):
        if wanted in (row.get("jobQueueArn"), row.get("jobDefinitionArn")):
            return reply({"tags": row.get("tags", {})})
    raise Refusal("ClientException", f"{wanted} does not exist", 404)


HANDLERS = {
    "RegisterJobDefinition": register, "DeregisterJobDefinition": deregister,
    "DescribeJobDefinitions": describe_definitions,
    "CreateComputeEnvironment": create_named("environments", "computeEnvironmentName", "computeEnvironmentArn",
                                             "compute-environment", {"status": "VALID", "statusReason":
                                                                     "ComputeEnvironment Healthy"}),
    "UpdateComputeEnvironment": update_environment,
    "DescribeComputeEnvironments": describe_named("environments", "computeEnvironments", "computeEnvironments"),
    "CreateJobQueue": create_named("queues", "jobQueueName", "jobQueueArn", "job-queue",
                                   {"status": "VALID", "state": "ENABLED"}),
    "UpdateJobQueue": update_queue, "DescribeJobQueues": describe_named("queues", "jobQueues", "jobQueues"),
    "CreateSchedulingPolicy": create_named("policies", "name", "arn", "scheduling-policy", {}),
    "SubmitJob": submit, "DescribeJobs": describe, "ListJobs": listing, "CancelJob": cancel, "TerminateJob": terminate,
    "ListTagsForResource": tags,
}
