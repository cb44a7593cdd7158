"""How the rows of configs/live/rows.yaml are tried that are about images, and about machines that are lost: runs of the built
stoker (runs.py) and jobs of the official SDK."""

import re

import jobs
from lab import NotTried, refusal, trial
from trials_runs import Job

NEURON_IMAGE = "pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.29.1-ubuntu24.04"
NO_ORDER = "exit status 70|cannot read the order"  # what an agent without its order ends with
LOST = re.compile(r"Host EC2 \(instance [^)]*\) terminated\.|Your Spot Task was interrupted")


def ran(lab, part, **more):
    """A run on AWS Batch whose command is over at once: whether its agent has reported, and what was seen."""
    name = f"{lab.name}-{part}"
    driver = lab.stoker.start(lab.stoker.spec("batch", "names", **more), name)
    said = lab.stoker.ended(driver)
    seen = Job(lab, "batch", name).seen()
    if seen is None:
        raise NotTried(f"stoker run ended with {driver.returncode}, without a job: {' '.join(said.strip().splitlines()[-1:])}")
    # An exit code is in the agent's report alone.
    ends = [row for row in lab.stoker.ask("events", name)[0] if row.get("event") == "attempt.ended"]
    if any(re.search(NO_ORDER, str(row.get("evidence"))) for row in ends):
        raise NotTried(f"its agent is there, and has no keys: {ends[-1]['evidence']}")
    has_reported = driver.returncode == 0 and any("exit" in row for row in ends)
    return has_reported, f"the job is {seen[0]}, {seen[1] or 'without a reason'}; stoker run ended with {driver.returncode}; " \
                         f"the agent has {'' if has_reported else 'not '}reported"


@trial("batch-helper", queue=True)
def batch_helper(lab):
    if not lab.stoker_image:
        raise NotTried("it needs --stoker-image")
    return ran(lab, "bhelper", batch={"helper_image": lab.stoker_image})


@trial("batch-entry-point", queue=True)
def batch_entry_point(lab):
    image = jobs.aws_image(lab.region, NEURON_IMAGE)
    if not image:
        raise NotTried("it is not published whose AWS's images are in this region")
    return ran(lab, "bentry", image=image)


@trial("batch-host", queue=True)
def batch_host(lab):
    """Ends the machine of a job, if nothing else runs there."""
    job = jobs.BatchJob(lab, "host", "waits")
    arn = job.when(("RUNNING", *jobs.BATCH_OVER))["container"].get("containerInstanceArn", "")
    cluster = arn.rpartition("/")[0].rpartition("/")[2]
    found = lab.client("ecs").describe_container_instances(cluster=cluster, containerInstances=[arn])["containerInstances"]
    if not found or found[0]["runningTasksCount"] != 1:
        raise NotTried(f"its machine has {found[0]['runningTasksCount'] if found else 'no word of'} tasks: it stays")
    refused = refusal(lab.client("ec2").terminate_instances, InstanceIds=[found[0]["ec2InstanceId"]])
    if refused:
        raise NotTried(f"{refused}: {refused.message}")
    seen = job.when_over()
    return bool(LOST.match(seen.get("statusReason", ""))), f"{seen['status']}, {seen.get('statusReason') or 'without a reason'}"
