#!/usr/bin/env python3
"""What the SageMaker Python SDK sends for the two-instance example of Neuron's SageMaker samples
(training/neuron_parallel_compile/neuron_parallel_compile.ipynb): phase 1, then the same Estimator
without RUN_NEURON_PARALLEL_COMPILE. Made offline; nothing is sent.

    python3 -m venv /tmp/sdk && /tmp/sdk/bin/pip install sagemaker==2.257.7
    /tmp/sdk/bin/python tests/soak/estimator_requests.py tests/aws/data/estimator.json

The second part, "values", is what the SDK's json.dumps() makes of hyperparameters in general.
"""

import json
import os
import sys
import tempfile
from unittest import mock

os.environ.update(AWS_ACCESS_KEY_ID="none", AWS_SECRET_ACCESS_KEY="none", AWS_DEFAULT_REGION="us-west-2",
                  AWS_EC2_METADATA_DISABLED="true")

import boto3  # noqa: E402
import sagemaker  # noqa: E402
from sagemaker.pytorch import PyTorch  # noqa: E402
from sagemaker.session import Session  # noqa: E402
from sagemaker.telemetry import telemetry_logging  # noqa: E402

HYPERPARAMETERS = {"model_name_or_path": "roberta-base", "task_name": "mrpc", "do_train": True, "max_seq_length": 128,
                   "per_device_train_batch_size": 8, "learning_rate": 2e-05, "max_train_samples": 128,
                   "num_train_epochs": 1, "max_steps": 200, "output_dir": "/opt/ml/model"}
METRICS = [{"Name": "train_runtime", "Regex": "train_runtime.*=\\D*(.*?)$"},
           {"Name": "train_samples_per_second", "Regex": "train_samples_per_second.*=\\D*(.*?)$"},
           {"Name": "epoch", "Regex": "epoch.*=\\D*(.*?)$"},
           {"Name": "f1", "Regex": "f1.*=\\D*(.*?)$"},
           {"Name": "exact_match", "Regex": "exact_match.*=\\D*(.*?)$"}]
COMMON = {"FI_EFA_FORK_SAFE": "1", "NEURON_COMPILE_CACHE_URL": "s3://bucket/s3-neuron-cache"}
VALUES = {"int": 10, "real": 3e-4, "small": 1e-5, "whole": 2.0, "large": 1e16, "yes": True, "no": False,
          "text": "roberta-base", "digits": "10", "quotes": "a\"b\\c", "unicode": "ü→😀"}


def session(sent):
    boto = boto3.Session(region_name="us-west-2")
    client = mock.MagicMock()
    client.create_training_job.side_effect = lambda **request: sent.append(request) or {"TrainingJobArn": "arn"}
    made = Session(boto_session=boto, sagemaker_client=client, default_bucket="bucket")
    made._default_bucket = "bucket"
    made.boto_session = mock.MagicMock(wraps=boto)
    made.boto_session.region_name = "us-west-2"
    made.boto_session.resource = mock.MagicMock()
    made.s3_resource = None
    return made


def estimate(made, name, environment, hyperparameters, **more):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "run_glue.py"), "w", encoding="utf-8") as file:
            file.write("pass\n")
        PyTorch(entry_point="run_glue.py", source_dir=folder, metric_definitions=METRICS,
                instance_type="ml.trn1.32xlarge", instance_count=2, volume_size=450,
                role="arn:aws:iam::123456789012:role/sagemaker", py_version="py39",
                distribution={"torch_distributed": {"enabled": True}},
                image_uri="763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training-neuronx:"
                          "1.13.1-neuronx-py310-sdk2.15.0-ubuntu20.04",
                environment=environment, hyperparameters=hyperparameters, sagemaker_session=made,
                **more).fit(wait=False, job_name=name)


def main():
    sent = []
    made = session(sent)
    telemetry_logging._requests_helper = mock.Mock()
    estimate(made, "glue-precompile", {"RUN_NEURON_PARALLEL_COMPILE": "1", **COMMON}, HYPERPARAMETERS)
    estimate(made, "glue-train", COMMON, HYPERPARAMETERS)
    estimate(made, "glue-quiet", COMMON, HYPERPARAMETERS, disable_profiler=True, debugger_hook_config=False)
    estimate(made, "values", COMMON, VALUES)
    values = {name: sent[3]["HyperParameters"][name] for name in VALUES}
    kept = {"sdk": sagemaker.__version__, "precompile": sent[0], "train": sent[1], "quiet": sent[2],
            "values": [{"value": VALUES[name], "sent": text} for name, text in values.items()]}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
