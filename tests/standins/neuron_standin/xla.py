"""A tracer in the manner of torch-xla, small enough to read: it runs a function
over tensors, records which operations on which shapes it consists of, and names
the graph by the hash of that record. So a comment changes nothing, the value of
a tensor changes nothing, and a shape, a constant or an operation does.

In extraction mode results are zeros, as on the real device."""

import hashlib
import json
import os
import resource
from pathlib import Path

from neuron_standin import files, log, settings
from neuron_standin.cache import Cache
from neuron_standin.wrapper import CompileFailed, Wrapper

# What of the environment the framework reads while it traces.
TRACED_ENV = ("XLA_USE_BF16", "XLA_DOWNCAST_BF16", "NEURON_FUSE_SOFTMAX", "NEURON_CUSTOM_SILU",
              "XLA_DISABLE_FUNCTIONALIZATION", "XLA_ENABLE_PARAM_ALIASING", "BUCKET_CAP_MB",
              "ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB", "NEURON_TRANSFER_WITH_STATIC_RING_OPS",
              "NEURON_TRANSFER_ALL_PARAMETERS_WITH_STATIC_RING")


class Tensor:
    """Rows of numbers and what is known about them while a function is traced."""

    def __init__(self, rows: list, graph: "Graph | None" = None, node: int = -1):
        self.rows, self.graph, self.node = rows, graph, node

    @property
    def shape(self) -> tuple:
        return (len(self.rows), len(self.rows[0]))

    def flat(self) -> list:
        return [value for row in self.rows for value in row]

    def item(self) -> float:
        return self.rows[0][0]

    def _binary(self, name: str, other: object, function: object) -> "Tensor":
        if not isinstance(other, Tensor):
            return self.graph.add(f"{name} {other!r}", [self],
                                  [[function(a, other) for a in row] for row in self.rows])
        if other.shape == (1, 1):
            rows = [[function(a, other.item()) for a in row] for row in self.rows]
        else:
            rows = [[function(a, b) for a, b in zip(one, two)] for one, two in zip(self.rows, other.rows)]
        return self.graph.add(name, [self, other], rows)

    def __add__(self, other: object) -> "Tensor":
        return self._binary("add", other, lambda a, b: a + b)

    def __sub__(self, other: object) -> "Tensor":
        return self._binary("subtract", other, lambda a, b: a - b)

    def __mul__(self, other: object) -> "Tensor":
        return self._binary("multiply", other, lambda a, b: a * b)

    def __matmul__(self, other: "Tensor") -> "Tensor":
        columns = list(zip(*other.rows))
        return self.graph.add("dot", [self, other], [
            [sum(a * b for a, b in zip(row, column)) for column in columns] for row in self.rows])

    def transpose(self) -> "Tensor":
        return self.graph.add("transpose", [self], [list(row) for row in zip(*self.rows)])

    def mean(self) -> "Tensor":
        return self.graph.add("reduce-mean", [self], [[sum(self.flat()) / len(self.flat())]])

    def all_reduce(self) -> "Tensor":
        """Over all ranks, which compute the same here."""
        return self.graph.add(f"all-reduce {world_size()}", [self], [list(row) for row in self.rows])


class Graph:
    """One recording."""

    def __init__(self, dtype: str):
        self.record = [dtype, {name: os.environ[name] for name in TRACED_ENV if name in os.environ}]

    def add(self, operation: str, inputs: list, rows: list) -> Tensor:
        result = Tensor(rows, self, len(self.record))
        self.record.append([operation, [one.node for one in inputs], result.shape])
        return result

    def text(self) -> str:
        return json.dumps(self.record, sort_keys=True)

    def hash(self) -> str:
        """Decimal, up to 20 digits, as torch-xla's."""
        return str(int.from_bytes(hashlib.sha256(self.text().encode()).digest()[:8], "big"))


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def extracting() -> bool:
    return os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY") == "1"


def abort() -> None:
    """As a failed check in C++ ends the process, without leaving its memory behind."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.abort()


class Device:
    """Runs functions; each graph goes through the cache once in a process."""

    def __init__(self, dtype: str = "fp32"):
        self.dtype, self.loaded = dtype, set()
        self.wrapper, self.cache = Wrapper(), None
        if settings.get("STANDIN_FOREIGN_PROCESS"):
            log.say("ERROR  NRT:nrt_allocate_neuron_cores  NeuronCore(s) not available - Requested:1 Available:0")
            raise SystemExit(1)

    def run(self, function: object, *arguments: Tensor) -> list[Tensor]:
        graph = Graph(self.dtype)
        results = function(*[graph.add("parameter", [], one.rows) for one in arguments])
        if graph.hash() not in self.loaded:
            self.load(getattr(function, "__name__", "graph"), graph)
            self.loaded.add(graph.hash())
        zero = extracting()
        return [Tensor([[0.0] * len(row) if zero else row for row in one.rows]) for one in results]

    def load(self, name: str, graph: Graph) -> None:
        if self.cache is None:
            self.cache = Cache(self.wrapper.flags)
            path = os.environ.get("NEURON_PARALLEL_COMPILE_CACHE_PATH_LOG")
            if path:
                Path(path).write_text(self.cache.url)
        content = files.graph_input(name, graph.text())
        try:
            self.wrapper.obtain(self.cache, graph.hash(), content)
        except CompileFailed:
            log.say("F ./torch_xla/csrc/runtime/debug_macros.h:20] Non-OK-status: status.status() status: INTERNAL: "
                    "RunNeuronCCImpl: error condition error != 0: <class 'subprocess.CalledProcessError'>: "
                    "Command '' died with <Signals.SIGHUP: 1>.")
            abort()
        if not self.loaded and settings.flag("STANDIN_BAD_BYTES"):
            log.write(b"tokens: \xff\xfe \xc3\x28 \x80\n")
