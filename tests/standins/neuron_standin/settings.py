"""What a test can ask of the stand-ins: one table, and how it is read.

A setting is a variable of the environment or, so that asking for it changes
nothing that a job is known by, a member of standin.json in the installation
that install.py makes; the environment goes first. With `_ON_<n>` behind its
name it holds on node n alone and goes before the one without. A name that is
not in the table is an error: a misspelt lie must not pass for the truth.

`python3 -m neuron_standin.settings` prints the table."""

import json
import os
import sys
from pathlib import Path
from typing import NamedTuple


class Setting(NamedTuple):
    default: str
    what: str  # it does
    stands_for: str  # and where that was seen


TABLE = {
    # -- which age of the tools
    "STANDIN_CC_VERSION": Setting(
        "", "version of neuronx-cc; it decides the cache's folder, its layout, the form of the flags "
        "hash, the prefix of lines and the exit code (default: what is installed, else 2.25.3371.0+f524f7f8)",
        "layouts: below 2.13 model.hlo.pb and the command as a Python list; below 2.15 compile_flags.txt "
        "and no model.done; from 2.16 the target is hashed too"),
    "STANDIN_PREFIX": Setting(
        "", "2022, 2023 or 2026: how log lines begin (default: by the version)",
        "the three generations of prefixes; 2026 has no tag"),
    "STANDIN_FLAGS_FORM": Setting(
        "", "A, B or C: what the flags hash is made of (default: by the version)",
        "aws-neuron-sdk issue 1023: form A with compiler 2.15.141"),
    "STANDIN_NO_DONE": Setting(
        "", "1: no model.done although the version writes it", "published caches without markers"),
    "STANDIN_DEFAULT_CACHE": Setting(
        "/var/tmp/neuron-compile-cache", "the cache where nothing names one; an installation has its own",
        "the documented default"),
    "STANDIN_TMP": Setting("/tmp", "where folders of work go; an installation has its own", "/tmp/$USER"),
    "STANDIN_CACHE_KEYS": Setting("", "none: a cache at s3:// finds no keys", "a client that asks no container service"),
    "STANDIN_LOCK_SUFFIX": Setting(".lock", "how the name of a lock ends", "nobody tells it of those at s3://"),
    # -- time and size
    "STANDIN_COMPILE_SECONDS": Setting("0.02", "how long a compilation takes", "minutes to hours"),
    "STANDIN_STEP_SECONDS": Setting("0", "how long a training step takes", ""),
    "STANDIN_NEFF_BYTES": Setting("20000", "size of a compiled graph", ""),
    "STANDIN_MINUTE": Setting(
        "60", "seconds that a waiter for a lock takes for a minute", "it prints about once a minute, for ever"),
    # -- what the log looks like
    "STANDIN_LINE_PREFIX": Setting(
        "", "text in front of every line; {rank}, {node} and {pid} are filled in",
        "launchers' own prefixes: mpirun's [1,0]<stdout>:, srun --label's 0:, captures with INFO:"),
    "STANDIN_TORN_LINES": Setting(
        "", "1: every line goes out in two pieces, so that lines of ranks cut each other",
        "32 ranks that share one pipe"),
    "STANDIN_BAD_BYTES": Setting(
        "", "1: the script prints bytes that are no UTF-8 after its first graph", "aws-neuron-sdk issue 886"),
    "STANDIN_STRICT_UTF8": Setting(
        "", "1: the front-end loses the graphs that were named after such bytes",
        "aws-neuron-sdk issue 886, before Neuron 2.19"),
    "STANDIN_OTHER_WORDS": Setting("", "1: compilations and their summary are told in other words", "a version that is not known"),
    # -- what the script does
    "STANDIN_EXTRA_GRAPHS": Setting(
        "0", "so many more graphs, extra_0 and so on", "models with many graphs"),
    "STANDIN_CRASH": Setting(
        "", "extract:N or train:N: the script raises an error before step N of such a run",
        "metrics code that cannot bear the zeros of a trial run; user errors"),
    "STANDIN_CRASH_TEXT": Setting(
        "", "what it prints then, before it exits 1 without a traceback", "messages of the Neuron runtime"),
    # -- how compilations end; GRAPHS is names of functions with commas, or *
    "STANDIN_FAIL_GRAPHS": Setting(
        "", "GRAPHS: the compiler exits 70 with an error code", "exit status 70, codes NCC_E…"),
    "STANDIN_FAIL_TEXT": Setting(
        "[NCC_EVRF001] An unsupported operator was used - stand-in: this graph was told to fail",
        "what it says then", "compiler error codes of the SDK"),
    "STANDIN_FAIL_TRIES": Setting(
        "", "N: only the first N tries of a graph fail", "NEURON_PARALLEL_COMPILE_MAX_RETRIES"),
    "STANDIN_FAIL_UNTIL": Setting(
        "", "PATH: they fail until this file is there", "what was fixed since, with the failure still cached"),
    "STANDIN_FAILED_NEFF_BYTES": Setting(
        "", "N: a failure leaves a model.neff of N bytes beside model.log",
        "an entry of compiler 2.12.54 with a model.neff of 5 bytes"),
    "STANDIN_KILL_GRAPHS": Setting(
        "", "GRAPHS: the compiler is killed: Received error code: -9", "out of memory on the host"),
    "STANDIN_OOM_ABOVE": Setting(
        "", "N: so are all when the front-end has more than N workers", "the cure: a lower --num_parallel"),
    "STANDIN_MEMORY_GIB": Setting(
        "", "memory of the host, of which 64 GiB go to one worker (default: what this machine has)",
        "8 workers on trn1.32xlarge"),
    "STANDIN_FULL_DISK": Setting(
        "", "GRAPHS: storing model.neff ends with ENOSPC in the middle", "a full disk"),
    "STANDIN_SOFT_FAIL": Setting(
        "", "GRAPHS: reported as failed after success, with a good model.neff",
        "aws-neuron-sdk issue 1299, open with SDK 2.30"),
    "STANDIN_DEAD_WORKER": Setting(
        "", "pool or file: the first worker dies at its first graph; said at INFO, not counted, exit 0",
        "BrokenProcessPool; FileNotFoundError, aws-neuron-sdk issue 1097"),
    "STANDIN_EXIT": Setting(
        "", "count: failed graphs mod 256; zero: always 0 (default: by the version, count from 2.18); "
        "a number: this whatever happened",
        "0 with failed graphs before Neuron 2.23; 256 failures look like 0"),
    # -- devices and collectives
    "STANDIN_INSTANCE": Setting("trn1.2xlarge", "instance type whose devices neuron-ls shows", "instance catalogue"),
    "STANDIN_MISSING_DEVICES": Setting("0", "so many of them are missing", ""),
    "STANDIN_FOREIGN_PROCESS": Setting(
        "", "DEVICE:PID:COMMAND: somebody uses a device, and the script finds no free core", "the trial cannot start: cores are taken"),
    "STANDIN_OLD_LS": Setting("", "1: without the newer fields", "older neuron-ls"),
    "STANDIN_LS_FAILS": Setting("", "text: neuron-ls says only this and exits 1", "no driver"),
    "STANDIN_LS_SAYS": Setting("", "text: neuron-ls -j shows only this", "a shape that is not known yet"),
    "STANDIN_NCCOM_BUSBW": Setting("40.0", "bus bandwidth in GiB/s", "figures of the nccom-test page"),
    "STANDIN_NCCOM_FAILS": Setting(
        "", "driver, bench or check: how nccom-test fails", "its failure forms"),
    "STANDIN_NCCOM_EXIT": Setting(
        "", "exit status whatever happened (default: 0, and 1 where it fails)", "not documented"),
    "STANDIN_OLD_NCCOM": Setting(
        "", "1: its table has time(us), and it knows no --check, no report and no --non-interactive", "older nccom-test"),
    "STANDIN_TORCH": Setting(
        "", "broken or killed: it cannot be imported, or its process is killed where it computes",
        "torch and libneuronxla of versions that do not fit; a kernel that is short of memory"),
    "STANDIN_TORCH_WRONG_PRODUCT": Setting("0", "so much is added to one element of each product", "a broken core"),
    "STANDIN_TORCH_WRONG_SUM": Setting("0", "so much is added to what this node gives to an all-reduce", "a broken node"),
    "STANDIN_TORCH_WRONG_AMONG": Setting("0", "the same where it is not the only one in it", "a node's broken network"),
    "STANDIN_TORCH_SECONDS": Setting("0", "how long each all-reduce takes on this node", "a hang between nodes"),
    "STANDIN_JAX": Setting(
        "", "cpu, raises or killed: it computes on the CPU, all cores but the first raise an error, or its process is "
        "ended by a signal", "a plugin that does not begin; errors of the Neuron runtime"),
    "STANDIN_NCCOM_SECONDS": Setting("0", "how long it takes", "a hang in collectives"),
    # -- GPUs, where with_gpus() put their tools; the three of NCCOM hold for the programs of nccl-tests too
    "STANDIN_GPU_DRIVER": Setting("", "470, 535 or 590: the generation of nvidia-smi's forms (default: 590)", "drivers"),
    "STANDIN_GPU_SAYS": Setting(
        "", "NAME: UNCORRECTED, RETIRED, PENDING, FAILED: name and cells of each GPU", "recorded outputs"),
    "STANDIN_GPUS": Setting("8", "how many GPUs the machine has", "p4d.24xlarge"),
    "STANDIN_GPU_MISSING": Setting("0", "so many of them are missing", "a GPU that fell off the bus"),
    "STANDIN_GPU_FOREIGN": Setting("", "GPU:PID:NAME: somebody uses one", "a process that was left behind"),
    "STANDIN_GPU_UNCORRECTED": Setting("", "GPU:COUNT: its uncorrected errors", "a double-bit ECC error"),
    "STANDIN_GPU_PENDING": Setting("", "GPU: a page or row of it waits to be taken out of use", "XID 63"),
    "STANDIN_GPU_FAILED_ROW": Setting("", "GPU: a row of it could not be remapped", "XID 64"),
    "STANDIN_GPU_BROKEN": Setting("", "GPU:TEXT: its cells", "[GPU is lost], [GPU requires reset]"),
    "STANDIN_SMI_FAILS": Setting("", "text: nvidia-smi says only this and exits 15", "a GPU that is lost"),
    "STANDIN_SMI_MORE": Setting("", "1: and the rows of the others behind it", "driver 610"),
    "STANDIN_SMI_REMARK": Setting("", "a line behind the rows", "WARNING: infoROM is corrupted"),
    "STANDIN_GPU_INFOROM": Setting("", "1: nvidia-smi warns behind the rows and exits 14", "manual page of nvidia-smi"),
    "STANDIN_SMI_CRLF": Setting("", "1: lines end as in a terminal", "docker run -t"),
    "STANDIN_SMI_SECONDS": Setting("0", "how long nvidia-smi takes", "a hang in the driver"),
    "STANDIN_XID": Setting("", "XID in the kernel's log, or denied: nobody may read it", "NVRM: Xid (PCI…): N"),
    "STANDIN_PROVIDER": Setting("efa", "what libfabric chooses, as NCCL tells with NCCL_DEBUG=INFO", "aws-ofi-nccl"),
    "STANDIN_TORCH_CUDA": Setting("", "1: torch is one for CUDA", "the GPU images of AWS"),
}


class Unknown(SystemExit):
    """A setting that there is not, or a value that it cannot have."""


def node_rank() -> int:
    """Which node this is, as stoker, torchrun or Slurm told it."""
    for name in ("STOKER_NODE_RANK", "GROUP_RANK", "PET_NODE_RANK", "SLURM_NODEID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def from_installation() -> dict:
    path = Path(sys.prefix) / "standin.json"
    return json.loads(path.read_text()) if path.exists() else {}


def load() -> dict:
    given = {name: value for name, value in os.environ.items() if name.startswith("STANDIN_")}
    given = {**from_installation(), **given}
    for name in given:
        base, _, node = name.partition("_ON_")
        if base not in TABLE or (node and not node.isdigit()):
            raise Unknown(f"stand-in: there is no setting {name}")
    return given


GIVEN = load()


def get(name: str) -> str:
    return GIVEN.get(f"{name}_ON_{node_rank()}", GIVEN.get(name, TABLE[name].default))


def flag(name: str) -> bool:
    value = get(name)
    if value not in ("", "0", "1"):
        raise Unknown(f"stand-in: {name} is 1 or not set")
    return value == "1"


def number(name: str) -> float:
    try:
        return float(get(name))
    except ValueError:
        raise Unknown(f"stand-in: {name} is not a number") from None


def choice(name: str, *values: str) -> str:
    value = get(name)
    if value not in ("", *values):
        raise Unknown(f"stand-in: {name} is one of {', '.join(values)}")
    return value


def names(name: str, one: str) -> bool:
    """Whether a list of names, or *, holds this one."""
    return get(name) == "*" or one in get(name).split(",")


def print_table() -> None:
    for name, setting in TABLE.items():
        print(f"{name}\n    {setting.what}")
        if setting.default:
            print(f"    default: {setting.default}")
        if setting.stands_for:
            print(f"    stands for: {setting.stands_for}")


if __name__ == "__main__":
    print_table()
