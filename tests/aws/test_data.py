"""What a turn of a retraining is given: the same of a directory and of a bucket. The watermark is a set: neither names
nor times decide what is new."""

import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from data_calls import Place

HOUR = 3_600_000


@pytest.fixture(params=["dir", "s3"])
def data(request, aws, s3, tmp_path):
    return Place(aws, tmp_path, request.param)


def names(data, stored):
    return list(data.rows(stored))


def fresh(data, stored):
    return [name for name, row in data.rows(stored).items() if row["new"]]


def test_late_replaced_and_deleted_objects(data):
    for name in ["b.csv", "d/e.csv", "d.csv", "a b\"é.csv"]:
        data.put(name, name.encode())
    first = data.turn()
    assert first.counts == {**first.counts, "listed": 4, "objects": 4, "new": 4, "replaced": 0, "deleted": 0}
    assert names(data, first.manifest) == ["a b\"é.csv", "b.csv", "d.csv", "d/e.csv"]
    # The same again: nothing is new, and the same lists come of it.
    again = data.turn(seen=first.seen)
    assert again.counts == {**again.counts, "listed": 4, "objects": 0, "new": 0}
    assert again.seen == first.seen
    # A late file with an old name, one overwritten with as many bytes, one gone.
    data.put("a.csv", b"late")
    data.put("d.csv", b"D.csv")
    data.delete("b.csv")
    second = data.turn(seen=first.seen)
    assert second.counts == {**second.counts, "listed": 4, "objects": 2, "new": 2, "replaced": 1, "deleted": 1, "bytes": 9}
    rows = data.rows(second.manifest)
    assert {name: (row["new"], row["replaced"]) for name, row in rows.items()} == {
        "a.csv": (True, False), "d.csv": (True, True)}
    for name, content in (("a.csv", b"late"), ("d.csv", b"D.csv")):
        if data.kind == "s3":
            assert rows[name]["etag"] == hashlib.md5(content).hexdigest()
        else:
            assert rows[name]["sha256"] == hashlib.sha256(content).hexdigest()
    # What is gone was given all the same: it is not new when it comes back as it was.
    assert names(data, second.seen) == ["a b\"é.csv", "a.csv", "b.csv", "d.csv", "d/e.csv"]
    whole = data.turn(seen=first.seen, incremental=False)
    assert names(data, whole.manifest) == ["a b\"é.csv", "a.csv", "d.csv", "d/e.csv"]
    assert fresh(data, whole.manifest) == ["a.csv", "d.csv"]
    assert whole.seen == second.seen


def test_a_file_whose_time_alone_changed_is_not_new(aws, s3, tmp_path):
    data = Place(aws, tmp_path, "dir")
    data.put("a", b"one")
    data.put("b", b"two")
    first = data.turn()
    os.utime(tmp_path / "data/a")
    touched = data.turn(seen=first.seen)
    assert touched.counts["new"] == 0
    # Its new time is remembered, so that it is read once.
    assert data.rows(touched.seen)["a"]["mtime"] > data.rows(first.seen)["a"]["mtime"]
    (tmp_path / "data/b").write_bytes(b"TWO")
    changed = data.turn(seen=touched.seen)
    assert fresh(data, changed.manifest) == ["b"] and changed.counts["replaced"] == 1


def test_young_objects_wait(data):
    data.put("old", b"1")
    if data.kind == "dir":
        os.utime(data.folder / "data/old")
    now = int(time.time() * 1000)
    early = data.turn(settle_ms=HOUR, at=now + HOUR // 2)
    assert early.counts == {**early.counts, "listed": 1, "objects": 0, "waiting": 1}
    assert data.text(early.manifest) == ""
    late = data.turn(settle_ms=HOUR, at=now + 2 * HOUR)
    assert late.counts == {**late.counts, "new": 1, "waiting": 0}
    # What was given before does not wait: it is known.
    known = data.turn(settle_ms=HOUR, at=now, seen=late.seen)
    assert known.counts == {**known.counts, "new": 0, "waiting": 0, "deleted": 0}


def test_only_folders_with_the_marker_count(data):
    for name in ["x", "a/1", "a/z/2", "a/zz", "b/1", "b/_SUCCESS", "b/zz/2", "c/_SUCCESS/1", "d/1", "d/e/_SUCCESS", "d/e/f/1",
                 "d/e0"]:
        data.put(name, b"1")
    turn = data.turn(done_marker="_SUCCESS")
    assert names(data, turn.manifest) == ["b/1", "b/zz/2", "d/e/f/1"]
    assert turn.counts == {**turn.counts, "listed": 10, "unmarked": 7}
    data.put("a/_SUCCESS", b"")
    more = data.turn(done_marker="_SUCCESS", seen=turn.seen, include=["a/*", "d/**"])
    assert names(data, more.manifest) == ["a/1", "a/zz"]
    assert more.counts["excluded"] == 3  # b/1, b/zz/2, a/z/2


def test_objects_that_were_set_aside_stay_out_until_they_change(data):
    data.put("a", b"1")
    first = data.turn()
    data.put("a", b"2")
    data.put("b", b"bad")
    refused = data.turn(seen=first.seen)
    assert fresh(data, refused.manifest) == ["a", "b"]
    data.put("c", b"good")
    without = data.turn(seen=first.seen, aside=[refused.manifest])
    assert fresh(data, without.manifest) == ["c"] and without.counts["aside"] == 2
    # Once a model was trained so, the cumulative list remembers it.
    later = data.turn(seen=without.seen)
    assert later.counts == {**later.counts, "new": 0, "aside": 2}
    data.put("a", b"3")
    data.put("b", b"mended")
    mended = data.turn(seen=without.seen)
    assert {name: row["replaced"] for name, row in data.rows(mended.manifest).items()} == {"a": True, "b": False}
    both = data.turn(seen=first.seen, aside=[refused.manifest, without.manifest], incremental=False)
    assert fresh(data, both.manifest) == ["a", "b"] and names(data, both.manifest) == ["a", "b"]


def test_the_hold_out_is_never_given(data):
    data.put("train/a", b"1")
    data.put("held/b", b"2")
    turn = data.turn(hold_out=data.url + "/held")
    assert names(data, turn.manifest) == ["train/a"] and turn.counts["held_out"] == 1
    data.put("list.jsonl", json.dumps({"url": data.url + "/train/a", "size": 1, "etag": "any"}).encode(), place="lists")
    listed = data.turn(hold_out=data.url.removesuffix("data") + "lists/list.jsonl")
    assert names(data, listed.manifest) == ["held/b"]


def foreign(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_a_list_of_objects(data):
    rows = [{"url": f"s3://other/{i % 7}/{i}", "size": i, "etag": f'"{i}"'} for i in range(2000)]
    data.put("list.jsonl", foreign(*reversed(rows)) + b"\n" + foreign(rows[5]), place="lists")
    url = data.url.removesuffix("data") + "lists/list.jsonl"
    first = data.turn(url=url, include=["other/[0-3]/*"])
    kept = sorted((row["url"] for row in rows if int(row["url"][11]) < 4), key=str.encode)
    assert [row["url"] for row in data.rows(first.manifest).values()] == kept
    assert data.rows(first.manifest)["s3://other/3/3"] == {
        "url": "s3://other/3/3", "size": 3, "etag": "3", "new": True, "replaced": False}
    rows[3]["etag"] = "changed"
    rows.append({"url": "/mnt/x", "size": 1, "etag": "e"})
    data.put("list.jsonl", foreign(*rows), place="lists")
    second = data.turn(url=url, seen=first.seen, include=["other/[0-3]/*", "mnt/*"])
    assert {row["url"]: row["replaced"] for row in data.rows(second.manifest).values()} == {
        "s3://other/3/3": True, "/mnt/x": False}


@pytest.mark.parametrize("line, why", [
    ("{", "line 2: "),
    ("[]", "line 2: not a JSON object"),
    ('{"size":1,"etag":"e"}', "line 2: no 'url'"),
    ('{"url":"s3://b/a","etag":"e"}', "line 2: no 'size' in bytes"),
    ('{"url":"s3://b/a","size":-1,"etag":"e"}', "line 2: no 'size' in bytes"),
    ('{"url":"s3://b/a","size":1}', "line 2: no 'etag'"),
    ('{"url":"a/b","size":1,"etag":"e"}', "line 2: the 'url' 'a/b' is neither"),
    ('{"url":"s3://b/../a","size":1,"etag":"e"}', "line 2: the 'url'"),
    ('{"url":"s3://b/k","size":2,"etag":"e"}', "has 's3://b/k' twice"),
    ('{"url":"' + "x" * 20000 + '"}', "line 2: longer than"),
])
def test_a_bad_list_is_refused_with_its_line(aws, s3, tmp_path, line, why):
    data = Place(aws, tmp_path, "dir")
    data.put("list.jsonl", b'{"url":"s3://b/k","size":1,"etag":"e"}\n' + line.encode() + b"\n")
    bad = data.turn(url=data.url + "/list.jsonl", code=4)
    assert why in bad.error and bad.hint
    assert not os.path.exists(data.workspace)


def test_a_long_list_is_put_in_order_in_little_memory(aws, s3, tmp_path):
    """More than fits into one part of the sort, so that parts are merged."""
    data = Place(aws, tmp_path, "dir")
    lines = [f'{{"url":"s3://b/{i * 7919 % 100003:07}","size":{i},"etag":"{i:032}"}}\n' for i in range(100003)]
    data.put("list.jsonl", "".join(lines).encode())
    turn = data.turn(url=data.url + "/list.jsonl")
    assert turn.counts["new"] == len(lines) == len(names(data, turn.manifest))


def test_wrong_places_are_no_week_without_news(data):
    empty = data.turn(code=4).error
    assert ("there is no" if data.url.startswith("/") else "holds no objects") in empty
    data.put("a", b"1")
    nothing = data.turn(include=["b/**"], code=4)
    assert "matches data.include" in nothing.error and nothing.hint


def test_lists_that_are_damaged_are_named(data):
    data.put("a", b"1")
    data.put("b", b"2")
    first = data.turn()
    whole = data.text(first.seen)
    for text in (whole[:-20], whole.replace('"size":1', '"size":2', 1), "".join(reversed(whole.splitlines(True))), "", "{}\n"):
        where = first.seen["url"].split("/stored/")[1]
        data.put(where, text.encode(), place="stored")
        bad = data.turn(seen=first.seen, code=4)
        assert bad.damage and first.seen["url"] in bad.error, bad
    assert "is gone" in data.turn(seen={**first.seen, "url": first.seen["url"][:-7] + "0.jsonl"}, code=4).error


# The second page of two is not whole, or it is none.
CUT = [
    ({"kind": "truncate", "nth": 2}, "bytes remaining to read"),
    ({"kind": "replace", "nth": 2, "pattern": "(?s)<ETag>.*"}, "cut off"),
    ({"kind": "garbage", "nth": 2, "what": "html"}, "not the requested document"),
    ({"kind": "endless", "nth": 2}, "the pages repeat themselves"),
    ({"kind": "repeat_token"}, "does not say how to go on"),
]


def test_a_listing_that_is_denied_or_cut_leaves_nothing(aws, s3, tmp_path):
    data = Place(aws, tmp_path, "s3")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: data.put(f"{i:04}", b"1"), range(1001)))
    for nth in (1, 2):
        aws.fault("denied", operation="ListObjectsV2", nth=nth, count=0)
        denied = data.turn(code=4)
        assert "AccessDenied" in denied.error and data.url in denied.error
        aws.clear_faults()
    for fault, why in CUT:
        aws.fault(**fault, operation="ListObjectsV2", count=0)
        cut = data.turn(code=75)
        assert why in cut.error and data.url in cut.error and cut.hint, cut
        aws.clear_faults()
    assert s3.list_objects_v2(Bucket="bucket", Prefix="stored/")["KeyCount"] == 0
    # A page that comes cut once is asked for again: nothing is lost, or counted twice.
    for fault, _ in CUT[:3]:
        aws.fault(**fault, operation="ListObjectsV2")
        turn = data.turn()
        assert turn.counts["new"] == 1001 and turn.counts["listed"] == 1001
        assert aws.struck() == 1
        aws.clear_faults()
    # Nothing new: two pages, whose digest is that of the cumulative list.
    before = aws.mark()
    assert data.turn(seen=turn.seen, workspace=None).counts["new"] == 0
    assert [aws.requests(name, since=before) for name in ("ListObjectsV2", "GetObject", None)] == [2, 0, 2]


def test_a_list_that_the_listing_equals_is_not_read(aws, s3, tmp_path):
    """By its digest it is known; whatever the digest cannot tell, the list does."""
    data = Place(aws, tmp_path, "s3")
    for name in ("a b\"é", "c", "held/b"):
        data.put(name, name.encode())
    first = data.turn(hold_out=data.url + "/held")

    def look(seen, lists, **more):
        before = aws.mark()
        counts = data.turn(seen=seen, workspace=None, **more).counts
        assert [row["name"].rpartition("/")[2] for row in aws.ledger(before, "GetObject")] == [
            f"{seen['digest']}.jsonl"] * lists, counts
        return {name: count for name, count in counts.items() if count}

    held = {"hold_out": data.url + "/held"}
    known = {"listed": 3, "held_out": 1}
    assert look(first.seen, 0, **held) == known
    # What was given is known, however young; without a hold-out its object is new.
    assert look(first.seen, 0, settle_ms=HOUR, at=int(time.time() * 1000), **held) == known
    assert look(first.seen, 1) == {"listed": 3, "objects": 1, "new": 1, "bytes": 6}
    # A hold-out that was training data before.
    whole = data.turn()
    assert look(whole.seen, 1, **held) == known
    assert look(whole.seen, 0) == {"listed": 3}
    assert look(whole.seen, 1, include=["?"]) == {"listed": 3, "deleted": 2, "excluded": 2}
    assert look(whole.seen, 1, incremental=False) == {"listed": 3, "objects": 3, "bytes": len("a b\"é".encode()) + 7}
    data.put("d", b"young")
    assert look(whole.seen, 1, settle_ms=HOUR, at=int(time.time() * 1000)) == {"listed": 4, "waiting": 1}
    refused = data.turn(seen=whole.seen)
    without = data.turn(seen=whole.seen, aside=[refused.manifest])
    assert look(without.seen, 1) == {"listed": 4, "aside": 1}
    data.put("d", b"other")
    assert look(refused.seen, 1) == {"listed": 4, "objects": 1, "new": 1, "replaced": 1, "bytes": 5}
    data.delete("d")
    assert look(refused.seen, 1) == {"listed": 3, "deleted": 1}
    # A list that was damaged is read for what it is.
    key = whole.seen["url"].removeprefix("s3://bucket/")
    s3.put_object(Bucket="bucket", Key=key, Body=b"{}")
    assert look(whole.seen, 0) == {"listed": 3}
    data.put("e", b"1")
    assert "line 1" in data.turn(seen=whole.seen, code=4).error


def test_data_that_may_be_listed_but_not_read(aws, s3, tmp_path):
    data = Place(aws, tmp_path, "s3")
    data.put("a", b"1")
    aws.fault("denied", operation="GetObject", count=0)
    denied = data.turn(code=4, probe=True)
    assert "AccessDenied" in denied.error and data.url in denied.error


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_objects_of_a_manifest_are_brought_to_a_node(data, tmp_path):
    content = {f"{i % 7}/{i}.bin": os.urandom(i * 10) for i in range(100)}
    for name, body in content.items():
        data.put(name, body)
    turn = data.turn()
    folder = tmp_path / "node/data"
    folder.parent.mkdir()
    data.call("fetch", manifest=turn.manifest, base=data.url, folder=str(folder))
    assert files(folder) == content
    assert all(path.is_symlink() == (data.kind == "dir") for path in folder.rglob("*.bin"))
    # Without a base the paths are the urls.
    whole = tmp_path / "node/whole"
    data.call("fetch", manifest=turn.manifest, folder=str(whole))
    assert files(whole) == {data.url.removeprefix("s3://").lstrip("/") + "/" + name: body for name, body in content.items()}
    for change, why in (((lambda: data.put("3/3.bin", os.urandom(30))), "3/3.bin"), (lambda: data.delete("2/2.bin"), "2/2.bin")):
        change()
        bad = data.call("fetch", manifest=turn.manifest, base=data.url, folder=str(tmp_path / "node/again"), code=4)
        assert "no longer what the manifest" in bad.error and f"{data.url}/{why}" in bad.error


def test_a_manifest_that_is_not_what_was_stored_is_not_used(data, tmp_path):
    data.put("a", b"1")
    turn = data.turn()
    data.put(turn.manifest["url"].split("/stored/")[1], b"{}", place="stored")
    bad = data.call("fetch", manifest=turn.manifest, base=data.url, folder=str(tmp_path / "node"), code=4)
    assert bad.damage and turn.manifest["url"] in bad.error
