"""`notify`: who is named in the spec is told, at least once, and the run never waits."""

import json
import signal
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import stoker as cli

TOLD = """#!/bin/sh
line=$(cat)
printf '%s\\n' "$line" >> told
"""


def told(project) -> list:
    path = project.source / "told"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def pager(project, text=TOLD, name="page-me"):
    path = project.source / name
    path.write_text(text)
    path.chmod(0o755)
    return [f"./{name}"]


def rules(project, command, *when, **more):
    project.write(notify=[{"when": list(when), "command": command}],
                  source={"path": ".", "include": ["*.py"]}, **more)


def test_a_command_gets_the_event_on_its_input(project):
    rules(project, pager(project), "started", "succeeded", "failed")
    project.run("--id", "one")
    started, succeeded = told(project)
    assert started["event"] == "run.created" and started["occasion"] == "started"
    assert "plan" not in started
    assert succeeded["event"] == "run.ended" and succeeded["state"] == "succeeded"
    assert succeeded["name"] == "fake" and succeeded["run"] == "one"
    assert succeeded["text"] == "run one of fake has succeeded: training succeeded"
    assert started["id"] != succeeded["id"]
    sent = project.events(kind="notify.sent")
    assert sorted(row["about"] for row in sent) == sorted([started["seq"], succeeded["seq"]])


def test_a_command_knows_the_run_and_nothing_that_is_secret(project):
    env = pager(project, "#!/bin/sh\nenv > told.env\n")
    rules(project, env, "succeeded", secrets={"TOKEN": "env:TOKEN"})
    project.run("--id", "one", env={"TOKEN": "canary", "OTHER": "stray"})
    seen = (project.source / "told.env").read_text()
    assert "STOKER_RUN=one" in seen and "STOKER_OCCASION=succeeded" in seen
    assert "canary" not in seen and "stray" not in seen


@pytest.mark.parametrize("exit_code, occasion", [(1, "failed"), (0, "succeeded")])
def test_only_those_who_asked_for_it_are_told(project, exit_code, occasion):
    first, second = pager(project), pager(project, TOLD.replace("told", "other"), "other-me")
    project.write(notify=[{"when": [occasion], "command": first}, {"when": ["stopped", "gate"], "command": second}],
                  source={"path": ".", "include": ["*.py"]})
    project.extra("raise ValueError('wrong')\n" if exit_code else "")
    project.run(code=exit_code)
    assert [message["occasion"] for message in told(project)] == [occasion]
    assert not (project.source / "other").exists()


def test_a_gate_is_an_occasion(project):
    rules(project, pager(project), "gate")
    project.extra("import time\ntime.sleep(600)\n")
    project.run("--set", "limits.deadline=2s", "--set", "checkpoint.grace=0s", code=5)
    (message,) = told(project)
    assert message["occasion"] == "gate" and "limits.deadline" in message["text"]


def test_who_fails_at_first_is_told_again(project):
    flaky = pager(project, "#!/bin/sh\necho try >> tries\n[ $(wc -l < tries) -ge 3 ] || exit 9\ncat >> told\n")
    rules(project, flaky, "succeeded")
    project.run()
    assert len(told(project)) == 1
    assert (project.source / "tries").read_text().count("try") == 3
    assert len(project.events(kind="notify.sent")) == 1


def test_one_who_says_much_is_heard_to_the_end(project):
    """More than a pipe holds, after more than is kept of it."""
    rules(project, pager(project, "#!/bin/sh\nhead -c 1000 /dev/zero >&2\nsleep 0.3\necho line >&2\nsleep 0.3\n"
                                  "head -c 300000 /dev/zero >&2\ncat >> told\n"), "succeeded")
    project.run()
    assert len(told(project)) == 1 and len(project.events(kind="notify.sent")) == 1


def runs_until_tried(project, count):
    """The job ends when a command that notes its tries has made so many."""
    tries = project.source / "tries"
    tries.touch()
    project.extra(f"import time\nwhile len(open({str(tries)!r}).readlines()) < {count}:\n    time.sleep(0.1)\n")


def test_one_who_is_tried_again_does_not_delay_another(project):
    # Its fifth try, which is the last one, waits for the other.
    failing = pager(project, "#!/bin/sh\necho try >> tries\n[ $(wc -l < tries) -lt 5 ] || "
                             "while [ ! -s told ]; do sleep 0.1; done\nexit 1\n", "page-nobody")
    project.write(source={"path": ".", "include": ["*.py"]}, compile=None, notify=[
        {"when": ["started"], "command": failing}, {"when": ["succeeded"], "command": pager(project)}])
    runs_until_tried(project, 3)  # the pause before the fourth one has begun
    project.run("--id", "one")
    rows = {row["about"]: row for row in project.events("one", "notify.sent")}
    (ended,) = project.events("one", "run.ended")
    sent = rows[ended["seq"]]
    (failed,) = project.events("one", "notify.failed")
    assert sent["seq"] < failed["seq"]


def test_one_who_hangs_does_not_hold_the_run(project):
    rules(project, pager(project, "#!/bin/sh\nexec sleep 600\n"), "started")
    process = project.start("run", project.spec_path, "--id", "one")
    try:
        for _ in range(1200):
            if project.stoker("--json", "status", "one").out.count('"succeeded"'):
                break
            time.sleep(0.1)
        else:
            pytest.fail("the run waited for its messenger")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=cli.SECONDS)
    assert process.returncode == 0
    assert project.events("one", "notify.sent") == []


def test_what_a_killed_driver_did_not_tell_the_next_one_tells(project):
    blocked = pager(project, "#!/bin/sh\nwhile [ ! -e open ]; do sleep 0.1; done\ncat >> told\n")
    rules(project, blocked, "succeeded")
    process = project.start("run", project.spec_path, "--id", "one")
    for _ in range(1200):
        if project.stoker("--json", "status", "one").out.count('"succeeded"'):
            break
        time.sleep(0.1)
    process.kill()
    process.communicate(timeout=cli.SECONDS)
    assert project.events("one", "notify.sent") == []
    (project.source / "open").touch()
    assert project.stoker("resume", "one").code == 0
    messages = told(project)
    assert messages and len({message["id"] for message in messages}) == 1
    assert len(project.events("one", "notify.sent")) == 1
    assert project.stoker("resume", "one").code == 0
    assert len(project.events("one", "notify.sent")) == 1


def test_a_limit_ahead_is_an_occasion(project):
    rules(project, pager(project), "at_risk", limits={"deadline": "2m"})
    project.extra("import time\ndef step(number, args):\n    time.sleep(0.1)\n")
    process = project.start("run", project.spec_path, "--id", "one", "--set", "hyperparameters.max_steps=4000")
    try:
        for _ in range(1200):
            if told(project):
                break
            time.sleep(0.1)
    finally:
        project.stoker("stop", "one")
        process.communicate(timeout=cli.SECONDS)
    (message,) = told(project)
    assert message["occasion"] == "at_risk" and message["limit"] == "deadline"
    assert "after the deadline" in message["reason"]
    assert project.status("one")["at_risk"][0]["limit"] == "deadline"


class Hook:
    """An HTTPS service on loopback that keeps what is posted to it."""

    def __init__(self, folder, answers):
        self.posts, self.answers = [], list(answers)
        self.cert, key = folder / "cert.pem", folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", self.cert],
                       check=True, capture_output=True)
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.posts.append((self.path, self.headers["Content-Type"], json.loads(body)))
                self.send_response(hook.answers.pop(0) if hook.answers else 200)
                self.send_header("Location", "https://localhost:1/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"https://localhost:{self.server.server_port}/hook/t0ken"


@pytest.fixture
def hook(tmp_path, request):
    service = Hook(tmp_path, getattr(request, "param", []))
    yield service
    service.server.shutdown()
    service.server.server_close()


@pytest.mark.parametrize("hook", [[503, 302]], indirect=True)
def test_a_webhook_gets_the_event_by_post_until_it_takes_it(project, hook):
    project.write(notify=[{"when": ["succeeded"], "webhook": hook.url}])
    project.run(env={"SSL_CERT_FILE": str(hook.cert)})
    assert [path for path, _, _ in hook.posts] == ["/hook/t0ken"] * 3
    _, kind, message = hook.posts[-1]
    assert kind == "application/json" and message["state"] == "succeeded"
    assert len({message["id"] for _, _, message in hook.posts}) == 1
    assert len(project.events(kind="notify.sent")) == 1


def test_who_never_works_is_given_up_and_named(project, hook):
    """All in one run, for it takes five tries: a command that fails, one that is not
    there, a webhook that cannot prove who it is."""
    deaf = pager(project, "#!/bin/sh\necho try >> tries\necho 'no route to \033[31mpager' >&2\nexit 3\n")
    project.write(source={"path": ".", "include": ["*.py"]}, compile=None, notify=[
        {"when": ["started"], "command": deaf}, {"when": ["started"], "command": ["./page-nobody"]},
        {"when": ["started"], "webhook": hook.url}])
    runs_until_tried(project, 5)
    result = project.run()
    why = {row["rule"]: row["reason"] for row in project.events(kind="notify.failed")}
    assert why[0].startswith("started: no route to ")
    assert "program './page-nobody' not found" in why[1]
    assert "localhost" in why[2] and "certificate" in why[2] and hook.posts == []
    assert "t0ken" not in result.text + str(why) and "\033" not in result.err
    assert "notify[0] failed" in result.err
    assert {row["rule"]: row["reason"] for row in project.status()["untold"]} == why
