"""A stand-in for JAX on Neuron, as far as a check-up of nodes asks it: lists of numbers on no
device, as many devices as neuron-ls shows cores. An installation has it where with_jax() put it."""

import json
import os
import signal
import subprocess
from typing import NamedTuple

from neuron_standin import settings


class Device(NamedTuple):
    id: int
    platform: str


def devices():
    how = settings.choice("STANDIN_JAX", "cpu", "raises", "killed")
    if how == "cpu" or os.environ.get("JAX_PLATFORMS") == "cpu":
        return [Device(0, "cpu")]
    if how == "killed":
        os.kill(os.getpid(), signal.SIGSEGV)
    shown = subprocess.run(["neuron-ls", "-j"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [Device(core, "neuron") for core in range(sum(one["nc_count"] for one in json.loads(shown.stdout)))]


def device_put(array, device):
    if device.id > 0 and settings.get("STANDIN_JAX") == "raises":
        raise RuntimeError(f"NRT_EXEC_UNIT_UNRECOVERABLE on core {device.id} - stand-in")
    return array
