"""How rows of configs/live/rows.yaml are tried that are about stoker's agent: by runs of the built stoker (runs.py), whose
jobs the SDK looks at."""

import re

import jobs
from lab import NotTried, shared, trial
from trials_batch import goes_on

URI = re.compile(r"AWS_CONTAINER_CREDENTIALS_(RELATIVE|FULL)_URI")
GRACE = {"batch": (25, 35), "sagemaker": (110, 130)}  # seconds between SIGTERM and SIGKILL, as they may show


class Job:
    """The one job of a run, as its service tells of it."""

    def __init__(self, lab, engine, run):
        self.lab, self.engine, self.name, self.id = lab, engine, f"stk-{run}-train-1", None

    def seen(self):
        """(its status, its end's reason); None: it is not there yet."""
        lab = self.lab
        if self.engine == "sagemaker":
            found = jobs.none_if_unknown(lab.client("sagemaker").describe_training_job, TrainingJobName=self.name)
            return found and (found["SecondaryStatus"], found.get("FailureReason", ""))
        if not self.id:
            rows = lab.client("batch").list_jobs(jobQueue=lab.queue.name, filters=[
                {"name": "JOB_NAME", "values": [self.name]}])["jobSummaryList"]
            if not rows:
                return None
            self.id = rows[0]["jobId"]
        found = lab.client("batch").describe_jobs(jobs=[self.id])["jobs"]
        return (found[0]["status"], found[0].get("statusReason", "")) if found else None

    def end(self):
        if self.engine == "sagemaker":
            self.lab.client("sagemaker").stop_training_job(TrainingJobName=self.name)
        elif self.seen():
            self.lab.client("batch").terminate_job(jobId=self.id, reason="conform ends it")


def looked(engine):
    """A run whose command names the variables that it has: (exit code of stoker, (status, reason), what was printed)."""
    def run(lab):
        name = f"{lab.name}-{engine[0]}-look"
        driver = lab.stoker.start(lab.stoker.spec(engine, "names"), name)
        said = lab.stoker.ended(driver)
        seen = Job(lab, engine, name).seen()
        rows, _ = lab.stoker.ask("logs", name)
        names = [each for row in rows for each in row.get("names", [])] or re.findall(r"[A-Z][A-Z_0-9]+", str(rows))
        return driver.returncode, seen, names, said
    return shared(run)


LOOKED = {engine: looked(engine) for engine in ("batch", "sagemaker")}


def role(lab, engine):
    code, seen, names, said = LOOKED[engine](lab)
    if seen is None:
        raise NotTried(f"stoker run ended with {code}, without a job: {said.strip().splitlines()[-1:]}")
    uris = sorted({name for name in names if URI.fullmatch(name)})
    # Where no link-local address can be had, a stand-in says that it is one.
    wanted = URI if engine == "sagemaker" or "AWS_ENDPOINT_URL" in names else re.compile(".*_RELATIVE_URI")
    words = f"the job is {seen[0]}, {seen[1] or 'without a reason'}; stoker run ended with {code}; the command has " \
            f"{', '.join(uris) or 'none of the variables'}"
    return code == 0 and any(wanted.fullmatch(name) for name in uris), words


@trial("batch-role", role=True, queue=True)
def batch_role(lab):
    return role(lab, "batch")


@trial("sagemaker-role", role=True)
def sagemaker_role(lab):
    return role(lab, "sagemaker")


# ---- what is stopped


def stopped(lab, engine):
    """A run whose job is ended from outside while its command sleeps: how its attempt ended."""
    name = f"{lab.name}-{engine[0]}-stop"

    def of(event):
        return [row for row in lab.stoker.ask("events", name)[0] if row.get("event") == event]
    driver = lab.stoker.start(lab.stoker.spec(engine, "sleeps"), name)
    try:
        lab.until(lambda: driver.poll() is not None or of("attempt.started"), jobs.COMES, "the command")
        Job(lab, engine, name).end()
        said = lab.stoker.ended(driver)
    finally:
        driver.kill()
    found = of("attempt.ended")
    if not found:
        raise NotTried(f"stoker run ended with {driver.returncode}, without an attempt: {said.strip().splitlines()[-1:]}")
    return found[-1]


def grace(lab, engine, seconds):
    row = stopped(lab, engine)
    least, most = GRACE[engine]
    lasted = "its lines could not be read" if seconds is None else f"{seconds:.0f} s behind SIGTERM"
    has_reported = row["class"] == "stopped" and "exit" in row  # an exit code is in the agent's report alone
    return seconds is not None and least <= seconds <= most and has_reported, \
        f"the last line came {lasted}; the attempt: {row['class']}, the agent has {'' if has_reported else 'not '}reported"


@trial("batch-grace", role=True, queue=True)
def batch_grace(lab):
    return grace(lab, "batch", goes_on(lab).seconds)


@trial("sagemaker-grace", role=True)
def sagemaker_grace(lab):
    job = jobs.TrainingJob(lab, "goes-on", "goes-on").create()
    job.when_training()
    job.facts()
    job.stop()
    job.when_over()
    said = job.facts(3)
    asked = [each["asked"] for each in said if "asked" in each]
    last = max((each["now"] for each in said if "now" in each), default=0)
    return grace(lab, "sagemaker", last - asked[0] if asked else None)
