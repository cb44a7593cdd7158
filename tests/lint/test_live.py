"""What is taken for granted of AWS stands in one place, configs/live/rows.yaml: the tables of docs/aws.md are made
from it, its rows name files that there are, and code that relies on what no documentation says has a row. What tries
them is tested in tests/aws/test_conform.py."""

import importlib.util
import re

import pytest
import tree

# What comments say of facts that nobody has seen, however the lines of a comment break.
UNSEEN = re.compile(r"\bnot\s+documented|\bdocumented\s+(?:nowhere|in\s+\w+\s+ways)|\bnot\s+published|"
                    r"\bno\s+account\s+has\s+confirmed")
# What speaks to services, or runs beside tools of machines.
OUTSIDE = ("aws/", "jobs/engine/", "jobs/node/", "jobs/cache/", "jobs/run/export/", "cmd/schedule/")
ROW = """
estimate: {requests: 0.01, smallest: small, sagemaker: 2}
groups:
- title: One
  rows:
  - id: a-row
    statement: it is so
    otherwise: nothing is lost
    relies: [aws/aws.h]
    shape: {by: batch, minutes: 30, usd: 0.05, does: looks}
    judged: it was so
"""
CATALOGUE = {"small": {"price": 0.1}, "big": {"price": 10.0, "accelerator": "neuron"}, "free": {"sagemaker": True},
             "both": {"price": 0.1, "sagemaker": True}}


def load():
    spec = importlib.util.spec_from_file_location("live_rows", tree.ROOT / "configs/live/rows.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LIVE = load()


def test_each_row_is_whole_and_costs_what_it_says():
    live = LIVE.Live()
    wrong = list(live.problems())
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
    assert len(live.rows) == len(live.all) >= 60


def test_what_nobody_asked_for_by_name_stays_below_two_dollars():
    shapes = [row["shape"] for row in LIVE.Live().all]
    assert sum(shape["usd"] for shape in shapes if not shape.get("named")) <= 2.0


def test_the_page_has_the_tables_that_are_made_from_the_rows():
    _, between, _ = LIVE.split(tree.text("docs/aws.md"))
    if between.strip("\n") != LIVE.tables(LIVE.Live()).strip("\n"):
        pytest.fail("docs/aws.md is not what configs/live/rows.yaml makes: run configs/live/rows.py --write", pytrace=False)


def test_no_other_page_has_such_a_table():
    heading = re.compile(r"^\|(?:.*\|)? taken for granted \|.*$", re.MULTILINE)
    pages = [name for name in tree.files() if name.endswith(".md") and heading.search(tree.text(name))]
    assert pages == ["docs/aws.md"]
    before, _, behind = LIVE.split(tree.text("docs/aws.md"))
    assert not heading.search(before) and not heading.search(behind)


def test_each_row_names_files_that_there_are():
    files, wrong = set(tree.files()), []
    for name, row in LIVE.Live().rows.items():
        wrong += [f"{name}: there is no file '{each}' that could rely on it" for each in row["relies"] if each not in files]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_what_no_documentation_says_has_a_row():
    relied = {each for row in LIVE.Live().all for each in row["relies"]}
    seen, wrong = 0, []
    for name in tree.c_files():
        found = UNSEEN.search(re.sub(r"\n[ \t]*\*", "\n", tree.text(name))) if name.startswith(OUTSIDE) else None
        seen += found is not None
        if found and name not in relied:
            wrong.append(f"{name}: says '{' '.join(found[0].split())}', but no row of configs/live/rows.yaml names it")
    assert seen >= 5, "this looks at nothing"
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.parametrize("text", ["/* Its rate is not\n * published. */", "(the kinds are documented nowhere)",
                                  "documented in three ways", "no account\n * has confirmed"])
def test_a_comment_on_what_nobody_has_seen_is_found(text):
    assert UNSEEN.search(re.sub(r"\n[ \t]*\*", "\n", text))


def problems(text):
    return list(LIVE.Live(text, CATALOGUE).problems())


def test_a_right_row_is_right():
    assert problems(ROW) == []


@pytest.mark.parametrize("was, now, words", [
    ("usd: 0.05", "usd: 0.04", "it costs 0.05 USD, and not 0.04"),
    ("minutes: 30", "nodes: 3, minutes: 30", "it costs 0.15 USD"),
    ("minutes: 30, ", "", "its cost cannot be computed"),
    ("by: batch", "by: chance", "it can be tried on"),
    ("by: batch", "by: sagemaker", "SageMaker does not train on 'small'"),
    ("by: batch", "by: sagemaker, type: free", "its cost cannot be computed"),
    ("by: batch", "by: sagemaker, type: both", "it costs 0.1 USD"),
    ("by: batch", "by: batch, type: huge", "the catalogue has no 'huge'"),
    ("usd: 0.05", "type: big, usd: 5.0", "is named: true"),
    ("usd: 0.05", "usd: 0.05, named: true", "nothing else is"),
    ("usd: 0.05", "usd: 0.05, needs: luck", "is named: true"),
    (", does: looks", "", "does not say what is done"),
    ("does: looks", "does: looks, speed: 3", "'speed' is no part of a shape"),
    ("    judged: it was so\n", "", "it has the fields"),
    ("statement: it is so", "statement: ''", "'statement' is no text"),
    ("[aws/aws.h]", "[]", "names no file"),
    ("id: a-row", "id: A row", "an id has lower-case letters"),
])
def test_a_wrong_row_is_told(was, now, words):
    assert was in ROW
    assert any(words in each for each in problems(ROW.replace(was, now))), problems(ROW.replace(was, now))


def test_two_rows_of_one_id_are_told():
    rows = ROW[ROW.index("  - id"):]
    assert any("one row" in each for each in problems(ROW + rows))


def test_a_bar_in_a_text_stays_in_its_cell():
    live = LIVE.Live(ROW.replace("it is so", "a | b"), CATALOGUE)
    row = LIVE.tables(live).split("\n")[4]
    assert row == "| `a-row` | a \\| b | nothing is lost | AWS Batch: the smallest, 30 minutes | 0.05 |"
