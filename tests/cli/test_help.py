"""Help and the manual: every row of every table is in them, what they show can be
typed, and what they say of the environment is what jobs really get."""

import json
import re
import shlex
import subprocess
from fnmatch import fnmatchcase

import pytest
import stoker as cli

COMMANDS = cli.stoker("help", "--json").lines
FIELDS = cli.stoker("help", "spec", "--json").lines
VARIABLES = cli.stoker("help", "environment", "--json").lines
PAGES = {"stoker": "1", "stoker-spec": "5", "stoker-node": "8"}


def sections(text):
    """The lines beneath each heading of a page of help."""
    found, name = {}, ""
    for line in text.splitlines():
        heading = re.fullmatch(r"(\S[^:]*):", line)
        name = heading[1] if heading else name
        found.setdefault(name, []).extend([] if heading else [line])
    return found


def source_texts(*folders):
    for folder in folders:
        for path in (cli.ROOT / folder).rglob("*.[ch]"):
            yield path, path.read_text()


# --- commands ---------------------------------------------------------------------

@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row["command"])
def test_a_command_has_all_of_its_help(row):
    words = row["command"].split()
    said = cli.stoker("help", *words)
    assert said.code == 0
    if words != ["help"]:  # which alone shows the overview
        assert said.out == cli.stoker(*words, "--help").out == cli.stoker("--help", *words).out
    assert said.out.startswith(f"stoker {row['command']}")
    parts = sections(said.out)
    own = re.findall(r"^ +(?:-\w, )?--([a-z-]+)", "\n".join(parts.get("options", [])), re.MULTILINE)
    [line] = parts["options of every command"][:1]  # a letter where there is one; 'stoker help' explains them
    overview = sections(cli.stoker("help").out)["options of every command"]
    letters = dict(re.findall(r"^ +(-\w), --([a-z-]+)", "\n".join(overview), re.MULTILINE))
    every = [letters.get(word, word[2:]) for word in line.split() if word.startswith("-")]
    assert sorted(own + every) == sorted(row["options"])
    codes = [int(line.split()[0]) for line in parts["exit codes"] if re.match(r" +\d", line)]
    assert codes == sorted({0, 2, 70, *row["exit_codes"]})
    assert max(map(len, said.out.splitlines())) <= 80


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row["command"])
def test_the_examples_of_a_command_can_be_typed(row):
    lines = sections(cli.stoker("help", *row["command"].split()).out)["examples"]
    typed = [line.strip() for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert 1 <= len(typed) <= 4
    for line in typed:
        words = shlex.split(re.search(r"stoker [^|>)]*", line)[0])[1:]
        assert words[:len(row["command"].split())] == row["command"].split(), line
        own = words.index("--") if "--" in words else len(words)  # behind it stands another command
        done = cli.stoker(*words[:own], "--help")
        assert done.code == 0, f"{line}: {done}"


def test_every_word_of_a_usage_is_explained():
    table = (cli.ROOT / "cmd/args/words.def").read_text()
    known = set(re.findall(r'^WORD\("([^"]+)"', table, re.MULTILINE))
    options = (cli.ROOT / "cmd/args/options.def").read_text()
    used = set(re.findall(r'(?:TEXT|LIST), "([^"]+)",\s+(?:"|NULL)', options))
    for row in COMMANDS:
        used |= set(re.findall(r"[A-Z=]+", row["operands"]))
    assert used <= known
    # and none is there for nothing
    assert known <= used | {"WORD"}


def test_a_word_that_a_usage_repeats_is_explained_once():
    rows = cli.stoker("help", "diff").out.split("arguments:\n")[1].split("\n\n")[0].splitlines()
    assert [row.split()[0] for row in rows if row[2] != " "] == ["RUN", "SPEC"]


def test_a_command_that_is_never_shown_has_no_help():
    for name in ("complete", "manual"):
        assert name not in [row["command"] for row in COMMANDS]
        assert cli.stoker("help", name).code == 2


# --- topics -----------------------------------------------------------------------

def test_every_topic_is_listed_and_there():
    listed = [line.split()[0] for line in cli.stoker("help", "topics").out.splitlines() if line.startswith("  ")]
    assert listed == ["spec", "exit-codes", "environment", "failures", "json", "topics"]
    for topic in listed:
        said = cli.stoker("help", topic)
        assert said.code == 0 and said.out and max(map(len, said.out.splitlines())) <= 80


@pytest.mark.parametrize("wrong, meant", [("enviroment", "environment"), ("exit-code", "exit-codes"), ("spce", "spec"),
                                          ("rnu", "run"), ("resource.nodes", "resources.nodes"),
                                          ("retry.atempts", "retry.attempts"), ("topic", "topics")])
def test_a_topic_nearly_right_is_found(wrong, meant):
    done = cli.stoker("help", wrong)
    assert done.code == 2 and not done.out
    assert f"'{wrong}'" in done.err and f"did you mean '{meant}'?" in done.cure


def test_the_tree_of_the_spec_has_every_field():
    tree = cli.stoker("help", "spec").out
    path, found = [], []
    for line in tree.splitlines():
        row = re.match(r"  ((?:  )*)(\S+)(?:  |$)", line)
        if not row or len(row[1]) > 10:
            continue
        path[len(row[1]) // 2:] = [row[2]]
        found.append(".".join(path).replace(".[]", "[]"))
    assert found == [row["field"] for row in FIELDS]


def test_every_field_has_help_of_its_own():
    for row in FIELDS:
        said = cli.stoker("help", "spec." + row["field"])
        assert said.code == 0 and said.out.splitlines()[0] == row["field"], str(said)
        flat = " ".join(said.out.split())
        assert " ".join(row["help"].split()) in flat
        for name in ("default", "example"):
            if name in row:
                assert f"{name}: {' '.join(row[name].split())}" in flat
        assert max(map(len, said.out.splitlines())) <= 80 or len(row.get("example", "")) > 60


def test_a_field_that_is_called_like_a_command_is_pointed_to():
    commands = {row["command"] for row in COMMANDS}
    both = [row["field"] for row in FIELDS if row["field"] in commands]
    assert both == ["version", "metrics", "sweep", "promote"]
    for name in both:
        assert f"stoker help spec.{name}" in " ".join(cli.stoker("help", name).out.split())
    assert cli.stoker("help", "spec.name").out == cli.stoker("help", "name").out
    assert cli.stoker("help", "spec.nmae").code == 2


# --- the environment --------------------------------------------------------------

def test_every_variable_that_is_read_is_in_the_table():
    read, others = set(), set()
    for _, text in source_texts("cmd", "jobs", "aws"):
        read |= set(re.findall(r'\b(?:getenv|getenv_fn|aws_env|aws_env_true)\("([^"]+)"\)', text))
        others |= set(re.findall(r'\bgetenv\((?!")(.*?)\)[;,:]', text))
    # Names that come from the table, from the spec, from a path with variables in it, or
    # from an engine to its agent.
    assert others <= {"variable_rows[i].name)", "variable_rows[i].name", "name", "copy", "json_string_value(name)",
                      "from + 4", "ORDER_RESTART", "ORDER_TOKEN", "WORK_VARIABLE", "variable",
                      "apart"}, others
    # libcurl looks for its proxies itself; names of endpoints are put together; WORK_VARIABLE.
    listed = {row["variable"] for row in VARIABLES if "read" in row["uses"]}
    listed -= {"AWS_ENDPOINT_URL_*", "STOKER_WORK", *(name for name in listed if name.lower().endswith("_proxy"))}
    assert read == listed


def test_a_job_gets_what_the_table_says_and_nothing_else(project):
    project.extra("import json, os\nprint('GOT ' + json.dumps(dict(os.environ)))\n")
    script = project.source / "train.py"
    script.write_text("import extra\n" + script.read_text().split('"""', 2)[2])
    project.write(env={"FROM_THE_SPEC": "1"}, loggers=["wandb", "mlflow"])
    set_already = {"PATH", "HOME", "USER", "LANG", "TMPDIR"}
    project.run(env={"SECRET_OF_THE_CALLER": "x", "XLA_FLAGS": "y", "TMPDIR": "/tmp",
                     **{row["variable"]: "/of/the/caller" for row in VARIABLES
                        if "passed" in row["uses"] and row["variable"] not in set_already}})
    given = {row["variable"] for row in VARIABLES if "given" in row["uses"]}
    kind = {row["variable"] for row in VARIABLES if "kind" in row["uses"]}
    passed = {row["variable"] for row in VARIABLES if "passed" in row["uses"]}
    seen = {}
    for phase in ("precompile", "train"):

        line = next(line for line in project.logs("--phase", phase).splitlines() if line.startswith("GOT "))
        got = set(json.loads(line[4:])) - {"FROM_THE_SPEC", "LC_CTYPE"}
        seen[phase] = got
        for name in got:
            assert any(fnmatchcase(name, row) for row in given | kind | passed), name
        assert passed <= got
    # Those that are there only now and then, and the other compile kind's.
    rare = {"STOKER_STAGE", "STOKER_MODEL", "STOKER_MODEL_ROLE", "STOKER_REPEAT", "STOKER_SHARD", "STOKER_SHARDS",
            "STOKER_INIT_FROM", "STOKER_RESUME_FROM", "STOKER_DATA_MANIFEST", "STOKER_DATA_DIR",
            "STOKER_COMPILE_WORKERS",
            "STOKER_CACHE_DIR", "RUN_NEURON_PARALLEL_COMPILE", "NEURON_COMPILE_CACHE_URL",
            "CCOM_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "FI_PROVIDER",
            "FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE", "NEURON_RT_ROOT_COMM_ID",
            "NEURON_RT_EXEC_TIMEOUT", "PET_NPROC_PER_NODE"}
    for row in (given | kind) - rare:
        assert any(fnmatchcase(name, row) for name in seen["train"]), row


# --- the manual -------------------------------------------------------------------

@pytest.fixture(scope="module", params=PAGES)
def page(request, tmp_path_factory):
    done = cli.stoker("manual", request.param, "2026-01-02")
    assert done.code == 0 and done.out.isascii()
    path = tmp_path_factory.mktemp("man") / f"{request.param}.{PAGES[request.param]}"
    path.write_text(done.out)
    return path


def test_tools_for_manuals_find_nothing(page):
    for command in (["man", "--warnings", "-E", "UTF-8", "-l", page], ["groff", "-ww", "-man", "-Tutf8", "-z", page],
                    ["mandoc", "-T", "lint", "-W", "style", page], ["lexgrog", page]):
        done = subprocess.run(command, capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
        said = done.stderr + ("" if command[0] in ("man", "lexgrog") else done.stdout)
        assert (done.returncode, said) == (0, ""), f"{command}: {said}"


def read(name):
    roff = cli.stoker("manual", name, "2026-01-02").out
    done = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=200"], input=roff, capture_output=True, text=True,
                          check=True)
    return re.sub(r".\x08", "", done.stdout)


def test_the_manual_has_every_row_of_every_table():
    stoker, spec, node = read("stoker"), read("stoker-spec"), read("stoker-node")
    for row in COMMANDS:
        assert f"stoker {row['command']}" in stoker and row["summary"][1:] in stoker
        for name in row["options"]:
            assert f"--{name}" in stoker
    for row in cli.stoker("help", "exit-codes", "--json").lines:
        assert re.search(rf"^ +{row['code']} +{re.escape(row['meaning'])}$", stoker, re.MULTILINE), row
    for row in FIELDS:
        assert re.search(rf"^ +{re.escape(row['field'])}(?: |$)", spec, re.MULTILINE), row
        assert row["help"] in spec
    for row in VARIABLES:
        where = stoker if {"read", "told"} & set(row["uses"]) else node
        assert row["variable"] in where and row["help"] in where


def test_what_looks_like_roff_is_shown_as_it_is():
    """The starter spec has quotes, backslashes and lines that begin with a dot or
    an apostrophe; all of it arrives."""
    shown = read("stoker-spec")
    for line in (cli.ROOT / "templates/quickstart.yaml").read_text().splitlines():
        assert line.strip() in shown, line


# --- the README -------------------------------------------------------------------

def test_the_readme_lists_every_command_and_every_exit_code():
    text = (cli.ROOT / "README.md").read_text()
    listed = " ".join(re.findall(r"`([^`]+)`", text[text.index("## Commands"):text.index("## Installing")]))
    for row in COMMANDS:
        assert re.search(rf"\b{re.escape(row['command'])}\b", listed), row["command"]
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    assert codes == [row["code"] for row in cli.stoker("help", "exit-codes", "--json").lines]
