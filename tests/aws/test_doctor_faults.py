"""Each fault of planted.py is found before anything is submitted, is refused by `run` in the same words where `run` checks
it, and is gone once its cure is applied. Each row of the table of checks has one at least."""

import re
from pathlib import Path

import pytest
from examined import FOLDER
from planted import ENGINES, GROUPS, here, nodes, sagemaker
from planting import Patient
from project import SUPPORT

ROOT = SUPPORT.parents[1]
CHECKS = ROOT / "jobs/run/doctor/checks.def"
ROW = re.compile(r'^CHECK\("([\w.]+)",\s*\w+,\s*\w+,\s*(?:NULL|ASKS\([^)]*\)),\s*(?:NULL|"([\w ]+)")', re.MULTILINE)
ASKS = re.compile(ROW.pattern.replace("(?:NULL|ASKS", "(NULL|ASKS"), re.MULTILINE)
# Those of roles have a file of their own.
ROLES = re.compile(r'"(role\.\w+)", state="fail"|found\("(role\.\w+)"')


def look(patient, code):
    """What doctor finds; it does nothing but probe."""
    job, since = patient.job, patient.job.aws.mark()
    findings = job.doctor(env=patient.env, code=code)
    done = [row for row in job.aws.ledger(since) if row["effect"] and row["service"] != "sts"]
    assert all(row["service"] == "s3" and f"/{FOLDER}" in row["name"] for row in done), done
    return findings


def wrong(findings, fault):
    found = [row for row in findings if row["check"] == fault.check and row.get("on", "").endswith(fault.on)
             and row["state"] == fault.state and fault.words in row["seen"]]
    assert len(found) == 1, (fault, findings)
    assert found[0]["cure"], found
    return found[0]


# What differs each time: keys of probes, and requests.
NONCE = re.compile(r"\.stoker-doctor/[\w-]+/probe|stoker-probe-\w*|request [\w-]+(, \S+=)?")


def refuse(patient, rows):
    """`run` refuses with one of them, which is returned."""
    since = patient.job.aws.mark()
    result = patient.job.run(env=patient.env, code=None)
    assert result.code in (3, 4), str(result)
    assert not [row for row in patient.job.aws.ledger(since) if "body" in row], "a job was begun"
    told = [pair for pair in rows if NONCE.sub("", pair[1]["seen"]) in NONCE.sub("", result.err)]
    assert told, f"{rows}\n{result}"
    return told[0]


@pytest.mark.parametrize("what", GROUPS)
def test_planted_faults_are_found_and_cured(aws, tmp_path, what):
    group = GROUPS[what]
    patient = Patient(group.set_up(aws, tmp_path / "project"))
    for fault in group.faults:
        fault.plant(patient)
    findings = look(patient, 4 if any(fault.state == "fail" for fault in group.faults) else 0)
    rows = [(fault, wrong(findings, fault)) for fault in group.faults]
    known = {(row["check"].split(".")[0], row.get("on")) for _, row in rows}
    if not group.spreads:
        others = [row for row in findings if row["state"] in ("fail", "warn")
                  and (row["check"].split(".")[0], row.get("on")) not in known]
        assert others == []
    refused = [pair for pair in rows if pair[0].is_refused]
    while refused:
        fault, row = refuse(patient, refused)
        fault.cure(patient, row)
        refused.remove((fault, row))
        rows.remove((fault, row))
    for fault, row in rows:
        fault.cure(patient, row)
    assert [row for row in look(patient, 0) if row["state"] != "ok"] == []
    assert patient.job.probes() == [], "what was left by who might not delete is removed by the next"
    patient.stop()


def test_each_check_has_a_fault():
    """Checks that differ by engine have one on each."""
    rows = ROW.findall(CHECKS.read_text())
    assert len(rows) == CHECKS.read_text().count('\nCHECK("')
    text = (Path(__file__).parent / "test_doctor_roles.py").read_text()
    planted = [(fault.check, ENGINES[group.set_up]) for group in GROUPS.values() for fault in group.faults]
    planted += [(name, engine) for pair in ROLES.findall(text) for name in pair for engine in ("batch", "sagemaker")]
    assert [row for row in rows if not any(
        name == row[0] and (not row[1] or engine in row[1].split()) for name, engine in planted)] == []
    assert sum(len(group.faults) for group in GROUPS.values()) >= 45


# --- services that say nothing ---

SERVICE = dict(re.findall(r"^OPERATION\((\w+), (\w+),", (ROOT / "aws/operations.def").read_text(), re.MULTILINE))
SILENT = {"batch": nodes, "ec2": nodes, "ecr": nodes, "servicequotas": sagemaker, "sts": nodes, "s3": here}
NOT_HERE = {"iam"}  # with the checks of roles


def asking():
    """(check, engines, services that it asks) of each row."""
    for name, asks, engines in ASKS.findall(CHECKS.read_text()):
        yield name, engines, {SERVICE[each].lower().replace("quotas", "servicequotas") for each in re.findall(
            r"AWS_(\w+)", asks)}


@pytest.mark.parametrize("service", SILENT)
def test_a_silent_service_costs_its_own_findings_alone(aws, tmp_path, service):
    job, engine = SILENT[service](aws, tmp_path / "project"), ENGINES[SILENT[service]]
    aws.fault("hang", service=service, count=0, seconds=3600)
    findings = job.doctor()
    assert {row["check"] for row in findings if row["state"] != "ok"} == {
        name for name, engines, services in asking() if service in services and engine in (engines or engine)}
    assert {row["state"] for row in findings} == {"ok", "unknown"}
    job.stop()
    assert job.probes() == []


def test_each_service_is_silent_once():
    assert {*SILENT} | NOT_HERE == set().union(*(services for _, _, services in asking()))
