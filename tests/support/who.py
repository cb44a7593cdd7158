"""who_lines in a process of its own: credentials, secrets and logs as a test asks for them."""

import json
import subprocess

import stoker

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

    def stop(self):
        _, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0 and not errors, errors
