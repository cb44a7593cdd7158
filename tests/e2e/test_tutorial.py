"""docs/tutorial.md and docs/retraining.md, typed as they stand there, in one shell, in a home of its own: each command
does what the text says, and prints what it shows."""

import os
import re
import subprocess
from dataclasses import dataclass, field

import pytest
import stoker as cli

ANYTHING = "…"  # alone: any lines; within a line: any text
END = "\x01end"


@dataclass
class Step:
    command: str
    shown: list = field(default_factory=list)


def tutorial(page="tutorial"):
    """The commands of the tutorial, with what is shown beneath each."""
    text = (cli.ROOT / f"docs/{page}.md").read_text()
    steps = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append(Step(line[2:]))
            else:
                steps[-1].shown.append(line)
    return steps


def pattern_of(shown):
    """Lines as the tutorial shows them → what must match all that is printed."""
    parts = []
    for line in shown:
        words = [re.escape(part.strip()) for part in line.split(ANYTHING)]
        parts.append(r"(?:.*\n)*?" if line.strip() == ANYTHING else r"\s*" + r".*".join(words) + r"\s*\n")
    return "".join(parts)


def matches(shown, said):
    return re.fullmatch(pattern_of(shown), said) is not None


def test_what_is_shown_is_really_compared():
    assert matches(["one", ANYTHING, "last"], "one\ntwo\nthree\nlast\n")
    assert matches([ANYTHING], "") and matches([f"a {ANYTHING} c"], "a b c\n") and matches([], "")
    for shown, said in ((["one"], "two\n"), (["one"], "one\ntwo\n"), (["one", "two"], "one\n"), (["one"], ""),
                        ([], "one\n"), ([ANYTHING, "x"], "y\n")):
        assert not matches(shown, said), (shown, said)


def test_the_tutorial_goes_from_the_first_spec_to_a_resumed_run():
    typed = " ; ".join(step.command for step in tutorial())
    for words in ("stoker init", "stoker plan", "stoker run", "stoker status", "stoker logs", "stoker events",
                  "stoker cache", "stoker resume", "--signal=KILL"):
        assert words in typed


@pytest.fixture(scope="module", params=["tutorial", "retraining"])
def page(request):
    return request.param


@pytest.fixture(scope="module")
def session(tmp_path_factory, page):
    """What each command printed and how it ended, from one shell that was typed at
    in the root of the repository."""
    home = tmp_path_factory.mktemp("home")
    script = "".join(f"{step.command}\nstatus=$?; printf '\\n{END} %d\\n' $status; (exit $status)\n"
                     for step in tutorial(page))
    environment = {name: value for name, value in os.environ.items() if name in ("LANG", "TMPDIR")}
    done = subprocess.run(["bash", "-c", f"exec 2>&1\n{script}"], cwd=cli.ROOT, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, timeout=900,
                          env={**environment, "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home),
                               "USER": "newcomer"})
    return re.findall(rf"(.*?)\n?{END} (\d+)\n", done.stdout, re.DOTALL)


def test_every_command_does_what_the_tutorial_says(session, page):
    steps = tutorial(page)
    assert len(session) == len(steps), session
    for i, (step, (said, status)) in enumerate(zip(steps, session)):
        looked_at = i + 1 < len(steps) and steps[i + 1].command == "echo $?"
        assert status == "0" or looked_at, f"$ {step.command}\n{said}[{status}]"
        assert matches(step.shown, said), f"$ {step.command}\n{said}--- is not\n" + "\n".join(step.shown)
