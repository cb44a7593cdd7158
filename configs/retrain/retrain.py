"""The quickstart's model, trained on from the last good one with the data that is new.

usage: retrain.py train [--lr …]    from STOKER_INIT_FROM, or from scratch where there is none
       retrain.py evaluate          STOKER_MODEL on the hold-out: metrics.json
       retrain.py infer             STOKER_MODEL on a shard: a file of digits for each of images

Which files are the data says STOKER_DATA_MANIFEST, a line of JSON for each. Model, graphs and checkpoints
are those of train.py.
"""

import json
import os
import sys
from pathlib import Path

import jax
import numpy as np
import train

CHECKED = 256  # images by which the training measures itself: as many in each drop, so that its graph is the same
BLOCK = 320    # images in a call of the model; the last block of a file is filled up


def manifest() -> list[Path]:
    """The files, which lie where their URLs say, or were brought to STOKER_DATA_DIR (data.fetch)."""
    lines = Path(os.environ["STOKER_DATA_MANIFEST"]).read_text().splitlines()
    files = [Path(json.loads(line)["url"]) for line in lines]
    folder = os.environ.get("STOKER_DATA_DIR")
    return [Path(folder) / file.name for file in files] if folder else files


def read(paths: list[Path]) -> train.Batch:
    files = [np.load(path) for path in paths]
    return np.concatenate([file["images"] for file in files]), np.concatenate([file["labels"] for file in files])


def parameters(folder: Path) -> train.Tree:
    """Of a checkpoint; optimizer and step are not carried on."""
    return train.load_checkpoint(folder, jax.eval_shape(train.init_state, np.uint32(0)))["params"]


def from_parent(folder: Path, init, seed, whole) -> train.Tree:
    zeros = jax.tree.map(np.zeros_like, params := parameters(folder))
    print(f"begins with the weights of {folder.name}", flush=True)
    return train.place(whole, {"params": params, "mean": zeros, "square": zeros, "step": np.int32(0)})


def train_on(data: train.Batch, args) -> None:
    """As train.py does, but with this data, and with the parent where it would begin from scratch."""
    parent = os.environ.get("STOKER_INIT_FROM")
    train.load_data = lambda: (data, (data[0][:CHECKED], data[1][:CHECKED]))
    if parent and train.find_checkpoint(args.checkpoint_dir) is None:
        train.first_state = lambda root, *more: from_parent(Path(parent), *more)
    train.train(args)


def evaluate(folder: Path, data: train.Batch) -> float:
    return float(jax.jit(train.eval_step)(parameters(folder), *data))


def infer(folder: Path, images: np.ndarray) -> np.ndarray:
    model, params, found = jax.jit(train.predict), parameters(folder), []
    for start in range(0, len(images), BLOCK):
        block = images[start:start + BLOCK]
        filled = np.pad(block, ((0, BLOCK - len(block)), (0, 0), (0, 0)))
        found.append(np.asarray(model(params, filled)).argmax(-1)[:len(block)])
    return np.concatenate(found)


def main(what: str) -> None:
    if what == "train":
        train_on(read(manifest()), train.parse_args())
        return
    model, output = Path(os.environ["STOKER_MODEL"]), Path(os.environ["STOKER_OUTPUT_DIR"])
    if what == "evaluate":
        accuracy = evaluate(model, read(manifest()))
        print(f"accuracy: {accuracy}", flush=True)
        (output / "metrics.json").write_text(json.dumps({"accuracy": accuracy}))
    else:
        for path in manifest():
            (output / f"{path.stem}.json").write_text(json.dumps(infer(model, read([path])[0]).tolist()))


if __name__ == "__main__":
    main(sys.argv.pop(1))
