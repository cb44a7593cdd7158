#!/usr/bin/env python3
"""The golden specs through the real program: tests/golden/run.py STOKER.

unit_spec_golden holds every message to the letter; this holds the command to
it: exit code, streams, places and hints, in both forms of output.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = Path(__file__).parent / "spec"
PLACE = re.compile(r"^(.*?)(?::(\d+):(\d+))?: (warning: )?(.*)$")


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def wanted(case):
    """Whether it is valid, and (file, line, column, lint, message, hint) a problem."""
    text = lines(case / "want.txt")
    found = []
    for at, line in enumerate(text):
        if line.startswith(("$SPEC", "--set")):
            file, row, column, lint, message = PLACE.match(line).groups()
            hint = text[at + 2].removeprefix("    hint: ")
            found.append((file, int(row or 0), int(column or 0), bool(lint), message, hint))
    return text[0] == "valid", found


def unescape(text):
    out = re.sub(rb"\\(x..|.)", lambda m: bytes([int(m[1][1:], 16)]) if m[1][:1] == b"x" else
                 {b"n": b"\n", b"t": b"\t"}.get(m[1], m[1]), text.encode())
    return out


def spec_bytes(case):
    if (case / "spec.yaml").exists():
        return (case / "spec.yaml").read_bytes()
    pieces = (line.split(" ", 1) for line in lines(case / "spec.gen"))
    return b"".join(unescape(text) * int(count) for count, text in pieces)


def run(stoker, case, path, *options):
    env = dict(line.split("=", 1) for line in lines(case / "env.txt"))
    sets = [word for line in lines(case / "sets.txt") for word in ("--set", line)]
    return subprocess.run([stoker, *options, "validate", path, *sets], env=env, timeout=20,
                          capture_output=True)


def visible(text):
    """As text_escape of the C test leaves it, for the few controls in messages."""
    return re.sub(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", lambda m: f"\\x{ord(m[0]):02x}", text)


def check(stoker, case, path):
    valid, want = wanted(case)
    path.write_bytes(spec_bytes(case))
    machine = run(stoker, case, path, "--json")
    human = run(stoker, case, path, "--color", "never")
    said = [json.loads(line) for line in machine.stdout.decode().splitlines()]
    got = [("--set" if row["file"] == "--set" else "$SPEC", row["line"], row["column"],
            row.get("lint", False), visible(row["message"]), visible(row["hint"])) for row in said]
    code = 0 if valid else 3
    problems = []
    if machine.returncode != code or human.returncode != code:
        problems.append(f"exit {machine.returncode} and {human.returncode}, not {code}")
    if got != want:
        problems.append(f"said {got}\nnot  {want}")
    text = (human.stdout + human.stderr).decode()
    for _, row, column, _, _, hint in want[:5]:
        if row and f":{row}:{column}: " not in text or hint not in text:
            problems.append(f"{row}:{column} or its hint is not in:\n{text}")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text):
        problems.append("a control character reaches the terminal")
    return problems


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = sorted(case for kind in ("bad", "good") for case in (CASES / kind).iterdir())
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            problems = check(sys.argv[1], case, Path(folder) / "spec.yaml")
            failed += bool(problems)
            for problem in problems:
                print(f"{case.parent.name}/{case.name}: {problem}")
    print(f"{len(cases)} golden specs, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
