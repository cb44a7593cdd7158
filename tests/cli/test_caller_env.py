"""Variables that a command gets of the caller's shell: by name, from a file of secrets, or by themselves;
and the cure of a failure for want of one that was not passed."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import stoker as cli
from test_environment import SHOW, files, shown

CANARY = "canary-81c0d7-do-not-write-me-down"


def env_file(project, text: str) -> Path:
    """Beside the source, where it is not packed."""
    path = project.root / ".env"
    path.write_text(text)
    return path


def no_compile(project, **more):
    project.write(compile={"kind": "none"}, retry={"attempts": 3, "backoff": {"first": "0s", "max": "0s"}}, **more)


# --- pass_env ---------------------------------------------------------------------

def test_what_is_named_is_passed_and_nothing_else(project):
    project.extra(SHOW)
    project.write(pass_env=["HF_TOKEN", "CUDA_VISIBLE_DEVICES", "EMPTY", "ODD", "NOT_SET"])
    caller = {"HF_TOKEN": CANARY, "CUDA_VISIBLE_DEVICES": "0,1", "EMPTY": "", "ODD": "${STOKER_RUN} $x",
              "OTHER": "no", "XLA_FLAGS": "--no"}
    said = project.run(env=caller)
    assert "'NOT_SET' is not set in this shell" in said.err and "EMPTY" not in said.err
    for phase in ("precompile", "train"):
        env = shown(project, phase)
        assert {name: env.get(name) for name in (*caller, "NOT_SET")} == {
            **caller, "OTHER": None, "XLA_FLAGS": None, "NOT_SET": None}


def test_a_passed_value_is_part_of_the_key_unless_it_is_ignored(project):
    project.write(pass_env=["MY_FLAG", "HF_TOKEN", "MY_TOKEN"])
    caller = {"MY_FLAG": "1", "HF_TOKEN": "a", "MY_TOKEN": CANARY}

    def cache(**changes):
        return project.ok("--json", "plan", project.spec_path, env={**caller, **changes}).lines[0]["cache"]
    project.run(env=caller)
    assert cache()["verdict"] == "warm"
    assert cache(HF_TOKEN="b")["verdict"] == "warm", "a neutral name"
    flag, token = cache(MY_FLAG="2"), cache(MY_TOKEN=CANARY + "2")
    assert flag["changed"] == [{"field": "env.MY_FLAG", "old": "1", "new": "2"}]
    assert [row["field"] for row in token["changed"]] == ["env.MY_TOKEN"]
    assert all(token["changed"][0][side].startswith("sha256:") for side in ("old", "new"))
    project.write(compile={**project.spec["compile"], "ignore": ["hyperparameters.lr", "hyperparameters.max_steps",
                                                                 "hyperparameters.seed", "env.MY_*"]})
    project.run(env=caller)
    assert cache(MY_FLAG="2", MY_TOKEN="x")["verdict"] == "warm"


TWO_ATTEMPTS = """
import os
import signal
import time
from pathlib import Path

HERE = Path(os.environ["MEETING"])


def start(args):
    print("ATTEMPT", os.environ["STOKER_ATTEMPT"], os.environ.get("PLAIN"), os.environ.get("MY_TOKEN"), flush=True)
    if os.environ["STOKER_ATTEMPT"] == "1":
        (HERE / "began").touch()
        while not (HERE / "go").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def begin(project, env=None, **fields):
    """The driver of run 'two', whose first attempt has begun; it is killed once there is a 'go'."""
    project.extra(TWO_ATTEMPTS)
    no_compile(project, env={"MEETING": str(project.root)}, **fields)
    driver = project.start("run", project.spec_path, "--id", "two", env=env)
    cli.until((project.root / "began").exists, driver)
    return driver


def test_another_shell_resumes_with_the_plans_values_and_its_own_secrets(project):
    driver = begin(project, {"PLAIN": "of the creator", "MY_TOKEN": "first"}, pass_env=["PLAIN", "MY_TOKEN", "LATE"])
    driver.kill()
    driver.communicate()
    (project.root / "go").touch()
    refused = project.stoker("resume", "two", env={"PLAIN": "of another"})
    assert refused.code == 4 and "MY_TOKEN" in refused.err and "export MY_TOKEN" in refused.cure, str(refused)
    project.ok("resume", "two", env={"PLAIN": "of another", "MY_TOKEN": "second", "LATE": "x"})
    assert "ATTEMPT 2 of the creator second" in project.ok("logs", "two").out


def test_a_repeated_step_is_another_plan_only_if_a_kept_value_differs(project):
    no_compile(project, pass_env=["PLAIN", "MY_TOKEN"])
    project.run("--id", "step", env={"PLAIN": "1", "MY_TOKEN": "a"})
    project.run("--id", "step", env={"PLAIN": "1", "MY_TOKEN": "b"})
    assert "another plan" in project.run("--id", "step", code=3, env={"PLAIN": "2", "MY_TOKEN": "a"}).err


# --- env_file -----------------------------------------------------------------------

FORMS = r"""# of the whole team
export A=plain value   # not this
B='it\'s $A and ${A}'
C="tab\there \"q\" \$A"
D="two
lines"
E=
F=a#b
"""


def test_a_file_of_variables_reaches_the_job_as_it_is_written(project):
    project.extra(SHOW)
    env_file(project, FORMS)
    (project.root / "more.env").write_text("F=later\nSSL_CERT_FILE=/of/the/file\n")
    no_compile(project, env_file=["../.env", "../more.env"])
    project.run(env={"SSL_CERT_FILE": "/of/the/caller"})
    env = shown(project, "train")
    assert {name: env[name] for name in "ABCDEF"} == {
        "A": "plain value", "B": "it's $A and ${A}", "C": 'tab\there "q" $A', "D": "two\nlines", "E": "", "F": "later"}
    assert env["SSL_CERT_FILE"] == "/of/the/file", "the agent's own value is the caller's"


def test_values_are_in_the_job_and_nowhere_else(project):
    project.extra("""
import hashlib
import os


def start(args):
    for name in ("API_PASSWORD", "PLAIN", "HF_TOKEN", "URL"):
        print("digest " + hashlib.sha256(os.environ[name].encode()).hexdigest(), flush=True)


def end(args):
    if os.environ["STOKER_PHASE"] == "train":
        raise SystemExit("failed on purpose")
""")
    env_file(project, f'API_PASSWORD="{CANARY}1"\nPLAIN={CANARY}2\n')
    project.write(env_file="../.env", pass_env=["HF_TOKEN", "URL"], secrets=None)
    env = {"HF_TOKEN": CANARY + "3", "URL": f"https://me:{CANARY}@host/", "https_proxy": f"http://u:{CANARY}4@127.0.0.1:9"}
    results = [project.run("--id", "s", code=1, env=env)]
    assert project.logs().count("digest ") == 4
    for argv in (("validate", project.spec_path), ("--json", "validate", project.spec_path),
                 ("plan", "--requests", project.spec_path), ("--json", "plan", "--requests", project.spec_path),
                 ("cache", "why", project.spec_path), ("status", "s"), ("--json", "status", "s"), ("events", "s"),
                 ("logs", "s"), ("schema",)):
        results.append(project.stoker(*argv, env=env))
    for result in results:
        assert CANARY not in result.out + result.err, str(result)
    for folder in (project.state, project.cache):
        for path in files(folder):
            assert CANARY.encode() not in path.read_bytes(), path
    requests = project.ok("plan", "--requests", project.spec_path, env=env).out
    assert "API_PASSWORD=(secret from env_file:../.env)" in requests and "HF_TOKEN=(secret from env:HF_TOKEN)" in requests


def test_no_process_has_a_value_among_its_arguments(project):
    env_file(project, f"MY_TOKEN={CANARY}\n")
    driver = begin(project, env_file="../.env")
    seen = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        seen += b"train.py" in words
        assert CANARY.encode() not in words
    assert seen > 0
    (project.root / "go").touch()
    assert cli.finish(driver).code == 0


def test_a_value_is_no_part_of_the_key_and_a_name_that_steers_is_refused(project):
    env_file(project, "MODE=a\nWANDB_PROJECT=x\nNEURON_RT_NUM_CORES=2\n")
    project.write(env_file="../.env")
    said = project.run()
    assert "'MODE': no part of the graph key" in said.err and "WANDB_PROJECT" not in said.err
    env_file(project, "MODE=b\nWANDB_PROJECT=y\nNEURON_RT_NUM_CORES=4\n")
    assert project.ok("--json", "plan", project.spec_path).lines[0]["cache"]["verdict"] == "warm"
    for name in ("XLA_FLAGS", "NEURON_CC_FLAGS", "JAX_PLATFORMS", "NEURON_RT_VIRTUAL_CORE_SIZE"):
        env_file(project, f"MODE=b\n{name}={CANARY}\n")
        refused = project.stoker("validate", project.spec_path)
        assert refused.code == 3 and ".env:2:1" in refused.err and "'env'" in refused.cure, str(refused)
        assert name in refused.err and CANARY not in refused.text
        project.ok("validate", project.spec_path, "--set", "compile.kind=none")


def test_names_are_those_of_the_start_and_values_those_of_now(project):
    env_file(project, "MY_TOKEN=first\n")
    driver = begin(project, env_file="../.env")
    driver.send_signal(signal.SIGTERM)  # detaches
    assert cli.finish(driver).code == 8
    (project.root / "go").touch()
    env_file(project, "OTHER=1\n")
    gone = project.stoker("resume", "two")
    assert gone.code == 4 and "'MY_TOKEN' is no more in" in gone.err, str(gone)
    (project.root / ".env").unlink()
    missing = project.stoker("resume", "two")
    assert missing.code == 4 and ".env" in missing.err and "put the file back" in missing.cure, str(missing)
    env_file(project, f"MY_TOKEN='{CANARY}\n")
    wrong = project.stoker("resume", "two")
    assert wrong.code == 4 and ".env:1" in wrong.err and CANARY not in wrong.text, str(wrong)
    env_file(project, "MY_TOKEN=second\nPLAIN=x\n")
    project.ok("resume", "two")
    assert "ATTEMPT 2 None second" in project.ok("logs", "two").out


WRONG = {
    "no name": (f"A=1\n{CANARY}\n", 2, "without NAME="),
    "an open quote": (f"A=1\n\nB='{CANARY}\nC=1\n", 3, "not closed"),
    "an expansion": (f"A=1\nB={CANARY}${{A}}\n", 2, "do not expand"),
    "twice": (f"A={CANARY}\nA={CANARY}\n", 2, "'A' is set twice, first in line 1"),
    "in env too": (f"X=1\nIN_ENV={CANARY}\n", 2, "'IN_ENV' is in 'env_file' and in 'env'"),
    "in secrets too": (f"IN_SECRETS={CANARY}\n", 1, "'IN_SECRETS' is in 'env_file' and in 'secrets'"),
    "one of stoker's": (f"STOKER_RUN={CANARY}\n", 1, "'STOKER_RUN' is one of stoker's own"),
    "a NUL": (f"A={CANARY}\0\n", 1, "a NUL byte"),
    "not UTF-8": (f"A={CANARY}\udcff\n", 1, "not UTF-8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_met_by_its_line_and_never_by_its_text(project, name):
    text, line, words = WRONG[name]
    (project.root / ".env").write_bytes(text.encode(errors="surrogateescape"))
    project.write(env={"IN_ENV": "1"}, secrets={"IN_SECRETS": "env:X"}, env_file="../.env")
    human = project.stoker("validate", "stoker.yaml", "--set", "compile.kind=none")
    machine = project.stoker("--json", "validate", "stoker.yaml", "--set", "compile.kind=none")
    problem, = (row for row in machine.lines if not row.get("lint"))
    assert human.code == machine.code == 3
    assert (problem["file"], problem["line"], problem["column"]) == ("../.env", line, 1)
    assert words in problem["message"] and problem["message"] in human.err and problem["hint"] in human.err
    assert CANARY not in human.text + machine.text
    assert "|" not in human.err, "no line is quoted"


def test_a_file_that_cannot_be_read_is_named_where_the_spec_names_it(project):
    project.write(env_file="nowhere.env")
    said = project.stoker("validate", "stoker.yaml")
    line = project.spec_path.read_text().splitlines().index("env_file: nowhere.env") + 1
    assert said.code == 3 and f"stoker.yaml:{line}:11: cannot read 'nowhere.env'" in said.err
    (project.root / "folder.env").mkdir()
    os.mkfifo(project.root / "pipe.env")
    for name in ("folder.env", "pipe.env"):
        said = project.stoker("validate", "stoker.yaml", "--set", f"env_file=[../{name}]")
        assert said.code == 3 and name in said.err, str(said)


def test_a_file_within_the_source_is_refused_before_it_is_packed(project):
    (project.source / ".env").write_text(f"A={CANARY}\n")
    no_compile(project, env_file=".env")
    said = project.run(code=3)
    assert "part of the source" in said.err and "stoker.yaml:" in said.err and ".gitignore" in said.cure
    assert not project.state.exists() or not any(CANARY.encode() in path.read_bytes() for path in files(project.state))
    (project.source / ".gitignore").write_text(".env\n")
    project.run()
    (project.source / ".env").rename(project.source / "values")
    (project.source / ".env").symlink_to("values")
    assert "'.env' is part of the source" in project.run(code=3).err, "the file that it links to is packed"
    assert not any(CANARY.encode() in path.read_bytes() for path in files(project.state))


def test_a_file_that_git_has_is_refused_too(project):
    (project.source / "secret.env").write_text("A=1\n")
    no_compile(project, env_file="secret.env")

    def git(*words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=project.source, check=True,
                       capture_output=True)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "all")
    assert "part of the source" in project.run(code=3).err


# --- by itself -------------------------------------------------------------------------

def test_proxies_and_certificates_pass_and_leave_the_cache_warm(project):
    project.extra(SHOW)
    caller = {"http_proxy": "http://p:1", "HTTPS_PROXY": "http://p:2", "no_proxy": "localhost", "ALL_PROXY": "socks5://p",
              "SSL_CERT_FILE": "/c", "SSL_CERT_DIR": "/d", "REQUESTS_CA_BUNDLE": "/r", "CURL_CA_BUNDLE": "/u",
              "NODE_EXTRA_CA_CERTS": "/n", "AWS_CA_BUNDLE": "/a"}
    project.run(env=caller)
    for phase in ("precompile", "train"):
        env = shown(project, phase)
        assert {name: env.get(name) for name in caller} == caller
    assert project.ok("--json", "plan", project.spec_path, env={"http_proxy": "http://q"}).lines[0]["cache"]["verdict"] == "warm"
    project.write(env={"https_proxy": "http://of-the-spec"})
    project.run(env=caller | {"https_proxy": "http://of-the-caller"})
    assert shown(project, "train")["https_proxy"] == "http://of-the-spec"


def test_help_tells_what_is_passed(project):
    passed = {row["variable"] for row in project.ok("--json", "help", "environment").lines if "passed" in row["uses"]}
    assert {"PATH", "HOME", "https_proxy", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"} <= passed
    text = project.ok("help", "environment").out
    listed = {line.split()[0] for line in text.splitlines() if line.strip()}
    assert passed <= listed, passed - listed
    form = " ".join(project.ok("help", "env_file").out.split())
    assert "'export '" in form and "${NAME} and $(command) are errors" in form and "no part of the graph key" in form


# --- the cure ------------------------------------------------------------------------

FAILURES = {
    "a look-up": ("import os\nos.environ['HF_TOKEN']\n", {"HF_TOKEN": "x", "WANDB_API_KEY": "y"}, ["HF_TOKEN"]),
    "a name in lower case": ("import os\nos.environ['my_place']\n", {"my_place": "x"}, ["my_place"]),
    "words": ("raise RuntimeError('Environment variable MY_KEY is not set')\n", {"MY_KEY": "x"}, ["MY_KEY"]),
    "a shell": ("import subprocess\nraise SystemExit(subprocess.call(['bash', '-uc', 'echo $DATA_HOME']))\n",
                {"DATA_HOME": "/d"}, ["DATA_HOME"]),
    "a hub's 401": ("import urllib.error\n"
                    "raise urllib.error.HTTPError('https://huggingface.co/x', 401, 'Unauthorized', {}, None)\n",
                    {"HF_TOKEN": "x"}, ["HF_TOKEN"]),
    "a hub's 403": ("print('requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: "
                    "https://huggingface.co/api/models/x', flush=True)\nraise SystemExit(1)\n", {"HF_TOKEN": "x"}, ["HF_TOKEN"]),
    "wandb": ("raise Exception('api_key not configured (no-tty). call wandb.login(key=[your_api_key])')\n",
              {"WANDB_API_KEY": "x", "WANDB_MODE": "offline"}, ["WANDB_API_KEY", "WANDB_MODE"]),
    "no network": ("print('curl: (6) Could not resolve host: huggingface.co', flush=True)\nraise SystemExit(6)\n",
                   {"HF_HUB_OFFLINE": "1"}, ["HF_HUB_OFFLINE"]),
    "keys of AWS": ("print('botocore.exceptions.NoCredentialsError: Unable to locate credentials', flush=True)\n"
                    "raise SystemExit(1)\n", {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
                    ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]),
}


def fails(project, script, **more):
    (project.source / "train.py").write_text(script)
    project.write(compile={"kind": "none"}, hyperparameters={}, retry={"attempts": 1}, **more)


@pytest.mark.parametrize("name", FAILURES)
def test_a_variable_that_was_not_passed_is_named_in_the_cure(project, name):
    script, caller, names = FAILURES[name]
    fails(project, script)
    said = project.run(code=None, env=caller)
    wanted = f"{', '.join(names)} {'are' if len(names) > 1 else 'is'} set in your shell, but not passed: " \
             f"add pass_env: [{', '.join(names)}]"
    assert said.code != 0 and wanted in said.cure, str(said)
    assert project.events(kind="attempt.ended")[-1]["hint"] == wanted


def test_the_cure_cures_and_a_shell_without_the_variable_has_another(project):
    script, caller, names = FAILURES["a hub's 401"]
    fails(project, script.replace("raise", "import os\nif 'HF_TOKEN' not in os.environ: raise"))
    without = project.run("--id", "without", code=None)
    assert without.code != 0 and "pass_env" not in without.text, str(without)
    assert project.run("--id", "with", code=None, env=caller).code == without.code
    classes = [project.events(run, "attempt.ended")[-1]["class"] for run in ("without", "with")]
    assert classes[0] == classes[1]
    project.write(pass_env=names)
    project.run("--id", "cured", env=caller)


def test_a_row_of_the_users_own_keeps_its_cure(project):
    fails(project, FAILURES["a look-up"][0], failures=[{"regex": "KeyError", "class": "user-config", "hint": "ask Ann"}])
    said = project.run(code=1, env={"HF_TOKEN": "x"})
    assert "ask Ann" in said.cure and "pass_env" not in said.text


def test_the_schema_takes_what_the_parser_takes(project):
    schema = json.loads(project.ok("schema").out)
    assert schema["patternProperties"] == {"^x-.": True}
    ways = schema["properties"]["env_file"]["anyOf"]
    assert ways[0]["type"] == ["array", "null"] and "anyOf" in ways[1]
