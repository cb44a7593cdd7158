"""A stand-in: a check-up of nodes imports it by this name."""
