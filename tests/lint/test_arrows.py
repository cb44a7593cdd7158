"""No arrow points up: who may include whom, and where each foreign header
lives. The tables below are the house; CMakeLists.txt says the same to the
linker."""

import re

import pytest
import tree

# A box may include itself and what stands in its row: whole boxes, or single headers.
ARROWS = {
    "base": [],
    "flow": ["base/clock.h", "base/exitcode.h", "base/step_rate.h"],  # plain types and what is inline
    "calendar": [],
    "spec": ["calendar", "base"],
    "aws": ["base"],
    "store": ["aws", "base"],
    "source": ["store", "base"],
    "cache": ["store", "base"],
    "checkpoint": ["store", "base"],
    "model": ["store", "base"],
    "series": ["store", "base"],
    "data": ["store", "base"],
    "engine": ["store", "aws", "base"],
    "report": ["flow", "base"],
    "node": ["series", "data", "cache", "checkpoint", "source/archive.h", "store", "aws/credentials/secret.h", "aws/credentials/secrets.h", "aws/credentials/sts.h", "aws/http/refusal.h",
             "base"],
    "post": ["base/process/program.h"],
    "launch": [],
    "derive": [],
    "run": ["flow", "spec", "engine", "source", "series", "data", "cache", "checkpoint", "model",
            "store", "aws", "base"],
}
HOUSE = r"(jobs|aws|cmd)/"
CMD_MAY_USE = sorted(ARROWS)

# header → the only files of the product that may include it
HOMES = {
    r"yaml\.h": r"jobs/spec/yaml\.c",
    r"git2(\.h|/.*)": r"jobs/source/git[a-z_]*\.[ch]",
    r"archive(_entry)?\.h": r"jobs/source/archive\.c",
    r"sqlite3\.h": r"jobs/run/journal/journal_sqlite_internal\.h",
    r"pcre2\.h": r"jobs/base/text/regex\.c",
    r"openssl/.*": r"jobs/base/hash\.c",
    r"jansson\.h": r"jobs/base/text/js\.h",
    r"libdeflate\.h": r"jobs/(cache/verdict/stream_check|source/gzip_parallel)\.c",
    r"curl/.*": r"(aws/http/(curl_library\.h|http[a-z_]*\.c)|jobs/post/main\.c)",
    r"expat\.h": r"aws/xml\.c",
    r"(jq|jv)\.h": r"jobs/derive/main\.c",
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)


def includes(name):
    source = tree.code(name)
    for match in INCLUDE.finditer(source):
        yield tree.line_of(source, match.start()), match[1], match[2]


def may_include(box, target):
    path = target.removeprefix("jobs/")
    allowed = CMD_MAY_USE if box == "cmd" else [box, *ARROWS[box]]
    return any(path == entry or path.startswith(f"{entry}/") for entry in allowed)


def box_of(name):
    parts = name.split("/")
    return parts[1] if parts[0] == "jobs" else parts[0]


def test_every_box_has_its_row_of_arrows():
    boxes = {box_of(name) for name in tree.c_files()} - {"cmd"}
    assert boxes - set(ARROWS) == set(), "a new box needs a row in ARROWS and in CMakeLists.txt"


def test_no_arrow_points_up():
    wrong = []
    for name in tree.c_files():
        box = box_of(name)
        for line, quote, target in includes(name):
            if quote == "<" and not re.match(HOUSE, target):
                continue
            if target.startswith("cmd/") and box == "cmd":
                continue
            if not re.match(HOUSE, target):
                wrong.append(f"{name}:{line}: write \"{target}\" from the root of the repository")
            elif target.startswith("cmd/"):
                wrong.append(f"{name}:{line}: nothing may use cmd: {target}")
            elif not may_include(box, target):
                wrong.append(f"{name}:{line}: '{box}' may not use {target}; move what is shared "
                             f"down, or pass it in as data")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_each_foreign_header_has_one_home():
    wrong = []
    for name in tree.c_files():
        for line, quote, target in includes(name):
            for header, home in HOMES.items():
                if re.fullmatch(header, target) and not re.fullmatch(home, name):
                    wrong.append(f"{name}:{line}: <{target}> lives in {home}; "
                                 f"use what that file's own header offers")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_a_source_file_includes_its_own_header_first():
    wrong = []
    known = set(tree.files())
    for name in tree.c_files():
        own = name[:-2] + ".h"
        if not name.endswith(".c") or own not in known:
            continue
        first = next(includes(name), (1, "", ""))
        if first[2] != own:
            wrong.append(f"{name}:{first[0]}: include \"{own}\" first, so that it is known to stand alone")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
