"""What the hint of a refusal says cures it. The keys of whoever types begin without any right, and get each statement
that a hint names, at once, until the command succeeds; jobs have roles of their own, which may do everything. Then each
statement is missing in turn: the first hint names exactly it."""

import hints
import pytest
from aws import OTHER_ACCESS, OTHER_SECRET
from batch_job import BatchJob
from sagemaker_job import SagemakerJob
from standin import iam

NARROW = {"AWS_ACCESS_KEY_ID": OTHER_ACCESS, "AWS_SECRET_ACCESS_KEY": OTHER_SECRET}
ROUNDS = 60
# Actions without a type of resource, by AWS's Service Authorization Reference.
UNTYPED = {"batch:ListJobs", "batch:DescribeJobs", "batch:DescribeJobQueues", "batch:DescribeJobDefinitions",
           "batch:DescribeComputeEnvironments"}


class Learner:
    """Types commands with keys that have the statements of `known`, and no other right."""

    def __init__(self, job, *known):
        self.job, self.known = job, list(known)
        self.allow()

    def allow(self):
        policy = {"Version": "2012-10-17", "Statement": self.known}
        self.job.aws.settings(policies={OTHER_ACCESS: policy})

    def learn(self, *argv):
        """Until it succeeds: {name} in the arguments is another one each time. Returns what was learned."""
        before = len(self.known)
        for number in range(ROUNDS):
            learned, said = 0, hints.Hints(self.job, *(str(word).format(name=f"r{number}") for word in argv), env=NARROW)
            for told in said:
                if told not in self.known:
                    self.known.append(told)
                    self.allow()
                    learned += 1
            if said.code == 0:
                return self.known[before:]
            assert learned, f"{argv} ended with {said.code}, and nothing new was told:\n{''.join(said.said)}"
        raise AssertionError(f"{argv}: no end of rights: {self.known}")

    def first(self, *argv):
        """The first statement that its hints name."""
        return hints.first(self.job, *argv, env=NARROW)


def actions(statements):
    return {action for each in statements for action in iam.listed(each["Action"])}


def check(statements):
    """Nothing is wider than it must be."""
    iam.check({"Version": "2012-10-17", "Statement": statements})
    for each in statements:
        assert not any("*" in action for action in iam.listed(each["Action"])), each
        assert each["Resource"] != "*" or actions([each]) <= UNTYPED, each
        assert ("iam:PassRole" in actions([each])) == ("iam:PassedToService" in str(each)), each


BOTH = {"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket", "ecr:BatchGetImage", "iam:PassRole"}
OF = {"batch": (BatchJob, {"batch:ListJobs", "batch:RegisterJobDefinition", "batch:SubmitJob", "batch:TagResource",
                           "batch:DescribeJobs"}, "batch:TerminateJob"),
      "sagemaker": (SagemakerJob, {"sagemaker:CreateTrainingJob", "sagemaker:DescribeTrainingJob", "sagemaker:AddTags"},
                    "sagemaker:StopTrainingJob")}


@pytest.fixture(params=OF)
def job(request, aws, tmp_path):
    made = OF[request.param][0](tmp_path / "project", aws)
    yield made
    made.stop()


@pytest.mark.long
def test_a_run_is_cured_right_by_right_and_names_each_that_is_taken_away(job):
    job.write(tags={"team": "x"})
    learned = Learner(job).learn("run", job.spec_path, "--id", "{name}")
    check(learned)
    assert actions(learned) >= BOTH | OF[job.spec["engine"]][1]
    for number, each in enumerate(learned):
        if job.spec["engine"] == "batch":  # another definition, which has to be registered
            job.write(resources={**job.spec["resources"], "shm": f"{64 + number}MiB"})
        rest = [other for other in learned if other is not each]
        assert Learner(job, *rest).first("run", job.spec_path, "--id", f"without{number}") == each


@pytest.mark.long
def test_other_commands_are_cured_too(job):
    """Of a run that is over; then of one that is stopped and of one that goes on, with what a run needs."""
    base = Learner(job).learn("run", job.spec_path, "--id", "one{name}")
    job.run("--id", "one")
    job.hold("train", 5)
    for name in ("two", "three"):
        driver = job.start("--json", "run", job.spec_path, "--id", name)
        job.wait_for(lambda name=name: any(row["run"] == name for row in job.effects("holds")))
        driver.kill()
        driver.communicate()
    read = {"s3:GetObject", "s3:ListBucket"}
    image, stop = {"ecr:BatchGetImage"}, OF[job.spec["engine"]][2]
    for argv, needed in ((("list",), read), (("status", "one"), read), (("events", "one"), read), (("logs", "one"), read),
                         (("metrics", "one"), read), (("cache", "ls", job.url["cache"]), read),
                         (("cache", "verify", job.url["cache"]), read), (("cache", "why", job.spec_path), image),
                         (("plan", job.spec_path), image)):
        learned = Learner(job).learn(*argv)
        check(learned)
        assert actions(learned) >= needed, argv
    learned = Learner(job, *base).learn("stop", "two")
    check(learned)
    assert actions(learned) == {stop}
    job.gate.touch()
    learner = Learner(job, *base)
    learner.learn("resume", "three", "--lease", "3s")
    check(learner.known)
