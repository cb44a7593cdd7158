"""Caches carried to and from a bucket: byte for byte, only what must move, and with no more
requests than it takes."""

import hashlib
import json
import os
import random
import signal
import time

import pytest
from memory import Watch, exactly
from project import Project
from stoker import finish, start

KIB, MIB = 1 << 10, 1 << 20
FAST = {"LSAN_OPTIONS": "detect_leaks=1"}


def files(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".stk-tmp-")}


def digests(aws, bucket):
    return {key: hashlib.sha256(body).hexdigest() for key, body in aws.objects(bucket).items()}


@pytest.fixture
def carry(aws, s3):
    def go(*argv, code=0, **env):
        process = start("--json", "cache", *argv, env=exactly(aws.env(**env)))
        watch = Watch(process)
        done = finish(process, argv, 300)
        go.peak = watch.end()
        assert done.code == code, str(done)
        go.rows = done.lines[:-1]
        return done.lines[-1] if done.lines else done
    return go


def fill(folder, count, seed=1):
    chance = random.Random(seed)
    for i in range(count):
        path = folder / f"d{i % 40:02d}" / f"f{i:04d}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(chance.choice([0, 1, 100, 4 * KIB, 20 * KIB])))


def backdate(folder):
    """Make what lies there old enough to be remembered: times of change cannot be set."""
    time.sleep(2.1)


def test_a_thousand_objects_and_a_large_one(aws, s3, carry, tmp_path):
    fill(tmp_path / "a", 1000)
    (tmp_path / "a/large").write_bytes(random.Random(2).randbytes(MIB) * 256)
    fill(tmp_path / "little", 5)
    backdate(tmp_path / "a")
    there = files(tmp_path / "a")
    small = []
    for direction in [("push", tmp_path / "little", "s3://bucket/little")] * 2 + \
            [("pull", "s3://bucket/little", tmp_path / "little too")] * 2:
        carry(*direction)
        small.append(carry.peak)
    s3.delete_objects(Bucket="bucket", Delete={"Objects": [{"Key": key} for key in aws.objects("bucket")]})
    peaks = []
    total = carry("push", tmp_path / "a", "s3://bucket/cache")
    peaks.append(carry.peak)
    assert total["moved"] == 1001 and total["failed"] == total["refused"] == 0
    assert {key.removeprefix("cache/"): sum for key, sum in digests(aws, "bucket").items()} == there
    mark = aws.mark()
    total = carry("push", tmp_path / "a", "s3://bucket/cache")
    peaks.append(carry.peak)
    assert total["moved"] == 0 and total["unchanged"] == 1001
    assert [entry["operation"] for entry in aws.ledger(mark)] == ["ListObjectsV2"] * 2
    total = carry("pull", "s3://bucket/cache", tmp_path / "b")
    peaks.append(carry.peak)
    assert total["moved"] == 1001 and files(tmp_path / "b") == there
    mark = aws.mark()
    total = carry("pull", "s3://bucket/cache", tmp_path / "b")
    peaks.append(carry.peak)
    assert total["moved"] == 0 and total["unchanged"] == 1001
    assert [entry["operation"] for entry in aws.ledger(mark)] == ["ListObjectsV2"] * 2
    # The sanitizer adds its own to both; what is in flight differs with the machine's load.
    grown = [(large - little) >> 10 for large, little in zip(peaks, small, strict=True)]
    assert min(small) > 0 and max(grown) < 24, f"{grown} MiB more than for 5 small objects"


def test_without_a_memory_content_decides_and_nothing_is_asked(aws, s3, carry, tmp_path):
    """Objects of one part and of several, ours and those of the official client."""
    chance = random.Random(3)
    (tmp_path / "a").mkdir()
    for name, size in (("small", 5 * KIB), ("parts", 40 * MIB), ("other", 20 * MIB), ("empty", 0)):
        (tmp_path / "a" / name).write_bytes(chance.randbytes(size))
    carry("push", tmp_path / "a", "s3://bucket/c")
    aws.cli("s3", "cp", tmp_path / "a/other", "s3://bucket/c/other")
    for path in (tmp_path / "a").glob(".stk-tmp-*"):
        path.unlink()
    for direction in (("push", tmp_path / "a", "s3://bucket/c"), ("pull", "s3://bucket/c", tmp_path / "a")):
        mark = aws.mark()
        total = carry(*direction)
        assert total["moved"] == 0 and total["unchanged"] == 4, carry.rows
        assert [entry["operation"] for entry in aws.ledger(mark)] == ["ListObjectsV2"]
    with open(tmp_path / "a/parts", "r+b") as file:
        file.seek(30 * MIB)
        file.write(b"?")
    assert carry("push", tmp_path / "a", "s3://bucket/c")["moved"] == 1
    assert aws.objects("bucket")["c/parts"] == (tmp_path / "a/parts").read_bytes()
    s3.put_object(Bucket="bucket", Key="c/small", Body=b"#" * 5 * KIB)
    assert carry("pull", "s3://bucket/c", tmp_path / "a")["moved"] == 1
    assert (tmp_path / "a/small").read_bytes() == b"#" * 5 * KIB


def test_what_a_lock_pins_is_known_where_it_was_carried(aws, s3, carry, tmp_path):
    """A lock that was made in a directory names SHA-256, one of a bucket ETags."""
    project = Project(tmp_path / "project")
    project.run()
    carry("push", project.cache, "s3://bucket/c")
    assert carry("verify", "s3://bucket/c")["ok"] == 3
    lock = next((project.cache / "stoker").glob("*.json"))
    tags = {row["Key"]: row["ETag"] for row in s3.list_objects_v2(Bucket="bucket", Prefix="c/")["Contents"]}
    made = json.loads(lock.read_text())
    for graph in made["graphs"]:
        del graph["sha256"]
        graph["etag"] = tags[f"c/{graph['path']}"]
    s3.put_object(Bucket="bucket", Key=f"c/stoker/{lock.name}", Body=json.dumps(made))
    assert carry("verify", "s3://bucket/c")["ok"] == 3
    carry("pull", "s3://bucket/c", tmp_path / "d")
    assert carry("verify", tmp_path / "d")["ok"] == 3
    changed = tmp_path / "d" / made["graphs"][0]["path"]
    changed.write_bytes(changed.read_bytes()[::-1])
    assert carry("verify", tmp_path / "d", code=5)["changed"] == 1
    carry("push", project.cache, "s3://bucket/c")
    s3.put_object(Bucket="bucket", Key=f"c/{made['graphs'][0]['path']}", Body=changed.read_bytes())
    assert carry("verify", "s3://bucket/c", code=5)["changed"] == 1


KEYS = ["plain", "with blank", "a+b=c&d", "ü/é", "\U0001f682/x", "a-b", "a.b", "a/b", "a0", "%41%2F", "back\\slash"]


def test_keys_of_all_kinds_travel_both_ways(aws, s3, carry, tmp_path):
    for key in KEYS:
        path = tmp_path / "a" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(key)
    carry("push", tmp_path / "a", "s3://bucket/p/q")
    assert aws.objects("bucket") == {f"p/q/{key}": key.encode() for key in KEYS}
    aws.cli("s3", "sync", "s3://bucket/p/q", tmp_path / "b")
    assert files(tmp_path / "b") == files(tmp_path / "a")
    carry("pull", "s3://bucket/p/q", tmp_path / "c")
    assert files(tmp_path / "c") == files(tmp_path / "a")
    assert carry("pull", "s3://bucket/p/q", tmp_path / "c")["unchanged"] == len(KEYS)


HOSTILE = ["../escape", "x/../../escape", "/absolute", "a//b", "x/./y", "..", "x/..", "nul\x01ctrl", "n" * 300,
           "file/below", ".stk-tmp-evil", "x/.stk-tmp-pull-00/y"]


def test_a_hostile_bucket_harms_nothing(aws, s3, carry, tmp_path):
    inside = tmp_path / "deep/er/target"
    outside = tmp_path / "outside"
    outside.mkdir()
    inside.mkdir(parents=True)
    (inside / "link").symlink_to(outside)
    for key in [*HOSTILE, "file", "folder/", "link/through", "good", "x/good"]:
        s3.put_object(Bucket="bucket", Key=f"p/{key}", Body=b"" if key.endswith("/") else b"evil")
    before = files(tmp_path)
    total = carry("pull", "s3://bucket/p", inside)
    assert files(inside) == {key: hashlib.sha256(b"evil").hexdigest() for key in ("file", "good", "x/good")}
    assert {row["path"] for row in carry.rows if row["action"] == "refused"} == {*HOSTILE, "link/through"}
    assert total["refused"] == len(HOSTILE) + 1 and total["moved"] == 3
    assert not list(outside.iterdir())
    assert {key for key in files(tmp_path) if key not in before} == \
        {f"deep/er/target/{key}" for key in ("file", "good", "x/good")}


def test_what_cannot_be_a_key_stays_here(carry, aws, tmp_path):
    folder = tmp_path / "a"
    (folder / "d").mkdir(parents=True)
    (folder / "good").write_text("1")
    (folder / "d/link").symlink_to("/etc/passwd")
    (folder / "line\nbreak").write_text("2")
    with open(os.fsencode(folder) + b"/\xff\xfe", "w") as file:
        file.write("3")
    total = carry("push", folder, "s3://bucket")
    assert total["moved"] == 1 and total["refused"] == 3
    assert aws.objects("bucket") == {"good": b"1"}


def test_markers_are_behind_what_they_speak_for(aws, carry, tmp_path):
    for i in range(30):
        module = tmp_path / f"a/neuronxcc-2.15.1+abc/MODULE_{i:03d}+0a1b2c3d"
        module.mkdir(parents=True)
        (module / "model.neff").write_bytes(os.urandom(5000))
        (module / "model.done").write_bytes(b"")
        (module / "compile_flags.json").write_text("[]")
        (module / "model.hlo_module.pb.lock").write_bytes(b"")
    (tmp_path / "a/stoker").mkdir()
    (tmp_path / "a/stoker/k.json").write_text("{}")
    carry("push", tmp_path / "a", "s3://bucket/c")
    order = [entry["name"].removeprefix("bucket/c/") for entry in aws.ledger(operation="PutObject")]
    assert len(order) == 91 and order[-1] == "stoker/k.json" and not any(name.endswith(".lock") for name in order)
    for i in range(30):
        module = f"neuronxcc-2.15.1+abc/MODULE_{i:03d}+0a1b2c3d/"
        assert order.index(module + "model.done") > order.index(module + "model.neff")


@pytest.mark.parametrize("operation", ["ListObjectsV2", "PutObject", "GetObject"])
@pytest.mark.parametrize("kind", ["throttle", "internal", "reset_before", "lost", "truncate"])
def test_faults_are_lived_with(aws, carry, tmp_path, operation, kind):
    fill(tmp_path / "a", 30)
    if operation == "GetObject":
        carry("push", tmp_path / "a", "s3://bucket/c")
    aws.fault(kind, operation=operation, count=1)
    if operation != "GetObject":
        carry("push", tmp_path / "a", "s3://bucket/c")
    carry("pull", "s3://bucket/c", tmp_path / "b")
    assert aws.struck() == 1 and files(tmp_path / "b") == files(tmp_path / "a")


@pytest.mark.parametrize(("kind", "more"), [
    ("endless", {}), ("repeat_token", {}), ("garbage", {"what": "xml"}), ("garbage", {"what": "html"}),
    ("garbage", {"what": "binary"}), ("huge", {"status": 200})])
def test_a_listing_that_is_none_ends_it(aws, s3, carry, tmp_path, kind, more):
    """In bounded time, with nothing half there and a word about it."""
    for i in range(5):
        s3.put_object(Bucket="bucket", Key=f"c/{i}", Body=b"x")
    aws.fault(kind, operation="ListObjectsV2", count=0, **more)
    done = finish(start("cache", "pull", "s3://bucket/c", tmp_path / "b", env=aws.env()))
    assert done.code in (4, 75) and "list" in done.err.lower(), str(done)
    assert set(files(tmp_path / "b").values()) <= {hashlib.sha256(b"x").hexdigest()}


def test_what_comes_damaged_is_not_kept(aws, carry, tmp_path):
    fill(tmp_path / "a", 5)
    carry("push", tmp_path / "a", "s3://bucket/c")
    aws.fault("corrupt", operation="GetObject", count=0)
    done = finish(start("cache", "pull", "s3://bucket/c", tmp_path / "b", env=aws.env()))
    assert done.code in (4, 75), str(done)
    there = files(tmp_path / "a")
    assert files(tmp_path / "b").items() <= there.items()
    aws.clear_faults()
    carry("pull", "s3://bucket/c", tmp_path / "b")
    assert files(tmp_path / "b") == there


def test_what_is_refused_ends_it_with_a_word(aws, carry, tmp_path):
    fill(tmp_path / "a", 5)
    done = finish(start("cache", "push", tmp_path / "a", "s3://no-such-bucket/c", env=aws.env()))
    assert done.code == 4 and "NoSuchBucket" in done.err and done.cure
    done = finish(start("cache", "pull", "s3://no-such-bucket/c", tmp_path / "b", env=aws.env()))
    assert done.code == 4 and "NoSuchBucket" in done.err


@pytest.mark.parametrize("direction", ["up", "down"])
def test_killed_at_any_moment_the_next_run_heals(aws, carry, tmp_path, direction):
    chance = random.Random(5)
    fill(tmp_path / "a", 150)
    (tmp_path / "a/large").write_bytes(chance.randbytes(40 * MIB))
    backdate(tmp_path / "a")
    there = files(tmp_path / "a")
    argv = ("push", tmp_path / "a", "s3://bucket/c")
    if direction == "down":
        carry(*argv)
        argv = ("pull", "s3://bucket/c", tmp_path / "b")
    survived = 0
    for wait in (0.2, 0.4, 0.6, 0.8, 1.1, 1.5):
        process = start("cache", *argv, env=aws.env())
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if direction == "up":
            found = {key.removeprefix("c/"): sum for key, sum in digests(aws, "bucket").items()}
        else:
            found = files(tmp_path / "b") if (tmp_path / "b").exists() else {}
        assert found.items() <= there.items(), "something is half there"
        survived = max(survived, len(found))
    mark = aws.mark()
    total = carry(*argv)
    assert total["moved"] + total["unchanged"] == 151 and total["unchanged"] >= survived
    if direction == "up":
        assert aws.requests("PutObject", mark) <= 151 - survived
        assert {key.removeprefix("c/"): sum for key, sum in digests(aws, "bucket").items()} == there
    else:
        assert files(tmp_path / "b") == there
    assert carry(*argv)["moved"] == 0


def test_a_file_that_is_written_to_is_not_torn(aws, carry, tmp_path):
    """Whatever goes up is one state of the file, or it is told that it was none."""
    path = tmp_path / "a/f"
    path.parent.mkdir()
    path.write_bytes(b"a" * 30 * MIB)
    process = start("--json", "cache", "push", tmp_path / "a", "s3://bucket/c", env=aws.env())
    for letter in b"bcdefgh" * 3:
        time.sleep(0.05)
        path.write_bytes(bytes([letter]) * 30 * MIB)
    done = finish(process)
    assert done.code == (4 if done.lines[-1]["failed"] else 0), str(done)
    # No byte: as it is where writing begins.
    assert len(set(aws.objects("bucket").get("c/f", b""))) <= 1
