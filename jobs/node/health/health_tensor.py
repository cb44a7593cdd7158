# One tensor operation with a known answer on each core or GPU.
"""health_tensor.py compute|look CORES neuron|nvidia. Prints one line of JSON: {"torch": can it be imported,
"xla": does it compute on the accelerator} and, of "compute", {"framework", "cores": how many were
asked, "accelerated": are they the accelerator's, "left_out": it computes on the CPU although what
it needs for the accelerator is there, "unable": why it computed nothing, which is not the
accelerator's doing, "wrong": [{"core", "words"}]}. A framework that is not there is no failure.

A process of PyTorch has the cores that it is given: so one is started for each of them, and each GPU has one too."""

import importlib.util
import json
import os
import signal
import subprocess
import sys

SIZE = 64
NOT_IMPORTED = 3  # exit status of a core's process
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


class Neuron:
    """Cores, each given to its process by a variable."""
    jax_plugins = ("libneuronxla",)

    @staticmethod
    def has_torch():
        return there("torch_xla") and there("torch_neuronx")

    @staticmethod
    def env(core):
        return {"NEURON_RT_VISIBLE_CORES": str(core), "NEURON_RT_NUM_CORES": "1"}

    @staticmethod
    def device(core):
        import torch_xla.core.xla_model as xm
        return xm.xla_device()


class Nvidia:
    """GPUs, by their number among those that the command may use."""
    jax_plugins = ("jax_cuda12_plugin", "jax_cuda13_plugin")

    @staticmethod
    def has_torch():
        """A torch for CUDA, even where it finds no GPU: that is told by the operation."""
        if not there("torch"):
            return False
        found = subprocess.run([sys.executable, "-c", "import torch; print(bool(torch.version.cuda))"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return found.stdout.strip() == b"True"

    @staticmethod
    def env(core):
        return {}

    @staticmethod
    def device(core):
        return "cuda:%d" % core


KINDS = {"neuron": Neuron, "nvidia": Nvidia}


def jax_devices(jax, wrong):
    try:
        return jax.devices()
    except Exception as why:  # whatever its plugin raises
        wrong.append({"core": 0, "words": f"no core can be used: {str(why)[:200]}"})
        return []


def with_jax(kind):
    import jax
    import jax.numpy as jnp
    wrong = []
    cores = jax_devices(jax, wrong)
    for number, core in enumerate(cores):
        try:
            left, right = (jax.device_put(jnp.array(side, dtype=jnp.float32), core) for side in (LEFT, RIGHT))
            found = jnp.matmul(left, right, precision="highest").tolist()
        except Exception as why:  # whatever the runtime raises
            wrong.append({"core": number, "words": f"the operation fails: {str(why)[:200]}"})
        else:
            compare(number, found, wrong)
    accelerated = any(core.platform != "cpu" for core in cores)
    chosen = os.environ.get("JAX_PLATFORMS", "").split(",")[0] == "cpu"
    return {"framework": "jax", "cores": len(cores), "wrong": wrong, "accelerated": accelerated,
            "left_out": not accelerated and not chosen and any(there(name) for name in kind.jax_plugins)}


def on_core(core, kind):
    """In a process that was given this core alone. `kind` None: on the CPU."""
    wrong = []
    try:
        import torch
        device = kind.device(core) if kind else None
    except (ImportError, AttributeError, OSError) as why:  # parts that do not fit each other
        print(f"torch cannot be imported: {why}", file=sys.stderr)
        sys.exit(NOT_IMPORTED)
    left, right = torch.tensor(LEFT, dtype=torch.float32), torch.tensor(RIGHT, dtype=torch.float32)
    if device is not None:
        product = (left.to(device) @ right.to(device)).cpu()
    else:
        product = left @ right
    compare(core, product.tolist(), wrong)
    print(json.dumps(wrong), flush=True)


def start(core, name):
    env = dict(os.environ, **(KINDS[name].env(core) if name in KINDS else {}))
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), "core", str(core), name], env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def collect(core, process, wrong):
    """Why it could not compute, where that is not the core's doing; else None."""
    out, err = process.communicate()
    lines = out.strip().splitlines()
    last = (err.strip().splitlines() or ["it said nothing"])[-1][:200]
    if process.returncode == 0 and lines:
        wrong.extend(json.loads(lines[-1]))
    elif process.returncode == NOT_IMPORTED:
        return last
    elif process.returncode == -signal.SIGKILL:
        return f"the process of core {core} was killed: there may be too little memory"
    else:
        wrong.append({"core": core, "words": f"the operation ended with {process.returncode}: {last}"})
    return None


def with_torch(cores, name):
    """`name` "cpu": not on the accelerator."""
    wrong = []
    accelerated = name in KINDS
    cores = cores if accelerated else 1
    # The first one compiles for all of them, and tells whether torch can be imported.
    first = start(0, name)
    unable = collect(0, first, wrong)
    rest = [(core, start(core, name)) for core in range(1, cores)] if not unable else []
    for core, process in rest:
        unable = collect(core, process, wrong) or unable
    return {"framework": "torch", "cores": cores, "wrong": wrong, "accelerated": accelerated, "unable": unable,
            "torch": first.returncode != NOT_IMPORTED}


def main():
    what, number, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    kind = KINDS.get(name)
    if what == "core":
        on_core(number, kind)
        return
    accelerated = number > 0 and kind.has_torch()
    said = {"torch": there("torch"), "xla": accelerated}
    if what == "compute" and said["torch"]:
        said.update(with_torch(number, name if accelerated else "cpu"))
    elif what == "compute" and there("jax"):
        said.update(with_jax(kind))
    print(json.dumps(said), flush=True)


main()
