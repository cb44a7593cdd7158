"""Quickstart training job: a small vision transformer on handwritten digits.

Plain JAX on scikit-learn's digits, made for a compile cache: static shapes, and lr,
max_steps, seed etc. are array arguments. One step reaches all three graphs (init_state,
train_step, eval_step); batch size, number of nodes and model edits alone change them.

Environment: STOKER_CHECKPOINT_DIR (nodes share it, node 0 writes), STOKER_RESUME_FROM
(one step-... directory), STOKER_NODES, STOKER_NODE_RANK, STOKER_MASTER_ADDR and _PORT.
SIGUSR1 asks for a checkpoint at the next step.
"""

import argparse
import json
import os
import signal
import time
from pathlib import Path
from typing import Any, BinaryIO, Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax._src import cache_key
from jax.sharding import Mesh, NamedSharding, PartitionSpec

SIDE, PATCH, GRID, TOKENS, CLASSES, HOLD_OUT = 8, 2, 4, 16, 10, 360
DIM, DEPTH, HEADS = 64, 4, 4
B1, B2 = 0.9, 0.99  # Adam
TUNED = ("lr", "weight_decay", "warmup_steps", "max_steps")  # arguments of train_step
Tree = Any  # nested dicts and lists of arrays
Batch = tuple[np.ndarray, np.ndarray]


# ---- model
def init_params(key: Array) -> Tree:
    keys = iter(jax.random.split(key, 3 + 4 * DEPTH))

    def dense(rows: int, cols: int, gain: float = 1.0) -> Array:
        return jax.random.normal(next(keys), (rows, cols)) * (gain * rows**-0.5)

    def block() -> Tree:  # residual branches start small: a deep net is tame early on
        return {"norm1": jnp.ones(DIM), "norm2": jnp.ones(DIM),
                "qkv": dense(DIM, 3 * DIM), "out": dense(DIM, DIM, 0.1),
                "up": dense(DIM, 4 * DIM), "down": dense(4 * DIM, DIM, 0.1)}

    return {"patch": dense(PATCH * PATCH, DIM), "position": dense(TOKENS, DIM, 2.0),
            "blocks": [block() for _ in range(DEPTH)],
            "norm": jnp.ones(DIM), "head": dense(DIM, CLASSES, 0.1)}


def rms_norm(x: Array, scale: Array) -> Array:
    return x * scale * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def attention(p: Tree, x: Array) -> Array:
    q, k, v = jnp.moveaxis((x @ p["qkv"]).reshape(-1, TOKENS, 3, HEADS, DIM // HEADS), 2, 0)
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * (DIM // HEADS) ** -0.5)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(-1, TOKENS, DIM) @ p["out"]


def predict(params: Tree, images: Array) -> Array:
    x = images.reshape(-1, GRID, PATCH, GRID, PATCH).transpose(0, 1, 3, 2, 4)
    x = x.reshape(-1, TOKENS, PATCH * PATCH) @ params["patch"] + params["position"]
    for p in params["blocks"]:
        x = x + attention(p, rms_norm(x, p["norm1"]))
        x = x + jax.nn.gelu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
    return rms_norm(x, params["norm"]).mean(1) @ params["head"]


# ---- the three graphs
def init_state(seed: Array) -> Tree:
    params = init_params(jax.random.key(seed))
    zeros = jax.tree.map(jnp.zeros_like, params)
    return {"params": params, "mean": zeros, "square": zeros, "step": jnp.int32(0)}


def train_step(state: Tree, images: Array, labels: Array, hyper: Tree) -> tuple[Tree, Array]:
    """One AdamW step with warm-up and cosine decay."""
    def loss_of(params: Tree) -> Array:
        logp = jax.nn.log_softmax(predict(params, images))
        return -jnp.take_along_axis(logp, labels[:, None], 1).mean()
    loss, grads = jax.value_and_grad(loss_of)(state["params"])
    t = (state["step"] + 1).astype(jnp.float32)
    lr = hyper["lr"] * jnp.minimum(1.0, t / hyper["warmup_steps"])
    lr = lr * 0.5 * (1.0 + jnp.cos(jnp.pi * t / (hyper["max_steps"] + 1.0)))
    mean = jax.tree.map(lambda m, g: B1 * m + (1 - B1) * g, state["mean"], grads)
    square = jax.tree.map(lambda s, g: B2 * s + (1 - B2) * g * g, state["square"], grads)

    def update(p: Array, m: Array, s: Array) -> Array:
        adam = (m / (1 - B1**t)) / (jnp.sqrt(s / (1 - B2**t)) + 1e-8)
        return p - lr * (adam + hyper["weight_decay"] * p)
    params = jax.tree.map(update, state["params"], mean, square)
    return {"params": params, "mean": mean, "square": square, "step": state["step"] + 1}, loss


def eval_step(params: Tree, images: Array, labels: Array) -> Array:
    return jnp.mean(predict(params, images).argmax(-1) == labels)


# ---- data
def load_data() -> tuple[Batch, Batch]:
    """Images in [-1, 1] and labels, for training and held out; always the same split."""
    from sklearn.datasets import load_digits  # half of the imports' time; who brings other data does without
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images = (pixels[order].reshape(-1, SIDE, SIDE) / 8.0 - 1.0).astype(np.float32)
    labels = labels[order].astype(np.int32)
    return (images[HOLD_OUT:], labels[HOLD_OUT:]), (images[:HOLD_OUT], labels[:HOLD_OUT])


def make_batch(data: Batch, args: argparse.Namespace, step: int) -> Batch:
    """A pure function of (seed, step), so that a resumed run continues exactly."""
    rng = np.random.default_rng((args.seed, step))
    pick = rng.integers(0, len(data[1]), args.batch_size)
    images, labels = data[0][pick], data[1][pick]
    if args.augment == "True":  # shift by up to one pixel; what moves in is background
        padded = np.pad(images, ((0, 0), (1, 1), (1, 1)), constant_values=-1.0)
        dy, dx = rng.integers(0, 3, (2, args.batch_size, 1, 1))
        span = np.arange(SIDE)
        images = padded[np.arange(args.batch_size)[:, None, None], dy + span[:, None], dx + span]
    return images, labels


# ---- checkpoints
def write_durably(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Whatever happens, a file under its final name is whole."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def named(tree: Tree) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(tree)}


def save_checkpoint(root: Path, state: Tree, step: int) -> None:
    folder = root / f"step-{step:08d}"
    folder.mkdir(parents=True, exist_ok=True)
    # meta.json makes the checkpoint complete: first thing to go, last to come.
    (folder / "meta.json").unlink(missing_ok=True)
    write_durably(folder / "state.npz", lambda file: np.savez(file, **named(state)))
    meta = json.dumps({"step": step, "state_bytes": (folder / "state.npz").stat().st_size})
    write_durably(folder / "meta.json", lambda file: file.write(meta.encode()))


def is_complete(folder: Path) -> bool:
    try:
        meta = json.loads((folder / "meta.json").read_text())
        return (folder / "state.npz").stat().st_size == meta["state_bytes"]
    except (OSError, ValueError, KeyError):
        return False


def find_checkpoint(root: Path) -> Path | None:
    if asked := os.environ.get("STOKER_RESUME_FROM"):
        if not is_complete(Path(asked)):
            raise SystemExit(f"STOKER_RESUME_FROM={asked} is not a complete checkpoint")
        return Path(asked)
    return max(filter(is_complete, root.glob("step-*")), default=None)


def load_checkpoint(folder: Path, template: Tree) -> Tree:
    """Host arrays in the form of `template`; a checkpoint of another model is refused."""
    arrays = dict(np.load(folder / "state.npz"))
    got, want = ({name: (leaf.shape, leaf.dtype) for name, leaf in leaves.items()}
                 for leaves in (arrays, named(template)))
    if got != want:
        raise SystemExit(f"{folder} holds another model")
    return jax.tree.unflatten(jax.tree.structure(template), [arrays[name] for name in want])


# ---- the run
def join_nodes() -> None:
    if (nodes := int(os.environ.get("STOKER_NODES") or 1)) > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.config.update("jax_enable_preemption_service", False)  # it swallows SIGTERM
        address = f"{os.environ['STOKER_MASTER_ADDR']}:{os.environ['STOKER_MASTER_PORT']}"
        jax.distributed.initialize(address, nodes, int(os.environ["STOKER_NODE_RANK"]))
        if jax.default_backend() == "cpu":
            # JAX hashes a CPU process's own topology into its cache keys, yet lets node 0 alone
            # write entries. Without that hash all nodes use node 0's, as they do on GPUs.
            cache_key._hash_accelerator_config = cache_key._hash_devices


def place(sharding: NamedSharding, tree: Tree) -> Tree:
    """Host arrays, the same on all nodes, onto the devices; this compiles nothing."""
    return jax.tree.map(lambda x: jax.make_array_from_callback(
        np.shape(x), sharding, lambda part: np.asarray(x)[part]), tree)


def say(text: str) -> None:
    if jax.process_index() == 0:
        print(text, flush=True)


def first_state(root: Path, init: Callable, seed: Array, whole: NamedSharding) -> Tree:
    if (folder := find_checkpoint(root)) is None:
        return init(seed)
    state = load_checkpoint(folder, jax.eval_shape(init_state, seed))
    say(f"resumed at step {state['step']} from {folder}")
    return place(whole, state)


def train(args: argparse.Namespace) -> None:
    if args.batch_size % jax.device_count():
        raise SystemExit(f"--batch_size must be a multiple of {jax.device_count()} devices")
    mesh = Mesh(np.array(jax.devices()), ("data",))
    whole, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("data",)))
    init, step_on, evaluate = (jax.jit(graph, out_shardings=whole)
                               for graph in (init_state, train_step, eval_step))
    data, hold_out = load_data()
    hyper = {name: np.float32(getattr(args, name)) for name in TUNED}
    hold_out, hyper, seed = place(whole, (hold_out, hyper, np.uint32(args.seed)))
    state = first_state(args.checkpoint_dir, init, seed, whole)
    first = int(state["step"]) + 1
    done, since = first - 1, time.monotonic()
    asked = []  # for a checkpoint, before this process is stopped
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))
    for step in range(first, args.max_steps + 1):
        state, loss = step_on(state, *place(split, make_batch(data, args, step)), hyper)
        log, evaluating, saving = (step == args.max_steps or step % every == 0 for every in
                                   (args.log_steps, args.eval_steps, args.save_steps))
        if log or step == first:
            value = float(loss)  # waits for the devices, so the clock is read after the work
            rate = (step - done) * args.batch_size / (time.monotonic() - since)
            # On every node: equal losses show that they train as one.
            print(f"step: {step} loss: {value:.6f} samples/s: {rate:.1f}", flush=True)
        if evaluating:
            say(f"eval step: {step} accuracy: {float(evaluate(state['params'], *hold_out)):.4f}")
        if (saving or asked) and jax.process_index() == 0:
            asked.clear()
            save_checkpoint(args.checkpoint_dir, state, step)
        if log or evaluating or saving or step == first:  # the rate is of training alone
            done, since = step, time.monotonic()


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small ViT on handwritten digits.")
    for name, default in (("lr", 3e-3), ("weight_decay", 0.1), ("warmup_steps", 50),
                          ("max_steps", 2000), ("batch_size", 64), ("seed", 0),
                          ("log_steps", 20), ("eval_steps", 200), ("save_steps", 200)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--augment", choices=("True", "False"), default="True")
    checkpoints = os.environ.get("STOKER_CHECKPOINT_DIR") or "checkpoints"
    parser.add_argument("--checkpoint_dir", type=Path, default=checkpoints)
    return parser.parse_args()


if __name__ == "__main__":
    join_nodes()
    train(parse_args())
