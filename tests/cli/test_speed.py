"""How fast a training is, is measured where its lines arrive: one speed, wherever it is told,
however rarely a driver looks."""

import json
import re
import signal
import subprocess
import time

import pytest

CONSTANT = """
import os
import sys
import time

sleep, flush, first = float(os.environ["STEP"]), int(os.environ["FLUSH"]), time.monotonic()
for number in range(1, int(os.environ["STEPS"]) + 1):
    pause = first + number * sleep - time.monotonic()
    time.sleep(max(pause, 0))
    print(f"step: {number} loss: {1 / number}")
    if number % flush == 0:
        sys.stdout.flush()
"""


@pytest.fixture
def constant(project):
    (project.source / "train.py").write_text(CONSTANT)
    project.write(compile=None, hyperparameters=None)
    return project


def sets(step, steps, flush=1):
    env = {"STEP": step, "STEPS": steps, "FLUSH": flush}
    return [word for name, value in env.items() for word in ("--set", f"env.{name}={value}")]


def told(text):
    """Every speed in a text, in steps a second."""
    found = re.findall(r"([0-9.]+) (steps/s|s/step)", text)
    return [float(value) if unit == "steps/s" else 1 / float(value) for value, unit in found]


def is_near(value, wanted):
    return abs(value - wanted) <= 0.1 * wanted


def is_told(project, step, block, quantiles=True):
    """The same speed in the block at the end, in `status`, and as JSON; quantiles in seconds."""
    status = project.status()
    throughput = status["throughput"]
    speeds = [status["progress"]["rate"], throughput["mean"], *told(block), *told(project.ok("status").out)]
    assert len(speeds) >= 6 and all(is_near(speed, 1 / step) for speed in speeds), (speeds, status)
    assert quantiles == ("step_seconds" in throughput), throughput
    if quantiles:
        assert is_near(throughput["step_seconds"]["p50"], step), throughput
        # Some steps are as long as the machine is busy.
        assert 0.9 * step < throughput["step_seconds"]["p90"] < 2 * step, throughput
    assert ("half of them" in block) == quantiles
    assert "p50" not in throughput and "p95" not in throughput


@pytest.mark.parametrize("step, steps", [(0.15, 60), (0.02, 400)])
def test_constant_steps_are_told_as_they_are(constant, step, steps):
    result = constant.run(*sets(step, steps))
    is_told(constant, step, result.err + result.out)


def test_bursts_have_a_mean_and_no_quantiles(constant):
    result = constant.run(*sets(0.1, 100, flush=10))
    is_told(constant, 0.1, result.err + result.out, quantiles=False)


def test_a_driver_that_looks_rarely_tells_the_same(constant):
    """Stopped most of the time, it finds many steps at once."""
    driver = constant.start("run", constant.spec_path, *sets(0.15, 80), stderr=subprocess.STDOUT)
    for _ in range(3):
        time.sleep(1)
        driver.send_signal(signal.SIGSTOP)
        time.sleep(3)
        driver.send_signal(signal.SIGCONT)
    out, _ = driver.communicate(timeout=120)
    assert driver.returncode == 0
    is_told(constant, 0.15, out.decode())


def test_all_at_once_is_no_speed(constant):
    constant.run(*sets(0, 5000, flush=5000))
    status = constant.status()
    assert status["progress"]["step"] == 5000
    assert status["progress"].get("rate", 1) < 1e6, status["progress"]
    assert "step_seconds" not in status.get("throughput", {})


def test_while_it_runs_it_is_told_as_well(constant):
    driver = constant.start("--json", "run", constant.spec_path, *sets(0.15, 400))
    for line in driver.stdout:
        event = json.loads(line)
        if event["event"] == "train.progress" and event.get("step", 0) > 40:
            break
    status, text = constant.status(), constant.ok("status").out
    driver.kill()
    driver.communicate()
    constant.ok("stop", "@last")
    speeds = [event["rate"], status["progress"]["rate"], *told(text)]
    assert all(is_near(speed, 1 / 0.15) for speed in speeds), speeds


PAIRS = """
import time

for number in range(1, 121):
    print(f"step: {number} lr: {number}", flush=True)
    if number % 20 == 0:
        print(f"loss: {number}", flush=True)
    time.sleep(0.15)
"""


def test_numbers_of_one_event_belong_to_one_step(constant):
    (constant.source / "train.py").write_text(PAIRS)
    constant.write(metrics=[{"name": "loss", "regex": "loss: ([0-9.]+)"}, {"name": "step", "regex": "step: ([0-9]+)"},
                            {"name": "lr", "regex": "lr: ([0-9.]+)"}])
    driver = constant.start("--json", "run", constant.spec_path)
    shown = []
    while driver.poll() is None:
        time.sleep(0.5)
        if constant.stoker("events", "@last").lines:
            shown.append(constant.status())
    driver.communicate()
    assert driver.returncode == 0
    events = [row for row in constant.events() if row["event"] == "train.progress"]
    assert len(events) >= 2, events
    for step, numbers in [(row["step"], row["metrics"]) for row in events] + \
            [(row["progress"]["step"], row["metrics"]) for row in shown if "metrics" in row]:
        assert set(numbers.values()) == {step}, (step, numbers)
    assert constant.status()["metrics"] == {"loss": 120, "step": 120, "lr": 120}
