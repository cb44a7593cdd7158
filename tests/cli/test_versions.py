"""What every attempt tells of its versions: found by a node where its command runs, shown by `status`, `compare` and
`report`."""

import platform
import sys

import pytest
from project import Project

SCRIPT = """\
for step in range(1, 31):
    print("step:", step, "loss:", 1 / step, flush=True)
"""
PYTHON = ".".join(map(str, sys.version_info[:2]))


@pytest.fixture
def site(tmp_path):
    made = Project(tmp_path)
    (made.source / "train.py").write_text(SCRIPT)
    made.write(compile=None, hyperparameters=None, checkpoint=None,
               metrics=[{"name": "step", "regex": "^step: ([0-9]+)"}, {"name": "loss", "regex": "loss: (\\S+)"}])
    return made


def venv(folder, **packages) -> str:
    """A virtual environment of the Python that runs these tests, with metadata of these packages: its folder."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python3").symlink_to(sys.executable)
    (folder / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\nversion = {platform.python_version()}\n")
    for name, version in packages.items():
        told = folder / f"lib/python{PYTHON}/site-packages/{name}-{version}.dist-info"
        told.mkdir(parents=True)
        (told / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    return str(folder)


def train(site, run, command, *argv, **env):
    site.write(command=command, env=env or None)
    site.run("--id", run, *argv)
    return [row for row in site.status(run)["attempts"] if row["phase"] == "train"][-1]


def test_the_commands_own_environment_is_told_and_what_differs_is_compared(site, tmp_path):
    one = venv(tmp_path / "one", torch="2.5.1", numpy="1.26.4", numbers="7")
    two = venv(tmp_path / "two", torch="2.6.0+cu124", numpy="1.26.4")
    told = train(site, "one", [f"{one}/bin/python3", "train.py"])["versions"]
    assert {name: told[name] for name in ("python", "torch", "numpy", "kernel")} == {
        "python": PYTHON, "torch": "2.5.1", "numpy": "1.26.4", "kernel": platform.release()}
    assert "numbers" not in told
    # By PATH, and behind a shell.
    told = train(site, "two", ["sh", "-c", "python3 train.py"], PATH=f"{two}/bin:/usr/bin:/bin")["versions"]
    assert told["torch"] == "2.6.0+cu124"
    event, = site.events("two", "attempt.versions")
    assert event["nodes"] == 1 and event["versions"] == told and "elsewhere" not in event
    rows = site.ok("--json", "compare", "one", "two").lines
    assert {"field": "versions.torch", "old": "2.5.1", "new": "2.6.0+cu124"} in rows[1]["differences"]
    assert "versions.numpy" not in [row["field"] for row in rows[1]["differences"]]
    assert rows[1]["versions"] == told
    assert 'versions.torch: "2.5.1" -> "2.6.0+cu124"' in site.ok("compare", "one", "two").out
    page = tmp_path / "page.html"
    site.ok("report", "two", "--output", page)
    assert "torch 2.6.0+cu124" in page.read_text() and f"python {PYTHON}" in page.read_text()


def test_runs_with_other_packages_are_no_repeats(site, tmp_path):
    same = tmp_path / "same"
    venv(same, torch="2.5.1")
    command = [f"{same}/bin/python3", "train.py"]
    train(site, "a1", command)
    train(site, "a2", command)
    first, = site.ok("--json", "compare", "a1", "a2").lines
    assert first["runs"] == ["a1", "a2"]
    told = same / f"lib/python{PYTHON}/site-packages"
    (told / "torch-2.5.1.dist-info").rename(told / "torch-2.7.0.dist-info")
    train(site, "b", command)
    first, second = site.ok("--json", "compare", "a1", "a2", "b").lines
    assert (first["runs"], second["runs"]) == (["a1", "a2"], ["b"])
    assert [row["field"] for row in second["differences"]] == ["versions.torch"]


def test_nodes_that_differ_are_named(site, tmp_path):
    for node, version in enumerate(("2.5.1", "2.5.1", "2.4.0")):
        venv(tmp_path / f"node-{node}", torch=version)
    site.write(resources={"nodes": 3})
    told = train(site, "three", [f"{tmp_path}/node-${{STOKER_NODE_RANK}}/bin/python3", "train.py"])
    assert told["versions"]["torch"] == "2.5.1"
    assert told["elsewhere"] == [{"node": 2, "field": "torch", "old": "2.5.1", "new": "2.4.0"}]
    event = site.events("three", "attempt.versions")[-1]
    assert event["nodes"] == 3 and event["reason"] == "node 2 has torch 2.4.0 in place of 2.5.1"
    page = tmp_path / "page.html"
    site.ok("report", "three", "--output", page)
    assert "in train 1 node 2 has torch 2.4.0" in page.read_text()


def test_a_command_that_is_not_there_has_versions_too(site, tmp_path):
    one = venv(tmp_path / "one", jax="0.7.2")
    site.write(command=["no-such-program"], env={"PATH": f"{one}/bin:/usr/bin:/bin"}, retry={"attempts": 1})
    site.run("--id", "none", code=1)
    attempt = site.status("none")["attempts"][0]
    assert attempt["exit"] == 127 and attempt["versions"]["jax"] == "0.7.2"
