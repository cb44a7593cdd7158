"""tests/mutate/run tells what is tested from what is not, and every kind of mistake can be made: shown by a box of one
file (tests/mutate/fixture) whose mutants and their fate are known."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import tree

TOOL = tree.ROOT / "tests/mutate/run"
FIXTURE = tree.ROOT / "tests/mutate/fixture"
TESTED = ("note", "tiny_size", "tiny_within", "tiny_count")
WRONG_ROW = """jobs/tiny/tiny.c tiny_within
    return {n >= least -> n <= least} && n <= most;
    because the test needs a row that names no mutant
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may confine a mutant")


def mutate(*arguments, **options):
    return subprocess.run([TOOL, "tiny", "--root", FIXTURE, "--build", tree.ROOT / "build/mutate-fixture", *arguments],
                          capture_output=True, text=True, timeout=300, **options)


@pytest.fixture(scope="module")
def report():
    done = mutate("--fresh")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_tested_function_loses_all_its_mutants(report):
    survivors = re.findall(r"^survived: (\S+):(\d+): (\w+): (.*)$", report, re.MULTILINE)
    assert survivors
    assert not [row for row in survivors if row[2] in TESTED]


def test_what_no_test_looks_at_survives(report):
    assert "tiny_unseen: return {n > 3 -> n >= 3};\n" in report
    assert "tiny_unmet: return {n == 7 -> n != 7} ? 1 : 2; (no test gets there)\n" in report
    killed, survived = re.search(r"^total +\d+ +(\d+) +(\d+) +0 ", report, re.MULTILINE).groups()
    assert int(survived) == report.count("survived: ")
    assert f"killed by: unit_tiny_tiny {killed}\n" in report


def test_what_cannot_be_switched_is_counted(report):
    assert "static initialiser 3, case label 1" in report


def test_every_kind_of_change_is_made():
    listed = mutate("--list").stdout
    for change in ("condition: if ({n < 0 -> !(n < 0)})",
                   "condition: if ({n < 0 -> 1})",
                   "condition: return {n >= least && n <= most -> n >= least};",
                   "condition: return {n >= least && n <= most -> n <= most};",
                   "comparison: return {n >= least -> n > least} && n <= most;",
                   "logic: return {n >= least && n <= most -> n >= least || n <= most};",
                   "call: {note(calls) -> nothing};",
                   "result: return {n > 3 -> 0};",
                   "constant: return {-1 -> 0};",
                   "enum: return {SIZE_LARGE -> SIZE_SMALL};"):
        assert change in listed
    assert "{-1 -> (-2)}" not in listed and "{-1 -> (-1000)}" not in listed


def test_an_earlier_result_holds_while_nothing_changed(report):
    again = mutate()
    assert again.stdout == report
    assert ", 0 of them to be tried" in again.stderr


def test_a_sample_is_drawn_by_its_seed():
    first, second, other = mutate("--sample", "9", "--seed", "3"), mutate("--sample", "9", "--seed", "3"), \
        mutate("--sample", "9", "--seed", "4")
    assert "a sample of 9 drawn by seed 3" in first.stdout
    assert first.stdout == second.stdout != other.stdout.replace("seed 4", "seed 3")


@pytest.mark.parametrize("change,message", [
    ("return {n >= least -> n <= least} && n <= most;", "there is no such mutant"),
    ("return {n >= least -> n > least} && n <= most;", "unit_tiny_tiny kills it"),
])
def test_a_wrong_row_of_the_equivalents_is_an_error(report, tmp_path, change, message):
    table = tmp_path / "equivalent.txt"
    table.write_text(WRONG_ROW.replace("return {n >= least -> n <= least} && n <= most;", change))
    done = mutate("--equivalent", table)
    assert done.returncode == 1 and message in done.stderr


def test_too_many_equivalents_are_an_error(report, tmp_path):
    survivors = re.findall(r"^survived: (\S+?):\d+: (\w+): (.*?)(?: \(no test gets there\))?$", report, re.MULTILINE)
    table = tmp_path / "equivalent.txt"
    table.write_text("".join(f"{file} {function}\n    {change}\n    because it is one of {len(survivors)}\n"
                             for file, function, change in survivors))
    done = mutate("--equivalent", table)
    assert done.returncode == 1 and "more than 3%" in done.stderr
    assert "100.0 %" in done.stdout


def test_a_score_can_be_asked_for(report):
    assert mutate("--least", "50").returncode == 0
    assert mutate("--least", "99").returncode == 1


def test_no_mutant_is_in_the_product():
    text = [name for name in tree.c_files() if "mutant_" in (Path(tree.ROOT) / name).read_text()]
    assert not text
