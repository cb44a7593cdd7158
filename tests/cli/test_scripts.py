"""./quickstart and ./test: what they say where something is missing, and that
they leave alone what is there."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import stoker as cli

AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()


def machine(tmp_path, code, prefix=(), path="/usr/bin:/bin"):
    """Run shell code that has cmake/machine.sh, with no terminal."""
    script = tmp_path / "try"
    tmp_path.chmod(0o755)
    shutil.copy(cli.ROOT / "cmake/machine.sh", tmp_path / "machine.sh")
    script.write_text(f"set -euo pipefail\n. {tmp_path}/machine.sh\n{code}\n")
    script.chmod(0o755)
    return subprocess.run([*prefix, "/bin/bash", str(script)], capture_output=True, text=True, timeout=cli.SECONDS,
                          stdin=subprocess.DEVNULL, cwd=tmp_path, env={"PATH": path, "HOME": "/nonexistent"})


def test_nothing_is_installed_where_everything_is_there(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("apt-get", "sudo", "pip"):
        (tools / name).write_text("#!/bin/sh\necho \"$0 $*\" >&2\nexit 9\n")
        (tools / name).chmod(0o755)
    done = machine(tmp_path, 'ensure_packages "bash have bash"', path=f"{tools}:/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert "all there" in done.stdout


def test_a_user_without_rights_is_told_what_to_install(tmp_path):
    # pytest's own folders are closed to others.
    with tempfile.TemporaryDirectory() as name:
        done = machine(Path(name), 'ensure_packages "libfoo-dev have no-such-tool-1\nbar have no-such-tool-2"',
                       prefix=AS_NOBODY)
    assert done.returncode == 4, done
    assert "libfoo-dev bar" in done.stderr and "apt-get install libfoo-dev bar" in done.stderr


def test_a_python_that_leads_nowhere_is_passed_over(tmp_path):
    """A version manager's shim without a version behind it."""
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "python3").write_text("#!/bin/sh\necho 'no version is set' >&2\nexit 127\n")
    (shims / "python3").chmod(0o755)
    done = machine(tmp_path, "find_python", path=f"{shims}:/usr/bin:/bin")
    assert done.stdout.strip() in ("/usr/bin/python3", ""), done


def test_a_failed_build_is_shown_and_fails(tmp_path):
    done = machine(tmp_path, "quietly sh -c 'echo broken; exit 3' || echo status $?")
    assert "status 3" in done.stdout and "broken" in done.stderr
    done = machine(tmp_path, "quietly echo fine")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_unknown_part_is_a_wrong_command_line():
    done = subprocess.run([cli.ROOT / "test", "nuit"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "nuit" in done.stderr and "usage:" in done.stderr


def test_both_scripts_say_what_they_do():
    for name in ("quickstart", "test"):
        done = subprocess.run([cli.ROOT / name, "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.startswith(f"usage: ./{name}")
