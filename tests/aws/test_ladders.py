"""The published comparison of native training with SageMaker Training Compiler, replayed in training
jobs: the notebooks' metric definitions word for word, the lines of Hugging Face's Trainer, and
billable seconds by the service's word."""

import shutil

import yaml
from replayed import LADDERS, close, sweep
from sagemaker_job import SagemakerJob


def test_native_against_compiled_training(aws, tmp_path):
    job = SagemakerJob(tmp_path / "project", aws)
    try:
        compare(job)
    finally:
        job.stop()


def compare(job):
    shutil.copy(LADDERS / "compiler.yaml", job.spec_path)
    shutil.copy(LADDERS / "replay.py", job.source)
    definitions = yaml.safe_load(job.spec_path.read_text())["metric_definitions"]
    speed = ("--throughput", "train_samples_per_second", "--metric", "training_loss")
    sweep(job, *speed, "--set", f"workspace={job.url['stoker']}")
    native, compiled = job.ok("compare", "ladder", *speed, "--json").lines
    published = 13902 * 3 / 1402.7, 13902 * 3 / 958.4
    assert (native["samples_per_second"], compiled["samples_per_second"]) == tuple(round(each, 3) for each in published)
    assert close(compiled["speed"], compiled["samples_per_second"] / native["samples_per_second"])
    # The service's own word, of each job; the clock of the log is another.
    for row in (native, compiled):
        name = f"stk-{row['run']}-train-1"
        there = job.described(name)
        assert row["billable"] == there["BillableTimeInSeconds"] >= 1
        assert there["AlgorithmSpecification"]["MetricDefinitions"] == definitions
    assert (compiled["value"], compiled["base_value"], compiled["value_step"]) == (2.77, 2.75, 3)
    assert close(compiled["gap"], 0.06) and compiled["gap_step"] == 1
    # Numbers that the published patterns cut are read whole; a rate that has come to nothing is 0.
    for row, rates in ((native, [6.25e-05, 4.1666666666666665e-05, 0]), (compiled, [0.0001375, 9.166666666666667e-05, 0])):
        read = [line["value"] for line in job.ok("metrics", row["run"], "learning_rate", "--json").lines]
        assert read == rates
    assert "6.25e-05" in job.ok("metrics", native["run"], "learning_rate").out
    assert {row["field"]: (row["old"], row["new"]) for row in compiled["differences"]} == {
        "env.COMPILER": (None, "1"), "hyperparameters.per_device_train_batch_size": (10, 22),
        "hyperparameters.learning_rate": (6.25e-05, 0.0001375)}
    runtimes = [job.ok("metrics", row["run"], "train_runtime", "--json").lines[-1]["value"] for row in (native, compiled)]
    assert runtimes == [1402.7, 958.4]
