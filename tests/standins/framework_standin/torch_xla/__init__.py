"""A stand-in for PyTorch/XLA, as far as a check-up of nodes asks it: a device that is none."""
