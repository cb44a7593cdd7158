"""A training script as one has it on Trainium, on the stand-in tracer: it learns
a line by gradient descent, so that a resumed run shows whether it really went
on from where the other stopped; it saves, evaluates, and takes each graph
through the compile cache. With the stand-ins in PATH it needs nothing else."""

import argparse
import json
import math
import os
import random
import shutil
import signal
import struct
import sys
import time
import zipfile
from pathlib import Path

try:
    from neuron_standin import log, settings, xla
except ModuleNotFoundError:  # not in an installation: then beside the compiler
    sys.path.append(str(Path(shutil.which("neuronx-cc") or __file__).resolve().parents[1]))
    from neuron_standin import log, settings, xla

asked = False  # to save now: SIGUSR1


def forward(x, w):
    return x @ w


def train_step(x, y, w, rate):
    error = forward(x, w) - y
    gradient = (x.transpose() @ error) * (2 / x.shape[0])
    return (error * error).mean(), w - gradient.all_reduce() * rate


def accumulate_step(x, y, w, gathered):
    error = forward(x, w) - y
    return (error * error).mean(), gathered + (x.transpose() @ error) * (2 / x.shape[0])


def update_step(w, gathered, scale):
    return (w - gathered.all_reduce() * scale,)


def eval_step(x, y, w):
    error = forward(x, w) - y
    return ((error * error).mean(),)


def save_step(w):
    return (w * 1.0,)


def arguments():
    parser = argparse.ArgumentParser()
    yes = {"type": lambda text: text in ("True", "true", "1")}
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--lr_as_constant", default=False, **yes, help="bake the learning rate into the graph")
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--seq_length", type=int, default=4)
    parser.add_argument("--max_steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--save_steps", type=int, default=5)
    parser.add_argument("--eval_steps", type=int, default=0, help="0: at the end only")
    parser.add_argument("--samples", type=int, default=0, help="in an epoch, whose last batch may be smaller; 0: any")
    parser.add_argument("--growing_shapes", default=False, **yes, help="a longer sequence, and a graph, every step")
    parser.add_argument("--output_dir", default="")
    return parser.parse_args()


def batch(args, number):
    """Inputs and targets of a step: the same in every run, whatever came before."""
    chance = random.Random(args.seed * 1000003 + number)
    size, width = args.batch_size, args.seq_length
    if args.samples:
        in_epoch = math.ceil(args.samples / size)
        left = args.samples - ((number - 1) % in_epoch) * size
        size = min(size, left)
    rows = [[chance.uniform(-1, 1) for _ in range(width)] for _ in range(size)]
    targets = [[sum((i + 1) * value for i, value in enumerate(row))] for row in rows]
    return rows, targets


def crash(number):
    """As asked for by STANDIN_CRASH."""
    when, _, at = settings.get("STANDIN_CRASH").partition(":")
    if when == ("extract" if xla.extracting() else "train") and int(at) == number:
        if settings.get("STANDIN_CRASH_TEXT"):
            log.say(settings.get("STANDIN_CRASH_TEXT"))
            sys.exit(1)
        raise ZeroDivisionError(f"stand-in: told to crash before step {number}")


class Training:
    def __init__(self, args):
        self.args, self.device = args, xla.Device(args.dtype)
        self.rank = int(os.environ.get("RANK", os.environ.get("STOKER_NODE_RANK", "0")))
        self.weights, self.done = xla.Tensor([[0.0] for _ in range(args.seq_length)]), 0
        self.root = Path(args.output_dir or os.environ.get("STOKER_CHECKPOINT_DIR") or "checkpoints")

    def resume(self):
        source = os.environ.get("STOKER_RESUME_FROM")
        if source:
            self.done = json.loads((Path(source) / "trainer_state.json").read_text())["global_step"]
            data = (Path(source) / "model.safetensors").read_bytes()
            start = 8 + struct.unpack("<Q", data[:8])[0]
            self.weights = xla.Tensor([[value] for value in struct.unpack(f"<{self.args.seq_length}d", data[start:])])
            log.say(f"resumed from {source}")

    def step(self, number):
        x, y = (xla.Tensor(rows) for rows in batch(self.args, number))
        if self.args.growing_shapes:
            x = xla.Tensor(x.rows + x.rows[:1] * number)
            y = xla.Tensor(y.rows + y.rows[:1] * number)
        accumulate, rate = self.args.gradient_accumulation_steps, self.args.lr
        if accumulate > 1:
            gathered = xla.Tensor([[0.0] for _ in self.weights.rows])
            for _ in range(accumulate):
                loss, gathered = self.device.run(accumulate_step, x, y, self.weights, gathered)
            self.weights, = self.device.run(update_step, self.weights, gathered, xla.Tensor([[rate / accumulate]]))
        elif self.args.lr_as_constant:
            def baked_step(x, y, w):
                return train_step(x, y, w, rate)
            loss, self.weights = self.device.run(baked_step, x, y, self.weights)
        else:
            loss, self.weights = self.device.run(train_step, x, y, self.weights, xla.Tensor([[rate]]))
        return loss.item()

    def evaluate(self, number):
        x, y = (xla.Tensor(rows) for rows in batch(argparse.Namespace(**{**vars(self.args), "samples": 0}), 0))
        loss, = self.device.run(eval_step, x, y, self.weights)
        log.say(f"eval step: {number} loss: {loss.item():.6f}")

    def extras(self):
        def extra(count):
            def function(w):
                return ((w * (count + 2)).mean(),)
            function.__name__ = f"extra_{count}"
            return function
        for count in range(int(settings.number("STANDIN_EXTRA_GRAPHS"))):
            self.device.run(extra(count), self.weights)

    def save(self, number):
        """As the transformers library lays it out."""
        saved, = self.device.run(save_step, self.weights)
        if self.rank != 0:
            return
        part, final = self.root / f"tmp-checkpoint-{number}", self.root / f"checkpoint-{number}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        count = len(saved.flat())
        header = json.dumps({"w": {"dtype": "F64", "shape": [count], "data_offsets": [0, 8 * count]}}).encode()
        (part / "model.safetensors").write_bytes(
            struct.pack("<Q", len(header)) + header + struct.pack(f"<{count}d", *saved.flat()))
        with zipfile.ZipFile(part / "optimizer.pt", "w") as archive:
            archive.writestr("archive/data.pkl", b"\x80\x02N.")
            archive.writestr("archive/data/0", bytes(1024))
        (part / "trainer_state.json").write_text(json.dumps({"global_step": number}))
        if final.exists():
            shutil.rmtree(final)
        part.rename(final)

    def train(self):
        global asked
        args = self.args
        self.resume()
        self.extras()
        for number in range(self.done + 1, args.max_steps + 1):
            crash(number)
            began = time.monotonic()
            loss = self.step(number)
            time.sleep(settings.number("STANDIN_STEP_SECONDS"))
            rate = args.batch_size / max(time.monotonic() - began, 1e-6)
            if self.rank == 0:
                log.say(f"step: {number} loss: {loss:.6f} samples/s: {rate:.1f}")
            if asked or number % args.save_steps == 0 or number == args.max_steps:
                self.save(number)
                asked = False
            if args.eval_steps and number % args.eval_steps == 0 or number == args.max_steps:
                self.evaluate(number)


def ask(*_):
    global asked
    asked = True


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, ask)
    Training(arguments()).train()
