"""Rows of promoted models."""

import json
from pathlib import Path
from types import SimpleNamespace

from harness import Bench, Goal, Row, expect, tool

FILES, FILE_BYTES = 8, 64 << 20
TRAIN = f"""import json, os
from pathlib import Path

folder = Path(os.environ["STOKER_CHECKPOINT_DIR"]) / "step-1"
folder.mkdir(parents=True)
sizes = {{"step": 1}}
for number in range({FILES}):
    name = f"part{{number}}.bin"
    (folder / name).write_bytes(os.urandom({FILE_BYTES}))
    sizes[f"part{{number}}_bytes"] = {FILE_BYTES}
(folder / "meta.json").write_text(json.dumps(sizes))
print("step: 1", flush=True)
"""


def promoted(bench: Bench) -> SimpleNamespace:
    """A model of half a gigabyte, promoted twice with a version between."""
    folder = bench.new("promoted")
    (folder / "train.py").write_text(TRAIN)
    (folder / "stoker.yaml").write_text(json.dumps({
        "version": 1, "name": "bench", "command": ["/usr/bin/python3", "train.py"],
        "workspace": str(folder / "workspace"), "source": {"include": ["train.py"]},
        "compile": {"kind": "none"}, "checkpoint": {"kind": "files"},
        "metrics": [{"name": "step", "regex": "^step: ([0-9]+)"}]}))
    state = ("--state", folder / "state")
    for run in ("one", "two"):
        bench.process(bench.stoker, *state, "run", folder / "stoker.yaml", "--id", run)
        bench.process(bench.stoker, *state, "promote", run)
    bench.process(bench.stoker, *state, "rollback", "--reason", "bench")
    models = folder / "workspace/models/bench"
    files = sorted(str(path) for path in models.rglob("*") if path.is_file() and not path.name.startswith("."))
    return SimpleNamespace(models=models, files=files)


def verify(bench, case):
    wall, result = bench.process(bench.stoker, "--json", "lineage", case.models, "--verify")
    return wall, json.loads(result.text.splitlines()[-1])


def sums(bench, case):
    wall, result = bench.process(tool("sha256sum"), *case.files)
    return wall, result.text.splitlines()


def check_verified(bench, case, own, peer):
    expect((own["verified"], own["entries"]), (True, 3), "the chain")
    expect(len(peer), own["objects"] + own["entries"] + 1, "the objects and the pointer")
    expect(own["size_bytes"] > 2 * FILES * FILE_BYTES, True, "that all was read")


def check_damage(bench, case):
    """Speed must not come from looking away: one changed byte is found."""
    path = Path(next(name for name in case.files if name.endswith("part5.bin")))
    with path.open("r+b") as file:
        file.seek(FILE_BYTES // 2)
        byte = file.read(1)
        file.seek(FILE_BYTES // 2)
        file.write(bytes([byte[0] ^ 1]))
    _, result = bench.process(bench.stoker, "--json", "lineage", case.models, "--verify", code=5)
    found = [json.loads(line).get("object") for line in result.text.splitlines()[:-1]]
    expect(found, [str(path.relative_to(case.models))], "the changed object")


TASKS = 1000
TASK = ["/usr/bin/python3", "-c", "import json"]
SAVE = """import json, os
from pathlib import Path

folder = Path(os.environ["STOKER_CHECKPOINT_DIR"]) / "step-1"
folder.mkdir(parents=True)
(folder / "meta.json").write_text(json.dumps({"step": 1}))
(folder / "weights.bin").write_bytes(b"w")
print("step: 1", flush=True)
"""


def shards(bench: Bench) -> SimpleNamespace:
    """A spec that infers in a thousand shards."""
    folder = bench.new("shards")
    (folder / "data").mkdir()
    for number in range(TASKS):
        (folder / "data" / f"part-{number:04}").write_text(str(number))
    (folder / "train.py").write_text(SAVE)
    (folder / "stoker.yaml").write_text(json.dumps({
        "version": 1, "name": "bench", "command": ["/usr/bin/python3", "train.py"],
        "workspace": str(folder / "workspace"), "source": {"include": ["train.py"]},
        "compile": {"kind": "none"}, "checkpoint": {"kind": "files"}, "data": {"url": str(folder / "data"), "settle": 0},
        "infer": {"command": TASK, "output": str(folder / "outputs"), "shards": TASKS},
        "metrics": [{"name": "step", "regex": "^step: ([0-9]+)"}]}))
    return SimpleNamespace(folder=folder, runs=0)


def infer(bench, case):
    """Of a run that has trained already."""
    case.runs += 1
    run = f"run-{case.runs}"
    argv = ("--state", case.folder / "state", "run", case.folder / "stoker.yaml", "--id", run)
    bench.process(bench.stoker, *argv, "--until", "train")
    wall, _ = bench.process(bench.stoker, *argv)
    done = case.folder / "workspace/runs" / run / "tasks/infer"
    return wall, (len([*done.glob("shard-*/done.json")]), (case.folder / "outputs" / run / "manifest.json").exists())


def loop(bench, case):
    words = " ".join(f"'{word}'" for word in TASK)
    return bench.process(tool("sh"), "-c", f"for shard in $(seq {TASKS}); do {words} || exit; done")


def check_tasks(bench, case, own, peer):
    expect(own, (TASKS, True), "tasks done, and their manifest")


def scheduled(bench: Bench) -> SimpleNamespace:
    """A schedule in a local state whose turn of the day has run."""
    folder = bench.new("scheduled")
    (folder / "data").mkdir()
    (folder / "data/part").write_text("1")
    (folder / "train.py").write_text(SAVE)
    (folder / "stoker.yaml").write_text(json.dumps({
        "version": 1, "name": "bench", "command": ["/usr/bin/python3", "train.py"],
        "workspace": str(folder / "workspace"), "source": {"include": ["train.py"]},
        "compile": {"kind": "none"}, "checkpoint": {"kind": "files"}, "data": {"url": str(folder / "data"), "settle": 0},
        "promote": {"when": "always"}, "schedule": {"cron": "0 3 * * *"},
        "metrics": [{"name": "step", "regex": "^step: ([0-9]+)"}]}))
    tools = folder / "tools"
    tools.mkdir()
    (tools / "crontab").write_text("#!/bin/sh\ncase $1 in -l) echo 'no crontab for me' >&2; exit 1;; -) cat >/dev/null;; esac\n")
    (tools / "crontab").chmod(0o755)
    case = SimpleNamespace(state=folder / "state", at="2031-01-01T03:00:10Z")
    bench.process(bench.stoker, "--state", case.state, "schedule", "add", folder / "stoker.yaml", "--to", "cron",
                  env={"PATH": f"{tools}:/usr/bin:/bin"})
    alarm(bench, case)
    case.at = "2031-01-01T17:00:00Z"
    return case


def alarm(bench, case):
    return bench.process(bench.stoker, "--state", case.state, "schedule", "run", "bench", "--at", case.at)


def version(bench, case):
    return bench.process(bench.stoker, "version")


def check_alarm(bench, case, own, peer):
    expect(own.text, "bench: not due: its run has ended; next due 2031-01-02T03:00Z\n", "stoker schedule run")


MODEL_ROWS = [
    Row("lineage", "verify a promoted model, 1 GiB", "sha256sum", "", Goal(1.5), "s", promoted, verify, sums, None,
        check_verified, last=check_damage, pairs=5),
    Row("tasks", "infer in 1,000 tasks of one command", "a shell's loop", "", Goal(1.5), "s", shards, infer, loop, None,
        check_tasks, pairs=3),
    Row("alarm", "schedule run, not due, local state", "stoker version", "", Goal(3.0), "s", scheduled, alarm, version, None,
        check_alarm, pairs=15),
]
