"""How rows of configs/live/rows.yaml are tried by training jobs of SageMaker: see lab.py and jobs.py. What several rows look
at is one job."""

import re
import time

import botocore.exceptions
from jobs import TRAINING_OVER, TrainingJob
from lab import NotTried, refusal, shared, trial

SHOWN = 5  # seconds in which stoker takes it for granted
LONGEST = 432000  # seconds: 5 days
WAIT = 60  # seconds for which a node waits for the names of the others
LATE = 15  # seconds behind the end of a job in which its streams are there
AGREE = 5  # seconds by which its times may differ
FILES = {"conform/one": b"1", "conform/two words": b"22"}
WORDS = ["$HOME", "two  words", "a'b\"c"]  # as no shell would leave them
FAILED = "exit code: 42|ExitCode 42"


# ---- two hosts: the first one ends with 0, then the second one with 42


class Hosts:
    def __init__(self, lab):
        for name, body in FILES.items():
            lab.put(f"hosts/channel/{name}", body)
        channel = {"ChannelName": "stoker", "DataSource": {"S3DataSource": {
            "S3DataType": "S3Prefix", "S3Uri": f"s3://{lab.bucket}/{lab.name}/hosts/channel/",
            "S3DataDistributionType": "FullyReplicated"}}}
        job = TrainingJob(lab, "hosts", "hosts", hosts=2, words=WORDS, InputDataConfig=[channel],
                          given={"CONFORM_PATIENCE": str(min(WAIT, lab.watch))}).create()
        self.name = job.name
        self.whole = job.when_over()
        end = time.monotonic() + LATE
        while len(self.by_host(job)) < 2 and time.monotonic() < end:
            lab.sleep(0.5)
        self.streams = self.by_host(job)
        self.facts = sorted(job.facts(2), key=lambda each: each["config"].get("current_host", ""))
        self.lines = [line for _, line in job.lines()]
        if len(self.facts) < 2:
            raise NotTried(f"its hosts have printed nothing that can be read; it is {self.whole['TrainingJobStatus']}, "
                           f"{self.whole.get('FailureReason')}")

    def by_host(self, job):
        """{its number: a stream}, as far as they are there."""
        found = [(re.match(rf"{re.escape(self.name)}/algo-(\d+)-", stream), stream) for stream in job.streams()]
        return {int(match[1]): stream for match, stream in found if match}


hosts = shared(Hosts)


@trial("sagemaker-environment", role=True)
def sagemaker_environment(lab):
    seen = hosts(lab).facts
    names = [each["config"].get("current_host") for each in seen]
    known = sorted(seen[0]["config"].get("hosts", []), key=lambda name: int(re.search(r"\d+$", name)[0]))
    given = [each.get("given") == lab.name for each in seen]
    return names == known and len(names) == 2 and all(given), \
        f"hosts {', '.join(known)}; current_host {', '.join(map(str, names))}; the request's variable is " \
        f"{'there' if all(given) else 'missing'}"


@trial("sagemaker-host-names", role=True)
def sagemaker_host_names(lab):
    waits = [seconds for each in hosts(lab).facts for seconds in each["looked"].values()]
    return len(waits) == 4 and None not in waits, \
        ", ".join("not found" if seconds is None else f"{seconds} s" for seconds in waits)


@trial("sagemaker-entry-point", role=True)
def sagemaker_entry_point(lab):
    seen = hosts(lab)
    others = [line for line in seen.lines if not line.startswith("conform {")]
    words = [each["words"] for each in seen.facts]
    return words == [WORDS] * 2 and not others, f"words {'as given' if words == [WORDS] * 2 else words}; " \
        f"{len(others)} lines of others" + (f", such as {others[0]}" if others else "")


@trial("sagemaker-channel", role=True)
def sagemaker_channel(lab):
    wanted = {name: len(body) for name, body in FILES.items()}
    seen = [each["files"] for each in hosts(lab).facts]
    return seen == [wanted] * 2, "; ".join(", ".join(f"{name}: {size}" for name, size in sorted(files.items())) or "nothing"
                                           for files in seen)


@trial("sagemaker-completed", role=True)
def sagemaker_completed(lab):
    seen = hosts(lab).whole["TrainingJobStatus"]
    return seen == "Failed", seen


@trial("sagemaker-streams", role=True)
def sagemaker_streams(lab):
    seen = hosts(lab).streams
    return sorted(seen) == [1, 2], f"streams of hosts {', '.join(map(str, sorted(seen))) or 'none'}, within {LATE} s"


# ---- a job that ends with 42 when it is told


class Single:
    def __init__(self, lab):
        job = TrainingJob(lab, "single", "waits", seconds=LONGEST)
        self.longest = job.refused()
        if self.longest:
            job.request["StoppingCondition"]["MaxRuntimeInSeconds"] = 900
            job.create()
        began = time.monotonic()

        def shown():
            try:
                return job.seen()
            except botocore.exceptions.ClientError as error:
                if "not found" not in str(error):
                    raise
            return time.monotonic() > began + 2 * SHOWN
        lab.until(shown, 6 * SHOWN, "its description")
        self.shown = time.monotonic() - began
        self.twice = job.refused()
        job.when_training()
        self.lives = refusal(job.sagemaker.delete_training_job, TrainingJobName=job.name)
        lab.put("single/gate", b"42")
        self.whole = job.when_over()
        self.dead = refusal(job.sagemaker.delete_training_job, TrainingJobName=job.name)
        self.after = refusal(job.seen)


single = shared(Single)


@trial("sagemaker-name", role=True)
def sagemaker_name(lab):
    seen = single(lab).twice
    return seen is not None and seen.code == "ResourceInUse", f"the second request: {seen or 'taken'}"


@trial("sagemaker-shown", role=True)
def sagemaker_shown(lab):
    seconds = single(lab).shown
    return seconds < SHOWN, f"{seconds:.1f} s behind the request"


@trial("sagemaker-deleted", role=True)
def sagemaker_deleted(lab):
    seen = single(lab)
    after = seen.after and f"{seen.after}: {seen.after.message}"
    return seen.lives is not None and seen.dead is None and seen.after is not None and "not found" in seen.after.message, \
        f"while it runs: {seen.lives or 'deleted'}; behind its end: {seen.dead or 'deleted'}; then: {after or 'there'}"


@trial("sagemaker-longest", role=True)
def sagemaker_longest(lab):
    seen = single(lab).longest
    return seen is None, f"{seen}: {seen.message}" if seen else f"{LONGEST} s were taken"


@trial("sagemaker-reason", role=True)
def sagemaker_reason(lab):
    seen = single(lab).whole
    reason = seen.get("FailureReason", "")
    return bool(re.search(FAILED, reason)), f"{seen['TrainingJobStatus']}: {reason or 'without a reason'}"


@trial("sagemaker-times", role=True)
def sagemaker_times(lab):
    seen = single(lab).whole
    if "TrainingStartTime" not in seen or "TrainingEndTime" not in seen:
        return False, "without TrainingStartTime or TrainingEndTime"
    lasted = (seen["TrainingEndTime"] - seen["TrainingStartTime"]).total_seconds()
    billed = seen.get("BillableTimeInSeconds")
    return billed is not None and abs(billed - lasted) <= AGREE, f"from start to end {lasted:.0f} s, billed {billed} s"


# ---- two jobs with one place for checkpoints


@trial("sagemaker-checkpoints", role=True)
def sagemaker_checkpoints(lab):
    given, seen = {"CONFORM_SAVES": lab.name}, []
    place = {"CheckpointConfig": {"S3Uri": f"s3://{lab.bucket}/{lab.name}/checkpoints"}}
    for part in ("saves", "finds"):
        job = TrainingJob(lab, part, "saves", given=given, **place).create()
        whole = job.when_over()
        said = job.facts()
        if whole["TrainingJobStatus"] != "Completed" or not said:
            raise NotTried(f"{job.name} is {whole['TrainingJobStatus']}, {whole.get('FailureReason')}")
        seen.append(said[0]["found"])
    return seen == [None, lab.name], f"the first found {'nothing' if seen[0] is None else 'a file'}, the second " \
        f"{'nothing' if seen[1] is None else 'the file' if seen[1] == lab.name else 'another file'}"


# ---- lines that come late


@trial("sagemaker-late-lines", role=True)
def sagemaker_late_lines(lab):
    """Reads on as stoker does: each time from a minute before the newest line that it has seen."""
    margin = lab.watch  # a minute
    job = TrainingJob(lab, "lines", "lines", hosts=2,
                      given={"CONFORM_COUNT": "90", "CONFORM_EVERY": f"{margin / 30:.3f}"}).create()
    job.when_training()
    seen, newest, is_over, end = set(), 0, False, 0.0
    while not is_over or time.monotonic() < end:
        found = job.events(max(newest - int(margin * 1000), 0))
        seen |= set(found)
        newest = max([newest, *(at for _, _, at in found)])
        if not is_over and job.seen()["TrainingJobStatus"] in TRAINING_OVER:
            is_over, end = True, time.monotonic() + margin
        lab.sleep(margin / 6)
    whole = set(job.events())
    if len(whole) < 180:
        raise NotTried(f"{len(whole)} of 180 lines are in the log")
    return whole <= seen, f"{len(whole)} lines from the beginning, {len(whole - seen)} of them not seen by reading on"


# ---- rows that are named


@trial("sagemaker-infra-check", role=True)
def sagemaker_infra_check(lab):
    job = TrainingJob(lab, "infra", "ends", InfraCheckConfig={"EnableInfraCheck": True})
    job.request["ResourceConfig"]["InstanceType"] = "ml.g4dn.xlarge"
    seen = job.refused()
    if not seen:
        job.stop()
    elif seen.code == "ResourceLimitExceeded":
        raise NotTried(f"{seen}: {seen.message}")
    return seen is None, f"{seen}: {seen.message}" if seen else "the request was taken"


@trial("sagemaker-warm-pool", role=True)
def sagemaker_warm_pool(lab):
    job = TrainingJob(lab, "warm", "ends")
    job.request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 600
    refused = job.refused()
    if refused:
        raise NotTried(f"{refused}: {refused.message}")
    ended = job.when_over()["TrainingEndTime"]
    if job.seen()["TrainingJobStatus"] != TRAINING_OVER[0]:
        raise NotTried(f"it is {job.seen()['TrainingJobStatus']}: {job.seen().get('FailureReason')}")
    began = time.monotonic()
    pool = job.when(lambda seen: seen.get("WarmPoolStatus", {}).get("Status") == "Available"
                    or time.monotonic() > began + lab.watch, lab.watch + 60, "its pool")
    seconds = (pool["LastModifiedTime"] - ended).total_seconds()
    status = pool.get("WarmPoolStatus", {}).get("Status")
    waited = time.monotonic() - began
    given = refusal(job.sagemaker.update_training_job, TrainingJobName=job.name,
                    ResourceConfig={"KeepAlivePeriodInSeconds": 0})
    gone = job.when(lambda seen: seen.get("WarmPoolStatus", {}).get("Status") == "Terminated"
                    or time.monotonic() > began + 120, 150, "its pool's end")["WarmPoolStatus"]["Status"]
    return status == "Available" and waited < 30 and not given and gone == "Terminated", \
        f"{status} {max(seconds, waited):.0f} s behind the end; given back: {given or gone}"
