"""Config files, thousands of them made up: what botocore reads in one, stoker reads too,
and what botocore refuses is refused."""

import os
import random

import botocore.configloader
import botocore.exceptions
import pytest
from who import Who

SEED = int(os.environ.get("STOKER_TEST_SEED", "1"))
FILES = 3000
HEADERS = ["[default]", "[profile a]", "[profile b]", '[profile "a b"]', "[profile 'q']", "[profile a b]", "[a]",
           "[sso-session s]", "[services v]", "[profile default]", "[ profile a ]", "[profile\ta]",
           "[profile c] # x", "[profilea]", "[preview]"]
KEYS = ["region", "Region", "s3", "endpoint_url", "a b", "role_arn", "x", "REGION"]
VALUES = ["", "v", "a = b", "a:b", "# no comment", "x # y", "x ; y", '"quoted"', "%(region)s", "é", "a  b", "[x]"]
BAD = ["no delimiter", "= no key", ": no key", "[open", "[]"]


def make(chance):
    lines, used = [], set()
    for _ in range(chance.randint(1, 4)):
        header = chance.choice(HEADERS)
        if header in used and chance.random() < 0.8:
            continue
        used.add(header)
        lines.append(header)
        seen = set()
        for _ in range(chance.randint(0, 5)):
            key = chance.choice(KEYS)
            if key.lower() in seen and chance.random() < 0.9:
                continue
            seen.add(key.lower())
            value = chance.choice(VALUES)
            lines.append(key + chance.choice(["=", " = ", ":", " :", "\t=\t"]) + value + chance.choice(["", " ", "\t"]))
            for _ in range(chance.choice([0, 0, 0, 1, 2])):
                inner = chance.choice(["k = v", "Endpoint_URL=http://x", "k=a=b", "deep", "# comment", "; comment"])
                lines.append(chance.choice(["  ", "\t", "    "]) + inner)
            if chance.random() < 0.15:
                lines.append(chance.choice(["# comment", "; comment", "  # indented", "#k = v"]))
    if chance.random() < 0.1:
        lines.insert(chance.randint(0, len(lines)), chance.choice(BAD))
    return chance.choice(["\n", "\n", "\r\n"]).join(lines) + chance.choice(["", "\n", "\n\n"])


def flat(section):
    found = {}
    for key, value in section.items():
        if isinstance(value, dict):
            found[key] = ""
            found.update({f"{key}.{inner}": text for inner, text in value.items()})
        else:
            found[key] = value
    return found


def expected(path):
    """(kind, name, key) → value; None: it is refused."""
    try:
        loaded = botocore.configloader.load_config(str(path))
    except botocore.exceptions.ConfigParseError:
        return None
    found = {}
    for kind, part in (("profile", "profiles"), ("sso-session", "sso_sessions"), ("services", "services")):
        for name, section in loaded[part].items():
            found.update({(kind, name, key): value for key, value in flat(section).items()})
    return found


@pytest.fixture
def who():
    who = Who({"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
    yield who
    who.stop()


def test_what_botocore_reads_is_read(who, tmp_path):
    chance, path, refused, values = random.Random(SEED), tmp_path / "config", 0, 0
    for number in range(FILES):
        text = make(chance)
        path.write_text(text, newline="")
        want = expected(path)
        got = who.ask("config", path=str(path), keys=[list(key) for key in want or {}])
        if want is None:
            refused += 1
            assert "error" in got, f"{number}: accepted\n{text}"
            continue
        assert "error" not in got, f"{number}: {got['error']}\n{text}"
        assert got["values"] == list(want.values()), f"{number}: {want}\n{text}"
        values += len(want)
    # Both happen often enough to mean something.
    assert refused > FILES / 20 and values > FILES
