"""How rows of configs/live/rows.yaml are tried by jobs of AWS Batch: see lab.py and jobs.py. What several rows look at is
one job."""

import time

from jobs import BATCH_OVER, BatchJob
from lab import NotTried, shared, trial

LISTED = 5  # seconds in which stoker takes it for granted
RESERVE, LEAST_RESERVE = 0.07, 1024  # of a machine's memory; MiB
MORE_THAN_ANY = 2000  # vCPUs
LONG, TOO_LONG = 7000, 9000  # characters of overrides; ECS takes 8,192


# ---- two nodes: the second one ends with 42, the first one when it is told


class Pair:
    def __init__(self, lab):
        job = BatchJob(lab, "pair", "pair", nodes=2, kind=lab.queue.smallest, shm=96)
        self.other = job.when(BATCH_OVER, node=1)
        self.running, end = [], time.monotonic() + lab.watch
        while True:
            self.running.append(job.seen()["status"])
            if time.monotonic() > end or self.running[-1] != "RUNNING":
                break
            lab.sleep(min(5, lab.watch / 4))
        lab.put("pair/gate", b"0")
        self.whole = job.when_over()
        self.first = job.seen(node=0)
        said = [job.facts(row, count) for row, count in ((self.first, 1), (self.other, 2))]
        self.facts = [{key: value for each in rows for key, value in each.items()} for rows in said]
        if not all(self.facts):
            raise NotTried("the nodes have printed nothing that can be read")


pair = shared(Pair)


@trial("batch-environment", queue=True)
def batch_environment(lab):
    seen = [(each.get("index"), each.get("attempt"), each.get("given")) for each in pair(lab).facts]
    return seen == [("0", "1", lab.name), ("1", "1", lab.name)], "; ".join(
        f"index {index}, attempt {attempt}, a variable of the submission: {'there' if given else 'missing'}"
        for index, attempt, given in seen)


@trial("batch-shm", queue=True)
def batch_shm(lab):
    seen = [each.get("shm", 0) / (1 << 20) for each in pair(lab).facts]
    return seen == [96, 96], f"{seen[0]:g} and {seen[1]:g} MiB"


@trial("batch-main-node", queue=True)
def batch_main_node(lab):
    seen = pair(lab)
    words = f"behind the end of node 1 the job was {' '.join(dict.fromkeys(seen.running))}, and ended {seen.whole['status']}"
    return set(seen.running) == {"RUNNING"} and seen.whole["status"] == "SUCCEEDED", words


@trial("batch-node-jobs", queue=True)
def batch_node_jobs(lab):
    seen = pair(lab).other
    code = seen.get("container", {}).get("exitCode")
    return (seen["status"], code) == ("FAILED", 42) and bool(seen.get("statusReason")), \
        f"#1 is {seen['status']} with {code}, {seen.get('statusReason')}"


@trial("batch-node-address", queue=True)
def batch_node_address(lab):
    met = pair(lab).facts[1]
    if "met" not in met:
        raise NotTried("node 1 has not said whether it met node 0")
    return met["met"], "connected" if met["met"] else f"not connected: {met.get('why')}"


# ---- a job that ends by itself with 41


class Single:
    def __init__(self, lab):
        job = BatchJob(lab, "single", "ends", given={"CONFORM_CODE": "41"})
        self.tags, began = job.tags, time.monotonic()
        listing = {"jobQueue": lab.queue.name, "filters": [{"name": "JOB_NAME", "values": [job.name]}]}

        def listed():
            found = [row["jobId"] for row in job.batch.list_jobs(**listing)["jobSummaryList"]]
            return job.id in found or time.monotonic() > began + 2 * LISTED
        lab.until(listed, 6 * LISTED, "the list")
        self.seconds = time.monotonic() - began
        self.whole = job.when_over()
        self.lines = job.facts(self.whole)


single = shared(Single)


@trial("batch-listed", queue=True)
def batch_listed(lab):
    seconds = single(lab).seconds
    return seconds < LISTED, f"{seconds:.1f} s behind the submission"


@trial("batch-tags", queue=True)
def batch_tags(lab):
    seen = single(lab)
    found = seen.whole.get("tags", {})
    return all(found.get(name) == value for name, value in seen.tags.items()), f"{len(found)} tags: {', '.join(found)}"


@trial("batch-no-retry", queue=True)
def batch_no_retry(lab):
    seen = single(lab).whole
    return (seen["status"], len(seen["attempts"])) == ("FAILED", 1), f"{seen['status']}, {len(seen['attempts'])} attempts"


@trial("batch-stream", queue=True)
def batch_stream(lab):
    seen = single(lab)
    stream = seen.whole.get("container", {}).get("logStreamName")
    return bool(seen.lines), f"{stream or 'no stream'}: {'its line' if seen.lines else 'not its line'}"


# ---- jobs that are ended


class Held:
    def __init__(self, lab):
        def overrides(size):
            return {"containerOverrides": {"environment": [{"name": "CONFORM_LINK", "value": "x" * size}]}}

        job = BatchJob(lab, "held", "waits", **overrides(LONG))
        self.runs = job.when(("RUNNING", *BATCH_OVER))
        self.reason = ("conform ends this job for a reason of 200 characters; " * 4)[:200]
        job.end(self.reason)
        self.whole = job.when_over()
        longer = BatchJob(lab, "longer", "waits", **overrides(TOO_LONG))
        self.longer = longer.when(("RUNNING", *BATCH_OVER))
        if self.longer["status"] == "RUNNING":
            longer.end()


held = shared(Held)


@trial("batch-overrides", queue=True)
def batch_overrides(lab):
    seen = held(lab)
    reason = seen.longer.get("statusReason", "")
    return seen.runs["status"] == "RUNNING" and seen.longer["status"] == "FAILED" and "at most 8192" in reason, \
        f"{LONG} characters: {seen.runs['status']}; {TOO_LONG}: {seen.longer['status']}, {reason or 'without a reason'}"


@trial("batch-reason", queue=True)
def batch_reason(lab):
    seen = held(lab).whole
    return seen.get("statusReason") == held(lab).reason and bool(seen.get("isTerminated")), \
        f"{seen.get('statusReason')}; isTerminated: {seen.get('isTerminated')}"


class GoesOn:
    """Through SIGTERM, behind two TerminateJobs."""

    def __init__(self, lab):
        job = BatchJob(lab, "goes-on", "goes-on")
        job.facts(job.when(("RUNNING", *BATCH_OVER)))
        job.end("the first reason")
        job.end("the second reason")
        self.at_once = job.seen()
        self.whole = job.when_over()
        said = job.facts(self.whole, 3)
        asked = [each["asked"] for each in said if "asked" in each]
        self.seconds = max((each["now"] for each in said if "now" in each), default=0) - asked[0] if asked else None


goes_on = shared(GoesOn)


@trial("batch-two-reasons", queue=True)
def batch_two_reasons(lab):
    seen = goes_on(lab)
    told = [seen.at_once.get("statusReason"), seen.whole.get("statusReason")]
    return told == ["the second reason"] * 2, f"at once: {told[0] or 'none'}; at the end: {told[1] or 'none'}"


@trial("container-memory", queue=True)
def container_memory(lab):
    job = BatchJob(lab, "takes", "memory")
    said = job.facts(job.when_over())
    if not said:
        raise NotTried("it has printed nothing that can be read")
    before, ended, after = (said[0][name] for name in ("before", "ended", "after"))
    return ended == 9 and before is not None and after > before, \
        f"its child ended with {ended}; killed for want of memory: {before} before, {after} behind it"


# ---- what a queue's machines take


@trial("batch-memory", queue=True)
def batch_memory(lab):
    whole = lab.queue.memory
    memory = whole - max(int(whole * RESERVE), LEAST_RESERVE)
    job = BatchJob(lab, "memory", "ends", nodes=1, resources=(1, memory), kind=lab.queue.smallest)
    seen = blocked_or_begun(lab, job)
    return seen["status"] != "RUNNABLE", f"{memory} of {whole} MiB on {lab.queue.smallest}: {words_of(seen)}"


@trial("batch-blocked", queue=True)
def batch_blocked(lab):
    job = BatchJob(lab, "blocked", "ends", resources=(MORE_THAN_ANY, 512))
    seen = blocked_or_begun(lab, job)
    job.end()
    return seen["status"] == "RUNNABLE", f"{MORE_THAN_ANY} vCPUs: {words_of(seen)}"


@trial("batch-spot-nodes", queue=True)
def batch_spot_nodes(lab):
    if not lab.queue.is_spot:
        raise NotTried("the queue has machines on demand")
    job = BatchJob(lab, "spot-nodes", "ends", nodes=2, kind=lab.queue.smallest)
    end, seen = time.monotonic() + min(lab.watch * 30, 1800), {}
    while time.monotonic() < end and seen.get("status") not in ("STARTING", "RUNNING", *BATCH_OVER):
        lab.sleep(min(10, lab.watch))
        seen = job.seen()
    job.end()
    return seen["status"] == "RUNNABLE", f"{words_of(seen)} after {min(lab.watch * 30, 1800) / 60:.0f} minutes"


def words_of(seen):
    return f"{seen['status']}, {seen.get('statusReason') or 'without a reason'}"


def blocked_or_begun(lab, job):
    def look():
        seen = job.seen()
        begun = seen.get("status") in ("STARTING", "RUNNING", *BATCH_OVER)
        return seen if begun or seen.get("statusReason", "").startswith("MISCONFIGURATION:") else None
    try:
        return lab.until(look, 1800, f"{job.name}, begun or called a misconfiguration,")
    except NotTried as error:
        raise NotTried(f"{error}: it is {words_of(job.seen())}") from error
