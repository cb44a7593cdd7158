"""What the nodes did while they trained: planted bottlenecks are named in the report, each by its
name, and a healthy training has none. The processes are real ones; the tools that watch devices are
stand-ins which print what neuron-monitor and nvidia-smi do, and swapping is what /proc says that is
mounted over the real one."""

import json
import os
import re
import signal
import subprocess

import pytest
import readings
from monitors import NEURON, NVIDIA
from project import Project
from stoker import until

TIMES = int(os.environ.get("STOKER_TEST_BOTTLENECKS", "2"))  # the soak has 10

# A training with loader processes: LOAD and STEP are the CPU seconds of a batch, in them and in the
# training process; it makes steps until the agent has sampled so often (`metrics` of its own run).
TRAIN = """
import multiprocessing, os, time

def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def load(queue):
    while True:
        compute(float(os.environ["LOAD"]))
        queue.put(1)

def size(path):
    try:
        return os.path.getsize(path)
    except OSError:
        return 0

if __name__ == "__main__":
    exec(os.environ.get("FIRST", ""))
    queue = multiprocessing.Queue(2)
    for _ in range(int(os.environ["LOADERS"])):
        multiprocessing.Process(target=load, args=(queue,), daemon=True).start()
    samples, step, last = 0, 0, size(os.environ["USAGE"])
    while samples < int(os.environ["SAMPLES"]):
        if int(os.environ["LOADERS"]):
            queue.get()
        compute(float(os.environ["STEP"]))
        step += 1
        print("step:", step, flush=True)
        now = size(os.environ["USAGE"])
        samples, last = samples + (now != last), now
"""

FULL = 14 << 30  # bytes of the 16 GiB of a core


class Training(Project):
    def __init__(self, root, loaders=2, load=0.02, step=0.05, samples=14, **env):
        super().__init__(root)
        self.tools = root / "tools"
        self.tools.mkdir()
        (self.source / "train.py").write_text(TRAIN)
        self.write(workspace=str(root / "workspace"), compile={"kind": "none"}, hyperparameters=None, retry={"attempts": 1},
                   env={"LOADERS": str(loaders), "LOAD": str(load), "STEP": str(step), "SAMPLES": str(samples),
                        "USAGE": str(root / "workspace/runs/one/train-1/node-0/usage"), **env})

    def tool(self, name, text):
        path = self.tools / name
        path.write_text(text)
        path.chmod(0o755)

    def path(self):
        return {"PATH": f"{self.tools}:{os.environ['PATH']}"}

    def begin(self):
        return self.start("run", self.spec_path, "--id", "one", env=self.path())

    def findings(self):
        """{rule: row of the report}, and that each says its figure, its threshold and what it means."""
        page = self.ok("report", "one", "--output", "-").out
        part = re.search("<h3>What the nodes did</h3>(.*?)<h3>", page, re.S).group(1)
        assert "What was looked for" in part, part
        rows = re.findall('<tr><th scope="row">(.*?)</th><td class="n">0</td><td>(.*?)</td><td>(.*?)</td>'
                          '<td class="n">(\\d+) %</td><td>(.*?)</td></tr>', part)
        assert all(all(row) for row in rows) and (rows or "Nothing was found" in part), part
        for rule, figure, *_ in rows:
            assert f"Run one, node 0: {rule}: {figure}." in page
        return {row[0]: row for row in rows}

    def figures(self, *names):
        return self.ok("--json", "metrics", "one", *(names or ("node/",))).lines


def over(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, (out, err)


def go(trainings):
    """Runs all of them at the same time: they wait more than they compute."""
    for process in [training.begin() for training in trainings]:
        over(process)


def several(tmp_path, make):
    trainings = [make(tmp_path / str(i)) for i in range(TIMES)]
    go(trainings)
    return trainings


def healthy(root, **options):
    """Its training process has the longer work of the two; its devices are busy, and full."""
    training = Training(root, **{"loaders": 1, "load": 0.005, "step": 0.05, **options})
    training.tool("neuron-monitor", NEURON % ([91.5, 88, 93, 90.25], FULL))
    return training


def test_a_healthy_training_has_nothing_named(tmp_path):
    for training in several(tmp_path, healthy):
        assert training.findings() == {}
        assert {row["name"] for row in training.figures()} >= {
            "node/cpu", "node/cpu-cores", "node/cpu-busiest", "node/cpu-idlest", "node/memory", "node/memory-available",
            "node/trainer", "node/loaders", "node/device.0", "node/device.3", "node/device-memory.0"}


def test_a_training_that_waits_for_its_loaders_is_named(tmp_path):
    for training in several(tmp_path, lambda root: Training(root, load=0.3, step=0.02)):
        found = training.findings()
        assert list(found) == ["loader-bound"], found
        assert "training process: " in found["loader-bound"][1] and "at most 30 %" in found["loader-bound"][2]


def test_a_device_that_waits_for_the_loaders_is_named(tmp_path):
    def make(root):
        training = Training(root, load=0.3, step=0.02)
        training.tool("nvidia-smi", NVIDIA % ([31, 28], 70000))
        return training

    for training in several(tmp_path, make):
        found = training.findings()
        assert list(found) == ["loader-bound"] and "busiest device: 31.0 %" in found["loader-bound"][1], found


def test_a_core_that_idles_is_named(tmp_path):
    def make(root):
        training = Training(root, loaders=0)
        training.tool("neuron-monitor", NEURON % ([91.5, 88, 2], FULL))  # and one of four that nobody uses
        return training

    for training in several(tmp_path, make):
        found = training.findings()
        assert list(found) == ["idle core"], found
        assert found["idle core"][1].startswith("devices 2, 3 of 4: busy 1.0 % on average")


def test_memory_of_devices_that_is_left_unused_is_named(tmp_path):
    training = Training(tmp_path / "one", loaders=0)
    training.tool("nvidia-smi", NVIDIA % ([97, 96], 20000))
    go([training])
    found = training.findings()
    assert list(found) == ["memory left unused"] and "24.5 %" in found["memory left unused"][1], found
    assert [row["value"] for row in training.figures("node/device-memory.1")][0] == pytest.approx(20000 / 81559 * 100)


@pytest.mark.parametrize("none", ["", "-1"])
def test_devices_that_the_command_does_not_get_are_none(tmp_path, none):
    """It uses the whole CPU of a machine with GPUs: nothing waits for a loader."""
    training = Training(tmp_path / "one", loaders=0, samples=4, CUDA_VISIBLE_DEVICES=none)
    training.tool("nvidia-smi", NVIDIA % ([0, 0], 1))
    go([training])
    names = {row["name"] for row in training.figures()}
    assert "node/cpu" in names and not any(name.startswith("node/device") for name in names), names


HABITS = {
    "floods": "while True: sys.stdout.buffer.write(bytes(range(256)) * 256)",
    "never ends a line": "while True: print('0, 50, ' * 100, end='', flush=True)",
    "says nothing": "time.sleep(3600)",
    "ends at once": "sys.exit(3)",
    "tells no figures": "while True: print('0, [N/A], -5, 1e999\\n\\x1b[31m, nan, 0x10, 2', flush=True); time.sleep(0.05)",
    "takes no signal": "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGPIPE, signal.SIG_IGN); time.sleep(3600)",
}


@pytest.mark.parametrize("habit", HABITS)
def test_a_tool_that_misbehaves_hurts_nobody(tmp_path, habit):
    training = Training(tmp_path / "one", loaders=0, samples=4)
    training.tool("nvidia-smi", f"""#!/usr/bin/python3
import os, signal, sys, time
open({str(tmp_path / 'pids')!r}, "a").write(f"{{os.getpid()}}\\n")
{HABITS[habit]}
""")
    go([training])
    names = {row["name"] for row in training.figures()}
    assert "node/cpu" in names and not any(name.startswith("node/device") for name in names), names
    pids = (tmp_path / "pids").read_text().split()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


# Mounts files over what /proc says of the swap, for itself and for the agent above it, which lives in
# the same namespace, and lets pages move. The real thing differs in that nothing is swapped here.
SWAPS = """
import subprocess, threading
here = os.environ["TMP_SWAP"]
with open("/proc/vmstat") as file:
    rest = [line for line in file if not line.startswith("pswp")]
def write(pages):
    with open(here + "/vmstat", "w") as file:
        file.writelines(rest + [f"pswpin {pages}\\n", f"pswpout {2 * pages}\\n"])
write(0)
status = open("/proc/self/status").read()
with open(here + "/status", "w") as file:
    file.write(re.sub("VmSwap:.*", "VmSwap:   524288 kB", status))
subprocess.run(["mount", "--bind", here + "/vmstat", "/proc/vmstat"], check=True)
subprocess.run(["mount", "--bind", here + "/status", f"/proc/{os.getpid()}/status"], check=True)
def move():
    pages = 0
    while True:
        pages += 500
        write(pages)
        time.sleep(0.1)
threading.Thread(target=move, daemon=True).start()
"""


@pytest.mark.skipif(os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0,
                    reason="mounts need root")
def test_swapping_is_named(tmp_path):
    def make(root):
        training = Training(root, loaders=0, TMP_SWAP=str(root), FIRST="import re\n" + SWAPS)
        return training

    trainings = [make(tmp_path / str(i)) for i in range(TIMES)]
    for training in trainings:
        training.process = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", os.path.abspath(os.environ["STOKER"]), "run", training.spec_path, "--id", "one"],
            cwd=training.source, env=training.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for training in trainings:
        over(training.process)
    for training in trainings:
        found = training.findings()
        assert list(found) == ["swapping"], found
        assert "at least 1 MiB/s" in found["swapping"][2]


def test_a_report_of_many_runs_draws_no_more_points_for_it(tmp_path):
    """Three runs of four nodes, each of which told seven figures for an hour."""
    site = Project(tmp_path)
    site.write(workspace=str(tmp_path / "workspace"), compile={"kind": "none"}, hyperparameters=None, metrics=None,
               command=["true"], resources={"nodes": 4})
    begin, runs = 1_800_000_000_000, ("one", "two", "three")
    for run in runs:
        site.run("--id", run)
        for node in range(4):
            place = f"runs/{run}/train-1/node-{node}"
            rows = [(figure, second, begin + 1000 * second, (second * 7919 + figure) % 100)
                    for second in range(3600) for figure in (0, 5, 6, 9, 32, 33, 34)]
            (tmp_path / "workspace" / place / "usage").write_bytes(readings.blocks(place, rows))
    assert len(site.ok("--json", "metrics", "one", "node/device.1").lines) == 4 * 3600
    points = {}
    for count in (1, 3):
        page = site.ok("report", *runs[:count], "--output", "-").out
        charts = json.loads(re.search('<script type="application/json" id="data">(.*?)</script>', page)[1])["charts"]
        lines = [line for chart in charts if "the agent" in chart["caption"] for line in chart["lines"]]
        assert len(lines) == count * 4 * 7
        assert all(max(y for _, y in line["points"]) >= 97 for line in lines)  # no peak is lost
        points[count] = sum(len(line["points"]) for line in lines)
    assert 10000 < points[1] and points[3] < 25000, points
