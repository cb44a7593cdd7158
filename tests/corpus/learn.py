"""Which words speak for which class of failure, learnt from the corpus and from
messages/: writes jobs/flow/failure_words.def. Run by hand when texts were added or
rows of the tables changed, after a build:

    tests/.venv/bin/python tests/corpus/learn.py

A softmax regression over the words of a text: which there are, not how often. Texts
that are held out (see README.md) are not looked at; those that no row of the tables
knows weigh more than the others, for only such are judged by their words. Words are
what failure_words.c makes of a line; the two must not part."""

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "jobs" / "flow" / "failure_words.def"
CLASSES = ["transient-infra", "capacity", "spot", "hardware-node", "comm", "user-code", "user-config",
           "quota-permission", "data", "compile", "timeout-hang", "unknown"]
WORDS = 1500      # that are kept: those that tell classes apart most
MESSAGE_WEIGHT = 1    # of messages/: a labelled text has 1 too
UNKNOWN_WEIGHT, SEEN_WEIGHT = 2, 6    # of texts that no row knows: all of it, and the lines that the judge looks at
TEXTS_MIN = 3     # in which a word must be
STEPS_TO_CHOOSE, STEPS = 150, 500
RATE, MOMENTUM, DECAY = 2.0, 0.9, 3e-5
UNIT, LIMIT = 6, 26   # of the weights that are written: sixths of a natural logarithm
ROWS = 3          # words a line


def is_held_out(name: str, path: Path) -> bool:
    return path.parent.name == "blind" and int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0


def words(line: str) -> set[str]:
    """Of a line without a launcher's rank: letters alone, parted where a capital follows a small one and before the last
    of several capitals; of one letter none."""
    line = re.sub(r"^\s*(?:\[\w[^\]]{0,30}\]:|\d+:) ?", "", line)
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", line)
    return {part.lower() for part in parts if len(part) > 1}


def unknown() -> dict[str, list[str]]:
    """Of the texts that no row knows, the lines that the verdict rests on."""
    test = HERE.parents[1] / "build" / "asan" / "tests" / "unit_flow_corpus"
    said = subprocess.run([test], env={**os.environ, "STOKER_LIST_UNKNOWN": "1"}, capture_output=True)
    found, seen = {}, []
    for line in (said.stdout + said.stderr).decode(errors="replace").split("\n"):
        if line.startswith("unknown: "):
            seen = found.setdefault(line[9:], [])
        elif line.startswith("seen: ") and not re.match(r"seen: (exit status|killed by signal|no exit status)", line):
            seen.append(line[6:])
    return found


def words_of(lines: list[str]) -> set[str]:
    """Source lines of tracebacks and what is indented like them say little."""
    return set().union(*(words(line) for line in lines if line[:1] not in (" ", "\t")))


def texts() -> list:
    """(words, classes, weight) of every text that may be looked at."""
    found, hard = [], unknown()
    for path in sorted(HERE.glob("messages/*.txt")):
        for line in path.read_text().splitlines():
            classes, _, text = line.partition(": ")
            if set(classes.split(",")) <= set(CLASSES):
                found.append((words(text), classes.split(","), MESSAGE_WEIGHT))
    for path in sorted({*HERE.glob("*.txt"), *HERE.glob("blind/*.txt")}):
        for entry in re.split(r"(?m)^== ", path.read_text(errors="replace"))[1:]:
            name, _, body = entry.partition("\n")
            classes = [row.split()[0] for row in re.findall(r"(?m)^expect: *(.*)$", body)]
            if is_held_out(name.strip(), path) or not set(classes) <= set(CLASSES):
                continue
            all_of_it = words_of(re.findall(r"(?m)^(?:\| ?|engine: *)(.*)$", body))
            seen = hard.get(name.strip())
            found.append((all_of_it, classes, 1 if seen is None else UNKNOWN_WEIGHT))
            if seen:
                found.append((words_of(seen), classes, SEEN_WEIGHT))
    return found


def sums(values, ends):
    """Of each stretch of rows that ends where `ends` says."""
    total = numpy.zeros((len(values) + 1, values.shape[1]))
    numpy.cumsum(values, 0, out=total[1:])
    return (total[ends[1:]] - total[ends[:-1]]).astype(numpy.float32)


def fit(rows: list, vocabulary: list[str], steps: int):
    """Weights (words, classes) and the classes' own. A text has few of the words, so that
    only the pairs of a text and a word of it are gone through."""
    at = {word: i for i, word in enumerate(vocabulary)}
    of_text = [sorted(at[word] for word in found & at.keys()) for found, _, _ in rows]
    lengths = numpy.array([len(found) for found in of_text])
    word = numpy.array([i for found in of_text for i in found])
    by_word = numpy.argsort(word, kind="stable")
    text = numpy.repeat(numpy.arange(len(rows)), lengths)[by_word]
    texts_end = numpy.concatenate([[0], numpy.cumsum(lengths)])
    words_end = numpy.concatenate([[0], numpy.cumsum(numpy.bincount(word, minlength=len(vocabulary)))])
    scale = (1 / numpy.sqrt(numpy.maximum(1, lengths))).astype(numpy.float32)[:, None]
    y = numpy.zeros((len(rows), len(CLASSES)), numpy.float32)
    for i, (_, classes, _) in enumerate(rows):
        for name in classes:
            y[i, CLASSES.index(name)] = 1 / len(classes)
    share = numpy.array([[weight] for _, _, weight in rows], numpy.float32)
    share /= share.sum()
    weights = motion = numpy.zeros((len(vocabulary), len(CLASSES)), numpy.float32)
    bias = numpy.zeros(len(CLASSES), numpy.float32)
    for _ in range(steps):
        z = sums(weights[word], texts_end) * scale + bias
        p = numpy.exp(z - z.max(1, keepdims=True))
        error = (p / p.sum(1, keepdims=True) - y) * share
        motion = MOMENTUM * motion + sums((error * scale)[text], words_end) + DECAY * weights
        weights = weights - RATE * motion
        bias = bias - RATE * error.sum(0)
    return weights - weights.mean(1, keepdims=True), bias - bias.mean()


def learn(rows: list):
    counts = Counter(word for found, _, _ in rows for word in found)
    vocabulary = sorted(word for word, count in counts.items() if count >= TEXTS_MIN)
    strength = numpy.abs(fit(rows, vocabulary, STEPS_TO_CHOOSE)[0]).max(1)
    kept = sorted(vocabulary[i] for i in numpy.argsort(-strength, kind="stable")[:WORDS])
    return kept, *fit(rows, kept, STEPS)


def letters(values) -> str:
    """A capital speaks for the class, a small letter against it, the later the more."""
    rounded = [max(-LIMIT, min(LIMIT, round(value * UNIT))) for value in values]
    return "".join(chr(64 + v) if v > 0 else chr(96 - v) if v < 0 else "." for v in rounded)


def main() -> None:
    rows = texts()
    kept, weights, bias = learn(rows)
    items = [f'WORD("", "{letters(bias)}")', *(f'WORD("{word}", "{letters(weights[i])}")'
                                                for i, word in enumerate(kept))]
    lines = [" ".join(items[i:i + ROWS]) for i in range(0, len(items), ROWS)]
    OUT.write_text(f"""/*
 * Learnt by tests/corpus/learn.py from {len(rows)} texts: do not edit, run it again.
 * How much a word speaks for a class, in sixths of a natural logarithm: A to Z are 1 to
 * 26, a to z are -1 to -26. The classes: transient-infra, capacity, spot, hardware-node,
 * comm, user-code, user-config, quota-permission, data, compile, timeout-hang, unknown.
 * The first word is none: what a class has before any.
 */
/* clang-format off */
""" + "\n".join(lines) + "\n/* clang-format on */\n")
    print(f"{len(kept)} words from {len(rows)} texts: {OUT}", file=sys.stderr)


if __name__ == "__main__":
    main()
