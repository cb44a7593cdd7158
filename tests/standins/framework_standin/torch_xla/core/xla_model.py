"""The device of a process. Its runtime meets others where it is told to: a process alone with
nobody but itself, ranks of torchrun at their master."""

import os

from neuron_standin import meeting


def xla_device():
    meeting.check(os.environ["MASTER_ADDR"] if "RANK" in os.environ else None)
    return "xla:0"
