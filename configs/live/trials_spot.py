"""How the row of configs/live/rows.yaml on a machine that Spot takes away is tried: by a run of the built stoker whose job
prints until that happens, which may never be."""

import json

import jobs
from lab import NotTried, refusal, trial

HOURS = 10
STATES = ("Interrupted", "Restarting")


class Again:
    """One job of SageMaker with two lives, and what is left of them."""

    def __init__(self, lab):
        name, sagemaker = f"{lab.name}-spot", lab.client("sagemaker")
        self.lab, self.job, self.states = lab, f"stk-{name}-train-1", []
        spec = lab.stoker.spec("sagemaker", "ticks", env={"CONFORM_SECONDS": str(HOURS * 3600)},
                               sagemaker={"role": lab.role, "spot": True, "max_runtime": f"{HOURS}h"},
                               limits={"deadline": f"{HOURS}h", "queue": f"{jobs.COMES}s"})
        driver = lab.stoker.start(spec, name)
        try:
            lab.until(lambda: driver.poll() is not None or self.look(sagemaker).count("Training") > 1, HOURS * 3600,
                      "a second life")
            if driver.poll() is None:
                lab.sleep(lab.watch)
                refusal(sagemaker.stop_training_job, TrainingJobName=self.job)
            said = lab.stoker.ended(driver)
        finally:
            driver.kill()
        del lab.ids[1:-3]  # all would be thousands
        if self.look(sagemaker).count("Training") < 2:
            last = " ".join(said.strip().splitlines()[-1:])
            raise NotTried(f"it had one life; stoker run ended with {driver.returncode}: {last}")
        self.facts = jobs.facts(lab.stoker.text("logs", name).splitlines())

    def look(self, sagemaker):
        """The states that it has been in."""
        seen = jobs.none_if_unknown(sagemaker.describe_training_job, TrainingJobName=self.job) or {}
        self.states = [row["Status"] for row in seen.get("SecondaryStatusTransitions", [])]
        return self.states

    def claim(self):
        """How often its agent began again, as the claim in the workspace has it."""
        pages = self.lab.s3.get_paginator("list_objects_v2").paginate(Bucket=self.lab.bucket, Prefix=f"{self.lab.name}/")
        keys = [row["Key"] for page in pages for row in page.get("Contents", []) if row["Key"].endswith("-spot/claim/train")]
        return [json.loads(self.lab.s3.get_object(Bucket=self.lab.bucket, Key=key)["Body"].read()).get("restart", 0)
                for key in keys]


@trial("sagemaker-again", role=True)
def sagemaker_again(lab):
    seen = Again(lab)
    restarts, said = seen.claim(), [(each["life"], each["line"]) for each in seen.facts if "line" in each]
    lives = list(dict.fromkeys(life for life, _ in said))
    lines = [[line for life, line in said if life == each] for each in lives]
    whole = said == [(life, number) for life, each in zip(lives, lines) for number in range(len(each))]
    return any(state in seen.states for state in STATES) and restarts == [1] and len(lives) == 2 and whole, \
        f"{', '.join(seen.states)}; restarts by the claim: {', '.join(map(str, restarts)) or 'there is none'}; " \
        f"{' and '.join(str(len(each)) for each in lines) or 'no'} lines of {len(lives)} lives, " \
        f"{'each once and in order' if whole else 'not in order, or not each once'}"
