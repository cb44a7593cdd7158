"""A definition of a SageMaker pipeline, executed as the service would, as far as the definitions that stoker exports go:

* A step begins when all steps that its arguments name have ended well, and if it is among the steps of a condition, when
  that has chosen them. A condition that waits for a step that never runs is not read.
* If a processing job has ended with 0 its property files are read from its output; else the step has failed, and with it
  the execution.
* A Fail step ends the execution with its message.

What it does not know is an AssertionError."""

import json


BRANCHES = ("IfSteps", "ElseSteps")


class Failed(Exception):
    """The execution has failed."""


def all_steps(steps):
    """Those that conditions choose, too."""
    for step in steps:
        yield step
        for branch in BRANCHES:
            yield from all_steps(step.get("Arguments", {}).get(branch, []))


def needed(found):
    """The steps whose properties a value names."""
    if isinstance(found, list):
        return set().union(*map(needed, found))
    if not isinstance(found, dict):
        return set()
    name = found.get("Get", "")
    own = {name.split(".")[1]} if isinstance(name, str) and name.startswith("Steps.") else set()
    return own.union(*(needed(each) for each in found.values()))


def needed_by(step):
    asked = step["Arguments"]
    return needed(asked["Conditions"] if step["Type"] == "Condition" else asked) | set(step.get("DependsOn", []))


class Execution:
    """`process` and `text_of` are those of a subclass. `done`: steps that have ended well; `read`: conditions, and whether
    they held."""

    def __init__(self, definition, identifier):
        self.definition, self.id = definition, identifier
        self.done, self.files, self.read = {}, {}, []

    def process(self, step):
        """Returns what `done` keeps, when the step's job has ended well. Raises Failed."""
        raise NotImplementedError

    def text_of(self, step, path):
        """Of a file in the step's output."""
        raise NotImplementedError

    def value(self, found):
        """What a reference stands for, also within lists and objects."""
        if isinstance(found, list):
            return [self.value(each) for each in found]
        if not isinstance(found, dict):
            return found
        if "Get" in found:
            assert found["Get"] == "Execution.PipelineExecutionId", found
            return self.id
        if "Std:Join" in found:
            return found["Std:Join"]["On"].join(str(self.value(each)) for each in found["Std:Join"]["Values"])
        if "Std:JsonGet" not in found:
            return {name: self.value(each) for name, each in found.items()}
        asked = found["Std:JsonGet"]
        _, step, kind, name = asked["PropertyFile"]["Get"].split(".")
        assert kind == "PropertyFiles"
        return json.loads(self.text_of(step, self.files[step, name]))[asked["Path"]]

    def holds(self, condition):
        if condition["Type"] == "Or":
            return any(map(self.holds, condition["Conditions"]))
        assert condition["Type"] == "Equals"
        return self.value(condition["LeftValue"]) == self.value(condition["RightValue"])

    def choose(self, step):
        """The steps that a condition chooses."""
        chosen = all(map(self.holds, step["Arguments"]["Conditions"]))
        self.read.append((step["Name"], chosen))
        branch = step["Arguments"]["IfSteps" if chosen else "ElseSteps"]
        assert all(each["Type"] != "Condition" for each in branch), "the service refuses nested conditions"
        return branch

    def fail(self, step):
        raise Failed(self.value(step["Arguments"]["ErrorMessage"]))

    def run(self):
        """Raises Failed."""
        waiting = list(self.definition["Steps"])
        while step := next((step for step in waiting if needed_by(step) <= set(self.done)), None):
            waiting.remove(step)
            if step["Type"] == "Processing":
                self.files |= {(step["Name"], file["PropertyFileName"]): file["FilePath"]
                               for file in step.get("PropertyFiles", [])}
                self.done[step["Name"]] = self.process(step)
            elif step["Type"] == "Fail":
                self.fail(step)
            else:
                assert step["Type"] == "Condition", step
                waiting += self.choose(step)
