"""The extra.py that makes fake_train.py a training of about a second that can
be interrupted: it saves as it goes, goes on from what it is given, and notes in
a file outside of everything what it really did, so that a test can count the
trainings that took effect.

The one number it learns is the sum of all steps: only a training that skipped
nothing and started from no false checkpoint ends with n(n+1)/2."""

import json
import os
import signal
import struct
import sys
import threading
import time
import zipfile
from pathlib import Path

EVERY = 5  # steps between two checkpoints
learned = 0
asked = threading.Event()  # to save now: SIGUSR1


def note(what: str, **more: object) -> None:
    """One line, in one write: what came before a kill is there, whole."""
    line = {"what": what, "run": os.environ["STOKER_RUN"], "phase": os.environ["STOKER_PHASE"],
            "attempt": int(os.environ["STOKER_ATTEMPT"]), "rank": rank(), "pid": os.getpid(),
            "token": os.environ.get("STOKER_TOKEN"), "at": time.time(), **more}
    fd = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, json.dumps(line).encode() + b"\n")
    os.close(fd)


def rank() -> int:
    return int(os.environ["STOKER_NODE_RANK"])


def start(args: object) -> int:
    global learned
    signal.signal(signal.SIGUSR1, lambda *_: note("told") or asked.set())
    done, source = 0, os.environ.get("STOKER_RESUME_FROM")
    if source:
        state = json.loads((Path(source) / "trainer_state.json").read_text())
        done, learned = state["global_step"], state["learned"]
        print(f"resumed from {source}", flush=True)
    note("start", resumed_from=source, done=done)
    return done + 1


def hold(number: int) -> None:
    """HOLD=PHASE:STEP:FILE: wait before this step until the file is there."""
    phase, at, path = os.environ.get("HOLD", "::").split(":", 2)
    if (phase, at) != (os.environ["STOKER_PHASE"], str(number)) or os.path.exists(path):
        return
    note("holds", step=number)
    while not os.path.exists(path):
        time.sleep(0.01)


def step(number: int, args: object) -> None:
    global learned
    hold(number)
    time.sleep(float(os.environ.get("STEP_SECONDS", "0.04")))
    learned += number
    if rank() == 0 and (number % EVERY == 0 or number == args.max_steps or asked.is_set()):
        save(number)
        asked.clear()


def save(number: int) -> None:
    """As the transformers library lays it out; zeros in a trial run."""
    value = 0 if os.environ["STOKER_PHASE"] == "precompile" else learned
    root = Path(os.environ["STOKER_CHECKPOINT_DIR"])
    folder, final = root / f"tmp-checkpoint-{number}", root / f"checkpoint-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [256], "data_offsets": [0, 1024]}}).encode()
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(header)) + header + struct.pack("<256f", *[value] * 256))
    with zipfile.ZipFile(folder / "optimizer.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02N.")
        archive.writestr("archive/data/0", bytes(1024))
    (folder / "trainer_state.json").write_text(
        json.dumps({"global_step": number, "learned": value}))
    folder.rename(final)
    note("saved", step=number)


def end(args: object) -> None:
    expected = args.max_steps * (args.max_steps + 1) // 2
    if learned != expected:
        sys.exit(f"learned {learned} instead of {expected}")
    note("end", learned=learned)
