"""The five weeks of docs/retraining.md without stoker: the same model functions, fed by hand. Run by the
quickstart's Python in a folder that holds train.py, retrain.py and drops.py: prints {name of a model:
accuracy on the hold-out}, and writes what drops.py would for each of DROPS, below DATA.

usage: weeks.py DATA --lr …"""

import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.getcwd())

import drops  # noqa: E402
import numpy as np  # noqa: E402
import retrain  # noqa: E402
import train  # noqa: E402

DROPS = [["hold-out"], ["1"], ["2"], ["3"], ["4", "shuffled"], ["4"], ["5"]]
LOAD, FIRST = train.load_data, train.first_state


def trained(name: str, data: list, parent: Path | None, words: tuple) -> Path:
    folder = Path(tempfile.mkdtemp()) / name
    os.environ.pop("STOKER_INIT_FROM", None)
    if parent:
        os.environ["STOKER_INIT_FROM"] = str(parent)
    sys.argv = ["retrain.py", *words, "--checkpoint_dir", str(folder)]
    retrain.train_on(tuple(np.concatenate(part) for part in zip(*data)), train.parse_args())
    train.load_data, train.first_state = LOAD, FIRST
    return max(folder.glob("step-*"))


def main(data: Path, *words: str) -> dict:
    for each in DROPS:
        drops.main(data / "-".join(each), *each)
    drop, models = drops.drop, {}
    models["week-1"] = trained("week-1", [drop(1)], None, words)
    models["week-2"] = trained("week-2", [drop(2)], models["week-1"], words)
    models["week-4"] = trained("week-4", [drop(4, True)], models["week-2"], words)
    models["aside"] = trained("aside", [drop(3), drop(5)], models["week-2"], words)
    models["mended"] = trained("mended", [drop(3), drop(4), drop(5)], models["week-2"], words)
    hold_out = LOAD()[1]
    return {name: retrain.evaluate(folder, hold_out) for name, folder in models.items()}


if __name__ == "__main__":
    sys.stdout, out = sys.stderr, sys.stdout
    print(json.dumps(main(Path(sys.argv[1]), *sys.argv[2:])), file=out)
