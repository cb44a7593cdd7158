"""What tests/cli/test_metrics.py tries at a few drawn moments, at many."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from test_metrics import SEED, killed


@pytest.mark.parametrize("seed", range(SEED * 1000, SEED * 1000 + 100))
def test_kills_at_drawn_moments_lose_nothing(tmp_path, seed):
    killed(tmp_path, seed)
