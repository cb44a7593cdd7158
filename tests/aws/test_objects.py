"""Objects in a bucket that others wrote, and wrote with care or with malice: the official
client and stoker read each other's; keys of any bytes stay what they are; a bucket that
lies harms nothing."""

import hashlib
import http.server
import subprocess
import threading
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import stoker
from memory import exactly, peak
from s3_calls import Calls

KEYS = ["plain", "with blank", "plus+sign", "equals=sign", "per%cent", "per%2Fcent", "double//slash", "/absolute",
        "//both", "a/../b", "../up", "./here", "trailing/", "été/ñandú", "e\u0301", "🚂/🔥", "quote'\"<&>", "semi;colon:?#",
        "tab\tand\nline", "\x7f", "CASE", "case", "~-_.!*()", "a" * 1024, "é" * 512]
BIG = 40 << 20


@pytest.fixture
def calls(aws, s3):
    with Calls(aws.env()) as calls:
        yield calls


def content(seed, size):
    return (hashlib.sha256(seed.encode()).digest() * (size // 32 + 1))[:size]


def in_order(keys):
    return sorted(keys, key=lambda key: key.encode())


# The official client


def test_stoker_reads_what_the_official_client_wrote(aws, s3, calls, tmp_path):
    for i, key in enumerate(KEYS):
        path = tmp_path / "up"
        path.write_bytes(content(key, 1000 + i))
        aws.client("s3").put_object(Bucket="bucket", Key=key, Body=path.read_bytes())
        assert calls("head", key=key).size == 1000 + i, key
        assert calls("download", key=key, path=str(tmp_path / "down")).n == 1
        assert (tmp_path / "down").read_bytes() == path.read_bytes()
    assert [row["key"] for row in calls("list").rows] == in_order(KEYS)


def test_the_official_client_reads_what_stoker_wrote(aws, s3, calls):
    for key in KEYS:
        assert calls("write", key=key, text=f"of {key[:9]}", **{"if": "absent"}).n == 1, key
        assert s3.get_object(Bucket="bucket", Key=key, ChecksumMode="ENABLED")["Body"].read().decode() == f"of {key[:9]}"
    rows = s3.list_objects_v2(Bucket="bucket")["Contents"]
    assert [row["Key"] for row in rows] == in_order(KEYS)
    for key in KEYS:
        assert calls("delete", key=key).n == 0
    assert aws.objects("bucket") == {}


@pytest.mark.parametrize("key", ["big file+=.bin", "ü/🚂//../x"])
def test_large_objects_go_both_ways_with_the_aws_command(aws, s3, calls, tmp_path, key):
    up, down = tmp_path / "up", tmp_path / "down"
    up.write_bytes(content(key, BIG + 17))
    aws.cli("s3api", "put-object", "--bucket", "bucket", "--key", "one", "--body", up)
    aws.cli("s3", "cp", "--quiet", up, f"s3://bucket/{key}")
    assert aws.requests("UploadPart") > 1
    for name in (key, "one"):
        found = calls("download", key=name, path=str(down))
        assert found.n == 1 and down.read_bytes() == up.read_bytes()
    assert calls("write", key=f"ours/{key}", path=str(up)).n == 1
    aws.cli("s3", "cp", "--quiet", f"s3://bucket/ours/{key}", down)
    assert down.read_bytes() == up.read_bytes()


def test_a_listing_goes_over_all_pages(aws, s3, calls):
    keys = [f"{'é+ %'[i % 4]}/{i:05}" for i in range(2500)]
    for key in keys:
        s3.put_object(Bucket="bucket", Key=key, Body=b"")
    assert [row["key"] for row in calls("list").rows] == in_order(keys)
    assert calls("list", delimiter="/").prefixes == in_order(["é/", "+/", " /", "%/"])
    assert aws.requests("ListObjectsV2") == 3 + 1
    after = in_order(keys)[1700]
    assert [row["key"] for row in calls("list", start_after=after).rows] == in_order(keys)[1701:]
    assert [row["key"] for row in calls("list", prefix="+/0").rows] == [key for key in in_order(keys) if key[:3] == "+/0"]


# Keys that are no names for files


def test_what_could_lead_out_of_a_folder_is_told_as_unfit(aws, s3, calls):
    for key in KEYS:
        s3.put_object(Bucket="bucket", Key=key, Body=b"")
    unfit = {row["key"] for row in calls("list").rows if "unfit" in row}
    assert unfit == {"double//slash", "/absolute", "//both", "a/../b", "../up", "./here", "trailing/",
                     "tab\tand\nline", "\x7f", "a" * 1024, "é" * 512}


@pytest.fixture
def hostile(aws, s3):
    for key in ("../../up", "/etc/passwd", "a//b", "x/../../y", "ok/one", "OK/ONE", "ok/\x1b[2Jtwo", ".stk-tmp-0123"):
        s3.put_object(Bucket="bucket", Key=f"cache/{key}", Body=b"x")
    return "s3://bucket/cache"


def stoker_says(aws, home, *words):
    return subprocess.run([str(stoker.BINARY), *words], env=aws.env(HOME=home), cwd=home, capture_output=True, text=True,
                          timeout=60)


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_cache_in_a_hostile_bucket_is_listed_without_harm(aws, hostile, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    found = stoker_says(aws, home, "cache", "ls", hostile)
    assert found.returncode == 0, found.stderr
    for key in ("../../up", "/etc/passwd", "a//b", "x/../../y"):
        assert f"passed over '{key}'" in found.stderr
    assert not stoker.CONTROL.search(found.stdout + found.stderr)
    assert [name for name in files_below(tmp_path) if not name.startswith("home/.")] == []


# A server that lies


def page(rows, truncated=False, token="", encoding="<EncodingType>url</EncodingType>", prefixes=()):
    contents = "".join(f"<Contents><Key>{quote(key, safe='/')}</Key><LastModified>2026-11-22T04:05:06.000Z</LastModified>"
                       f"<ETag>&quot;{i:032x}&quot;</ETag><Size>1</Size></Contents>" for i, key in enumerate(rows))
    folders = "".join(f"<CommonPrefixes><Prefix>{quote(name, safe='/')}</Prefix></CommonPrefixes>" for name in prefixes)
    return (f'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{encoding}'
            f"<KeyCount>7</KeyCount><IsTruncated>{str(truncated).lower()}</IsTruncated>"
            f"{f'<NextContinuationToken>{token}</NextContinuationToken>' if token else ''}{contents}{folders}"
            "</ListBucketResult>").encode()


class Liar(http.server.ThreadingHTTPServer):
    """Answers the n-th request with what `answer(n, query)` says."""
    daemon_threads = True

    def __init__(self, answer):
        self.answer, self.asked = answer, 0
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def env(self, aws):
        return aws.env(AWS_ENDPOINT_URL=f"http://127.0.0.1:{self.server_port}")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query, keep_blank_values=True).items()}
        self.server.asked += 1
        body = self.server.answer(self.server.asked, query)
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass


@pytest.fixture
def lie(aws_process):
    servers = []

    def start(answer, do="list", **members):
        server = Liar(answer)
        servers.append(server)
        with Calls(exactly(server.env(aws_process))) as calls:
            found = calls(do, **members)
            found.asked = server.asked
            found.peak = peak(calls.process.pid)
            return found

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_page_that_comes_again_and_again_is_noticed(lie):
    found = lie(lambda n, query: page(["a", "b"], True, f"token{n}"))
    assert found.n == -1 and found.code == 75 and "repeat themselves" in found.error and found.asked <= 3


def test_pages_in_no_order_are_refused(lie):
    found = lie(lambda n, query: page(["b", "a"]))
    assert found.n == -1 and "in no order" in found.error
    found = lie(lambda n, query: page(["m", "z"], True, "t") if n == 1 else page(["a"]))
    assert found.n == -1 and "in no order" in found.error and len(found.rows) == 2


def test_an_endless_listing_of_nothing_ends(lie):
    found = lie(lambda n, query: page([], True, f"token{n}"))
    assert found.n == -1 and "without a key" in found.error and found.asked < 200


def test_a_token_that_leads_back_is_noticed(lie):
    found = lie(lambda n, query: page([f"k{n}"], True, "always the same"))
    assert found.n == -1 and "how to go on" in found.error and found.asked <= 3
    found = lie(lambda n, query: page(["k"], True))
    assert found.n == -1 and "how to go on" in found.error


def test_what_was_not_asked_for_is_refused(lie):
    found = lie(lambda n, query: page(["other/a"]), prefix="mine/")
    assert found.n == -1 and "not requested" in found.error and found.rows == []


def test_a_count_that_is_wrong_decides_nothing(lie):
    assert [row["key"] for row in lie(lambda n, query: page(["a", "b"])).rows] == ["a", "b"]


def test_keys_that_were_not_encoded_are_taken_as_they_are(lie):
    xml = page(["x"], encoding="").replace(b">x<", b">a%2Bb+c<")
    assert [row["key"] for row in lie(lambda n, query: xml).rows] == ["a%2Bb+c"]


@pytest.mark.parametrize("body", [
    b"", b"not XML", b"<html><body>Sign in</body></html>", page(["a"])[:-30], b"<ListBucketResult>" * 3000,
    b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><ListBucketResult>&b;'
    b"</ListBucketResult>", b'<!DOCTYPE l SYSTEM "file:///etc/passwd"><ListBucketResult/>' + b"x",
    b"<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
    b"<ListBucketResult><Contents><Key>" + b"k" * (1 << 20) + b"</Key></Contents></ListBucketResult>",
    b"<ListBucketResult>" + b"<x>y</x>" * (1 << 17) + b"<Contents/></ListBucketResult>",
    bytes(range(256)) * 100], ids=lambda body: repr(body[:24]))
def test_what_is_no_listing_is_an_error_and_no_harm(lie, body):
    found = lie(lambda n, query: body)
    assert found.n == -1 or all("unfit" in row for row in found.rows)


def test_a_megabyte_of_xml_is_a_listing_like_others(lie):
    keys = [f"{i:04}" + "é" * 170 for i in range(1000)]
    assert len(page(keys)) > 1 << 20
    assert [row["key"] for row in lie(lambda n, query: page(keys)).rows] == keys


def test_a_listing_without_end_that_goes_on_takes_no_memory(lie):
    """Each page is new: it is walked as it comes, and who walks it may stop at any time."""
    found = lie(lambda n, query: page([f"{n:06}/{i:04}" for i in range(1000)], n < 100, f"t{n}"), "count")
    assert found.n == 0 and found.count == 100000
    few = lie(lambda n, query: page([f"{n:06}/{i:04}" for i in range(1000)], n < 5, f"t{n}"), "count")
    assert few.peak > 0 and found.peak - few.peak < 4 << 10


def test_a_name_with_a_zero_byte_is_unfit(lie):
    xml = page(["x"]).replace(b">x<", b">a%00b<")
    found = lie(lambda n, query: xml)
    assert [("unfit" in row, row["key"]) for row in found.rows] == [(True, "a")]
