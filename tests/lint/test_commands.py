"""Whatever names a command of stoker names one that there is: templates, help, hints and messages in the
code, README, CHANGELOG, docs, the specs in configs."""

import re

import pytest
import tree

# Of other times and of what is to come: whoever wrote them anywhere, in prose too, was ahead.
NOT_YET = ["simulate"]
NAMES = re.compile(r'^\t\{ "([a-z][a-z -]*)", "', re.MULTILINE)
# Where "stoker WORD" is what somebody types: in quotes, at a prompt, behind another command, in a list of
# examples, indented in a comment.
TYPED = re.compile(r"""(?: [`'(] | \{\ " | \$\  | &&\  | \|\  | ^\#\s{2,} | ^ ) (?: [A-Z_]+=\S+\  )* stoker
                       (?: \ --?[\w-]+ (?: [ =][^\s'`-][^\s'`]* )?? )*?
                       \ ([a-z][a-z-]*) (?: \ ([a-z][a-z-]*) )? (?![\w.:/=])""", re.VERBOSE)
ANYWHERE = re.compile(r"(?<![\w./-])stoker (%s)(?![\w-])" % "|".join(NOT_YET))
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def commands():
    return set(NAMES.findall(tree.text("cmd/cmd_table.c")))


def places():
    """(file, text)."""
    for name in tree.files():
        top = name.split("/")[0]
        if name.endswith((".c", ".h", ".def", ".completion", ".sh")) and top in ("cmd", "jobs", "aws", "cmake"):
            yield name, tree.text(name)
        elif top in ("templates", "configs", "docs") or name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
            yield name, tree.text(name)


def is_command(known, word, below):
    return word in known or f"{word} {below}" in known


def mentions(name, text):
    """Those that are typed, with their lines; of Markdown the start of a line counts in code alone."""
    code = [match.span() for match in FENCED.finditer(text)] if name.endswith(".md") else []
    at = 0
    for number, line in enumerate(text.split("\n"), 1):
        inside = any(first <= at < last for first, last in code)
        for match in TYPED.finditer(line):
            bare = match[0].startswith(("stoker", "|"))  # prose, or a cell of a table
            if not bare or inside or not name.endswith(".md"):
                yield number, match[1], match[2]
        at += len(line) + 1


def test_every_command_that_is_named_is_there():
    known, wrong, seen = commands(), [], set()
    assert {"validate", "cache ls", "help"} <= known and not known & set(NOT_YET), known
    for name, text in places():
        for number, word, below in mentions(name, text):
            seen.add(word)
            if not is_command(known, word, below):
                wrong.append(f"{name}:{number}: there is no command 'stoker {word}{' ' + below if below else ''}'")
        for number, line in enumerate(text.split("\n"), 1):
            wrong += [f"{name}:{number}: 'stoker {match[1]}' is not in this version" for match in ANYWHERE.finditer(line)]
    assert len(seen) >= 15, f"this looks at nothing: {seen}"
    if wrong:
        pytest.fail("\n".join(sorted(set(wrong))), pytrace=False)


@pytest.mark.parametrize("text", [
    "run 'stoker simulate' first", "then: stoker simulate, stoker plan", "`stoker --json simulate x.yaml`", "$ stoker frobnicate",
    "#   stoker validate s.yaml && stoker frobnicate s.yaml", "'stoker cache frobnicate'", "X=1 stoker frobnicate"])
def test_a_command_that_is_not_there_is_found(text):
    typed = [is_command(commands(), word, below) for _, word, below in mentions("a.yaml", text)]
    assert False in typed or ANYWHERE.search(text)
