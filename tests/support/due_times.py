"""Lines of cron, drawn; their due times as stoker's calendar finds them (due_lines.c, which is built with the
tests); and the same by croniter and cronsim, with a reason for each difference."""

import functools
import random
import re
import subprocess
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import stoker as cli
from cronsim import CronSim, CronSimError
from croniter import CroniterError, croniter

PROGRAM = cli.BINARY.parent / "tests/due_lines"
BEGIN, END = datetime(2026, 11, 29, tzinfo=UTC), datetime(2036, 11, 29, tzinfo=UTC)
# Changes of an hour in the night, west of Greenwich too, of half an hour, at midnight, and by the moon.
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca")
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
DAYS = "SUN MON TUE WED THU FRI SAT".split()

# Why stoker and another reader of cron differ, one row a reason; each is a choice of stoker's.
REASONS = {
    "repeated": "the clock is set back, and a local time comes twice: due once, the first time. cronsim (as Debian's "
                "cron) and croniter count both times of a line whose minute or hour begins with '*'.",
    "skipped": "the clock is set forward, and a local time does not come: due in the first minute after the gap. "
               "cronsim does so unless minute or hour begins with '*'; then it leaves the time out.",
    "half an hour": "Lord Howe's clock is set back by half an hour. cronsim goes from hour to hour, and misses the rest of "
                    "the next one.",
    "either day": "'*/2' in one day field and MON in the other: both must fit, as in Debian's cron and cronsim; croniter "
                  "takes either.",
    "saturday": "'1/2' as day of the week ends with Saturday, as croniter has it; for cronsim a week has eight days.",
    "sunday": "FRI-SUN ends with Sunday; cronsim refuses it.",
    "backwards": "22-3 is refused; croniter takes it as 22-23,0-3.",
    "step": "a step that is longer than its range is refused: '*/90' as a minute is not every 90 minutes. Both others "
            "take it as the begin of the range.",
    "zeros": "numbers have at most two digits: 007 is refused.",
    "seconds": "a sixth field is refused; for both others it counts seconds.",
    "other signs": "L, W, # and ? are of other schedulers: refused.",
    "never": "30 February is refused; croniter finds out when it is asked for a due time.",
}


def field(draw: random.Random, low: int, high: int, names: list | None = None) -> str:
    def value(number: int) -> str:
        if names and draw.random() < 0.5:
            name = names[number % len(names)] if low == 0 else names[number - 1]
            return draw.choice([name, name.lower(), name.title()])
        return draw.choice([str(number), f"{number:02}"]) if draw.random() < 0.1 else str(number)

    def item() -> str:
        first = draw.randint(low, high)
        kind = draw.random()
        if kind < 0.65 or first == high:
            return value(first)
        last = draw.randint(first + 1, high)
        if kind < 0.85:
            return f"{value(first)}-{value(last)}"
        return f"{value(first)}-{value(last)}/{draw.randint(1, last - first)}"

    kind = draw.random()
    if kind < 0.06 and low < high:
        return f"*/{draw.randint(1, high - low)}"
    if kind < 0.1 and names is not DAYS:
        first = draw.randint(low, high - 1)
        return f"{first}/{draw.randint(1, high - first)}"
    return ",".join(item() for _ in range(draw.choice([1, 1, 1, 2, 3])))


def line(draw: random.Random) -> str:
    """A good line. Times of night are likelier: there the clocks change."""
    def star(share: float, text: str) -> str:
        return "*" if draw.random() < share else text
    night = draw.random() < 0.6
    return " ".join([
        star(0.08, field(draw, 0, 59)),
        star(0.15, field(draw, 0, 3) if night else field(draw, 0, 23)),
        star(0.6, field(draw, 1, 31)),
        star(0.6, field(draw, 1, 12, MONTHS)),
        star(0.5, field(draw, 0, 6, DAYS)),
    ])


def broken(draw: random.Random) -> str:
    """A line that is perhaps none: a good one with a sign changed, left out or put in."""
    text = line(draw)
    at = draw.randrange(len(text))
    sign = draw.choice("*-/,0123456789 ANJ#?L")
    return draw.choice([text[:at] + sign + text[at + 1:], text[:at] + text[at + 1:], text[:at] + sign + text[at:]])


def is_good(text: str) -> bool:
    return not ours([("UTC", BEGIN, BEGIN, text)])[0].startswith("!")


def ours(questions: list, *options: str) -> list:
    """Answers to (zone, after, until, line), as the program prints them."""
    text = "".join(f"{zone}\t{int(after.timestamp())}\t{int(until.timestamp())}\t{line}\n"
                   for zone, after, until, line in questions)
    done = subprocess.run([PROGRAM, *options], input=text, capture_output=True, text=True, check=True,
                          timeout=cli.SECONDS, env={})
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(questions)
    return answers


def moments(answer: str) -> list:
    assert not answer.startswith("!"), answer
    return [int(word.rstrip("*")) for word in answer.split()]


@functools.cache
def changes(zone: str) -> list:
    found, at, info = [], BEGIN, ZoneInfo(zone)
    while at < END:
        if (at + timedelta(days=1)).astimezone(info).utcoffset() != at.astimezone(info).utcoffset():
            found.append((at - timedelta(days=1), at + timedelta(days=3)))
        at += timedelta(days=1)
    return found


def first_year(lines: list) -> list:
    """The due times of each (zone, line) in it."""
    return [moments(answer) for answer in ours([("UTC", BEGIN, BEGIN + timedelta(days=366), text) for _, text in lines])]


def questions(lines: list) -> list:
    """(zone, after, until, line): of each (zone, line) ten years, or of a line that comes all the time the days around
    each clock change."""
    found = []
    for (zone, text), year in zip(lines, first_year(lines), strict=True):
        per_day = len(year) / 366
        times = [(BEGIN, END)] if per_day < 3 else changes(zone)[::1 + int(per_day // 50)]
        found += [(zone, after, until, text) for after, until in times]
    return found


def is_imaginary(local: datetime) -> bool:
    return local.astimezone(UTC).astimezone(local.tzinfo).replace(tzinfo=None) != local.replace(tzinfo=None)


def by_rule(zone: str, after: datetime, until: datetime, text: str) -> list:
    """What stoker promises, from the local times that cronsim finds without a zone."""
    found, info = set(), ZoneInfo(zone)
    for local in CronSim(text, after.replace(tzinfo=None) - timedelta(days=2)):
        if local > until.replace(tzinfo=None) + timedelta(days=2):
            break
        due = local.replace(tzinfo=info)
        while is_imaginary(due):
            due = (due.replace(tzinfo=None) + timedelta(minutes=1)).replace(tzinfo=info)
        if after < due.astimezone(UTC) <= until:
            found.add(int(due.timestamp()))
    return sorted(found)


def by_cronsim(zone: str, after: datetime, until: datetime, text: str) -> list:
    found = []
    for due in CronSim(text, after.astimezone(ZoneInfo(zone))):
        if due.astimezone(UTC) > until:
            break
        found.append(int(due.timestamp()))
    return found


def by_croniter(zone: str, after: datetime, until: datetime, text: str) -> list:
    found = []
    times = croniter(text, after.astimezone(ZoneInfo(zone)))
    while True:
        due = times.get_next(datetime)
        if due.astimezone(UTC) > until:
            return found
        found.append(int(due.timestamp()))


OTHERS = {"cronsim": by_cronsim, "croniter": by_croniter}


def reason(name: str, zone: str, after: datetime, until: datetime, text: str, at: int, theirs: bool, moved: bool) -> str | None:
    """Why one of the two has a due time that the other lacks; None: there is no reason."""
    local = datetime.fromtimestamp(at, ZoneInfo(zone))
    fields = text.split()
    if theirs and local.fold:
        return "repeated"
    if not theirs and moved:
        return "skipped"
    if name == "cronsim" and not theirs and zone == "Australia/Lord_Howe" and "*" in fields[0][0] + fields[1][0] and \
            datetime.fromtimestamp(at - 5400, ZoneInfo(zone)).utcoffset() > local.utcoffset():
        return "half an hour"
    if name == "croniter" and fields[2] != "*" and fields[4] != "*" and (fields[2] + fields[4]).count("*"):
        return "either day"
    return None


def cronsim_accepts(text: str) -> bool:
    try:
        CronSim(text, BEGIN)
        return True
    except CronSimError:
        return False


def croniter_accepts(text: str) -> bool:
    try:
        croniter(text, BEGIN)
        return True
    except (CroniterError, ValueError):
        return False


def refusal(name: str, text: str, answer: str) -> str | None:
    """Why only one of the two takes a line."""
    if "longer than its range" in answer:
        return "step"
    if "never comes" in answer:
        return "never"
    if name == "croniter" and ("ends before it begins" in answer or "-0" in text):
        return "backwards"
    if len(text.split()) == 6:
        return "seconds"
    if set("LW#?") & set(re.sub("[a-zA-Z]{3}", "", text)):
        return "other signs"
    if re.search("/[0-9]{5}", text):
        return "step"
    return "zeros" if re.search("[0-9]{3}", text) else None


# ---- alarms ----

def local_times(zone: str, text: str, both: bool) -> set:
    """When a scheduler rings that goes by the clock of a zone: not at times that the clock skips; at times that come
    twice the first time, or both."""
    found, info = set(), ZoneInfo(zone)
    for local in CronSim(text, BEGIN.replace(tzinfo=None) - timedelta(days=2)):
        if local > END.replace(tzinfo=None) + timedelta(days=2):
            return found
        aware = local.replace(tzinfo=info)
        if not is_imaginary(aware):
            found |= {int(aware.replace(fold=fold).timestamp()) for fold in ((0, 1) if both else (0,))}
    return found


def of_crontab(zone: str, line: str) -> set:
    """Debian's cron leaves out the second time, unless the line names every hour or minute: cron(8)."""
    return local_times(zone, line, any(field.startswith("*") for field in line.split()[:2]))


def of_eventbridge(zone: str, text: str) -> set:
    """EventBridge Scheduler: six fields, one of the day fields '?'; skips and repeats nothing (User Guide, "Daylight
    savings time on EventBridge Scheduler")."""
    assert text.startswith("cron(") and text.endswith(")") and len(text) <= 256, text
    minute, hour, day, month, weekday, year = text[5:-1].split()
    assert [day, weekday].count("?") == 1 and year == "*", text
    return local_times(zone, " ".join([minute, hour, day, month, weekday]).replace("?", "*"), both=False)


def of_systemd(text: str) -> set:
    """What systemd itself says of OnCalendar=."""
    done = subprocess.run(["systemd-analyze", "calendar", "--iterations=4000", f"--base-time=@{int(BEGIN.timestamp()) - 60}", text],
                          capture_output=True, text=True, check=True, timeout=cli.SECONDS, env={"TZ": "UTC", "LC_ALL": "C.UTF-8"})
    found = set()
    for line in done.stdout.splitlines():
        name, _, value = line.strip().partition(": ")
        if name == "Next elapse" or name.startswith("Iter. #"):
            found.add(int(datetime.strptime(value.split(" ", 1)[1], "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC).timestamp()))
    assert found, done.stdout
    return found
