"""Finds the mutants of a C file: each a small change of one place, as a person may have written it by mistake.

  condition   a condition is negated; a condition, or an operand of && or ||, is dropped
  comparison  < becomes <= and the reverse, > becomes >= and the reverse, == becomes != and the reverse
  logic       && becomes || and the reverse
  call        a call whose result nobody uses is dropped
  result      a function returns its other result: not true but false, not 0 but -1, NULL, 0
  constant    a number is one more, one less, a thousand times as much, or 0; true becomes false
  enum        an enumerator becomes the next one of its enumeration

Left out are changes that cannot matter: < that becomes <= in `a < b ? a : b` and in `if (a > b) a = b;`, and -1 that
becomes another number below 0: whoever is given a failure, a number or a descriptor asks whether it is below 0.

What must be constant when the file is compiled cannot be switched while it runs: Finder.left counts these by
kind (case labels, static initialisers, sizeof, what macros make, zero initialisers)."""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field

from syntax import Enums, Source, bare, children, type_of

SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
BRANCHES = {"IfStmt", "WhileStmt", "DoStmt", "ForStmt", "ConditionalOperator"}
# Which children of a node are statements.
STATEMENTS = {"CompoundStmt": slice(None), "IfStmt": slice(1, None), "WhileStmt": slice(1, None), "DoStmt": slice(1),
              "ForStmt": slice(4, None), "DefaultStmt": slice(None), "LabelStmt": slice(None)}
UNEVALUATED = {"UnaryExprOrTypeTraitExpr": "sizeof", "OffsetOfExpr": "offsetof",
               "GenericSelectionExpr": "_Generic", "StaticAssertDecl": "static assertion",
               "EnumDecl": "enumeration", "RecordDecl": "structure", "TypedefDecl": "type"}
LIMITS = {"int": (31, True), "unsigned int": (32, False), "long": (63, True), "unsigned long": (64, False),
          "long long": (63, True), "unsigned long long": (64, False)}
NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)$")


@dataclass
class Mutant:
    """One change of text[begin:end]."""
    file: str
    function: str
    line: int
    begin: int
    end: int
    kind: str
    becomes: str             # C, or "" for a call that is dropped
    truth: bool = False      # only the truth of the value matters
    change: str = ""         # for people, and the mutant's name in its function
    number: int = 0
    body: str = ""           # a digest of the function

    @property
    def name(self) -> str:
        return f"{self.file} {self.function}\n    {self.change}"


@dataclass
class Finder:
    """Mutants of one file, in the order of its text."""
    file: str
    source: Source
    enums: Enums
    macros: set[str]         # names of the macros without arguments that the product defines
    mutants: list[Mutant] = field(default_factory=list)
    left: Counter = field(default_factory=Counter)
    pickers: set[str] = field(default_factory=set)
    function: str = ""
    result: str = ""
    body: str = ""

    def text(self, node: dict) -> str:
        place = self.source.place(node)
        return self.source.slice(place[0], place[1])

    def add(self, place: tuple[int, int, bool], kind: str, becomes: str, truth: bool = False) -> None:
        begin, end = place[:2]
        if not self.source.is_whole(begin, end):
            self.left["cut by a macro"] += 1
            return
        was = self.source.slice(begin, end)
        if squeezed(becomes) == squeezed(was):
            return
        for other in self.mutants:
            if (other.begin, other.end) == (begin, end) and squeezed(other.becomes) == squeezed(becomes):
                return
        self.mutants.append(Mutant(self.file, self.function, self.source.line(begin), begin, end, kind,
                                   becomes, truth, body=self.body))

    def file_of(self, tree: dict) -> None:
        for node in children(tree):
            place = self.source.place(node)
            if not place or place[2]:
                continue
            if node["kind"] == "VarDecl":
                self.skip(node, "static initialiser")
            elif node["kind"] == "FunctionDecl" and children(node) and \
                    children(node)[-1].get("kind") == "CompoundStmt":
                self.function = node["name"]
                self.result = node["type"]["qualType"].split("(")[0].strip()
                self.body = hashlib.sha256(self.text(node).encode()).hexdigest()
                self.walk(children(node)[-1], node)
        self.mutants.sort(key=lambda mutant: (mutant.begin, -mutant.end))
        self.name_changes()

    def skip(self, node: dict, why: str) -> None:
        """Counts what would be mutants if it were not a constant."""
        if node.get("kind") in ("IntegerLiteral", "FloatingLiteral") or \
                node.get("referencedDecl", {}).get("kind") == "EnumConstantDecl" or \
                node.get("opcode") in SWAPPED:
            self.left[why] += 1
        for child in children(node):
            self.skip(child, why)

    def walk(self, node: dict, parent: dict, macro: tuple[int, int] | None = None) -> None:
        """Visits what is evaluated while the program runs. `macro` is the call around the node, if a macro made
        it; of this only the whole is visited, and its arguments."""
        kind = node.get("kind")
        if not kind:
            return
        if kind in UNEVALUATED:
            self.skip(node, UNEVALUATED[kind])
            return
        if kind == "VarDecl" and node.get("storageClass") in ("static", "extern"):
            self.skip(node, "static initialiser")
            return
        if kind == "InitListExpr" and self.is_zero(node):
            self.left["zero initialiser"] += 1
            return
        if kind == "CaseStmt":
            self.skip(children(node)[0], "case label")
            for child in children(node)[1:]:
                self.visit_statement(child)
                self.walk(child, node, macro)
            return
        if kind == "ConstantExpr":
            self.skip(node, "constant expression")
            return
        place = self.source.place(node)
        if place and place[2]:
            if place[:2] != macro and kind not in ("ImplicitCastExpr", "ParenExpr"):
                macro = place[:2]
                self.visit_macro(node, place)
        elif place:
            self.visit(node, parent, place)
        for child in children(node):
            self.walk(child, node, macro)

    def is_zero(self, node: dict) -> bool:
        return bool(self.source.place(node)) and bool(re.fullmatch(r"(\(.*\))?\s*\{\s*0\s*\}", self.text(node)))

    # ---- what is at one node

    def visit(self, node: dict, parent: dict, place: tuple[int, int, bool]) -> None:
        kind = node["kind"]
        if kind in BRANCHES:
            self.visit_branch(node)
        for child in children(node)[STATEMENTS.get(kind, slice(0))]:
            self.visit_statement(child)
        if kind == "ReturnStmt" and children(node):
            self.visit_return(children(node)[0])
        elif kind == "BinaryOperator" and node["opcode"] in SWAPPED:
            self.visit_operator(node, place)
        elif kind == "UnaryOperator" and node["opcode"] == "-" and bare(children(node)[0])["kind"] == "IntegerLiteral":
            self.visit_number(bare(children(node)[0]), parent, place, -1)
        elif kind == "IntegerLiteral" and parent.get("opcode") != "-":
            self.visit_number(node, parent, place, 1)
        elif kind == "FloatingLiteral":
            was = self.text(node)
            for becomes in (f"{was} + 1", f"{was} - 1", f"{was} * 1000", "0.0"):
                self.add(place, "constant", becomes)
        elif kind == "DeclRefExpr" and node["referencedDecl"]["kind"] == "EnumConstantDecl":
            self.visit_enumerator(node, place)

    def picks(self, node: dict) -> None:
        """Notes a comparison that picks the less or the more of two: `a < b ? a : b`, `if (a > b) a = b;`. With
        equality in it, it picks the same."""
        parts = children(node)
        test = bare(parts[0])
        if test.get("kind") != "BinaryOperator" or test["opcode"] not in ("<", "<=", ">", ">=") or len(parts) < 2:
            return
        sides = {squeezed(self.text(side)) for side in children(test)}
        then = bare(parts[1])
        if node["kind"] == "IfStmt" and len(parts) == 2 and then.get("opcode") == "=":
            chosen = children(then)
        elif node["kind"] == "ConditionalOperator":
            chosen = parts[1:]
        else:
            return
        if all(self.source.place(part) for part in chosen) and sides == {squeezed(self.text(part)) for part in chosen}:
            self.pickers.add(test["id"])

    def visit_branch(self, node: dict) -> None:
        parts = children(node)
        begin = self.source.spot(node["range"]["begin"])
        if node["kind"] != "ConditionalOperator" and begin[3]:
            return  # a loop that a macro begins has no condition in this file
        at = {"DoStmt": 1, "ForStmt": 2}.get(node["kind"], 0)
        if at >= len(parts) or not parts[at].get("kind"):
            return
        self.picks(node)
        self.negate(parts[at])
        place = self.source.place(bare(parts[at]))
        if node["kind"] == "IfStmt" and place:
            self.add(place, "condition", "1", truth=True)

    def negate(self, condition: dict) -> None:
        """As a condition or an operand of one; a comparison by == is negated as a comparison."""
        condition = bare(condition)
        place = self.source.place(condition)
        if not place or condition.get("opcode") in ("==", "!=") and condition["kind"] == "BinaryOperator":
            return
        if condition["kind"] == "UnaryOperator" and condition.get("opcode") == "!" and not place[2]:
            self.add(place, "condition", self.text(children(condition)[0]), truth=True)
        else:
            self.add(place, "condition", f"!({self.text(condition)})", truth=True)

    def visit_operator(self, node: dict, place: tuple[int, int, bool]) -> None:
        left, right = children(node)
        first, last = self.source.place(left), self.source.place(right)
        between = self.source.slice(first[1], last[0]) if first and last else ""
        if node["opcode"] not in between:
            self.left["made by a macro"] += 1
            return
        swapped = between.replace(node["opcode"], SWAPPED[node["opcode"]])
        kind = "logic" if node["opcode"] in ("&&", "||") else "comparison"
        if node["id"] not in self.pickers:
            self.add(place, kind, self.text(left) + swapped + self.text(right))
        if kind == "logic":
            # Of a && b && c, which is (a && b) && c, each of a, b and c is dropped once.
            self.add(place, "condition", self.text(left), truth=True)
            if bare(left).get("opcode") != node["opcode"]:
                self.add(place, "condition", self.text(right), truth=True)
            for side in (left, right):
                if bare(side).get("opcode") not in ("&&", "||"):
                    self.negate(side)

    def visit_number(self, node: dict, parent: dict, place: tuple[int, int, bool], sign: int) -> None:
        number = NUMBER.match(self.text(node))
        if number and parent.get("castKind") != "NullToPointer":
            self.shift(place, sign * int(node["value"]), type_of(node), number[2])

    def visit_macro(self, node: dict, place: tuple[int, int, bool]) -> None:
        """A number that the product names by a macro; the numbers of the system are not ours to change."""
        was = self.source.slice(place[0], place[1])
        if was in ("true", "false"):
            self.add(place, "constant", "false" if was == "true" else "true")
        elif was in self.macros and type_of(node) in LIMITS and is_number(node):
            for becomes in (f"{was} + 1", f"{was} - 1", f"{was} * 1000", "0"):
                self.add(place, "constant", becomes)
        elif node.get("opcode") in SWAPPED:
            self.left["made by a macro"] += 1

    def shift(self, place: tuple[int, int, bool], value: int, of: str, suffix: str = "") -> None:
        bits, signed = LIMITS.get(of, (31, True))
        for other in (value + 1, value - 1, value * 1000, 0):
            if value == -1 and other < 0:
                continue
            if abs(other) < 2 ** bits and (signed or other >= 0) and other != value:
                self.add(place, "constant", f"{other}{suffix}" if other >= 0 else f"({other}{suffix})")

    def visit_enumerator(self, node: dict, place: tuple[int, int, bool]) -> None:
        value = self.enums.value(node)
        other = self.enums.other(node)
        if value is not None:
            self.shift(place, value, "int")
        elif other:
            self.add(place, "enum", other)

    def visit_statement(self, node: dict) -> None:
        """A call that is a statement of its own, also as `(void)call()`."""
        inner = bare(node) if node.get("kind") else {}
        if inner.get("kind") == "CStyleCastExpr" and inner.get("castKind") == "ToVoid":
            inner = bare(children(inner)[0])
        if inner.get("kind") != "CallExpr":
            return
        place = self.source.place(node)
        if not place or re.match(r"va_|assert", self.source.slice(place[0], place[1])):
            return
        self.add(place, "call", "")

    def visit_return(self, value: dict) -> None:
        place = self.source.place(value)
        if not place:
            return
        what, was = self.result, self.text(value)
        for word in ("static ", "inline ", "const "):
            what = what.replace(word, "")
        if what in ("bool", "_Bool"):
            if was not in ("true", "false") and bare(value).get("opcode") not in SWAPPED:
                self.add(place, "result", f"!({was})", truth=True)
        elif what.endswith("*"):
            if was != "NULL":
                self.add(place, "result", "NULL")
        elif what.startswith("struct "):
            if not self.is_zero(value):
                self.add(place, "result", f"({what}){{0}}")
        elif bare(value).get("kind") not in ("IntegerLiteral", "ConditionalOperator") and \
                bare(value).get("referencedDecl", {}).get("kind") != "EnumConstantDecl" and \
                not re.fullmatch(r"-\s*\d+", was):
            self.add(place, "result", "0")

    # ---- for people

    def name_changes(self) -> None:
        """Each change as the line of the source with what was and what becomes of it in braces."""
        seen: Counter = Counter()
        text = self.source.text
        for mutant in self.mutants:
            first = text.rfind(b"\n", 0, mutant.begin) + 1
            last = text.find(b"\n", mutant.end)
            before, after = text[first:mutant.begin].decode(), text[mutant.end:last].decode()
            was = self.source.slice(mutant.begin, mutant.end)
            change = squeezed(f"{before}{{{was} -> {mutant.becomes or 'nothing'}}}{after}")
            seen[mutant.function, change] += 1
            count = seen[mutant.function, change]
            mutant.change = change if count == 1 else f"{change} #{count}"


def is_number(node: dict) -> bool:
    """True for a sum of literals."""
    kinds = ("IntegerLiteral", "BinaryOperator", "UnaryOperator", "ParenExpr", "ImplicitCastExpr", "CStyleCastExpr")
    return node.get("kind") in kinds and all(is_number(child) for child in children(node))


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
