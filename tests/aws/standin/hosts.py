"""The machines of AWS Batch, as far as somebody asks: each job of one container has one for itself, of which ECS tells, and
which EC2 ends together with the job."""

from standin import batch
from standin.answers import answer
from standin.errors import Refusal


def arn_of(job):
    return f"arn:aws:ecs:{job.region}:{job.account}:container-instance/standin/{job.id.replace('-', '')}"


def instance_of(job):
    return f"i-{job.id.replace('-', '')[:17]}"


def describe(call):
    """ECS: DescribeContainerInstances."""
    jobs = {arn_of(job): job for job in batch.state_of(call).jobs.values()}
    known = [jobs[arn] for arn in call.params["containerInstances"] if arn in jobs]
    return answer(call, {"containerInstances": [
        {"containerInstanceArn": arn_of(job), "ec2InstanceId": instance_of(job), "status": "ACTIVE",
         "runningTasksCount": int(job.status == "RUNNING")} for job in known], "failures": []})


def terminate(call):
    """EC2: TerminateInstances."""
    jobs = {instance_of(job): job for job in batch.state_of(call).jobs.values()}
    for name in call.params["InstanceIds"]:
        if name not in jobs:
            raise Refusal("InvalidInstanceID.NotFound", f"The instance ID '{name}' does not exist", 400)
        jobs[name].lost = call.front.settings["host_words"].format(instance=name)
    call.effect = True
    return answer(call, {"TerminatingInstances": [
        {"InstanceId": name, "CurrentState": {"Code": 32, "Name": "shutting-down"},
         "PreviousState": {"Code": 16, "Name": "running"}} for name in call.params["InstanceIds"]]})
