"""How the row of configs/live/rows.yaml is tried that is looked at again after days: a first run keeps what it began in the
results (lab.begun), and a run after that time judges it."""

import datetime

from jobs import BATCH_OVER, BatchJob
from lab import NotTried, trial

KEPT = datetime.timedelta(days=8)  # as batch_describe.c has it
AS = "%Y-%m-%dT%H:%M:%SZ"


def begin(lab):
    """A job that ends, for the run that comes later."""
    job = BatchJob(lab, "forgotten", "ends")
    ended = datetime.datetime.fromtimestamp(job.when_over()["stoppedAt"] / 1000, datetime.timezone.utc)
    return {"job": job.id, "ended": ended.strftime(AS)}


@trial("batch-forgotten", queue=True)
def batch_forgotten(lab):
    kept = lab.begun.get("batch-forgotten") or begin(lab)
    lab.begun["batch-forgotten"] = kept
    due = datetime.datetime.strptime(kept["ended"], AS).replace(tzinfo=datetime.timezone.utc) + KEPT
    if lab.now() < due:
        raise NotTried(f"its job ended {kept['ended']}; run conform again after {due.strftime(AS)}")
    job = BatchJob(lab, "remembered", "sleeps")
    running = job.when(("RUNNING", *BATCH_OVER))
    known = [row["jobId"] for row in job.batch.describe_jobs(jobs=[kept["job"], job.id])["jobs"]]
    job.end()
    words = [f"the one that ended {kept['ended']} is {'known' if kept['job'] in known else 'unknown'}",
             f"the one that is {running['status']} is {'known' if job.id in known else 'unknown'}"]
    return known == [job.id], "; ".join(words)
