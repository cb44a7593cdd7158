"""The layers of a spec: the user's configuration, the files that it extends, the spec, its profiles, --set; and what is
said where of those that do not fit."""

import json
from pathlib import Path

import pytest
import stoker as cli

HEAD = "version: 1\nname: x\ncommand: [python3, train.py]\n"


class Place:
    """A home with a job in it, and the files that a test writes there."""

    def __init__(self, root):
        self.root, self.home, self.job = root, root / "home", root / "home/job"
        self.job.mkdir(parents=True)
        (self.job / "train.py").write_text("pass\n")

    def write(self, name: str, text: str) -> Path:
        path = self.job / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def configure(self, text: str) -> Path:
        return self.write("../.config/stoker/config.yaml", text)

    def stoker(self, *argv, **env):
        whole = cli.environment(**{"HOME": str(self.home), "XDG_CONFIG_HOME": None, "STOKER_STATE": None,
                                   "XDG_STATE_HOME": str(self.root / "state"), **env})
        return cli.stoker(*argv, env={name: value for name, value in whole.items() if value is not None}, cwd=self.job)

    def plan(self, *argv, code=0, **env):
        said = self.stoker("--json", "plan", *argv, **env)
        assert said.code == code, str(said)
        return said.lines[0]

    def problems(self, *argv, code=3, **env):
        said = self.stoker("--json", "validate", *argv, **env)
        assert said.code == code, str(said)
        return said.lines


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


# ---- one order ----

def test_each_layer_stands_on_those_below_it(place):
    place.configure("limits: {deadline: 1h, queue: 2h, start: 3h, stall: 4h, grace: 5m}\ntags: {who: config}\n")
    place.write("lower.yaml", "limits: {queue: 21h, start: 31h, stall: 41h, grace: 51s}\n")
    place.write("upper.yaml", "extends: lower.yaml\nlimits: {start: 32h, stall: 42h, grace: 52s}\ntags: {who: upper}\n")
    place.write("stoker.yaml", HEAD + "extends: [upper.yaml]\nlimits: {stall: 43h, grace: 53s}\n"
                "profiles:\n  one: {limits: {grace: 54s}, tags: {how: one}}\n  two: {limits: {grace: 55s}}\n")
    limits = place.plan()["spec"]["limits"]
    assert [limits[name] for name in ("deadline", "queue", "start", "stall", "grace")] == \
        ["1h", "21h", "32h", "43h", "53s"]
    plan = place.plan("--use", "one", "--use", "two", "--set", "limits.deadline=9h")
    assert plan["spec"]["limits"]["grace"] == "55s" and plan["spec"]["limits"]["deadline"] == "9h"
    assert plan["spec"]["tags"] == {"who": "upper", "how": "one"}
    assert place.plan("--use", "two", "--use", "one")["spec"]["limits"]["grace"] == "54s"
    config = str(place.home / ".config/stoker/config.yaml")
    origins = plan["origins"]
    assert origins["limits.deadline"] == {"option": "--set"}
    assert origins["limits.queue"] == {"file": "lower.yaml", "line": 1, "column": 17}
    assert origins["limits.stall"] == {"file": "stoker.yaml", "line": 5, "column": 17}
    assert origins["limits.grace"] == {"file": "stoker.yaml", "line": 8, "column": 25, "profile": "two"}
    assert origins["tags.how"]["profile"] == "one" and origins["tags.who"]["file"] == "upper.yaml"
    assert place.plan("--set", "tags=null")["origins"].get("tags.who", {"file": config})["file"] == config
    shown = place.stoker("plan", "-v", "--use", "two").out
    assert "limits.grace" in shown and "stoker.yaml:8:25, profile two" in shown
    assert "limits.grace" not in place.stoker("plan", "--use", "two").out


def test_maps_are_merged_and_lists_and_scalars_replaced(place):
    place.write("base.yaml", "command: [a, b, c]\nenv: {A: '1', B: '2'}\nfailures:\n"
                "  - {regex: one, class: data}\n  - {regex: two, class: data}\nresources: {nodes: 4, shm: 1GiB}\n")
    place.write("stoker.yaml", "version: 1\nname: x\nextends: base.yaml\ncommand: [python3, train.py]\n"
                "env: {B: '3', C: '4'}\nfailures:\n  - {regex: three, class: data}\n"
                "profiles:\n  small: {resources: {nodes: null}, env: {A: null}, failures: null}\n")
    spec = place.plan()["spec"]
    assert spec["command"] == ["python3", "train.py"] and spec["env"] == {"A": "1", "B": "3", "C": "4"}
    assert [row["regex"] for row in spec["failures"]] == ["three"]
    assert spec["resources"]["nodes"] == 4 and spec["resources"]["shm"] == "1GiB"
    spec = place.plan("--use", "small")["spec"]
    assert spec["resources"]["nodes"] == 1 and spec["resources"]["shm"] == "1GiB"
    assert spec["env"] == {"B": "3", "C": "4"} and spec["failures"] == []


def test_a_hyperparameter_may_be_null_in_a_profile(place):
    place.write("stoker.yaml", HEAD + "hyperparameters: {a: 1, b: 2}\n"
                "compile: {kind: jax, cache_url: ./cache, max_steps: 2, overrides: {hyperparameters: {a: 5}}}\n"
                "profiles:\n  less: {hyperparameters: {b: null}, compile: {overrides: {hyperparameters: {a: null}}}}\n")
    phases = {phase["phase"]: phase["command"] for phase in place.plan("--use", "less")["phases"] if "command" in phase}
    assert "--b" not in phases["train"] and "--a" in phases["train"]
    assert "--a" not in phases["precompile"]


def test_profiles_build_on_one_another(place):
    place.write("base.yaml", "profiles:\n  aws: {tags: {a: base, b: base}, limits: {queue: 1h}}\n")
    place.write("stoker.yaml", HEAD + "extends: base.yaml\nprofiles:\n  aws: {tags: {b: spec}, limits: null}\n"
                "  big: {use: [aws], tags: {c: big}}\n  bigger: {use: big, tags: {c: bigger}}\n")
    spec = place.plan("--use", "bigger")["spec"]
    assert spec["tags"] == {"a": "base", "b": "spec", "c": "bigger"} and spec["limits"]["queue"] == "none"


def test_paths_are_relative_to_the_file_that_says_them(place):
    place.write("../common/code/train.py", "pass\n")
    place.write("../common/secrets.env", "TOKEN_X=1\n")
    place.write("../common/deep/deep.yaml", "compile: {depends_on: [model.json]}\nsecrets: {KEY: file:key}\n")
    place.write("../common/deep/model.json", "{}")
    place.write("../common/base.yaml", "extends: deep/deep.yaml\nsource: {path: code}\nenv_file: secrets.env\n"
                "checkpoint: {url: ./ckpt}\ncompile: {kind: jax, cache_url: /abs/cache, max_steps: 2}\n")
    place.configure("workspace: ws\n")
    place.write("stoker.yaml", HEAD + "extends: ../common/base.yaml\n")
    plan = place.plan()
    home, spec = place.home, plan["spec"]
    assert plan["source"]["root"] == str(home / "common/code")
    assert spec["checkpoint"]["url"] == "../common/./ckpt" and spec["compile"]["cache_url"] == "/abs/cache"
    assert spec["secrets"]["KEY"] == "file:../common/deep/key"
    assert plan["requests"][-1]["workspace"] == str(home / ".config/stoker/ws")
    assert plan["requests"][-1]["checkpoint"]["root"].startswith(str(home / "common/ckpt"))
    assert "TOKEN_X" in json.dumps(plan["requests"])
    # Seen from another folder the same files are meant.
    other = place.stoker("--json", "plan", f"{place.job}/stoker.yaml")
    assert other.code == 0 and other.lines[0]["source"]["root"] == str(home / "common/code")


def test_a_file_that_is_extended_is_no_source_and_no_part_of_the_key(place):
    place.write("base.yaml", "env: {A: '1'}\n")
    place.write("stoker.yaml", HEAD + "extends: base.yaml\ncompile: {kind: jax, cache_url: ./cache, max_steps: 2}\n")
    key = place.plan()["cache"]["graph_key"]
    place.write("base.yaml", "# a remark\nenv:\n  A: '1'\n")
    assert place.plan()["cache"]["graph_key"] == key
    place.write("base.yaml", "env: {A: '2'}\n")
    assert place.plan()["cache"]["graph_key"] != key


def test_only_the_fields_that_result_count_in_the_key(place):
    compiled = "compile: {kind: jax, cache_url: ./cache, max_steps: 2}\n"
    place.write("plain.yaml", HEAD + compiled + "hyperparameters: {b: 8}\n")
    place.write("named.yaml", HEAD + compiled + "hyperparameters: {b: 4}\nprofiles:\n  eight: {hyperparameters: {b: 8}}\n"
                "  acht: {hyperparameters: {b: 8}}\n")
    keys = {place.plan(*argv)["cache"]["graph_key"] for argv in
            [("plain.yaml",), ("named.yaml", "--use", "eight"), ("named.yaml", "--use", "acht")]}
    assert len(keys) == 1
    assert place.plan("named.yaml")["cache"]["graph_key"] not in keys


def test_a_run_with_another_profile_is_another_plan(place):
    place.write("stoker.yaml", HEAD + "profiles:\n  two: {env: {N: '2'}}\n  three: {env: {N: '3'}}\n  deux: {env: {N: '2'}}\n")
    assert place.stoker("run", "--id", "k", "--use", "two").code == 0
    said = place.stoker("run", "--id", "k", "--use", "three")
    assert said.code == 3 and "env.N" in said.err
    assert place.stoker("run", "--id", "k", "--use", "deux").code == 0


# ---- validate ----

def test_validate_checks_the_spec_alone_and_with_each_profile(place):
    place.write("stoker.yaml", HEAD + "limits: {queue: 1x}\nprofiles:\n  bad: {resources: {nodes: many}}\n  good: {tags: {a: b}}\n"
                "  worse: {use: bad}\n")
    problems = place.problems()
    assert [(row["line"], row["column"], row.get("profiles")) for row in problems] == \
        [(4, 17, None), (6, 28, "bad, worse")]
    said = place.stoker("validate")
    assert "(with --use bad, worse)" in said.err
    place.write("stoker.yaml", HEAD + "profiles:\n  a: {tags: {a: b}}\n  b: {tags: {a: c}}\n")
    assert place.stoker("validate").out == "stoker.yaml is valid, alone and with each of a and b\n"
    assert place.stoker("validate", "--use", "b").out == "stoker.yaml is valid\n"


def test_a_spec_may_be_complete_only_with_a_profile(place):
    place.write("stoker.yaml", "version: 1\nname: x\nprofiles:\n  tags: {tags: {a: b}}\n"
                "  dev: {command: [python3, train.py]}\n"
                "  big: {engine: batch, image: 'i:1', workspace: s3://bkt/w, command: [python3, t.py],\n"
                "        resources: {instance: trn1.32xlarge}, batch: {job_queue: q}}\n")
    said = place.stoker("validate")
    assert said.code == 0 and \
        said.out == "stoker.yaml is valid with --use dev or big; without a profile it lacks command\n"
    remark, = place.stoker("--json", "validate").lines
    assert remark == {"file": "stoker.yaml", "line": 0, "column": 0, "field": "command", "lint": True, "remark": True,
                      "message": "without a profile 'command' is missing", "hint": "choose one: --use dev or big"}
    assert place.stoker("--json", "validate", "--use", "dev").lines == []
    assert place.stoker("plan", "--use", "dev").code == 0
    said = place.stoker("plan")
    assert said.code == 3 and "'command' is missing" in said.err
    # Fields that others ask for count, too: a price for a limit, the kind of a cache.
    place.write("base.yaml", "limits: {cost: 9}\ncompile: {cache_url: /tmp/cache}\n")
    place.write("stoker.yaml", HEAD + "extends: base.yaml\nprofiles:\n"
                "  one: {resources: {price: 2}, compile: {kind: jax, max_steps: 2}}\n")
    assert place.stoker("validate").out == \
        "stoker.yaml is valid with --use one; without a profile it lacks resources.price and compile.kind\n"
    # What no profile completes is a problem still.
    place.write("stoker.yaml", "version: 1\nname: x\nprofiles:\n  tags: {tags: {a: b}}\n")
    assert [row["field"] for row in place.problems()] == ["command"]


def test_awss_profile_is_another(place):
    place.write("stoker.yaml", HEAD + "profiles:\n  gpu: {tags: {a: b}}\n")
    said = place.stoker("plan", "--profile", "gpu")
    assert said.code == 4 and "did you mean --use gpu?" in said.err


# ---- the user's configuration ----

def test_the_configuration_is_found_and_can_be_left_out(place):
    own = place.configure("limits: {deadline: 1h}\n")
    place.write("stoker.yaml", HEAD)
    deadline = lambda **env: place.plan(**env)["spec"]["limits"]["deadline"]  # noqa: E731
    assert deadline() == "1h"
    assert deadline(STOKER_CONFIG="") == "none"
    place.write("other.yaml", "limits: {deadline: 2h}\n")
    assert deadline(STOKER_CONFIG="other.yaml") == "2h"
    xdg = place.write("../xdg/stoker/config.yaml", "limits: {deadline: 3h}\n")
    assert deadline(XDG_CONFIG_HOME=str(xdg.parents[1])) == "3h"
    said = place.stoker("plan", STOKER_CONFIG="nowhere.yaml")
    assert said.code == 3 and "nowhere.yaml" in said.err and "No such file" in said.err
    own.unlink()
    assert deadline() == "none"


def test_the_configuration_names_the_state_of_every_command(place):
    place.write("stoker.yaml", HEAD)
    place.configure("state: ../../states/mine\n")
    assert place.stoker("run", "--id", "one").code == 0
    assert (place.home / "states/mine").is_dir() and not (place.root / "state/stoker").exists()
    assert place.stoker("list", "--json").lines[0]["run"] == "one"
    assert place.stoker("list", "--json", STOKER_STATE=str(place.root / "empty")).lines == []
    assert place.stoker("--state", str(place.root / "empty"), "list", "--json").lines == []
    place.configure("state: [one]\n")
    said = place.stoker("list")
    assert said.code == 3 and "config.yaml:1:8" in said.err
    assert place.stoker("help").code == 0 and place.stoker("version").code == 0


def test_settings_of_other_engines_are_for_other_specs(place):
    place.configure("batch: {job_queue: mine}\nsagemaker: {role: 'arn:aws:iam::123456789012:role/r'}\n"
                    "aws: {region: us-west-2}\n")
    place.write("stoker.yaml", HEAD)
    spec = place.plan()["spec"]
    assert "batch" not in spec and "sagemaker" not in spec and spec["aws"]["region"] == "us-west-2"
    place.write("stoker.yaml", HEAD + "engine: ${ENGINE:-batch}\nimage: 'i:1'\nworkspace: s3://bkt/w\n"
                "resources: {instance: trn1.32xlarge}\n")
    assert place.problems(code=0) == []
    place.write("stoker.yaml", HEAD + "batch: {job_queue: null}\nengine: batch\nimage: 'i:1'\nworkspace: s3://bkt/w\n"
                "resources: {instance: trn1.32xlarge}\n")
    assert [row["field"] for row in place.problems()] == ["batch.job_queue"]


def test_two_colleagues_get_one_key(place):
    place.write("stoker.yaml", HEAD + "compile: {kind: jax, cache_url: ./cache, max_steps: 2}\n")
    key = place.plan()["cache"]["graph_key"]
    place.configure("limits: {deadline: 2h}\ntags: {who: me}\nworkspace: /tmp/ws\naws: {region: us-west-2}\n"
                    "notify: [{when: [failed], command: [./page-me]}]\n")
    assert place.plan()["cache"]["graph_key"] == key


def test_a_limit_of_cost_counts_where_there_is_a_price(place):
    place.configure("limits: {cost: 50}\n")
    place.write("stoker.yaml", HEAD)
    assert [(row["field"], row["lint"]) for row in place.problems(code=0)] == [("limits.cost", True)]
    assert place.plan()["spec"]["limits"]["cost"] == "none"
    assert place.plan("--set", "resources.price=2")["spec"]["limits"]["cost"] == 50
    assert "needs 'resources.price'" in place.problems("--set", "limits.cost=9")[0]["message"]


# ---- what does not fit ----

WRONG = [
    # files, what is said: [(file, line, column, words)]
    ({"stoker.yaml": HEAD + "extends: base.yaml\n"}, [("stoker.yaml", 4, 10, "'base.yaml'")]),
    ({"stoker.yaml": HEAD + "extends: [a.yaml, b.yaml]\n", "a.yaml": "tags: {}\n"}, [("stoker.yaml", 4, 19, "'b.yaml'")]),
    ({"stoker.yaml": HEAD + "extends: {a: b}\n"}, [("stoker.yaml", 4, 10, "a file or a list of files")]),
    ({"stoker.yaml": HEAD + "extends: [[a]]\n"}, [("stoker.yaml", 4, 11, "extends[0]")]),
    ({"stoker.yaml": HEAD + "extends:\n"}, [("stoker.yaml", 4, 9, "a file or a list of files")]),
    ({"stoker.yaml": HEAD + "extends: ['']\n"}, [("stoker.yaml", 4, 11, "extends[0]")]),
    ({"stoker.yaml": HEAD + "extends: ''\n"}, [("stoker.yaml", 4, 10, "'extends' must be the path of a file")]),
    ({"stoker.yaml": HEAD + "extends: https://a/b.yaml\n"}, [("stoker.yaml", 4, 10, "local files only")]),
    ({"stoker.yaml": HEAD + "extends: s3://b/c.yaml\n"}, [("stoker.yaml", 4, 10, "local files only")]),
    ({"stoker.yaml": HEAD + "extends: ${BASE}.yaml\n"}, [("stoker.yaml", 4, 10, "variables do not expand")]),
    ({"stoker.yaml": HEAD + "extends: .\n"}, [("stoker.yaml", 4, 10, "is a directory")]),
    ({"stoker.yaml": HEAD + "extends: stoker.yaml\n"},
     [("stoker.yaml", 4, 10, "stoker.yaml extends stoker.yaml")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": "extends: b.yaml\n", "b.yaml": "tags: {}\nextends: ./a.yaml\n"},
     [("b.yaml", 2, 10, "stoker.yaml extends a.yaml extends b.yaml extends")]),
    ({"stoker.yaml": HEAD + "extends: 1.yaml\n", **{f"{n}.yaml": f"extends: {n + 1}.yaml\n" for n in range(1, 10)},
      "10.yaml": "tags: {}\n"}, [("8.yaml", 1, 10, "more than 8 files extend one another: stoker.yaml extends 1.yaml")]),
    ({"stoker.yaml": HEAD + "extends: [a.yaml, b.yaml]\n", "a.yaml": "x-a: " + "a" * 600000 + "\n",
      "b.yaml": "x-b: " + "b" * 600000 + "\n"}, [("stoker.yaml", 4, 19, "larger than 1 MiB in all")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": "tags: {a: b\n"}, [("a.yaml", 1, 7, "invalid mapping")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": "- one\n"}, [("a.yaml", 1, 1, "not a mapping of fields, but a list")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": ""}, [("a.yaml", 1, 1, "empty")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": "text\n"}, [("a.yaml", 1, 1, "a string")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": "tags: {a: b}\ntags: {c: d}\n"}, [("a.yaml", 2, 1, "duplicate 'tags'")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": "name: y\nretires: 3\n"}, [("a.yaml", 2, 1, "unknown field 'retires'")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": "resources:\n  nodes: many\n"}, [("a.yaml", 2, 10, "resources.nodes")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": "resources: 4\n"}, [("a.yaml", 1, 12, "resources")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": "env: {A: '${UNSET_ONE}'}\n"}, [("a.yaml", 1, 10, "UNSET_ONE")]),
    ({"stoker.yaml": HEAD + "env: *shared\nextends: a.yaml\n", "a.yaml": "x-env: &shared {A: b}\n"},
     [("stoker.yaml", 4, 6, "no anchor '&shared'")]),
    ({"stoker.yaml": HEAD + "x-env: &shared {A: b}\nextends: a.yaml\n", "a.yaml": "env: *shared\n"},
     [("a.yaml", 1, 6, "no anchor '&shared'")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\nresources: {nodes: 2}\n", "a.yaml": "resources: [1]\nlimits: {queue: 3}\n"},
     [("a.yaml", 2, 17, "limits.queue")]),
    ({"stoker.yaml": HEAD + "profiles: [dev]\n"}, [("stoker.yaml", 4, 11, "a mapping of names and fields")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: 3}\n"}, [("stoker.yaml", 4, 17, "a profile is a mapping of fields, not a number")]),
    ({"stoker.yaml": HEAD + "profiles: {'a b': {}}\n"}, [("stoker.yaml", 4, 12, "'a b' in 'profiles'")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: {version: 1}}\n"}, [("stoker.yaml", 4, 18, "'version' cannot stand in a profile")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: {extends: a.yaml}}\n"}, [("stoker.yaml", 4, 18, "'extends' cannot stand")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: {profiles: {}}}\n"}, [("stoker.yaml", 4, 18, "'profiles' cannot stand")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: {use: dve}}\n"}, [("stoker.yaml", 4, 23, "no profile 'dve'")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: {use: {a: b}}}\n"}, [("stoker.yaml", 4, 23, "a profile or a list of profiles")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: {use: dev}}\n"}, [("stoker.yaml", 4, 23, "dev uses dev")]),
    ({"stoker.yaml": HEAD + "profiles:\n  a: {use: b}\n  b: {use: a}\n"}, [("stoker.yaml", 5, 12, "b uses a uses b"),
                                                                          ("stoker.yaml", 6, 12, "a uses b uses a")]),
    ({"stoker.yaml": HEAD + "profiles:\n  a: {use: nope}\n  b: {version: 1, retires: 2}\n  c: {use: {}, name: [1]}\n  d: 3\n"},
     [("stoker.yaml", 5, 12, "no profile 'nope'"), ("stoker.yaml", 6, 7, "'version' cannot stand"),
      ("stoker.yaml", 6, 19, "unknown field 'retires'"), ("stoker.yaml", 7, 12, "a profile or a list"),
      ("stoker.yaml", 7, 22, "name"), ("stoker.yaml", 8, 6, "a profile is a mapping")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: {engine: lokal}}\n"}, [("stoker.yaml", 4, 26, "engine")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: {retires: 2}}\n"}, [("stoker.yaml", 4, 18, "unknown field 'retires'")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: {env: {A: [1]}}}\n"}, [("stoker.yaml", 4, 27, "env.A")]),
    ({"stoker.yaml": HEAD + "profiles: {dev: {name: null}}\n"}, [("stoker.yaml", 1, 1, "'name' is missing")]),
    ({"stoker.yaml": HEAD + "extends: a.yaml\n", "a.yaml": "profiles:\n  dev:\n    limits: {queue: soon}\n"},
     [("a.yaml", 3, 21, "limits.queue")]),
    ({"stoker.yaml": HEAD, "config.yaml": "- a\n"}, [("config.yaml", 1, 1, "a configuration is a mapping")]),
    ({"stoker.yaml": HEAD, "config.yaml": "engine: batch\n"}, [("config.yaml", 1, 1, "'engine' cannot stand")]),
    ({"stoker.yaml": HEAD, "config.yaml": "tags: {}\nimage: 'i:1'\n"}, [("config.yaml", 2, 1, "'image' cannot stand")]),
    ({"stoker.yaml": HEAD, "config.yaml": "env: {A: b}\nhyperparameters: {a: 1}\ncompile: {kind: jax}\n"},
     [("config.yaml", 1, 1, "'env'"), ("config.yaml", 2, 1, "'hyperparameters'"), ("config.yaml", 3, 1, "'compile'")]),
    ({"stoker.yaml": HEAD, "config.yaml": "resources: {nodes: 2}\n"}, [("config.yaml", 1, 1, "'resources' cannot stand")]),
    ({"stoker.yaml": HEAD, "config.yaml": "sagemaker: {launcher: toolkit, role: r}\nslurm:\n  partition: p\n"},
     [("config.yaml", 1, 13, "'sagemaker.launcher' cannot stand"), ("config.yaml", 3, 3, "'slurm.partition' cannot stand")]),
    ({"stoker.yaml": HEAD + "profiles: {q: {compiel: null}, r: {resources: {nodse: null}}}\n"},
     [("stoker.yaml", 4, 16, "unknown field 'compiel'"), ("stoker.yaml", 4, 48, "unknown field 'nodse'")]),
    ({"stoker.yaml": HEAD + "extends: [a.yaml, b.yaml]\n", "a.yaml": "tags: {a: b}\n", "b.yaml": "compiel: null\n"},
     [("b.yaml", 1, 1, "unknown field 'compiel'")]),
    ({"stoker.yaml": HEAD, "config.yaml": "limts: {}\n"}, [("config.yaml", 1, 1, "unknown field 'limts'")]),
    ({"stoker.yaml": HEAD, "config.yaml": "limits: {cost: much}\n"}, [("config.yaml", 1, 16, "limits.cost")]),
    ({"stoker.yaml": HEAD, "config.yaml": "limits: {cost: 3\n"}, [("config.yaml", 1, 9, "invalid mapping")]),
    ({"stoker.yaml": HEAD, "config.yaml": "extends: stoker.yaml\n"}, [("config.yaml", 1, 1, "'extends' cannot stand")]),
]


@pytest.mark.parametrize("files,said", WRONG, ids=[str(n) for n in range(len(WRONG))])
def test_what_does_not_fit_is_shown_where_it_stands(place, files, said):
    for name, text in files.items():
        place.write(name, text)
    config = "config.yaml" if "config.yaml" in files else ""
    found = place.problems(STOKER_CONFIG=config)
    assert [(row["file"], row["line"], row["column"]) for row in found] == [row[:3] for row in said], found
    for row, (*_, words) in zip(found, said):
        assert words in row["message"] and row.get("hint"), row


@pytest.mark.parametrize("argv,words", [
    (("--use", "gpuu"), "did you mean 'gpu'?"),
    (("--use", ""), "the spec has gpu"), (("--use", "nope"), "hint: the spec has gpu"),
    (("--use", "gpu,dev"), "repeat the option for each one; the spec has gpu"),
    (("--set", "profiles.gpu.engine=local"), "choose a profile: --use NAME"),
    (("--set", "extends=a.yaml"), "write it in the spec"),
])
def test_a_layer_is_chosen_not_set(place, argv, words):
    place.write("stoker.yaml", HEAD + "profiles: {gpu: {tags: {a: b}}}\n")
    said = place.stoker("plan", *argv)
    assert said.code == 3 and words in said.err


def test_aliases_unfold_within_bounds(place):
    bomb = "x-0: &a0 [" + ", ".join("x" for _ in range(50)) + "]\n"
    for n in range(1, 3):
        bomb += f"x-{n}: &a{n} [" + ", ".join(f"*a{n - 1}" for _ in range(50)) + "]\n"
    for n in range(4):
        place.write(f"{n}.yaml", bomb)
    place.write("stoker.yaml", HEAD + "extends: [0.yaml, 1.yaml, 2.yaml, 3.yaml]\n")
    assert [row["message"] for row in place.problems()] == ["with its aliases the spec unfolds to more than 200000 values"]


def test_the_schema_knows_layers(place):
    jsonschema = pytest.importorskip("jsonschema")
    schema = place.stoker("schema").lines[0]
    check = jsonschema.Draft202012Validator(schema).is_valid
    job = {"version": 1, "name": "x", "command": ["a"]}
    assert check({**job, "profiles": {"dev": {"use": "b", "resources": {"nodes": None}, "limits": None}}})
    assert check({"version": 1, "extends": "base.yaml"}) and check({"version": 1, "profiles": {"dev": {"command": ["a"]}}})
    assert not check({"version": 1, "name": "x"})
    assert not check({**job, "profiles": {"dev": {"version": 1}}}) and not check({**job, "profiles": {"dev": {"retires": 1}}})
