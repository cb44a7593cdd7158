"""Handwritten digits as they would come in: five drops of the quickstart's 1,437 training images, a file
each, and its 360 held-out ones.

usage: drops.py FOLDER hold-out         FOLDER/hold-out/digits.npz
       drops.py FOLDER WEEK             FOLDER/drops/week-WEEK.npz, WEEK from 1 to 5
       drops.py FOLDER WEEK shuffled    the same with its labels in any order, as a broken join makes them
"""

import sys
from pathlib import Path

import numpy as np
import train

WEEKS = 5


def drop(week: int, shuffled: bool = False) -> train.Batch:
    images, labels = train.load_data()[0]
    bounds = [len(labels) * part // WEEKS for part in (week - 1, week)]
    labels = labels[slice(*bounds)]
    if shuffled:
        labels = np.random.default_rng(week).permutation(labels)
    return images[slice(*bounds)], labels


def write(path: Path, data: train.Batch) -> None:
    """Whoever lists the folder sees the file whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    train.write_durably(path, lambda file: np.savez(file, images=data[0], labels=data[1]))


def main(folder: Path, what: str, *more: str) -> None:
    if what == "hold-out":
        write(folder / "hold-out/digits.npz", train.load_data()[1])
    else:
        write(folder / f"drops/week-{what}.npz", drop(int(what), "shuffled" in more))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
