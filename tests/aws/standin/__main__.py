"""Starts the stand-in: one JSON object of options on the first line of stdin, one line with
the port on stdout when it listens. It ends when stdin does, so that it never outlives
the test that started it."""

import json
import os
import sys
import tempfile
import threading

from standin.front import Front
from standin.wire import Server


def main():
    options = json.loads(sys.stdin.readline() or "{}")
    with tempfile.TemporaryDirectory(prefix="standin-", dir=options.get("dir")) as folder:
        front = Front(folder, options.get("keys", []), options.get("settings", {}))
        server = Server(front.handle, options.get("port", 0), options.get("certificate"))
        front.url = f"{'https' if server.tls else 'http'}://127.0.0.1:{server.port}"
        threading.Thread(target=server.serve, daemon=True).start()
        print(server.port, flush=True)
        while sys.stdin.read(1):
            pass
        front.floor.clear()
        front.store.clear()
    os._exit(0)


main()
