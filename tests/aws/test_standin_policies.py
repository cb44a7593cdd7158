"""The stand-in's evaluator of policies, held against the rules that IAM documents, and what S3 answers to whoever may
not list."""

import json

import botocore.exceptions
import pytest
from aws import OTHER_ACCESS, OTHER_SECRET
from standin import iam
from standin.iam import ALLOWED, DENIED, FORBIDDEN

KEY = "arn:aws:s3:::bucket/a/b"


def statement(effect="Allow", action="s3:GetObject", resource=KEY, **more):
    return {"Effect": effect, "Action": action, "Resource": resource, **more}


def policy(*statements):
    return {"Version": "2012-10-17", "Statement": list(statements)}


EVALUATED = {  # statements, action, resource, context → verdict
    "nothing allows it": ([], "s3:GetObject", KEY, {}, DENIED),
    "allowed": ([statement()], "s3:GetObject", KEY, {}, ALLOWED),
    "another action": ([statement()], "s3:PutObject", KEY, {}, DENIED),
    "another resource": ([statement()], "s3:GetObject", KEY + "c", {}, DENIED),
    "a deny wins over any allow": ([statement(), statement("Deny")], "s3:GetObject", KEY, {}, FORBIDDEN),
    "a deny wins though it comes first": ([statement("Deny"), statement()], "s3:GetObject", KEY, {}, FORBIDDEN),
    "a deny of something else": ([statement(), statement("Deny", "s3:PutObject")], "s3:GetObject", KEY, {}, ALLOWED),
    "a deny alone": ([statement("Deny")], "s3:PutObject", KEY, {}, DENIED),
    "actions have no case": ([statement(action="S3:getobject")], "s3:GetObject", KEY, {}, ALLOWED),
    "resources have": ([statement(resource=KEY.upper().replace("ARN:AWS:S3", "arn:aws:s3"))], "s3:GetObject", KEY, {},
                       DENIED),
    "* in an action": ([statement(action="s3:Get*")], "s3:GetObject", KEY, {}, ALLOWED),
    "? in an action": ([statement(action="s3:?etObject")], "s3:GetObject", KEY, {}, ALLOWED),
    "? is one character": ([statement(action="s3:?GetObject")], "s3:GetObject", KEY, {}, DENIED),
    "* is none, too": ([statement(action="s3:GetObject*")], "s3:GetObject", KEY, {}, ALLOWED),
    "* for all actions": ([statement(action="*")], "batch:SubmitJob", KEY, {}, ALLOWED),
    "a list of actions": ([statement(action=["s3:PutObject", "s3:GetObject"])], "s3:GetObject", KEY, {}, ALLOWED),
    "* for all resources": ([statement(resource="*")], "s3:GetObject", KEY, {}, ALLOWED),
    "* goes through slashes": ([statement(resource="arn:aws:s3:::bucket/*")], "s3:GetObject", KEY, {}, ALLOWED),
    "no folder but its keys": ([statement(resource="arn:aws:s3:::bucket/a/*")], "s3:GetObject", "arn:aws:s3:::bucket/a",
                               {}, DENIED),
    "a bucket is none of its keys": ([statement(resource="arn:aws:s3:::bucket")], "s3:GetObject", KEY, {}, DENIED),
    "* stays in its part": ([statement(action="logs:*", resource="arn:aws:*:log-group:g:log-stream:*")],
                            "logs:GetLogEvents", "arn:aws:logs:eu-west-1:123456789012:log-group:g:log-stream:s", {},
                            DENIED),
    "the last part is free": ([statement(action="logs:*", resource="arn:aws:logs:*:*:log-group:g:*")],
                              "logs:GetLogEvents", "arn:aws:logs:eu-west-1:123456789012:log-group:g:log-stream:s", {},
                              ALLOWED),
    "another partition": ([statement(resource="arn:aws-cn:s3:::bucket/a/b")], "s3:GetObject", KEY, {}, DENIED),
    "${*} is an asterisk": ([statement(resource="arn:aws:s3:::bucket/${*}")], "s3:GetObject", "arn:aws:s3:::bucket/*",
                            {}, ALLOWED),
    "${*} is no wildcard": ([statement(resource="arn:aws:s3:::bucket/${*}")], "s3:GetObject", KEY, {}, DENIED),
    "a dot is a dot": ([statement(resource="arn:aws:s3:::bucket/a.b")], "s3:GetObject", KEY, {}, DENIED),
}


def on(operator, key, *values, effect="Allow"):
    return statement(effect, "*", "*", Condition={operator: {key: list(values) if len(values) != 1 else values[0]}})


CONDITIONS = {
    "equals": (on("StringEquals", "s3:prefix", "a/"), {"s3:prefix": "a/"}, ALLOWED),
    "differs": (on("StringEquals", "s3:prefix", "a/"), {"s3:prefix": "a/b"}, DENIED),
    "equals has a case": (on("StringEquals", "s3:prefix", "a/"), {"s3:prefix": "A/"}, DENIED),
    "equals knows no wildcard": (on("StringEquals", "s3:prefix", "a/*"), {"s3:prefix": "a/b"}, DENIED),
    "like": (on("StringLike", "s3:prefix", "a/*"), {"s3:prefix": "a/b/c"}, ALLOWED),
    "like the beginning alone": (on("StringLike", "s3:prefix", "a/*"), {"s3:prefix": "a/"}, ALLOWED),
    "unlike": (on("StringLike", "s3:prefix", "a/*"), {"s3:prefix": "b/a/"}, DENIED),
    "one of several values": (on("StringLike", "s3:prefix", "a/*", "b/*"), {"s3:prefix": "b/c"}, ALLOWED),
    "a missing key": (on("StringLike", "s3:prefix", "*"), {}, DENIED),
    "a missing key, if it exists": (on("StringLikeIfExists", "s3:prefix", "a/*"), {}, ALLOWED),
    "a key that exists": (on("StringLikeIfExists", "s3:prefix", "a/*"), {"s3:prefix": "b"}, DENIED),
    "not equal": (on("StringNotEquals", "s3:prefix", "a"), {"s3:prefix": "b"}, ALLOWED),
    "not equal, missing": (on("StringNotEquals", "s3:prefix", "a"), {}, ALLOWED),
    "not like": (on("StringNotLike", "s3:prefix", "a*"), {"s3:prefix": "ab"}, DENIED),
    "keys have no case": (on("StringEquals", "IAM:passedToService", "x"), {"iam:PassedToService": "x"}, ALLOWED),
    "a tag": (on("StringEquals", "aws:RequestTag/team", "x"), {"aws:RequestTag/team": "x"}, ALLOWED),
    "another tag": (on("StringEquals", "aws:RequestTag/team", "x"), {"aws:RequestTag/other": "x"}, DENIED),
    "a deny whose condition does not hold": (on("StringEquals", "s3:prefix", "a", effect="Deny"), {"s3:prefix": "b"},
                                             DENIED),
    "a deny whose condition holds": (on("StringEquals", "s3:prefix", "a", effect="Deny"), {"s3:prefix": "a"}, FORBIDDEN),
}


@pytest.mark.parametrize("case", EVALUATED)
def test_what_is_allowed_by_statements(case):
    statements, action, resource, context, verdict = EVALUATED[case]
    assert iam.evaluate([iam.check(policy(*statements))], action, resource, context) == verdict


@pytest.mark.parametrize("case", CONDITIONS)
def test_what_is_allowed_under_conditions(case):
    found, context, verdict = CONDITIONS[case]
    assert iam.evaluate([iam.check(policy(found))], "s3:ListBucket", "arn:aws:s3:::bucket", context) == verdict


def test_all_operators_and_keys_must_hold_and_policies_add_up():
    both = statement("Allow", "*", "*", Condition={"StringEquals": {"s3:prefix": "a", "iam:PassedToService": "b"},
                                                   "StringLike": {"aws:RequestTag/c": "d*"}})
    whole = {"s3:prefix": "a", "iam:PassedToService": "b", "aws:RequestTag/c": "dd"}
    assert iam.evaluate([policy(both)], "s3:ListBucket", KEY, whole) == ALLOWED
    for name in whole:
        assert iam.evaluate([policy(both)], "s3:ListBucket", KEY, {**whole, name: "other"}) == DENIED
    assert iam.evaluate([policy(both), policy(statement("Deny"))], "s3:GetObject", KEY, whole) == FORBIDDEN
    assert iam.evaluate([policy(), policy(statement())], "s3:GetObject", KEY) == ALLOWED


@pytest.mark.parametrize("wrong", [
    {"Statement": []}, {"Version": "2008-10-17", "Statement": []}, policy({"Effect": "Allow", "Action": "s3:GetObject"}),
    policy(statement("allow")), policy(statement(action="GetObject")), policy(statement(resource="bucket/a")),
    policy(statement(NotAction="s3:GetObject")), policy(statement(Sid="a-b")), policy(statement(action=[])),
    policy(statement(Sid="a"), statement(Sid="a")), policy(statement(resource="arn:aws:s3:::${aws:username}/*")),
    policy(on("StringEquals", "aws:SourceIp", "1")), policy(on("Bool", "s3:prefix", "true")),
], ids=str)
def test_what_nobody_would_read_is_not_taken(aws, wrong):
    with pytest.raises(ValueError):
        iam.check(wrong)
    with pytest.raises(ValueError):
        aws.settings(policies={OTHER_ACCESS: wrong})


def client(aws, service="s3"):
    return aws.client(service, OTHER_ACCESS, OTHER_SECRET)


def code(call, **params):
    """The service's word; "" if it was done."""
    try:
        call(**params)
    except botocore.exceptions.ClientError as error:
        return error.response["Error"]["Code"]
    return ""


def test_a_missing_key_is_403_without_the_right_to_list(aws, s3):
    s3.put_object(Bucket="bucket", Key="there", Body=b"x")
    get = statement(action="s3:GetObject", resource="arn:aws:s3:::bucket/*")
    other = client(aws)
    assert code(other.get_object, Bucket="bucket", Key="missing") == "NoSuchKey", "who has no policy may do everything"
    aws.settings(policies={OTHER_ACCESS: policy(get)})
    assert code(other.get_object, Bucket="bucket", Key="there") == ""
    assert code(other.get_object, Bucket="bucket", Key="missing") == "AccessDenied"
    assert code(other.head_object, Bucket="bucket", Key="missing") == "403"
    assert code(other.copy_object, Bucket="bucket", Key="to", CopySource="bucket/there") == "AccessDenied"
    aws.settings(policies={OTHER_ACCESS: policy(get, statement(action="s3:ListBucket", resource="arn:aws:s3:::bucket"))})
    assert code(other.get_object, Bucket="bucket", Key="missing") == "NoSuchKey"
    assert code(other.head_object, Bucket="bucket", Key="missing") == "404"
    aws.settings(policies={OTHER_ACCESS: policy(get, statement(action="s3:ListBucket", resource="arn:aws:s3:::bucket",
                                                               Condition={"StringLike": {"s3:prefix": "a/*"}}))})
    assert code(other.head_object, Bucket="bucket", Key="a/missing") == "403"
    assert code(other.list_objects_v2, Bucket="bucket", Prefix="a/b") == ""
    assert code(other.list_objects_v2, Bucket="bucket", Prefix="b/") == "AccessDenied"
    assert code(other.list_objects_v2, Bucket="bucket") == "AccessDenied"


def test_a_condition_on_the_etag_reads_and_a_refused_write_changes_nothing(aws, s3):
    tag = s3.put_object(Bucket="bucket", Key="k", Body=b"x")["ETag"]
    put = statement(action=["s3:PutObject", "s3:DeleteObject"], resource="arn:aws:s3:::bucket/*")
    aws.settings(policies={OTHER_ACCESS: policy(put)})
    other = client(aws)
    assert code(other.put_object, Bucket="bucket", Key="k", Body=b"y", IfMatch=tag) == "AccessDenied"
    assert code(other.delete_object, Bucket="bucket", Key="k", IfMatch=tag) == "AccessDenied"
    assert aws.objects("bucket") == {"k": b"x"}
    assert code(other.put_object, Bucket="bucket", Key="new", Body=b"y", IfNoneMatch="*") == ""
    aws.settings(policies={OTHER_ACCESS: policy(put, statement(resource="arn:aws:s3:::bucket/*"))})
    assert code(other.put_object, Bucket="bucket", Key="k", Body=b"y", IfMatch=tag) == ""


def test_whose_policy_it_is(aws, s3):
    """An access key's, a user's, or that of the role behind passing keys."""
    role = "arn:aws:iam::123456789012:role/reader"
    keys = aws.client("sts").assume_role(RoleArn=role, RoleSessionName="one")["Credentials"]
    passing = aws.client("s3", keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
    assert code(passing.list_objects_v2, Bucket="bucket") == ""
    aws.settings(policies={role: policy()})
    assert code(passing.list_objects_v2, Bucket="bucket") == "AccessDenied"
    assert code(client(aws).list_objects_v2, Bucket="bucket") == ""
    aws.settings(policies={"arn:aws:iam::123456789012:user/tester": policy()})
    assert code(client(aws).list_objects_v2, Bucket="bucket") == "AccessDenied"
    assert code(client(aws, "sts").get_caller_identity) == "", "nobody has to be allowed to ask who he is"
    aws.settings(policies={role: [policy(), policy(statement(action="s3:ListBucket", resource="arn:aws:s3:::bucket"))]})
    assert code(passing.list_objects_v2, Bucket="bucket") == ""


def test_a_role_and_tags_need_rights_of_their_own(aws):
    role, job = "arn:aws:iam::123456789012:role/worker", "arn:aws:sagemaker:eu-west-1:123456789012:training-job/job-*"
    shape = {"AlgorithmSpecification": {"TrainingImage": "image:1", "TrainingInputMode": "File"}, "RoleArn": role,
             "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
             "ResourceConfig": {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 1, "VolumeSizeInGB": 100},
             "StoppingCondition": {"MaxRuntimeInSeconds": 3600}, "Tags": [{"Key": "team", "Value": "x"}]}
    create = statement(action="sagemaker:CreateTrainingJob", resource=job)
    tags = statement(action="sagemaker:AddTags", resource=job,
                     Condition={"StringEquals": {"aws:RequestTag/team": "x"}})
    passing = statement(action="iam:PassRole", resource=role,
                        Condition={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}})
    sagemaker = client(aws, "sagemaker")
    for number, (lacks, statements) in enumerate({
            "sagemaker:CreateTrainingJob": [tags, passing], "sagemaker:AddTags": [create, passing],
            "iam:PassRole": [create, tags]}.items()):
        aws.settings(policies={OTHER_ACCESS: policy(*statements)})
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            sagemaker.create_training_job(TrainingJobName=f"job-{number}", **shape)
        error = caught.value.response["Error"]
        assert error["Code"] == "AccessDeniedException" and f"perform: {lacks} on resource: arn:aws:" in error["Message"]
    aws.settings(policies={OTHER_ACCESS: policy(create, tags, json.loads(json.dumps(passing).replace("sage", "page")))})
    assert code(sagemaker.create_training_job, TrainingJobName="job-8", **shape) == "AccessDeniedException"
    assert aws.effects("CreateTrainingJob") == 0
    aws.settings(policies={OTHER_ACCESS: policy(create, tags, passing)})
    assert code(sagemaker.create_training_job, TrainingJobName="job-9", **shape) == ""
