"""Words that must not be in the repository: hosts of package registries (their
clients know them), paths of somebody's machine, names of writing tools."""

import re

import pytest
import tree

# In pieces, so that this file does not hold what it looks for.
WORDS = {
    "the host of a package registry; its client knows it": [
        r"pypi\." r"org", r"python" r"hosted", r"deb\." r"debian", r"security\." r"debian",
        r"snapshot\." r"debian", r"npm" r"js\.", r"crates\." r"io", r"proxy\.go" r"lang",
        r"conda\." r"anaconda", r"\bghcr\." r"io", r"quay\." r"io", r"registry-1\.docker"],
    "a path of one machine": [r"/wo" r"rk/", r"\.\./sha" r"red", r"/ro" r"ot/\.", r"/home/[a-z]+/"],
    "the name of a tool that has no part in the product": [
        r"\bclau" r"de\b", r"\banthro" r"pic\b", r"\bcopi" r"lot\b", r"\bchat" r"gpt\b",
        r"\bopen" r"ai\b", r"\bissues sh" r"ow\b"],
}


def test_no_unwanted_word():
    wrong = []
    for why, patterns in WORDS.items():
        pattern = re.compile("|".join(patterns), re.IGNORECASE)
        for name in tree.files():
            content = (tree.ROOT / name).read_bytes().decode("utf-8", "replace")
            for number, line in enumerate(content.split("\n"), 1):
                found = pattern.search(line)
                if found:
                    wrong.append(f"{name}:{number}: '{found[0]}' is {why}: take it out")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
