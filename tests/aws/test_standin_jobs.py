"""SageMaker and Batch run what is submitted: states, lines of logs while they run, exit
codes, retries, several instances, stops and misfortunes, as the services tell them."""

import ast
import json
import os
import subprocess
import time

import botocore.exceptions
import pytest
import stoker as cli
from aws import ACCESS, REGION
from standin import processes, services, validate


def refused(call, *args, **kwargs):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(*args, **kwargs)
    return caught.value.response["Error"]["Code"], caught.value.response["Error"]["Message"]


# SageMaker

@pytest.fixture
def training(aws, s3):
    return aws.client("sagemaker")


def train(client, script, name="job-1", count=1, **more):
    algorithm = {"TrainingImage": "image:1", "TrainingInputMode": "File", "ContainerEntrypoint": ["sh", "-c"],
                 "ContainerArguments": [script], **more.pop("Algorithm", {})}
    stopping = {"MaxRuntimeInSeconds": 600, **more.pop("Stopping", {})}
    machines = {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": count, "VolumeSizeInGB": 1,
                **more.pop("Resources", {})}
    return client.create_training_job(
        TrainingJobName=name, RoleArn="arn:aws:iam::123456789012:role/worker", AlgorithmSpecification=algorithm,
        OutputDataConfig={"S3OutputPath": "s3://bucket/out"}, StoppingCondition=stopping,
        ResourceConfig=machines, **more)


def ended(client, name="job-1"):
    def check():
        job = client.describe_training_job(TrainingJobName=name)
        return job if job["TrainingJobStatus"] in ("Completed", "Failed", "Stopped") else None
    return cli.until(check)


def lines(aws, group, prefix=""):
    try:
        more = {"logStreamNamePrefix": prefix} if prefix else {}
        events = aws.client("logs").filter_log_events(logGroupName=group, **more)["events"]
    except botocore.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "ResourceNotFoundException"
        return []
    return [event["message"] for event in events]


def test_a_training_job_runs_on_its_instances(aws, training, s3):
    s3.put_object(Bucket="bucket", Key="data/a/b", Body=b"input")
    script = ('echo "$CURRENT_HOST $WORD loss: 0.25"; cat "$OPT_ML/input/data/train/a/b"; echo; cat '
              '"$OPT_ML/input/config/hyperparameters.json"; echo; echo model > "$OPT_ML/model/m"')
    train(training, script, count=2, Environment={"WORD": "word"}, HyperParameters={"lr": "0.1"},
          Algorithm={"MetricDefinitions": [{"Name": "loss", "Regex": "loss: ([0-9.]+)"}]},
          InputDataConfig=[{"ChannelName": "train", "DataSource": {"S3DataSource": {
              "S3DataType": "S3Prefix", "S3Uri": "s3://bucket/data"}}}], Tags=[{"Key": "run", "Value": "x"}])
    job = ended(training)
    assert job["TrainingJobStatus"] == "Completed" and job["Environment"] == {"WORD": "word"}
    assert [each["Status"] for each in job["SecondaryStatusTransitions"]] == [
        "Starting", "Downloading", "Training", "Uploading", "Completed"]
    said = lines(aws, "/aws/sagemaker/TrainingJobs", "job-1/algo-")
    assert sorted(said) == sorted(["algo-1 word loss: 0.25", "algo-2 word loss: 0.25", "input", "input",
                                   '{"lr": "0.1"}', '{"lr": "0.1"}'])
    assert job["FinalMetricDataList"][0]["Value"] == 0.25 and job["BillableTimeInSeconds"] >= 1
    assert "out/job-1/output/model.tar.gz" in aws.objects("bucket")
    assert training.list_tags(ResourceArn=job["TrainingJobArn"])["Tags"] == [{"Key": "run", "Value": "x"}]
    raw = aws.control("GET", "ledger?since=0")["entries"]
    assert sum(entry["effect"] for entry in raw if entry["operation"] == "CreateTrainingJob") == 1


def test_lines_come_while_it_runs_and_a_stop_is_polite(aws, training):
    train(training, "trap 'echo leaving; exit 0' TERM; echo here; while :; do sleep 0.1; done")
    cli.until(lambda: lines(aws, "/aws/sagemaker/TrainingJobs") == ["here"])
    assert training.describe_training_job(TrainingJobName="job-1")["SecondaryStatus"] == "Training"
    training.stop_training_job(TrainingJobName="job-1")
    job = ended(training)
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert lines(aws, "/aws/sagemaker/TrainingJobs") == ["here", "leaving"]
    assert "status Stopped" in refused(training.stop_training_job, TrainingJobName="job-1")[1]


def test_a_name_is_taken_once(aws, training):
    train(training, "true")
    code, message = refused(train, training, "true")
    assert code == "ResourceInUse" and "already exists" in message
    assert refused(training.describe_training_job, TrainingJobName="none") == (
        "ValidationException", "Requested resource not found.")
    assert aws.effects("CreateTrainingJob") == 1


def test_a_failure_says_why(aws, training):
    train(training, "exit 3", "plain")
    train(training, 'echo "it was me" > "$OPT_ML/output/failure"; exit 1', "told")
    train(training, "sleep 600", "long", Stopping={"MaxRuntimeInSeconds": 1})
    train(training, "true", "nodata", InputDataConfig=[{"ChannelName": "train", "DataSource": {"S3DataSource": {
        "S3DataType": "S3Prefix", "S3Uri": "s3://bucket/none"}}}])
    assert ended(training, "plain")["FailureReason"] == "AlgorithmError: , exit code: 3"
    assert ended(training, "told")["FailureReason"].startswith("AlgorithmError: it was me")
    job = ended(training, "long")
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert ended(training, "nodata")["FailureReason"].startswith("ClientError: Data download failed")


def test_capacity_may_be_missing_and_a_host_may_be_lost(aws, training):
    aws.fault("job_fails", operation="CreateTrainingJob", key="short")
    aws.fault("job_fails", operation="CreateTrainingJob", key="broken", after=0.5,
              reason="InternalServerError: We encountered an internal error.")
    aws.fault("job_interrupted", operation="CreateTrainingJob", key="spot", after=0.5)
    aws.fault("job_pending", operation="CreateTrainingJob", key="late", seconds=0.3)
    train(training, "true", "short")
    train(training, "sleep 60", "broken")
    train(training, 'test -e "$OPT_ML/checkpoints/c" && exit 0; echo x > "$OPT_ML/checkpoints/c"; sleep 60', "spot",
          CheckpointConfig={"S3Uri": "s3://bucket/checkpoints"})
    train(training, "true", "late")
    assert ended(training, "short")["FailureReason"].startswith("CapacityError")
    assert ended(training, "broken")["FailureReason"].startswith("InternalServerError")
    job = ended(training, "spot")
    assert job["TrainingJobStatus"] == "Completed"
    assert [each["Status"] for each in job["SecondaryStatusTransitions"]].count("Interrupted") == 1
    assert "Pending" in [each["Status"] for each in ended(training, "late")["SecondaryStatusTransitions"]]


def test_jobs_are_listed_as_aws_lists_them(aws, training):
    for number in range(3):
        train(training, "true" if number else "exit 1", f"job-{number}")
        ended(training, f"job-{number}")
    pages = [training.list_training_jobs(MaxResults=2, StatusEquals="Failed")]
    pages.append(training.list_training_jobs(MaxResults=2, StatusEquals="Failed", NextToken=pages[0]["NextToken"]))
    assert [[row["TrainingJobName"] for row in page["TrainingJobSummaries"]] for page in pages] == [[], ["job-0"]]


ASKS = """
import json, os, urllib.error, urllib.request as u
assert "AWS_ACCESS_KEY_ID" not in os.environ
url, token = (os.environ[f"AWS_CONTAINER_{name}"] for name in ("CREDENTIALS_FULL_URI", "AUTHORIZATION_TOKEN"))
print(sorted(json.load(u.urlopen(u.Request(url, headers={"Authorization": token})))), flush=True)
try:
    u.urlopen(url)
except urllib.error.HTTPError as error:
    print("without its token:", error.code, flush=True)
print("home:", os.environ["HOME"], flush=True)
print("whole:", sorted(os.environ), flush=True)
"""


def test_a_job_has_keys_of_its_own_and_nothing_of_this_machine(aws, training, tmp_path):
    (tmp_path / "asks.py").write_text(ASKS)
    train(training, f"python3 {tmp_path}/asks.py")
    assert ended(training)["TrainingJobStatus"] == "Completed"
    said = lines(aws, "/aws/sagemaker/TrainingJobs")
    assert "'SecretAccessKey'" in said[0] and said[1] == "without its token: 401", said
    assert said[2] != f"home: {os.environ.get('HOME')}"
    ours = {"PATH", "HOME", "HOSTNAME", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "TRAINING_JOB_NAME",
            "TRAINING_JOB_ARN", "CURRENT_HOST", "OPT_ML", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
    assert set(ast.literal_eval(said[3].removeprefix("whole: "))) <= ours, said[3]
    assert ACCESS not in json.dumps(said)


def test_each_instance_has_a_tree_of_its_own_at_opt_ml(training):
    if not processes.namespaces():
        pytest.skip("this machine allows no mounts of one's own: jobs find their tree by OPT_ML only")
    train(training, 'test -e /opt/ml/input/config/resourceconfig.json && getent hosts algo-2 && '
                    'test "$(ls /opt)" = ml && echo x > /opt/ml/mine && sleep 0.5 && test "$(cat /opt/ml/mine)" = x',
          count=2)
    assert ended(training)["TrainingJobStatus"] == "Completed"


def test_replies_are_such_as_the_model_has_them(aws, training):
    train(training, "true")
    job = ended(training)
    job = json.loads(json.dumps(job, default=lambda when: when.timestamp()))
    del job["ResponseMetadata"]
    problems = []
    shape = services.model("sagemaker").operation_model("DescribeTrainingJob").output_shape
    validate.check_structure(job, shape, "", problems)
    assert problems == []


@pytest.mark.parametrize("more, why", [
    ({"name": "under_score"}, "regular expression"), ({"name": "ends-"}, "regular expression"),
    ({"name": "x" * 64}, "less than or equal to 63"),
    ({"HyperParameters": {"x": "y" * 2501}}, "2500"), ({"HyperParameters": {f"x{n}": "" for n in range(101)}}, "100"),
    ({"Environment": {"X": "y" * 513}}, "512"), ({"Environment": {"not-a-name": ""}}, "regular expression"),
    ({"Environment": {f"X{n}": "" for n in range(101)}}, "100"),
    ({"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}, "Duplicate tag"),
    ({"Tags": [{"Key": "aws:x", "Value": ""}]}, "aws: prefixed"),
    ({"Algorithm": {"AlgorithmName": "x"}}, "Exactly one"),
    ({"Algorithm": {"MetricDefinitions": [{"Name": "a", "Regex": "x" * 501}]}}, "500"),
    ({"Algorithm": {"ContainerEntrypoint": ["x" * 257]}}, "256"),
    ({"InputDataConfig": 2 * [{"ChannelName": "a", "DataSource": {"S3DataSource": {
        "S3DataType": "S3Prefix", "S3Uri": "s3://bucket/a"}}}]}, "must be unique"),
    ({"Resources": {"InstanceGroups": [{"InstanceType": "ml.c5.xlarge", "InstanceCount": 1, "InstanceGroupName": "a"}]}},
     "InstanceGroups, or"),
    ({"Resources": {"VolumeKmsKeyId": "key"}}, "local storage"),
    ({"Resources": {"KeepAlivePeriodInSeconds": 21601}}, "21600"),
    ({"Resources": {"KeepAlivePeriodInSeconds": 60}, "Stopping": {"MaxWaitTimeInSeconds": 600},
      "EnableManagedSpotTraining": True}, "managed spot"),
    ({"Stopping": {"MaxWaitTimeInSeconds": 600}}, "EnableManagedSpotTraining"),
    ({"Stopping": {"MaxPendingTimeInSeconds": 2419201}}, "2419200"),
])
def test_what_sagemaker_would_not_take_is_refused(aws, training, more, why):
    code, message = refused(train, training, "true", **more)
    assert code == "ValidationException" and why in message, message
    assert aws.effects("CreateTrainingJob") == 0


# Batch

@pytest.fixture
def batch(aws):
    client = aws.client("batch")
    client.create_compute_environment(computeEnvironmentName="machines", type="UNMANAGED")
    client.create_job_queue(jobQueueName="queue", priority=1, computeEnvironmentOrder=[
        {"order": 1, "computeEnvironment": "machines"}])
    return client


def define(client, script, name="def", **more):
    container = {"image": "image:1", "command": ["sh", "-c", script], "resourceRequirements": [
        {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "100"}]}
    return client.register_job_definition(jobDefinitionName=name, type="container", containerProperties=container, **more)


def submit(client, name="job", **more):
    return client.submit_job(jobName=name, jobQueue="queue", **{"jobDefinition": "def", **more})["jobId"]


def over(client, job):
    def check():
        found = client.describe_jobs(jobs=[job])["jobs"][0]
        return found if found["status"] in ("SUCCEEDED", "FAILED") else None
    return cli.until(check)


def test_a_batch_job_runs_and_its_lines_can_be_read(aws, batch):
    define(batch, 'echo "$AWS_BATCH_JOB_ATTEMPT $A $B"')
    job = submit(batch, containerOverrides={"environment": [{"name": "A", "value": "a"}]}, tags={"run": "x"})
    found = over(batch, job)
    assert found["status"] == "SUCCEEDED" and found["container"]["exitCode"] == 0 and found["tags"] == {"run": "x"}
    stream = found["container"]["logStreamName"]
    assert stream.startswith("def/default/") and lines(aws, "/aws/batch/job", stream) == ["1 a "]
    assert found["jobDefinition"].endswith("job-definition/def:1")
    assert define(batch, "false")["revision"] == 2
    assert over(batch, submit(batch))["statusReason"] == "Essential container in task exited"


def test_retries_follow_the_rules_of_the_job(batch):
    define(batch, 'test "$AWS_BATCH_JOB_ATTEMPT" = 3 || exit 7')
    rules = [{"onExitCode": "7", "action": "RETRY"}, {"onReason": "*", "action": "EXIT"}]
    found = over(batch, submit(batch, retryStrategy={"attempts": 5, "evaluateOnExit": rules}))
    assert found["status"] == "SUCCEEDED" and [each["container"]["exitCode"] for each in found["attempts"]] == [7, 7, 0]
    stop = [{"onExitCode": "7", "action": "EXIT"}]
    assert len(over(batch, submit(batch, retryStrategy={"attempts": 5, "evaluateOnExit": stop}))["attempts"]) == 1
    assert len(over(batch, submit(batch, retryStrategy={"attempts": 2}))["attempts"]) == 2


def test_a_lost_host_is_told_and_retried(aws, batch):
    define(batch, 'test "$AWS_BATCH_JOB_ATTEMPT" = 2 || sleep 60')
    aws.fault("job_interrupted", operation="SubmitJob", after=0.3)
    rules = [{"onStatusReason": "Host EC2*", "action": "RETRY"}, {"onReason": "*", "action": "EXIT"}]
    found = over(batch, submit(batch, retryStrategy={"attempts": 2, "evaluateOnExit": rules}))
    assert found["status"] == "SUCCEEDED" and found["attempts"][0]["statusReason"].startswith("Host EC2")


def test_a_job_of_several_nodes_is_as_good_as_its_main_node(batch, aws):
    container = {"image": "image:1", "resourceRequirements": [{"type": "VCPU", "value": "1"}, {
        "type": "MEMORY", "value": "100"}], "command": ["sh", "-c", 'echo "$AWS_BATCH_JOB_NODE_INDEX of '
                                                        '$AWS_BATCH_JOB_NUM_NODES"; exit $AWS_BATCH_JOB_NODE_INDEX']}
    batch.register_job_definition(jobDefinitionName="nodes", type="multinode", nodeProperties={
        "numNodes": 2, "mainNode": 0, "nodeRangeProperties": [{"targetNodes": "0:", "container": container}]})
    job = submit(batch, jobDefinition="nodes", nodeOverrides={"numNodes": 3})
    assert over(batch, job)["status"] == "SUCCEEDED"
    nodes = batch.describe_jobs(jobs=[f"{job}#{number}" for number in range(4)])["jobs"]
    assert len(nodes) == 3 and all(node["status"] in ("SUCCEEDED", "FAILED") for node in nodes)
    assert nodes[0]["nodeDetails"]["isMainNode"] and "0 of 3" in lines(aws, "/aws/batch/job")


def test_arrays_and_dependencies(batch):
    define(batch, 'exit ${AWS_BATCH_JOB_ARRAY_INDEX:-0}')
    job = submit(batch, arrayProperties={"size": 3})
    after = submit(batch, "after", dependsOn=[{"jobId": job}])
    assert over(batch, job)["arrayProperties"]["statusSummary"] == {"SUCCEEDED": 1, "FAILED": 2}
    assert over(batch, after)["statusReason"] == "Dependent Job failed"
    assert over(batch, submit(batch, "well", dependsOn=[{"jobId": submit(batch)}]))["status"] == "SUCCEEDED"


def test_cancel_and_terminate_differ(aws, batch):
    define(batch, "trap 'exit 0' TERM; while :; do sleep 0.1; done")
    job = submit(batch)
    cli.until(lambda: batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "RUNNING")
    batch.cancel_job(jobId=job, reason="no")
    time.sleep(0.3)
    assert batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "RUNNING"
    batch.terminate_job(jobId=job, reason="enough")
    found = over(batch, job)
    assert (found["status"], found["statusReason"], found["isTerminated"]) == ("FAILED", "enough", True)
    aws.settings(job_seconds=30)
    job = submit(batch)
    batch.cancel_job(jobId=job, reason="no")
    assert over(batch, job)["isCancelled"]


def test_a_timeout_ends_a_job_for_good(aws, batch):
    aws.settings(time_scale=0.01)
    define(batch, "sleep 60", timeout={"attemptDurationSeconds": 60})
    found = over(batch, submit(batch, retryStrategy={"attempts": 3}))
    assert found["statusReason"] == "Job attempt duration exceeded timeout" and len(found["attempts"]) == 1
    assert "at least 60" in refused(define, batch, "true", timeout={"attemptDurationSeconds": 59})[1]


def test_jobs_are_found_by_name(batch):
    define(batch, "true")
    for name in ("run-a", "RUN-b", "other"):
        over(batch, submit(batch, name))

    def found(**params):
        return [row["jobName"] for row in batch.list_jobs(jobQueue="queue", **params)["jobSummaryList"]]

    assert found() == [], "running ones, unless asked otherwise"
    assert sorted(found(jobStatus="SUCCEEDED")) == ["RUN-b", "other", "run-a"]
    assert sorted(found(filters=[{"name": "JOB_NAME", "values": ["run-*"]}])) == ["RUN-b", "run-a"]
    assert refused(batch.list_jobs)[0] == "ClientException"


@pytest.mark.parametrize("more, why", [
    ({"jobQueue": "none"}, "does not exist"), ({"jobDefinition": "def:9"}, "not found"),
    ({"shareIdentifier": "a"}, "shareIdentifier"), ({"jobName": "a b"}, "valid pattern"),
    ({"containerOverrides": {"environment": [{"name": "AWS_BATCH_X", "value": ""}]}}, "AWS_BATCH"),
    ({"nodeOverrides": {"numNodes": 2}}, "nodeOverrides"), ({"retryStrategy": {"attempts": 11}}, "attempts"),
    ({"containerOverrides": {"command": ["x" * 31000]}}, "30720 bytes"),
    ({"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"onReason": "a-b", "action": "EXIT"}]}}, "pattern")])
def test_what_batch_would_not_take_is_refused(aws, batch, more, why):
    define(batch, "true")
    code, message = refused(batch.submit_job, **{"jobName": "job", "jobQueue": "queue", "jobDefinition": "def", **more})
    assert code == "ClientException" and why in message
    assert aws.effects("SubmitJob") == 0


@pytest.mark.parametrize("more, why", [
    ({"resourceRequirements": 2 * [{"type": "VCPU", "value": "1"}] + [{"type": "MEMORY", "value": "64"}]}, "more than once"),
    ({"resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "64MiB"}]}, "must be a number"),
    ({"resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "2"}]}, "too small"),
    ({"mountPoints": [{"sourceVolume": "data", "containerPath": "/data"}]}, "Unknown volume"),
    ({"volumes": [{"name": "a", "host": {"sourcePath": "/a"}}], "mountPoints": 2 * [
        {"sourceVolume": "a", "containerPath": "/a"}]}, "Duplicate container path"),
    ({"command": ["x" * 24576]}, "24576 bytes"),
])
def test_what_batch_would_not_register_is_refused(aws, batch, more, why):
    container = {"image": "image:1", "resourceRequirements": [
        {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "100"}], **more}
    code, message = refused(batch.register_job_definition, jobDefinitionName="def", type="container",
                            containerProperties=container)
    assert code == "ClientException" and why in message, message
    assert aws.effects("RegisterJobDefinition") == 0


def test_nodes_of_a_job_are_of_one_kind(batch):
    container = {"image": "image:1", "resourceRequirements": [
        {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "100"}]}
    groups = [{"targetNodes": "0", "container": container, "instanceTypes": ["trn1.32xlarge"]},
              {"targetNodes": "1:", "container": container, "instanceTypes": ["trn1.2xlarge"]}]
    code, message = refused(batch.register_job_definition, jobDefinitionName="def", type="multinode",
                            nodeProperties={"numNodes": 2, "mainNode": 0, "nodeRangeProperties": groups})
    assert code == "ClientException" and "same instance type" in message


def test_a_reset_ends_what_runs(aws, batch):
    define(batch, f"exec sleep 12345; echo {REGION}")
    job = submit(batch)
    cli.until(lambda: batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "RUNNING")
    aws.reset()
    assert subprocess.run(["pgrep", "-f", "^sleep 12345"], capture_output=True).stdout == b""
