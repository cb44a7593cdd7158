"""How the rows of configs/live/rows.yaml on SageMaker's processing jobs and pipelines are tried: see lab.py and jobs.py."""

import json
import re

from clean import token
from jobs import COMES, ENDS, LASTS, MACHINE, aws_image, come, events, facts, none_if_unknown
from lab import PREFIX, NotTried, refusal, trial

GROUP = "/aws/sagemaker/ProcessingJobs"
FOLDER = "/opt/ml/processing/outcome"
OVER = ("Completed", "Failed", "Stopped")
NAME = "user"
# As the image's user or, if that is root, as this one.
USER = 10000
BECOMES = f'[ "$(id -u)" = 0 ]&&exec setpriv --reuid {USER} --regid {USER} --clear-groups /bin/sh -c "$1";eval "$1"'
WRITES = f'w=false;(id -u >{FOLDER}/{NAME})&&w=true;echo "conform {{\\"user\\": $(id -u), \\"wrote\\": $w}}";$w'


def image_of(lab):
    return lab.stoker_image or lab.image or aws_image(lab.region)


def tags(lab):
    return [{"Key": f"{PREFIX}run", "Value": lab.name}]


# ---- a job that writes


@trial("processing-write", role=True)
def processing_write(lab):
    sagemaker, name, place = lab.client("sagemaker"), f"{lab.name}-write", f"{lab.name}/write"
    sagemaker.create_processing_job(
        ProcessingJobName=name, RoleArn=lab.role, Tags=tags(lab), StoppingCondition={"MaxRuntimeInSeconds": LASTS},
        ProcessingResources={"ClusterConfig": {"InstanceType": f"ml.{MACHINE}", "InstanceCount": 1, "VolumeSizeInGB": 30}},
        AppSpecification={"ImageUri": image_of(lab), "ContainerEntrypoint": ["/bin/sh", "-c", BECOMES, "sh"],
                          "ContainerArguments": [WRITES]},
        ProcessingOutputConfig={"Outputs": [{"OutputName": "outcome", "AppManaged": False, "S3Output": {
            "S3Uri": f"s3://{lab.bucket}/{place}", "LocalPath": FOLDER, "S3UploadMode": "EndOfJob"}}]})

    def over():
        seen = none_if_unknown(sagemaker.describe_processing_job, ProcessingJobName=name)
        return seen if seen and seen["ProcessingJobStatus"] in OVER else None
    whole = lab.until(over, COMES + LASTS + ENDS, f"{name}: its end")
    lines = [text for _, text, _ in come(lab, lambda: events(lab, GROUP, name), 1)]
    said, status = facts(lines), whole["ProcessingJobStatus"]
    if not said or not said[0]["user"]:
        raise NotTried(f"it did not run as another user than root; it is {status}, {whole.get('FailureReason')}; "
                       f"{' '.join(lines[-1:])}")
    found = lab.s3.list_objects_v2(Bucket=lab.bucket, Prefix=f"{place}/").get("Contents", [])
    names = [row["Key"].removeprefix(f"{place}/") for row in found]
    fine = said[0]["wrote"] and status == "Completed" and names == [NAME] \
        and lab.body(f"write/{NAME}").decode().strip() == str(said[0]["user"])
    why = "" if said[0]["wrote"] else f", {' '.join(line for line in lines if 'conform {' not in line)}"
    return fine, f"user {said[0]['user']} has {'' if said[0]['wrote'] else 'not '}written{why}; it is {status}; " \
                 f"in its output: {', '.join(names) or 'nothing'}"


# ---- an exported pipeline of two phases

PHASES = ["train", "promote"]
# Stands for stoker in the containers: leaves what it was given, and that all is well.
ANSWER = f'echo "{{\\"exit_code\\": 0, \\"words\\": \\"$*\\"}}" >{FOLDER}/outcome.json'
USAGE = 2  # an exit code of stoker's
CALL = 'stoker "$@"'  # in the script of an exported step


def exported(lab):
    """What `stoker export` makes; in it, a line of shell instead of stoker, so that any image does."""
    spec = lab.stoker.spec(
        "sagemaker", "pipeline", data={"url": f"s3://{lab.bucket}/{lab.name}/data/"}, promote={"when": "always"},
        checkpoint={"url": f"s3://{lab.bucket}/{lab.name}/checkpoints"},
        driver={"image": image_of(lab), "role": lab.role, "instance": f"ml.{MACHINE}"})
    text = lab.stoker.text("--state", f"s3://{lab.bucket}/{lab.name}/state", "export", spec, "--to", "sagemaker-pipeline")
    try:
        made = json.loads(text)
    except ValueError as error:
        raise NotTried("stoker export has printed no definition") from error
    steps = list(processing_of(made["Steps"]))
    for each in steps:
        arguments = each["Arguments"]
        entry = arguments["AppSpecification"]["ContainerEntrypoint"]
        entry[:] = [word.replace(CALL, 'eval "$DO"') for word in entry]
        arguments |= {"Environment": {"DO": ANSWER}, "StoppingCondition": {"MaxRuntimeInSeconds": LASTS}, "Tags": tags(lab)}
    if [each["Name"] for each in steps] != PHASES or json.dumps(steps).count('eval \\"$DO\\"') != len(PHASES):
        raise NotTried(f"stoker export has made {', '.join(each['Name'] for each in steps)}, or steps that call no stoker")
    return made


def processing_of(steps):
    for step in steps:
        if step["Type"] == "Processing":
            yield step
        for branch in ("IfSteps", "ElseSteps"):
            yield from processing_of(step.get("Arguments", {}).get(branch, []))


def carried_out(lab, name):
    """(its description at the end, its steps by name)."""
    sagemaker = lab.client("sagemaker")
    arn = sagemaker.start_pipeline_execution(PipelineName=name, ClientRequestToken=token(name))["PipelineExecutionArn"]

    def over():
        seen = sagemaker.describe_pipeline_execution(PipelineExecutionArn=arn)
        return seen if seen["PipelineExecutionStatus"] not in ("Executing", "Stopping") else None
    whole = lab.until(over, 2 * (COMES + LASTS), f"{name}: its end")
    pages = sagemaker.get_paginator("list_pipeline_execution_steps").paginate(PipelineExecutionArn=arn)
    return whole, {row["StepName"]: row for page in pages for row in page["PipelineExecutionSteps"]}


@trial("pipeline-conditions", role=True)
def pipeline_conditions(lab):
    sagemaker, name = lab.client("sagemaker"), f"{lab.name}-conditions"
    refused = refusal(sagemaker.create_pipeline, PipelineName=name, PipelineDefinition=json.dumps(exported(lab)),
                      ClientRequestToken=token(name), RoleArn=lab.role, Tags=tags(lab))
    if refused and refused.code != "ValidationException":
        raise NotTried(f"{refused}: {refused.message}")
    if refused:
        return False, f"{refused}: {refused.message}"
    whole, steps = carried_out(lab, name)
    states = {each: steps[each]["StepStatus"] if each in steps else "not begun" for each in PHASES}
    words = "; ".join(f"{each} {row['StepStatus']}" + (f" ({row['FailureReason']})" if row.get("FailureReason") else "")
                      for each, row in sorted(steps.items()))
    if "Failed" in states.values():
        raise NotTried(f"a job has failed, of which this row says nothing: {words}")
    identifier = whole["PipelineExecutionArn"].rpartition("/")[2]
    runs = {run_of(lab, identifier, phase) for phase in PHASES if states[phase] == "Succeeded"}
    fine = whole["PipelineExecutionStatus"] == "Succeeded" and set(states.values()) == {"Succeeded"}
    return fine and len(runs) == 1 and all(takes(lab, run) for run in runs), \
        f"the execution {identifier} is {whole['PipelineExecutionStatus']}; {words}; run ids: {', '.join(sorted(runs))}"


def run_of(lab, identifier, phase):
    """The run id that this phase was given."""
    words = json.loads(lab.body(f"work/outcomes/{identifier}/{phase}/outcome.json"))["words"]
    return re.search(r"--id (\S+)", words)[1]


def takes(lab, run):
    """Whether stoker takes it for the id of a run."""
    _, code = lab.stoker.ask("retrain", "missing.yaml", "--id", run)
    return code != USAGE
