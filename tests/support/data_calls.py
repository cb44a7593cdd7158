"""jobs/data/data.h asked directly, through the program tests/aws/data_calls.c, over data in a directory or in a
bucket:

    data = Place(aws, tmp_path, "s3")           # or "dir"
    data.put("drop/a.csv", b"1")
    assert data.turn().counts["new"] == 1"""

import json
import os
import subprocess
from types import SimpleNamespace

import stoker

PROGRAM = stoker.BINARY.parent / "tests/data_calls"


class Place:
    """Data, hold-out and workspace of one kind of store."""

    def __init__(self, aws, folder, kind):
        self.kind, self.folder, self.env = kind, folder, aws.env()
        self.s3 = aws.client("s3") if kind == "s3" else None
        base = "s3://bucket" if kind == "s3" else str(folder)
        self.url, self.hold_out, self.workspace = (f"{base}/{name}" for name in ("data", "held", "stored"))
        self.tick = 1_700_000_000_000_000_000

    def _bucket_key(self, key, place="data"):
        return f"{place}/{key}"

    def put(self, key, content, place="data"):
        """Writes an object; a file gets a time of its own."""
        if self.s3:
            self.s3.put_object(Bucket="bucket", Key=self._bucket_key(key, place), Body=content)
            return
        path = self.folder / place / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.tick += 1_000_000_000
        os.utime(path, ns=(self.tick, self.tick))

    def delete(self, key):
        if self.s3:
            self.s3.delete_object(Bucket="bucket", Key=self._bucket_key(key))
        else:
            (self.folder / "data" / key).unlink()

    def text(self, stored):
        if not self.s3:
            return open(stored["url"], encoding="utf-8").read()
        key = stored["url"].removeprefix("s3://bucket/")
        return self.s3.get_object(Bucket="bucket", Key=key)["Body"].read().decode()

    def rows(self, stored, place=None):
        """The lines of a list by their names below the data, in order."""
        rows = [json.loads(line) for line in self.text(stored).splitlines()]
        assert [row["url"] for row in rows] == sorted((row["url"] for row in rows), key=str.encode)
        return {row["url"].removeprefix((place or self.url) + "/"): row for row in rows}

    def call(self, do, code=None, **members):
        line = json.dumps({"do": do, "url": self.url, **members})
        done = subprocess.run([str(PROGRAM)], input=line + "\n", env=self.env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        reply = SimpleNamespace(**{"error": None, "hint": None, "code": None, **json.loads(done.stdout)})
        assert reply.code == code, vars(reply)
        return reply

    def turn(self, **members):
        return self.call("turn", **{"workspace": self.workspace, **members})
