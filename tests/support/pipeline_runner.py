"""Executes the definition of a SageMaker pipeline as standin.pipeline_steps says, without any service:

* A processing job is the entry point and the arguments of its container, started with `environment`. Its
  output folder is one for this job alone.
* If the service has lost the job of a step, its policy for JOB_INTERNAL_ERROR begins another.
* The minute between two tries within a job is a tenth of a second."""

import subprocess
from pathlib import Path

from standin import pipeline_steps
from standin.pipeline_steps import Failed

FOLDER = "/opt/ml/processing/outcome"


class Execution(pipeline_steps.Execution):
    def __init__(self, definition: dict, identifier: str, folder: Path, environment: dict, cwd: Path, on_job=None):
        """`on_job`(phase, process, number of the job): called when a job has begun; returns True if the
        service has lost it."""
        super().__init__(definition, identifier)
        self.folder, self.cwd = folder, cwd
        self.environment, self.on_job, self.jobs = environment, on_job, []

    def text_of(self, step, path):
        return (self.done[step] / path).read_text()

    def process(self, step) -> Path:
        retries = next(policy["MaxAttempts"] for policy in step["RetryPolicies"]
                       if "SageMaker.JOB_INTERNAL_ERROR" in policy["ExceptionType"])
        for number in range(retries + 1):
            output = self.folder / f"{step['Name']}-{number}"
            output.mkdir(parents=True)
            program = step["Arguments"]["AppSpecification"]
            words = self.value(program["ContainerEntrypoint"] + program["ContainerArguments"])
            assert len(words) <= 200 and all(len(word) <= 256 for word in words), "the service takes no more, nor longer ones"
            words = [word.replace(FOLDER, str(output)).replace("sleep 60", "sleep 0.1") for word in words]
            job = subprocess.Popen(words, env=self.environment, cwd=self.cwd, stdin=subprocess.DEVNULL,
                                   start_new_session=True)
            self.jobs.append(step["Name"])
            lost = self.on_job(step["Name"], job, number) if self.on_job else False
            code = job.wait()
            if not lost:
                break
        if lost or code != 0:
            raise Failed(f"{step['Name']}: the job ended with {code}")
        return output
