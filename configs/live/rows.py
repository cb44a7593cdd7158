#!/usr/bin/env python3
"""Reads configs/live/rows.yaml, and makes the tables of docs/aws.md from it.

  configs/live/rows.py            prints the tables
  configs/live/rows.py --write    writes them into docs/aws.md, between the two comments there

It needs PyYAML. The exit code is 0, or 2 if a row is not what it should be: each problem is named.
"""

import decimal
import re
import sys
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.yaml"
CATALOGUE = HERE.parent / "catalogue/instances.yaml"
PAGE = HERE.parent.parent / "docs/aws.md"
BEGIN = "<!-- made by configs/live/rows.py --write: begin -->\n"
END = "<!-- made by configs/live/rows.py --write: end -->\n"

FIELDS = ("id", "statement", "otherwise", "relies", "shape", "judged")
SHAPE = {"by": str, "type": str, "nodes": int, "minutes": int, "days": int, "chance": bool, "needs": str, "named": bool,
         "untried": str, "usd": float, "does": str}
PLACES = ("requests", "here", "batch", "sagemaker")
WORDS = {"requests": "requests", "here": "this machine", "batch": "AWS Batch", "sagemaker": "SageMaker"}
MOST_UNNAMED = 0.5  # USD: a dearer row must be asked for by its name


class Live:
    """All rows: `groups` as they stand in the file, `rows` by id."""

    def __init__(self, text=None, catalogue=None):
        data = yaml.safe_load(ROWS.read_text("utf-8") if text is None else text)
        self.estimate, self.groups = data["estimate"], data["groups"]
        self.all = [row for group in self.groups for row in group["rows"]]
        self.rows = {row.get("id"): row for row in self.all}
        self.machines = machines() if catalogue is None else catalogue

    def kind(self, shape):
        return shape.get("type", self.estimate["smallest"])

    def machine(self, shape):
        return self.machines.get(self.kind(shape), {})

    def usd(self, shape):
        """What it costs, in USD, rounded up to a cent; None: the type has no price, or `minutes` is missing."""
        if shape.get("by") in ("requests", "here"):
            return self.estimate["requests"]
        price, minutes = self.machine(shape).get("price"), shape.get("minutes")
        if not price or not minutes:
            return None
        usd = decimal.Decimal(str(price)) * shape.get("nodes", 1) * minutes / 60
        if shape["by"] == "sagemaker":
            usd *= decimal.Decimal(str(self.estimate["sagemaker"]))
        return float(usd.quantize(decimal.Decimal("0.01"), rounding=decimal.ROUND_CEILING))

    def must_be_named(self, shape):
        return bool(shape.get("chance") or shape.get("days") or shape.get("needs") or self.machine(shape).get("accelerator")
                    or (shape.get("usd") or 0) > MOST_UNNAMED)

    def problems(self):
        """What is wrong, a sentence each."""
        seen = set()
        for row in self.all:
            name = row.get("id", "a row without an id")
            if name in seen or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
                yield f"{name}: an id has lower-case letters, digits and hyphens, and one row"
            seen.add(name)
            if sorted(row) != sorted(FIELDS):
                yield f"{name}: it has the fields {', '.join(sorted(row))}, and not {', '.join(sorted(FIELDS))}"
                continue
            yield from (f"{name}: {each}" for each in self.row_problems(row))

    def row_problems(self, row):
        shape = row["shape"]
        yield from (f"'{field}' is no text, or an empty one" for field in ("statement", "otherwise", "judged")
                    if not isinstance(row[field], str) or not row[field].strip())
        if not shape.get("does"):
            yield "its shape does not say what is done"
        yield from (f"'{word}' is no part of a shape, or of another kind" for word, value in shape.items()
                    if type(value) is not SHAPE.get(word))
        if not row["relies"] or not all(isinstance(name, str) for name in row["relies"]):
            yield "it names no file that relies on it"
        if shape.get("by") not in PLACES:
            yield f"it can be tried on {', '.join(PLACES)}"
            return
        if not self.machine(shape):
            yield f"the catalogue has no '{self.kind(shape)}'"
        elif shape["by"] == "sagemaker" and not self.machine(shape).get("sagemaker"):
            yield f"SageMaker does not train on '{self.kind(shape)}'"
        elif self.usd(shape) is None:
            yield "its cost cannot be computed: the type has no price, or 'minutes' is missing"
        elif shape.get("usd") != self.usd(shape):
            yield f"it costs {self.usd(shape)} USD, and not {shape.get('usd')}"
        if bool(shape.get("named")) != self.must_be_named(shape):
            yield "what has an accelerator, needs more, depends on chance, takes days or costs more than " \
                  f"{MOST_UNNAMED} USD is named: true, and nothing else is"


def machines():
    """The catalogue's rows by type, each with what its group says of all."""
    found = {}
    for group in yaml.safe_load(CATALOGUE.read_text("utf-8"))["groups"].values():
        for name, row in group["instances"].items():
            found[name] = {**group.get("all", {}), **row}
    return found


def shape_words(live, shape):
    """'AWS Batch: 2 × g6.8xlarge, 15 minutes; needs …; by name'."""
    if shape["by"] in ("requests", "here"):
        parts = [WORDS[shape["by"]]]
    else:
        kind = "the smallest" if shape["by"] == "batch" and "type" not in shape else live.kind(shape)
        ml = "ml." if shape["by"] == "sagemaker" else ""
        nodes = f"{shape['nodes']} × " if shape.get("nodes", 1) > 1 else ""
        parts = [f"{WORDS[shape['by']]}: {nodes}{ml}{kind}, {shape['minutes']} minutes"]
    if shape.get("days"):
        parts.append(f"again after {shape['days']} days")
    if shape.get("chance"):
        parts.append("by chance")
    if shape.get("needs"):
        parts.append(f"needs {shape['needs']}")
    if shape.get("untried"):
        parts = [f"not tried: {shape['untried']}"]
    elif shape.get("named"):
        parts.append("by name alone")
    return "; ".join(parts)


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def tables(live):
    """The tables of docs/aws.md, a heading each."""
    parts = []
    for group in live.groups:
        parts += [f"### {group['title']}", "", "| row | taken for granted | if not | tried | USD |", "|---|---|---|---|---|"]
        for row in group["rows"]:
            cells = (f"`{row['id']}`", row["statement"], row["otherwise"], shape_words(live, row["shape"]),
                     f"{row['shape']['usd']:.2f}")
            parts.append("| " + " | ".join(map(cell, cells)) + " |")
        parts.append("")
    return "\n".join(parts)


def split(page):
    """The page before, between and behind the two comments."""
    before, rest = page.split(BEGIN, 1)
    between, behind = rest.split(END, 1)
    return before + BEGIN, between, END + behind


def main(words):
    live = Live()
    wrong = list(live.problems())
    if words not in ([], ["--write"]):
        wrong.append("usage: configs/live/rows.py [--write]")
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 2
    made = "\n" + tables(live) + "\n"
    if words:
        before, _, behind = split(PAGE.read_text("utf-8"))
        PAGE.write_text(before + made + behind, "utf-8")
    else:
        print(made.strip("\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
