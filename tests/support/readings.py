"""What a log says by itself: readings found by these tests' own code, to be held against `stoker
metrics`; a training that prints many, and dies; and what lies in a file of a series."""

import csv
import io
import re
import struct
import zlib

METRICS = [
    {"name": "loss", "regex": "loss: ([0-9.]+)"},  # loses what is behind 6.25 of 6.25e-05, and -0.1, nan and inf
    {"name": "step", "regex": "^step: ([0-9]+)"},
    {"name": "lr", "regex": r"lr: (\S+?),"},
    {"name": "accuracy", "regex": "accuracy: ([0-9.eE+-]+)"},
]

# What stands before the number, and the number as C and Python print it.
BEFORE = {"loss": rb"loss: ", "step": rb"^step: ", "lr": rb"lr: ", "accuracy": rb"accuracy: ", "never": rb"never "}
NUMBER = re.compile(rb"[-+]?(?:nan|inf(?:inity)?|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)", re.IGNORECASE)

# Trains STEPS steps, a line each; saves, and dies behind what it has saved as often as DIES has steps.
TRAIN = '''
import json, os, struct, sys
from pathlib import Path

STEPS, DIES, KEPT, NODES = int(os.environ["STEPS"]), json.loads(os.environ["DIES"]), int(os.environ["KEPT"]), 1
rank, attempt = int(os.environ["STOKER_NODE_RANK"]), int(os.environ["STOKER_ATTEMPT"])


def save(number):
    root = Path(os.environ["STOKER_CHECKPOINT_DIR"])
    folder, final = root / f"tmp-checkpoint-{number}", root / f"checkpoint-{number}"
    folder.mkdir(parents=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1, 2))
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": number}))
    folder.rename(final)


source, first = os.environ.get("STOKER_RESUME_FROM"), 1
if source:
    first = json.loads((Path(source) / "trainer_state.json").read_text())["global_step"] + 1
print("loss: 9.5 before the first step", flush=True)
for number in range(first, STEPS + 1):
    loss = [1 / number, 6.25e-05, -0.1, float("nan"), float("inf"), 1e300 / number, number / 3][number % 7]
    end = "\\r" if number % 50 == 0 else "\\n"
    sys.stdout.write(f"step: {number} loss: {loss!r} lr: {5e-5 / number!r}, rank {rank} of attempt {attempt}{end}")
    if number % 1000 == 0:
        sys.stdout.write(f"evaluation: accuracy: {1 - 1 / number:.17g}\\n")
    if rank == 0 and number in (stop - KEPT for stop in DIES):
        save(number)
    if number in DIES[attempt - 1:attempt]:
        sys.stdout.flush()
        os.kill(os.getpid(), 9)
print("accuracy: 0.975 without its end", end="", flush=True)
'''


def bits(value: float) -> bytes:
    """Two nan are the same reading, whatever their sign."""
    return b"nan" if value != value else struct.pack("<d", value)


def of_log(log: bytes, names: tuple = tuple(each["name"] for each in METRICS)) -> list:
    """(step, name, bits) of every reading, in the log's order; step None: before the first."""
    found, step = [], None
    for line in re.split(rb"[\r\n]", log):
        if line.startswith(b"::stoker:"):
            continue
        row = []
        for name in names:
            before = re.search(BEFORE[name] + rb"(?=[-+.0-9a-zA-Z])", line[:16384])
            number = before and NUMBER.match(line, before.end())
            if number:
                row.append((name, float(number.group())))
        step = next((int(value) for name, value in row if name == "step"), step)
        # The step first, for it is what the others are read at.
        found += [(step, name, bits(value)) for name, value in sorted(row, key=lambda each: each[0] != "step")]
    return found


def of_run(folder, nodes: int = 1, attempts: int = 1) -> list:
    """(attempt, node, step, name, bits, mark) of a run in a folder of its workspace."""
    logs = {(attempt, node): (folder / f"train-{attempt}/node-{node}/log").read_bytes()
            for attempt in range(1, attempts + 1) for node in range(nodes)
            if (folder / f"train-{attempt}/node-{node}/log").exists()}
    return marked({place: of_log(log) for place, log in logs.items()})


def marked(found: dict) -> list:
    """{(attempt, node): readings} with what an attempt makes again: replayed, and superseded what was so."""
    steps = {}
    for (attempt, _), rows in found.items():
        steps.setdefault(attempt, set()).update(step for step, _, _ in rows if step is not None)
    first = {attempt: min(made) for attempt, made in steps.items() if made}
    last = {attempt: max(made) for attempt, made in steps.items() if made}
    rows = []
    for attempt, node in sorted(found):
        for step, name, value in found[attempt, node]:
            mark = ""
            if step is not None and any(step <= last[other] for other in last if other < attempt):
                mark = "replayed"
            # What comes before the first step goes with that step.
            place = step if step is not None else first.get(attempt, float("inf"))
            if any(place >= first[other] for other in first if other > attempt):
                mark = "superseded"
            rows.append((attempt, node, step, name, value, mark))
    return rows


def printed(text: str) -> list:
    """The same of what `metrics --csv` prints."""
    rows = list(csv.DictReader(io.StringIO(text)))
    return [(int(row["attempt"]), int(row["node"]), int(row["step"]) if row["step"] else None, row["name"],
             bits(float(row["value"])), row["mark"]) for row in rows]


def same(left: list, right: list) -> None:
    """Says where they differ, of 100,000 rows."""
    for number, (one, other) in enumerate(zip(left, right)):
        assert one == other, (number, one, other)
    assert len(left) == len(right), (len(left), len(right), (left[len(right):] + right[len(left):])[:3])


def kept(series: bytes) -> list:
    """(from, to, readings) of the whole blocks at the begin of a file of a series."""
    blocks, at = [], 0
    while series[at:at + 8] == b"stkser1\n":
        size, sum_, begin, end = struct.unpack_from("<IIQQ", series, at + 8)
        if zlib.crc32(series[at + 16:at + 64 + size]) != sum_ or len(series) < at + 64 + size:
            break
        blocks.append((begin, end, struct.unpack_from("<I", series, at + 56)[0]))
        at += 64 + size
    return blocks


def number(value: int) -> bytes:
    """LEB128."""
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes([*out, value])


def blocks(place: str, rows: list, room: int = 980) -> bytes:
    """A file of blocks as the agent of the node at `place` ("runs/RUN/train-1/node-0") keeps what it did:
    rows (figure, step, ms, value) by rising ms, so many in a block, of whole moments."""
    out, said = b"", zlib.crc32(f"1 {place}".encode() + b"\0")
    for at in range(0, len(rows), room):
        part, payload, last = rows[at:at + room], b"", (0, 0)
        for figure, step, ms, value in part:
            payload += number(figure) + number(2 * (step - last[0])) + number(2 * (ms - last[1])) + struct.pack("<d", value)
            last = (step, ms)
        tail = struct.pack("<QQqqIIII", part[0][2], part[-1][2] + 1, 0, last[0], said, 0, len(part), 0) + payload
        out += b"stkser1\n" + struct.pack("<II", len(payload), zlib.crc32(tail)) + tail
    return out
