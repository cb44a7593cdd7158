#!/usr/bin/env python3
"""What the SageMaker Python SDK makes of the steps that 'stoker export --to sagemaker-pipeline' writes for
tests/aws/data/pipeline.yaml. Made offline; nothing is sent.

    python3 -m venv /tmp/sdk && /tmp/sdk/bin/pip install sagemaker==2.257.7 pytz
    /tmp/sdk/bin/python tests/soak/pipeline_definition.py tests/aws/data/pipeline.json

The texts (image, role, script of the container, words of the command) are written here again, by hand:
the file is compared with what stoker prints, field by field.
"""

import json
import os
import sys

os.environ.update(AWS_ACCESS_KEY_ID="none", AWS_SECRET_ACCESS_KEY="none", AWS_DEFAULT_REGION="eu-west-1",
                  AWS_EC2_METADATA_DISABLED="true")

import boto3  # noqa: E402
import sagemaker  # noqa: E402
from sagemaker.processing import ProcessingOutput, Processor  # noqa: E402
from sagemaker.workflow.condition_step import ConditionStep  # noqa: E402
from sagemaker.workflow.conditions import ConditionEquals, ConditionOr  # noqa: E402
from sagemaker.workflow.execution_variables import ExecutionVariables  # noqa: E402
from sagemaker.workflow.fail_step import FailStep  # noqa: E402
from sagemaker.workflow.functions import Join, JsonGet  # noqa: E402
from sagemaker.workflow.pipeline import Pipeline  # noqa: E402
from sagemaker.workflow.pipeline_context import PipelineSession  # noqa: E402
from sagemaker.workflow.properties import PropertyFile  # noqa: E402
from sagemaker.workflow.retry import (  # noqa: E402
    SageMakerJobExceptionTypeEnum,
    SageMakerJobStepRetryPolicy,
    StepExceptionTypeEnum,
    StepRetryPolicy,
)
from sagemaker.workflow.steps import ProcessingStep  # noqa: E402

PHASES = ["precompile", "verify", "train", "evaluate", "gate", "infer", "promote"]
OUTCOME = PropertyFile(name="outcome", output_name="outcome", path="outcome.json")
FILE = "/opt/ml/processing/outcome/outcome.json"
SCRIPT = f"""o={FILE};e=;trap 'e=1;kill -TERM "$j"' TERM;while rm -f $o;do stoker "$@"&j=$!;\
while wait "$j";c=$?;kill -0 "$j" 2>/dev/null;do :;done;case $e$c in 8|75)sleep 60&j=$!;wait "$j";;*)break;esac;\
[ "$e" ]&&break;done;[ -s $o ]"""


def step(session, phase):
    processor = Processor(role="arn:aws:iam::123456789012:role/m5-driver",
                          image_uri="123456789012.dkr.ecr.eu-west-1.amazonaws.com/m5-driver:1",
                          entrypoint=["/bin/sh", "-c", SCRIPT, "stoker"], instance_count=1, instance_type="ml.t3.large",
                          volume_size_in_gb=30, max_runtime_in_seconds=432000, sagemaker_session=session)
    arguments = processor.run(
        arguments=["--state", "s3://bucket/state", "--region", "eu-west-1", "retrain", "pipeline.yaml",
                   "--set", "resources.nodes=2",
                   "--id", Join(on="-", values=["m5-text-encoder", ExecutionVariables.PIPELINE_EXECUTION_ID]),
                   "--until", phase, "--outcome", FILE],
        outputs=[ProcessingOutput(output_name="outcome", source="/opt/ml/processing/outcome", destination=Join(
            on="/", values=["s3://bucket/stoker/outcomes", ExecutionVariables.PIPELINE_EXECUTION_ID, phase]))])
    service, job = StepExceptionTypeEnum, SageMakerJobExceptionTypeEnum
    return ProcessingStep(name=phase, step_args=arguments, property_files=[OUTCOME], retry_policies=[
        StepRetryPolicy([service.SERVICE_FAULT, service.THROTTLING], interval_seconds=60, backoff_rate=2.0,
                        max_attempts=10),
        SageMakerJobStepRetryPolicy([job.INTERNAL_ERROR, job.CAPACITY_ERROR], interval_seconds=60, backoff_rate=2.0,
                                    max_attempts=10)])


def main(path):
    session = PipelineSession(boto_session=boto3.Session(region_name="eu-west-1"), default_bucket="unused")
    made = [step(session, phase) for phase in PHASES]
    steps = made[:1]
    for number, each in enumerate(made):
        code = JsonGet(step_name=each.name, property_file=OUTCOME, json_path="exit_code")
        if number + 1 < len(made):
            steps.append(ConditionStep(name=f"{each.name}-done", conditions=[ConditionEquals(left=code, right=0)],
                                       if_steps=[made[number + 1]], else_steps=[]))
        message = Join(on="", values=[f"{each.name} ended with exit code ", code])
        steps.append(ConditionStep(
            name=f"{each.name}-ended",
            conditions=[ConditionOr([ConditionEquals(left=code, right=0), ConditionEquals(left=code, right=5)])],
            if_steps=[], else_steps=[FailStep(name=f"{each.name}-failed", error_message=message)]))
    pipeline = Pipeline(name="m5", steps=steps, sagemaker_session=session, pipeline_experiment_config=None)
    made = {"sdk": sagemaker.__version__, "definition": json.loads(pipeline.definition())}
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(made, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
