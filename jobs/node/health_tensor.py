# One tensor operation with a known answer on each core.
"""Prints one line of JSON: {"framework", "torch": can it be imported, "xla": does it
compute on the accelerator, "cores": how many were
asked, "wrong": [{"core", "words"}]}. A framework that is not there is no failure.

A process of PyTorch has the cores that it is given: so one is started for each of them."""

import importlib.util
import json
import os
import subprocess
import sys

SIZE = 64
LEFT = [[(row + one) % 5 for one in range(SIZE)] for row in range(SIZE)]
RIGHT = [[one * column % 3 for column in range(SIZE)] for one in range(SIZE)]


def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def answer():
    return [[sum(row[one] * RIGHT[one][column] for one in range(SIZE)) for column in range(SIZE)] for row in LEFT]


def compare(core, found, wrong):
    """Whole numbers that small are exact in every type that a core computes in."""
    expected = answer()
    bad = [(row, column) for row in range(SIZE) for column in range(SIZE)
           if float(found[row][column]) != expected[row][column]]
    if bad:
        row, column = bad[0]
        wrong.append({"core": core, "words": f"{len(bad)} of {SIZE * SIZE} elements of a product are wrong, the "
                      f"first is {float(found[row][column])} instead of {expected[row][column]}"})


def with_jax():
    import jax
    import jax.numpy as jnp
    wrong = []
    cores = jax.devices()
    for number, core in enumerate(cores):
        left, right = (jax.device_put(jnp.array(side, dtype=jnp.float32), core) for side in (LEFT, RIGHT))
        compare(number, jnp.matmul(left, right, precision="highest").tolist(), wrong)
    return len(cores), wrong


def on_core(core):
    """In a process that was given this core alone."""
    import torch
    wrong = []
    left, right = torch.tensor(LEFT, dtype=torch.float32), torch.tensor(RIGHT, dtype=torch.float32)
    if os.environ.get("NEURON_RT_VISIBLE_CORES"):
        import torch_xla.core.xla_model as xm
        device = xm.xla_device()
        product = (left.to(device) @ right.to(device)).cpu()
    else:
        product = left @ right
    compare(core, product.tolist(), wrong)
    print(json.dumps(wrong), flush=True)


def start(core, accelerated):
    env = dict(os.environ)
    if accelerated:
        env.update(NEURON_RT_VISIBLE_CORES=str(core), NEURON_RT_NUM_CORES="1")
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), "core", str(core)], env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def collect(core, process, wrong):
    out, err = process.communicate()
    lines = out.strip().splitlines()
    if process.returncode == 0 and lines:
        wrong.extend(json.loads(lines[-1]))
    else:
        last = (err.strip().splitlines() or ["it said nothing"])[-1]
        wrong.append({"core": core, "words": f"the operation ended with {process.returncode}: {last[:200]}"})


def with_torch(cores, accelerated):
    wrong = []
    cores = cores if accelerated else 1
    # The first one compiles for all of them.
    collect(0, start(0, accelerated), wrong)
    for core, process in [(core, start(core, accelerated)) for core in range(1, cores)]:
        collect(core, process, wrong)
    return cores, wrong


def main():
    if sys.argv[1] == "core":
        on_core(int(sys.argv[2]))
        return
    cores = int(sys.argv[1])
    accelerated = cores > 0 and there("torch_xla") and there("torch_neuronx")
    said = {"torch": there("torch"), "xla": accelerated, "framework": None, "cores": 0, "wrong": []}
    if there("torch"):
        said["framework"] = "torch"
        said["cores"], said["wrong"] = with_torch(cores, accelerated)
    elif there("jax"):
        said["framework"] = "jax"
        said["cores"], said["wrong"] = with_jax()
    print(json.dumps(said), flush=True)


main()
