"""The device of a process. Its runtime meets others where it is told to: a process alone with
nobody but itself, ranks of torchrun at their master."""

import functools
import os

import torch
from neuron_standin import meeting, xla


def xla_device():
    meeting.check(os.environ["MASTER_ADDR"] if "RANK" in os.environ else None)
    return "xla:0"


@functools.lru_cache
def tracer():
    return xla.Device()


def mark_step():
    """What was multiplied last is a graph, which goes through the cache."""
    def product(left, right):
        return (left @ right,)
    tracer().run(product, *(xla.Tensor(each.rows) for each in torch.multiplied))
