"""The archive for any Linux: made by the one command that the README names, looked at, and used in
a root that holds a busybox and nothing else, in one with musl, in this one, and in those of
STOKER_TEST_ROOTS (folders, separated by colons), which may be unpacked systems of other years."""

import base64
import hashlib
import os
import re
import shutil
import tarfile
import time
from pathlib import Path

import bundle
import inject
import pytest
import stoker as cli
from bundle import run

ROOTS = ["this", "busybox", "musl", *filter(None, os.environ.get("STOKER_TEST_ROOTS", "").split(":"))]
CONTENT = """
bin/stoker
lib/stoker/stoker-post
lib/stoker/stoker-derive
lib/stoker/agent/start
lib/stoker/agent/stoker-node
lib/stoker/agent/lib/loader
lib/stoker/agent/lib/ca-certificates.crt
lib/stoker/lib/libgit2.so
lib/stoker/lib/libsqlite3.so
share/man/man1/stoker.1.gz
share/bash-completion/completions/stoker
share/zsh/site-functions/_stoker
share/fish/vendor_completions.d/stoker.fish
share/stoker/stoker.schema.json
share/doc/stoker/README.md
share/doc/stoker/CHANGELOG.md
share/doc/stoker/docs/tutorial.md
share/doc/stoker/examples/quickstart/stoker.yaml
share/doc/stoker/licences/libc6
share/doc/stoker/licences/libcurl4
share/doc/stoker/licences/libarchive-dev
share/doc/stoker/licences/ca-certificates
share/doc/stoker/licences/libjs-dygraphs
share/doc/stoker/licences/common-licenses/GPL-2
""".split()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Archive, wheel and checksums, by somebody who is careful about what others see."""
    return bundle.make(tmp_path_factory.mktemp("made") / "first", umask=0o077)


@pytest.fixture(scope="module")
def archive(made):
    return made[0]


@pytest.fixture(scope="module")
def unpacked(archive, tmp_path_factory):
    return bundle.Root(None, tmp_path_factory.mktemp("here")).unpack(archive)


@pytest.fixture(scope="module", params=ROOTS, ids=lambda name: Path(name).name)
def root(request, archive, tmp_path_factory):
    made_here = tmp_path_factory.mktemp("root")
    if request.param == "this":
        root = bundle.Root(None, made_here)
    else:
        if os.geteuid() != 0:
            pytest.skip("only root can change its root")
        folder = {"busybox": bundle.busybox, "musl": bundle.musl}.get(request.param, Path)(
            made_here / "root" if request.param in ("busybox", "musl") else request.param)
        home = folder / "job"
        home.mkdir()
        root = bundle.Root(folder, home)
        if "mount" in (refused := root.run("true", code=None)).err:
            pytest.skip(f"cannot mount here: {refused.err.strip()}")
    root.unpack(archive)
    yield root
    shutil.rmtree(root.home)


# --- the files --------------------------------------------------------------------

def test_the_same_sources_give_the_same_bytes(made, tmp_path):
    again = bundle.make(tmp_path / "again", umask=0o022, env={**os.environ, "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8"})
    for one, other in zip(made, again):
        assert one.name == other.name and one.read_bytes() == other.read_bytes()


def test_the_checksums_are_those_of_both_files(made):
    said = run("sha256sum", "--check", "SHA256SUMS", cwd=made[-1].parent).stdout
    assert sorted(said.splitlines()) == sorted(f"{path.name}: OK" for path in made[:-1])


def test_the_archive_says_nothing_of_who_made_it_and_when(archive):
    with tarfile.open(archive) as members:
        rows = members.getmembers()
    assert [row.name for row in rows] == sorted(row.name for row in rows)
    assert len({row.mtime for row in rows}) == 1 and rows[0].mtime < time.time()
    if (cli.ROOT / ".git").exists():
        assert rows[0].mtime == int(run("git", "-c", f"safe.directory={cli.ROOT}", "log", "-1", "--format=%ct").stdout)
    assert {(row.uid, row.gid, row.uname, row.gname) for row in rows} == {(0, 0, "", "")}
    assert archive.read_bytes()[4:8] == bytes(4), "the time of gzip's header"
    top, = {row.name.split("/")[0] for row in rows}
    assert archive.name == f"{top}.tar.gz"
    assert re.fullmatch(rf"stoker-\d+\.\d+\.\d+-linux-{os.uname().machine}", top)


def test_it_holds_what_it_should_and_anybody_may_read_it(archive):
    with tarfile.open(archive) as members:
        rows = {row.name.partition("/")[2]: row for row in members.getmembers()}
    for name in CONTENT:
        assert any(each == name or each.startswith(f"{name}.") for each in rows), name
    programs = {"bin/stoker", "lib/stoker/stoker-post", "lib/stoker/stoker-derive", "lib/stoker/programs/stoker",
                "lib/stoker/programs/stoker-post", "lib/stoker/programs/stoker-derive", "lib/stoker/agent/start", "lib/stoker/agent/stoker-node", "lib/stoker/agent/lib/loader"}
    for name, row in rows.items():
        assert row.isdir() or row.isfile(), name
        assert row.mode == (0o755 if row.isdir() or name in programs else 0o644), name
    assert not [name for name in rows if "debian" in name.lower().split("/")]


def test_no_library_of_the_machine_is_needed(unpacked):
    said = run("ldd", unpacked / "bin/stoker", code=None)
    assert "not a dynamic executable" in said.stdout + said.stderr
    private = unpacked / "lib/stoker"
    loader = private / "agent/lib/loader"
    places = {"programs": f"{private}/lib:{private}/agent/lib", "lib": f"{private}/lib:{private}/agent/lib",
              "agent": f"{private}/agent/lib"}
    seen = 0
    for path in [*private.glob("programs/*"), *private.glob("lib/*"), private / "agent/stoker-node",
                 *private.glob("agent/lib/*.so*")]:
        libraries = places[path.relative_to(private).parts[0]]
        listed = run(loader, "--inhibit-cache", "--library-path", libraries, "--list", path).stdout
        found = re.findall(r"(?:=> )?(/\S+|not found)(?: \(0x|$)", listed, re.MULTILINE)
        assert all(each.startswith(str(private)) for each in found), listed
        seen += len(found)
    assert seen > 100


def test_the_certificates_are_those_of_the_list_alone(unpacked):
    """A machine may trust more; who uses the archive has not agreed to that."""
    theirs = {path.read_text().strip() for path in Path("/usr/share/ca-certificates/mozilla").glob("*.crt")}
    held = (unpacked / "lib/stoker/agent/lib/ca-certificates.crt").read_text()
    ends = "-----END CERTIFICATE-----"
    assert {f"{each.strip()}\n{ends}" for each in held.split(ends) if each.strip()} == theirs != set()


def test_the_licence_of_each_library_travels_with_it(unpacked):
    papers = unpacked / "share/doc/stoker/licences"
    assert len([*(unpacked / "lib/stoker").rglob("*.so*")]) > 30
    assert not bundle.without_licence(unpacked / "lib/stoker", papers) and not (papers / "unknown").exists()
    common = {path.name for path in (papers / "common-licenses").iterdir()}
    for paper in filter(Path.is_file, papers.iterdir()):
        for text in re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", paper.read_text(errors="replace")):
            assert text in common or not Path("/usr/share/common-licenses", text).exists(), (paper.name, text)


def test_a_package_without_a_licence_is_told(tmp_path):
    dpkg = tmp_path / "dpkg"
    dpkg.write_text('#!/bin/sh\nshift\nfor file; do echo "no-such-package: $file"; done\n')
    dpkg.chmod(0o755)
    run("cmake/licences.sh", tmp_path / "licences", "--", __file__, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (tmp_path / "licences/unknown").read_text() == "no-such-package\n"


# --- in each root -----------------------------------------------------------------

def far_away(host):
    """AWS at a host where nobody listens."""
    return {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{host}:9", "AWS_MAX_ATTEMPTS": "1"}


def test_a_job_runs_to_its_end_and_nothing_of_the_machine_is_loaded(root):
    is_musl = root.folder and (root.folder / "bin/says").exists()
    root.script(f"echo > {root.place}/begun{'; says' if is_musl else ''}")
    (root.home / "go").unlink()
    assert root.run("stoker", "validate", "stoker.yaml").out == "stoker.yaml is valid\n"
    driver = root.start("stoker", "run", "stoker.yaml", "--id", "one")
    try:
        cli.until((root.home / "begun").exists, driver)
        executed = root.libraries(driver.pid)
    finally:
        (root.home / "go").touch()
    result = cli.finish(driver)
    assert result.code == 0, str(result)
    assert len(executed) >= 2, "the driver, and the agent with its helpers"
    for files in executed.values():
        assert len(files) > 5 and not [name for name in files if not root.is_own(name)], files
    status, = root.run("stoker", "--json", "status", "one").lines
    assert status["state"] == "succeeded" and status["progress"]["step"] == 2
    assert ("musl says" in root.run("stoker", "logs", "one").out) == bool(is_musl)
    root.script("")


def test_a_driver_in_the_background_is_killed_and_the_run_resumed(root):
    (root.home / "go").unlink()
    root.script(f"echo > {root.place}/begun-two")
    try:
        said = root.run("stoker", "run", "stoker.yaml", "--id", "two", "--detach")
        pid = int(re.search(r"driver pid (\d+)", said.text)[1])
        cli.until((root.home / "begun-two").exists)
        assert Path(f"/proc/{pid}/comm").read_text() == "stoker\n", "as people look for it"
        bundle.kill(pid)
    finally:
        (root.home / "go").touch()
    assert root.run("stoker", "resume", "two").code == 0
    rows = root.run("stoker", "events", "two").lines
    assert [row["event"] for row in rows].count("attempt.submitted") == 1
    root.run("stoker", "run", "stoker.yaml", "--id", "three", "--detach")
    root.run("stoker", "attach", "three")
    root.script("")


def test_its_other_commands_work_there(root):
    private = f"{root.place}/stoker/lib/stoker"
    assert root.run("stoker", "version").out.startswith("stoker ")
    assert "complete " in root.run("stoker", "completion", "bash").out
    plan, = root.run("stoker", "--json", "plan", "stoker.yaml").lines
    assert plan["source"]["kind"] == "git", "libgit2 was found"
    root.run("stoker", "init", "new.yaml")
    schema = re.search(r"^# yaml-language-server: \$schema=(.*)$", (root.home / "new.yaml").read_text(), re.MULTILINE)[1]
    assert schema == f"{root.place}/stoker/share/stoker/stoker.schema.json"
    assert (root.home / "stoker/share/stoker/stoker.schema.json").read_text() == root.run("stoker", "schema").out
    root.run("stoker", "validate", "new.yaml")
    # libcurl, of stoker and of the program that posts
    far = root.run("stoker", "cache", "ls", "s3://bucket/x", code=75, env=far_away("127.0.0.1"))
    assert "connect" in far.err, str(far)
    post = root.run("sh", "-c", f"printf 'https://127.0.0.1:9/x\\n{{}}\\n' | {private}/stoker-post", code=1)
    assert "127.0.0.1: Failed to connect" in post.err, str(post)


# --- what a machine may have set --------------------------------------------------

OPENSSL = """openssl_conf = begin
[begin]
providers = some
[some]
theirs = theirs_section
default = default_section
[theirs_section]
module = /theirs.so
activate = 1
[default_section]
activate = 1
"""


def test_settings_of_the_machine_load_nothing(archive, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can change its root")
    if why := inject.refused():
        pytest.skip(why)
    folder = bundle.busybox(tmp_path / "root")
    home = folder / "job"
    home.mkdir()
    root = bundle.Root(folder, home)
    root.unpack(archive)
    (folder / "etc").mkdir()
    (folder / "usr/lib/ssl").mkdir(parents=True)
    (folder / "etc/nsswitch.conf").write_text("passwd: theirs\nhosts: theirs [!UNAVAIL=return] files\nservices: theirs\n")
    (folder / "usr/lib/ssl/openssl.cnf").write_text(OPENSSL)
    trace = tmp_path / "trace"
    (folder / "etc/hosts").write_text("127.0.0.1 elsewhere\n")
    watch = ("strace", "-f", "-e", "trace=open,openat,execve", "-o", str(trace))
    root.run("stoker", "cache", "ls", "s3://bucket/x", env=far_away("elsewhere") | {"LD_LIBRARY_PATH": "/theirs"}, prefix=watch, code=75)
    opened = re.findall(r'"([^"]+\.so[^"]*)"', trace.read_text().partition("/agent/lib/loader")[2])
    assert "/etc/hosts" in trace.read_text() and any("libcurl" in name for name in opened)
    assert not [name for name in opened if "theirs" in name]
    root.run("sh", "-c", f"printf 'https://elsewhere:9/x\\n{{}}\\n' | {root.place}/stoker/lib/stoker/stoker-post",
             prefix=watch, code=1)
    assert "theirs" not in trace.read_text()


def test_a_library_to_preload_is_left_out(unpacked, tmp_path):
    """It is made for the machine's C library: the loader would complain, or worse."""
    said = run(unpacked / "bin/stoker", "version", env={"LD_PRELOAD": "/theirs.so", "LD_AUDIT": "/theirs.so"})
    assert said.stderr == ""


# --- where it lies ----------------------------------------------------------------

def test_links_lead_to_it_and_it_may_be_moved(unpacked, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/stoker").symlink_to(unpacked / "bin/stoker")
    (tmp_path / "st").symlink_to("bin/stoker")
    assert run(tmp_path / "st", "version").stdout.startswith("stoker ")
    moved = tmp_path / "some where"
    shutil.copytree(unpacked, moved)
    assert run("stoker", "version", env={"PATH": f"{moved}/bin"}).stdout.startswith("stoker ")


@pytest.mark.parametrize("name, cut, why, cure", [
    ("a:b", None, "cannot be run from this folder", "move it"),
    ("part", "lib/stoker/programs", "cannot find its other files", "together"),
    ("less", "lib/stoker/agent/lib/loader", "No such file", "whole archive"),
])
def test_what_cannot_start_says_why(unpacked, tmp_path, name, cut, why, cure):
    copy = tmp_path / name
    shutil.copytree(unpacked, copy)
    if cut:
        run("rm", "-r", copy / cut)
    said = run(copy / "bin/stoker", "version", code=4)
    assert said.stdout == "" and said.stderr.startswith("stoker: error: ") and why in said.stderr
    assert cure in said.stderr.partition("\n  hint: ")[2]


# --- the wheel --------------------------------------------------------------------

def test_the_wheel_is_installed_offline_runs_a_job_and_goes_again(made, tmp_path):
    wheel, home = made[1], tmp_path / "home"
    home.mkdir()
    root = bundle.Root(None, home)
    venv = tmp_path / "venv"
    run("/usr/bin/python3", "-m", "venv", venv)
    before = {path for path in venv.rglob("*") if "__pycache__" not in path.parts}
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}
    run(venv / "bin/pip", "install", "--no-deps", wheel, env=env)
    root.env["PATH"] = f"{venv}/bin:/usr/bin:/bin"
    assert root.run("stoker", "run", "stoker.yaml").code == 0
    status, = root.run("stoker", "--json", "status").lines
    assert status["state"] == "succeeded"
    version = root.run("stoker", "version").out.split()[1]
    assert f"\nVersion: {version}\n" in run(venv / "bin/pip", "show", "stoker", env=env).stdout
    run(venv / "bin/pip", "uninstall", "--yes", "stoker", env=env)
    assert {path for path in venv.rglob("*") if "__pycache__" not in path.parts and path.is_file()} == {
        path for path in before if path.is_file()}


def digest_of(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def test_the_wheel_holds_what_the_archive_holds_and_lists_it(made, unpacked, tmp_path):
    run("/usr/bin/python3", "-m", "zipfile", "-e", made[1], tmp_path)
    about, = tmp_path.glob("*.dist-info")
    rows = [line.rsplit(",", 2) for line in (about / "RECORD").read_text().splitlines()]
    assert [name for name, *_ in rows[:-1]] == sorted(name for name, *_ in rows[:-1]), "in order, itself last"
    for name, digest, size in rows[:-1]:
        content = (tmp_path / name).read_bytes()
        assert (len(content), digest) == (int(size), f"sha256={digest_of(content)}"), name
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {name for name, *_ in rows} and rows[-1] == [f"{about.name}/RECORD", "", ""]
    data, = tmp_path.glob("*.data")
    theirs = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    mine = {re.sub("^(data/|scripts(?=/))", lambda match: "bin" if match[0] == "scripts" else "", str(path.relative_to(data)))
            for path in data.rglob("*") if path.is_file()}
    assert mine == theirs


def test_the_readme_names_the_command_and_the_files(made):
    text = (cli.ROOT / "README.md").read_text()
    assert f"    {' '.join(bundle.BUILD)} " in text
    assert made[0].name.replace(os.uname().machine, "x86_64") in text
