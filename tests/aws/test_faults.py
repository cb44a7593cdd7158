"""Whatever the service or the network does wrong: the call ends in bounded time, in the
right class, with a clear word, and nothing has happened twice that must not. Driven by
call_lines, which performs one call of aws/aws.h a line."""

import hashlib
import json
import subprocess

import pytest
import stoker

CALL_LINES = stoker.BINARY.parent / "tests/call_lines"
REFUSED, UNREACHABLE = 4, 75
BODY = "content of the object"


class Calls:
    """A client that lives as long as the test."""

    def __init__(self, env):
        self.process = subprocess.Popen([CALL_LINES], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __call__(self, operation, **fields):
        return self.together([{"operation": operation, **fields}])[0]

    def together(self, calls):
        for number, call in enumerate(calls):
            call["tag"] = number
        self.process.stdin.write(json.dumps(calls) + "\n")
        self.process.stdin.flush()
        results = [json.loads(self.process.stdout.readline()) for _ in calls]
        return sorted(results, key=lambda result: result["tag"])

    def end(self):
        _, words = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, words


@pytest.fixture
def call(aws, s3):
    calls = Calls(aws.env())
    yield calls
    calls.end()


@pytest.fixture
def calls_with(aws, s3):
    made = []

    def make(**env):
        made.append(Calls(aws.env(**env)))
        return made[-1]
    yield make
    for calls in made:
        calls.end()


def put(call, key="key", body=BODY, **fields):
    return call("PutObject", bucket="bucket", key=key, body=body, **fields)


def assert_done(result, attempts=1):
    assert (result["status"], result.get("error")) == (200, None), result
    assert result["attempts"] == attempts, result


def assert_failed(result, exit_code, *words):
    assert result["exit"] == exit_code, result
    for word in words:
        assert word in result["error"], result
    assert len(result["hint"]) > 10 and len(result["error"]) < 3000


# --- what passes by itself --------------------------------------------------------

@pytest.mark.parametrize("kind", ["throttle", "internal", "unavailable", "bad_gateway", "reset_before", "reset_body"])
def test_what_passes_is_tried_again_and_done_once(aws, call, kind):
    aws.fault(kind, operation="PutObject")
    assert_done(put(call, body="x" * 200000), attempts=2)
    assert aws.effects("PutObject") == 1 and aws.requests("PutObject") == 2


@pytest.mark.parametrize("kind, unknown", [("throttle", False), ("internal", True), ("lost", True), ("reset_before", True)])
def test_it_is_told_if_an_earlier_attempt_may_have_had_its_effect(aws, call, kind, unknown):
    aws.fault(kind, operation="PutObject")
    result = put(call)
    assert_done(result, attempts=2)
    assert result["maybe_repeated"] is unknown
    assert aws.objects("bucket") == {"key": BODY.encode()}


@pytest.mark.parametrize("kind, code", [("throttle", "SlowDown"), ("unavailable", "ServiceUnavailable"),
                                        ("internal", "InternalError"), ("bad_gateway", "502")])
def test_what_does_not_pass_ends_after_its_attempts(aws, calls_with, kind, code):
    aws.fault(kind, operation="PutObject", count=0)
    call = calls_with(AWS_MAX_ATTEMPTS="3")
    result = put(call)
    assert_failed(result, UNREACHABLE, "s3 PutObject of 's3://bucket/key'", code, "request ")
    assert result["attempts"] == 3 == aws.requests("PutObject") and result["code"] == code
    assert aws.effects("PutObject") == 0


def test_attempts_are_five_for_s3_and_three_for_others(aws, call):
    aws.fault("throttle", operation="PutObject", count=0)
    aws.fault("throttle", service="sts", count=0)
    assert put(call)["attempts"] == 5
    result = call("GetCallerIdentity")
    assert result["attempts"] == 3 and result["code"] == "Throttling"


def test_a_service_that_is_down_costs_one_attempt_a_call_in_the_end(aws, calls_with):
    aws.fault("reset_before", service="s3", method="PUT", count=0)
    call = calls_with(AWS_MAX_ATTEMPTS="2")
    results = call.together([{"operation": "PutObject", "bucket": "bucket", "key": f"k{n}", "body": ""}
                             for n in range(150)])
    attempts = [result["attempts"] for result in results]
    assert all(result["exit"] == UNREACHABLE for result in results)
    assert attempts.count(2) == 100, "500 points buy 100 retries"
    aws.clear_faults()
    assert_done(put(call))


def test_a_client_keeps_to_the_rate_of_an_operation(aws, call):
    """aws/http/rates.def: ten a second, five more after a pause."""
    aws.settings(limits={"DescribeTrainingJob": 20})
    since = aws.mark()
    results = call.together([{"operation": "DescribeTrainingJob", "json": {"TrainingJobName": f"none-{n}"}}
                             for n in range(30)])
    assert {(result["code"], result["attempts"]) for result in results} == {("ValidationException", 1)}
    times = [entry["at"] for entry in aws.ledger(since)]
    assert len(times) == 30 and max(times) - min(times) > 2


# --- refusals ---------------------------------------------------------------------

@pytest.mark.parametrize("fault, code, hint", [
    ({"kind": "denied"}, "AccessDenied", "administrator"),
    ({"kind": "conflict"}, "ConditionalRequestConflict", "try again"),
    ({"kind": "precondition"}, "PreconditionFailed", "first"),
    ({"kind": "error", "code": "NoSuchBucket", "status": 404}, "NoSuchBucket", "bucket"),
    ({"kind": "error", "code": "InvalidAccessKeyId", "status": 403}, "InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"),
    ({"kind": "error", "code": "NeverHeardOf", "status": 400}, "NeverHeardOf", "check"),
    ({"kind": "expired"}, "ExpiredToken", "credentials"),
])
def test_a_refusal_is_final_and_says_code_ids_and_cure(aws, call, fault, code, hint):
    aws.fault(**{**fault, "count": 0, "operation": "PutObject"})
    result = put(call)
    assert_failed(result, REFUSED, "s3 PutObject of 's3://bucket/key' was refused: " + code, "HTTP ", "request ")
    assert result["code"] == code and hint in result["hint"]
    assert result["attempts"] == 1 == aws.requests("PutObject")
    entry = aws.ledger(operation="PutObject")[0]
    assert entry["request_id"] in result["error"], entry


def test_words_of_a_service_are_bounded(aws, call):
    aws.fault("huge", operation="PutObject", bytes=3 << 20)
    assert_failed(put(call), REFUSED, "HTTP 400")
    aws.fault("huge", service="sts", bytes=100 << 10)
    assert_failed(call("GetCallerIdentity"), REFUSED, "HTTP 400")


@pytest.mark.parametrize("what", ["html", "xml", "json", "binary", "empty"])
def test_what_is_no_error_document_is_told_by_its_status(aws, call, what):
    aws.fault("garbage", operation="PutObject", what=what, status=403, count=0)
    result = put(call)
    assert_failed(result, REFUSED, "HTTP 403")
    assert result["code"] == "403"


# --- 200 that is none -------------------------------------------------------------

def test_an_error_in_a_list_is_tried_again(aws, call):
    put(call)
    aws.fault("error_200", operation="ListObjectsV2", spaces=2000)
    result = call("ListObjectsV2", bucket="bucket", sink=True)
    assert_done(result, attempts=2)
    assert "<Key>key</Key>" in result["body"] and "InternalError" not in result["body"]


@pytest.mark.parametrize("fault", [{"kind": "truncate"}, {"kind": "garbage", "what": "xml"},
                                   {"kind": "garbage", "what": "empty"}, {"kind": "garbage", "what": "html"}])
def test_half_a_list_is_never_taken_for_a_whole_one(aws, call, fault):
    put(call)
    aws.fault(operation="ListObjectsV2", **fault)
    result = call("ListObjectsV2", bucket="bucket")
    if fault.get("what") == "html":  # well-formed, and it is for the reader to say that it is no list
        assert result["attempts"] == 1
    else:
        assert_done(result, attempts=2)
        assert result["body"].count("<Key>key</Key>") == 1


def test_json_that_is_cut_off_is_asked_for_again(aws, call):
    aws.client("secretsmanager").create_secret(Name="name", SecretString="words")
    aws.fault("garbage", service="secretsmanager", what="json")
    result = call("GetSecretValue", json={"SecretId": "name"})
    assert_done(result, attempts=2)
    assert result["json"]["SecretString"] == "words"


# --- bytes on the way -------------------------------------------------------------

def test_a_body_that_is_cut_off_is_read_anew(aws, call):
    put(call, body="0123456789" * 30000)
    aws.fault("truncate", operation="GetObject", bytes=100000)
    result = call("GetObject", bucket="bucket", key="key", sink=True, restart=True)
    assert_done(result, attempts=2)
    assert (result["length"], result["restarts"]) == (300000, 1)
    assert result["sha256"] == hashlib.sha256(b"0123456789" * 30000).hexdigest()


def test_a_caller_who_cannot_begin_anew_is_told(aws, call):
    put(call, body="0123456789" * 30000)
    aws.fault("truncate", operation="GetObject", bytes=100000)
    result = call("GetObject", bucket="bucket", key="key", sink=True)
    assert_failed(result, UNREACHABLE, "no usable reply")
    assert result["attempts"] == 1 and result["length"] <= 100000


def test_slow_bytes_are_waited_for(aws, call):
    put(call)
    aws.fault("slow", operation="GetObject", step=1, interval=0.02)
    result = call("GetObject", bucket="bucket", key="key")
    assert_done(result)
    assert result["body"] == BODY


def test_a_window_of_a_file_arrives_whole_after_a_reset(aws, call, tmp_path):
    content = bytes(range(256)) * 8192  # 2 MiB
    (tmp_path / "file").write_bytes(content)
    aws.fault("reset_body", operation="PutObject")
    assert_done(call("PutObject", bucket="bucket", key="key", file=str(tmp_path / "file"), offset=1000,
                     length=1500000), attempts=2)
    assert aws.objects("bucket")["key"] == content[1000:1501000]


def test_many_calls_at_once_with_faults_among_them_are_all_done_once(aws, call):
    for kind in ("throttle", "internal", "reset_before", "unavailable"):
        aws.fault(kind, operation="PutObject", nth=5, count=5)
    results = call.together([{"operation": "PutObject", "bucket": "bucket", "key": f"key {n}", "body": f"{n}"}
                             for n in range(120)])
    assert all(result["status"] == 200 for result in results), [r for r in results if r["status"] != 200]
    assert aws.effects("PutObject") == 120
    assert aws.objects("bucket") == {f"key {n}": b"%d" % n for n in range(120)}


# --- clock, token, region ---------------------------------------------------------

@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_clock_that_is_off_is_corrected_once_and_remembered(aws, call, seconds):
    aws.fault("skew", service="s3", seconds=seconds, count=0)
    mark = aws.mark()
    assert_done(put(call), attempts=2)
    assert_done(put(call), attempts=1)
    assert_done(call("HeadObject", bucket="bucket", key="key"), attempts=1)
    assert aws.requests("PutObject", since=mark) == 3
    aws.clear_faults()


def test_the_clock_is_corrected_even_where_the_reply_has_no_words(aws, call):
    put(call)
    aws.fault("skew", service="s3", seconds=7200, count=0)
    assert_done(call("HeadObject", bucket="bucket", key="key"), attempts=2)
    aws.clear_faults()


def test_a_wrong_secret_is_not_blamed_on_the_clock(aws, calls_with):
    result = put(calls_with(AWS_SECRET_ACCESS_KEY="wrong"))
    assert_failed(result, REFUSED, "SignatureDoesNotMatch")
    assert result["attempts"] == 1 and "secret key" in result["hint"] and "wrong" not in result["error"]


def test_an_expired_token_is_fetched_anew_once(aws, calls_with, tmp_path):
    counter = tmp_path / "count"
    script = tmp_path / "credentials"
    script.write_text(f"""#!/bin/sh
        echo x >> {counter}
        echo '{{"Version":1,"AccessKeyId":"AKIDEXAMPLE","SecretAccessKey":"'"$SECRET"'",
               "Expiration":"2099-01-01T00:00:00Z"}}'
    """)
    script.chmod(0o700)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text(f"[default]\ncredential_process = {script}\n")
    secret = aws.env()["AWS_SECRET_ACCESS_KEY"]
    call = calls_with(HOME=tmp_path, AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, SECRET=secret)
    assert_done(put(call))
    aws.fault("expired", operation="PutObject")
    assert_done(put(call), attempts=2)
    assert counter.read_text().split() == ["x", "x"]
    aws.fault("expired", operation="PutObject", count=0)
    assert_failed(put(call), UNREACHABLE, "ExpiredToken")  # they were good: others may come
    assert aws.requests("PutObject") == 4, "the same keys came a moment ago: no use asking again"


@pytest.mark.parametrize("others, code", [("", UNREACHABLE), ("$(wc -l < $COUNTER)", REFUSED)], ids=["the same", "others"])
def test_a_head_that_fresh_keys_do_not_cure_is_refused(aws, calls_with, tmp_path, others, code):
    """The reply to a HEAD does not say whether it was for the keys."""
    for key in ("AKID", "AKID1", "AKID2"):
        aws.add_key(key, f"secret/{key}", token=f"token/{key}", expires=None)
    script = tmp_path / "credentials"
    script.write_text(f"""#!/bin/sh
        echo x >> $COUNTER
        key=AKID{others}
        echo '{{"Version":1,"AccessKeyId":"'$key'","SecretAccessKey":"secret/'$key'","SessionToken":"token/'$key'"}}'
    """)
    script.chmod(0o700)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text(f"[default]\ncredential_process = {script}\n")
    call = calls_with(HOME=tmp_path, AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, COUNTER=tmp_path / "count")
    assert_done(put(call))
    aws.fault("error", code="InvalidRequest", status=400, operation="HeadObject", count=0)
    assert_failed(call("HeadObject", bucket="bucket", key="key"), code, "HTTP 400")
    assert aws.requests("HeadObject") == 2


def test_a_bucket_of_another_region_is_found_and_remembered(aws, call):
    aws.make_bucket("far", region="ap-south-1")
    mark = aws.mark()
    results = [call("PutObject", bucket="far", key=f"{n}", body=BODY) for n in range(3)]
    assert [result["status"] for result in results] == [200] * 3, results
    assert [result["attempts"] for result in results] == [2, 1, 1]
    assert aws.effects("PutObject", since=mark) == 3


def test_a_head_finds_the_region_too(aws, call):
    aws.make_bucket("far", region="ap-south-1")
    result = call("HeadBucket", bucket="far")
    assert result["status"] == 200, result


def test_a_service_that_sends_us_in_circles_is_not_followed(aws, call):
    aws.fault("redirect", operation="PutObject", region="ap-south-1", count=0)
    result = put(call)
    assert_failed(result, REFUSED, "PermanentRedirect")
    assert aws.requests("PutObject") == 2


def test_a_redirect_to_nowhere_is_an_error(aws, call):
    aws.fault("redirect", operation="PutObject", region="evil.example/?", count=0)
    assert_failed(put(call), REFUSED, "'evil.example/?' is not the name of an AWS region")


# --- no reply ---------------------------------------------------------------------

def test_nobody_there(aws, calls_with):
    call = calls_with(AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_MAX_ATTEMPTS="2")
    result = put(call)
    assert_failed(result, UNREACHABLE, "no usable reply from '127.0.0.1:9' in 2 attempts")
    assert result["status"] == 0 and not result["maybe_repeated"]


def test_a_peer_that_cannot_prove_itself_is_refused_at_once(tmp_path):
    from aws import Aws
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    both = tmp_path / "both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    server = Aws(tmp_path, certificate=both)
    try:
        server.make_bucket("bucket")
        stranger = Calls(server.env())
        result = put(stranger)
        assert_failed(result, REFUSED, "certificate")
        assert result["attempts"] == 1 and "AWS_CA_BUNDLE" in result["hint"]
        stranger.end()
        for name in ("AWS_CA_BUNDLE", "SSL_CERT_FILE"):
            friend = Calls(server.env(**{name: certificate}))
            assert_done(put(friend))
            friend.end()
    finally:
        server.stop()


# --- memory -----------------------------------------------------------------------

def test_memory_does_not_grow_with_what_is_sent_and_read(aws, call, tmp_path):
    """Under the sanitizers, which keep what was freed for a while: a bound on growth."""
    (tmp_path / "big").write_bytes(b"x" * (64 << 20))
    assert_done(call("PutObject", bucket="bucket", key="big", file=str(tmp_path / "big")))

    def peak():
        status = open(f"/proc/{call.process.pid}/status").read()
        return int(status.split("VmHWM:")[1].split()[0])  # KiB
    before = peak()
    assert_done(call("PutObject", bucket="bucket", key="big", file=str(tmp_path / "big")))
    assert peak() - before < 16 << 10
    assert before < 256 << 10
