"""Writes a C file in which each mutant of it can be chosen while the program runs: `a < b` becomes
`(mutant_at(7, 1) ? (a <= b) : (a < b))`. Only one mutant is chosen at a time, so what stands in its place is the
text as it was; only in the original branch do the mutants of inner places go on."""

from itertools import groupby

from find import Mutant


def weave(text: bytes, mutants: list[Mutant], header: str) -> tuple[bytes, list[Mutant]]:
    """Returns the new text and the mutants that are in it: one whose place cuts that of another is left out.
    The mutants carry their numbers, which follow each other where several change one place; lines keep theirs."""
    places = []
    for place, group in groupby(sorted(mutants, key=lambda m: (m.begin, -m.end)), lambda m: (m.begin, m.end)):
        places.append((*place, list(group)))
    woven, taken, _end = _weave(text, places, 0, len(text))
    return f'#include "{header}"\n#line 1\n'.encode() + woven, taken


def _weave(text: bytes, places: list, begin: int, end: int) -> tuple[bytes, list[Mutant], int]:
    """The text of [begin, end) with all places in it, which are taken from the list."""
    out, taken, at = [], [], begin
    while places and places[0][0] < end:
        first, last, mutants = places[0]
        if first < at or last > end:
            places.pop(0)
            continue
        places.pop(0)
        inner, more, _end = _weave(text, places, first, last)
        out += [text[at:first], _choice(text, mutants, inner)]
        taken += mutants + more
        at = last
    return b"".join([*out, text[at:end]]), taken, end


def _choice(text: bytes, mutants: list[Mutant], original: bytes) -> bytes:
    first = mutants[0]
    lines = text.count(b"\n", first.begin, first.end)
    if any(m.kind == "call" for m in mutants):
        before, after = b"(void)(", b")"
    elif any(m.truth for m in mutants):
        before, after = b"!!(", b")"
    else:
        before, after = b"(", b")"
    choices = [b"(void)0" if mutant.kind == "call" else before + b" ".join(mutant.becomes.encode().splitlines()) + after
               for mutant in mutants]
    chain = b"".join(b"mutant_chosen == %d ? %s : " % pair for pair in zip([m.number for m in mutants[:-1]], choices))
    assert original.count(b"\n") == lines
    return b"(mutant_at(%d, %d) ? %s%s : " % (first.number, len(mutants), chain, choices[-1]) + \
        before + original + after + b")"
