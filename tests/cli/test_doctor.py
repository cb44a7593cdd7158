"""stoker doctor on this machine: what it finds without a service, its exit codes, and what chooses the checks."""

import json
import os

import pytest
import stoker as cli
from project import Project

STATES = {"ok", "warn", "fail", "unknown"}


@pytest.fixture
def job(tmp_path):
    return Project(tmp_path / "project")


def environment(tmp_path, **more):
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return cli.environment(**{"HOME": str(home), "STOKER_STATE": str(tmp_path / "state"),
                              "AWS_EC2_METADATA_DISABLED": "true", **more})


def doctor(tmp_path, *argv, code=0, env=None):
    result = cli.stoker("--json", "doctor", *argv, env=environment(tmp_path, **(env or {})))
    assert result.code == code, str(result)
    return result.lines


def of(findings, check, **more):
    found = [row for row in findings if row["check"] == check and all(row.get(key) == more[key] for key in more)]
    assert len(found) == 1, (check, findings)
    return found[0]


# --- without a spec ---

def test_without_a_spec_it_is_this_machine_and_these_credentials(tmp_path):
    findings = doctor(tmp_path)
    assert {row["check"] for row in findings} == {
        "here.version", "here.agent", "here.state", "here.disk", "aws.credentials", "aws.region", "aws.endpoints", "aws.proxy",
        "aws.certificates", "aws.account", "aws.clock"}
    assert {row["state"] for row in findings} <= STATES and all(row["seen"] for row in findings)
    assert of(findings, "here.agent")["state"] == "ok"
    assert of(findings, "here.disk")["on"] == str(tmp_path / "state")
    # Who uses no AWS lacks nothing.
    lack = of(findings, "aws.credentials")
    assert lack["state"] == "warn" and "no AWS credentials" in lack["seen"] and "AWS_ACCESS_KEY_ID" in lack["cure"]
    assert of(findings, "aws.account") == {"check": "aws.account", "state": "unknown",
                                           "seen": "not tried: there are no credentials"}
    assert not (tmp_path / "state").exists(), "looking made something"


def test_strict_counts_what_is_not_certain(tmp_path):
    states = [[(row["check"], row["state"]) for row in doctor(tmp_path, *argv, code=code)]
              for argv, code in (((), 0), (("--strict",), 4))]
    assert states[0] == states[1]
    assert doctor(tmp_path, "--strict", "--only", "here.agent")


def test_only_chooses_and_a_name_of_no_check_is_an_error(tmp_path):
    assert [row["check"] for row in doctor(tmp_path, "--only", "here.[av]*")] == ["here.version", "here.agent"]
    result = cli.stoker("doctor", "--only", "bucktes.*", env=environment(tmp_path))
    assert result.code == 2 and "bucktes.*" in result.err and result.cure


def test_for_people_there_is_a_line_a_finding_with_its_cure_and_a_sum(tmp_path):
    result = cli.stoker("doctor", env=environment(tmp_path))
    assert result.code == 0, str(result)
    findings = doctor(tmp_path)
    for row in findings:
        # How much is free on the disk is another number each time.
        assert row["check"] in result.out and (row["check"] == "here.disk" or row["seen"] in result.out), row
        assert row.get("cure", "") in result.out
    counts = {state: sum(row["state"] == state for row in findings) for state in STATES}
    assert result.out.splitlines()[-1] == ", ".join(f"{counts[state]} {state}" for state in ("fail", "warn", "unknown", "ok"))


# --- what is wrong here ---

@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_that_may_not_be_written(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    faulty = {"STOKER_STATE": str(tmp_path / "closed/state")}
    assert of(doctor(tmp_path, "--only", "here.state", code=4, env=faulty), "here.state", state="fail")["cure"]


def test_a_proxys_password_is_not_shown(tmp_path):
    found, = doctor(tmp_path, "--only", "aws.proxy", env={"HTTPS_PROXY": "http://me:secret@proxy:3128"})
    assert "@proxy:3128" in found["seen"] and "secret" not in found["seen"]


# --- with a spec ---

def test_a_spec_of_this_machine_asks_nothing_of_aws(tmp_path, job):
    findings = doctor(tmp_path, job.spec_path)
    assert {row["check"] for row in findings} == {"here.version", "here.agent", "here.tools", "here.state", "here.disk",
                                                  "engine.check"}
    assert of(findings, "engine.check")["state"] == "ok"
    assert {row["on"] for row in findings if row["check"] == "here.disk"} == {
        str(tmp_path / "state"), str(tmp_path / "state/workspace"), str(job.cache)}


def test_an_invalid_spec_is_told_as_by_others(tmp_path, job):
    job.write(hyperparametres={})
    result = cli.stoker("--json", "doctor", job.spec_path, env=environment(tmp_path))
    assert result.code == 3, str(result)
    assert "hyperparametres" in json.dumps(result.lines[0]) and result.lines[-1]["error"]["code"] == 3
    assert cli.stoker("doctor", tmp_path / "none.yaml", env=environment(tmp_path)).code == 3


def test_profiles_and_values_of_the_command_line_count(tmp_path, job):
    job.write(profiles={"lost": {"command": ["no-such-python", "train.py"]}})
    assert doctor(tmp_path, job.spec_path)
    doctor(tmp_path, job.spec_path, "--use", "lost", code=4)
    doctor(tmp_path, job.spec_path, "--set", 'command=["no-such-python"]', code=4)


# --- policies ---

ROLE = "arn:aws:iam::123456789012:role/m5"
SPEC = f"""
version: 1
name: m5
engine: sagemaker
workspace: s3://bucket/stoker
image: debian:12
resources: {{instance: ml.c5.xlarge}}
command: [python3, train.py]
aws: {{region: eu-west-1}}
sagemaker: {{role: "{ROLE}"}}
"""


@pytest.fixture
def spec(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "train.py").touch()
    (folder / "stoker.yaml").write_text(SPEC)
    return folder / "stoker.yaml"


def test_a_policy_and_the_trust_are_printed_as_iam_takes_them(tmp_path, spec):
    result = cli.stoker("doctor", "--policy", "submitter", spec, env=environment(tmp_path))
    assert result.code == 0, str(result)
    policy = json.loads(result.out)
    assert [policy] == doctor(tmp_path, "--policy", "submitter", spec)
    assert policy["Version"] == "2012-10-17" and result.out.startswith('{\n  "Version"')
    assert len({each["Sid"] for each in policy["Statement"]}) == len(policy["Statement"])
    assert "arn:aws:sagemaker:eu-west-1:123456789012:training-job/stk-*" in result.out
    trust = json.loads(cli.stoker("doctor", "--trust", spec, env=environment(tmp_path)).out)
    assert trust[ROLE]["Statement"][0]["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    assert doctor(tmp_path, "--trust", spec) == [{"role": ROLE, "trust": trust[ROLE]}]


def test_a_policy_does_not_need_the_source(tmp_path, spec):
    whole = cli.stoker("doctor", "--policy", "submitter", spec, env=environment(tmp_path)).out
    (spec.parent / "train.py").unlink()
    os.mkfifo(spec.parent / "fifo")  # no source may have one, nor does the spec's own folder matter
    for source in ("{path: ../code, include: ['train/**'], rev: v1}", "{path: .}"):
        spec.write_text(f"{SPEC}source: {source}\ncompile: {{depends_on: [../lib/loss.py]}}\n")
        result = cli.stoker("doctor", "--policy", "submitter", spec, env=environment(tmp_path))
        assert (result.code, result.out) == (0, whole), str(result)
        assert cli.stoker("plan", spec, env=environment(tmp_path)).code in (3, 4)
    assert cli.stoker("doctor", "--trust", spec, env=environment(tmp_path)).code == 0


@pytest.mark.parametrize("argv, words", [
    (["--policy", "job"], "needs a SPEC"), (["--trust"], "needs a SPEC"), (["--policy", "boss", "SPEC"], "boss"),
    *((["--policy", "job", "SPEC", *more], more[0]) for more in (["--only", "bucket.*"], ["--strict"], ["--read-only"],
                                                                 ["--inside"], ["--trust"]))], ids=str)
def test_a_policy_goes_with_no_option_of_findings(tmp_path, spec, argv, words):
    result = cli.stoker("doctor", *(spec if word == "SPEC" else word for word in argv), env=environment(tmp_path))
    assert result.code == 2 and words in result.err and result.out == "", str(result)


def test_a_role_that_the_spec_does_not_have_has_no_policy(tmp_path, spec, job):
    for words, path, said in ((("--policy", "execution"), spec, "one role"), (("--policy", "scheduler"), spec, "scheduler_role"),
                              (("--policy", "job"), job.spec_path, "no role"), (("--trust",), job.spec_path, "has a role"),
                              (("--policy", "submitter"), job.spec_path, "needs a right of AWS")):
        result = cli.stoker("doctor", *words, path, env=environment(tmp_path))
        assert result.code == 4 and said in result.err and result.out == "", str(result)
