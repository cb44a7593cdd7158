"""plan --requests: what is shown is what is sent, and the phases differ in overrides,
variables of the phase, scratch folders and names, and in nothing else."""

import json

import stoker as cli
from neuron_standin.install import Installation

# What a training has and a precompile has not, and the other way round: names, and
# that the trial run's checkpoints and outputs are thrown away.
NAMES = {"phase", "job", "prefix", "compile.graph_key", "compile.claim", "compile.lock"}
SCRATCH = {"scratch", "outputs", "checkpoint_dir", "checkpoint.kind", "checkpoint.root", "checkpoint.sync",
           "checkpoint.keep", "checkpoint.signal", "checkpoint.grace_ms", "stall.mode", "timeout_ms"}


def difference(plan):
    rows = plan["difference"]
    assert [row["field"] for row in rows] == sorted(row["field"] for row in rows)
    return {row["field"]: (row["precompile"], row["train"]) for row in rows}


def without_overrides(project, **more):
    project.write(compile={"kind": "jax", "cache_url": str(project.cache), **more})
    return project


def test_without_overrides_only_names_and_scratch_folders_differ(project):
    project.write(hyperparameters={"lr": 0.1, "epochs": 3})  # no known name of a length
    found = difference(without_overrides(project).plan())
    assert set(found) == NAMES | SCRATCH
    assert found["phase"] == ("precompile", "train")
    assert found["scratch"] == (True, False)


def test_overrides_are_what_else_differs_and_no_more(project):
    without_overrides(project, overrides={"hyperparameters": {"max_steps": 3, "warm_up": 1},
                                          "env": {"TRIAL": "yes"}})
    found = difference(project.plan())
    assert set(found) - NAMES - SCRATCH == {"command", "env.TRIAL", "env.STOKER_HP_MAX_STEPS",
                                            "env.STOKER_HP_WARM_UP"}
    assert found["env.TRIAL"] == ("yes", None)
    assert found["env.STOKER_HP_MAX_STEPS"] == ("3", "20")
    first, second = found["command"]
    assert first[first.index("--max_steps") + 1] == "3" and "--warm_up" in first
    assert second[second.index("--max_steps") + 1] == "20" and "--warm_up" not in second
    said = project.ok("plan", "--requests", project.spec_path).out
    said = said[said.index("difference: precompile → train\n"):]
    assert "\n  env.TRIAL: yes → (none)\n" in said
    assert "\n  env.STOKER_HP_MAX_STEPS: 3 → 20\n" in said
    assert "batch_size" not in said.replace("--batch_size 8", "")
    rows = [line for line in said.splitlines()[1:] if not line.startswith("    ")]
    assert len(rows) == len(found)
    said = project.ok("plan", "--requests", project.spec_path, env={"LANG": "C"}).out
    assert said.isascii() and "\n  env.TRIAL: yes -> (none)\n" in said


def test_the_front_end_and_its_variable_are_of_phase_1_alone(project, tmp_path):
    neuron = Installation(tmp_path / "neuron")
    project.write(command=["torchrun", "train.py"], hyperparameters={"lr": 0.1, "epochs": 3},
                  compile={"kind": "neuron", "cache_url": str(project.cache)})
    plan, = project.ok("--json", "plan", project.spec_path, env={"PATH": neuron.path}).lines
    found = difference(plan)
    # The number of processes that torchrun starts is for the marks of checkpoints, which phase 1 has not.
    assert set(found) - NAMES - SCRATCH == {"command", "env.RUN_NEURON_PARALLEL_COMPILE", "world_size"}
    assert found["env.RUN_NEURON_PARALLEL_COMPILE"] == ("1", None)
    assert found["command"][0] == ["neuron_parallel_compile", *found["command"][1]]


def filled_in(value, order):
    """A planned request with what only its run knows."""
    text = json.dumps(value)
    for mark, known in (("<id>", order["run"]), ("<nonce>", order["nonce"]),
                        ("<claim>", order["compile"].get("claim", ""))):
        text = text.replace(mark, known)
    return json.loads(text)


def test_what_is_shown_is_what_is_sent(project):
    project.write(secrets={"TOKEN": "env:CALLERS_TOKEN"}, env={"MODE": "${STOKER_PHASE}"})
    caller = {"CALLERS_TOKEN": "t0k"}
    plan, = project.ok("--json", "plan", project.spec_path, env=caller).lines
    project.run("--id", "sent", env=caller)
    for request in plan["requests"]:
        path = project.state / f"stoker/workspace/runs/sent/{request['phase']}-1/order.json"
        order = json.loads(path.read_text())
        agent_env = request.pop("agent_env")
        assert ("compiler" in order["compile"]) == (request["phase"] == "train")
        order["compile"].pop("compiler", None)  # known when phase 1 has run
        assert filled_in(request, order) == order
        assert agent_env.pop("TOKEN") == "(secret from env:CALLERS_TOKEN)"
        assert set(agent_env) == {"PATH", "HOME", "USER", "LANG"}


def test_a_value_that_looks_like_a_secret_is_not_shown(project):
    project.write(env={"API_KEY": "s3cr3t-value"}, secrets={"TOKEN": "env:CALLERS_TOKEN"})
    said = project.ok("plan", "--requests", project.spec_path, env={"CALLERS_TOKEN": "t0k-value"}).out
    said = said[said.index("requests to the engine"):]
    assert "env API_KEY=sha256:" in said and "s3cr3t-value" not in said and "t0k-value" not in said


def test_without_a_phase_1_there_is_no_difference(project):
    without_overrides(project, mode="jit")
    plan = project.plan()
    assert [request["phase"] for request in plan["requests"]] == ["train"]
    assert "difference" not in plan
    assert "difference:" not in project.ok("plan", "--requests", project.spec_path).out


def test_a_spec_writes_no_line_of_its_own(project):
    evil = "a\x1b[2J\u202e\n  scratch: forged"
    project.write(env={"X": evil, "Y\u202e": "b"}, tags={"t": evil}, hyperparameters={"max_steps": 20, "note": evil},
                  compile={"kind": "jax", "cache_url": str(project.cache) + "\u202ex",
                           "overrides": {"env": {"X": "b" + evil}, "hyperparameters": {"note": evil + "2"}}})
    result = project.stoker("plan", "--requests", project.spec_path)
    assert not cli.CONTROL.search(result.text), result
    assert not [line for line in result.out.splitlines() if "forged" in line and line.startswith("  scratch")]
    if result.code == 0:
        assert "→ a\\x1b[2J" in result.out
