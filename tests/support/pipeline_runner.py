"""Executes the definition of a SageMaker pipeline as the service would, as far as these definitions go:

* A step begins when all steps that its arguments name have ended well, and if it is among the steps of
  a condition, when that has chosen them. A condition that waits for a step that never runs is not read.
* A processing job is the entry point and the arguments of its container, started with `environment`. Its
  output folder is one for this job alone. If it ends with 0 the folder is its output, and property files
  are read from there; else the step has failed, and with it the execution.
* What `lost` says is the number of times that the service loses the first jobs of a step: they are killed,
  and its policy for JOB_INTERNAL_ERROR begins another.
* The minute between two tries within a job is a tenth of a second.
* A Fail step ends the execution with its message."""

import json
import subprocess
from pathlib import Path

FOLDER = "/opt/ml/processing/outcome"


class Failed(Exception):
    """The execution has failed."""


class Execution:
    def __init__(self, definition: dict, identifier: str, folder: Path, environment: dict, cwd: Path, on_job=None):
        """`on_job`(phase, process, number of the job): called when a job has begun; returns True if the
        service has lost it."""
        self.definition, self.id, self.folder, self.cwd = definition, identifier, folder, cwd
        self.environment, self.on_job = environment, on_job
        self.done, self.jobs, self.read = {}, [], []

    def value(self, found):
        """What a reference stands for."""
        if not isinstance(found, dict):
            return found
        if "Get" in found:
            assert found["Get"] == "Execution.PipelineExecutionId", found
            return self.id
        if "Std:Join" in found:
            return found["Std:Join"]["On"].join(str(self.value(each)) for each in found["Std:Join"]["Values"])
        asked = found["Std:JsonGet"]
        _, step, kind, name = asked["PropertyFile"]["Get"].split(".")
        assert kind == "PropertyFiles"
        return json.loads((self.done[step] / self.files[step, name]).read_text())[asked["Path"]]

    def needed(self, found) -> set:
        """The steps whose properties a value names."""
        if isinstance(found, list):
            return set().union(*map(self.needed, found))
        if not isinstance(found, dict):
            return set()
        name = found.get("Get", "")
        own = {name.split(".")[1]} if isinstance(name, str) and name.startswith("Steps.") else set()
        return own.union(*(self.needed(each) for each in found.values()))

    def holds(self, condition) -> bool:
        if condition["Type"] == "Or":
            return any(map(self.holds, condition["Conditions"]))
        assert condition["Type"] == "Equals"
        return self.value(condition["LeftValue"]) == self.value(condition["RightValue"])

    def process(self, step) -> None:
        retries = next(policy["MaxAttempts"] for policy in step["RetryPolicies"]
                       if "SageMaker.JOB_INTERNAL_ERROR" in policy["ExceptionType"])
        for number in range(retries + 1):
            output = self.folder / f"{step['Name']}-{number}"
            output.mkdir(parents=True)
            program = step["Arguments"]["AppSpecification"]
            words = [self.value(word) for word in program["ContainerEntrypoint"] + program["ContainerArguments"]]
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
        self.done[step["Name"]] = output

    def run(self) -> None:
        """Raises Failed."""
        waiting = list(self.definition["Steps"])
        self.files = {}
        while True:
            ready = [step for step in waiting if self.needed_by(step) <= set(self.done)]
            if not ready:
                return
            step = ready[0]
            waiting.remove(step)
            if step["Type"] == "Processing":
                self.files |= {(step["Name"], file["PropertyFileName"]): file["FilePath"]
                               for file in step["PropertyFiles"]}
                self.process(step)
            elif step["Type"] == "Fail":
                raise Failed(self.value(step["Arguments"]["ErrorMessage"]))
            else:
                chosen = all(map(self.holds, step["Arguments"]["Conditions"]))
                self.read.append((step["Name"], chosen))
                branch = step["Arguments"]["IfSteps" if chosen else "ElseSteps"]
                assert all(each["Type"] != "Condition" for each in branch), "the service refuses nested conditions"
                waiting += branch

    def needed_by(self, step) -> set:
        asked = step["Arguments"]
        return self.needed(asked["Conditions"] if step["Type"] == "Condition" else asked) | set(step.get("DependsOn", []))
