"""Calls that have no place here: printing below cmd, functions with which
buffers are overrun, a shell is reached or a process is ended behind its back."""

import re

import pytest
import tree

BANNED = {
    "strcpy": "use sb.h or mem_copy",
    "strcat": "use sb.h",
    "strncpy": "use sb.h or snprintf",
    "strncat": "use sb.h",
    "stpcpy": "use sb.h",
    "sprintf": "use snprintf or sb_addf",
    "vsprintf": "use vsnprintf or sb_addv",
    "gets": "read with a bound",
    "scanf": "parse with text.h",
    "strtok": "it keeps state; walk the text",
    "atoi": "it cannot fail; use the parsers of text.h",
    "atol": "it cannot fail; use the parsers of text.h",
    "atoll": "it cannot fail; use the parsers of text.h",
    "atof": "it cannot fail; use the parsers of text.h",
    "alloca": "the stack has no bound check; use mem_*",
    "system": "no shell; use proc.h",
    "popen": "no shell; use proc.h",
    "vfork": "use proc.h",
    "mktemp": "a race; use mkstemp or fs.h",
    "tmpnam": "a race; use mkstemp or fs.h",
    "tempnam": "a race; use mkstemp or fs.h",
    "rand": "chance comes from the journalled seed",
    "srand": "chance comes from the journalled seed",
    "localtime": "use clock.h; times are UTC",
    "gmtime": "it returns static data; use clock.h",
    "ctime": "use clock.h",
    "asctime": "use clock.h",
    "sleep": "wait for the event, loop.h, or with cancel_pause()",
    "usleep": "wait for the event, loop.h, or with cancel_pause()",
    "nanosleep": "wait for the event, loop.h, or with cancel_pause()",
    "clock_nanosleep": "wait for the event, loop.h, or with cancel_pause()",
    "sqlite3_sleep": "wait for the event, loop.h, or with cancel_pause()",
}
# Only cmd prints; in stoker-node its report does, and where it cannot write
# one, stderr is the only place left to say so.
MAY_PRINT = re.compile(r"cmd/|(jobs/node/(main|agent_main|report[a-z_]*)|jobs/(post|launch|derive)/main)\.c$")
PRINTS = re.compile(
    r"\b(?:printf|vprintf|puts|putchar|perror|err|errx|warn|warnx)\s*\("
    r"|\b(?:stdout|stderr)\b"
    r"|\b(?:write|dprintf|vdprintf)\s*\(\s*(?:1|2|STDOUT_FILENO|STDERR_FILENO)\s*,")
# Library code returns an error; main decides how the process ends.
MAY_EXIT = re.compile(r"cmd/|jobs/node/main\.c$")


def findings(pattern, names):
    for name in names:
        source = tree.code(name)
        for match in re.finditer(pattern, source):
            yield name, tree.line_of(source, match.start()), match


def test_no_banned_function_is_called():
    pattern = r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED)
    wrong = [f"{name}:{line}: {match[1]}() is banned: {BANNED[match[1]]}"
             for name, line, match in findings(pattern, tree.c_files())]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_only_cancel_waits_for_nothing_but_time():
    """What waits must hear that it should not: cancel.h."""
    wrong = [f"{name}:{line}: wait for the event, loop.h, or with cancel_pause()"
             for name, line, _ in findings(r"(?<![\w.>])p?poll\s*\(\s*NULL", tree.c_files())
             if name != "jobs/base/process/cancel.c"]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_only_cmd_prints():
    names = [name for name in tree.c_files() if not MAY_PRINT.match(name)]
    wrong = [f"{name}:{line}: '{match[0].strip()}' prints: return the text or an error, cmd prints it"
             for name, line, match in findings(PRINTS, names)]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_only_main_ends_the_process():
    names = [name for name in tree.c_files() if not MAY_EXIT.match(name)]
    wrong = [f"{name}:{line}: exit() in a library: return an error"
             for name, line, match in findings(r"(?<![\w.>])exit\s*\(", names)]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_files_are_opened_close_on_exec():
    """A job must not inherit what stoker has open."""
    wrong = []
    calls = {
        r"(?<![\w.>])open(?:at)?\s*\(": "O_CLOEXEC",
        r"(?<![\w.>])pipe\s*\(": "pipe2 with O_CLOEXEC",
        r"(?<![\w.>])dup\s*\(": "fcntl with F_DUPFD_CLOEXEC",
        r"(?<![\w.>])epoll_create\s*\(": "epoll_create1 with EPOLL_CLOEXEC",
        r"(?<![\w.>])socket\s*\(": "SOCK_CLOEXEC",
        r"(?<![\w.>])mkstemp\s*\(": "mkostemp with O_CLOEXEC",
    }
    for pattern, want in calls.items():
        for name, line, match in findings(pattern, tree.c_files()):
            source = tree.code(name)
            call = source[match.start():source.find(";", match.start())]
            if re.search(r"\bflags\b", call):  # they were put together above, in this function
                call = source[source.rfind("\n{", 0, match.start()):match.start()]
            if want.split()[-1] not in call or "with" in want:
                wrong.append(f"{name}:{line}: use {want}")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
