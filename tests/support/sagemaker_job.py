"""The one-second trainer on SageMaker, as the stand-in runs it."""

from bucket_job import BucketJob

ROLE = "arn:aws:iam::123456789012:role/sagemaker"
IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/trainer:1"


class SagemakerJob(BucketJob):
    def __init__(self, root, aws, nodes=1, sagemaker=None, **changes):
        super().__init__(root, aws, **{
            "engine": "sagemaker", "image": IMAGE, "resources": {"instance": "ml.c5.xlarge", "nodes": nodes},
            "sagemaker": {"role": ROLE, "work_dir": "/opt/ml/stoker", **(sagemaker or {})}, **changes})
        self.client = aws.client("sagemaker")
        aws.settings(job_seconds=0.1, stop_seconds=30)
        aws.push(IMAGE)

    def described(self, name):
        return self.client.describe_training_job(TrainingJobName=name)

    def rows(self, run="one", kind=None):
        return [row for row in self.ok("events", run).lines if kind in (None, row["event"])]

    def submitted(self, run="one"):
        return [(row["phase"], row["attempt"]) for row in self.rows(run, "attempt.submitted")]

    def ended(self, run="one"):
        """How each attempt ended: class, exit."""
        return [(row["class"], row.get("exit")) for row in self.rows(run, "attempt.ended")]
