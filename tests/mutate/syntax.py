"""The syntax tree of one C file, as clang gives it, and where its nodes stand in the text.

Places are half-open ranges of offsets in the file's bytes. A node that a macro makes stands where the
macro is called, from its name to its closing bracket; an argument of a macro stands where it is written."""

import json
import re
import subprocess
from pathlib import Path

_SPACE = re.compile(rb"(?:\s|/\*.*?\*/|//[^\n]*|\\\n)*", re.DOTALL)
_TOKEN = re.compile(rb"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[()]""", re.DOTALL)
_BRACKET = re.compile(_TOKEN.pattern.replace(rb"[()]", rb"[](){}[,;]"), re.DOTALL)
_KEPT = re.compile(r"-(?:I|D|U|isystem|include|std)")


def clang_arguments(command: list[str]) -> list[str]:
    """What matters of a compiler's command line for the meaning of a file."""
    kept, words = [], iter(command[1:])
    for word in words:
        if word in ("-I", "-isystem", "-include", "-D", "-U"):
            kept += [word, next(words)]
        elif _KEPT.match(word):
            kept.append(word)
    return kept


def parse(path: Path, arguments: list[str]) -> dict:
    """The tree of the file; raises where clang refuses it."""
    done = subprocess.run(["clang", "-fsyntax-only", "-w", *arguments, "-Xclang", "-ast-dump=json",
                           str(path)], capture_output=True)
    if done.returncode:
        raise RuntimeError(f"clang cannot read {path}:\n{done.stderr.decode()}")
    return json.loads(done.stdout)


def children(node: dict) -> list[dict]:
    """Also the empty ones, which stand for parts that are absent."""
    return node.get("inner", [])


def bare(node: dict) -> dict:
    """The node without the casts that the compiler adds."""
    while node.get("kind") in ("ImplicitCastExpr", "ConstantExpr") and children(node):
        node = children(node)[0]
    return node


def type_of(node: dict) -> str:
    """Its type without typedefs."""
    kind = node.get("type", {})
    return kind.get("desugaredQualType") or kind.get("qualType", "")


class Source:
    """The text of a file, and the places of nodes in it."""

    def __init__(self, text: bytes):
        self.text = text

    def macro_end(self, begin: int, length: int) -> int:
        """Where the call of the macro ends whose name begins there."""
        end = begin + length
        bracket = _SPACE.match(self.text, end).end()
        if self.text[bracket:bracket + 1] != b"(":
            return end
        depth = 0
        for token in _TOKEN.finditer(self.text, bracket):
            if token[0] == b"(":
                depth += 1
            elif token[0] == b")":
                depth -= 1
                if depth == 0:
                    return token.end()
        return end

    def spot(self, place: dict) -> tuple[int, int, tuple[int, int] | None, bool] | None:
        """(begin, end, the macro call around it, whether a macro made it) of one end of a node; None
        outside the file."""
        if "expansionLoc" not in place:
            if "offset" not in place or "includedFrom" in place:
                return None
            return place["offset"], place["offset"] + place["tokLen"], None, False
        call, written = place["expansionLoc"], place["spellingLoc"]
        if "offset" not in call or "includedFrom" in call:
            return None
        around = call["offset"], self.macro_end(call["offset"], call["tokLen"])
        if call.get("isMacroArgExpansion") and "includedFrom" not in written and \
                around[0] + call["tokLen"] < written.get("offset", -1) < around[1]:
            return written["offset"], written["offset"] + written["tokLen"], around, False
        return *around, around, True

    def place(self, node: dict) -> tuple[int, int, bool] | None:
        """(begin, end, whether one macro made all of it) of a node; None if it is not of this file."""
        ends = node.get("range", {})
        first, last = self.spot(ends.get("begin", {})), self.spot(ends.get("end", {}))
        if not first or not last:
            return None
        if first[2] and first[2] == last[2] and (first[3] or last[3]):
            return *first[2], True
        return (first[0], last[1], False) if first[0] < last[1] else None

    def is_whole(self, begin: int, end: int) -> bool:
        """True if the text can stand alone as an expression: its brackets match, and no comma is outside of
        them."""
        depth = 0
        for token in _BRACKET.finditer(self.text, begin, end):
            depth += {b"(": 1, b"[": 1, b"{": 1, b")": -1, b"]": -1, b"}": -1}.get(token[0], 0)
            if depth < 0 or depth == 0 and token[0] in (b",", b";"):
                return False
        return depth == 0

    def slice(self, begin: int, end: int) -> str:
        return self.text[begin:end].decode()

    def line(self, offset: int) -> int:
        return self.text.count(b"\n", 0, offset) + 1


class Enums:
    """All enumerations that a tree declares: what stands beside an enumerator."""

    def __init__(self, tree: dict):
        self.rows: dict[str, tuple[str, list[str], int, int]] = {}
        self._collect(tree)

    def _collect(self, node: dict) -> None:
        for child in children(node):
            if child.get("kind") == "EnumDecl":
                self._add(child)
            elif child.get("kind") in ("RecordDecl", "FunctionDecl", "CompoundStmt", "DeclStmt"):
                self._collect(child)

    def _add(self, enum: dict) -> None:
        names, value = [], -1
        rows = [child for child in children(enum) if child.get("kind") == "EnumConstantDecl"]
        for index, row in enumerate(rows):
            given = [child["value"] for child in children(row) if "value" in child]
            value = int(given[0]) if given else value + 1
            names.append(row["name"])
            self.rows[row["id"]] = (enum.get("name", ""), names, index, value)

    def other(self, node: dict) -> str | None:
        """The enumerator that is taken in place of the one that the node names: the next of its
        enumeration; a count is no value, but has the last value in its place. None if there is none."""
        name, names, index, _value = self.rows.get(node["referencedDecl"]["id"], ("", [], 0, 0))
        values = [value for value in names if not value.endswith("_COUNT")]
        if not name or not values:
            return None
        if names[index] not in values:
            return values[-1]
        if len(values) < 2:
            return None
        return values[(values.index(names[index]) + 1) % len(values)]

    def value(self, node: dict) -> int | None:
        """The value of a constant of an enumeration without a name, which is but a number."""
        name, _names, _index, value = self.rows.get(node["referencedDecl"]["id"], ("x", [], 0, 0))
        return None if name else value
