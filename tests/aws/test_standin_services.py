"""Services other than S3: requests outside the official models are refused with the place
of the mistake, duplicates are refused as AWS does, and keys come from where machines,
containers and people get them."""

import base64
import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import botocore.exceptions
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from aws import ACCESS, REGION, SECRET

TRAINING = {
    "TrainingJobName": "job-1", "RoleArn": "arn:aws:iam::123456789012:role/worker",
    "AlgorithmSpecification": {"TrainingImage": "image:1", "TrainingInputMode": "File"},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 2, "VolumeSizeInGB": 100},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600}}


def without(shape, *path, **more):
    """A copy with one field taken out, or set."""
    copy = json.loads(json.dumps(shape))
    inner = copy
    for name in path[:-1]:
        inner = inner[name]
    if path and not more:
        del inner[path[-1]]
    if more:
        inner = copy
        for name in path:
            inner = inner[name]
        inner.update(more)
    return copy


def refused(call, *args, **kwargs):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(*args, **kwargs)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def raw(aws, service, body, path="/", **headers):
    """Signed properly, whatever it holds: botocore itself would not send it."""
    request = AWSRequest("POST", aws.url + path, {name.replace("_", "-"): value for name, value in headers.items()},
                         body)
    SigV4Auth(Credentials(ACCESS, SECRET), service, REGION).add_auth(request)
    sent = urllib.request.Request(request.url, body, dict(request.headers), method="POST")
    try:
        with urllib.request.urlopen(sent) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def sagemaker(aws, operation, params):
    return raw(aws, "sagemaker", json.dumps(params).encode(), Content_Type="application/x-amz-json-1.1",
               X_Amz_Target=f"SageMaker.{operation}")


@pytest.mark.parametrize("params, problem", [
    (without(TRAINING, "RoleArn"), "Value null at 'RoleArn'"),
    (without(TRAINING, Enviroment={}), "Unknown parameter: 'Enviroment'"),
    (without(TRAINING, "ResourceConfig", Count=2), "Unknown parameter: 'ResourceConfig.Count'"),
    (without(TRAINING, TrainingJobName="job_1"), "regular expression pattern"),
    (without(TRAINING, TrainingJobName="x" * 64), "length less than or equal to 63"),
    (without(TRAINING, "AlgorithmSpecification", TrainingInputMode="Fileee"), "enum value set: [Pipe, File, FastFile]"),
    (without(TRAINING, "ResourceConfig", InstanceCount="2"), "'ResourceConfig.InstanceCount' is not of type integer"),
    (without(TRAINING, "ResourceConfig", InstanceCount=True), "'ResourceConfig.InstanceCount' is not of type integer"),
    (without(TRAINING, "ResourceConfig", InstanceCount=-1), "value greater than or equal to 0"),
    (without(TRAINING, "ResourceConfig", KeepAlivePeriodInSeconds=21601), "value less than or equal to 21600"),
    (without(TRAINING, Environment={"A": "x" * 513}), "length less than or equal to 512"),
    (without(TRAINING, Environment={"1A": "x"}), "'Environment.1A.key'"),
    (without(TRAINING, Environment=["A"]), "'Environment' is not a map"),
    (without(TRAINING, Tags={"a": "b"}), "'Tags' is not a list"),
    (without(TRAINING, Tags=[{"Key": "a"}]), "Value null at 'Tags.1.member.Value'"),
    ([1], "no JSON object")])
def test_what_the_model_does_not_allow_is_refused_with_its_place(aws, params, problem):
    status, said = sagemaker(aws, "CreateTrainingJob", params)
    found = json.loads(said)
    assert status == 400 and found["__type"].endswith("ValidationException") and problem in found["message"]
    assert aws.effects() == 0


def test_all_mistakes_are_told_at_once(aws):
    wrong = without(without(TRAINING, "RoleArn"), TrainingJobName="a_b", Nonsense=1)
    assert "3 validation errors detected" in sagemaker(aws, "CreateTrainingJob", wrong)[1]


@pytest.mark.parametrize("service, body, headers, code", [
    ("sagemaker", b"{}", {"X_Amz_Target": "SageMaker.MakeCoffee"}, "UnknownOperationException"),
    ("sagemaker", b"{}", {"X_Amz_Target": "Logs_20140328.ListTrainingJobs"}, "UnknownOperationException"),
    ("sagemaker", b"{nonsense", {"X_Amz_Target": "SageMaker.ListTrainingJobs"}, "ValidationException"),
    ("sts", b"Action=MakeCoffee&Version=2011-06-15", {}, "InvalidAction"),
    ("sts", b"Action=GetCallerIdentity&Version=2020-01-01", {}, "InvalidAction"),
    ("sts", b"Action=GetCallerIdentity&Version=2011-06-15&Nonsense=1", {}, "ValidationError"),
    ("sts", b"Action=AssumeRole&Version=2011-06-15&RoleSessionName=x", {}, "ValidationError"),
    ("sts", b"Action=AssumeRole&Version=2011-06-15&RoleSessionName=a%20b&RoleArn=arn:aws:iam::123456789012:role/x", {},
     "ValidationError"),
    ("nonsense", b"{}", {"X_Amz_Target": "Nonsense.Do"}, "UnknownOperationException")])
def test_what_no_service_knows_is_refused_in_its_protocol(aws, service, body, headers, code):
    kind = "application/x-www-form-urlencoded; charset=utf-8" if service == "sts" else "application/x-amz-json-1.1"
    status, said = raw(aws, service, body, Content_Type=kind, **headers)
    assert status == 400 and (f"<Code>{code}</Code>" in said if service == "sts" else f"#{code}" in said), said


def test_paths_and_bodies_of_rest_services_are_validated(aws):
    def batch(path, params):
        return raw(aws, "batch", json.dumps(params).encode(), path, Content_Type="application/json")

    assert batch("/v1/submitjob", {"jobName": "x", "jobQueue": "q"})[0] == 400
    assert "jobDefinition" in batch("/v1/submitjob", {"jobName": "x", "jobQueue": "q"})[1]
    assert "Unknown parameter: 'nonsense'" in batch("/v1/describejobs", {"jobs": ["a"], "nonsense": 1})[1]
    assert "Unknown parameter in the query" in batch("/v1/describejobs?a=b", {"jobs": ["a"]})[1]
    assert batch("/v1/nonsense", {})[0] == 404
    assert batch("/v1/describejobs", {"jobs": ["a"]}) == (200, '{"jobs": []}')


def test_s3_takes_no_header_parameter_or_document_that_it_does_not_know(aws, s3):
    def put(event, change):
        client = aws.client("s3")
        client.meta.events.register(f"before-sign.s3.{event}", lambda request, **_: change(request))
        return client

    def header(request):
        request.headers["x-amz-nonsense"] = "x"

    def query(request):
        request.url += "?nonsense=1"

    assert "x-amz-nonsense" in refused(put("PutObject", header).put_object, Bucket="bucket", Key="k", Body=b"")[1]
    assert "nonsense" in refused(put("PutObject", query).put_object, Bucket="bucket", Key="k", Body=b"")[1]
    assert "enum value set" in refused(s3.put_object, Bucket="bucket", Key="k", Body=b"", StorageClass="CHEAP")[1]
    upload = s3.create_multipart_upload(Bucket="bucket", Key="k")["UploadId"]
    where = f"{aws.url}/bucket/k?uploadId={upload}"
    for body, problem in ((b"<Nonsense/>", "root"), (b"<CompleteMultipartUpload><Piece/></CompleteMultipartUpload>",
                                                    "Piece"), (b"<Comp", "no XML")):
        from botocore.auth import S3SigV4Auth
        request = AWSRequest("POST", where, data=body)
        S3SigV4Auth(Credentials(ACCESS, SECRET), "s3", REGION).add_auth(request)
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(where, body, dict(request.headers), method="POST"))
        assert problem in caught.value.read().decode()
    assert aws.effects("PutObject") == 0


def test_duplicates_are_refused_as_aws_does(aws):
    logs, secrets = aws.client("logs"), aws.client("secretsmanager")
    logs.create_log_group(logGroupName="group")
    assert refused(logs.create_log_group, logGroupName="group")[0] == "ResourceAlreadyExistsException"
    secrets.create_secret(Name="secret", SecretString="x")
    assert refused(secrets.create_secret, Name="secret", SecretString="x")[0] == "ResourceExistsException"
    model = {"ModelName": "model", "ExecutionRoleArn": "arn:aws:iam::123456789012:role/worker"}
    sagemaker = aws.client("sagemaker")
    sagemaker.create_model(**model)
    assert refused(sagemaker.create_model, **model)[0] == "ValidationException"
    sagemaker.delete_model(ModelName="model")
    sagemaker.create_model(**model)
    s3 = aws.client("s3")
    aws.make_bucket("bucket")
    assert refused(s3.create_bucket, Bucket="bucket", CreateBucketConfiguration={
        "LocationConstraint": REGION})[0] == "BucketAlreadyOwnedByYou"


def test_secrets_parameters_and_logs_are_there(aws):
    aws.client("secretsmanager").create_secret(Name="secret", SecretString='{"a": "b"}')
    assert aws.client("secretsmanager").get_secret_value(SecretId="secret")["SecretString"] == '{"a": "b"}'
    aws.client("ssm").put_parameter(Name="/p/q", Value="v", Type="SecureString")
    assert aws.client("ssm").get_parameter(Name="/p/q", WithDecryption=True)["Parameter"]["Value"] == "v"
    logs = aws.client("logs")
    logs.create_log_group(logGroupName="g")
    logs.create_log_stream(logGroupName="g", logStreamName="s")
    now = int(time.time() * 1000)
    logs.put_log_events(logGroupName="g", logStreamName="s", logEvents=[
        {"timestamp": now + number, "message": f"line {number}"} for number in range(5)])
    page = logs.get_log_events(logGroupName="g", logStreamName="s", startFromHead=True)
    assert [event["message"] for event in page["events"]] == [f"line {number}" for number in range(5)]
    again = logs.get_log_events(logGroupName="g", logStreamName="s", startFromHead=True,
                                nextToken=page["nextForwardToken"])
    assert again["events"] == [] and again["nextForwardToken"] == page["nextForwardToken"]
    assert refused(logs.get_log_events, logGroupName="none", logStreamName="s")[0] == "ResourceNotFoundException"


# Where keys come from

def get(url, method="GET", body=None, **headers):
    request = urllib.request.Request(url, body, {name.replace("_", "-").replace("sso-bearer-token", "sso_bearer_token"): value
                                                 for name, value in headers.items()},
                                     method=method)
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def passes(aws, access, secret, token):
    try:
        aws.client("s3", access, secret, token).list_buckets()
        return True
    except botocore.exceptions.ClientError:
        return False


def test_a_machine_has_keys_for_who_shows_a_token(aws):
    assert get(f"{aws.url}/latest/api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="60")[0] == 404
    aws.settings(imds={"role": "node", "seconds": 120})
    where = f"{aws.url}/latest/meta-data/iam/security-credentials/"
    assert get(where)[0] == 401 and get(where, X_aws_ec2_metadata_token="wrong")[0] == 401
    assert get(f"{aws.url}/latest/api/token", "PUT")[0] == 400
    status, token = get(f"{aws.url}/latest/api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="60")
    assert status == 200 and get(where, X_aws_ec2_metadata_token=token) == (200, "node")
    keys = json.loads(get(where + "node", X_aws_ec2_metadata_token=token)[1])
    assert keys["Code"] == "Success" and passes(aws, keys["AccessKeyId"], keys["SecretAccessKey"], keys["Token"])
    aws.settings(clock_offset=121)
    assert not passes(aws, keys["AccessKeyId"], keys["SecretAccessKey"], keys["Token"])


def test_a_container_has_keys_for_who_is_authorized(aws):
    where = f"{aws.url}/v2/credentials/some-id"
    assert get(where)[0] == 404
    aws.settings(container={"authorization": "Bearer x", "seconds": 3600})
    assert get(where)[0] == 401
    keys = json.loads(get(where, Authorization="Bearer x")[1])
    assert passes(aws, keys["AccessKeyId"], keys["SecretAccessKey"], keys["Token"])


def test_a_person_has_keys_by_single_sign_on_and_the_session_is_renewed(aws):
    aws.settings(sso={"tokens": {"good": time.time() + 3600, "old": time.time() - 1},
                      "roles": [["123456789012", "Admin"]], "refresh": {"renew": "client"}, "seconds": 3600})
    where = f"{aws.url}/federation/credentials?"
    good = urllib.parse.urlencode({"role_name": "Admin", "account_id": "123456789012"})
    assert get(where + good, X_amz_sso_bearer_token="old")[0] == 401
    assert get(where + good.replace("Admin", "Other"), X_amz_sso_bearer_token="good")[0] == 403
    keys = json.loads(get(where + good, X_amz_sso_bearer_token="good")[1])["roleCredentials"]
    assert keys["expiration"] > time.time() * 1000
    assert passes(aws, keys["accessKeyId"], keys["secretAccessKey"], keys["sessionToken"])
    asked = {"grantType": "refresh_token", "clientId": "client", "clientSecret": "s", "refreshToken": "renew"}
    status, said = get(f"{aws.url}/token", "POST", json.dumps(asked).encode(), Content_Type="application/json")
    token = json.loads(said)["accessToken"]
    assert status == 200 and get(where + good, X_amz_sso_bearer_token=token)[0] == 200
    asked["refreshToken"] = "nonsense"
    assert get(f"{aws.url}/token", "POST", json.dumps(asked).encode(), Content_Type="application/json")[0] == 400


def test_a_role_may_be_tied_to_conditions_and_to_a_web_identity(aws):
    role = "arn:aws:iam::111122223333:role/closed"
    aws.settings(roles={role: {"external_id": "xyz"}}, web_identity={"good.token": "good", "old.token": "expired"},
                 sts_seconds=500)
    sts = aws.client("sts")
    assert refused(sts.assume_role, RoleArn=role, RoleSessionName="me")[0] == "AccessDenied"
    before = time.time()
    keys = sts.assume_role(RoleArn=role, RoleSessionName="me", ExternalId="xyz")["Credentials"]
    assert before + 499 <= keys["Expiration"].timestamp() <= time.time() + 500
    chained = aws.client("sts", keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
    other = "arn:aws:iam::123456789012:role/other"
    assert refused(chained.assume_role, RoleArn=other, RoleSessionName="me", DurationSeconds=7200)[0] == "ValidationError"
    web = {"RoleArn": other, "RoleSessionName": "me"}
    keys = sts.assume_role_with_web_identity(**web, WebIdentityToken="good.token")["Credentials"]
    assert passes(aws, keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
    assert refused(sts.assume_role_with_web_identity, **web, WebIdentityToken="old.token")[0] == "ExpiredTokenException"
    assert refused(sts.assume_role_with_web_identity, **web, WebIdentityToken="forged")[0] == "InvalidIdentityToken"


def test_no_secret_stands_in_the_ledger(aws):
    aws.settings(web_identity={"canary-token": "good"})
    keys = aws.client("sts").assume_role_with_web_identity(
        RoleArn="arn:aws:iam::123456789012:role/x", RoleSessionName="me", WebIdentityToken="canary-token")["Credentials"]
    aws.client("s3", keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"]).list_buckets()
    text = json.dumps(aws.ledger())
    assert "canary-token" not in text and keys["SecretAccessKey"] not in text and keys["SessionToken"] not in text


def test_it_speaks_tls_with_a_certificate_of_the_tests(tmp_path):
    from aws import Aws
    pem = tmp_path / "both.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                    "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                    str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")], check=True, capture_output=True)
    pem.write_bytes((tmp_path / "key.pem").read_bytes() + (tmp_path / "cert.pem").read_bytes())
    aws = Aws(tmp_path, certificate=pem)
    try:
        aws.make_bucket("bucket")  # over TLS botocore streams in chunks, with a trailer
        s3 = aws.client("s3")
        s3.put_object(Bucket="bucket", Key="key", Body=b"x" * 100000)
        assert aws.ledger()[-1]["payload"].startswith("STREAMING-") or aws.ledger()[-1]["payload"] == "UNSIGNED-PAYLOAD"
        assert s3.get_object(Bucket="bucket", Key="key", ChecksumMode="ENABLED")["Body"].read() == b"x" * 100000
        done = aws.cli("s3", "ls", "s3://bucket", env={"AWS_CA_BUNDLE": tmp_path / "cert.pem"})
        assert "100000 key" in done.stdout
    finally:
        aws.stop()


def test_it_ends_with_whoever_started_it(tmp_path):
    from aws import Aws
    aws = Aws(tmp_path)
    aws.make_bucket("bucket")
    aws.client("s3").put_object(Bucket="bucket", Key="key", Body=b"x" * 500000)
    aws.process.stdin.close()
    assert aws.process.wait(10) == 0
    assert list(tmp_path.iterdir()) == []
    aws.process.stdout.close()


def test_base64_and_bytes_are_told_apart(aws):
    body = json.dumps({"Name": "s", "SecretBinary": "no base64!"}).encode()
    said = raw(aws, "secretsmanager", body, Content_Type="application/x-amz-json-1.1",
               X_Amz_Target="secretsmanager.CreateSecret")
    assert said[0] == 400 and "base64" in said[1]
    assert aws.client("secretsmanager").create_secret(Name="s", SecretBinary=base64.b64encode(b"x"))["Name"] == "s"
