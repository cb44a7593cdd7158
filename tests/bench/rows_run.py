"""Rows of a run: processes, events, resuming, logs, schedules, memory."""

import json
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from harness import BUILD, PEERS, ROOT, Bench, Goal, Row, Wrong, expect, tool
from rows_spec import project
from rows_source import work_tree

sys.path.insert(0, str(ROOT / "tests/support"))
import many_runs

SPAWNS = 1000
EVENTS = 1500
JOURNAL_EVENTS = 100_000
LEFT = 999
LOG_LINES = 400_000
MANY_RUNS, LONG_EVENTS = 10_000, 1_000_000
STATS_RUNS = 5000
SCHEDULES = 300

# ---- starting processes ----


def nothing(bench: Bench) -> SimpleNamespace:
    return SimpleNamespace()


def spawn(which: str, mebibytes: int):
    def measure(bench, case):
        _, found = bench.json(bench.program("bench_spawn"), which, SPAWNS, mebibytes)
        return SPAWNS / found["seconds"], found
    return measure


def check_spawn(bench, case, own, peer):
    expect((own["ended_well"], peer["ended_well"]), (SPAWNS, SPAWNS), "children that ended well")


# ---- from phase 1 to phase 2 ----


def two_phases(bench: Bench) -> SimpleNamespace:
    folder = bench.new("phases")
    entry = bytes.fromhex((ROOT / "tests/unit/cache/entry_zlib.hex").read_text())
    (folder / "entry").write_bytes(entry)
    return SimpleNamespace(folder=folder, stamps=folder / "stamps", entry=folder / "entry", number=0)


def gap(case, first: str, second: str) -> float:
    """Seconds from the end of the first phase to the beginning of the second."""
    rows = [line.split() for line in case.stamps.read_text().splitlines()]
    expect([(what, steps) for what, steps, _ in rows],
           [("began", first), ("ended", first), ("began", second), ("ended", second)], "what ran")
    case.stamps.unlink()
    return (int(rows[2][2]) - int(rows[1][2])) / 1e9


def write_job(bench, case) -> Path:
    """Each run a cache and a source of its own: nothing is warm."""
    case.number += 1
    source = case.folder / f"job-{case.number}"
    source.mkdir()
    (source / "stoker.yaml").write_text(json.dumps({
        "version": 1, "name": f"bench-{case.number}",
        "command": [bench.program("bench_job"), str(case.stamps), str(case.entry)],
        "hyperparameters": {"max_steps": 2},
        "compile": {"kind": "jax", "cache_url": str(source / "cache"), "max_steps": 1},
        "limits": {"stall": "none"},
        "metrics": [{"name": "step", "regex": "^step: ([0-9]+)"}],
    }))
    return source / "stoker.yaml"


def run_both(bench, case):
    spec = write_job(bench, case)
    _, result = bench.process(bench.stoker, "--json", "run", spec)
    return gap(case, "1", "2"), [json.loads(line) for line in result.text.splitlines()]


def run_in_shell(bench, case):
    job = [bench.program("bench_job"), str(case.stamps), str(case.entry), "--max_steps"]
    _, result = bench.process("/bin/sh", "-c", '"$@" 1 && "$@" 2', "sh", *job)
    return gap(case, "1", "2"), result


def run_bare(bench, case):
    _, result = bench.process(bench.program("bench_job"), "--bare", case.stamps, case.folder / "journal",
                              bench.program("bench_job"))
    return gap(case, "1", "2"), result


def check_phases(bench, case, own, peer):
    names = [event["event"] for event in own]
    verified = [event for event in own if event["event"] == "cache.verified"]
    expect([(event["graphs"], event["done"], event["missing"]) for event in verified], [(8, 8, 0)], "the proof")
    expect(names[-1], "run.ended", "the last event")
    expect(names.index("cache.verified") < names.index("attempt.submitted", names.index("cache.verified")), True,
           "that phase 2 follows the proof")


# ---- events ----


def append(which: str):
    def measure(bench, case):
        folder = bench.new(f"journal-{which}")
        _, found = bench.json(bench.program("bench_journal"), which, folder, EVENTS)
        return EVENTS / found["seconds"], folder
    return measure


def append_unchained(bench, case):
    folder = bench.new("journal-unchained")
    _, found = bench.json(bench.program("bench_journal_unchained"), "own", folder, EVENTS)
    return EVENTS / found["seconds"], folder


def check_sums(bench, case, own, peer):
    """Each event has a sum with us, and none in the peer's."""
    check_events(bench, case, own, peer)
    for folder, count in ((own, EVENTS), (peer, 0)):
        with sqlite3.connect(folder / "journal.db") as db:
            found, = db.execute("SELECT count(*) FROM event WHERE json_extract(body, '$.sum') IS NOT NULL").fetchone()
            expect(found, count, "events with a sum")


def append_without_sqlite(bench, case):
    """One line and fdatasync: what the disk can do."""
    folder = bench.new("lines")
    _, result = bench.process("/bin/dd", "if=/dev/zero", f"of={folder}/lines", "bs=256", "count=400", "oflag=dsync")
    seconds = float(re.search(r"([0-9.e-]+) s,", result.err)[1])
    return 400 / seconds, folder


def check_events(bench, case, own, peer):
    for folder in (own, peer):
        with sqlite3.connect(folder / "journal.db") as db:
            rows = db.execute("SELECT count(*), min(seq), max(seq), sum(length(body)) FROM event").fetchone()
            expect(rows[:3], (EVENTS, 1, EVENTS), "the journal")
            expect(db.execute("PRAGMA integrity_check").fetchone()[0], "ok", "the database")


def check_durable(bench, case):
    """Each event is on the disk before the next begins, with us as with the peer."""
    for which in ("own", "bare"):
        _, result = bench.process(tool("strace"), "-f", "-c", "-e", "trace=fdatasync,fsync",
                                  bench.program("bench_journal"), which, bench.new(f"traced-{which}"), 50)
        calls = sum(int(line.split()[3]) for line in result.err.splitlines() if line.rstrip().endswith("sync"))
        if calls < 50:
            raise Wrong(f"{which}: {calls} calls make 50 events durable")


# ---- marking ----


def saved_checkpoint(bench: Bench) -> SimpleNamespace:
    """1 GiB in eight files."""
    folder = bench.new("saved")
    block = random.Random(7).randbytes(1 << 20)
    for number in range(8):
        with open(folder / f"part-{number}.bin", "wb") as file:
            for _ in range(128):
                file.write(block)
    return SimpleNamespace(saved=folder)


def mark_copy(how: str):
    """A script saves the checkpoint, and then it is marked, or just synced."""
    def measure(bench, case):
        root = bench.new(f"root-{how}")
        copy = root / "checkpoint-10"
        saving, _ = bench.process(tool("cp"), "-r", case.saved, copy)
        if how == "own":
            rest, _ = bench.process(bench.program("bench_mark"), copy)
        else:
            rest, _ = bench.process(tool("sync"), *sorted(copy.iterdir()), copy, root)
        marks = [path.name for path in root.rglob("*.stoker.json")]
        shutil.rmtree(root)
        return saving + rest, marks
    return measure


def check_mark(bench, case, own, peer):
    expect((len(own), len(peer)), (1, 0), "marks")


# ---- resuming ----


def progress_rows(row: dict, count: int, first: int) -> list:
    """That a training says how far it is, so many times."""
    template = {"v": 1, "run": "longrun", "seq": 0, "at": row["at"], "event": "train.progress", "attempt": 1,
                "step": 0, "since": row.get("since", row.get("started")), "of": 1000000, "rate": 12.5, "eta": 4711.0}
    return [dict(template, step=step, metrics={"loss": 0.25, "accuracy": 0.975, "step": step})
            for step in range(first, first + count)]


def write_events(state: Path, rows: list) -> None:
    with sqlite3.connect(state / "journal.db") as db:
        db.execute("DELETE FROM event")
        for seq, row in enumerate(rows, 1):
            row["seq"] = seq
        db.executemany("INSERT INTO event VALUES('longrun', ?, ?)",
                       ((row["seq"], json.dumps(row, separators=(",", ":"))) for row in rows))


def take_up(bench: Bench, state: Path):
    """Seconds until the new driver has journalled that it drives; and the state in the end."""
    argv = [bench.stoker, "--state", state, "--json", "resume", "longrun"]
    begin = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        first = process.stdout.readline()
        seconds = time.perf_counter() - begin
        process.communicate()
    event = json.loads(first)
    expect((process.returncode, event["event"], event["seq"]), (0, "driver.took_over", JOURNAL_EVENTS + 1),
           "the driver that took the run up")
    _, status = bench.json(bench.stoker, "--state", state, "--json", "status", "longrun")
    expect((status["state"], status["cache"]["done"]), ("succeeded", 8), "the state in the end")
    return seconds, status


def long_journal(bench: Bench) -> SimpleNamespace:
    """A real run whose driver died, and whose training said 100,000 times how far it is.
    Its driver has kept what the events came to up to the last but 999: the most that
    are left to be read."""
    case, state = bench.once(two_phases), bench.new("state")
    spec = write_job(bench, case)
    bench.process(bench.stoker, "--state", state, "run", spec, "--id", "longrun")
    case.stamps.unlink()
    with sqlite3.connect(state / "journal.db") as db:
        rows = [json.loads(body) for body, in db.execute("SELECT body FROM event ORDER BY seq")]
    started = max(i for i, row in enumerate(rows) if row["event"] == "attempt.started") + 1
    rows = rows[:started]
    rows += progress_rows(rows[-1], JOURNAL_EVENTS - started - LEFT, 1)
    write_events(state, rows)
    before = bench.scratch / "state-before"
    shutil.copytree(state, before)
    bench.process(bench.stoker, "--state", before, "resume", "longrun")  # keeps what it read
    rows += progress_rows(rows[-1], LEFT, JOURNAL_EVENTS * 2 - LEFT + 1)
    write_events(state, rows)
    plain = bench.scratch / "state-plain"
    shutil.copytree(state, plain)
    with sqlite3.connect(state / "journal.db") as db:
        db.execute("ATTACH ? AS before", (str(before / "journal.db"),))
        db.execute("CREATE TABLE kept AS SELECT * FROM before.kept")
        expect(db.execute("SELECT seq FROM kept").fetchall(), [(JOURNAL_EVENTS - LEFT,)], "what is kept")
    return SimpleNamespace(state=state, plain=plain, number=0)


def resume(bench, case):
    state = bench.scratch / f"resumed-{case.number}"
    case.number += 1
    shutil.copytree(case.state, state)
    found = take_up(bench, state)
    shutil.rmtree(state)
    return found


def scan(bench, case):
    return bench.json(bench.program("bench_journal"), "scan", case.state, "longrun")


def check_resume(bench, case, own, peer):
    expect(peer["rows"], JOURNAL_EVENTS, "rows of the scan")


def check_all_read(bench, case):
    """With nothing kept all events are read, and the state is the same."""
    _, quick = resume(bench, case)
    seconds, plain = take_up(bench, case.plain)
    for status in (quick, plain):
        for name in ("ended", "driver", "ledger", "attempts", "progress"):
            status.pop(name, None)
    expect(quick, plain, "the state from what was kept")
    print(f"resume: with nothing kept {seconds:.2f} s", file=sys.stderr)


# ---- many runs, and a long one ----


def many(bench: Bench) -> SimpleNamespace:
    """10,000 runs that have ended, with their summaries."""
    state = bench.new("many")
    many_runs.make(bench.stoker, state, MANY_RUNS)
    return SimpleNamespace(state=state)


def read_rows(sql: str):
    """The program sqlite3 reads and prints the same rows."""
    def measure(bench, case):
        wall, result = bench.process(tool("sqlite3"), "-readonly", case.state / "journal.db", sql)
        return wall, result.text.splitlines()
    return measure


def list_runs(bench, case):
    wall, result = bench.process(bench.stoker, "--state", case.state, "list")
    return wall, result.text.splitlines()


def check_list(bench, case, own, peer):
    expect(sorted(line.split()[0] for line in own[1:]), [f"run-{number:05}" for number in range(MANY_RUNS)], "the runs")
    expect(sum(" succeeded " in line for line in own), MANY_RUNS, "those that succeeded")
    expect(len(peer), MANY_RUNS, "rows of sqlite3")


def check_list_read(bench, case):
    """What the summaries say is what the events say."""
    _, brief = bench.process(bench.stoker, "--state", case.state, "--json", "list", "--limit", 500)
    _, whole = bench.process(bench.stoker, "--state", case.state, "--json", "-v", "list", "--limit", 500)
    expect(brief.text, whole.text, "the list from all events")


def some(bench: Bench) -> SimpleNamespace:
    """5,000 runs that have ended, with their summaries."""
    state = bench.new("some")
    many_runs.make(bench.stoker, state, STATS_RUNS)
    return SimpleNamespace(state=state)


def count_runs(bench, case):
    return bench.json(bench.stoker, "--state", case.state, "--json", "stats", "--since", "3650d")


def check_stats(bench, case, own, peer):
    expect((own["runs"], own["succeeded"], own["success"]["of"]), (STATS_RUNS,) * 3, "the runs that succeeded")
    expect(len(peer), STATS_RUNS, "rows of sqlite3")


def check_stats_read(bench, case):
    """What the summaries say is what the events say."""
    _, brief = bench.json(bench.stoker, "--state", case.state, "--json", "stats")
    with sqlite3.connect(case.state / "journal.db") as db:
        db.execute("DELETE FROM summary")
    _, whole = bench.json(bench.stoker, "--state", case.state, "--json", "stats")
    expect(brief, whole, "the statistics from all events")


def million(bench: Bench) -> SimpleNamespace:
    """A run that ended after 1,000,000 events, with its summary."""
    state = bench.new("million")
    rows = many_runs.begin(bench.stoker, state, "long")
    at = next(i for i, row in enumerate(rows) if row["event"] == "train.progress")
    steps = [dict(rows[at], step=step, metrics={"loss": 0.25, "step": step})
             for step in range(2, LONG_EVENTS - len(rows) + 2)]
    with sqlite3.connect(state / "journal.db") as db:
        db.execute("DELETE FROM event")
        db.execute("DELETE FROM summary")
        many_runs.write_rows(db, "long", rows[:at + 1] + steps + rows[at + 1:])
    bench.process(bench.stoker, "--state", state, "resume", "--all")
    return SimpleNamespace(state=state, step=steps[-1]["step"])


def show_status(bench, case):
    return bench.json(bench.stoker, "--state", case.state, "--json", "status", "long")


def check_status(bench, case, own, peer):
    expect((own["state"], own["progress"]["step"]), ("succeeded", case.step), "the state")
    expect(len(peer), LONG_EVENTS, "rows of sqlite3")


# ---- logs ----

METRICS = [
    ("loss", r"loss: ([0-9.eE+-]+)"), ("step", r"^step: ([0-9]+)"), ("accuracy", r"accuracy: ([0-9.eE+-]+)"),
    ("rate", r"samples/s: ([0-9.]+)"), ("lr", r"\blr=([0-9.eE+-]+)"), ("norm", r"grad_norm[:=] ?([0-9.]+)"),
    ("memory", r"mem(?:ory)?[:=] ?([0-9.]+) ?GiB"), ("epoch", r"\[epoch ([0-9]+)\]"),
]
CHATTER = [
    "2026-11-22 03:14:15,926 INFO dataloader worker 7 fetched shard 0042 in 13 ms, queue holds 96 of 128 batches",
    "WARNING:jax._src.dispatch:135: tracing of train_step took a while, inputs are of shapes (32, 512) and (32,)",
    "  File \"/opt/train/loop.py\", line 1187, in run_epoch: token buffer refilled, 3.2 MB/s from local disk",
    "checkpoint manager: nothing to do, the next save is due in 400 seconds; 12 are kept, 3 are pinned",
    "NCCL INFO Channel 03/08 : 0 1 2 3 4 5 6 7, ring order as detected by topology file, 25 GB/s a link",
]


def long_log(bench: Bench) -> SimpleNamespace:
    """400,000 lines, about 49 MB, of which one in eight holds numbers."""
    workspace = bench.new("logs")
    path = workspace / "runs/bench/train-1/node-0/log"
    path.parent.mkdir(parents=True)
    chance = random.Random(7)
    case = SimpleNamespace(workspace=workspace, log=path, metrics=workspace / "metrics.json", begin=[])
    case.metrics.write_text(json.dumps([{"name": name, "regex": regex} for name, regex in METRICS]))
    with open(path, "w", encoding="utf-8") as log:
        for number in range(LOG_LINES):
            if number % 8 == 7:
                log.write(f"step: {number} loss: {chance.random():.6f} accuracy: {chance.random():.4f} "
                          f"samples/s: {chance.random() * 1e3:.1f} lr={chance.random():.3e} "
                          f"grad_norm: {chance.random():.4f}\n" if number % 16 == 7 else
                          f"[epoch {number // 5000}] memory: {chance.random() * 32:.2f} GiB in use\n")
            else:
                log.write(f"{CHATTER[chance.randrange(len(CHATTER))]} #{number}\n")
    return case


def prepare_log(bench: Bench) -> SimpleNamespace:
    return bench.once(long_log)


def follow(bench, case):
    _, found = bench.json(bench.program("bench_log"), case.workspace, case.metrics, "jax")
    return LOG_LINES / found["seconds"], found


def follow_peer(bench, case):
    _, found = bench.json(sys.executable, PEERS / "follow.py", case.log, case.metrics)
    return LOG_LINES / found["seconds"], found


def count_lines(bench, case):
    wall, result = bench.process("/usr/bin/wc", "-l", case.log)
    return LOG_LINES / wall, result


def share(measure):
    """Of a core, in percent, at 100,000 lines a second."""
    def of_core(bench, case):
        _, found = measure(bench, case)
        return found["cpu"] * 1e5 / LOG_LINES * 100, found
    return of_core


def check_log(bench, case, own, peer):
    expect(own["lines"], LOG_LINES, "lines seen")
    expect({name: float(value) for name, value in own["last"].items()}, peer["last"], "the numbers of the newest step")
    expect(len(own["last"]), len(METRICS), "how many metrics were found")


def check_log_pieces(bench, case):
    """The numbers of the newest step are right wherever the log ends, not only at its end."""
    workspace = bench.new("pieces")
    piece = workspace / "runs/bench/train-1/node-0/log"
    piece.parent.mkdir(parents=True)
    lines = case.log.read_text().splitlines(keepends=True)
    for end in random.Random(11).sample(range(8, 20000), 12):
        piece.write_text("".join(lines[:end]))
        _, own = bench.json(bench.program("bench_log"), workspace, case.metrics, "jax")
        _, peer = bench.json(sys.executable, PEERS / "follow.py", piece, case.metrics)
        expect({name: float(value) for name, value in own["last"].items()}, peer["last"], f"after {end} lines")


# ---- schedules ----


def simulate(bench, case):
    world = BUILD / "tests/world/world_fast"
    _, result = bench.process(world, "--schedules", SCHEDULES, "--seed", 1, "--jobs", 1)
    return float(re.search(r"([0-9.]+) schedules a second", result.err)[1]), result


def check_schedules(bench, case, own, peer):
    expect("violations 0" in own.text.splitlines(), True, "the rules")


# ---- memory ----


def memory_case(bench: Bench) -> SimpleNamespace:
    """A run whose source are the 5,000 files."""
    case, tree = bench.once(two_phases), bench.once(work_tree)
    return SimpleNamespace(phases=case, tree=tree, small=bench.once(project))


def peak_of_run(bench, case):
    spec = write_job(bench, case.phases)
    described = json.loads(spec.read_text())
    described["source"] = {"path": str(case.tree.folder)}
    spec.write_text(json.dumps(described))
    case.state = bench.new("state")
    peak = bench.peak(bench.stoker, "--state", case.state, "run", spec)
    case.phases.stamps.unlink()
    return peak, case.state


def peak_of_peer(bench, case):
    argv = [sys.executable, PEERS / "validate.py", case.small.spec, case.small.schema]
    return bench.peak(*argv), None


def peak_of_empty(bench, case):
    return bench.peak(bench.program("bench_empty")), None


def check_run(bench, case, own, peer):
    _, status = bench.json(bench.stoker, "--state", own, "--json", "status", "@last")
    expect((status["state"], status["cache"]["done"]), ("succeeded", 8), "the run")


RUN_ROWS = [
    Row("spawn", "start a process", "posix_spawn", "", Goal(0.6, at_least=True), "/s", nothing, spawn("own", 0),
        spawn("bare", 0), None, check_spawn),
    Row("spawn-512", "start a process, 512 MiB in use", "with none in use", "posix_spawn, 512 MiB",
        Goal(0.9, at_least=True), "/s", nothing, spawn("own", 512), spawn("own", 0), spawn("bare", 512), check_spawn),
    Row("handover", "end of phase 1 to exec of phase 2", "sh: a && b", "wait, fdatasync, spawn",
        Goal(0.010, of_ratio=False), "s", lambda bench: bench.once(two_phases), run_both, run_in_shell, run_bare,
        check_phases, pairs=21),
    Row("event", "one durable event", "bare SQLite", "dd oflag=dsync", Goal(0.75, at_least=True), "/s", nothing,
        append("own"), append("bare"), append_without_sqlite, check_events, last=check_durable),
    Row("event-sum", "one durable event with its sum", "without the sum", "", Goal(1 / 1.05, at_least=True), "/s",
        nothing, append("own"), append_unchained, None, check_sums, pairs=11),
    Row("mark", "save and mark 1 GiB", "cp and sync", "", Goal(1.1), "s", saved_checkpoint, mark_copy("own"),
        mark_copy("bare"), None, check_mark, pairs=5),
    Row("resume", "resume from 100,000 events", "bare SQLite scan", "", Goal(4.0), "s", long_journal, resume, scan,
        None, check_resume, last=check_all_read),
    Row("list", "list 10,000 runs", "sqlite3, their last events", "", Goal(0.2, of_ratio=False), "s",
        lambda bench: bench.once(many), list_runs,
        read_rows("SELECT body FROM event WHERE (run, seq) IN (SELECT run, max(seq) FROM event GROUP BY run)"), None,
        check_list, last=check_list_read),
    Row("stats", "statistics of 5,000 runs", "sqlite3, their summaries", "", Goal(1.0, of_ratio=False), "s", some,
        count_runs, read_rows("SELECT replace(head, char(10), ' ') FROM summary"), None, check_stats, last=check_stats_read),
    Row("status", "status of a run of 1,000,000 events", "sqlite3, the same rows", "", Goal(4.0), "s", million,
        show_status, read_rows("SELECT body FROM event WHERE run='long' ORDER BY seq"), None, check_status, pairs=5),
    Row("log", "follow a log, 8 patterns (lines)", "Python's re", "wc -l", Goal(5.0, at_least=True), "/s", prepare_log,
        follow, follow_peer, count_lines, check_log, last=check_log_pieces, pairs=5),
    Row("log-core", "the same, of a core at 100,000 lines/s", "Python's re", "", Goal(8.0, of_ratio=False), "%",
        prepare_log, share(follow), share(follow_peer), None, check_log, pairs=5),
    Row("schedules", "schedules of the real driver and agent, a core", "no peer", "", Goal(20, True, of_ratio=False),
        "/s", nothing, simulate, None, None, check_schedules, pairs=3),
    Row("memory", "peak memory of run", "yaml+jsonschema", "an empty C program", Goal(32 * 2**20, of_ratio=False), "B",
        memory_case, peak_of_run, peak_of_peer, peak_of_empty, check_run, pairs=5),
]
