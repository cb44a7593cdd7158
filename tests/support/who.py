"""who_lines in a process of its own: credentials, secrets and logs as a test asks for them,
and a world around it in which it finds some."""

import http.server
import json
import subprocess
import threading
import time

import stoker

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/worker"
# Planted wherever a secret may stand; no output may ever hold it.
CANARY = "CANARYx7Qk"
# How long keys last that are to be renewed while a test waits: no less, for who stands still for
# some seconds with keys that are shorter lived has none.
SHORT = 10
STATIC = "[{name}]\naws_access_key_id = AKID{name}\naws_secret_access_key = {canary}{name}\n"
WHO = stoker.BINARY.parent / "tests/who_lines"


class Who:
    def __init__(self, env, *options):
        self.process = subprocess.Popen([WHO, *options], env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(self, what="credentials", **fields):
        self.process.stdin.write(json.dumps({"do": what, **fields}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def ask_until(self, wanted, seconds=120):
        """Again and again, until it answers so: what it answers then."""
        end = time.monotonic() + seconds
        while not wanted(got := self.ask()):
            assert time.monotonic() < end, got
            time.sleep(0.1)
        return got

    def stop(self):
        _, errors = self.process.communicate(timeout=120)
        assert self.process.returncode == 0 and not errors, errors


class World:
    """A home with AWS files, and the stand-in around it."""

    def __init__(self, aws, home):
        self.aws, self.home, self.started = aws, home, []
        (home / ".aws").mkdir()
        self.env = {"HOME": home, "AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}

    def config(self, text):
        (self.home / ".aws/config").write_text(text)

    def shared(self, text):
        (self.home / ".aws/credentials").write_text(text)

    def start(self, *options, **env):
        self.started.append(Who(self.aws.env(**{**self.env, **env}), *options))
        return self.started[-1]

    def ask(self, *options, what="credentials", fields=None, **env):
        return self.start(*options, **env).ask(what, **(fields or {}))

    def fails(self, *parts, code=4, options=(), **env):
        """It fails for good, with these words, a hint, and no secret in either."""
        got = self.ask(*options, **env)
        words = f"{got.get('error')}\n{got.get('hint')}"
        assert got.get("exit") == code and got["hint"], got
        for part in parts:
            assert part in words, words
        assert CANARY not in words
        return got

    def stop(self):
        for who in self.started:
            who.stop()


class Server:
    """Answers whatever it is asked with the same bytes; None: never."""

    def __init__(self, answer):
        test = self
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def any(self):
                test.asked.append((self.command, self.path, dict(self.headers)))
                if answer is None:
                    test.over.wait(300)
                else:
                    self.wfile.write(answer)
                self.close_connection = True
            do_GET = do_PUT = any

            def log_message(self, *_):
                pass

        self.over = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.server.server_address[1]

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


def role(name, **keys):
    return f"[profile {name}]\nrole_arn = {ROLE}\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


def instance(world, **more):
    """Where it is asked: with patience, for one second, once, is what it has of its own."""
    return {"AWS_EC2_METADATA_DISABLED": None, "AWS_EC2_METADATA_SERVICE_ENDPOINT": world.aws.url + "/",
            "AWS_METADATA_SERVICE_TIMEOUT": 60, **more}
