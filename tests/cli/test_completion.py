"""The completion of the shells, in the real shells: what a tab offers."""

import subprocess

import pytest
import stoker as cli
from shell_terminal import ShellTerminal

BASH = """
source <(stoker completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_stoker stoker
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def place(project):
    """A folder with a spec, other files, and two runs; the binary is in PATH."""
    project.write(compile=None)
    project.run("--id", "night-1")
    project.run("--id", "noon")
    (project.source / "sub folder").mkdir()
    tools = project.root / "tools"
    tools.mkdir()
    (tools / "stoker").symlink_to(cli.BINARY)
    project.shell_env = project.env(PATH=f"{tools}:/usr/bin:/bin", TERM="dumb", HOME=str(project.root),
                                    XDG_CONFIG_HOME=str(project.root / "config"),
                                    XDG_DATA_HOME=str(project.root / "data"))
    return project


def asked(place, *words, env=None):
    """What stoker itself offers: candidate → help."""
    done = cli.stoker("complete", "--", *words, env={**place.shell_env, **(env or {})}, cwd=place.source)
    assert (done.code, done.err) == (0, ""), str(done)
    return dict((line + "\t").split("\t")[:2] for line in done.out.splitlines())


def in_bash(place, *words):
    done = subprocess.run(["bash", "--norc", "-c", BASH, "bash", *words], text=True,
                          capture_output=True, env=place.shell_env, cwd=place.source, timeout=cli.SECONDS)
    assert (done.returncode, done.stderr) == (0, ""), done
    return sorted(filter(None, done.stdout.splitlines()))


def in_fish(place, line):
    done = subprocess.run(["fish", "--no-config", "-c", f"stoker completion fish | source; complete -C'{line}'"],
                          text=True, capture_output=True, env=place.shell_env, cwd=place.source, timeout=cli.SECONDS)
    assert (done.returncode, done.stderr) == (0, ""), done
    return sorted(row.split("\t")[0] for row in done.stdout.splitlines())


# --- what is offered --------------------------------------------------------------

def test_every_command_and_no_hidden_one_is_offered(place):
    names = {row["command"].split()[0] for row in cli.stoker("help", "--json").lines}
    assert set(asked(place, "")) == names
    assert "complete" not in names and "manual" not in names


def test_of_each_command_exactly_its_options_are_offered(place):
    for row in cli.stoker("help", "--json").lines:
        offered = asked(place, *row["command"].split(), "--")
        assert sorted(offered) == sorted(f"--{name}" for name in row["options"])
        assert all(offered.values()), offered


@pytest.mark.parametrize("words, some", [
    (("run", "--color", ""), {"auto", "always", "never"}),
    (("run", "--on-interrupt="), {"--on-interrupt=detach", "--on-interrupt=stop"}),
    (("run", "--on-hangup="), {"--on-hangup=drive", "--on-hangup=detach", "--on-hangup=stop"}),
    (("run", "--engine", "s"), {"slurm", "sagemaker"}),
    (("run", "--set", "resources.no"), {"resources.nodes="}),
    (("run", "--set", "compile.kind="), {"compile.kind=neuron", "compile.kind=jax", "compile.kind=none"}),
    (("run", "--set", "source.allow_dirty="), {"source.allow_dirty=true", "source.allow_dirty=false"}),
    (("run", "--set", "en"), {"engine=", "env.", "env_file="}), (("run", "--set", "ext"), set()), (("run", "--set", "prof"), set()),
    (("init", "--template", "q"), {"quickstart"}),
    (("schema", "--of", "s"), {"spec", "status", "stats", "sweep", "schedule-add", "schedule-ls", "schedule-next", "schedule-rm"}),
    (("validate", "--format="), {"--format=text", "--format=json", "--format=github"}),
    (("cache", "v"), {"verify"}),
    (("help", "cache", "w"), {"why"}),
    (("help", "exit"), {"exit-codes"}),
    (("help", "retry.b"), {"retry.backoff", "retry.backoff.first", "retry.backoff.max"}),
    (("completion", ""), {"bash", "zsh", "fish"}),
    (("status", ""), {"@last", "night-1", "noon"}),
    (("status", "ni"), {"night-1"}),
    (("status", "noon", ""), set()),
    (("rm", "noon", "nig"), {"night-1"}),
    (("run", ""), {":specs"}),
    (("--state", "nowhere", "status", ""), set()),
    (("status", "--state=nowhere", ""), set()),
    (("--state=",), {":folders"}),
    (("no-such-command", ""), set()),
    (("cache", "no-such-command", ""), set()),
    (("validate", "--", "--"), {":specs"}),
    (("run", "--id", "--color", "stoker.yaml", "--col"), {"--color"}),
])
def test_what_is_offered(place, words, some):
    assert set(asked(place, *words)) == some


def test_without_state_nothing_is_offered_and_nothing_made(place):
    assert asked(place, "status", "", env={"XDG_STATE_HOME": str(place.root / "none")}) == {}
    assert not (place.root / "none").exists()


def test_a_state_that_cannot_be_read_is_no_noise(place):
    broken = place.root / "broken"
    broken.mkdir()
    (broken / "journal.db").write_text("this is no database, and long enough to be looked at\n" * 100)
    assert asked(place, "status", "", env={"STOKER_STATE": str(broken)}) == {}


# --- in the shells ----------------------------------------------------------------

@pytest.mark.parametrize("words, offered", [
    (["stoker", "ru"], ["run"]),
    (["stoker", "cache", "v"], ["verify"]),
    # As bash has them: = and : are words of their own.
    (["stoker", "run", "--color", "=", "al"], ["always"]),
    (["stoker", "run", "--color", "="], ["always", "auto", "never"]),
    (["stoker", "run", "--set", "compile.kind", "=", "j"], ["jax"]),
    (["stoker", "run", "--set", "compile.kin"], ["compile.kind="]),
    (["stoker", "run", "st"], ["stoker.yaml"]),
    (["stoker", "run", "s"], ["stoker.yaml", "sub folder"]),
    (["stoker", "cache", "ls", "s"], ["sub folder"]),
    (["stoker", "status", "ni"], ["night-1"]),
    (["stoker", "logs", "noon", "--ph"], ["--phase"]),
])
def test_bash(place, words, offered):
    assert in_bash(place, *words) == offered


@pytest.mark.parametrize("line, offered", [
    ("stoker ru", ["run"]),
    ("stoker cache v", ["verify"]),
    ("stoker run --color=al", ["--color=always"]),
    ("stoker run --on-h", ["--on-hangup"]),
    ("stoker run --set compile.kind=j", ["compile.kind=jax"]),
    ("stoker run st", ["stoker.yaml"]),
    ("stoker --state=su", ["--state=sub folder/"]),
    ("stoker status ni", ["night-1"]),
])
def test_fish(place, line, offered):
    assert in_fish(place, line) == offered


def test_zsh(place):
    env = {**place.shell_env, "ZDOTDIR": str(place.root), "PS1": "ready> "}
    with ShellTerminal(["/usr/bin/zsh", "-f", "-i"], env, place.source) as shell:
        shell.until("ready> ")
        shell.type("unsetopt zle_prompt_cr 2>/dev/null; autoload -Uz compinit; compinit -u -D\n")
        shell.until("ready> ")
        shell.type("source <(stoker completion zsh); echo lo''aded\n")
        shell.until("loaded")
        for typed, shown in (("stoker valid\t", "stoker validate "), ("stoker cache ver\t", "stoker cache verify "),
                             ("stoker run --color=al\t", "--color=always"), ("stoker run sto\t", r"run stoker\.yaml"),
                             ("stoker run --set compile.kin\t", r"compile\.kind="),
                             ("stoker status nig\t", "status night-1"), ("stoker rm noo\t", "rm noon"),
                             ("stoker run --d\t", r"--detach +-- leave the run to a driver")):
            shell.type(typed)
            shell.until(shown)
            shell.type("\x15")


def test_zsh_finds_it_as_a_file_of_its_own(place):
    """As packages install it: _stoker in a folder of fpath."""
    folder = place.root / "functions"
    folder.mkdir()
    (folder / "_stoker").write_text(cli.stoker("completion", "zsh").out)
    env = {**place.shell_env, "ZDOTDIR": str(place.root), "PS1": "ready> "}
    with ShellTerminal(["/usr/bin/zsh", "-f", "-i"], env, place.source) as shell:
        shell.until("ready> ")
        shell.type(f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; echo lo''aded\n")
        shell.until("loaded")
        for _ in range(2):  # the first time it is read, then it is there
            shell.type("stoker valid\t")
            shell.until("stoker validate ")
            shell.type("\x15")


def test_the_scripts_are_what_the_repository_holds():
    for shell in ("bash", "zsh", "fish"):
        text = (cli.ROOT / f"cmd/completion/{shell}.completion").read_text()
        assert cli.stoker("completion", shell).out == text
        said, = cli.stoker("--json", "completion", shell).lines
        assert said == {"shell": shell, "script": text}
    done = subprocess.run(["shellcheck", "--shell=bash", cli.ROOT / "cmd/completion/bash.completion"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    for shell in ("zsh", "fish"):
        subprocess.run([shell, "-n", cli.ROOT / f"cmd/completion/{shell}.completion"], check=True)


def test_a_shell_without_completion_is_named():
    done = cli.stoker("completion", "tcsh")
    assert done.code == 2 and "tcsh" in done.err and "bash" in done.cure
