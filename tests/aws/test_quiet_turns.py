"""Turns that find nothing new: all that they ask a bucket for, by the stand-in's ledger."""

import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from bucket_job import BucketJob

OBJECTS = 1001  # two pages of a listing
TRAIN = "mkdir -p $STOKER_CHECKPOINT_DIR/step-1; cd $STOKER_CHECKPOINT_DIR/step-1; echo w >state; echo '{\"step\":1}' >meta.json; echo step: 1"
EVALUATE = "echo '{\"accuracy\":1}' >$STOKER_OUTPUT_DIR/metrics.json"


class QuietTurns(BucketJob):
    """Data, hold-out, models and workspace in a bucket; what is trained runs here."""

    def __init__(self, root, aws):
        super().__init__(root, aws)
        self.s3 = aws.client("s3")
        self.url |= {name: f"s3://bucket/{self.prefix}/{name}" for name in ("drops", "held", "models")}
        self.write(command=["sh", "-c", TRAIN], compile=None, hyperparameters=None, env=None,
                   metrics=[{"name": "step", "regex": "^step: ([0-9]+)"}], data={"url": self.url["drops"]},
                   evaluate={"command": ["sh", "-c", EVALUATE], "data": self.url["held"], "metric": "accuracy"},
                   promote={"url": self.url["models"], "when": "always"})
        self.put("held/one", "1")

    def put(self, name, text):
        self.s3.put_object(Bucket="bucket", Key=f"{self.prefix}/{name}", Body=text.encode())

    def get(self, name):
        return self.s3.get_object(Bucket="bucket", Key=f"{self.prefix}/{name}")["Body"].read().decode()

    def promoted(self, run):
        """The pointer after a turn with new data."""
        done = self.stoker("retrain", self.spec_path, "--id", run, "--set", "data.settle=0s")
        assert done.code == 0, done
        return json.loads(self.get("models/current.json"))

    def asked(self, *argv, **options):
        """What a turn prints, and what it asks for: [(operation, name, status)]."""
        before = self.aws.mark()
        done = self.stoker(*argv, "retrain", self.spec_path, **options)
        assert done.code == 0 and done.out.startswith("nothing new: 0 of "), done
        rows = [(row["operation"], row["name"].replace(f"bucket/{self.prefix}/", ""), row["status"])
                for row in self.aws.ledger(before)]
        return done.out, [(operation, re.sub(r"turns/2.*", "turns/NOW", name), status) for operation, name, status in rows]


@pytest.fixture
def quiet(aws, tmp_path):
    made = QuietTurns(tmp_path / "project", aws)
    yield made
    made.stop()


PAGE = "ListObjectsV2", "bucket", 200
POINTER = "GetObject", "models/current.json", 200
RECORD = "PutObject", "models/turns/NOW", 200


def beyond(generation):
    return "GetObject", f"models/entries/{generation}.json", 404


def test_nothing_new_costs_the_pages_and_three_requests(quiet):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: quiet.put(f"drops/{number:04}", "good"), range(OBJECTS)))
    quiet.promoted("week-1")
    wanted = [POINTER, beyond(2), PAGE, PAGE, RECORD]
    for argv, options in (((), {}), ((), {"env": quiet.elsewhere()}), (("--state", quiet.root / "state"), {})):
        out, asked = quiet.asked(*argv, **options)
        assert asked == wanted and out == f"nothing new: 0 of {OBJECTS} objects in {quiet.url['drops']} are new\n", asked
    # A turn that was begun otherwise than with new data changes nothing of that.
    quiet.put("drops/late", "good")
    assert quiet.stoker("retrain", quiet.spec_path, "--set", "data.min_new=2", "--set", "data.settle=0s").out.startswith("nothing new: 1 of ")
    quiet.promoted("week-2")
    assert quiet.asked()[1] == [POINTER, beyond(3), PAGE, PAGE, RECORD]


def test_what_the_pointer_does_not_tell_is_read(quiet):
    quiet.put("drops/1", "good")
    quiet.put("drops/2", "good")
    pointer = quiet.promoted("week-1")
    seen = "GetObject", f"models/versions/week-1/data/{pointer['seen']}.jsonl", 206
    assert quiet.asked()[1] == [POINTER, beyond(2), PAGE, RECORD]
    # The listing is not the list: an object is gone.
    quiet.s3.delete_object(Bucket="bucket", Key=f"{quiet.prefix}/drops/2")
    out, asked = quiet.asked()
    assert asked == [POINTER, beyond(2), PAGE, seen, RECORD] and ", 1 deleted since" in out
    quiet.put("drops/2", "good")
    assert quiet.asked()[1] == [POINTER, beyond(2), PAGE, RECORD]
    # A pointer of an earlier stoker has no list.
    line = quiet.get("models/current.json").partition(',"sum"')[0].replace(f',"seen":"{pointer["seen"]}"', "")
    quiet.put("models/current.json", f'{line},"sum":"{hashlib.sha256((line + "}").encode()).hexdigest()}"}}\n')
    assert "seen" not in json.loads(quiet.get("models/current.json"))
    entry = "GetObject", "models/entries/1.json", 200
    assert quiet.asked()[1] == [POINTER, entry, beyond(2), PAGE, RECORD]
    assert quiet.stoker("lineage", quiet.url["models"], "--verify").code == 0
    # One that tells of another list than its entry is found out.
    quiet.put("models/current.json", f'{line},"seen":"{"0" * 64}"' + ',"sum":"' + hashlib.sha256(
        f'{line},"seen":"{"0" * 64}"}}'.encode()).hexdigest() + '"}\n')
    assert "another cumulative list" in quiet.stoker("lineage", quiet.url["models"], "--verify").out


def test_a_rollback_that_died_before_it_moved_the_pointer_is_seen(quiet):
    """Its watermark is smaller: what the version before was not given is new again, and not nothing."""
    quiet.put("drops/1", "good")
    quiet.promoted("week-1")
    quiet.put("drops/2", "good")
    quiet.promoted("week-2")
    assert quiet.asked()[1] == [POINTER, beyond(3), PAGE, RECORD]
    quiet.aws.fault("denied", operation="PutObject", key="current.json", count=0)
    assert quiet.stoker("rollback", "--reason", "test", quiet.url["models"]).code != 0
    quiet.aws.clear_faults()
    assert json.loads(quiet.get("models/current.json"))["generation"] == 2
    again = quiet.stoker("retrain", quiet.spec_path, "--id", "week-3", "--set", "data.settle=0s")
    assert again.code == 0 and "1 of 2 objects in " in again.err, again
    assert json.loads(quiet.get("models/current.json"))["generation"] == 4


def test_a_turn_that_finds_nothing_leaves_no_state(quiet):
    """The journal is begun once there is a run; a file of --outcome says what came of the turn."""
    quiet.put("drops/1", "good")
    quiet.promoted("week-1")
    outcome = quiet.root / "outcome"
    done = quiet.stoker("--state", quiet.url["state"] + "-2", "retrain", quiet.spec_path, "--outcome", outcome)
    assert done.code == 0 and json.loads(outcome.read_text())["verdict"] == "nothing_new", done
    assert quiet.s3.list_objects_v2(Bucket="bucket", Prefix=f"{quiet.prefix}/state-2")["KeyCount"] == 0
    quiet.put("drops/2", "good")
    done = quiet.stoker("--state", quiet.url["state"] + "-2", "retrain", quiet.spec_path, "--id", "other", "--set", "data.settle=0s")
    assert done.code == 0, done
    assert quiet.stoker("--state", quiet.url["state"] + "-2", "status", "other").code == 0
    # With a state that does not answer a run with new data ends before it begins.
    quiet.put("drops/3", "good")
    quiet.aws.fault("denied", key="/state/", count=0)
    refused = quiet.stoker("retrain", quiet.spec_path, "--set", "data.settle=0s")
    quiet.aws.clear_faults()
    assert refused.code == 4 and "AccessDenied" in refused.err, refused
