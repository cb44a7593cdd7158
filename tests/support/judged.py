"""The verdicts of judge_logs.c, which is built with the tests, on logs."""

import json
import subprocess

import stoker as cli

PROGRAM = cli.BINARY.parent / "tests/judge_logs"


def said_by(cases):
    """cases: (name, nodes, exit, step expression, [(node, ms, text)]); a dict for each."""
    parts = []
    for _name, nodes, code, regex, lines in cases:
        parts.append(f"case {nodes} {code} {regex}")
        parts += [f"{node} {ms} {text}" for node, ms, text in lines]
        parts.append("end")
    done = subprocess.run([PROGRAM], input="\n".join(parts) + "\n", capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
