"""Due times against two independent readers of cron over ten years in five zones, alarms against what rings them, and
`schedule next`."""

import itertools
import json
import os
import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import due_times
import pytest
import stoker as cli
from due_times import BEGIN, END, ZONES

# tests/soak/run asks for 10,000.
COUNT = int(os.environ.get("STOKER_TEST_CRON_LINES", "60"))
SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))

HAND = ["30 2 * * *", "0 0 * * *", "*/15 * * * *", "0 * * * *", "15,45 1-3 * * *", "30 2 * * SUN", "0 0 29 2 *", "0 3 31 * *",
        "0 2 1,15 * MON", "0 2 */2 * MON", "0 3 */7 * */2", "5 0 1 1 *", "0 2 * * 7", "59 23 28-31 * *", "1/2 2 * OCT,NOV SUN",
        "0 12 13 * FRI", "*/7 2 * 3,4 *"]


def drawn():
    draw = random.Random(SEED)
    lines = HAND + [due_times.line(draw) for _ in range(max(0, COUNT - len(HAND)))]
    zones = itertools.cycle(ZONES)
    return [(next(zones), line) for line in lines + HAND]


@pytest.fixture(scope="module")
def questions():
    asked = due_times.questions(drawn())
    return list(zip(asked, due_times.ours(asked), due_times.ours(asked, "--last"), strict=True))


def test_due_times_are_those_that_are_promised(questions):
    """Exactly: the local times are another program's, and the clock changes Python's."""
    for asked, answer, backwards in questions:
        assert due_times.moments(answer) == due_times.by_rule(*asked), asked
        # Of several times in one gap the other end is found.
        assert due_times.moments(answer) == due_times.moments(backwards), asked


def test_due_times_in_a_zone_differ_from_other_readers_for_known_reasons(questions):
    seen = {}
    for asked, answer, _ in questions:
        for name, other in due_times.OTHERS.items():
            if name == "croniter" and COUNT < 1000 and asked[3] not in HAND:
                continue  # it takes its time
            theirs = other(*asked)
            for at in set(theirs) ^ set(due_times.moments(answer)):
                reason = due_times.reason(name, *asked, at, at in theirs, f"{at}*" in answer.split())
                assert reason in due_times.REASONS, \
                    f"{asked}: {datetime.fromtimestamp(at, ZoneInfo(asked[0]))}: {name} {'has' if at in theirs else 'lacks'} it"
                seen.setdefault((name, reason), asked)
    assert {reason for _, reason in seen} >= {"repeated", "skipped", "either day"}, seen


def test_days_of_the_week_end_where_people_end_them():
    """The two differences that no drawn line shows."""
    until = BEGIN + timedelta(days=60)

    def due(text):
        return due_times.moments(due_times.ours([("UTC", BEGIN, until, text)])[0])

    assert due("0 0 * * FRI-SUN") == due_times.by_croniter("UTC", BEGIN, until, "0 0 * * FRI-SUN"), due_times.REASONS["sunday"]
    assert not due_times.cronsim_accepts("0 0 * * FRI-SUN")
    assert due("0 0 * * 1/2") == due_times.by_croniter("UTC", BEGIN, until, "0 0 * * 1/2"), due_times.REASONS["saturday"]
    assert set(due_times.by_cronsim("UTC", BEGIN, until, "0 0 * * 1/2")) > set(due("0 0 * * 1/2"))


def test_lines_that_are_refused_are_refused_by_others_or_for_a_reason():
    draw = random.Random(SEED)
    lines = [due_times.broken(draw) for _ in range(COUNT * 20)]
    answers = due_times.ours([("UTC", BEGIN, BEGIN, line) for line in lines])
    assert 0.1 < sum(answer.startswith("!") for answer in answers) / len(answers) < 0.9
    for line, answer in zip(lines, answers, strict=True):
        for name, accepts in (("cronsim", due_times.cronsim_accepts), ("croniter", due_times.croniter_accepts)):
            if accepts(line) == answer.startswith("!"):
                reason = due_times.refusal(name, line, answer)
                assert reason in due_times.REASONS, f"{name}: '{line}': {answer or 'good'}"


@pytest.fixture(scope="module")
def sparse():
    """Lines that come at most twice a day, with their due times."""
    lines = drawn()
    found = [line for line, year in zip(lines, due_times.first_year(lines), strict=True) if len(year) < 740]
    chosen = found[::max(1, len(found) // max(20, COUNT // 10))]
    due = due_times.ours([(zone, BEGIN, END, line) for zone, line in chosen])
    return [(zone, line, due_times.moments(answer)) for (zone, line), answer in zip(chosen, due, strict=True)]


def without_alarm(due, alarms):
    return [datetime.fromtimestamp(at, UTC) for at in due if not any(at + late in alarms for late in range(0, 61, 30))]


def test_every_due_time_has_an_alarm_of_cron_by_any_clock(sparse):
    for (zone, line, due), own in zip(sparse, itertools.cycle(["UTC", *ZONES, "Asia/Kolkata"])):
        text = due_times.ours([(zone, BEGIN, END, line)], "--cron", own)[0]
        missed = without_alarm(due, due_times.of_crontab(own, text))
        assert not missed, f"{line} in {zone}: '{text}' in {own}: {missed[:3]}"


def test_cron_by_the_same_clock_rings_no_oftener_than_it_must(sparse):
    for zone, line, due in sparse:
        text = due_times.ours([("UTC", BEGIN, END, line)], "--cron", "UTC")[0]
        if all("*/" not in field for field in line.split()[2:5:2]):
            assert due_times.of_crontab("UTC", text) == due_times.of_crontab("UTC", line), line


def test_every_due_time_has_an_alarm_of_eventbridge(sparse):
    for zone, line, due in sparse:
        texts = due_times.ours([(zone, BEGIN, END, line)], "--eventbridge")[0].split("|")
        if "!" in texts:
            assert any(field.startswith("*/") for field in line.split()[2:5:2]), line
            continue
        missed = without_alarm(due, set().union(*(due_times.of_eventbridge(zone, text) for text in texts)))
        assert not missed, f"{line} in {zone}: {texts}: {missed[:3]}"


def test_every_due_time_has_an_alarm_of_systemd(sparse):
    """systemd takes seconds for a line; the soak asks it for all."""
    for zone, line, due in sparse[::1 if COUNT >= 10000 else 5]:
        if len(due) > 3700:
            continue
        texts = due_times.ours([(zone, BEGIN, END, line)], "--systemd")[0].split("|")
        alarms = [due_times.of_systemd(text) for text in texts]
        until = min([max(times) for times in alarms if len(times) >= 4000], default=END.timestamp())
        missed = without_alarm([at for at in due if at <= until], set().union(*alarms))
        assert not missed, f"{line} in {zone}: {texts}: {missed[:3]}"


# ---- schedule next ----

def spec_with(tmp_path, **schedule):
    path = tmp_path / "stoker.yaml"
    path.write_text(json.dumps({"version": 1, "name": "m5", "command": ["true"], "promote": {"when": "always"},
                                "schedule": schedule}))
    return path


def test_next_shows_local_time_and_utc(tmp_path):
    path = spec_with(tmp_path, cron="30 2 * * SUN", timezone="Europe/Berlin")
    shown = cli.stoker("schedule", "next", str(path), "-n", "3", "--at", "2027-03-21T12:00:00Z", "--json")
    assert shown.code == 0, shown
    assert [(line["due"], line["local"], line.get("skipped")) for line in shown.lines] == [
        ("2027-03-28T01:00:00.000Z", "2027-03-28T03:00:00+02:00", "2027-03-28T02:30"),
        ("2027-04-04T00:30:00.000Z", "2027-04-04T02:30:00+02:00", None),
        ("2027-04-11T00:30:00.000Z", "2027-04-11T02:30:00+02:00", None)]
    shown = cli.stoker("schedule", "next", str(path), "--at", "2027-03-21T12:00:00Z")
    assert shown.code == 0 and len(shown.out.splitlines()) == 11, shown
    assert "Sun 2027-03-28 03:00 +02:00" in shown.out and "the clock skips 02:30" in shown.out
    assert "2027-04-04T00:30Z" in shown.out


@pytest.mark.parametrize(("schedule", "message", "cure"), [
    ({"cron": "0 0 30 2 *"}, "'schedule.cron': '0 0 30 2 *' never comes", "last day of a month"),
    ({"cron": "*/90 * * * *"}, "'*/90' has a step that is longer than its range", "cannot count"),
    ({"cron": "0 22-3 * * *"}, "'22-3' is a range that ends before it begins", "22-23,0-5"),
    ({"cron": "0 0 L * *"}, "'L' is no day of the month", "minute, hour"),
    ({"cron": "@reboot"}, "'@reboot' is not one of", "belongs to the machine"),
    ({"cron": "0 3 * * MON", "timezone": "Europe/Berlinn"}, "there is no time zone 'Europe/Berlinn'", "IANA"),
])
def test_what_never_comes_is_refused_at_its_place(tmp_path, schedule, message, cure):
    checked = cli.stoker("validate", str(spec_with(tmp_path, **schedule)))
    assert checked.code == 3 and message in checked.text and cure in checked.cure, checked
    assert "stoker.yaml:1:" in checked.text


def test_a_machine_without_zones_says_so(tmp_path):
    path = spec_with(tmp_path, cron="0 3 * * MON", timezone="Europe/Berlin")
    (tmp_path / "kept").mkdir()
    for place in (tmp_path / "absent", tmp_path / "empty", tmp_path / "kept"):
        checked = cli.stoker("validate", str(path), env=cli.environment(TZDIR=str(place)))
        assert checked.code == 3 and f"'{place}' is not there" in checked.text and "TZDIR" in checked.cure, checked
    # A zone that is no zone; and UTC needs none.
    (tmp_path / "empty/Europe").mkdir(parents=True)
    (tmp_path / "empty/Europe/Berlin").write_bytes(b"TZif2" + bytes(39))
    checked = cli.stoker("validate", str(path), env=cli.environment(TZDIR=str(tmp_path / "empty")))
    assert checked.code == 3 and "is damaged" in checked.text and "tzdata" in checked.cure, checked
    path = spec_with(tmp_path, cron="0 3 * * MON")
    shown = cli.stoker("schedule", "next", str(path), env=cli.environment(TZDIR=str(tmp_path / "absent")))
    assert shown.code == 0, shown


def test_zones_are_read_as_python_reads_them():
    """Every zone of this machine, at its changes and beyond the last of them."""
    from zoneinfo import available_timezones
    names = sorted(available_timezones() - {"Factory", "localtime"})
    asked = [(zone, datetime(2090 + at % 3, 1, 1, tzinfo=UTC), datetime(2091 + at % 3, 1, 1, tzinfo=UTC), "17 */6 * * *")
             for at, zone in enumerate(names)] if COUNT > 1000 else \
        [(zone, datetime(2090, 1, 1, tzinfo=UTC), datetime(2091, 1, 1, tzinfo=UTC), "17 4 1,15 * *") for zone in names]
    for question, answer in zip(asked, due_times.ours(asked), strict=True):
        assert due_times.moments(answer) == due_times.by_rule(*question), question
