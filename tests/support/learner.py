"""A model that is the list of what it was given: training, evaluation and inference in a few lines, so that tests see
exactly which data reached which model. An object that holds "bad" spoils it."""

import json
import os
import pathlib
import sys
import time


def lines(path):
    return [json.loads(line) for line in open(path, encoding="utf-8")]


def text_of(row):
    """An object of the data, which lies where its url says, or was brought to STOKER_DATA_DIR."""
    folder = os.environ.get("STOKER_DATA_DIR")
    path = pathlib.Path(folder) / os.path.basename(row["url"]) if folder else pathlib.Path(row["url"])
    return path.read_text(encoding="utf-8")


def train():
    if "STOKER_RESUME_FROM" in os.environ:
        return  # its one step was done before
    folder = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"])
    parent = os.environ.get("STOKER_INIT_FROM")
    model = json.loads((pathlib.Path(parent) / "state.json").read_text()) if parent else {}
    for row in lines(os.environ["STOKER_DATA_MANIFEST"]):
        model[row["url"]] = text_of(row)
    if "OVERWRITES" in os.environ:
        pathlib.Path(os.environ["OVERWRITES"]).write_text("other")
    state = json.dumps(model)
    (folder / "step-1").mkdir(parents=True)
    (folder / "step-1/state.json").write_text(state)
    (folder / "step-1/meta.json").write_text(json.dumps({"step": 1, "state_bytes": len(state)}))
    print("step: 1", flush=True)


def evaluate():
    model = json.loads((pathlib.Path(os.environ["STOKER_MODEL"]) / "state.json").read_text())
    bad = sum("bad" in text for text in model.values())
    held = len(lines(os.environ["STOKER_DATA_MANIFEST"]))
    metrics = {"accuracy": 1 - bad / max(len(model), 1), "held": held}
    (pathlib.Path(os.environ["STOKER_OUTPUT_DIR"]) / "metrics.json").write_text(json.dumps(metrics))


def agent():
    """The agent of this command: the parent of its parent."""
    fields = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def infer():
    """One file for each object of the shard: how much the model knew, and the object."""
    folder = pathlib.Path(os.environ["STOKER_OUTPUT_DIR"])
    model = json.loads((pathlib.Path(os.environ["STOKER_MODEL"]) / "state.json").read_text())
    shard, starts = os.environ["STOKER_SHARD"], pathlib.Path(os.environ.get("STARTS", os.devnull))
    with open(starts, "a", encoding="utf-8") as file:
        file.write(f"{shard}\n")
    # The first wait for each other: each machine has a part in it.
    end = time.monotonic() + 60
    while len(starts.read_text().split()) < int(os.environ.get("MEETS", "0")) and time.monotonic() < end:
        time.sleep(0.05)
    assert os.listdir(folder) == [] and int(shard) < int(os.environ["STOKER_SHARDS"])
    rows = lines(os.environ["STOKER_DATA_MANIFEST"])
    if "STOKER_DATA_DIR" in os.environ:
        assert sorted(os.listdir(os.environ["STOKER_DATA_DIR"])) == [os.path.basename(row["url"]) for row in rows]
    # Nodes that work on it together share its objects out; one that is told to be alone has all.
    for row in rows[int(os.environ["STOKER_NODE_RANK"])::int(os.environ["STOKER_NODES"])]:
        text = text_of(row)
        if "poison" in text:
            sys.exit(3)
        (folder / f"{os.path.basename(row['url'])}.out").write_text(f"{len(model)} {text}")
        if shard == os.environ.get("KILLS_AGENT") and starts.read_text().split().count(shard) == 1:
            os.kill(agent(), 9)


if __name__ == "__main__":
    {"train": train, "evaluate": evaluate, "infer": infer}[sys.argv[1]]()
