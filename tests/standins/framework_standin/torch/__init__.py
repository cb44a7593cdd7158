"""A stand-in for PyTorch, as far as a check-up of nodes asks it: tensors of numbers on
no device. An installation has it where with_torch() put it."""

import os
import signal
from types import SimpleNamespace

from neuron_standin import settings

float32 = "float32"
version = SimpleNamespace(cuda="12.4" if settings.flag("STANDIN_TORCH_CUDA") else None)
cuda = SimpleNamespace(set_device=lambda device: None, synchronize=lambda: None)
multiplied = []  # what was, last
how = settings.choice("STANDIN_TORCH", "broken", "killed")
if how == "broken":
    raise ImportError("undefined symbol - stand-in")


class Tensor:
    """Of one or two dimensions, or, where all elements are equal, one number and how many."""

    def __init__(self, rows, count=0):
        self.rows, self.count = rows, count

    def __matmul__(self, other):
        multiplied[:] = self, other
        columns = list(zip(*other.rows))
        rows = [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in self.rows]
        rows[0][0] += settings.number("STANDIN_TORCH_WRONG_PRODUCT")
        return Tensor(rows)

    def __ne__(self, value):
        return Tensor(float(self.rows != value), self.count)

    def sum(self):
        return self.rows * self.count

    def cpu(self):
        return self

    def to(self, device):
        assert device == "xla:0" or (version.cuda and device.startswith("cuda:")), device
        return self

    def tolist(self):
        return self.rows


def tensor(rows, dtype=float32):
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return Tensor(rows)


def full(shape, value, device="cpu"):
    return Tensor(value, shape[0])
