"""A problem of a spec quotes its line, with a caret beneath the place: whatever
stands in that line, and never what could be a secret."""

import re
import unicodedata

import pytest
import stoker as cli

HEAD = "version: 1\nname: x\ncommand: [a]\n"


def width(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def quoted(result: cli.Result) -> tuple[str, int]:
    """The quoted line without its number, and the text above the caret begins at
    which column."""
    rows = result.err.splitlines()
    (at,) = [i for i, row in enumerate(rows) if re.match(r" +\| +\^~*$| +\| \^~*$", row)]
    line, caret = rows[at - 1], rows[at]
    number, text = line.split(" | ", 1)
    assert number.strip().isdigit() and width(number) == caret.index("|") - 1
    return text, caret.index("^") - caret.index("|") - 2


def above_caret(text: str, column: int) -> str:
    at = 0
    for i, char in enumerate(text):
        if at >= column:
            return text[i:]
        at += width(char)
    return ""


# A line with a mistake (all of HEAD before it), and what the caret must point at.
PLACES = {
    "plain": ("retires: 3\n", "retires: 3"),
    "a value": ("retry: {attempts: many}\n", "many}"),
    "wide": ("tags: {a: \"\u6f22\u5b57\u6f22\u5b57\"}\nenv: {A: \"\u6f22\u5b57e\u0301\", B: [1]}\n", "[1]}"),
    "tab": ("retry:\t{attempts:\tmany}\n", "many}"),
    "carriage return": ("retry: {attempts: many}\r\n", "many}"),
    "no newline at the end": ("retry: {attempts: many}", "many}"),
    "escapes": ("env: {A: \"\u202e\u2066\", B: [1]}\n", "[1]}"),
    "long": (f"hyperparameters: {{a: {'a' * 300}, b: {{c: 1}}, d: {'d' * 300}}}\n", "{c: 1}"),
    "long and wide": (f"hyperparameters: {{a: \"{'漢' * 300}\", b: {{c: 1}}, d: \"{'字' * 300}\"}}\n", "{c: 1}"),
    "a line after a break of another kind": ("env: {A: a}\u2028retires: 3\n", "retires: 3"),
}


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
@pytest.mark.parametrize("name", PLACES)
def test_the_caret_stands_beneath_the_place(project, name, locale):
    line, want = PLACES[name]
    project.spec_path.write_bytes((HEAD + line).encode())
    result = project.stoker("validate", project.spec_path, env={"LANG": locale})
    assert result.code == 3, str(result)
    text, column = quoted(result)
    assert above_caret(text, column).startswith(want), f"{text!r} at {column}\n{result}"
    assert width(text) <= 80 and not cli.CONTROL.search(text)
    if locale == "C":
        assert text.isascii()


@pytest.mark.parametrize("command", ["plan", "run"])
def test_whatever_reads_a_spec_quotes_it(project, command):
    project.spec_path.write_text(HEAD + "retires: 3\n")
    text, column = quoted(project.stoker(command, project.spec_path))
    assert (text, column) == ("retires: 3", 0)


def test_a_line_of_a_megabyte_is_cut_around_the_place(project):
    filler = "a" * 500_000
    project.spec_path.write_text(f"{HEAD}tags: {{x: {filler}, x: 1, y: {filler}}}\n")
    result = project.stoker("validate", project.spec_path)
    text, column = quoted(result)
    assert above_caret(text, column).startswith("x: 1") and text.startswith("…") and text.endswith("…")
    assert width(text) <= 80


def test_programs_and_overrides_get_no_quote(project):
    project.spec_path.write_text(HEAD + "retires: 3\n")
    result = project.stoker("--json", "validate", project.spec_path)
    assert result.lines[0]["line"] == 4 and not result.err
    project.spec_path.write_text(HEAD)
    result = project.stoker("validate", project.spec_path, "--set", "retry.attempts=many")
    assert result.code == 3 and "^" not in result.err, str(result)


# Each names its value like a secret somewhere, or belongs to something that does.
SECRETS = {
    "its own name": "env: {WANDB_API_KEY: hunter2hunter2, B: [1]}\n",
    "a line of a block": "env:\n  DB_PASSWORD: >-\n    hunter2hunter2\n    more: [\nx: [1\n",
    "an argument": "command: [a, --auth-token, hunter2hunter2, [1]]\n",
    "a secret where its source should be": "secrets: {DB: hunter2hunter2}\n",
    "the same on a line of its own": "secrets:\n  DB: hunter2hunter2: x\n",
    "a lint": "env: {API_TOKEN: hunter2hunter2}\n",
}


@pytest.mark.parametrize("name", SECRETS)
def test_what_is_named_like_a_secret_is_not_quoted(project, name):
    project.spec_path.write_text("version: 1\nname: x\n" + ("" if name == "an argument" else "command: [a]\n") + SECRETS[name])
    result = project.stoker("validate", project.spec_path)
    assert "error:" in result.err or "warning:" in result.err, str(result)
    assert "hunter2" not in result.text, str(result)
