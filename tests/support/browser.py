"""Debian's Chromium without a window, driven by its DevTools protocol over a pipe: what a page draws,
says, asks for, and how long it takes to open. No driver and no port are needed."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

SECONDS = 300  # only a hang takes longer
CHROMIUM = shutil.which("chromium", path=f"{os.environ.get('PATH', '')}:/usr/bin")


class Browser:
    """One process; a page is loaded into its only tab."""

    def __init__(self, folder: Path):
        reads, self.write = os.pipe()
        self.read, writes = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        # Chromium reads from descriptor 3 and writes to 4.
        argv = ["bash", "-c", f'exec 3<&{reads} 4>&{writes} && exec "$@"', "bash", CHROMIUM, *flags]
        self.process = subprocess.Popen(argv, pass_fds=(reads, writes), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)})
        os.close(reads)
        os.close(writes)
        self.rest, self.number, self.session = b"", 0, None
        self.events = []
        page = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.write)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        os.close(self.read)

    def message(self) -> dict:
        limit = time.monotonic() + SECONDS
        while b"\0" not in self.rest:
            assert time.monotonic() < limit, "the browser does not answer"
            if select.select([self.read], [], [], 1)[0]:
                more = os.read(self.read, 1 << 20)
                assert more, "the browser has ended"
                self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def call(self, method: str, **params) -> dict:
        self.number += 1
        call = {"id": self.number, "method": method, "params": params}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.write, json.dumps(call).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def load(self, path: Path, *, width: int = 1600, height: int = 900, dark: bool = False,
             scripts: bool = True) -> None:
        """Opens the file, and returns once it is loaded and drawn."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def value(self, expression: str):
        """What an expression of JavaScript gives in the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self) -> list:
        """Messages of the console, uncaught exceptions, and what the browser itself logs."""
        self.value("new Promise(done => setTimeout(done, 100))")
        return [event["params"] for event in self.events
                if event["method"] in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")]

    def requests(self) -> list:
        """Every address that the page asked for."""
        self.value("new Promise(done => setTimeout(done, 100))")
        return [event["params"]["request"]["url"] for event in self.events
                if event["method"] == "Network.requestWillBeSent"]

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))
