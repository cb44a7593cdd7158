"""Wrong command lines, one row each: exit 2, a message that names what is
wrong, a hint that says what to do; nothing on stdout, nothing done."""

import os

import pytest
import stoker as cli

# argv ("SPEC": a good spec), words of the message, words of the hint
WRONG = [
    (["rnu", "SPEC"], ["unknown command 'rnu'"], ["run"]),
    (["statsu"], ["unknown command 'statsu'"], ["status"]),
    (["xyzzy"], ["unknown command 'xyzzy'"], ["help"]),
    ([""], ["command"], ["help"]),
    (["Run", "SPEC"], ["unknown command 'Run'"], ["run"]),
    (["--jsn", "status"], ["--jsn"], ["--json"]),
    (["run", "--detatch", "SPEC"], ["--detatch"], []),
    (["run", "--dryrun", "SPEC"], ["--dryrun"], ["--dry-run"]),
    (["plan", "-x", "SPEC"], ["-x"], []),
    (["run", "SPEC", "SPEC"], ["does not take"], ["usage"]),
    (["plan", "SPEC", "other.yaml"], ["other.yaml"], []),
    (["run", "SPEC", "--id"], ["--id"], []),
    (["run", "SPEC", "--id", ""], ["invalid run id"], ["letters"]),
    (["run", "SPEC", "--id", "../evil"], ["../evil"], []),
    (["run", "SPEC", "--id", "a" * 100], ["invalid run id"], ["40"]),
    (["run", "SPEC", "--id", "a", "--id", "b"], ["--id is given twice", "'a'", "'b'"], ["once"]),
    (["run", "SPEC", "--engine=local", "--engine", "slurm"], ["--engine is given twice"], ["once"]),
    (["run", "SPEC", "--set"], ["--set"], []),
    (["run", "SPEC", "--set", "resources.nodes"], ["resources.nodes"], ["="]),
    (["run", "SPEC", "--set", ""], ["--set"], []),
    (["run", "SPEC", "--set", "=1"], ["--set"], []),
    (["run", "SPEC", "--on-interrupt", "explode"], ["explode"], ["detach"]),
    (["run", "SPEC", "--on-hangup", "explode"], ["explode"], ["drive"]),
    (["--color", "sometimes", "list"], ["sometimes"], ["always"]),
    (["--color", "list"], ["--color"], []),
    (["--color=", "list"], ["--color"], []),
    (["--json=yes", "list"], ["--json"], []),
    (["\u2013-json", "list"], ["\u2013"], ["--json"]),
    (["run", "SPEC", "\u2014set", "name=x"], ["\u2014"], ["--set"]),
    (["status", "a", "b"], ["b"], []),
    (["logs", "@last", "--phase", "trian"], ["trian"], ["train"]),
    (["cache"], ["cache"], ["verify"]),
    (["cache", "vrify", "/tmp"], ["vrify"], ["cache ls, cache verify, cache why, cache pull, cache push, cache gc"]),
    (["cache", "--json"], ["unknown command"], ["cache ls, cache verify, cache why, cache pull, cache push, cache gc"]),
    (["cache", "ls"], ["URL"], []),
    (["cache", "gc"], ["URL"], []),
    (["cache", "gc", "/tmp", "--older-than", "old"], ["--older-than", "old"], ["30d"]),
    (["cache", "gc", "/tmp", "--delet"], ["--delet"], ["--delete"]),
    (["cache", "ls", "/tmp", "--delete"], ["--delete"], []),
    (["init", "--template", "nosuch", "x.yaml"], ["nosuch"], ["--list"]),
    (["init", "--template"], ["--template"], []),
    (["help", "nosuch"], ["nosuch"], []),
    (["version", "1"], ["1"], []),
    (["list", "extra"], ["extra"], []),
    (["stop"], ["RUN"], ["list"]),
    (["logs", "--tail", "few"], ["--tail", "few"], ["--tail 1"]),
    (["logs", "--tail", "1000001"], ["--tail"], []),
    (["logs", "--since", "yesterday"], ["--since", "yesterday"], ["10m"]),
    (["logs", "--since", "2026-02-30x"], ["--since"], ["10m"]),
    (["logs", "--since", "2026-02-30"], ["--since", "2026-02-30"], ["10m"]),
    (["logs", "--grep", "(", "x"], ["--grep", "parenthesis"], []),
    (["logs", "--node", "1", "--all-nodes"], ["--all-nodes"], ["one of them"]),
    (["wait", "--timeout", "soon"], ["--timeout", "soon"], ["90s"]),
    (["wait", "--timeout", "0s"], ["--timeout"], ["90s"]),
    (["cp", "x:model", "to"], ["x:model"], ["RUN:checkpoint"]),
    (["cp", "x:log"], ["cp needs"], ["usage"]),
    (["cp", "x:outputs", "to", "--attempt", "1"], ["--attempt", "outputs"], ["omit"]),
    (["cp", "x:checkpoint", "to", "--phase", "train"], ["--phase", "checkpoint"], ["omit"]),
    (["exec"], ["exec needs"], ["usage"]),
    (["exec", "x"], ["needs a command"], ["--"]),
    (["diff", "x"], ["diff needs"], ["usage"]),
    (["diff", "x", "y", "--set", "name=z"], ["--set", "'x' and 'y'"], ["./stoker.yaml"]),
    (["--state"], ["--state"], []),
    (["--state", "", "list"], ["--state"], []),
    (["--json", "--quiet", "--verbos", "list"], ["--verbos"], []),
]


@pytest.mark.parametrize("argv, message, hint", WRONG,
                         ids=[" ".join(map(ascii, argv)) or "nothing" for argv, _, _ in WRONG])
def test_a_wrong_command_line(project, argv, message, hint):
    argv = [str(project.spec_path) if word == "SPEC" else word for word in argv]
    result = project.stoker(*argv)
    assert result.code == 2, str(result)
    assert [list(line) for line in result.lines] == [["error"]] * ("--json" in argv), str(result)
    assert "error:" in result.err and "hint:" in result.err, str(result)
    said, cure = result.err.split("hint:", 1)
    for word in message:
        assert word in said, str(result)
    for word in hint:
        assert word in cure, str(result)
    assert not project.state.exists()


def test_there_are_enough_wrong_command_lines():
    assert len(WRONG) >= 25


def test_an_argument_that_is_not_utf8_is_shown_escaped(project):
    result = project.stoker(b"st\xffatus")
    assert result.code == 2
    assert "\udcff" not in result.err and not cli.CONTROL.search(result.err)


def test_an_argument_with_control_bytes_is_shown_escaped(project):
    result = project.stoker("st\x1b[31matus", "\u202eabc")
    assert result.code == 2
    assert not cli.CONTROL.search(result.err), ascii(result.err)


def test_what_is_no_attempt_or_node_is_refused(project):
    project.write(compile=None)
    project.run("--id", "one")
    for argv, word in ((("--attempt", "zero"), "zero"), (("--attempt", "0"), "0"), (("--attempt", "7"), "7"),
                       (("--node", "-1"), "-1"), (("--node", "3"), "3"),
                       (("--phase", "precompile"), "precompile")):
        result = project.stoker("logs", "one", *argv)
        assert result.code == 2, str(result)
        assert word in result.err and result.cure


def test_an_ambiguous_prefix_names_the_candidates(project):
    project.write(compile=None)
    project.run("--id", "night-1")
    project.run("--id", "night-2")
    result = project.stoker("status", "night")
    assert result.code == 2
    assert "night-1" in result.err and "night-2" in result.err
    assert project.status("night-1")["run"] == "night-1"


def test_a_unique_prefix_is_enough(project):
    project.write(compile=None)
    project.run("--id", "morning")
    assert project.status("mor")["run"] == "morning"


def test_last_without_any_run_says_so(project):
    result = project.stoker("status", "@last")
    assert result.code == 9
    assert "hint:" in result.err


def test_options_may_stand_before_and_after_the_command(project):
    project.write(compile=None)
    project.run("--id", "one")
    assert project.stoker("status", "--json", "one").lines == project.ok("--json", "status", "one").lines


def test_two_dashes_end_the_options(project):
    odd = project.source / "-odd.yaml"
    odd.write_bytes(project.spec_path.read_bytes())
    project.ok("validate", "--", "-odd.yaml")


def test_help_names_every_command_and_every_exit_code(project):
    general = project.ok("help").out
    assert general == project.ok("--help").out
    for command in ("init", "validate", "plan", "run", "status", "list", "events", "logs",
                    "cache ls", "cache verify", "cache why", "cache pull", "cache push", "cache gc", "schema", "version", "help"):
        assert command in general
        said = project.ok("help", *command.split()).out
        assert command in said
        if command != "help":
            assert project.ok(*command.split(), "--help").out == said
    for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 70, 75):
        assert any(line.split()[:1] == [str(code)] for line in general.splitlines()), general


def test_alone_it_shows_help(project):
    assert project.ok().out == project.ok("help").out


def test_help_explains_a_field(project):
    said = project.ok("help", "retry.backoff.first").out
    assert "30s" in said


def test_version_names_what_is_linked(project):
    said = project.ok("version").out
    assert said.startswith("stoker 0.1.0")
    for library in ("sqlite", "yaml", "jansson", "pcre2", "archive", "git2"):
        assert library in said.lower(), said


def test_color_follows_the_option_and_no_color(project):
    assert "\x1b[" in project.stoker("--color", "always", "rnu").err
    assert "\x1b[" in project.stoker("--color", "always", "rnu", env={"NO_COLOR": "1"}).err
    for argv, env in (([], {}), (["--color", "never"], {}), (["--color=auto"], {"NO_COLOR": "1"})):
        assert "\x1b" not in project.stoker(*argv, "rnu", env={"TERM": "xterm", **env}).text


def test_a_closed_stdout_is_an_error_not_silence(project):
    with open("/dev/full", "w") as full:
        result = project.stoker("schema", stdout=full)
    assert result.code == 4
    assert "cannot write to standard output" in result.err and "free space" in result.err, str(result)


def test_a_stdout_that_fails_is_not_said_to_be_full(project):
    terminal, gone = os.openpty()
    os.close(terminal)
    with open(gone, "w") as stdout:
        result = project.stoker("schema", stdout=stdout)
    assert result.code == 4
    assert "Input/output error" in result.err and "standard output leads to" in result.err, str(result)


@pytest.mark.parametrize("argv", [("cache", "--help"), ("cache", "-h"), ("help", "cache"), ("--help", "cache")],
                         ids=" ".join)
def test_a_family_of_commands_has_help_too(argv):
    result = cli.stoker(*argv)
    assert result.code == 0 and not result.err, str(result)
    for name in ("cache ls URL", "cache verify URL|SPEC", "cache why [SPEC]", "cache pull URL DIR", "cache push DIR URL", "cache gc URL"):
        assert name in result.out, str(result)


def test_of_what_every_command_takes_the_last_word_counts(project):
    result = project.ok("--color", "always", "--color", "never", "validate", project.spec_path)
    assert "\x1b" not in result.text


def test_no_line_of_the_help_ends_in_a_blank():
    for topic in ("list", "schema", "run", "cache"):
        for line in cli.stoker("help", topic).out.splitlines():
            assert line == line.rstrip(), repr(line)
    assert "stoker list\n" in cli.stoker("list", "extra").err


@pytest.mark.parametrize("argv", [["status"], ["events"], ["logs"], ["attach"], ["wait"], ["resume"], ["stop"], ["rm"],
                                  ["diff", "no-such-run"], ["exec"], ["cp"]])
def test_a_run_that_is_not_there_has_an_exit_code_of_its_own(project, argv):
    more = {"exec": ["no-such-run", "--", "true"], "cp": ["no-such-run:log", "to"]}.get(argv[0], ["no-such-run"])
    result = project.stoker(*argv, *more)
    assert result.code == 9 and "no run 'no-such-run'" in result.err and "list" in result.cure, str(result)
    if argv[0] not in ("resume", "stop"):  # which open a state to write to it
        assert not project.state.exists()
    assert not (project.source / "to").exists()


def piped(text):
    """The reading end of a pipe that holds the text and is closed at the other end."""
    reader, writer = os.pipe()
    with open(writer, "wb") as file:
        file.write(text)
    return open(reader, "rb")


@pytest.mark.parametrize("argv", [["run"], ["plan"], ["validate"], ["cache", "why"]])
def test_the_spec_is_stoker_yaml_unless_another_is_named(project, argv):
    project.write(compile=None, hyperparameters=None, command=["true"])
    assert project.stoker(*argv).code == 0
    assert project.stoker(*argv, "-", stdin=piped(project.spec_path.read_bytes())).code == 0
    project.spec_path.unlink()
    result = project.stoker(*argv)
    assert result.code == 3 and "stoker.yaml" in result.err and "stoker init" in result.cure, str(result)


def test_problems_of_a_spec_from_a_pipe_have_a_place(project):
    result = project.stoker("validate", "-", stdin=piped(b"version: 1\nnmae: x\n"))
    assert result.code == 3 and "-:2:1: unknown field 'nmae'" in result.err, str(result)
