"""Signals that a machine sends by itself: a file that may grow no further (SIGXFSZ) and a reader
that is gone (SIGPIPE). Neither ends stoker without a word."""

import resource
import signal
import time

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


WRITERS = {
    "init": "init new.yaml",
    "stop": "stop left",
    "resume": "resume left",
    "rm": "rm one",
    "prune": "list --prune 0s",
    "pull": "cache pull {cache} pulled",
    "push": "cache push {cache} pushed",
    "gc": "cache gc {cache} --delete",
    "again": "run {spec} --id two",
}


@pytest.fixture
def two(project):
    """A finished run, and one without a driver whose command waits."""
    project.run("--id", "one")
    project.extra("import os, time\n\n\ndef step(number, args):\n"
                  "    while number == 3 and not os.path.exists('GATE'): time.sleep(0.05)\n".replace("GATE", str(project.root / "gate")))
    driver = project.start("run", project.spec_path, "--id", "left", "--set", "env.LEFT=1")
    end = time.monotonic() + 300
    while not [row for row in project.stoker("events", "left").lines if row["event"] == "attempt.started"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    driver.kill()
    driver.communicate()
    yield project
    (project.root / "gate").touch()
    assert project.stoker("resume", "left").code in (0, 6)


@pytest.mark.parametrize("name", WRITERS)
def test_each_command_that_writes_says_what_it_cannot_write(two, name):
    """No file may grow at all, and nobody reads what it says: an exit code, and with a reader one error."""
    argv = [word.format(cache=two.cache, spec=two.spec_path) for word in WRITERS[name].split()]
    for is_read in (False, True):
        command = two.start(*argv, preexec_fn=limited(0))
        if not is_read:
            command.stdout.close()
        err = command.stderr.read().decode()
        code = command.wait(300)
        assert code in (0, 4, 6), f"{argv}: {code}\n{err}"
        assert "Sanitizer" not in err, err
        assert code != 4 or err.count("error:") == 1, err
