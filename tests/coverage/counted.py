"""What was taken: lines, branches and error paths of a source, from what llvm-cov exports and from the source's text."""

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path

DEFINITIONS = {
    "lines": "lines of functions with a word or a number on them; comments and directives are left out",
    "branches": "the two sides of each operand of a condition, and each case of a switch; left out is what the compiler knows, "
                "and of an enum its count and the way past all cases: no value takes them, and -Wswitch has all others named",
    "error paths": "places where a function learns of a failure or gives up: the true side of a condition that is `… < 0` alone; "
                   "`return -1`; a -1 behind ? or :; a call that is given the error first, as err_set(err, …); a goto",
}
ERROR = re.compile(r"\breturn (-1)\s*;|[?:]\s*(-1)\b|\b(?!TAKE|assert)(\w+)\((?:err|ret_err), |\b(goto)\b")
FAILED = re.compile(r"< 0$")
COUNT = re.compile(r"case [A-Z_]+_COUNT")
EXPANSION = 1


@dataclass
class Place:
    line: int
    taken: bool
    what: str


@dataclass
class Source:
    name: str
    places: dict[str, list[Place]] = field(default_factory=lambda: {kind: [] for kind in DEFINITIONS})


def bare(text: str) -> str:
    """The text with blanks for comments and for what is within quotes; places stay."""
    def blank(found: re.Match) -> str:
        return re.sub(r"[^\n]", " ", found[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.DOTALL)


def name_of(path: str) -> str:
    """Clang has each path start at the folder of the build, also one that -ffile-prefix-map has cut short."""
    return normpath(path).removeprefix("build/coverage/")


class Counts:
    """How often what stands at a line and column was done."""

    def __init__(self, segments: list):
        self.segments = segments # line, column, count, whether it counts, whether a region begins, whether it is a gap
        self.starts = [(segment[0], segment[1]) for segment in segments]

    def at(self, line: int, column: int) -> int | None:
        """None: it is not code."""
        i = bisect_right(self.starts, (line, column)) - 1
        return self.segments[i][2] if i >= 0 and self.segments[i][3] else None

    def of_line(self, line: int) -> int | None:
        """The most that any part of the line was done."""
        first, last = bisect_right(self.starts, (line, 0)), bisect_right(self.starts, (line + 1, 0))
        begun = [segment[2] for segment in self.segments[first:last] if segment[3] and segment[4] and not segment[5]]
        carried = self.at(line, 0)
        return max([*begun, *([] if carried is None else [carried])], default=None)


def span(lines: list[str], line: int, column: int, end_line: int, end_column: int) -> str:
    if line == end_line:
        return lines[line - 1][column - 1:end_column - 1]
    parts = [lines[line - 1][column - 1:], *lines[line:end_line - 1], lines[end_line - 1][:end_column - 1]]
    return " ".join(part.strip() for part in parts)


def stands_alone(lines: list[str], line: int, column: int, end_line: int, end_column: int) -> bool:
    """Whether an operand is a whole condition. Clang counts what comes of one; of several operands it infers the sides
    from how often the next is looked at, and a process that is killed in a call looks at no next."""
    before, after = lines[line - 1][:column - 1], lines[end_line - 1][end_column - 1:]
    return re.search(r"\($|(=|return) $", before) is not None and re.match(r"\)| \?", after) is not None


def branches_of(function: dict) -> list[tuple]:
    """file, line, column, end line, end column, times true, times false; a macro's stand where it is used."""
    used_at = {region[6]: region for region in function["regions"] if region[7] == EXPANSION}
    found = []
    for branch in function["branches"]:
        place, number = branch[:4], branch[6]
        while number in used_at:
            place, number = used_at[number][:4], used_at[number][5]
        found.append((name_of(function["filenames"][number]), *place, branch[4], branch[5]))
    return found


def sides_of(functions: list[dict]) -> dict[tuple, tuple[int, int]]:
    """Times true and times false of each operand; a function of a header counts in all files that have it."""
    sides: dict[tuple, tuple[int, int]] = {}
    for function in functions:
        for number, (*place, true, false) in enumerate(branches_of(function)):
            key = (place[0], number, *place[1:])
            before = sides.get(key, (0, 0))
            sides[key] = (before[0] + true, before[1] + false)
    return sides


def read(export: bytes, root: Path) -> list[Source]:
    data = json.loads(export)["data"][0]
    sources, texts = {}, {}
    for file in data["files"]:
        name = name_of(file["filename"])
        if not name.startswith("jobs/"):
            continue
        source, text = Source(name), bare((root / name).read_text())
        sources[name], texts[name] = source, (root / name).read_text().split("\n")
        counts = Counts(file["segments"])
        for number, line in enumerate(text.split("\n"), 1):
            count = counts.of_line(number)
            if count is None or not re.match(r"[^#\w]*\w", line):
                continue
            raw = texts[name][number - 1]
            source.places["lines"].append(Place(number, count > 0, raw.strip()))
            for found in ERROR.finditer(line):
                column = found.start(found.lastindex) + 1
                if (count := counts.at(number, column)) is not None:
                    source.places["error paths"].append(Place(number, count > 0, raw[column - 1:].strip()))
    for (name, _number, *place), sides in sides_of(data["functions"]).items():
        if name not in sources:
            continue
        what = span(texts[name], *place)
        if texts[name][place[0] - 1][:place[1] - 1].endswith("switch (") or COUNT.fullmatch(what):
            continue
        for side, count in zip(("true", "false"), sides):
            sources[name].places["branches"].append(Place(place[0], count > 0, f"never {side}: {what}"))
        if FAILED.search(what) and stands_alone(texts[name], *place):
            sources[name].places["error paths"].append(Place(place[0], sides[0] > 0, f"never true: {what}"))
    for source in sources.values():
        for places in source.places.values():
            places.sort(key=lambda place: place.line)
    return sorted(sources.values(), key=lambda source: source.name)
