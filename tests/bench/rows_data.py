"""Rows of data: what a turn of a retraining costs beside the listing alone."""

import os
from types import SimpleNamespace

from harness import Bench, Goal, Row, expect

OBJECTS = 1_000_000
NEW = 1000


def million_objects(bench: Bench) -> SimpleNamespace:
    """A thousand folders of a thousand files, all given but the last thousand."""
    data, workspace = bench.new("data"), bench.new("work")
    name = "part-{:05}-of-01000.parquet".format
    for folder in range(OBJECTS // 1000):
        (data / f"day={folder:04}").mkdir()
        for number in range(1000):
            os.close(os.open(data / f"day={folder:04}" / name(number), os.O_CREAT | os.O_WRONLY, 0o600))
    _, first = bench.json(bench.program("bench_data"), "first", data, workspace)
    expect((first["listed"], first["new"]), (OBJECTS, OBJECTS), "the first turn")
    single = bench.new("single")
    (single / "one").touch()
    _, alone = bench.json(bench.program("bench_data"), "first", single, workspace)
    for number in range(NEW):
        (data / f"day={number:04}" / "part-late.parquet").touch()
    return SimpleNamespace(data=data, list=("list", data), join=("join", data, first["url"], first["digest"]),
                           single=("join", single, alone["url"], alone["digest"]))


def does(what):
    def measure(bench, case):
        _, found = bench.json(bench.program("bench_data"), *getattr(case, what))
        return found["wall"], found
    return measure


def check_join(bench, case, own, peer):
    expect((own["listed"], own["new"], peer["listed"]), (OBJECTS + NEW, NEW, OBJECTS + NEW), "objects listed and new")


def peak(bench, what):
    return bench.json(bench.program("bench_data"), *what)[1]["peak"]


def over_single(bench, case):
    """Bytes that the join takes more than that of a single object: by the program's own peak, because that of its
    process counts the interpreter that started it, which is larger."""
    return float(peak(bench, case.join) - peak(bench, case.single)), None


DATA_ROWS = [
    Row("data-join", "list 1,000,000 files and join them with a list", "the listing", "", Goal(1.3), "s",
        lambda bench: bench.once(million_objects), does("join"), does("list"), None, check_join, pairs=5),
    Row("data-memory", "memory of that join, more than with one file", "", "", Goal(float(32 << 20), of_ratio=False), "B",
        lambda bench: bench.once(million_objects), over_single, None, None, lambda *_: None, pairs=3),
]
