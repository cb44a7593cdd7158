"""aws/s3/s3.h asked directly, through the program tests/aws/s3_calls.c:

    with Calls(aws.env()) as calls:
        assert calls("head", bucket="bucket", key="a").n == 1"""

import json
import subprocess
from types import SimpleNamespace

import stoker

PROGRAM = stoker.BINARY.parent / "tests/s3_calls"


class Calls:
    def __init__(self, env):
        self.process = subprocess.Popen([str(PROGRAM)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.process.stdout.close()
        assert code in (0, -9), f"s3_calls ended with {code}"

    def send(self, do, **members):
        self.process.stdin.write(json.dumps({"do": do, "bucket": "bucket", **members}) + "\n")
        self.process.stdin.flush()

    def __call__(self, do, **members):
        self.send(do, **members)
        line = self.process.stdout.readline()
        assert line, f"s3_calls came to an end with {self.process.wait(30)} at {do} {members}"
        return SimpleNamespace(**{"error": None, "hint": None, **json.loads(line)})
