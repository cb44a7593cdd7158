"""The figures of a comparison, computed by the tests themselves: from the readings of each run and
from what `status` says of it, by the rules that docs and `compare` state."""

import math
import statistics
from datetime import datetime

WARM, JOIN_MS, LEVEL = 10, 5, 0.99
NOISY = 2  # times the spread of all rows: from there on a row has its own


def at(text) -> int:
    """In milliseconds."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def spans_of(readings) -> list:
    """(seconds of a step, steps) between the lines of a log that tell a step."""
    spans, first, last = [], None, None
    for row in readings:
        if row["name"] != "step":
            continue
        step, ms = row["step"], at(row["at"])
        if last is None:
            first = last = (step, ms)
        elif 0 <= ms - last[1] < JOIN_MS:
            continue
        else:
            if last[0] >= first[0] + WARM - 1:
                spans.append(((ms - last[1]) / 1000 / (step - last[0]), step - last[0]))
            last = (step, ms)
    return spans


def quantile(spans, q):
    total, so_far = sum(steps for _, steps in spans), 0
    for seconds, steps in sorted(spans):
        so_far += steps
        if so_far >= q * total:
            return seconds
    raise AssertionError(spans)


def run_figures(readings, status) -> dict:
    """Of one run, whose training was one attempt and compiled nothing late."""
    attempts = status["attempts"]
    assert [row["phase"] for row in attempts].count("train") == 1 and status["jit"]["graphs"] == 0
    spans = spans_of(readings)
    return {"steps": sum(steps for _, steps in spans),
            "step_seconds_mean": sum(each * steps for each, steps in spans) / sum(steps for _, steps in spans),
            "step_seconds_p50": quantile(spans, 0.5), "step_seconds_p95": quantile(spans, 0.95),
            "wall": (at(status["ended"]) - at(status["created"])) / 1000,
            "compile": sum(row["seconds"] for row in attempts if row["phase"] == "precompile"),
            "loss": {row["step"]: row["value"] for row in readings if row["name"] == "loss"}}


def student_quantile(p, freedom):
    """By Simpson's rule and halving: right to about 1e-12 for values below 100."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def share(t, parts=2000):  # between 0 and t
        width = t / parts
        ys = [(1 + (i * width) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(parts + 1)]
        return scale * width / 3 * (ys[0] + ys[-1] + 4 * sum(ys[1:-1:2]) + 2 * sum(ys[2:-1:2]))
    low, high = 0.0, 100.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if 0.5 + share(middle) < p else (low, middle)
    return (low + high) / 2


def table(cells) -> list:
    """The rows of a sweep: `cells` are (samples of a step, [figures of each run]), the baseline first;
    None is a cell that is not supported."""
    logs = [None if cell is None else
            [math.log(cell[0] / figures["step_seconds_mean"]) for figures in cell[1]] for cell in cells]
    known = [each for each in logs if each is not None]
    freedom = sum(len(each) - 1 for each in known)
    spread = sum((value - statistics.mean(each)) ** 2 for each in known for value in each) / freedom
    t = student_quantile(1 - (1 - LEVEL) / 2 / (len(cells) - 1), freedom)

    def variance(speeds):  # of their mean
        own = sum((value - statistics.mean(speeds)) ** 2 for value in speeds) / (len(speeds) - 1)
        return (own if own > NOISY * spread else spread) / len(speeds)
    rows = []
    for cell, speeds in zip(cells, logs, strict=True):
        if cell is None:
            rows.append({"verdict": "not supported"})
            continue
        samples, figures = cell
        row = {name: statistics.mean(each[name] for each in figures) for name in figures[0] if name != "loss"}
        middle = statistics.mean(speeds) - statistics.mean(known[0])
        half = t * math.sqrt(variance(speeds) + variance(known[0]))
        row.update(samples_per_second=samples / row["step_seconds_mean"], speed=math.exp(middle))
        row.update(curve([each["loss"] for each in figures], [each["loss"] for each in cells[0][1]]))
        if not rows:
            row["verdict"] = "baseline"
        else:
            row.update(speed_low=math.exp(middle - half), speed_high=math.exp(middle + half))
            row["verdict"] = ("faster" if row["speed_low"] > 1 else
                              "slower" if row["speed_high"] < 1 else "within noise")
        rows.append(row)
    return rows


def curve(losses, base) -> dict:
    both = set.intersection(*map(set, losses + base))

    def mean(curves, step):
        return statistics.mean(each[step] for each in curves)
    gaps = {step: abs(mean(losses, step) - mean(base, step)) for step in sorted(both)}
    gap_step = max(gaps, key=gaps.get)
    return {"value_step": max(both), "value": mean(losses, max(both)), "base_value": mean(base, max(both)),
            "gap": gaps[gap_step], "gap_step": gap_step}
