"""The live block on a real terminal: it fits, it goes where it should not be, and
the terminal is the user's again on every way out."""

import json
import os
import signal
import time

import pytest
import stoker as cli
from terminal import Terminal

DETACHED = 8

SLOW = """
import os
import pathlib
import time


def waits(number):
    return not pathlib.Path({gate!r}).exists() or number > 10 and pathlib.Path({gate!r} + "-half").exists()


def step(number, args):
    while os.environ["STOKER_PHASE"] == "train" and waits(number):
        time.sleep(0.02)
    time.sleep({pause})
"""


@pytest.fixture
def gate(project):
    """Training steps wait until this file is there, and the second half of them as
    long as `half` of it is."""
    return project.root / "go"


@pytest.fixture
def half(gate):
    path = gate.with_name("go-half")
    path.touch()
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def terminal(project, gate):
    project.extra(SLOW.format(gate=str(gate), pause=0.02))
    open_ones = []

    def start(*argv, columns=80, rows=24, env=None, **options):
        settings = {"TERM": "xterm-256color", **(env or {})}
        one = Terminal(*(argv or ("run", project.spec_path, "--id", "one")), env=project.env(**settings),
                       cwd=project.source, columns=columns, rows=rows, **options)
        open_ones.append(one)
        return one

    yield start
    for one in open_ones:
        one.__exit__()
    gate.touch()
    if project.state.exists():
        project.stoker("stop", "one")


def is_given_back(one: Terminal) -> None:
    assert one.screen.cursor, "the cursor is shown again"
    assert one.screen.wrap, "lines wrap again"
    assert one.echoes, "what is typed is seen again"
    assert not one.screen.foreign, one.screen.foreign


def fits(one: Terminal) -> None:
    assert one.screen.overflows == 0, one.screen.text
    assert one.screen.text.count("state:") == 1, one.screen.text


@pytest.mark.parametrize("columns, rows", [(80, 24), (120, 40), (40, 10)])
def test_a_block_is_redrawn_in_place(terminal, gate, half, columns, rows):
    one = terminal(columns=columns, rows=rows)
    one.until("running for").until("train:")
    fits(one)
    assert not one.screen.cursor and not one.echoes
    gate.touch()
    one.until("of 20")
    fits(one)
    assert "run:        one" in one.screen.text
    half.unlink()
    assert one.finish() == 0
    is_given_back(one)
    assert "state:" not in one.screen.text, "the block is gone"
    assert "run:        \u2713 one succeeded" in one.screen.all
    if rows > 10:
        assert "graphs verified in the cache: 3 of 3" in one.screen.all


def wait_drawn_anew(one: Terminal, columns: int, rows: int) -> None:
    """What was on its way while the size changed need not fit; what comes after it must."""
    def drawn():
        one.screen.overflows = 0
        return one.read(0.2) and one.screen.overflows == 0 and len(one.screen.text.splitlines()) <= rows and \
            one.screen.text.count("run:        o"[:columns - 1]) == 1
    one.until(drawn)


def test_it_follows_the_size_of_the_terminal(terminal, gate):
    one = terminal(columns=100, rows=30)
    one.until("logs:").until("train:")
    for columns, rows in ((50, 12), (20, 5), (130, 40), (80, 3), (80, 24)):
        one.resize(columns, rows)
        wait_drawn_anew(one, columns, rows)
        one.pause(0.3)
        assert one.screen.overflows == 0, one.screen.text
        assert one.screen.text.count("run:        o"[:columns - 1]) == 1, one.screen.text
        assert len(one.screen.text.splitlines()) <= rows
    assert "stoker logs -f one" in one.screen.text
    gate.touch()
    assert one.finish() == 0
    is_given_back(one)


def test_no_color_leaves_the_block_without_colour(terminal, gate):
    gate.touch()
    one = terminal(env={"NO_COLOR": "1"})
    one.until("train:")
    assert one.finish() == 0
    assert not one.screen.colors and "\x1b[K" in one.raw


def test_colours_are_of_the_basic_sixteen(terminal, gate):
    gate.touch()
    one = terminal()
    assert one.finish() == 0
    assert "32" in one.screen.colors
    assert one.screen.colors <= {"", "0", "2", "31", "32", "33", "36"}, one.screen.colors
    always = terminal("--color", "never", "attach", "one")
    assert always.finish() == 0
    assert not always.screen.colors


@pytest.mark.parametrize("env", [{"LANG": "C"}, {"LANG": ""}, {"LC_ALL": "POSIX", "LANG": "C.UTF-8"}],
                         ids=["C", "none", "LC_ALL"])
def test_without_a_utf8_locale_it_is_ascii(terminal, gate, env):
    gate.touch()
    one = terminal(env=env)
    one.until("train:")
    assert one.finish() == 0
    assert one.raw.isascii(), one.screen.text
    is_given_back(one)


def test_a_state_is_ascii_without_a_utf8_locale(project):
    project.write(command=["false"], compile={"kind": "none"})
    project.run("--id", "bad", code=1)
    assert "→ stop" in project.ok("status", "bad").out
    said = project.ok("status", "bad", env={"LANG": "C"}).out
    assert said.isascii() and "-> stop" in said


@pytest.mark.parametrize("argv, env", [((), {"TERM": "dumb"}), ((), {"TERM": ""}), (("-v",), {}), (("--quiet",), {}),
                                       (("--json",), {})], ids=["dumb", "no TERM", "-v", "--quiet", "--json"])
def test_where_no_block_is_wanted_there_is_none(terminal, project, gate, argv, env):
    gate.touch()
    one = terminal(*argv, "--color", "auto", "run", project.spec_path, "--id", "one", env={"NO_COLOR": "1", **env})
    assert one.finish() == 0
    assert "\x1b" not in one.raw, one.raw
    assert ("train 1 runs" in one.raw) == (argv in ((), ("-v",)))
    assert one.screen.cursor and one.echoes


def test_through_a_pipe_it_is_one_line_per_change(project):
    result = project.run("--id", "one", env={"TERM": "xterm-256color"})
    assert "\x1b" not in result.text and "\r" not in result.text
    assert "train 1 runs" in result.err and "step 20 of 20" in result.err
    assert "state:" not in result.err


def test_an_interrupt_asks_and_one_key_answers(terminal, gate):
    one = terminal()
    one.until("running for").until("train:")
    for question in range(2):
        one.type("\x03")
        one.until("leave the job running, stop it, or go on?")
        fits(one)
        one.type("g")
        one.until(lambda: "go on?" not in one.screen.text)
    assert "^C" not in one.screen.all
    one.type("x")  # is no answer, and is not seen
    one.type("\x03")
    one.until("go on?")
    one.type("x")
    one.pause(0.5)
    assert "go on?" in one.screen.text
    one.type("l")
    assert one.finish() == DETACHED
    is_given_back(one)
    assert "'stoker resume one'" in one.screen.all


def test_the_question_fits_a_narrow_terminal(terminal, project):
    one = terminal(columns=40, rows=10)
    one.until("train:")
    one.type("\x03")
    one.until("[l]eave it running, [s]top it, [g]o on?")
    fits(one)
    one.type("s")
    assert one.finish() == 6
    is_given_back(one)
    assert project.status("one")["state"] == "stopped"


def test_a_second_interrupt_is_an_answer_too(terminal):
    one = terminal()
    one.until("train:")
    one.type("\x03")
    one.until("go on?")
    one.type("\x03")
    assert one.finish() == DETACHED
    is_given_back(one)


def wait_stopped(pid: int) -> None:
    end = time.monotonic() + cli.SECONDS
    while time.monotonic() < end:
        with open(f"/proc/{pid}/stat") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] == "T":
                return
        time.sleep(0.02)
    raise AssertionError("it was never suspended")


def test_it_can_be_suspended_and_taken_up_again(terminal, gate):
    one = terminal()
    one.until("train:")
    one.type("\x1a")
    wait_stopped(one.process.pid)
    one.pause(0.3)
    is_given_back(one)
    assert one.screen.x == 0 and not one.screen.row(one.screen.y), "the prompt begins a line beneath the block"
    one.screen.feed("$ fg\r\n")
    one.signal(signal.SIGCONT)
    one.until(lambda: one.screen.text.count("state:") == 2)
    assert not one.screen.cursor and not one.echoes
    gate.touch()
    assert one.finish() == 0
    is_given_back(one)


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 8), (signal.SIGHUP, 8), (signal.SIGQUIT, -signal.SIGQUIT)])
def test_a_signal_gives_the_terminal_back(terminal, number, code):
    one = terminal()
    one.until("train:")
    one.signal(number)
    assert one.finish() == code
    is_given_back(one)


def test_an_error_gives_the_terminal_back(terminal, project, gate):
    one = terminal()
    one.until("train:")
    os.rename(project.state / "stoker" / "journal.db", project.root / "away")
    for rest in (project.state / "stoker").glob("journal.db-*"):
        os.rename(rest, project.root / rest.name)
    gate.touch()
    one.finish()
    is_given_back(one)


def test_attach_and_resume_show_it_too(terminal, project, gate):
    project.ok("run", project.spec_path, "--id", "one", "--detach")
    one = terminal("attach", "one")
    one.until("running for").until("train:")
    fits(one)
    one.type("\x03")
    assert one.finish() == DETACHED
    is_given_back(one)
    again = terminal("attach", "one")
    again.until("train:")
    gate.touch()
    assert again.finish() == 0
    is_given_back(again)


def test_what_was_before_a_resume_is_in_it(terminal, project, gate):
    one = terminal()
    one.until("3 of 3 graphs verified").until("phase train")
    one.signal(signal.SIGTERM)
    assert one.finish() == DETACHED
    again = terminal("resume", "one")
    again.until("3 of 3 graphs verified")
    fits(again)
    gate.touch()
    assert again.finish() == 0
    is_given_back(again)


def test_little_is_written_while_nothing_happens(terminal):
    one = terminal()
    one.until("train:")
    one.pause(1.0)
    before, begun = len(one.raw), time.monotonic()
    one.pause(3.0)
    # The whole block each time were more than that in a second.
    assert len(one.raw) - before < (time.monotonic() - begun) * 1500, "only what has changed is drawn"


def test_stdout_elsewhere_gets_the_result_alone(terminal, project, gate, tmp_path):
    gate.touch()
    with open(tmp_path / "out", "w") as out:
        one = terminal(stdout=out)
        one.until("train:")
        assert one.finish() == 0
    said = (tmp_path / "out").read_text()
    assert "\x1b" not in said and "train" in said and "state:" not in said


HOSTILE = """
import os
import sys

EVIL = {evil!r}


def step(number, args):
    for text in EVIL:
        os.write(1, ("loss: " + text + "\\n").encode())
    os.write(1, b"\\x1b[2J" * 250000 + b"\\n")
    os.write(2, b"raw \\xff\\xfe\\x9b31m\\xc3\\n")


def end(args):
    if os.environ["STOKER_PHASE"] == "train":
        raise ValueError("\\x1b[2J \\u202e \\x9b " + "\\u6f22\\u0301" * 400000)
"""
EVIL = ("\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "\x1bP+q\x1b\\", "\u009b31m", "\u202eevil", "\x08\x08", "a\rb",
        "\x1b[?1049h", "\x1b[1;1H", "\u2066x", "\u6f22\u5b57" * 100)


@pytest.mark.parametrize("columns, rows", [(80, 24), (40, 10)])
def test_a_hostile_log_does_no_harm(terminal, project, columns, rows):
    project.extra(HOSTILE.format(evil=EVIL))
    one = terminal(columns=columns, rows=rows)
    assert one.finish() == 1
    is_given_back(one)
    assert one.screen.overflows == 0
    assert "user-code" in one.screen.all.replace("\n", "")


def test_status_and_list_have_the_same_signs(terminal, project, gate):
    gate.touch()
    project.run("--id", "one")
    project.run("--id", "a-much-longer-name-of-a-run", "--set", "command=[/bin/false]", "--set", "retry.attempts=1", code=1)
    listed = terminal("list", columns=120)
    assert listed.finish() == 0
    head, *rows = listed.screen.text.splitlines()
    assert [row.split()[2] for row in rows] == ["\u2717", "\u2713"], listed.screen.text
    where = [cells.index(sign) for cells, sign in zip(listed.screen.cells[1:], "\u2717\u2713")]
    assert len(set(where)) == 1 and "".join(listed.screen.cells[0])[where[0] + 2:].startswith("STATE"), listed.screen.text
    shown = terminal("status", "one", columns=120)
    assert shown.finish() == 0
    assert "state:      \u2713 succeeded" in shown.screen.text and "32" in shown.screen.colors
    assert json.loads(project.ok("--json", "list").out.splitlines()[0])["state"] == "failed"
