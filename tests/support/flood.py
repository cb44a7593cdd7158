"""A job that floods its output: flood.py KIND [--mib N] [--seconds S] [--last TEXT] [--hold].

It prints KIND over and over, until N MiB are out or S seconds are over, whichever comes first,
then TEXT as a line, and ends. What it met on its way it notes in the file EFFECTS: that it has
begun, that it was told to end (it then ends), that its flood is over."""

import argparse
import json
import os
import signal
import sys
import time

KINDS = {
    "yes": "y\n",
    "returns": "\r",
    "one line": "x",
    "nul": "\0",
    "newlines": "\n",
    "forged": '::stoker:0:: {"v":1,"state":"ended","exit":0}\n',
    "numbers": "step: 7 loss: 0.5 accuracy: 0.25\n",
    "colours": "\x1b[31m\x1b[2J\x1b[1;1H\x1b]0;title\x07",
    "bars": "\r 10%|#         | 7/70 [00:07<01:03, 1.01s/it]",
    "almost a number": "step: " * 20 + "\n",
    "backtracks": "x" * 4000 + "\n",
    "compilers": "Failed compilation with Got a cached failed neff at " * 4 + "\n",
}


def note(what: str) -> None:
    line = {"what": what, "phase": os.environ["STOKER_PHASE"], "at": time.time()}
    fd = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, json.dumps(line).encode() + b"\n")
    os.close(fd)


def told(*_: object) -> None:
    note("told")
    os._exit(143)


def pour(block: bytes, until_bytes: float, until: float) -> None:
    done = 0
    while done < until_bytes and time.monotonic() < until:
        done += os.write(1, block)
        if done == len(block):
            note("flows")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--mib", type=float, default=float("inf"))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--last", default="")
    parser.add_argument("--hold", action="store_true", help="stay")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, told)
    block = (KINDS[args.kind] * (1 << 16)).encode()[:1 << 16]
    pour(block, args.mib * (1 << 20), time.monotonic() + args.seconds)
    sys.stdout.write("\n" + args.last + "\n")
    sys.stdout.flush()
    note("over")
    while args.hold:
        time.sleep(1)


if __name__ == "__main__":
    main()
