"""The golden specs, through the real program: every message with its place and
its cure, and the JSON Schema held against them."""

import subprocess
import sys

import pytest
import stoker as cli


@pytest.mark.parametrize("runner", ["run.py", "check_schema.py"])
def test_golden_specs(runner):
    done = subprocess.run([sys.executable, cli.ROOT / "tests/golden" / runner, cli.BINARY],
                          capture_output=True, text=True, env=cli.environment(), timeout=600)
    if done.returncode != 0:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
