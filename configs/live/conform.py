"""Tries on a live account what configs/live/rows.yaml takes for granted, for the rows that cost requests alone.

  configs/live/conform --region us-west-2 --bucket my-bucket [--role ARN] [--rows 's3-*'] [--budget 2] [--yes]
  configs/live/conform --region us-west-2 --bucket my-bucket --clean

Each row that is chosen is printed with its estimate, and the sum; nothing is sent before you have said yes. A row without a
trial is listed as not tried. A row with `named: true` is chosen by its whole id alone. What is made begins with
"stoker-conform-", is tagged, and is removed at the end, also after a signal; --clean removes what a killed one has left,
of this folder's run, or without one of all runs. A repeat in the same folder (--output) goes on where it was. A bucket
with versions keeps those of what is removed: name one without.

The folder gets results.json and results.md, a table without account, names and ARNs.

Exit codes: 0 all that was tried is as taken; 1 a row is otherwise; 2 wrong options or rows; 4 nothing was begun (not asked,
above the budget, no access), or something could not be removed; 128 and the number of a signal that ended it.
"""

import argparse
import datetime
import fnmatch
import hashlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import botocore.exceptions
import rows
import trials

ROOT = Path(__file__).resolve().parents[2]
DONE, OTHERWISE, USAGE, REFUSED = 0, 1, 2, 4
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
VERDICTS = ("as taken", "otherwise")


def say(text):
    print(text, flush=True)


def refuse(code, text):
    print(f"conform: {text}", file=sys.stderr)
    raise SystemExit(code)


def options(words):
    parser = argparse.ArgumentParser(prog="conform", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--region", required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--role", help="a role of SageMaker's, for the rows that make something with one")
    parser.add_argument("--rows", action="append", metavar="GLOB", help="which rows; repeatable; default: all")
    parser.add_argument("--budget", type=float, default=2.0, metavar="USD")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--clean", action="store_true", help="only remove what is left")
    parser.add_argument("--output", default="stoker-conform", metavar="FOLDER")
    parser.add_argument("--stoker", metavar="FILE", help="whose version is named; default: build/release/stoker")
    return parser.parse_args(words)


# ---- results


class Results:
    """What was seen so far, in the folder."""

    def __init__(self, folder, region, bucket):
        self.path = Path(folder) / "results.json"
        self.is_new = not self.path.exists()
        self.data = {"version": 1, "nonce": secrets.token_hex(8), "region": region, "rows": {}}
        if not self.is_new:
            try:
                self.data = json.loads(self.path.read_text("utf-8"))
                seen = self.data["nonce"], self.data["region"], self.data["of"]
                known = {name: row["verdict"] for name, row in self.data["rows"].items()}
            except (OSError, ValueError, KeyError, TypeError) as error:
                refuse(USAGE, f"'{self.path}' is no file of results ({error!r}): name another --output")
            if seen[1:] != (region, self.digest(bucket)) or not re.fullmatch(r"[0-9a-f]{16}", seen[0]):
                refuse(USAGE, f"'{self.path}' is of another region or bucket: name another --output")
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
    """Without ARNs, account numbers and the names of bucket and role."""
    text = re.sub(r"arn:aws[\w-]*:[^\s'\",;)]*", "<arn>", text)
    text = re.sub(r"(?<!\d)\d{12}(?!\d)", "<account>", text)
    return re.sub(rf"(?<![\w-]){re.escape(lab.bucket)}(?![\w-])", "<bucket>", text)


# ---- which rows


def chosen(live, globs):
    """The rows that the globs choose, in the file's order; a row that must be named, by its whole id alone."""
    found = [row for row in live.all if any(
        fnmatch.fnmatchcase(row["id"], glob) and (glob == row["id"] or not row["shape"].get("named")) for glob in globs)]
    for glob in globs:
        if not any(fnmatch.fnmatchcase(row["id"], glob) for row in live.all):
            refuse(USAGE, f"no row is called '{glob}'")
    return found


def why_not(row, args):
    """Why a row is not tried; None: it is."""
    if row["id"] not in trials.TRIALS:
        return "conform has no trial of this row"
    if row["id"] in trials.NEED_ROLE and not args.role:
        return "it needs --role"
    return None


def may_begin(tried, args):
    """Prints what it costs, and asks. Ends with REFUSED if it may not."""
    for row in tried:
        say(f"{row['id']}: {row['shape']['usd']:.2f} USD: {row['shape']['does']}")
    usd = sum(row["shape"]["usd"] for row in tried)
    say(f"{len(tried)} rows, {usd:.2f} USD at most")
    if usd > args.budget:
        refuse(REFUSED, f"that is above the budget of {args.budget:.2f} USD; nothing was begun")
    if args.yes:
        return
    if not sys.stdin.isatty():
        refuse(REFUSED, "without a terminal say --yes; nothing was begun")
    if input("Begin? [y/N] ").strip().lower() not in ("y", "yes"):
        refuse(REFUSED, "nothing was begun")


def version_of(args):
    program = args.stoker or ROOT / "build/release/stoker"
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        refuse(USAGE, f"cannot ask stoker for its version ({error}): build it, or name it by --stoker")
    return done.stdout.split("\n")[0]


# ---- trying


def attempt(lab, row):
    """One row: what becomes of it in the results."""
    lab.ids = []
    try:
        taken, seen = trials.TRIALS[row["id"]](lab)
        verdict = VERDICTS[0] if taken else VERDICTS[1]
    except (trials.NotTried, botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
        verdict, seen = "not tried", str(error) or type(error).__name__
    return {"verdict": verdict, "seen": mask(seen, lab), "requests": lab.ids, "at": now(), "usd": row["shape"]["usd"]}


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def try_all(lab, live, results, tried):
    """Tries the rows that are not done; returns 0, or the signal's exit code. What is left is removed in any case."""
    code = DONE
    try:
        if not results.is_new:
            trials.clean(lab, lab.name)  # of a run that was killed
        for row in tried:
            if row["id"] in results.done:
                continue
            lab.go_on()
            results.data["rows"][row["id"]] = found = attempt(lab, row)
            results.save(live)
            say(f"{row['id']}: {found['verdict']} ({found['seen']})")
    except trials.Ended as error:
        code = 128 + error.args[0]
    except botocore.exceptions.ClientError as error:
        print(f"conform: {mask(str(error), lab)}", file=sys.stderr)
        code = REFUSED
    finally:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        lab.ended = None
        left = remove(lab, lab.name)
    return code or left


def remove(lab, prefix):
    try:
        count, untold = trials.clean(lab, prefix)
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
        count, untold = 0, [str(error)]
    if count:
        say(f"removed {count} of {prefix}…")
    for words in untold:
        print(f"conform: cannot look for what is left: {mask(words, lab)}", file=sys.stderr)
    return REFUSED if untold else DONE


def main(words):
    args = options(words)
    live = rows.Live()
    wrong = list(live.problems())
    if wrong:
        refuse(USAGE, "\n".join(wrong))
    results = Results(args.output, args.region, args.bucket)
    try:
        lab = trials.Lab(args.region, args.bucket, results.nonce, args.role)
    except botocore.exceptions.BotoCoreError as error:
        refuse(REFUSED, f"{error}; nothing was begun")
    if args.clean:
        return remove(lab, trials.PREFIX if results.is_new else lab.name)
    everything = chosen(live, args.rows or ["*"])
    reasons = {row["id"]: why_not(row, args) for row in everything}
    tried = [row for row in everything if not reasons[row["id"]]]
    for row in everything:
        if reasons[row["id"]] and row["id"] not in results.done:
            results.data["rows"][row["id"]] = {"verdict": "not tried", "seen": reasons[row["id"]], "requests": [],
                                               "at": now(), "usd": row["shape"]["usd"]}
    results.data.update(date=now()[:10], stoker=version_of(args))
    may_begin([row for row in tried if row["id"] not in results.done], args)
    try:
        lab.location()
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
        refuse(REFUSED, f"no access to the bucket: {mask(str(error), lab)}; nothing was begun")
    for each in SIGNALS:
        signal.signal(each, lambda number, _: setattr(lab, "ended", number))
    results.save(live)  # before the first object: --clean knows its name
    code = try_all(lab, live, results, tried)
    if lab.has_versions:
        say(f"the bucket keeps versions of what was removed, below {lab.name}/")
    say(f"{results.path.with_name('results.md')}: the table; {len(reasons) - len(tried)} rows were not tried")
    if code:
        return code
    return OTHERWISE if any(row["verdict"] == VERDICTS[1] for row in results.data["rows"].values()) else DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
