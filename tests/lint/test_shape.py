"""The look of the tree: each file says first why it exists, none is too long,
no function is, nothing is left for later, and every header stands alone."""

import ast
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import tree

FILE_LINES = 600
FUNCTION_LINES = 80
LATER = re.compile(r"\b(?:%s)\b|(?i:not (?:yet )?implemented)" % "|".join(
    ("TO" "DO", "FIX" "ME", "XX" "X", "HA" "CK")))


def sources():
    """Files people write and read as code."""
    for name in tree.files():
        if tree.is_golden(name):
            continue
        if name.endswith((".c", ".h", ".def", ".py", ".sh", ".cmake", ".yaml", ".ini", ".txt")) \
                or tree.text(name).startswith("#!"):
            yield name


def test_every_file_says_first_why_it_exists():
    wrong = []
    for name in sources():
        text = re.sub(r"\A#!.*\n", "", tree.text(name)).lstrip("\n")
        opening = re.match(r'/\*(.*?)\*/|((?:#[^\n]*\n)+)|"""(.*?)"""', text, re.DOTALL)
        words = re.findall(r"[^\W\d_]{2,}", opening[0]) if opening else []
        if len(words) < 3:
            wrong.append(f"{name}:1: begin with a comment that says why this file exists")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_no_file_is_too_long():
    wrong = []
    for name in sources():
        lines = tree.text(name).count("\n")
        if lines > FILE_LINES:
            wrong.append(f"{name}: {lines} lines, {FILE_LINES} at most: split it by what it is about")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def functions(name):
    """(name, first line, lines) of each C function: an opening brace alone in
    column 1 up to the closing one."""
    lines = tree.code(name).split("\n")
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start:
            head = " ".join(lines[max(0, start - 4):start - 1])
            called = re.findall(r"(\w+)\s*\(", head)
            yield called[0] if called else "?", start, number - start + 1
            start = None


def test_no_function_is_too_long():
    wrong = []
    for name in tree.c_files() + tree.c_files("tests"):
        if name.endswith(".def"):
            continue
        for function, line, length in functions(name):
            if length > FUNCTION_LINES:
                wrong.append(f"{name}:{line}: {function} has {length} lines, {FUNCTION_LINES} at "
                             f"most: name its parts")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_nothing_is_left_for_later():
    wrong = []
    for name in sources():
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            if LATER.search(line):
                wrong.append(f"{name}:{number}: do it, or say in the documentation that it is not "
                             f"done: {line.strip()}")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_lines_end_well():
    wrong = []
    for name in sources():
        if tree.is_golden(name):
            continue
        text = tree.text(name)
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                wrong.append(f"{name}:{number}: white space at the end")
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            wrong.append(f"{name}: end with exactly one newline")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def cflags():
    modules = "jansson yaml-0.1 sqlite3 libpcre2-8 libarchive libgit2 libcrypto libcurl".split()
    return subprocess.run(["pkg-config", "--cflags", *modules], capture_output=True, text=True,
                          check=True).stdout.split()


def test_every_header_stands_alone():
    headers = [name for name in tree.c_files() if name.endswith(".h")]
    command = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
               "-fsyntax-only", "-I", str(tree.ROOT), *cflags(), "-x", "c", "-"]

    def check(name):
        # Twice: a header without a guard does not survive it.
        unit = f'#include "{name}"\n#include "{name}"\nextern int unit_is_not_empty;\n'
        done = subprocess.run(command, input=unit, capture_output=True, text=True)
        return "" if done.returncode == 0 else f"{name}: does not compile alone:\n{done.stderr}"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [finding for finding in pool.map(check, headers) if finding]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_programs_that_run_in_an_image_run_in_an_old_one():
    """They meet the Python of the training's image: 3.7 and later."""
    wrong = []
    for name in tree.files():
        if not (name.startswith("jobs/") and name.endswith(".py")):
            continue
        for node in ast.walk(ast.parse(tree.text(name), name, feature_version=(3, 7))):
            if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.BitOr):
                wrong.append(f"{name}:{node.lineno}: '|' joins dicts from Python 3.9 on: update() does before")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
