"""What conform has seen: results.json to go on from, results.md to paste, neither with names of the account."""

import hashlib
import json
import os
import re
import secrets
from pathlib import Path

import rows

VERDICTS = ("as taken", "otherwise")


class Unusable(Exception):
    """The folder's file is not of this run."""


class Results:
    """What was seen so far, in the folder. Raises Unusable if what is there is of something else."""

    def __init__(self, folder, region, bucket):
        self.path = Path(folder) / "results.json"
        self.is_new = not self.path.exists()
        self.data = {"version": 1, "nonce": secrets.token_hex(8), "region": region, "places": [], "rows": {}}
        if not self.is_new:
            try:
                self.data = json.loads(self.path.read_text("utf-8"))
                seen = self.data["nonce"], self.data["region"], self.data["of"]
                self.data["places"] = list(self.data["places"])
                known = {name: row["verdict"] for name, row in self.data["rows"].items()}
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise Unusable(f"'{self.path}' is no file of results ({error!r}): name another --output") from error
            if seen[1:] != (region, self.digest(bucket)) or not re.fullmatch(r"[0-9a-f]{16}", seen[0]):
                raise Unusable(f"'{self.path}' is of another region or bucket: name another --output")
            self.done = {name for name, verdict in known.items() if verdict in VERDICTS}
        else:
            self.data["of"], self.done = self.digest(bucket), set()

    @property
    def nonce(self):
        return self.data["nonce"]

    def digest(self, bucket):
        return hashlib.sha256(f"{self.nonce} {bucket}".encode()).hexdigest()[:16]

    def write(self, name, text):
        path = self.path.with_name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{name}.new")
        beside.write_text(text, "utf-8")
        os.replace(beside, path)

    def save(self, live):
        self.write("results.json", json.dumps(self.data, indent=2, ensure_ascii=False) + "\n")
        self.write("results.md", self.table(live))

    def table(self, live):
        lines = [f"{self.data['date']}, {self.data['region']}, {self.data['stoker']}", "",
                 "| row | taken for granted | verdict | seen | requests |", "|---|---|---|---|---|"]
        for name in (each["id"] for each in live.all if each["id"] in self.data["rows"]):
            row = self.data["rows"][name]
            cells = (f"`{name}`", live.rows[name]["statement"], row["verdict"], row["seen"],
                     ", ".join(row["requests"]))
            lines.append("| " + " | ".join(map(rows.cell, cells)) + " |")
        return "\n".join(lines) + "\n"


def mask(text, lab):
    """Without ARNs, account numbers and the names of bucket, queue and role."""
    text = re.sub(r"arn:aws[\w-]*:[^\s'\",;)]*", "<arn>", text)
    text = re.sub(r"(?<!\d)\d{12}(?!\d)", "<account>", text)
    roles = {(role or "").rpartition("/")[2]: "<role>" for role in (lab.role, lab.states_role, lab.scheduler_role)}
    names = {lab.bucket: "<bucket>", lab.queue_name: "<queue>", **roles}
    for name in filter(None, names):
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", names[name], text)
    return text
