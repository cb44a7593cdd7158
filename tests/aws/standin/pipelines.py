"""SageMaker's pipelines, as far as stoker's own and their trials need them: executions whose steps are processing jobs,
conditions and failures. What the definitions may not be is refused when they are made."""

import contextlib
import json
import random

from standin import pipeline_steps, processing, services, validate
from standin.errors import Refusal
from standin.pipeline_steps import Failed
from standin.sagemaker import reply

MOST_STEPS = 50
OVER = ("Stopped", "Failed", "Succeeded")


class Stopped(Exception):
    """Somebody wants it to end."""


class Pipeline:
    def __init__(self, call):
        self.request, self.name = call.params, call.params["PipelineName"]
        self.arn = f"arn:aws:sagemaker:{call.region}:{call.who.account}:pipeline/{self.name}"
        self.created, self.executions = call.front.clock(), []

    def row(self):
        return {"PipelineArn": self.arn, "PipelineName": self.name, "PipelineDisplayName": self.name,
                "RoleArn": self.request["RoleArn"], "CreationTime": self.created, "LastModifiedTime": self.created}


class Execution(pipeline_steps.Execution):
    """`rows`: what is told of its steps, by their names."""

    def __init__(self, call, pipeline):
        self.front, self.region, self.account = call.front, call.region, call.who.account
        letters = self.front.settings["execution_id"]
        super().__init__(json.loads(pipeline.request["PipelineDefinition"]), "".join(random.choices(letters, k=12)))
        self.pipeline, self.arn = pipeline, f"{pipeline.arn}/execution/{self.id}"
        self.created = self.changed = self.front.clock()
        self.status, self.reason, self.rows, self.job, self.asked_to_stop = "Executing", None, {}, None, False

    def describe(self):
        reason = {"FailureReason": self.reason} if self.reason else {}
        return {"PipelineArn": self.pipeline.arn, "PipelineExecutionArn": self.arn, "PipelineExecutionStatus": self.status,
                "PipelineExecutionDisplayName": f"execution-{self.id}".lower().replace("_", "-"), "CreationTime": self.created,
                "LastModifiedTime": self.changed, **reason}

    def row(self):
        return {"PipelineExecutionArn": self.arn, "StartTime": self.created, "PipelineExecutionStatus": self.status}

    def carry_out(self):
        status, reason = "Succeeded", None
        try:
            self.run()
        except Stopped:
            status = "Stopped"
        except Failed as failure:
            status, reason = "Failed", str(failure)
        except Exception as error:  # noqa: BLE001 — a service does not die of an execution
            self.front.broke()
            status, reason = "Failed", f"InternalServerError: {error}"
        self.reason, self.status, self.changed = reason, status, self.front.clock()

    def stop(self):
        self.asked_to_stop, self.status, self.changed = True, "Stopping", self.front.clock()
        if self.job:
            self.job.asked_to_stop = True

    @contextlib.contextmanager
    def told(self, step, **metadata):
        """The row of a step while it is carried out."""
        row = self.rows[step["Name"]] = {"StepName": step["Name"], "StartTime": self.front.clock(), "StepStatus": "Executing",
                                         "AttemptCount": 1, "Metadata": metadata}
        try:
            yield row
            row["StepStatus"] = "Succeeded"
        except Stopped:
            row["StepStatus"] = "Stopped"
            raise
        except Failed as failure:
            row |= {"StepStatus": "Failed", "FailureReason": str(failure)}
            raise
        finally:
            row["EndTime"] = self.front.clock()

    def process(self, step):
        end = "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", k=10))
        request = {"ProcessingJobName": f"pipelines-{self.id.replace('_', '')}-{step['Name']}-{end}"[:63],
                   **self.value(step["Arguments"])}
        with self.told(step) as row:
            problems = []
            validate.check_structure(request, services.shape_of("sagemaker", "CreateProcessingJob"), "", problems)
            if problems:
                raise Failed("ClientError: Failed to invoke sagemaker:CreateProcessingJob. Error Details: " + "; ".join(problems))
            job = processing.begin(self.front, self.region, self.account, request)
            row["Metadata"] = {"ProcessingJob": {"Arn": job.arn}}
            self.job = job
            if self.asked_to_stop:
                job.asked_to_stop = True
            job.run()
            if job.status == "Stopped":
                raise Stopped
            if job.status != "Completed":
                raise Failed(job.reason)
        return job

    def text_of(self, step, path):
        job = self.done[step]
        name, _, prefix = job.outputs()[0]["S3Output"]["S3Uri"].removeprefix("s3://").partition("/")
        thing = self.front.store.buckets[name].objects[f"{prefix}/{path}"]
        return b"".join(thing.read()).decode()

    def choose(self, step):
        with self.told(step) as row:
            branch = super().choose(step)
            row["Metadata"] = {"Condition": {"Outcome": str(self.read[-1][1])}}
        return branch

    def fail(self, step):
        message = self.value(step["Arguments"]["ErrorMessage"])
        with self.told(step, Fail={"ErrorMessage": message}):
            raise Failed(message)


# The operations

def pipelines_of(call):
    return call.front.pipelines.setdefault((call.who.account, call.region), {})


def missing(what):
    return Refusal("ResourceNotFound", f"{what} does not exist.", 400)


def find(call):
    name = call.params["PipelineName"].rpartition("/")[2]
    if name not in pipelines_of(call):
        raise missing(f"Pipeline '{name}'")
    return pipelines_of(call)[name]


def find_execution(call):
    arn = call.params.get("PipelineExecutionArn")
    found = [each for pipeline in pipelines_of(call).values() for each in pipeline.executions if each.arn == arn]
    if not found:
        raise missing(f"Pipeline execution '{arn}'")
    return found[0]


def check(call, definition):
    """What the service takes no pipeline with."""
    steps = list(pipeline_steps.all_steps(definition["Steps"]))
    names = [step["Name"] for step in steps]
    chosen = {each["Name"] for step in steps for branch in pipeline_steps.BRANCHES for each in step["Arguments"].get(branch, [])}
    conditions = [step for step in steps if step["Type"] == "Condition"]
    unknown = set().union(*map(pipeline_steps.needed_by, steps)) - set(names)
    wrong = None
    if len(names) > MOST_STEPS:
        wrong = f"Pipeline has {len(names)} steps, and may have {MOST_STEPS}"
    elif len(set(names)) < len(names):
        wrong = "Step names must be unique"
    elif unknown:
        wrong = f"Unknown steps: {', '.join(sorted(unknown))}"
    elif any(step["Name"] in chosen for step in conditions):
        wrong = "Nested condition steps are not supported"
    elif not call.front.settings["chosen_files"] and any(pipeline_steps.needed_by(step) & chosen for step in conditions):
        wrong = "A condition may not read a property file of a step that another condition has chosen"
    if wrong:
        raise Refusal("ValidationException", wrong, 400)


def create(call):
    try:
        definition = json.loads(call.params["PipelineDefinition"])
        check(call, definition)
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal("ValidationException", f"Unable to parse pipeline definition. {error!r}", 400) from error
    name = call.params["PipelineName"]
    with call.front.floor.lock:
        if name in pipelines_of(call):
            raise Refusal("ValidationException", f"Pipeline names must be unique within an AWS account and region. Pipeline "
                          f"with name ({name}) already exists.", 400)
        pipelines_of(call)[name] = made = Pipeline(call)
    call.effect = True
    return reply({"PipelineArn": made.arn})


def delete(call):
    pipeline = find(call)
    if any(each.status not in OVER for each in pipeline.executions):
        raise Refusal("ConflictException", f"Pipeline '{pipeline.name}' has executions that are running.", 400)
    del pipelines_of(call)[pipeline.name]
    call.effect = True
    return reply({"PipelineArn": pipeline.arn})


def start(call):
    pipeline = find(call)
    execution = Execution(call, pipeline)
    pipeline.executions.append(execution)
    call.effect = True
    call.front.floor.start(execution.carry_out)
    return reply({"PipelineExecutionArn": execution.arn})


def stop(call):
    execution = find_execution(call)
    if execution.status in OVER:
        raise Refusal("ValidationException", f"Pipeline execution is in status {execution.status}, and cannot be stopped.", 400)
    call.effect = not execution.asked_to_stop
    execution.stop()
    return reply({"PipelineExecutionArn": execution.arn})


def listing(call):
    prefix = call.params.get("PipelineNamePrefix", "")
    rows = [each.row() for name, each in list(pipelines_of(call).items()) if name.startswith(prefix)]
    return processing.page(call, "PipelineSummaries", rows)


def executions(call):
    return processing.page(call, "PipelineExecutionSummaries", [each.row() for each in reversed(find(call).executions)])


def steps(call):
    return processing.page(call, "PipelineExecutionSteps", list(reversed(find_execution(call).rows.values())))


HANDLERS = {"CreatePipeline": create, "DeletePipeline": delete, "ListPipelines": listing, "StartPipelineExecution": start,
            "StopPipelineExecution": stop, "ListPipelineExecutions": executions, "ListPipelineExecutionSteps": steps,
            "DescribePipelineExecution": lambda call: reply(find_execution(call).describe())}
