"""SageMaker's processing jobs and pipelines on the stand-in: what they run, what is told of it in the service's own model,
and what is refused."""

import json

import botocore.exceptions
import pytest
import stoker as cli
from standin import services, validate

ROLE = "arn:aws:iam::123456789012:role/worker"
TOKEN = "t" * 32
FOLDER = "/opt/ml/processing/outcome"


def arguments(script):
    return {"RoleArn": ROLE, "AppSpecification": {"ImageUri": "image:1", "ContainerEntrypoint": ["sh", "-c", script]},
            "ProcessingResources": {"ClusterConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}},
            "ProcessingOutputConfig": {"Outputs": [{"OutputName": "outcome", "S3Output": {
                "S3Uri": "s3://bucket/out", "LocalPath": FOLDER, "S3UploadMode": "EndOfJob"}}]}}


def step(name, script):
    return {"Name": name, "Type": "Processing", "Arguments": arguments(script),
            "PropertyFiles": [{"PropertyFileName": "outcome", "OutputName": "outcome", "FilePath": "file.json"}]}


def condition(name, of, chosen, otherwise=()):
    left = {"Std:JsonGet": {"PropertyFile": {"Get": f"Steps.{of}.PropertyFiles.outcome"}, "Path": "code"}}
    return {"Name": name, "Type": "Condition", "Arguments": {
        "Conditions": [{"Type": "Equals", "LeftValue": left, "RightValue": 0}], "IfSteps": chosen, "ElseSteps": [*otherwise]}}


def leaves(code):
    return f"echo '{{\"code\": {code}}}' >{FOLDER}/file.json"


FAIL = {"Name": "fail", "Type": "Fail", "Arguments": {"ErrorMessage": "it is not 0"}}


@pytest.fixture
def sagemaker(aws, s3):
    return aws.client("sagemaker")


def make(sagemaker, *steps, name="line"):
    sagemaker.create_pipeline(PipelineName=name, ClientRequestToken=TOKEN, RoleArn=ROLE, PipelineDefinition=json.dumps(
        {"Version": "2020-12-01", "Parameters": [], "Steps": steps}))


def start(sagemaker, *steps):
    make(sagemaker, *steps)
    return sagemaker.start_pipeline_execution(PipelineName="line", ClientRequestToken=TOKEN)["PipelineExecutionArn"]


def told(operation, reply):
    """Such as the model allows."""
    problems = []
    body = json.loads(json.dumps({name: value for name, value in reply.items() if name != "ResponseMetadata"},
                                 default=lambda time: time.timestamp()))
    validate.check_structure(body, services.model("sagemaker").operation_model(operation).output_shape, "", problems)
    assert problems == []
    return reply


def ended(sagemaker, arn):
    """How it ended, and each step: how, and what is told of it."""
    found = {}

    def is_over():
        found.update(told("DescribePipelineExecution", sagemaker.describe_pipeline_execution(PipelineExecutionArn=arn)))
        return found["PipelineExecutionStatus"] not in ("Executing", "Stopping")
    cli.until(is_over)
    rows = told("ListPipelineExecutionSteps", sagemaker.list_pipeline_execution_steps(PipelineExecutionArn=arn))
    return found["PipelineExecutionStatus"], {row["StepName"]: row for row in rows["PipelineExecutionSteps"]}


def refused(call, **params):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**params)
    return caught.value.response["Error"]["Code"], caught.value.response["Error"]["Message"]


def test_conditions_read_files_of_steps_and_choose(sagemaker):
    arn = start(sagemaker, step("one", leaves(0)), condition("first", "one", [step("two", leaves(1))]),
                condition("second", "two", [], [FAIL]))
    status, steps = ended(sagemaker, arn)
    assert status == "Failed"
    assert {name: row["StepStatus"] for name, row in steps.items()} == {
        "one": "Succeeded", "first": "Succeeded", "two": "Succeeded", "second": "Succeeded", "fail": "Failed"}
    assert steps["first"]["Metadata"]["Condition"]["Outcome"] == "True"
    assert steps["second"]["Metadata"]["Condition"]["Outcome"] == "False" and steps["fail"]["FailureReason"] == "it is not 0"
    name = steps["two"]["Metadata"]["ProcessingJob"]["Arn"].rpartition("/")[2]
    job = told("DescribeProcessingJob", sagemaker.describe_processing_job(ProcessingJobName=name))
    assert name.startswith("pipelines-") and job["ProcessingJobStatus"] == "Completed"
    told("ListProcessingJobs", sagemaker.list_processing_jobs())


@pytest.mark.parametrize("script, why", [("exit 3", "exit code: 3"), ("true".ljust(257), "less than or equal to 256")])
def test_a_step_that_fails_ends_the_execution(sagemaker, s3, script, why):
    status, steps = ended(sagemaker, start(sagemaker, step("one", script), condition("first", "one", [])))
    assert status == "Failed" and list(steps) == ["one"] and why in steps["one"]["FailureReason"]
    assert "Contents" not in s3.list_objects_v2(Bucket="bucket", Prefix="out/")


def test_what_runs_is_stopped_before_it_is_removed(sagemaker):
    arn = start(sagemaker, step("one", "exec sleep 600"))
    cli.until(lambda: sagemaker.list_processing_jobs(StatusEquals="InProgress")["ProcessingJobSummaries"])
    assert refused(sagemaker.delete_pipeline, PipelineName="line", ClientRequestToken=TOKEN)[0] == "ConflictException"
    sagemaker.stop_pipeline_execution(PipelineExecutionArn=arn, ClientRequestToken=TOKEN)
    status, steps = ended(sagemaker, arn)
    assert status == "Stopped" and steps["one"]["StepStatus"] == "Stopped"
    sagemaker.delete_pipeline(PipelineName="line", ClientRequestToken=TOKEN)
    assert sagemaker.list_pipelines()["PipelineSummaries"] == []
    assert refused(sagemaker.describe_pipeline_execution, PipelineExecutionArn=arn)[0] == "ResourceNotFound"


@pytest.mark.parametrize("steps, why", [
    ([step("one", "true"), condition("first", "one", [condition("second", "one", [])])], "Nested"),
    ([step("one", "true"), step("one", "true")], "unique"),
    ([step(f"step-{number}", "true") for number in range(51)], "51 steps"),
    ([condition("first", "nowhere", [])], "nowhere"), ([{"Type": "Fail"}], "parse")])
def test_what_is_no_definition_is_refused(sagemaker, steps, why):
    with pytest.raises(botocore.exceptions.ClientError, match=why):
        make(sagemaker, *steps)
    assert sagemaker.list_pipelines()["PipelineSummaries"] == []


def test_names_come_once(sagemaker):
    make(sagemaker)
    with pytest.raises(botocore.exceptions.ClientError, match="unique"):
        make(sagemaker)
    sagemaker.create_processing_job(ProcessingJobName="one", **arguments("true"))
    assert refused(sagemaker.create_processing_job, ProcessingJobName="one", **arguments("true"))[0] == "ResourceInUse"
