"""Rows of the commands that a person waits for: version, validate, plan."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

from harness import PEERS, ROOT, Bench, Goal, Row, Wrong, expect, tool

SPEC = """\
version: 1
name: text-encoder
source: {path: .}
command: [/usr/bin/python3, train.py]
hyperparameters: {lr: 3.0e-4, max_steps: 20000, batch_size: 32, seq_len: 512}
env:
  XLA_FLAGS: --xla_cpu_enable_fast_math=false
  TOKENIZERS_PARALLELISM: "false"
compile:
  kind: jax
  cache_url: cache
  max_steps: 10
  timeout: 2h
checkpoint: {keep: 3}
retry: {attempts: 20, without_progress: 5, backoff: {first: 30s, max: 15m}}
limits: {deadline: 7d, stall: auto, grace: 60s}
metrics:
  - {name: loss, regex: "loss: ([0-9.eE+-]+)"}
  - {name: step, regex: "^step: ([0-9]+)"}
tags: {team: search}
"""
LARGE_BYTES = 540_000


def project(bench: Bench) -> SimpleNamespace:
    """A spec, its script, the schema for the peer, and a spec with a mistake."""
    folder = bench.new("project")
    case = SimpleNamespace(folder=folder, spec=folder / "stoker.yaml", schema=folder / "schema.json")
    case.spec.write_text(SPEC)
    (folder / "train.py").write_bytes((ROOT / "tests/support/fake_train.py").read_bytes())
    case.schema.write_text(bench.process(bench.stoker, "schema")[1].text)
    wrong = folder / "wrong.yaml"
    wrong.write_text(SPEC.replace("batch_size: 32", "batch_size: 32").replace("retry:", "retires:"))
    for argv in ([bench.stoker, "validate", wrong], [sys.executable, PEERS / "validate.py", wrong, case.schema]):
        bench.process(*argv, code=3)
    return case


def version(bench, case):
    return bench.process(bench.stoker, "version", times=10)


def curl(bench, case):
    return bench.process(tool("curl"), "--version", times=10)


def empty(bench, case):
    return bench.process(bench.program("bench_empty"), times=10)


def check_version(bench, case, own, peer):
    if not own.text.startswith("stoker ") or not peer.text.startswith("curl "):
        raise Wrong(f"{own.text!r}, {peer.text!r}")


def validate(bench, case):
    return bench.process(bench.stoker, "validate", case.spec, times=5)


def check_validate(bench, case, own, peer):
    expect(own.text.splitlines()[0], f"{case.spec} is valid", "stoker validate")
    expect(peer.text, "valid\n", "the peer")


def plan(bench, case):
    return bench.process(bench.stoker, "--json", "plan", case.spec, times=5)


def check_plan(bench, case, own, peer):
    made = json.loads(own.text.splitlines()[0])
    expect(made["cache"]["verdict"], "cold", "the verdict")
    expect([phase["phase"] for phase in made["phases"]], ["precompile", "verify", "train"], "the phases")
    expect(peer.text, "valid\n", "the peer")


def schema_check(bench, case):
    return bench.process(sys.executable, PEERS / "validate.py", case.spec, case.schema)


def large(bench: Bench) -> SimpleNamespace:
    """As large as a spec of a thousand jobs would be: variables and hyperparameters."""
    lines, size = ["env:"], len(SPEC)
    for number in range(2000):
        lines.append(f'  BENCH_VARIABLE_{number}: "--flag-{number}=value-{number} --another={number}"')
    body = SPEC.replace("env:\n", "\n".join(lines) + "\n")
    size = len(body)
    more = []
    while size < LARGE_BYTES:
        more.append(f"  parameter_{len(more)}: {len(more) * 37 % 1000}.{len(more) % 97}e-4")
        size += len(more[-1]) + 1
    body = body.replace("hyperparameters: {", "hyperparameters:\n").replace(
        "lr: 3.0e-4, max_steps: 20000, batch_size: 32, seq_len: 512}",
        "  lr: 3.0e-4\n  max_steps: 20000\n" + "\n".join(more))
    folder = bench.new("large")
    case = SimpleNamespace(spec=folder / "stoker.yaml", folder=folder, parameters=len(more))
    case.spec.write_text(body)
    return case


def validate_large(bench, case):
    return bench.process(bench.stoker, "validate", case.spec)


def load_bare(bench, case):
    return bench.json(bench.program("bench_yaml"), case.spec)


def check_large(bench, case, own, peer):
    expect(own.text.splitlines()[0], f"{case.spec} is valid", "stoker validate")
    if peer["nodes"] < 2 * (case.parameters + 2000):
        raise Wrong(f"libyaml sees {peer['nodes']} nodes")


def check_large_mistake(bench, case):
    """Its very last parameter is still looked at."""
    mistaken = case.folder / "mistaken.yaml"
    mistaken.write_text(case.spec.read_text().replace(f"  parameter_{case.parameters - 1}:", "  'bad name':"))
    result = subprocess.run([bench.stoker, "--json", "validate", mistaken], capture_output=True, text=True)
    expect(result.returncode, 3, "the exit code for a mistake in the last line")
    expect(json.loads(result.stdout.splitlines()[0])["file"], os.fspath(mistaken), "what is blamed")


BATCH = {"version": "1", "name": "layers", "engine": "batch", "workspace": "s3://bucket/w", "image": "i:1",
         "batch": "{job_queue: q}", "command": "[python3, train.py]", "resources": "{instance: r7i.metal-48xl}"}


def layers(bench: Bench) -> SimpleNamespace:
    """One spec from three files, and in one file: its type is the last of the catalogue."""
    folder = bench.new("layers")
    case = SimpleNamespace(three=folder / "three.yaml", one=folder / "one.yaml")

    def write(path, names, more=""):
        path.write_text("".join(f"{name}: {BATCH[name]}\n" for name in names) + more)

    write(case.one, BATCH)
    write(folder / "place.yaml", ("workspace", "image"))
    write(folder / "queue.yaml", ("engine", "batch"))
    write(case.three, ("version", "name", "command", "resources"), "extends: [place.yaml, queue.yaml]\n")
    rows = [bench.process(program, "--json", "machines")[1].text.splitlines()
            for program in (bench.stoker, bench.program("bench_ten_rows"))]
    if len(rows[1]) != 10 or rows[0][-1] != rows[1][-1] or len(rows[0]) < 140:
        raise Wrong(f"catalogues of {len(rows[0])} and {len(rows[1])} rows")
    return case


def validate_three(bench, case):
    return bench.process(bench.stoker, "validate", case.three, times=10)


def validate_one(bench, case):
    return bench.process(bench.program("bench_ten_rows"), "validate", case.one, times=10)


def check_layers(bench, case, own, peer):
    expect(own.text.splitlines()[0], f"{case.three} is valid", "three files")
    expect(peer.text.splitlines()[0], f"{case.one} is valid", "one file")


SPEC_ROWS = [
    Row("version", "stoker version", "curl --version", "an empty C program", Goal(1.0), "s", project, version, curl,
        empty, check_version, pairs=15),
    Row("validate", "validate a spec", "yaml+jsonschema", "an empty C program", Goal(1 / 15), "s", project, validate,
        schema_check, empty, check_validate),
    Row("layers", "validate 3 files, catalogue of 141 rows", "1 file, catalogue of 10", "an empty C program", Goal(1.2),
        "s", layers, validate_three, validate_one, empty, check_layers, pairs=15),
    Row("plan", "plan a spec", "yaml+jsonschema", "an empty C program", Goal(1 / 15), "s", project, plan, schema_check,
        empty, check_plan),
    Row("large", "validate 540 KB of spec", "bare libyaml", "an empty C program", Goal(4.0), "s", large, validate_large,
        load_bare, empty, check_large, last=check_large_mistake),
]
