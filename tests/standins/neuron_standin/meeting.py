"""Where the runtimes of a collective meet, and that it is where they are. All nodes of a test share
a machine, so that an address does not tell which of them it is: who is alone may name no other
than localhost."""

import os
import sys

NAME = "NEURON_RT_ROOT_COMM_ID"


def check(first: str | None) -> None:
    """Of the host `first` and others, or of this one alone (None)."""
    told = os.environ.get(NAME)
    host, colon, port = (told or "").rpartition(":")
    if told is None and (first is None or os.environ.get("GROUP_WORLD_SIZE") == "1"):
        return
    if told is None:
        sys.exit(f"stand-in: several hosts, and no {NAME}")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        sys.exit(f"stand-in: {NAME} is host:port, not '{told}'")
    if host.strip("[]") not in ((first,) if first else ("localhost", "127.0.0.1")):
        sys.exit(f"stand-in: {NAME}: nobody is at '{told}': the first host is {first or 'localhost'}")
    if first and port == os.environ.get("MASTER_PORT"):
        sys.exit(f"stand-in: {NAME}: the port of '{told}' is torchrun's own")
