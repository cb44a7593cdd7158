"""What conform has left, by its names: what begins jobs is removed, jobs are ended, then definitions, objects, uploads and
pipelines removed."""

import hashlib
import time

import botocore.exceptions
import jobs

PROBLEMS = (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError)


PLACES = {"scheduler": ("schedules",), "states": ("machines",), "batch": ("batch_jobs", "definitions"),
          "sagemaker": ("training_jobs", "processing_jobs", "pipelines")}


def token(name):
    """For requests that want one."""
    return hashlib.sha256(name.encode()).hexdigest()


class Clean:
    """All whose names begin with `prefix`, on these places, and in S3. `untold`: what it could not look at, or end."""

    def __init__(self, lab, prefix, places, queues):
        self.lab, self.prefix, self.queues = lab, prefix, queues
        self.count, self.untold, self.used = 0, [], set()
        for part in (getattr(self, name) for name in (*(
                each for place in PLACES if place in places for each in PLACES[place]), "objects")):
            try:
                part()
            except PROBLEMS as error:
                self.untold.append(f"{part.__name__.replace('_', ' ')}: {error}")

    def is_ours(self, name):
        """By a name of conform's, or of a job of its runs, whose ids begin so."""
        return name.removeprefix("stk-").startswith(self.prefix)

    def pages(self, service, operation, field, **params):
        for page in self.lab.client(service).get_paginator(operation).paginate(**params):
            yield from page.get(field, [])

    def wait(self, left):
        """Until nothing is left of what was ended: what ends may write until then."""
        end, pause = time.monotonic() + jobs.ENDS, 0.2
        while (names := left()) and time.monotonic() < end:
            time.sleep(pause)
            pause = min(pause * 1.5, 10)
        self.untold += [f"{name} goes on" for name in names]

    def batch_jobs(self):
        batch = self.lab.client("batch")

        def alive():
            found = [row for queue in self.queues for word in (self.prefix, f"stk-{self.prefix}") for row in self.pages(
                "batch", "list_jobs", "jobSummaryList", jobQueue=queue, filters=[{"name": "JOB_NAME", "values": [f"{word}*"]}])
                if self.is_ours(row["jobName"])]
            self.used |= {row["jobDefinition"] for row in found if "jobDefinition" in row}
            return [row for row in found if row["status"] not in jobs.BATCH_OVER]

        for row in alive():
            batch.terminate_job(jobId=row["jobId"], reason="conform is over")
            self.count += 1
        self.wait(lambda: [row["jobName"] for row in alive()])

    def training_jobs(self):
        self.end_jobs("Training")

    def processing_jobs(self):
        self.end_jobs("Processing")

    def end_jobs(self, kind):
        sagemaker, word = self.lab.client("sagemaker"), kind.lower()

        def alive():
            return [row[f"{kind}JobName"] for status in ("InProgress", "Stopping") for row in self.pages(
                "sagemaker", f"list_{word}_jobs", f"{kind}JobSummaries", NameContains=self.prefix, StatusEquals=status)
                if self.is_ours(row[f"{kind}JobName"])]

        for name in alive():
            self.stop(getattr(sagemaker, f"stop_{word}_job"), **{f"{kind}JobName": name})
        self.wait(alive)

    def stop(self, call, **params):
        try:
            call(**params)
            self.count += 1
        except botocore.exceptions.ClientError as error:  # it has ended meanwhile
            if error.response["Error"].get("Code") != "ValidationException":
                raise

    def schedules(self):
        for row in list(self.pages("scheduler", "list_schedules", "Schedules", NamePrefix=self.prefix)):
            self.lab.client("scheduler").delete_schedule(Name=row["Name"], GroupName=row["GroupName"])
            self.count += 1

    def machines(self):
        states = self.lab.client("stepfunctions")
        machines = {row["stateMachineArn"]: row["name"] for row in self.pages("stepfunctions", "list_state_machines",
                                                                              "stateMachines") if self.is_ours(row["name"])}

        def alive():
            return [row["executionArn"] for arn in machines for row in self.pages(
                "stepfunctions", "list_executions", "executions", stateMachineArn=arn, statusFilter="RUNNING")]

        for execution in alive():
            states.stop_execution(executionArn=execution, cause="conform is over")
            self.count += 1
        self.wait(alive)
        for arn in machines:
            states.delete_state_machine(stateMachineArn=arn)
            self.count += 1

    def definitions(self):
        """Those of conform's jobs by name, those of its runs because the jobs had them."""
        for row in list(self.pages("batch", "describe_job_definitions", "jobDefinitions", status="ACTIVE")):
            if self.is_ours(row["jobDefinitionName"]) or row["jobDefinitionArn"] in self.used:
                self.lab.client("batch").deregister_job_definition(jobDefinition=row["jobDefinitionArn"])
                self.count += 1

    def pipelines(self):
        """Their executions first, whose jobs have other names."""
        sagemaker, names = self.lab.client("sagemaker"), [row["PipelineName"] for row in self.pages(
            "sagemaker", "list_pipelines", "PipelineSummaries", PipelineNamePrefix=self.prefix.rstrip("-"))
            if self.is_ours(row["PipelineName"])]

        def alive():
            return [row["PipelineExecutionArn"] for name in names for row in self.pages(
                "sagemaker", "list_pipeline_executions", "PipelineExecutionSummaries", PipelineName=name)
                if row["PipelineExecutionStatus"] in ("Executing", "Stopping")]

        for arn in alive():
            self.stop(sagemaker.stop_pipeline_execution, PipelineExecutionArn=arn, ClientRequestToken=token(arn))
        self.wait(alive)
        for name in names:
            sagemaker.delete_pipeline(PipelineName=name, ClientRequestToken=token(name))
            self.count += 1

    def objects(self):
        s3, where = self.lab.s3, {"Bucket": self.lab.bucket, "Prefix": self.prefix}
        for page in s3.get_paginator("list_multipart_uploads").paginate(**where):
            for row in page.get("Uploads", []):
                s3.abort_multipart_upload(Bucket=self.lab.bucket, Key=row["Key"], UploadId=row["UploadId"])
                self.count += 1
        for page in s3.get_paginator("list_objects_v2").paginate(**where):
            for row in page.get("Contents", []):
                s3.delete_object(Bucket=self.lab.bucket, Key=row["Key"])
                self.count += 1
