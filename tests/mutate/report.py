"""What is printed about the mutants of a box, and the table of those that no test can kill."""

import sys
from collections import Counter
from pathlib import Path

from build import Build
from find import Mutant
from trial import Verdict

EQUIVALENT_SHARE = 0.03


class Equivalents:
    """Rows of equivalent*.txt: a mutant's file and function, its change, and the reason why it changes nothing that
    anybody could notice. Lines that begin with # are comments."""

    def __init__(self, paths: list[Path]):
        self.reasons: dict[str, str] = {}
        self.wrong: list[str] = []
        for path in paths:
            self.read(path)

    def read(self, path: Path) -> None:
        lines = path.read_text().splitlines() if path.exists() else []
        rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
        place, change = "", ""
        for number, line in rows:
            words = line.strip()
            if not line.startswith((" ", "\t")):
                place = words
            elif words.startswith("because "):
                if not place or not change:
                    self.wrong.append(f"{path.name}:{number}: a reason without a change")
                    continue
                name = f"{place}\n    {change}"
                if name in self.reasons:
                    self.wrong.append(f"{path.name}:{number}: twice")
                self.reasons[name] = words
                change = ""
            elif change:
                self.wrong.append(f"{path.name}:{number}: the change before it has no reason")
                change = words
            else:
                change = words
        if change:
            self.wrong.append(f"{path.name}: the last change has no reason")


def check(build: Build, chosen: list[str], mutants: list[Mutant], verdicts: dict[str, Verdict],
          equivalents: Equivalents) -> list[str]:
    """What is wrong with the table, as far as it is about these files."""
    wrong = list(equivalents.wrong)
    every = {mutant.name for name in build.sources for mutant in build.found[name].mutants}
    own = [name for name in equivalents.reasons if name.split()[0] in build.sources]
    wrong += [f"equivalent.txt: there is no such mutant: {name}" for name in own
              if name not in every and name.split()[0] in chosen]
    wrong += [f"equivalent.txt: {verdicts[m.name].by} kills it: {m.name}" for m in mutants
              if m.name in equivalents.reasons and verdicts[m.name].by]
    gone = [name for name in equivalents.reasons if name.split()[0].startswith(f"jobs/{build.box}/") and
            name.split()[0] not in build.sources]
    wrong += [f"equivalent.txt: there is no such file: {name}" for name in gone]
    if len(own) > EQUIVALENT_SHARE * len(every):
        wrong.append(f"equivalent.txt: {len(own)} rows of jobs/{build.box}, which has {len(every)} mutants: more "
                     f"than {EQUIVALENT_SHARE:.0%}")
    return wrong


def row(name: str, counts: Counter, width: int) -> str:
    every = sum(counts.values())
    rest = every - counts["equivalent"]
    score = f"{100 * counts['killed'] / rest:5.1f} %" if rest else "      -"
    return (f"{name:<{width}} {every:7} {counts['killed']:7} {counts['survived']:8} {counts['equivalent']:10}  "
            f"{score}")


def print_report(build: Build, chosen: list[str], mutants: list[Mutant], verdicts: dict[str, Verdict],
                 equivalents: Equivalents, least: float) -> bool:
    """Prints the table and the survivors; returns whether the score and the table of equivalents are good."""
    counts: dict[str, Counter] = {name: Counter() for name in chosen}
    survivors, by = [], Counter()
    for mutant in mutants:
        verdict = verdicts[mutant.name]
        fate = "killed" if verdict.by else "equivalent" if mutant.name in equivalents.reasons else "survived"
        counts[mutant.file][fate] += 1
        by[verdict.by.split()[0] if verdict.by else ""] += 1
        if fate == "survived":
            survivors.append((mutant, verdict))
    width = max(len(name) for name in [*chosen, "total"])
    print(f"{'':{width}} {'mutants':>7} {'killed':>7} {'survived':>8} {'equivalent':>10}    score")
    for name in chosen:
        if counts[name]:
            print(row(name, counts[name], width))
    total = sum(counts.values(), Counter())
    print(row("total", total, width))
    left = sum((build.found[name].left for name in chosen), Counter())
    print("not mutated, because constant while the program runs: " +
          (", ".join(f"{why} {count}" for why, count in left.most_common()) or "nothing"))
    print("killed by: " + ", ".join(f"{name} {count}" for name, count in by.most_common() if name))
    for mutant, verdict in survivors:
        said = f" ({verdict.how})" if verdict.how else ""
        print(f"survived: {mutant.file}:{mutant.line}: {mutant.function}: {mutant.change}{said}")
    wrong = check(build, chosen, mutants, verdicts, equivalents)
    for text in wrong:
        print(text, file=sys.stderr)
    rest = sum(total.values()) - total["equivalent"]
    return not wrong and (not rest or 100 * total["killed"] / rest >= least)
