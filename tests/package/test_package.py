"""The Debian package: built by the one command that the README names, looked at,
installed into a root of its own, used from there, and removed again. Nothing of
this machine is changed."""

import gzip
import json
import os
import re
import shutil
import stat
import subprocess

import bundle
import pytest
import stoker as cli
from project import Project
from shell_terminal import ShellTerminal

BUILD = ["cmake", "--workflow", "--preset", "package"]
# What a package may do without being root: be root of a name space of its own.
AS_ROOT = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]

CONTENT = """
usr/bin/stoker
usr/lib/stoker/stoker-post
usr/lib/stoker/stoker-derive
usr/lib/stoker/agent/start
usr/lib/stoker/agent/stoker-node
usr/lib/stoker/agent/lib/loader
usr/lib/stoker/agent/lib/libc.so.6
usr/lib/stoker/agent/lib/libcurl.so.4
usr/lib/stoker/agent/lib/ca-certificates.crt
usr/share/man/man1/stoker.1.gz
usr/share/man/man5/stoker-spec.5.gz
usr/share/man/man7/stoker-json.7.gz
usr/share/man/man8/stoker-node.8.gz
usr/share/bash-completion/completions/stoker
usr/share/zsh/vendor-completions/_stoker
usr/share/fish/vendor_completions.d/stoker.fish
usr/share/stoker/stoker.schema.json
usr/share/doc/stoker/README.md
usr/share/doc/stoker/licences/libc6
usr/share/doc/stoker/copyright
usr/share/doc/stoker/changelog.gz
usr/share/doc/stoker/changelog.Debian.gz
usr/share/doc/stoker/examples/quickstart/stoker.yaml
usr/share/doc/stoker/examples/quickstart/train.py
usr/share/lintian/overrides/stoker
""".split() + [
    f"usr/share/doc/stoker/{beside}{path.relative_to(cli.ROOT)}"
    for beside, names in (("", "docs/*.md"), ("examples/", "templates/*.yaml"))
    for path in cli.ROOT.glob(names)]


def run(*argv, **options):
    options.setdefault("cwd", cli.ROOT)
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def package():
    for old in (cli.ROOT / "build").glob("stoker_*.deb"):
        old.unlink()
    # Whoever builds it may be careful about what others see.
    run(*BUILD, umask=0o077)
    made, = (cli.ROOT / "build").glob("stoker_*.deb")
    return made


class Root:
    """A root with nothing in it but dpkg's own books."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("info", "updates"):
            (folder / "var/lib/dpkg" / name).mkdir(parents=True)
        (folder / "var/lib/dpkg/status").touch()

    def dpkg(self, *argv):
        return run(*AS_ROOT, "dpkg", f"--root={self.folder}", "--force-depends", "--log=/dev/null", *argv,
                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"})

    def files(self):
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")
                if not str(path.relative_to(self.folder)).startswith("var") and not path.is_dir()}


@pytest.fixture(scope="module")
def installed(package, tmp_path_factory):
    root = Root(tmp_path_factory.mktemp("root"))
    root.dpkg("-i", package)
    return root


def field(package, name):
    return run("dpkg-deb", "-f", package, name).strip()


# --- the file ---------------------------------------------------------------------

@pytest.fixture(scope="module")
def lintian(package):
    return run("lintian", "--fail-on", "error,warning", "--allow-root", "-I", package)


def test_lintian_finds_neither_errors_nor_warnings(lintian):
    assert not re.search("^[EW]:", lintian, re.MULTILINE), lintian


def test_each_override_is_explained_and_used(lintian):
    text = (cli.ROOT / "cmake/debian/lintian-overrides").read_text()
    for rule in re.finditer(r"^(?!#)stoker: \S+.*$", text, re.MULTILINE):
        above = text[:rule.start()].rstrip("\n").split("\n")[-1]
        assert above.startswith(("#", "stoker:")), rule[0]
    assert "unused-override" not in lintian


def test_it_holds_what_it_should_and_anybody_may_read_it(package):
    rows = [line.split(None, 5) for line in run("dpkg-deb", "-c", package).splitlines()]
    names = {row[5].removeprefix("./") for row in rows}
    assert set(CONTENT) <= names, set(CONTENT) - names
    programs = {"usr/bin/stoker", "usr/lib/stoker/stoker-post", "usr/lib/stoker/stoker-derive",
                "usr/lib/stoker/agent/stoker-node", "usr/lib/stoker/agent/start"}
    for mode, owner, *_, name in rows:
        name = name.removeprefix("./")
        want = "drwxr-xr-x" if name.endswith("/") else "-rwxr-xr-x" if name in programs else "-rw-r--r--"
        assert (mode, owner) == (want, "root/root"), name
    folders = ("usr/bin/", "usr/lib/stoker/", "usr/share/")
    assert all(name.startswith(folders) for name in names if not name.endswith("/")), names


def test_it_depends_on_what_the_program_links_and_on_no_patch_level(package):
    depends = field(package, "Depends")
    assert "<<" not in depends and "(=" not in depends, depends
    assert re.search(r"\blibgit2-[0-9]", depends), "it is loaded while running, and linked by nothing"
    assert {"libcurl4", "ca-certificates"} <= {re.split(r"[ (]", part.strip())[0] for part in depends.split(",")}
    programs = [cli.ROOT / "build/release" / name for name in ("stoker", "stoker-post", "stoker-derive")]
    linked = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", *programs))
    assert len(linked) >= 6
    packages = {re.split(r"[ (]", part.strip())[0] for part in depends.split(",")}
    for library in linked:
        if not library.startswith("ld-linux"):
            assert bundle.owners()[library] & packages, (library, depends)


def test_its_papers_say_the_same_version(package, installed):
    version = field(package, "Version")
    docs = installed.folder / "usr/share/doc/stoker"
    assert gzip.open(docs / "changelog.Debian.gz", "rt").readline().startswith(f"stoker ({version})")
    upstream = version.split("-")[0]
    assert run(installed.folder / "usr/bin/stoker", "version").startswith(f"stoker {upstream}\n")
    assert f"## {upstream}" in gzip.open(docs / "changelog.gz", "rt").read()
    libraries = installed.folder / "usr/lib/stoker/agent/lib"
    assert {"libc", "libcrypto", "libcurl", "libjansson", "libpcre2-8", "libz"} <= {
        path.name.split(".so")[0] for path in libraries.iterdir()}
    there = {path.name for path in (docs / "licences").iterdir()}
    assert {"ca-certificates", "libarchive-dev", "libjs-dygraphs", "common-licenses"} <= there and "unknown" not in there
    assert not bundle.without_licence(libraries, docs / "licences")


# --- installed --------------------------------------------------------------------

def carries_a_job_through(binary, folder):
    project = Project(folder)
    result = cli.stoker("run", project.spec_path, env=project.env(), cwd=project.source, binary=binary)
    assert result.code == 0, str(result)
    status, = cli.stoker("--json", "status", env=project.env(), cwd=project.source, binary=binary).lines
    assert status["state"] == "succeeded" and [row["phase"] for row in status["attempts"]] == ["precompile", "train"]
    return project


def test_a_job_runs_from_the_installed_program_with_the_installed_agent(installed, tmp_path):
    project = carries_a_job_through(installed.folder / "usr/bin/stoker", tmp_path / "job")
    used, = {path.parent for path in project.state.rglob("agents/*/stoker-node")}
    mine = installed.folder / "usr/lib/stoker/agent"
    for path in mine.rglob("*"):
        if path.is_file():
            assert (used / path.relative_to(mine)).read_bytes() == path.read_bytes()


def test_starter_specs_and_examples_are_there(installed, tmp_path):
    binary = installed.folder / "usr/bin/stoker"
    examples = installed.folder / "usr/share/doc/stoker/examples"
    for template in (examples / "templates").glob("*.yaml"):
        made = tmp_path / template.name
        run(binary, "init", "--template", template.stem, made)
        assert made.read_text() == template.read_text().replace(
            "$schema=/usr/share", f"$schema={installed.folder}/usr/share", 1) != template.read_text()
        run(binary, "validate", made)
    assert (installed.folder / "usr/share/stoker/stoker.schema.json").read_text() == run(binary, "schema")
    run(binary, "validate", examples / "quickstart/stoker.yaml")


def test_man_finds_the_pages(installed):
    for section, name in (("1", "stoker"), ("5", "stoker-spec"), ("7", "stoker-json"), ("8", "stoker-node")):
        page = run("man", "--warnings", "-M", installed.folder / "usr/share/man", section, name,
                   env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
        assert page.lower().startswith(f"{name}({section})"), page[:100]


def test_the_shells_find_their_completion(installed, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "stoker").symlink_to(installed.folder / "usr/bin/stoker")
    share = installed.folder / "usr/share"
    env = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path), "TERM": "dumb", "PS1": "ready> "}
    said = run("bash", "--norc", "-c", f". {share}/bash-completion/completions/stoker; COMP_WORDS=(stoker valid) "
               "COMP_CWORD=1; _stoker stoker; echo ${COMPREPLY[@]}", env=env)
    assert said == "validate\n"
    said = run("fish", "-c", "complete -C'stoker valid'", env={**env, "XDG_DATA_DIRS": str(share)})
    assert said.startswith("validate")
    with ShellTerminal(["/usr/bin/zsh", "-f", "-i"], {**env, "ZDOTDIR": str(tmp_path)}, tmp_path) as shell:
        shell.until("ready> ")
        shell.type(f"fpath=({share}/zsh/vendor-completions $fpath); autoload -Uz compinit; compinit -u -D; "
                   "echo lo''aded\n")
        shell.until("loaded")
        shell.type("stoker valid\t")
        shell.until("stoker validate ")


def test_removed_it_leaves_nothing(package, tmp_path):
    root = Root(tmp_path / "root")
    root.dpkg("-i", package)
    assert set(CONTENT) <= root.files()
    root.dpkg("-r", "stoker")
    assert root.files() == set() and not (root.folder / "usr").exists()
    assert not list((root.folder / "var/lib/dpkg/info").glob("stoker*"))


# --- without a package ------------------------------------------------------------

def test_cmake_installs_into_any_prefix(package, tmp_path):
    prefix = tmp_path / "some where"
    run("cmake", "--install", cli.ROOT / "build/release", "--prefix", prefix)
    names = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    for name in ("bin/stoker", "lib/stoker/agent/stoker-node", "share/man/man1/stoker.1.gz",
                 "share/zsh/site-functions/_stoker", "share/bash-completion/completions/stoker",
                 "share/doc/stoker/examples/quickstart/train.py"):
        assert name in names
    assert not any("lintian" in name or "Debian" in name for name in names)
    carries_a_job_through(prefix / "bin/stoker", tmp_path / "job")
    moved = tmp_path / "moved"
    shutil.move(prefix, moved)
    carries_a_job_through(moved / "bin/stoker", tmp_path / "again")
    assert stat.S_IMODE((moved / "lib/stoker/agent/stoker-node").stat().st_mode) == 0o755


def test_the_readme_names_the_command_that_builds_it(package):
    text = (cli.ROOT / "README.md").read_text()
    assert f"    {' '.join(BUILD)} " in text
    assert f"build/{package.name.replace(field(package, 'Architecture'), 'amd64')}" in text


def configure_without_cmocka(folder, *options):
    return subprocess.run(
        ["cmake", "-S", cli.ROOT, "-B", folder, "-DCMAKE_DISABLE_FIND_PACKAGE_cmocka=ON", *options],
        capture_output=True, text=True)


def test_a_plain_build_without_cmocka_leaves_the_tests_out_and_says_so(tmp_path):
    plain = configure_without_cmocka(tmp_path / "plain")
    assert plain.returncode == 0, plain.stderr
    assert "libcmocka-dev" in plain.stdout
    assert not (tmp_path / "plain/tests").exists()


def test_what_the_tests_build_insists_on_cmocka(tmp_path):
    asked = configure_without_cmocka(tmp_path / "asked", "-DSTOKER_TESTS=ON")
    assert asked.returncode != 0 and "cmocka" in asked.stderr
    presets = json.loads((cli.ROOT / "CMakePresets.json").read_text())["configurePresets"]
    insisting = {each["name"] for each in presets
                 if each.get("cacheVariables", {}).get("STOKER_TESTS") == "ON"}
    assert insisting == {"dev", "asan", "clang", "fuzz", "coverage"}
