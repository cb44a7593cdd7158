"""The user's own rows of the failure table, in the spec and in failures.yaml; the way to write
flags; how often each class is tried again."""

import json
import time

import pytest
import stoker as cli
import yaml

SAYS = """
import os
import sys


def start(args):
    if os.environ["STOKER_PHASE"] == "train":
        for line in {lines!r}:
            print(line, flush=True)
        os._exit(1)
"""
LINES = ["step: 1 loss: 2.0", "FeatureStoreError: table clicks_v3 is empty",
         "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"]
ONE = {"regex": "FeatureStoreError: (.*)", "class": "data", "hint": "fill it: {}"}


@pytest.fixture
def job(project):
    project.extra(SAYS.format(lines=LINES))
    project.write(compile={"kind": "none"})
    return project


@pytest.fixture
def config(job, tmp_path):
    """Writes failures.yaml; the environment in which it counts."""
    folder = tmp_path / "config" / "stoker"
    folder.mkdir(parents=True)

    def write(content):
        text = content if isinstance(content, str) else yaml.safe_dump({"failures": content})
        (folder / "failures.yaml").write_text(text, encoding="utf-8")
        return {"XDG_CONFIG_HOME": str(folder.parent)}
    return write


def first(job, rows, **options):
    job.write(failures=rows)
    job.run(code=None, **options)
    return job.status()["attempts"][0]


@pytest.mark.parametrize("regex, hint, shown", [
    ("FeatureStoreError: (.*)", "fill it: {}", "fill it: table clicks_v3 is empty"),
    ("FeatureStoreError", "fill it", "fill it"),
    ("Feature[A-Z]toreError", "after {}", "after FeatureStoreError"),
    ("^(?i)featurestoreerror: table (\\w+)", "fill {}", "fill clicks_v3"),
    ("(?:Feature|Vector)StoreError.*empty$", "fill it", "fill it"),
])
def test_a_row_is_found_whether_it_has_a_group_or_not(job, regex, hint, shown):
    last = first(job, [{"regex": regex, "class": "quota-permission", "hint": hint}])
    assert last["class"] == "quota-permission" and last["hint"] == shown, last
    assert last["evidence"].startswith(LINES[1]), last


def test_the_first_row_that_matches_the_first_line_decides(job):
    rows = [{"regex": "CUDA out of memory", "class": "comm"}, {"regex": "clicks", "class": "timeout-hang"}, ONE]
    assert first(job, rows)["class"] == "timeout-hang"


def test_what_the_job_survived_is_no_cause(project):
    more = ["FeatureStoreError: try 1", *(f"step: {n} loss: 2.0" for n in range(2, 30)), "KeyError: 'labels'"]
    project.extra(SAYS.format(lines=more))
    project.write(compile={"kind": "none"}, env={"PYTHONUNBUFFERED": "1"})
    assert first(project, [ONE])["class"] != "data"


@pytest.mark.parametrize("row, words", [
    ({"regex": "Feature(", "class": "data"}, ["missing closing parenthesis"]),
    ({"regex": "", "class": "data"}, ["every line"]),
    ({"regex": "x*", "class": "data"}, ["every line"]),
    ({"regex": "(Feature)?", "class": "data"}, ["every line"]),
    ({"regex": "x" * 5000, "class": "data"}, ["longer than"]),
    ({"regex": "x", "class": "user"}, ["failures[0].class", "user-code"]),
    ({"regex": "x", "class": "spot"}, ["failures[0].class"]),
    ({"regex": "x", "class": "capacity"}, ["failures[0].class"]),
    ({"regex": "x"}, ["failures[0].class", "missing"]),
    ({"class": "data"}, ["failures[0].regex", "missing"]),
    ({"regexp": "x", "class": "data"}, ["did you mean 'regex'"]),
    ({"regex": "x", "class": "data", "hint": "a\x1b[31m"}, ["failures[0].hint"]),
    ("FeatureStoreError", ["failures[0]"]),
])
def test_a_row_that_is_wrong_is_refused_with_its_place_in_both_files(job, config, row, words):
    good = yaml.safe_dump({"failures": [row]}, allow_unicode=True)
    job.write(failures=[row])
    said = job.stoker("validate", job.spec_path)
    assert said.code == 3 and all(word in said.text for word in words), str(said)
    assert f"{job.spec_path}:" in said.err and said.cure
    job.write(failures=[])
    env = config(good)
    for argv in (("validate", job.spec_path), ("plan", job.spec_path), ("run", job.spec_path)):
        said = job.stoker(*argv, env=env)
        assert said.code == 3 and "failures.yaml:" in said.err and all(word in said.text for word in words), str(said)
    assert not job.ok("--json", "list", env=env).lines


def test_a_group_is_still_asked_of_a_metric(job):
    job.write(metrics=[{"name": "loss", "regex": "loss"}])
    assert "no group" in job.stoker("validate", job.spec_path).text


def test_the_file_comes_after_the_spec_and_before_the_table(job, config):
    env = config([ONE])
    assert first(job, [], env=env)["hint"] == "fill it: table clicks_v3 is empty"
    assert first(job, [{"regex": "clicks_v3", "class": "comm"}], env=env)["class"] == "comm"


def test_who_takes_a_run_over_judges_by_the_rows_that_it_was_created_with(job, config, tmp_path):
    gate = tmp_path / "go"
    wait = f"import time\n\n\ndef waits():\n    while not os.path.exists({str(gate)!r}):\n        time.sleep(0.05)\n"
    job.extra(SAYS.format(lines=LINES).replace("def start(args):\n", wait + "\n\ndef start(args):\n    waits()\n"))
    driver = job.start("run", job.spec_path, "--id", "kept", env=config([ONE]))
    while not job.stoker("--json", "events", "kept").out.count("attempt.claimed"):
        assert driver.poll() is None
        time.sleep(0.1)
    driver.kill()
    driver.communicate(timeout=cli.SECONDS)
    config([{"regex": "FeatureStoreError", "class": "comm"}])
    gate.touch()
    job.stoker("resume", "kept", env=config([{"regex": "FeatureStoreError", "class": "comm"}]))
    rows = job.status("kept")["attempts"]
    assert len(rows) == 2 and all(row["class"] == "data" for row in rows), rows


def test_the_rows_are_no_part_of_the_key(job, config):
    job.write(compile={"kind": "jax", "cache_url": str(job.cache), "max_steps": 2})
    plain = job.plan()["cache"]["graph_key"]
    job.write(failures=[ONE])
    assert job.plan()["cache"]["graph_key"] == plain
    env = config([{"regex": "other", "class": "comm"}])
    assert job.ok("--json", "plan", job.spec_path, env=env).lines[0]["cache"]["graph_key"] == plain


def test_help_shows_the_rows_of_the_file_or_what_is_wrong_with_it(job, config):
    env = config([{"regex": "FeatureStoreError", "class": "data"}, {"regex": "Vector\\x1b", "class": "comm", "hint": "see {}"}])
    said = job.ok("help", "failures", env=env).out
    assert "FeatureStoreError" in said and "comm: see {}" in said
    shown = [row for row in job.ok("help", "failures", "--json", env=env).lines if row["source"] == "own"]
    assert [row["regex"] for row in shown] == ["FeatureStoreError", "Vector\\x1b"]
    for wrong in ("failures: [{regex: 'Fea(', class: data}]", "failures: [{class: data}]", "- {regex: x, class: data}", "failures: 7", "\x00"):
        env = config(wrong)
        said = job.ok("help", "failures", env=env)
        assert "Unusable rows" in said.out and "failures.yaml" in said.out, str(said)
        said = job.ok("help", "failures", "--json", env=env)
        assert not [row for row in said.lines if row["source"] == "own"] and "failures.yaml" in said.err, str(said)


@pytest.mark.parametrize("content", ["", "# nothing yet\n", "failures: []\n", "failures:\n"])
def test_a_file_without_rows_is_none(job, config, content):
    assert first(job, [], env=config(content))["class"] == "user-config"


@pytest.mark.parametrize("name, limit", [("user-code", 1), ("user-config", 1), ("quota-permission", 1), ("data", 2), ("compile", 2),
                                         ("unknown", 4), ("comm", 5), ("timeout-hang", 5), ("transient-infra", 5)])
def test_each_class_is_tried_as_often_as_help_says(job, name, limit):
    job.write(failures=[{"regex": "FeatureStoreError", "class": name}],
              retry={"attempts": 20, "without_progress": 5, "backoff": {"first": "0s", "max": "0s"}})
    job.run(code=None)
    rows = job.status()["attempts"]
    assert len(rows) == limit and {row["class"] for row in rows} == {name}, rows


@pytest.mark.parametrize("text", ["the request was preempted", "Insufficient capacity in ring buffer", "spot instance i-0 interrupted",
                                  "slurmstepd: error: *** JOB 1 ON n CANCELLED AT 2026-11-25T00:00:00 DUE TO PREEMPTION ***",
                                  "CapacityError: Unable to provision requested ML compute capacity."])
def test_a_log_that_speaks_of_preemption_is_no_endless_retry(project, text):
    project.extra(SAYS.format(lines=["step: 1 loss: 2.0", text]))
    project.write(compile={"kind": "none"}, retry={"attempts": 2, "backoff": {"first": "0s", "max": "0s"}})
    project.run(code=1)
    rows = project.status()["attempts"]
    assert len(rows) <= 3 and all(row["class"] not in ("spot", "capacity") for row in rows), rows


@pytest.mark.parametrize("style, want", [({"booleans": "value"}, ["--bf16", "True", "--fp16", "False"]),
                                         ({"booleans": "flag"}, ["--bf16"]), (None, ["--bf16", "True", "--fp16", "False"])])
def test_booleans_are_written_as_the_script_takes_them(project, style, want):
    project.write(hyperparameters={"lr": 0.1, "bf16": True, "fp16": False, "max_steps": 3}, hyperparameter_style=style, compile={"kind": "none"},
                  command=["/usr/bin/python3", "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"], metrics=None)
    project.run()
    said = json.loads([line for line in project.logs("--phase", "train").splitlines() if "[" in line][-1])
    assert said == ["--lr", "0.1", *want, "--max_steps", "3"], said
    assert " ".join(want) in project.ok("plan", project.spec_path).out


def test_a_flag_that_was_given_a_value_has_the_cure(project):
    (project.source / "flag.py").write_text("import argparse\np = argparse.ArgumentParser()\np.add_argument('--bf16', action='store_true')\n"
                                            "p.add_argument('--lr')\np.parse_args()\n")
    project.write(hyperparameters={"lr": 0.1, "bf16": True}, compile={"kind": "none"}, command=["/usr/bin/python3", "flag.py"], metrics=None)
    said = project.run(code=1)
    assert said.cure.startswith("bf16: ") and "hyperparameter_style: {booleans: flag}" in said.cure, str(said)
    project.write(hyperparameter_style={"booleans": "flag"})
    project.run()


def test_a_style_that_is_none_is_refused(project):
    project.write(hyperparameter_style={"booleans": "yes"})
    said = cli.stoker("validate", project.spec_path)
    assert said.code == 3 and "value" in said.text and "flag" in said.text, str(said)
