"""EventBridge Scheduler: schedules that are kept, and that ring when a test moves their clock:

  POST /standin/ring {"from", "until", "twice"}   RFC 3339; each schedule rings at each of its times after the one and up
                                                  to the other; with "twice": 3 every third is delivered twice, as the
                                                  service may. Answers with what was submitted.

With the setting `ring_soon` one rings at once when it is made, for what is due soon.

moto keeps schedules too, and never rings. By the User Guide: of local times that the clock skips none rings, of those
that come twice the first."""

import json
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from zoneinfo import ZoneInfo, available_timezones

from standin import batch, services, states, validate
from standin.errors import Refusal
from standin.wire import Reply

SUBMIT_JOB = "arn:aws:scheduler:::aws-sdk:batch:submitJob"
DAYS = "SUN MON TUE WED THU FRI SAT".split()
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
FIELDS = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, MONTHS), (1, 7, DAYS), (1970, 2199, ()))


def schedules_of(call):
    return call.front.schedules.setdefault((call.who.account, call.region), {})


def reply(value):
    return Reply(200, [("Content-Type", "application/json")], json.dumps(value).encode())


def wrong(message):
    return Refusal("ValidationException", message, 400)


def arn(call, name):
    return f"arn:aws:scheduler:{call.region}:{call.who.account}:schedule/default/{name}"


def values_of(text, low, high, names):
    """The values of a field of cron(); None: any."""
    def number(word):
        value = names.index(word.upper()) + 1 if word.upper() in names else int(word) if word.isdigit() else -1
        if not low <= value <= high:
            raise wrong("Invalid Schedule Expression cron.")
        return value

    if text in ("*", "?"):
        return None
    found = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin = low if first == "*" else number(first)
        end = number(last) if last else high if step or first == "*" else begin
        if end < begin:
            raise wrong("Invalid Schedule Expression cron.")
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


def fields_of(expression):
    match = re.fullmatch(r"cron\((.*)\)", expression)
    words = match[1].split(" ") if match else []
    if len(words) != 6 or [words[2], words[4]].count("?") != 1:
        raise wrong(f"Invalid Schedule Expression {expression}.")
    return [values_of(word, *row) for word, row in zip(words, FIELDS, strict=True)]


def check(request):
    fields_of(request["ScheduleExpression"])
    if request.get("ScheduleExpressionTimezone", "UTC") not in available_timezones():
        raise wrong("Provided ScheduleExpressionTimezone is not valid.")
    window = request["FlexibleTimeWindow"]
    if (window["Mode"] == "OFF") == ("MaximumWindowInMinutes" in window):
        raise wrong("Provided FlexibleTimeWindow is not valid.")
    if request["Target"]["Arn"] == SUBMIT_JOB:
        try:
            job_of(request["Target"].get("Input", "{}"))
        except ValueError as error:
            raise wrong(f"Invalid RequestJson provided. Reason: {error}.") from None


def kept(call, request):
    """As the service answers; what is left out has its default."""
    name = request["Name"]
    return {"ActionAfterCompletion": "NONE", "ScheduleExpressionTimezone": "UTC", "State": "ENABLED", "GroupName": "default",
            **{key: value for key, value in request.items() if key != "ClientToken"}, "Arn": arn(call, name)}


def create(call):
    request, table = call.params, schedules_of(call)
    check(request)
    with call.front.floor.lock:
        known = table.get(request["Name"])
        if known and known["token"] != request.get("ClientToken"):
            raise Refusal("ConflictException", f"Schedule {request['Name']} already exists.", 409)
        table[request["Name"]] = {"token": request.get("ClientToken"), "schedule": kept(call, request)}
    call.effect = known is None
    now, soon = datetime.now(UTC), timedelta(seconds=call.front.settings["ring_soon"])
    for number, at in enumerate(times_of(kept(call, request), now, now + soon), 1):
        submit(call.front, call.who.account, call.region, kept(call, request), at, number)
    return reply({"ScheduleArn": arn(call, request["Name"])})


def found(call):
    table, name = schedules_of(call), call.params["Name"]
    if name not in table:
        raise Refusal("ResourceNotFoundException", f"Schedule {name} does not exist.", 404)
    return table[name]


def get(call):
    return reply(found(call)["schedule"])


def update(call):
    row = found(call)
    check(call.params)
    row.update(schedule=kept(call, call.params), token=None)
    call.effect = True
    return reply({"ScheduleArn": arn(call, call.params["Name"])})


def delete(call):
    found(call)
    del schedules_of(call)[call.params["Name"]]
    call.effect = True
    return reply({})


def listing(call):
    rows = [row["schedule"] for name, row in sorted(schedules_of(call).items())
            if name.startswith(call.params.get("NamePrefix", ""))]
    size = min(int(call.params.get("MaxResults", 100)), call.front.settings["page_size"])
    start = int(call.params.get("NextToken", "0"))
    more = {"NextToken": str(start + size)} if start + size < len(rows) else {}
    return reply({"Schedules": [{**{key: row[key] for key in ("Arn", "GroupName", "Name", "State")},
                                 "Target": {"Arn": row["Target"]["Arn"]}} for row in rows[start:start + size]], **more})


# The clock

def times_of(schedule, after, until):
    minute, hour, day, month, weekday, year = fields_of(schedule["ScheduleExpression"])
    zone = ZoneInfo(schedule["ScheduleExpressionTimezone"])
    at = after.replace(second=0, microsecond=0)
    while (at := at + timedelta(minutes=1)) <= until:
        local = at.astimezone(zone)
        if local.fold == 0 and all(values is None or value in values for values, value in (
                (minute, local.minute), (hour, local.hour), (day, local.day), (month, local.month),
                (weekday, local.isoweekday() % 7 + 1), (year, local.year))):
            yield at


def job_of(text):
    """The request that a universal target's text makes of SubmitJob. ValueError: the service's model has no such."""
    request, shape, problems = json.loads(text), services.shape_of("batch", "SubmitJob"), []
    states.translate(request, shape, True)
    validate.check_structure(request, shape, "", problems)
    if problems:
        raise ValueError("; ".join(problems))
    return request


def submit(front, account, region, schedule, at, number):
    text = schedule["Target"]["Input"]
    for name, value in (("scheduled-time", at.strftime(front.settings["scheduled_time"])), ("schedule-arn", schedule["Arn"]),
                        ("execution-id", f"{number:016x}"), ("attempt-number", "1")):
        text = text.replace(f"<aws.scheduler.{name}>", value)
    call = SimpleNamespace(front=front, who=SimpleNamespace(account=account), region=region, effect=False, fault=None,
                           params=job_of(text), request=SimpleNamespace(body=SimpleNamespace(size=len(text))))
    return json.loads(batch.submit(call).body)["jobId"]


def ring(front, _, what):
    after, until = (datetime.fromisoformat(what[name]).astimezone(UTC) for name in ("from", "until"))
    rung = sorted(((at, name, key, row["schedule"]) for key, table in front.schedules.items() for name, row in table.items()
                   if row["schedule"]["State"] == "ENABLED" for at in times_of(row["schedule"], after, until)),
                  key=lambda row: row[:2])
    submitted = []
    for number, (at, name, (account, region), schedule) in enumerate(rung, 1):
        for _again in range(2 if what.get("twice") and number % what["twice"] == 0 else 1):
            submitted.append({"schedule": name, "at": at.isoformat(), "job": submit(front, account, region, schedule, at, number)})
    return submitted


HANDLERS = {"CreateSchedule": create, "GetSchedule": get, "UpdateSchedule": update, "DeleteSchedule": delete,
            "ListSchedules": listing}
