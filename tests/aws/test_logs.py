"""CloudWatch Logs from a cursor: whatever the pages, tokens and restarts are like, each
event comes once, and what is not there yet is no error."""

import random
import threading
import time

import pytest
from who import Who

GROUP = "/aws/sagemaker/TrainingJobs"


class Log:
    """A log group that grows."""

    def __init__(self, aws, group=GROUP):
        self.aws, self.group, self.client = aws, group, aws.client("logs")
        self.begun, self.now, self.count = set(), int(time.time() * 1000) - 3_600_000, 0

    def begin(self, stream):
        if not self.begun:
            self.client.create_log_group(logGroupName=self.group)
        self.client.create_log_stream(logGroupName=self.group, logStreamName=stream)
        self.begun.add(stream)

    def put(self, stream, count=1, step=1, at=None):
        """That many events, `step` ms apart; their messages."""
        if stream not in self.begun:
            self.begin(stream)
        rows = []
        for _ in range(count):
            self.now += step
            self.count += 1
            rows.append({"timestamp": at or self.now, "message": f"line {self.count} of {stream}"})
        self.client.put_log_events(logGroupName=self.group, logStreamName=stream, logEvents=rows)
        return [row["message"] for row in rows]


@pytest.fixture
def log(aws):
    return Log(aws)


@pytest.fixture
def who(aws):
    who = Who(aws.env())
    yield who
    who.stop()


def messages(reply):
    assert "error" not in reply, reply
    return [row[2] for row in reply["events"]]


def test_what_is_not_there_yet_is_no_error(log, who):
    who.ask("logs", group=GROUP, stream="j/algo-1")
    assert who.ask("read") == {"events": [], "state": "not yet"}
    log.begin("other")
    assert who.ask("read")["state"] == "not yet"
    said = log.put("j/algo-1", 3)
    reply = who.ask("read")
    assert messages(reply) == said and reply["state"] == "no more"
    assert who.ask("streams", group="/none", prefix="")["streams"] == []
    who.ask("logs", group="/none", prefix="j/")
    assert who.ask("read")["state"] == "not yet"


def test_pages_and_live_appends_come_once_each(log, who):
    said = log.put("s", 25)
    who.ask("logs", group=GROUP, stream="s", page=4)
    seen = messages(who.ask("read", pages=3))
    said += log.put("s", 5)
    while len(seen) < len(said):
        seen += messages(who.ask("read", pages=2))
    assert seen == said
    reply = who.ask("read")
    assert messages(reply) == [] and reply["state"] == "no more"
    said = log.put("s", 3)
    assert messages(who.ask("read")) == said


def test_a_token_that_has_expired_is_survived(aws, log, who):
    said = log.put("s", 4) + log.put("s", 5, step=0)
    who.ask("logs", group=GROUP, stream="s", page=3)
    seen = messages(who.ask("read", pages=2))
    aws.fault("error", service="logs", operation="GetLogEvents", code="InvalidParameterException", status=400,
              count=1)
    seen += messages(who.ask("read"))
    said += log.put("s", 2, step=0) + log.put("s", 2)
    seen += messages(who.ask("read"))
    assert seen == said


def test_any_other_error_is_told_and_loses_nothing(aws, log, who):
    said = log.put("s", 4)
    who.ask("logs", group=GROUP, stream="s", page=2)
    seen = messages(who.ask("read", pages=1))
    aws.fault("error", service="logs", operation="GetLogEvents", code="AccessDeniedException", status=400, count=1)
    reply = who.ask("read")
    assert "AccessDenied" in reply["error"] and reply["exit"] == 4 and reply["events"] == []
    assert seen + messages(who.ask("read")) == said


def test_streams_of_a_prefix_come_together(log, who):
    said = log.put("job/algo-1", 3) + log.put("job/algo-2", 3) + log.put("job/algo-1", 2)
    log.put("jobber/algo-1", 2)
    assert who.ask("streams", group=GROUP, prefix="job/")["streams"] == ["job/algo-1", "job/algo-2"]
    who.ask("logs", group=GROUP, prefix="job/", page=2)
    reply = who.ask("read")
    assert messages(reply) == said
    assert {row[1] for row in reply["events"]} == {"job/algo-1", "job/algo-2"}
    assert messages(who.ask("read")) == []
    said = log.put("job/algo-3", 2)
    assert messages(who.ask("read")) == said


def test_a_stream_that_is_slower_than_the_others_loses_nothing(log, who):
    log.put("job/1", 3, step=1000)
    early = log.now
    log.put("job/1", 3, step=1000)
    who.ask("logs", group=GROUP, prefix="job/")
    assert len(messages(who.ask("read"))) == 6
    late = log.put("job/2", 2, at=early)
    assert messages(who.ask("read")) == late
    log.now += 3_600_000
    said = log.put("job/1", 1)
    assert messages(who.ask("read")) == said
    assert messages(who.ask("read")) == []


def test_a_filter_begins_where_another_was(log, who):
    said = log.put("job/1", 3) + log.put("job/2", 4, step=0) + log.put("job/1", 2)
    for pages in range(1, 6):
        who.ask("logs", group=GROUP, prefix="job/", page=2)
        first = who.ask("read", pages=pages)
        who.ask("logs", group=GROUP, prefix="job/", at=first["at"], count=first["count"])
        assert messages(first) + messages(who.ask("read")) == said, pages


def test_a_round_of_a_filter_whose_token_expired_goes_on(aws, log, who):
    said = log.put("job/1", 9)
    who.ask("logs", group=GROUP, prefix="job/", page=2)
    seen = messages(who.ask("read", pages=2))
    aws.fault("error", service="logs", operation="FilterLogEvents", code="InvalidParameterException", status=400,
              count=1)
    assert seen + messages(who.ask("read")) == said


def test_more_streams_than_a_page_holds(log, who):
    for i in range(60):
        log.begin(f"job/{i:03}")
    assert len(who.ask("streams", group=GROUP, prefix="job/")["streams"]) == 60


def test_everybody_together_keeps_the_pace(log, who):
    log.put("s", 20)
    who.ask("logs", group=GROUP, stream="s", page=1)
    time.sleep(1.1)
    before = time.monotonic()
    who.ask("read", pages=16)
    took = time.monotonic() - before
    assert 2.9 < took < 90, took


def test_a_writer_and_a_reader_at_once_with_restarts(aws, log, who):
    """The log grows while the reader starts anew again and again."""
    chance, said, over = random.Random(5), [], threading.Event()

    def write():
        for _ in range(25):
            said.extend(log.put("s", chance.randint(1, 9), step=chance.choice((0, 0, 1, 7))))
            time.sleep(0.2)
        over.set()

    log.begin("s")
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    seen, rounds = [], 0
    who.ask("logs", group=GROUP, stream="s", page=8)
    while rounds < 10:
        last = over.is_set()
        rounds += last
        if chance.random() < 0.2:
            aws.fault("error", service="logs", operation="GetLogEvents", code="InvalidParameterException", status=400,
                      count=1)
        reply = who.ask("read", pages=chance.choice((1, 2, 1000)) if not last else 1000)
        aws.clear_faults()
        seen += messages(reply) if "error" not in reply else [row[2] for row in reply["events"]]
        if last and len(seen) >= len(said):
            break
    writer.join()
    assert seen == said
