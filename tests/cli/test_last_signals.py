"""Signals that a machine sends by itself: a file that may grow no further (SIGXFSZ) and a reader
that is gone (SIGPIPE). Neither ends stoker without a word."""

import resource
import signal

import pytest


def limited(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("journal", ["sqlite", "dir"])
@pytest.mark.parametrize("size", [0, 512, 100_000], ids=["nothing", "a-block", "some"])
def test_a_file_size_limit_is_an_error_like_any_other(project, journal, size):
    run = project.start("--state", f"{journal}:{project.state}", "run", project.spec_path, "--id", "one",
                        preexec_fn=limited(size))
    err = run.communicate(timeout=300)[1].decode()
    assert run.returncode == 4, f"{run.returncode}\n{err}"
    assert "error:" in err, err
    again = project.stoker("--state", f"{journal}:{project.state}", "run", project.spec_path, "--id", "one")
    assert again.code == 0, str(again)


COMMANDS = ["logs one", "--json events one -f", "events one", "list", "--json status one", "help"]


@pytest.mark.parametrize("argv", [command.split() for command in COMMANDS], ids=COMMANDS)
def test_a_reader_that_is_gone_ends_no_command_by_a_signal(project, argv):
    project.run("--id", "one")
    reader = project.start(*argv)
    reader.stdout.close()
    assert reader.wait(300) != -signal.SIGPIPE
    assert b"Sanitizer" not in reader.stderr.read()
