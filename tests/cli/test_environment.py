"""What a job sees of the world: exactly what was promised. And what nobody
sees: the values of secrets."""

import json
import os
import re
from pathlib import Path

CANARY = "canary-5f2e9c-do-not-write-me-down"

SHOW = """
import json
import os
import sys


def start(args):
    print("ENV " + json.dumps(dict(os.environ)), flush=True)
    print("ARGV " + json.dumps(sys.argv[1:]), flush=True)
    print("CWD " + os.getcwd(), flush=True)
"""


def shown(project, phase, word="ENV"):
    line = next(line for line in project.logs("--phase", phase).splitlines() if line.startswith(word + " "))
    return json.loads(line[len(word) + 1:])


def test_nothing_of_the_caller_leaks_into_the_job(project):
    project.extra(SHOW)
    project.write(env={"MY_FLAG": "a b"}, secrets={"TOKEN": "env:CALLERS_TOKEN"})
    project.run(env={"XLA_FLAGS": "--xla_dump_to=/tmp/x", "JAX_PLATFORMS": "tpu", "PYTHONPATH": "/evil",
                     "CALLERS_TOKEN": "t0k", "LD_PRELOAD": "", "RANDOM_THING": "1",
                     "JAX_COMPILATION_CACHE_DIR": "/elsewhere", "STOKER_PHASE": "lie"})
    for phase in ("precompile", "train"):
        env = shown(project, phase)
        allowed = {"PATH", "HOME", "USER", "LANG", "TMPDIR", "MY_FLAG", "TOKEN"}
        others = {name for name in env if name not in allowed
                  and not name.startswith(("STOKER_", "JAX_", "PET_", "MASTER_"))}
        # LC_CTYPE is set by Python itself
        assert others - {"LC_CTYPE", "PYTHONUNBUFFERED"} == set(), others
        assert env["MY_FLAG"] == "a b"
        assert env["TOKEN"] == "t0k"
        assert env["STOKER_PHASE"] == phase
        assert env["JAX_COMPILATION_CACHE_DIR"] == str(project.cache)
        assert "JAX_PLATFORMS" not in env and "XLA_FLAGS" not in env


def test_a_stray_xla_flag_does_not_make_the_cache_cold(project):
    project.run()
    result = project.ok("--json", "plan", project.spec_path, env={"XLA_FLAGS": "--xla_other"})
    assert result.lines[0]["cache"]["verdict"] == "warm"


def test_the_small_interface_for_scripts(project):
    project.extra(SHOW)
    project.run("--id", "envtest")
    for phase in ("precompile", "train"):
        env = shown(project, phase)
        assert env["STOKER_RUN"] == "envtest"
        assert env["STOKER_ATTEMPT"] == "1"
        assert (env["STOKER_NODES"], env["STOKER_NODE_RANK"]) == ("1", "0")
        assert env["MASTER_ADDR"] == env["STOKER_MASTER_ADDR"]
        assert env["MASTER_PORT"] == env["STOKER_MASTER_PORT"]
        assert int(env["STOKER_CORES"]) >= 1
        assert os.path.isabs(env["STOKER_CHECKPOINT_DIR"]) and os.path.isabs(env["STOKER_OUTPUT_DIR"])
        assert "STOKER_RESUME_FROM" not in env
        assert env["STOKER_HP_BATCH_SIZE"] == "8"


def test_hyperparameters_become_arguments_in_spec_order_as_written(project):
    project.extra(SHOW)
    (project.source / "train.py").write_text(
        (project.source / "train.py").read_text().replace("parser.parse_args()", "parser.parse_known_args()[0]"))
    project.spec_path.write_text(project.spec_path.read_text().replace(
        "hyperparameters:\n", "hyperparameters:\n  rate: 3.0e-4\n  flag: true\n  none: null\n"
        "  layers: [1, 2]\n  text: 'a b'\n"))
    project.run()
    argv = shown(project, "train", "ARGV")
    assert argv[:8] == ["--rate", "3.0e-4", "--flag", "True", "--layers", argv[5], "--text", "a b"]
    assert json.loads(argv[5]) == [1, 2]
    assert argv[argv.index("--max_steps") + 1] == "20"
    trial = shown(project, "precompile", "ARGV")
    assert trial[trial.index("--max_steps") + 1] == "2"


def test_a_variable_of_stoker_is_expanded_on_the_node(project):
    project.extra(SHOW)
    project.write(env={"WHERE": "${STOKER_RUN}/$$x", "FROM": "${CALLER:-none}"})
    project.run("--id", "abc", env={"CALLER": "c1"})
    env = shown(project, "train")
    assert env["WHERE"] == "abc/$x"
    assert env["FROM"] == "c1"


def test_what_only_looks_like_a_variable_of_stoker_is_left_alone(project):
    project.extra(SHOW)
    project.write(env={"A": "$${STOKER_PHASE}-${STOKER_PHASE}-$$$${STOKER_RUN}", "B": "${EVIL}",
                       "C": "$$${STOKER_RUN}", "D": "${NONE:-$$x}${STOKER_NONE:-$$y}", "E": "$${HOME} $$$$ $x"},
                  hyperparameters={"max_steps": 20, "text": "$${STOKER_RUN}",
                                   "list": ["${STOKER_RUN}", "$${STOKER_RUN}"]})
    (project.source / "train.py").write_text(
        (project.source / "train.py").read_text().replace("parser.parse_args()", "parser.parse_known_args()[0]"))
    caller = {"EVIL": "${STOKER_RUN}$$"}
    project.run("--id", "ex4", env=caller)
    env, argv = shown(project, "train"), shown(project, "train", "ARGV")
    assert env["A"] == "${STOKER_PHASE}-train-$${STOKER_RUN}"
    assert env["B"] == "${STOKER_RUN}$$"
    assert env["C"] == "$ex4"
    assert env["D"] == "$x$y"
    assert env["E"] == "${HOME} $$ $x"
    assert env["STOKER_HP_TEXT"] == argv[argv.index("--text") + 1] == "${STOKER_RUN}"
    assert json.loads(argv[argv.index("--list") + 1]) == ["ex4", "${STOKER_RUN}"]
    plan = project.ok("plan", "--requests", project.spec_path, env=caller).out
    assert "A=${STOKER_PHASE}-${STOKER_PHASE}-$${STOKER_RUN}\n" in plan
    assert "B=${STOKER_RUN}$$\n" in plan
    assert "--text '${STOKER_RUN}'" in plan


def files(folder: Path):
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def test_a_secret_is_in_the_job_and_nowhere_else(project):
    project.extra("""
import hashlib
import os


def start(args):
    print("digest " + hashlib.sha256(os.environ["TOKEN"].encode()).hexdigest(), flush=True)


def end(args):
    if os.environ["STOKER_PHASE"] == "train":
        raise SystemExit("failed on purpose")
""")
    secret = project.root / "secret.txt"
    secret.write_text(CANARY + "2\n")
    project.write(secrets={"TOKEN": "env:CALLERS_TOKEN", "OTHER": f"file:{secret}"})
    env = {"CALLERS_TOKEN": CANARY}
    results = [project.run("--id", "s", code=1, env=env)]
    assert "digest " in project.logs()
    for argv in (("plan", project.spec_path), ("--json", "plan", "--requests", project.spec_path),
                 ("cache", "why", project.spec_path), ("status", "s"), ("--json", "status", "s"),
                 ("events", "s"), ("logs", "s"), ("--json", "cache", "ls", project.cache)):
        results.append(project.stoker(*argv, env=env))
    for result in results:
        assert CANARY not in result.out + result.err, str(result)
    for folder in (project.state, project.cache):
        for path in files(folder):
            assert CANARY.encode() not in path.read_bytes(), path


def test_a_secret_is_not_part_of_the_graph_key(project):
    project.write(secrets={"TOKEN": "env:CALLERS_TOKEN"})
    project.run(env={"CALLERS_TOKEN": "one"})
    result = project.ok("--json", "plan", project.spec_path, env={"CALLERS_TOKEN": "two"})
    assert result.lines[0]["cache"]["verdict"] == "warm"


def test_a_secret_that_is_not_there_is_refused_before_anything_runs(project):
    project.write(secrets={"TOKEN": "env:CALLERS_TOKEN"})
    result = project.run(code=4)
    assert "CALLERS_TOKEN" in result.err and "hint:" in result.err
    listed = project.ok("--json", "list").lines
    assert not listed or project.attempts(listed[0]["run"]) == []


def test_state_is_for_its_owner_alone(project):
    project.run()
    for path in [project.state / "stoker", *(project.state / "stoker").rglob("*")]:
        if path.is_symlink() or "/src/" in str(path) or "/agents/" in str(path):
            continue
        mode = path.stat().st_mode & 0o777
        assert mode & 0o077 == 0, f"{path}: {mode:o}"


def test_the_job_inherits_no_open_file(project):
    project.extra("""
import os


def start(args):
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
            if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")]
    print("HELD", [path for path in held if "/proc/" not in path], flush=True)
""")
    with open(project.spec_path) as held:
        project.run(pass_fds=(held.fileno(),))
    assert "HELD []" in project.logs(), re.search("HELD.*", project.logs())[0]
