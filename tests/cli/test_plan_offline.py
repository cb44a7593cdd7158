"""plan --offline: whoever makes such a plan is killed at its first socket, and reads no credentials."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import stoker as cli
import yaml
from project import SUPPORT

NO_SOCKETS = (sys.executable, str(SUPPORT / "no_sockets.py"))
DIGEST = "sha256:" + "0" * 64
FAR = {"version": 1, "name": "far", "engine": "batch", "workspace": "s3://bucket/stoker",
       "command": ["python3", "train.py"],
       "batch": {"job_queue": "queue", "job_role": "arn:aws:iam::123456789012:role/job"},
       "image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/image:1", "resources": {"instance": "trn1.2xlarge"},
       "source": {"path": ".", "include": ["*.py"]}, "aws": {"region": "us-west-2"},
       "hyperparameters": {"max_steps": 20},
       "compile": {"kind": "jax", "cache_url": "s3://bucket/cache", "max_steps": 2}}
SAGEMAKER = {"engine": "sagemaker", "batch": None, "resources": {"instance": "ml.trn1.2xlarge"},
             "sagemaker": {"role": "arn:aws:iam::123456789012:role/sagemaker"}}
TOOLKIT = {**SAGEMAKER, "sagemaker": {**SAGEMAKER["sagemaker"], "launcher": "toolkit"},
           "compile": {**FAR["compile"], "kind": "neuron"}}


def offline(project, *argv, code=0, **env):
    result = project.stoker(*argv, "--offline", env=env, prefix=NO_SOCKETS)
    assert result.code == code, str(result)
    return result


def planned(project, *argv, **env):
    line, = offline(project, "--json", "plan", project.spec_path, "--requests", *argv, **env).lines
    marks = {row["mark"] for row in line["placeholders"]}
    assert set(re.findall(r"<[a-z0-9-]+>", json.dumps(line["requests"]))) == {mark for mark in marks if mark[0] == "<"}
    return line


def unknown(line):
    return {row["what"]: row["reason"] for row in line["not_known"]}


@pytest.fixture
def far(project):
    project.spec = dict(FAR)
    project.write()
    return project


def test_the_filter_kills():
    done = subprocess.run([*NO_SOCKETS, sys.executable, "-c", "import socket; socket.socket()"])
    assert done.returncode == -31


# --- every spec of ours that needs no account ---

LOCAL = sorted(path.relative_to(cli.ROOT) for folder in ("configs", "templates")
               for path in (cli.ROOT / folder).rglob("*.yaml")
               if re.search("^engine: *local", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", LOCAL, ids=str)
def test_a_spec_of_ours(project, path):
    """That the requests of a plan are those of a run is shown in test_requests.py."""
    for name in ("retrain.py", "evaluate.py"):
        shutil.copy(project.source / "train.py", project.source / name)
    (project.source / ".venv").mkdir()
    shutil.copy(cli.ROOT / path, project.spec_path)
    offline(project, "plan", project.spec_path, "--requests")
    here = planned(project)
    there, = project.ok("--json", "plan", project.spec_path, "--requests").lines
    assert here == there
    assert {"<id>", "<nonce>"} <= {row["mark"] for row in here["placeholders"]}


# --- what is not known ---

@pytest.mark.parametrize("changes", [{}, SAGEMAKER, TOOLKIT], ids=("batch", "sagemaker", "toolkit"))
def test_what_only_a_service_can_tell_is_not_known(far, changes):
    far.write(**changes, aws=None)
    line = planned(far, STOKER_STATE="s3://bucket/state")
    assert unknown(line) == {"cache": "not known: --offline", "image": "--offline", "region": "--offline",
                             "account": "--offline", "earlier runs": "--offline"}
    assert not {"verdict", "graph_key"} & line["cache"].keys()
    assert [row["phase"] for row in line["requests"]] == ["precompile", "train"] and line["difference"]
    assert "<region>" in {row["mark"] for row in line["placeholders"]} or changes is TOOLKIT
    text = offline(far, "plan", far.spec_path, "--requests", STOKER_STATE="s3://bucket/state").out
    for label in ("cache:  ", "image:  ", "region: ", "account:", "runs:   "):
        assert f"\n{label} not known: --offline\n" in text, text
    for row in line["placeholders"]:
        assert re.search(f"^  {re.escape(row['mark'])} +{re.escape(row['meaning'])}$", text, re.MULTILINE), text


def test_what_the_spec_says_is_known(far):
    far.write(image=f"{FAR['image'].rpartition(':')[0]}@{DIGEST}",
              aws={"region": "us-west-2", "account": "123456789012"})
    line = planned(far)
    assert unknown(line) == {"cache": "not known: --offline"}
    assert "verdict" not in line["cache"] and re.fullmatch("[0-9a-f]{64}", line["cache"]["graph_key"])
    definition, submission = (row["body"] for row in line["requests"][1]["sends"])
    assert re.fullmatch("stk-[0-9a-f]+", definition["jobDefinitionName"])
    assert submission["jobDefinition"] == definition["jobDefinitionName"]
    marks = {row["mark"] for row in line["placeholders"]}
    assert not {"<image-digest>", "<definition-hash>", "<graph-key>", "<region>"} & marks


def test_a_cache_in_a_folder_is_known(far):
    far.write(engine="local", batch=None, image=None, workspace=None, resources=None,
              compile={**FAR["compile"], "cache_url": str(far.cache)})
    line = planned(far)
    assert line["cache"]["verdict"] == "cold" and "not_known" not in line


def test_no_profile_and_no_credentials_are_read(far, tmp_path):
    """Who reads these files says that they are wrong, or starts the process."""
    files = tmp_path / "home/.aws"
    files.mkdir(parents=True)
    (files / "config").write_text("[default]\nregion = eu-west-1\nno line of a profile\n")
    (files / "credentials").write_text("nor this\n")
    home = {"HOME": str(tmp_path / "home")}
    assert "neither" in far.ok("--json", "plan", far.spec_path, env=home).lines[0]["cache"]["reason"]
    assert planned(far, **home) == planned(far)
    far.write(aws=None)
    (files / "credentials").unlink()
    (files / "config").write_text(f"[default]\nregion = eu-west-1\ncredential_process = touch {tmp_path / 'asked'}\n")
    assert far.ok("--json", "plan", far.spec_path, env=home).code == 0 and (tmp_path / "asked").exists()
    (tmp_path / "asked").unlink()
    assert unknown(planned(far, **home))["region"] == "--offline" and not (tmp_path / "asked").exists()
    # Nor is a profile missed that nobody looked for.
    assert unknown(planned(far, "--profile", "nosuch", **home))["account"] == "--offline"


def test_a_machine_is_not_asked_what_it_is(project):
    project.write(resources={"instance": "auto"}, limits={"cost": 3}, compile=None, health={"device": False})
    line = planned(project, AWS_EC2_METADATA_SERVICE_ENDPOINT="http://127.0.0.1:9")
    assert unknown(line) == {"machine": "--offline"} and "machine" not in line
    assert "\nmachine: not known: --offline\n" in offline(project, "plan", project.spec_path).out
    # A run, which asks, needs the price.
    assert project.run(code=4, env={"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9"}).code == 4


# --- all sections ---

def test_profiles_stages_schedule_and_what_lies_on_s3(far):
    far.write(
        profiles={"large": {"resources": {"instance": "trn1.32xlarge", "nodes": 4}}},
        data={"url": "s3://bucket/drops"}, parent={"from": "promoted"},
        schedule={"cron": "0 3 * * *", "timezone": "UTC"},
        secrets={"TOKEN": "secretsmanager:token"},
        cache={"preload": ["s3://bucket/other"]},
        evaluate={"command": ["python3", "evaluate.py"], "data": "s3://bucket/hold-out", "compile": "aot"},
        gate=[{"metric": "accuracy", "max_drop": "1%"}],
        infer={"command": ["python3", "infer.py"], "output": "s3://bucket/found"},
        promote={"url": "s3://bucket/models"}, metrics=[{"name": "accuracy", "regex": "accuracy: ([0-9.eE+-]+)"}])
    line = planned(far, "--use", "large", STOKER_STATE="s3://bucket/state")
    assert [(row["phase"], row.get("stage")) for row in line["requests"]] == [
        ("precompile", None), ("train", None), ("precompile", "evaluate"), ("evaluate", None), ("infer", None)]
    assert all(row["sends"][0]["body"]["type"] == "multinode" for row in line["requests"][:2])
    assert unknown(line)["promoted model"] == "--offline"
    assert line["preload"] == [{"url": "s3://bucket/other", "why": "--offline"}]
    assert "(secret from " in {row["mark"] for row in line["placeholders"]}
    text = offline(far, "plan", far.spec_path, "--requests", "--use", "large").out
    assert "nothing can be had from there: --offline" in text and "\npromoted: not known: --offline\n" in text
    assert re.search("\n +cache not known: --offline\n", text), text


def test_a_sweep_shows_its_cells_and_the_requests_of_the_spec_as_it_is(far):
    far.write(sweep={"grid": {"hyperparameters.max_steps": [10, 30]}})
    line = planned(far)
    assert [row.get("cache") for row in line["cells"]] == [None, None]
    as_it_is = yaml.safe_load(far.spec_path.read_text())
    del as_it_is["sweep"]
    far.spec_path.write_text(yaml.safe_dump(as_it_is))
    alone = planned(far)
    for name in ("requests", "difference", "placeholders"):
        assert line[name] == alone[name], name
    far.write(sweep={"grid": {"hyperparameters.max_steps": [10, 30]}})
    assert "requests" not in offline(far, "--json", "plan", far.spec_path).lines[0]
    text = offline(far, "plan", far.spec_path, "--requests").out
    assert "\ncache:   not known of 2 cells: --offline\n" in text and "\ndifference: precompile → train\n" in text


def test_a_wrong_spec_is_wrong_all_the_same(far):
    far.write(resources={"instance": "trn9.large"})
    assert "trn9.large" in offline(far, "plan", far.spec_path, code=3).text


def test_no_other_command_has_the_option(project):
    assert project.stoker("run", project.spec_path, "--offline").code == 2
