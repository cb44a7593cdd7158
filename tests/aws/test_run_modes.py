"""A benchmark on SageMaker, and what an attempt on a service tells of its image and versions."""

import pytest
from batch_job import IMAGE, BatchJob
from sagemaker_job import SagemakerJob

REPOSITORY = IMAGE.rsplit(":", 1)[0]


@pytest.fixture(params=[SagemakerJob, BatchJob])
def job(aws, tmp_path, request):
    made = request.param(tmp_path / "project", aws)
    made.write(compile=None)
    yield made
    made.stop()


def test_an_attempt_tells_its_image_by_digest_where_nothing_is_compiled_too(job, aws):
    digest = aws.push(IMAGE)
    job.run("--id", "one")
    aws.push(IMAGE)  # the tag leads elsewhere by now
    told, = job.events("one", "attempt.versions")
    assert told["image"] == f"{REPOSITORY}@{digest}" and told["versions"]["python"]
    attempt, = job.status("one")["attempts"]
    assert (attempt["image"], attempt["versions"]) == (told["image"], told["versions"])
    if isinstance(job, SagemakerJob):
        assert job.described("stk-one-train-1")["AlgorithmSpecification"]["TrainingImage"] == told["image"]
    else:
        definition, = job.batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]
        assert definition["containerProperties"]["image"] == told["image"]


def test_an_image_that_cannot_be_looked_at_runs_by_its_tag(job, aws):
    aws.fault("denied", service="ecr", count=0)
    planned, = job.ok("--json", "plan", job.spec_path).lines
    assert "image" in [row["what"] for row in planned["not_known"]]
    job.run("--id", "one")
    told, = job.events("one", "attempt.versions")
    assert "image" not in told and told["versions"]["python"]


@pytest.mark.parametrize("job", [SagemakerJob], indirect=True)
def test_a_benchmark_has_neither_profiler_nor_debugger(job):
    job.write(benchmark=True)
    planned, = job.ok("--json", "plan", job.spec_path, "--requests").lines
    assert planned["benchmark"] is True
    body, = [call["body"] for call in planned["requests"][0]["sends"] if call["operation"] == "CreateTrainingJob"]
    assert body["ProfilerConfig"] == {"DisableProfiler": True} and "DebugHookConfig" not in body
    job.run("--id", "one")
    described = job.described("stk-one-train-1")
    assert described["ProfilerConfig"]["DisableProfiler"] is True and "DebugHookConfig" not in described
