"""A stand-in: it is there."""
