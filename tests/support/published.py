"""Every line of JSON that a test sees on stdout, held against the schema that `stoker schema --of`
publishes for its command. A line that no schema has fails the test that printed it."""

import functools
import json
import os
import subprocess

import jsonschema

EVENTS = ("run", "retrain", "attach", "resume", "stop", "events")
NAMES = {"cache pull": "copy", "cache push": "copy", "cp": "copy", "wait": "status", "schedule run": "events"}
COMMANDS = (*EVENTS, "init", "validate", "plan", "status", "rm", "list", "logs", "version", "completion", "help",
            "cp", "wait", "diff", "metrics", "compare", "sweep", "report", "stats", "machines", "doctor", "export", "exec", "cache", "schedule", "schema", "complete",
            "manual", "promote", "rollback", "lineage")
# The word behind one of these is its value, and no command.
WITH_VALUE = ("--state", "--profile", "--region", "--color")


def schema_of(argv: list) -> str | None:
    """The name of the schema for what this command line prints on stdout; None: no JSON."""
    words = [os.fsdecode(word) if isinstance(word, bytes) else str(word) for word in argv]
    words = words[:words.index("--")] if "--" in words else words
    words = [word for at, word in enumerate(words) if at == 0 or words[at - 1] not in WITH_VALUE]
    at = next((at for at, word in enumerate(words) if word in COMMANDS), None)
    command = words[at] if at is not None else "error"
    helps = "--help" in words or "-h" in words
    if command in ("exec", "schema", "complete", "manual") or not ("--json" in words or (command == "events" and not helps)):
        return None
    if helps:
        return "help"
    if command in ("cache", "schedule"):
        command = " ".join(words[at:at + 2])
    if command in NAMES or command.startswith(("cache ", "schedule ")):
        return NAMES.get(command, command.replace(" ", "-"))
    if command == "run" and "--dry-run" in words:
        return "plan"
    if command == "list" and any(word.startswith("--prune") for word in words):
        return "rm"
    return "events" if command in EVENTS else command


@functools.cache
def published(binary: str, of: str) -> tuple:
    """The schema, and the names of what a line may be."""
    done = subprocess.run([binary, "schema", "--of", of], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin"})
    if done.returncode == 2:
        return published(binary, "error")
    assert done.returncode == 0, done.stderr
    schema = json.loads(done.stdout)
    return schema, tuple(way["$ref"].rpartition("/")[2] for way in schema["anyOf"])


@functools.cache
def validator(binary: str, of: str, name: str) -> jsonschema.Draft202012Validator:
    schema, _ = published(binary, of)
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


@functools.lru_cache(maxsize=1 << 16)  # a test that waits for an event reads the others again and again
def check_line(binary: str, of: str, text: str) -> None:
    line = json.loads(text)
    schema, names = published(binary, of)
    if line.get("event") in names:
        names = (line["event"],)
    # Of several alternatives the one that a line is meant to be has the most of its keys.
    wanted = sorted(names, key=lambda name: -len(line.keys() & schema["$defs"][name]["properties"].keys()))
    for name in wanted[:3]:
        if validator(binary, of, name).is_valid(line):
            return
    errors = [f"{error.json_path}: {error.message[:300]}"
              for error in validator(binary, of, wanted[0]).iter_errors(line)]
    raise AssertionError(f"'stoker schema --of {of}' ({wanted[0]}) does not have this line:\n"
                         f"{text[:2000]}\n" + "\n".join(errors))


def check(binary: str, argv: list, out: bytes | str | None) -> None:
    """Holds the whole lines of a command's stdout against its schema."""
    of = schema_of(argv)
    if of is None or not out:
        return
    text = out.decode(errors="surrogateescape") if isinstance(out, bytes) else out
    for line in text.split("\n")[:-1]:
        check_line(binary, of, line)
