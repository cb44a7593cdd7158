"""Checkpoints by the libraries themselves: write_checkpoints.py FOLDER

FOLDER/files: three of numpy's savez, as configs/quickstart/train.py lays them out;
FOLDER/tensors: three single files of safetensors; FOLDER/hf: three of the Trainer's
layout with safetensors in shards."""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file


def arrays(step):
    rng = np.random.default_rng(step)
    return {"w": rng.normal(size=(7, 5)).astype(np.float32), "n": np.arange(step),
            "flag": np.array([True, False]), "half": np.ones((2, 0, 3), np.float16),
            "step": np.int32(step)}


def write_files(root, step):
    folder = root / f"step-{step:08d}"
    folder.mkdir(parents=True)
    tensors = arrays(step)
    np.savez(folder / "state.npz", **{f"['params']['{name}']": value for name, value in tensors.items()})
    np.save(folder / "order.npy", np.array([("a", 1.5)], dtype=[("name", "U5"), ("x", "<f8")]))
    np.savez_compressed(folder / "small.npz", **tensors)
    size = (folder / "state.npz").stat().st_size
    (folder / "meta.json").write_text(json.dumps({"step": step, "state_bytes": size}))


def write_hf(root, step):
    folder = root / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    tensors = {name: value for name, value in arrays(step).items() if value.shape}
    weight_map = {}
    for number, (name, value) in enumerate(sorted(tensors.items()), 1):
        shard = f"model-{number:05d}-of-{len(tensors):05d}.safetensors"
        save_file({name: value}, folder / shard, metadata={"format": "np"})
        weight_map[name] = shard
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}, indent=2))
    (folder / "trainer_state.json").write_text(
        json.dumps({"global_step": step, "log_history": [{"loss": float("nan")}]}))


root = Path(sys.argv[1])
for at in (10, 20, 30):
    write_files(root / "files", at)
    write_hf(root / "hf", at)
    (root / "tensors").mkdir(exist_ok=True)
    save_file({name: value for name, value in arrays(at).items() if value.shape},
              root / "tensors" / f"model-{at}.safetensors")
