"""Logs of programs that nobody tuned the table of failures on: 200 of jobs that train and die
without a word, 100 of jobs of 8 to 32 ranks whose first cause is followed by the others' end."""

import random
from pathlib import Path

import failure_logs
import progress_logs
import pytest
from judged import said_by

HARMFUL = ("stop", "fall_back")  # to go back to an older checkpoint is done once, then it stops too


def test_no_silent_death_after_ordinary_progress_stops_a_run():
    cases = list(progress_logs.logs())
    assert len(cases) == 200 and all(300 <= len(case[4]) <= 2100 for case in cases)
    said = said_by(cases)
    assert len(said) == len(cases)
    wrong = [f"{case[0]}: {row['class']} ({row['rule']}): {row['evidence'][:300]}" for case, row in zip(cases, said, strict=True)
             if row["action"] in HARMFUL]
    print(f"{len(cases)} progress logs, {sum(len(case[4]) for case in cases)} lines: {len(wrong)} stopped")
    assert not wrong, "\n".join(wrong)


def judged_right(row, classes, holds):
    """The class, the line itself, and no frames of the ranks that only lost a peer."""
    own = "comm" in classes or "distributed_c10d" not in row["evidence"]
    return row["class"] in classes and holds in row["evidence"] and own


def test_the_first_cause_of_many_ranks_is_named():
    known = failure_logs.logs()
    assert len(known) == 100 and all(len(case[4]) >= 500 for case, _ in known)
    said = said_by([case for case, _ in known])
    assert len(said) == len(known)
    wrong, stopped = [], []
    for (case, (classes, holds)), row in zip(known, said, strict=True):
        text = f"{case[0]}: {row['class']} ({row['rule']}), not {classes}: {row['evidence'][:600]}"
        if not judged_right(row, classes, holds):
            wrong.append(text)
        if set(classes) <= failure_logs.TRANSIENT and row["action"] in HARMFUL:
            stopped.append(text)
    print(f"{len(known)} failure logs: the first cause named in {len(known) - len(wrong)}, {len(stopped)} transient ones stopped")
    print("\n".join(wrong))
    assert not stopped, "\n".join(stopped)
    assert len(wrong) <= 5, "\n".join(wrong)


# What Open MPI 4.1.4 and torchrun of PyTorch 2.0.1 themselves printed of 8 ranks, of which one failed so
# and some of the others lost a peer. No metric of theirs is known: a rank that waits for nobody goes on.
REAL = Path(__file__).resolve().parents[1] / "corpus" / "real"
ENDS = {
    "mpirun-value": (1, "user-code", "Expected input batch_size (32)"),
    "mpirun-kill": (137, "unknown", "SIGKILL"),
    "mpirun-exit": (1, "unknown", ""),
    "mpirun-enospc": (1, "user-config", "No space left on device"),
    "mpirun-conn": (1, "comm", "socket.create_connection"),
    "mpirun-data": (1, "user-config", "/data/shard"),
    "mpirun-segv": (139, "unknown", "SIGSEGV"),
    "torchrun-kill": (1, "unknown", "SIGKILL"),
    "torchrun-exit": (1, "unknown", ""),
    "torchrun-enospc": (1, "user-config", "No space left on device"),
    "torchrun-conn": (1, "comm", "socket.create_connection"),
    "torchrun-data": (1, "user-config", "/data/shard"),
    "torchrun-segv": (1, "unknown", "SIGSEGV"),
}


def test_what_launchers_really_print_is_judged_by_its_first_cause():
    assert {path.stem for path in REAL.glob("*.log")} == set(ENDS)
    cases = [(name, 1, ENDS[name][0], "^no metric ([0-9]+)", [(0, 40 * at, line) for at, line in enumerate(
        (REAL / f"{name}.log").read_text().splitlines())]) for name in ENDS]
    wrong = [f"{case[0]}: {row['class']} ({row['rule']}): {row['evidence'][:300]}"
             for case, row in zip(cases, said_by(cases), strict=True)
             if row["class"] != ENDS[case[0]][1] or ENDS[case[0]][2] not in row["evidence"]]
    assert not wrong, "\n".join(wrong)


# How frameworks pass on what failed beneath them: a name or number of nrt_status.h, a code of S3,
# and the words of Megatron-LM (training.py, param_and_grad_buffer.py) and Transformers (trainer.py).
PASSED_ON = [
    ("RuntimeError: Bad StatusOr access: INTERNAL: nrt_execute status=1202", "hardware-node"),
    ("2026-Nov-25 03:14:07.512000 4711:4720 ERROR   NRT:nrt_infodump      Failure: NRT_EXEC_HW_ERR_HBM_UE in nrt_execute()", "hardware-node"),
    ("2026-Nov-25 03:14:07.512000 4711:4720 ERROR   NRT:nrt_infodump      Failure: NRT_EXEC_OOB in nrt_execute()", "user-code"),
    ("RuntimeError: nrt_execute status=1003", "data"),
    ("NCCL WARN NET/OFI Unable to insert remote address into address vector for device 0. RC: -22", "user-config"),
    ("botocore.exceptions.ClientError: An error occurred (503) when calling the HeadObject operation (reached max retries: 4)", "transient-infra"),
    ("AssertionError: Rank 3: found NaN in local grad norm in backward pass before data-parallel communication collective. Device: 3, node: n0", "data"),
    ("ValueError: Can't find a valid checkpoint at /ckpt/checkpoint-400", "data"),
    ("torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([3])\nTraceback (most recent call last): (RANK 3)\n"
     '  File "/l/torch/distributed/checkpoint/utils.py", line 214, in reduce_scatter\n    local_data = map_fun()\n'
     "OSError: [Errno 28] No space left on device: '/ckpt/step-400/__3_0.distcp'", "user-config"),
    ("RecursionError: maximum recursion depth exceeded while calling a Python object", "user-code"),
]


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun"])
def test_what_is_passed_on_by_name_or_number_is_known(launcher):
    cases = []
    for text, _ in PASSED_ON:
        own = failure_logs.trace(text, failure_logs.STEP) if "Error: " in text else [text]
        peers = failure_logs.trace("ConnectionResetError: [Errno 104] Connection reset by peer", failure_logs.STEP, failure_logs.BACKEND)
        said = [f"step {n}" for n in range(300)]
        said += [failure_logs.label(launcher, 3, line, len(own) > 1) for line in own]
        said += [failure_logs.label(launcher, rank, line, True) for rank in range(8) if rank != 3 for line in peers]
        said += progress_logs.mpirun(3) if launcher == "mpirun" else progress_logs.torchrun(3, 1)
        cases.append((text, 1, 1, r"^step (\d+)", [(0, 100 * at, line) for at, line in enumerate(said)]))
    said = said_by(cases)
    wrong = [f"{text}: {row['class']} ({row['rule']}), not {name}" for (text, name), row in zip(PASSED_ON, said, strict=True)
             if row["class"] != name or text[-30:] not in row["evidence"]]
    assert not wrong, "\n".join(wrong)


# How clusters label the lines of a job: DeepSpeed's pdsh (docs of deepspeed.launcher), Ray in colours
# (docs of ray.init(log_to_driver)), docker logs --timestamps, Compose.
CLUSTERS = {
    "pdsh": lambda rank, at: f"worker-{rank // 4}: [rank{rank}]: ",
    "pdsh-addresses": lambda rank, at: f"10.0.3.{rank}: ",
    "ray": lambda rank, at: f"\x1b[36m(RayTrainWorker pid={4000 + rank}, ip=10.0.3.{rank // 4})\x1b[0m ",
    "timestamps": lambda rank, at: f"2026-11-25T03:14:{at % 60:02}.{at:06}Z [rank{rank}]: ",
    "compose": lambda rank, at: f"trainer-{rank:<2} | ",
}


@pytest.mark.parametrize("first", [0, 3, 11])
def test_ranks_are_told_apart_as_clusters_label_them(first):
    own = failure_logs.trace("KeyError: 'labels'", failure_logs.STEP)
    peers = failure_logs.trace("ConnectionResetError: [Errno 104] Connection reset by peer", failure_logs.STEP, failure_logs.BACKEND)
    draw, cases = random.Random(first), []
    for name, label in CLUSTERS.items():
        said = [(0, f"step: {n}") for n in range(300)] + [(first, own[0])]
        said += failure_logs.mix({rank: own[1:] if rank == first else peers for rank in range(12)}, draw)
        cases.append((name, 1, 1, r"step: (\d+)", [(0, 100 * at, label(rank, at) + text) for at, (rank, text) in enumerate(said)]))
    wrong = [f"{case[0]}: {row['class']} ({row['rule']}): {row['evidence'][:300]}" for case, row in zip(cases, said_by(cases), strict=True)
             if row["class"] != "user-code" or not row["evidence"].endswith("KeyError: 'labels'") or "distributed_c10d" in row["evidence"]]
    assert not wrong, "\n".join(wrong)


# What healthy programs print, and what sounds like a failure where it is the last that a node said.
SOUNDS = ["Could not estimate the number of tokens of the input, floating-point operations will not be computed",
          "Cannot import hpu, error is: No module named 'habana_frameworks'", "NCCL INFO Failed to open libibverbs.so[.1]"]


@pytest.mark.parametrize("where", [0, 2, 3])
@pytest.mark.parametrize("own, name", [(failure_logs.trace("KeyError: 'labels'", failure_logs.STEP), "user-code"),
                                       (["torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined."], "comm")])
def test_what_a_healthy_node_said_last_is_no_cause_beside_anothers(own, name, where):
    lines = [(0, 100 * n, f"step: {n}") for n in range(200)]
    lines += [(node, 20000, SOUNDS[node % 3]) for node in range(4) if node != where]
    lines += [(where, 20000 + at, text) for at, text in enumerate(own)]
    (row,) = said_by([("nodes", 4, 1, r"step: (\d+)", lines)])
    assert row["class"] == name and own[-1] in row["evidence"], row


PRINTS = """
import os
import signal
import sys


def start(args):
    if os.environ["STOKER_PHASE"] != "train":
        return
    with open("said.log", encoding="utf-8") as said:
        sys.stdout.write(said.read())
    sys.stdout.flush()
    if {code} > 128:
        os.kill(os.getpid(), {code} - 128)
    os._exit({code})
"""


def plays(project, case):
    """The job prints the log and dies so; its first attempt to train, as status tells it."""
    project.extra(PRINTS.format(code=case[2] if case[2] != 247 else 137))
    (project.source / "said.log").write_text("".join(f"{text}\n" for _, _, text in case[4]), encoding="utf-8")
    project.write(retry={"attempts": 1, "backoff": {"first": "0s", "max": "0s"}},
                  metrics=[] if case[3] == "-" else [{"name": "step", "regex": case[3]}])
    project.run(code=None)
    return next(row for row in project.status()["attempts"] if row["phase"] == "train")


@pytest.mark.parametrize("nth", [0, 5, 43, 104])
def test_a_job_that_prints_it_and_dies_silently_is_not_stopped(project, nth):
    last = plays(project, list(progress_logs.logs())[nth])
    assert last["class"] in ("unknown", "comm"), last


@pytest.mark.parametrize("nth", [0, 8, 28, 48, 61, 81])
def test_a_job_that_prints_it_and_fails_is_judged_by_its_first_cause(project, nth):
    case, (classes, holds) = failure_logs.logs()[nth]
    last = plays(project, case)
    assert judged_right(last, classes, holds), (case[0], last)


# Python keeps what it prints into a pipe in a buffer, and its stderr in none.
BUFFERED = """
import os
import sys
import time


def start(args):
    if os.environ["STOKER_PHASE"] != "train":
        return
    out = open(1, "w", closefd=False, encoding="utf-8")
    for step in range(300):
        print(f"step: {step} loss: 2.31", flush=step < 200, file=out)
    sys.stderr.write("NRT: Uncorrectable memory error is detected, metadata: 0x1\\n")
    sys.stderr.flush()
    time.sleep(1)
    out.flush()
    os._exit(1)
"""


def test_steps_that_come_out_of_a_buffer_at_the_end_are_no_survival(project):
    project.extra(BUFFERED)
    project.write(compile={"kind": "none"}, retry={"attempts": 1, "backoff": {"first": "0s", "max": "0s"}},
                  metrics=[{"name": "step", "regex": r"step: (\d+)"}])
    project.run(code=None)
    last = next(row for row in project.status()["attempts"] if row["phase"] == "train")
    assert last["class"] == "hardware-node", last
