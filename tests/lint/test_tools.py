"""What the usual tools say about the sources: nothing."""

import hashlib
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import tree

BUILD = tree.ROOT / os.environ.get("STOKER_BUILD", "build/clang")
# States of a function that clang-tidy's analyzer looks at. Its own limit is 225,000, which tests/soak sets: that
# takes four times as long, and found nothing more on the day when this was written.
NODES = os.environ.get("STOKER_TEST_ANALYZER_NODES", "60000")
ANALYZER = [f"--extra-arg={part}" for part in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={NODES}")]


def said(command, **options):
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True, **options)
    return done.returncode, done.stdout + done.stderr


def test_clang_format_would_change_nothing():
    names = [name for name in tree.c_files("jobs", "cmd", "aws", "tests") if not name.endswith(".def")]
    code, output = said(["clang-format", "--dry-run", "-Werror", "--ferror-limit=3", *names])
    if code:
        pytest.fail(f"{output}\nrun 'clang-format -i FILE…' on these files", pytrace=False)


def test_clang_tidy_finds_nothing():
    database = BUILD / "compile_commands.json"
    if not database.exists():
        pytest.fail("no compile_commands.json: run 'cmake --preset clang'", pytrace=False)
    compiled = {}
    for entry in json.loads(database.read_text()):
        compiled.setdefault(entry["file"], entry)
    names = [name for name in tree.c_files() if str(tree.ROOT / name) in compiled]
    clean = BUILD / "tidy-clean"  # a file for each text that was found clean before
    clean.mkdir(exist_ok=True)
    # clang-tidy reads a file once for each of its commands: what a test compiles anew, it reads as the product does.
    (clean / "compile_commands.json").write_text(json.dumps(list(compiled.values())))

    def check(name):
        compile_command = compiled[str(tree.ROOT / name)]["command"].split(" -o ")[0].split()
        _, unit = said([*compile_command, "-E", "-C", name])
        known = clean / hashlib.sha256((unit + tree.text(".clang-tidy") + NODES).encode()).hexdigest()
        if known.exists():
            return ""
        code, output = said(["clang-tidy", "--quiet", "-p", str(clean), *ANALYZER, name])
        if code or "warning:" in output:
            return output
        known.touch()
        return ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [finding for finding in pool.map(check, names) if finding]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_cppcheck_finds_nothing():
    code, output = said(
        ["cppcheck", "--enable=warning,performance,portability", "--std=c11", "--quiet",
         "--error-exitcode=1", "--inline-suppr", f"-j{os.cpu_count()}", "-D_GNU_SOURCE", "-I.",
         # It takes the NULL that TAKE leaves behind for what TAKE yields.
         "--suppress=nullPointerArithmetic",
         f"--library={tree.ROOT / 'tests/lint/cppcheck.cfg'}", *[folder for folder in ("jobs", "cmd", "aws")
                                                  if (tree.ROOT / folder).is_dir()]])
    if code:
        pytest.fail(output, pytrace=False)


def test_shellcheck_finds_nothing():
    scripts = [name for name in tree.files() if not tree.is_golden(name) and (
        name.endswith(".sh") or tree.text(name).startswith(("#!/usr/bin/env bash", "#!/bin/sh")))]
    code, output = said(["shellcheck", "--shell=bash", "--external-sources", *scripts])
    if code:
        pytest.fail(output, pytrace=False)
