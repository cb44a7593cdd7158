"""The archive for any Linux, as it takes longer: the same bytes from a clone that is built elsewhere, and the quickstart
in a fresh Debian 12 that debootstrap makes. tests/soak/run also plays tests/package/test_bundle.py in Debian 11, 12
and 13."""

import os
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import bundle
import pytest
import stoker as cli
from bundle import run

QUICKSTART = cli.ROOT / "configs/quickstart"


def test_a_clone_built_elsewhere_gives_the_same_bytes_and_a_licence_travels(tmp_path):
    if not (cli.ROOT / ".git").exists() or run("git", "status", "--porcelain").stdout:
        pytest.skip("only what is committed can be cloned")
    mine = bundle.make(tmp_path / "mine")
    clone = tmp_path / "else where"
    run("git", "clone", "--quiet", cli.ROOT, clone)
    run(*bundle.BUILD, cwd=clone)
    for one in mine:
        assert one.read_bytes() == (clone / "build" / one.name).read_bytes(), one.name
    (clone / "LICENSE").write_text("What the owner says.\n")
    run(*bundle.BUILD, cwd=clone)
    archive, wheel = (clone / "build" / one.name for one in mine[:2])
    with tarfile.open(archive) as members:
        assert [name for name in members.getnames() if name.endswith("/share/doc/stoker/LICENSE")]
    with zipfile.ZipFile(wheel) as members:
        about, = {name for name in members.namelist() if name.endswith(".dist-info/METADATA")}
        assert "\nLicense-File: LICENSE\n" in members.read(about).decode()
        assert about.replace("METADATA", "LICENSE") in members.namelist()


def test_the_quickstart_runs_in_a_debian_12_that_has_python_alone(tmp_path):
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("needs root and debootstrap")
    folder = tmp_path / "debian"
    run("debootstrap", "--variant=minbase", "--include=python3-venv,ca-certificates", "bookworm", folder)
    for name in ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"):
        shutil.copy(Path("/", name), folder / name)  # as the client of packages has it here
    home = folder / "job"
    shutil.copytree(QUICKSTART, home, ignore=shutil.ignore_patterns(".venv", ".cache"))
    root = bundle.Root(folder, home, spec=None)
    root.unpack(bundle.make(tmp_path / "made")[0])
    theirs = {name: value for name, value in os.environ.items() if re.match("PIP_(?!FIND)|.*_proxy$", name, re.I)}
    root.run("python3", "-m", "venv", ".venv")
    root.run(".venv/bin/pip", "install", "--quiet", "-r", "requirements.txt", env=theirs)
    said = root.run("stoker", "run", "stoker.yaml")
    status, = root.run("stoker", "--json", "status").lines
    assert [row["phase"] for row in status["attempts"]] == ["precompile", "train"], str(said)
    assert status["metrics"]["accuracy"] > 0.95
    assert root.run("stoker", "--json", "plan", "stoker.yaml").lines[0]["cache"]["verdict"] == "warm"
