"""Set-ups that doctor looks at: jobs of AWS Batch and of SageMaker in an account where all is as it should be, unless a
test changes it."""

import stoker as cli
from aws import OTHER_ACCESS, OTHER_SECRET
from batch_job import BatchJob
from bucket_job import BUCKET, BucketJob
from sagemaker_job import SagemakerJob

FOLDER = ".stoker-doctor/"


def bad(findings):
    return [row for row in findings if row["state"] != "ok" and not row["check"].startswith("here.")]


def of(findings, check, **more):
    found = [row for row in findings if row["check"] == check and all(row.get(key) == more[key] for key in more)]
    assert len(found) == 1, (check, more, findings)
    return found[0]


class Looked:
    def doctor(self, *argv, code=0, spec=True, env=None):
        words = ("--json", "doctor", *((self.spec_path,) if spec else ()), *argv)
        result = cli.stoker(*words, env=self.env(**(env or {})), cwd=self.source)
        assert result.code == code, str(result)
        return result.lines

    def probes(self):
        """By their keys alone: a fault may strike who reads them."""
        pages = self.aws.client(access=OTHER_ACCESS, secret=OTHER_SECRET).get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return [row["Key"] for page in pages for row in page.get("Contents", []) if FOLDER in row["Key"]]

    def uploads(self):
        return self.aws.client(access=OTHER_ACCESS, secret=OTHER_SECRET).list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])

    def found(self, check, state="fail", **account):
        """What a check of such an account says; nothing has an effect. Once the account is as it was, it is well."""
        since = self.aws.mark()
        before = self.aws.control("GET", "settings")
        self.aws.settings(**account)
        only = ("--only", f"{check.partition('.')[0]}.*")
        findings = self.doctor(*only, code=4 if state == "fail" else 0)
        assert [row for row in self.aws.ledger(since) if row["effect"]] == []
        row, = bad(findings)
        assert (row["check"], row["state"]) == (check, state) and row["cure"] and row["seen"], row
        self.aws.settings(**{name: before[name] for name in account})
        if account:
            assert bad(self.doctor(*only)) == []
        return row


class Examined(Looked, BatchJob):
    """On AWS Batch, with a queue on which its jobs can run."""

    def make_queue(self, name, kind="EC2", machines=None, **more):
        self.environment(f"{name}-env", type=kind, **(machines or {}))
        self.batch.create_job_queue(jobQueueName=name, priority=1, **more, computeEnvironmentOrder=[
            {"order": 1, "computeEnvironment": f"{name}-env"}])

    def environment(self, name, **changes):
        machines = {"type": "EC2", "maxvCpus": 64, "instanceTypes": ["trn1"], "subnets": ["subnet-1"],
                    "securityGroupIds": ["sg-1"], "instanceRole": "ecsInstanceRole",
                    "launchTemplate": {"launchTemplateName": "neuron"}, **changes}
        self.batch.create_compute_environment(
            computeEnvironmentName=name, type="MANAGED",
            computeResources={key: value for key, value in machines.items() if value is not None})

    def large(self, nodes=2, queue="large", **machines):
        """Several nodes that speak over EFA, and a queue for them."""
        self.make_queue(queue, machines={"maxvCpus": 4096, "placementGroup": "near",
                                         "launchTemplate": {"launchTemplateName": "eight"}, **machines})
        self.aws.settings(ec2={"templates": {"eight": {"efa": 8}}})
        self.write(batch={**self.spec["batch"], "job_queue": queue}, resources={"instance": "trn1.32xlarge", "nodes": nodes})


class ExaminedSagemaker(Looked, SagemakerJob):
    def in_network(self, **more):
        self.write(sagemaker={**self.spec["sagemaker"], "vpc": {"subnets": ["subnet-1"], "security_groups": ["sg-1"]}, **more})


class ExaminedLocal(Looked, BucketJob):
    """On this machine, whose Python has JAX by its metadata, with everything in buckets."""

    def __init__(self, root, aws):
        super().__init__(root, aws)
        about = root / "packages/jaxlib-0.4.30.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: jaxlib\nVersion: 0.4.30\n")
        self.write(env={**self.spec.get("env", {}), "PYTHONPATH": str(about.parent)})
