"""Published ladders replayed: see tests/support/ladders."""

import math
import statistics
from pathlib import Path

LADDERS = Path(__file__).resolve().parent / "ladders"


def close(a, b, by=1e-9):
    return math.isclose(a, b, rel_tol=by, abs_tol=by)


def geometric(values):
    return math.exp(statistics.mean(map(math.log, values)))


def sweep(site, *argv, code=0):
    result = site.stoker("sweep", site.spec_path, "--id", "ladder", *argv)
    assert result.code == code, str(result)
    return result


def told(site, run, metric, samples):
    """Samples a second by the step times that the log tells, without the first ten steps."""
    rows = site.ok("--json", "metrics", run, metric).lines
    return samples / statistics.mean(row["value"] for row in rows if row["step"] > 10)
