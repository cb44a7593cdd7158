"""Rows of many jobs: watched and submitted through one handle of an engine, beside boto3, with
the same stand-in as server. What is held to a goal is the client's CPU of one job."""

import json
import os
from types import SimpleNamespace

from harness import PEERS, ROOT, Bench, Goal, Row, expect
from rows_aws import AWS_PYTHON, CPUS, server

JOBS, SUBMITS = 1000, 100
MAKER = ROOT / "tests/support/many.py"


def make(bench: Bench, what: str, count: int) -> SimpleNamespace:
    aws = bench.once(server).aws
    aws.reset()
    root = bench.new(what)
    bench.process(AWS_PYTHON, MAKER, aws.port, root, count, what, env=aws.env(HOME=str(bench.scratch)))
    return SimpleNamespace(aws=aws, root=root, engine=what, count=0)


def begun(engine: str):
    def setup(bench: Bench) -> SimpleNamespace:
        """A thousand jobs that run, as boto3 and as the engine know them."""
        case = make(bench, engine, JOBS)
        rows = [line.split() for line in (case.root / "names").read_text().splitlines()]
        case.peers = case.root / "peers"
        ids = [json.loads((case.root / "workspace" / prefix / "engine.json").read_text())["id"] if engine == "batch"
               else name for name, prefix in rows]
        case.peers.write_text("".join(f"{name} {job}\n" for (name, _), job in zip(rows, ids, strict=True)))
        return case
    return setup


def lines_of(bench: Bench, case, *argv) -> list:
    """On the core that is not the server's."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {CPUS[0]})
    try:
        _, said = bench.process(*argv, env=case.aws.env(HOME=str(bench.scratch)))
    finally:
        os.sched_setaffinity(0, before)
    return [json.loads(line) for line in said.text.splitlines()]


def watch_own(bench: Bench, case):
    """The second look: the first one has opened connections and read what was there."""
    lines = lines_of(bench, case, bench.program("bench_many"), "watch", case.engine, case.root / "workspace",
                     case.root / "plan.json", case.root / "names", 2, 2200)
    expect([line.get("error") for line in lines], [None, None], "what went wrong")
    return lines[1]["cpu"] / JOBS, lines[1]["states"]


def watch_peer(bench: Bench, case):
    lines = lines_of(bench, case, AWS_PYTHON, PEERS / "jobs.py", "watch", case.engine, case.peers, 2)
    return lines[1]["cpu"] / JOBS, lines[1]["states"]


def check_watch(bench: Bench, case, own, peer):
    expect((own, peer), ({"running": JOBS}, {"running": JOBS}), "the states")


def to_submit(bench: Bench) -> SimpleNamespace:
    return make(bench, "submits", 1)


def names_for(case, who: str):
    """Names that nobody has submitted yet."""
    case.count += 1
    path = case.root / f"names-{case.count}"
    path.write_text("".join(f"stk-{who}{case.count}x{number}-train-1 runs/{who}{case.count}x{number}/train-1/\n"
                            for number in range(SUBMITS)))
    return path


def submit_own(bench: Bench, case):
    line, = lines_of(bench, case, bench.program("bench_many"), "submit", "batch", "s3://bucket/stoker",
                     case.root / "plan.json", names_for(case, "own"), 1, 0)
    return line["cpu"] / SUBMITS, line["states"]


def submit_peer(bench: Bench, case):
    line, = lines_of(bench, case, AWS_PYTHON, PEERS / "jobs.py", "submit", "batch", names_for(case, "peer"), 1)
    return line["cpu"] / SUBMITS, line["states"]


def check_submits(bench: Bench, case, own, peer):
    expect((own, peer), ({"submitted": SUBMITS}, {"submitted": SUBMITS}), "what was submitted")


JOB_ROWS = [
    Row("watch-batch", f"CPU to see how one of {JOBS} jobs of AWS Batch goes", "boto3", "", Goal(0.04), "s",
        begun("batch"), watch_own, watch_peer, None, check_watch, pairs=5),
    Row("watch-sagemaker", f"CPU to see how one of {JOBS} jobs of SageMaker goes", "boto3", "", Goal(0.04), "s",
        begun("sagemaker"), watch_own, watch_peer, None, check_watch, pairs=3),
    Row("submit", f"CPU of one of {SUBMITS} submits to AWS Batch that are made once", "boto3's SubmitJob alone", "",
        Goal(1), "s", to_submit, submit_own, submit_peer, None, check_submits, pairs=3),
]
