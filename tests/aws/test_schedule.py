"""Alarms of EventBridge Scheduler: the requests, which the stand-in holds against the official models, and what comes of
them when it fires their targets by a clock of its own, some of them twice."""

import json
import time

import pytest
import stoker as cli
from botocore.validate import ParamValidator
from test_retrain_s3 import FarTurns

DRIVER = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/stoker:1"
ROLE, SCHEDULER = ("arn:aws:iam::123456789012:role/" + name for name in ("stoker", "scheduler"))
SECONDS = 300


class FarSchedule(FarTurns):
    """The driver's image holds this stoker, and it is due on Mondays at 3 in Berlin: at 2 in UTC, in winter."""

    def __init__(self, root, aws):
        super().__init__(root, aws)
        self.scheduler = aws.client("scheduler")
        program = self.machines / "bin"
        program.mkdir()
        (program / "stoker").symlink_to(cli.BINARY)
        aws.settings(image_env={"*": self.image_env, DRIVER: {**self.image_env, "PATH": f"{program}:/usr/bin:/bin"}})
        aws.push(DRIVER)
        self.make_queue("drivers")
        self.write(name="m5", infer=None, schedule={"cron": "0 3 * * MON", "timezone": "Europe/Berlin"},
                   driver={"image": DRIVER, "job_queue": "drivers", "role": ROLE, "scheduler_role": SCHEDULER})

    def add(self, *argv, **options):
        return self.stoker("schedule", "add", self.spec_path, "--to", "eventbridge", *argv, **options)

    def schedules(self):
        rows = self.scheduler.list_schedules(NamePrefix="stoker-")["Schedules"]
        return [self.scheduler.get_schedule(Name=row["Name"]) for row in rows]

    def ring(self, begin, end, **more):
        """The jobs that came of it, once they have ended: [(alarm, exit code)]."""
        rung = self.aws.control("POST", "ring", {"from": begin, "until": end, **more})
        if not rung:
            return []
        limit = time.monotonic() + SECONDS
        while True:
            jobs = {job["jobId"]: job for job in self.batch.describe_jobs(jobs=[row["job"] for row in rung])["jobs"]}
            if all(job["status"] in ("SUCCEEDED", "FAILED") for job in jobs.values()):
                self.said = [self.log_of(job) for job in jobs.values()]
                return [(row["at"][:16], jobs[row["job"]]["container"].get("exitCode")) for row in rung]
            assert time.monotonic() < limit, jobs
            time.sleep(0.2)

    def log_of(self, job):
        events = self.aws.client("logs").get_log_events(
            logGroupName="/aws/batch/job", logStreamName=job["container"]["logStreamName"])["events"]
        return "\n".join(row["message"] for row in events)

    def pointer(self):
        return json.loads(self.objects("models")["current.json"])

    def records(self):
        return {name[:10]: json.loads(body) for name, body in self.objects("models/turns").items()}


@pytest.fixture
def far(aws, tmp_path):
    made = FarSchedule(tmp_path / "project", aws)
    yield made
    made.stop()


def test_eventbridge_wakes_a_driver_in_a_job(far):
    far.put("drops/1.csv", "good")
    added = far.add()
    assert added.code == 0, added
    listed, = far.ok("--json", "schedule", "ls").lines
    assert listed["set"] is True and listed["to"] == "eventbridge"
    # Twice in the same second: one turn.
    assert far.ring("2031-01-05T00:00:00Z", "2031-01-07T00:00:00Z", twice=1) == [("2031-01-06T02:00", 0)] * 2, far.said
    assert (far.pointer()["generation"], far.pointer()["run"]) == (1, "m5-20310106t0200")
    assert len([job for job in far.jobs("stk-m5-20310106t0200-train-*")]) == 1
    far.put("drops/2.csv", "good")
    assert far.ring("2031-01-07T00:00:00Z", "2031-01-14T00:00:00Z") == [("2031-01-13T02:00", 0)], far.said
    assert far.pointer()["run"] == "m5-20310113t0200"
    record = far.records()["2031-01-13"]
    assert (record["outcome"], record["by"], record["exit_code"]) == ("run", "schedule", 0)
    assert far.ring("2031-01-14T00:00:00Z", "2031-01-21T00:00:00Z") == [("2031-01-20T02:00", 0)]
    assert far.records()["2031-01-20"]["outcome"] == "nothing_new" and far.pointer()["generation"] == 2
    # The definition may be another schedule's too: it stays, and is named.
    kept, = [row["jobDefinitionName"] for row in far.batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]
             if row["containerProperties"]["image"] == DRIVER]
    gone = far.ok("schedule", "rm", "m5")
    assert f"the job definition '{kept}'" in gone.err, gone
    assert far.schedules() == [] and far.ring("2031-01-21T00:00:00Z", "2031-02-21T00:00:00Z") == []
    assert not far.objects("models/schedule") and not far.objects("state/schedules")


def test_machines_share_a_schedule(far):
    """The alarm of another machine leaves a turn alone that is driven, and takes it over from a machine that is gone."""
    begun, hold = far.root / "begun", far.root / "hold"
    far.put("drops/1.csv", "good")
    far.write(command=["sh", "-c", f"echo >>{begun}; while [ -e {hold} ]; do sleep 0.1; done; exec python3 learner.py train"])
    assert far.add().code == 0
    hold.touch()
    first = far.start("schedule", "run", "m5", "--at", "2031-01-06T02:00:10Z", "--lease", "3s")
    cli.until(begun.exists, first)
    second = "schedule", "run", far.url["models"], "--at", "2031-01-13T02:00:10Z", "--lease", "3s"
    skipped = far.stoker(*second, env=far.elsewhere())
    assert skipped.code == 0 and "m5: skipped: run m5-20310106t0200 of an earlier turn goes on" in skipped.out, skipped
    first.kill()
    first.communicate()
    hold.unlink()
    taken = far.stoker(*second, env=far.elsewhere())
    assert taken.code == 0 and far.pointer()["run"] == "m5-20310106t0200", taken
    assert begun.read_text() == "\n"


@pytest.mark.parametrize("member, other, words", [
    ("JobName", "jobName", "no member 'jobName'"), ("Command", "command", "no member 'command'"), ("JobQueue", "Queue", "no member 'Queue'")])
def test_a_target_that_batch_would_not_take_is_refused(far, member, other, words):
    assert far.add().code == 0
    row, = far.schedules()
    target = {**row["Target"], "Input": row["Target"]["Input"].replace(f'"{member}"', f'"{other}"')}
    with pytest.raises(far.scheduler.exceptions.ValidationException, match=words):
        far.scheduler.create_schedule(Name="another", Target=target, **{
            name: row[name] for name in ("ScheduleExpression", "FlexibleTimeWindow")})


def test_what_eventbridge_is_asked_for(far, aws):
    assert far.add().code == 0
    made = far.schedules()
    assert [(row["Name"], row["ScheduleExpression"], row["ScheduleExpressionTimezone"], row["FlexibleTimeWindow"]) for row in made] == [
        ("stoker-m5-1", "cron(0 3 ? * MON *)", "Europe/Berlin", {"Mode": "OFF"})]
    target = made[0]["Target"]
    assert target["Arn"] == "arn:aws:scheduler:::aws-sdk:batch:submitJob" and target["RoleArn"] == SCHEDULER
    # The service's own model of SubmitJob takes what the target would send.
    sent = {name[0].lower() + name[1:]: value for name, value in json.loads(target["Input"]).items()}
    sent["containerOverrides"] = {"command": sent["containerOverrides"].pop("Command")}
    shape = far.batch.meta.service_model.operation_model("SubmitJob").input_shape
    assert not ParamValidator().validate(sent, shape).has_errors()
    assert sent["containerOverrides"]["command"][-3:] == ["m5", "--at", "<aws.scheduler.scheduled-time>"]
    definition, = far.batch.describe_job_definitions(jobDefinitions=[sent["jobDefinition"]])["jobDefinitions"]
    assert definition["containerProperties"]["image"] == DRIVER and definition["containerProperties"]["jobRoleArn"] == ROLE
    # Added again, nothing is asked for; changed, the same schedule is updated, with everything that it has.
    mark = aws.mark()
    assert far.add().code == 0
    assert aws.effects("CreateSchedule", mark) == aws.effects("UpdateSchedule", mark) == aws.effects("RegisterJobDefinition", mark) == 0
    far.write(schedule={"cron": "0 3 * * MON", "timezone": "Europe/Berlin", "jitter": "90s"})
    assert far.add().code == 0
    updated, = far.schedules()
    assert updated["FlexibleTimeWindow"] == {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 2} and updated["Target"] == target
    # A cron that restricts both day fields is two schedules; with one again, the other goes.
    far.write(schedule={"cron": "0 3 1 * MON"})
    assert far.add().code == 0
    assert sorted(row["ScheduleExpression"] for row in far.schedules()) == ["cron(0 3 1 * ? *)", "cron(0 3 ? * MON *)"]
    far.write(schedule={"cron": "0 3 * * MON"})
    assert far.add().code == 0 and len(far.schedules()) == 1
    # Somebody switched it off by hand: that is told.
    row, = far.schedules()
    far.scheduler.update_schedule(**{name: row[name] for name in ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")}, State="DISABLED")
    assert far.ok("--json", "schedule", "ls").lines[0]["set"] is False


def test_a_lost_reply_makes_no_second_schedule(far, aws):
    aws.fault("lost", operation="CreateSchedule", count=1)
    added = far.add()
    assert added.code == 0 and len(far.schedules()) == 1, added
    assert aws.requests("CreateSchedule") == 2 and aws.effects("CreateSchedule") == 1


def test_what_eventbridge_cannot_do_is_refused_with_the_reason(far):
    done = far.add("--state", str(far.root / "state"))
    assert done.code == 4 and "the state must be on S3" in done.err, done
    whole = far.spec["driver"]
    for name in whole:
        far.write(driver={key: value for key, value in whole.items() if key != name})
        done = far.add()
        assert done.code == 3 and f"'driver.{name}' is missing: EventBridge needs it" in done.err, done
    far.write(driver=whole, schedule={"cron": "0 3 */2 * MON"})
    done = far.add()
    assert done.code == 4 and "days of the month and of the week that must both fit" in done.err, done
    assert far.schedules() == []
