"""How the rows of configs/live/rows.yaml on accelerators and on EFA are tried: a run of the built stoker on each type of
machine, which several rows look at. All of them are tried by their names alone, in an image that has the accelerator's
tools."""

import re

import rows
from jobs import facts
from lab import NotTried, shared, trial
from trials_runs import Job

COMPUTES = 60  # seconds
MACHINES = rows.machines()
NCCL = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", "FI_PROVIDER": "efa"}
CHOSEN = re.compile(r"NET/OFI Selected [Pp]rovider is (\w+)")


class Looked:
    """A run on machines of one type, as its events, log and figures tell of it."""

    def __init__(self, lab, engine, kind, do, **more):
        self.lab, self.name = lab, f"{lab.name}-{engine[0]}{kind.replace('.', '').removesuffix('xlarge')}"
        driver = lab.stoker.start(lab.stoker.spec(engine, do, kind, **more), self.name)
        self.said, self.code = lab.stoker.ended(driver), driver.returncode
        self.job = Job(lab, engine, self.name).seen()  # by the SDK
        if self.job is None:
            raise NotTried(f"stoker run ended with {self.code}, without a job: {self.last()}")
        self.lines = lab.stoker.text("logs", self.name, "--all-nodes").splitlines()
        self.facts = facts(line[max(line.find("conform {"), 0):] for line in self.lines)  # behind the number of a node

    def last(self):
        return " ".join(self.said.strip().splitlines()[-1:])

    def words(self):
        return f"the job is {self.job[0]}; stoker run ended with {self.code}"

    def health(self):
        """What the check-up found."""
        found = [row["health"] for row in self.lab.stoker.ask("events", self.name)[0] if row.get("event") == "health.checked"]
        if not found:
            raise NotTried(f"there was no check-up; {self.words()}: {self.last()}")
        return found[-1]

    def checks(self):
        """{check: (verdict, words)} of its first node."""
        return {row["check"]: (row["verdict"], row["words"]) for row in self.health()["nodes"][0]["checks"]}

    def figures(self):
        rows, _ = self.lab.stoker.ask("metrics", self.name, "node/")
        return sorted({row["name"] for row in rows if row.get("name", "").startswith("node/device")})


def examined(engine, kind):
    """One node that is checked, with its collectives, and then computes."""
    return shared(lambda lab: Looked(lab, engine, kind, "computes", health={"device": True, "timeout": "10m", "collectives": {}},
                                     env={"CONFORM_SECONDS": str(max(lab.watch * COMPUTES / 60, 8))}))


def reduced(engine):
    """Two nodes that sum over NCCL."""
    return shared(lambda lab: Looked(lab, engine, EFA, "reduces", command=["torchrun", "far.py"], env=NCCL,
                                     resources={"nodes": 2}))


EFA = "g6.8xlarge"
TYPES = {"batch-neuron": ("batch", "inf2.xlarge"), "batch-gpu": ("batch", "g4dn.xlarge"),
         "sagemaker-neuron": ("sagemaker", "trn1.2xlarge"), "sagemaker-gpu": ("sagemaker", "g4dn.xlarge"),
         "gpu-tools": ("batch", "g4dn.12xlarge")}  # of one GPU there are no collectives
EXAMINED = {row: examined(*where) for row, where in TYPES.items()}
REDUCED = {engine: reduced(engine) for engine in ("batch", "sagemaker")}
NOT_SEEN = ("xid",)  # the kernel's log is seldom a container's


def devices(lab, row):
    """As many as the catalogue says, and a product is right on each."""
    seen, machine = EXAMINED[row](lab), MACHINES[TYPES[row][1]]
    checks = seen.checks()
    count, words = machine.get("devices") or machine["gpus"], checks.get("devices", ("", "no word of devices"))[1]
    wanted = f"{count} devices with {machine['cores']} cores" if "cores" in machine else rf"{count} (of {count} )?GPUs?"
    fine = all(checks.get(name, ("",))[0] == "ok" for name in ("devices", "tensor")) and re.search(wanted, words)
    return bool(fine), f"{words}; {checks.get('tensor', ('', 'no product'))[1]}; {seen.words()}"


@trial("batch-neuron", queue=True, image=True)
def batch_neuron(lab):
    return devices(lab, "batch-neuron")


@trial("batch-gpu", queue=True, image=True)
def batch_gpu(lab):
    return devices(lab, "batch-gpu")


@trial("sagemaker-neuron", role=True, image=True)
def sagemaker_neuron(lab):
    return devices(lab, "sagemaker-neuron")


@trial("sagemaker-gpu", role=True, image=True)
def sagemaker_gpu(lab):
    return devices(lab, "sagemaker-gpu")


# ---- tools


def unchecked(seen):
    return [f"{name}: {words}" for name, (verdict, words) in seen.checks().items()
            if verdict == "unchecked" and name not in NOT_SEEN]


@trial("neuron-tools", queue=True, image=True)
def neuron_tools(lab):
    left = unchecked(EXAMINED["batch-neuron"](lab))
    return not left, "; ".join(left) or "all was checked"


@trial("neuron-monitor", queue=True, image=True)
def neuron_monitor(lab):
    seen = EXAMINED["batch-neuron"](lab)
    return bool(seen.figures()), f"{', '.join(seen.figures()) or 'no figures of cores'}; {seen.words()}"


@trial("gpu-tools", queue=True, image=True)
def gpu_tools(lab):
    seen = EXAMINED["gpu-tools"](lab)
    left, figures = unchecked(seen), seen.figures()
    return not left and bool(figures), f"{'; '.join(left) or 'all was checked'}; {', '.join(figures) or 'no figures of GPUs'}"


# ---- EFA


def efa(lab, engine):
    seen = REDUCED[engine](lab)
    sums = [each["sum"] for each in seen.facts if "sum" in each]
    chosen = sorted({match[1] for line in seen.lines if (match := CHOSEN.search(line))})
    return chosen == ["efa"] and sums == [3.0] * 2, \
        f"libfabric's provider: {', '.join(chosen) or 'none is named'}; sums {', '.join(map(str, sums)) or 'none'}; " + seen.words()


@trial("batch-efa", queue=True, image=True)
def batch_efa(lab):
    return efa(lab, "batch")


@trial("sagemaker-efa", role=True, image=True)
def sagemaker_efa(lab):
    return efa(lab, "sagemaker")


@trial("neuron-efa", queue=True, image=True)
def neuron_efa(lab):
    """The check-up's all-reduce between two nodes; TCP has what one of their interfaces has."""
    kind = "trn1.32xlarge"
    seen = Looked(lab, "batch", kind, "names", resources={"nodes": 2},
                  health={"device": True, "timeout": "10m", "collectives": {"ops": ["all_reduce"]}})
    across = seen.health().get("across", {})
    figure = across.get("figures", {}).get("all_reduce", {}).get("busbw")
    least = MACHINES[kind]["gbps"] / MACHINES[kind]["efa"] / 8
    words = across.get("failing") or across.get("unchecked") or f"by {across.get('how')}: {figure} GB/s"
    return "failing" not in across and (figure or 0) > least, \
        f"{words}; one interface has {least:g}; {seen.words()}"
