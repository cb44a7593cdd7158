"""How rows of configs/live/rows.yaml are tried that are about what else begins stoker's jobs: Step Functions and EventBridge
Scheduler get what the built stoker makes for them, with names and tags of this run, and far.py in the place of stoker. (A
schedule itself can have no tags.)"""

import datetime
import json
import secrets

import jobs
from lab import PREFIX, NotTried, refusal, trial

CODE = 5
DUE = datetime.timedelta(minutes=2)
RINGS = 300  # seconds in which EventBridge Scheduler, which promises one minute, has submitted the job


def spec_of(lab, role, **more):
    """Of a retraining whose driver is a job on the queue."""
    return lab.stoker.spec("batch", promote={"when": "always"}, driver={
        "image": lab.image or jobs.BATCH_IMAGE, "job_queue": lab.queue.name, "role": role, "scheduler_role": role}, **more)


def tags_of(lab):
    return {f"{PREFIX}run": lab.name}


def shares_of(lab):
    return {"ShareIdentifier": "stoker"} if lab.queue.has_shares else {}


# ---- Step Functions


def machine_of(lab):
    """What `stoker export` prints. Its jobs need no role."""
    text = lab.stoker.text("export", spec_of(lab, lab.states_role), "--to", "step-functions")
    try:
        machine = json.loads(text)
    except ValueError as error:
        raise NotTried("stoker export has printed no state machine") from error
    steps = machine["States"]
    made, name = steps["register it"]["Parameters"], f"{lab.name}-driver"
    steps["look for the job definition"]["Parameters"]["JobDefinitionName"] = name
    made |= {"JobDefinitionName": name, "Tags": tags_of(lab), "Timeout": {"AttemptDurationSeconds": jobs.LASTS}}
    container = made["ContainerProperties"]
    del container["JobRoleArn"]
    container |= {"Command": ["python3", "-c", jobs.START, *container["Command"][1:]],
                  "Environment": [{"Name": key, "Value": value} for key, value in jobs.variables(
                      lab, "states", "ends", CONFORM_CODE=str(CODE)).items()]}
    for step in (each["Parameters"] for each in steps.values() if each.get("Resource", "").endswith(":submitJob.sync")):
        step |= {"JobName.$": step["JobName.$"].replace("'stoker-", f"'{lab.name}-"), "JobDefinition": name,
                 "Tags": tags_of(lab), **shares_of(lab)}
    return machine


def executed(lab):
    """(how the execution ended, its history); how it was refused."""
    states, arns = lab.client("stepfunctions"), []
    seen = refusal(lambda **params: arns.append(states.create_state_machine(**params)["stateMachineArn"]),
                   name=f"{lab.name}-{secrets.token_hex(4)}", definition=json.dumps(machine_of(lab)), roleArn=lab.states_role,
                   tags=[{"key": key, "value": value} for key, value in tags_of(lab).items()])
    if seen:
        return seen, None
    execution = states.start_execution(stateMachineArn=arns[0], input="{}")["executionArn"]

    def over():
        found = states.describe_execution(executionArn=execution)
        return found if found["status"] != "RUNNING" else None
    whole = lab.until(over, jobs.COMES + jobs.LASTS + jobs.ENDS, "the end of the execution")
    pages = states.get_paginator("get_execution_history").paginate(executionArn=execution)
    return whole, [event for page in pages for event in page["events"]]


def code_in(cause):
    try:
        return json.loads(cause)["Container"]["ExitCode"]
    except (ValueError, KeyError, TypeError):
        return None


def ended_with(lab, events):
    """The exit code of the job that the execution submitted, as AWS Batch tells it; None: it has none."""
    submitted = [event["taskSubmittedEventDetails"].get("output", "") for event in events if "taskSubmittedEventDetails" in event]
    if not submitted:
        return None
    found = lab.client("batch").describe_jobs(jobs=[json.loads(submitted[0])["JobId"]])["jobs"]
    return found[0].get("container", {}).get("exitCode") if found else None


@trial("states-cause", queue=True, states=True)
def states_cause(lab):
    whole, events = executed(lab)
    if events is None:
        return False, f"CreateStateMachine: {whole}: {whole.message}"
    failed = [event["taskFailedEventDetails"] for event in events if "taskFailedEventDetails" in event]
    told = f"{failed[0].get('error')}: {failed[0].get('cause', '')[:300]}" if failed else "no task failed"
    code = ended_with(lab, events)
    if code != CODE:
        raise NotTried(f"no job of the execution has ended with {CODE}; {told}")
    output = json.loads(whole.get("output") or "{}")
    cause = code_in(failed[0].get("cause")) if failed else None
    words = f"the execution {whole['status']}, with {output.get('exit_code', 'no exit code')}; " + (
        f"the cause of {failed[0]['error']} has Container.ExitCode {cause}" if cause is not None else told)
    return (whole["status"], output.get("exit_code"), cause) == ("SUCCEEDED", CODE, CODE), words


# ---- EventBridge Scheduler


def requests_of(text):
    """{operation: request} that `schedule add --print` prints."""
    found = {}
    for part in ("\n" + text).split("\n# ")[1:]:
        name, _, body = part.partition("\n")
        found[name] = json.loads(body)
    return found


def schedule_of(lab, at):
    """(definition, schedule) that `stoker schedule add` makes for that time, once."""
    cron = f"{at.minute} {at.hour} {at.day} {at.month} *"
    spec = spec_of(lab, lab.scheduler_role, schedule={"cron": cron, "timezone": "UTC"})
    found = requests_of(lab.stoker.text("schedule", "add", spec, "--to", "eventbridge", "--print"))
    if set(found) != {"RegisterJobDefinition", "CreateSchedule"}:
        raise NotTried("stoker schedule add has printed no requests")
    definition, schedule = found["RegisterJobDefinition"], found["CreateSchedule"]
    name = f"{lab.name}-{secrets.token_hex(4)}"
    container = definition["containerProperties"]
    del container["jobRoleArn"]
    container["environment"] = [{"name": key, "value": value} for key, value in jobs.variables(lab, "due", "ends").items()]
    definition |= {"jobDefinitionName": name, "tags": tags_of(lab), "timeout": {"attemptDurationSeconds": jobs.LASTS}}
    given = json.loads(schedule["Target"]["Input"])
    given |= {"JobName": name, "JobDefinition": name, "Tags": tags_of(lab), **shares_of(lab)}
    given["ContainerOverrides"]["Command"][:1] = ["python3", "-c", jobs.START]
    schedule["Target"]["Input"] = json.dumps(given)
    del schedule["ClientToken"]
    schedule |= {"Name": name, "EndDate": at + datetime.timedelta(hours=1)}  # else again in a year, if nobody cleans
    return definition, schedule


@trial("scheduler-target", queue=True, scheduler=True)
def scheduler_target(lab):
    at = (datetime.datetime.now(datetime.timezone.utc) + DUE + datetime.timedelta(seconds=30)).replace(second=0, microsecond=0)
    definition, schedule = schedule_of(lab, at)
    batch, scheduler = lab.client("batch"), lab.client("scheduler")
    batch.register_job_definition(**definition)
    seen = refusal(scheduler.create_schedule, **schedule)
    if seen and "role" in seen.message:
        raise NotTried(f"{seen}: {seen.message}")
    if seen:
        return False, f"CreateSchedule: {seen}: {seen.message}"
    listing = {"jobQueue": lab.queue.name, "filters": [{"name": "JOB_NAME", "values": [schedule["Name"]]}]}
    found = lab.until(lambda: batch.list_jobs(**listing)["jobSummaryList"], DUE.total_seconds() + RINGS,
                      f"a job of the schedule for {at:%H:%M} in UTC, by a role that may submit it,")
    scheduler.delete_schedule(Name=schedule["Name"])
    command = batch.describe_jobs(jobs=[found[0]["jobId"]])["jobs"][0]["container"]["command"]
    batch.terminate_job(jobId=found[0]["jobId"], reason="conform has seen enough")
    words = command[command.index("--at") + 1:] if "--at" in command else []
    return words == [at.strftime("%Y-%m-%dT%H:%M:%SZ")], f"due at {at:%H:%M} in UTC; behind --at: {' '.join(words) or 'nothing'}"
