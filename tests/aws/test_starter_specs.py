"""The starter specs of SageMaker as `stoker init` writes them, run on the stand-in: what a reader would
adapt is set on the command line."""

import pytest
from sagemaker_job import IMAGE, SagemakerJob

ESTIMATORS = '''"""What somebody has who comes from the SageMaker Python SDK."""
import argparse

parser = argparse.ArgumentParser()
for name, kind in (("epochs", int), ("train_batch_size", int), ("learning_rate", float)):
    parser.add_argument(f"--{name}", type=kind, required=True)
args = parser.parse_args()
for epoch in range(1, args.epochs + 1):
    rate = args.learning_rate * (1 - epoch / args.epochs)
    print({"loss": 1 / epoch, "learning_rate": rate, "epoch": float(epoch)}, flush=True)
'''


@pytest.fixture
def start(aws, tmp_path):
    made = []

    def begin(name, *sets):
        job = SagemakerJob(tmp_path / "project", aws)
        made.append(job)
        job.spec_path.unlink()
        job.ok("init", "--template", name, job.spec_path)
        sets = [f"workspace={job.url['stoker']}", f"image={IMAGE}", "sagemaker.work_dir=/opt/ml/stoker",
                "health.device=false", f"env.EFFECTS={job.effects_path}", f"compile.cache_url={job.url['cache']}", "aws.region=eu-west-1", *sets]
        return job, [word for each in sets for word in ("--set", each)]
    yield begin
    for job in made:
        job.stop()


def test_the_estimator(start):
    job, sets = start("estimator", "compile.kind=none", "compile.overrides.hyperparameters=null")
    (job.source / "train.py").write_text(ESTIMATORS)
    job.run("--id", "est", *sets, "--set", f"checkpoint.url={job.url['ckpt']}")
    there = job.described("stk-est-train-1")
    assert (there["ResourceConfig"]["InstanceType"], there["ResourceConfig"]["InstanceCount"],
            there["ResourceConfig"]["VolumeSizeInGB"]) == ("ml.trn1.2xlarge", 1, 100)
    assert there["RoleArn"] == "arn:aws:iam::123456789012:role/my-sagemaker-role"
    assert there["EnableManagedSpotTraining"] is True
    assert (there["StoppingCondition"]["MaxRuntimeInSeconds"], there["StoppingCondition"]["MaxWaitTimeInSeconds"]) == (
        86400, 172800)
    assert there["ProfilerConfig"]["DisableProfiler"] is True and "DebugHookConfig" not in there
    assert [row["Name"] for row in there["AlgorithmSpecification"]["MetricDefinitions"]] == ["loss", "learning_rate", "epoch"]
    values = [row["value"] for row in job.ok("metrics", "est", "learning_rate", "--json").lines]
    assert values == [5e-5 * (1 - epoch / 3) for epoch in (1, 2, 3)]
    assert job.ok("status", "est", "--json").lines[0]["attempts"][0]["billable"] == there["BillableTimeInSeconds"]


def test_the_same_job_on_several_machines(start):
    job, sets = start("machines", "compile.kind=none", "compile.overrides.hyperparameters=null",
                      'command=["./torchrun","train.py"]', "hyperparameters.max_steps=25", "sweep.repeat=1", "sweep.parallel=1")
    (job.source / "torchrun").write_text("#!/bin/sh\nexec python3 \"$@\"\n")
    (job.source / "torchrun").chmod(0o755)
    result = job.stoker("sweep", job.spec_path, "--id", "m", "--json", *sets)
    assert result.code == 0, str(result)
    small, large, two, four = result.lines
    for row, price, samples in ((small, 1.34, 16), (large, 21.5, 256), (two, 2 * 1.34, 32), (four, 4 * 1.34, 64)):
        there = job.described(f"stk-{row['run']}-train-1")
        assert row["billable"] == there["BillableTimeInSeconds"]
        assert row["samples_per_second"] == pytest.approx(samples / row["step_seconds_mean"], rel=1e-9)
        assert row["samples_per_usd"] == pytest.approx(row["samples_per_second"] * 3600 / price, rel=1e-9)
        assert row["speed"] == pytest.approx(row["samples_per_second"] / small["samples_per_second"], rel=1e-9)
    assert "efficiency" not in large
    assert [row["efficiency"] * nodes / row["speed"] for row, nodes in ((two, 2), (four, 4))] == pytest.approx([1, 1])
    assert "SAMPLES/USD" in job.ok("compare", "m").out
