"""configs/container/Containerfile, built: on a Debian 12 that debootstrap makes (no registry is
asked), by buildah without a daemon. The image is then what it says that it is: a step of a
pipeline, and what brings the agent to others. Needs root, and both programs."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import stoker as cli

pytest.importorskip("botocore", reason="of tests/aws/.venv: see tests/soak/run")
from aws import Aws  # noqa: E402
from batch_job import QUEUE, BatchJob  # noqa: E402

RECIPE = cli.ROOT / "configs/container/Containerfile"
BASE = "docker.io/library/debian:12-slim"
NAME = "localhost/stoker"
WRITABLE = ["/run/lock", "/tmp", "/var/tmp"]
PROGRAMS = ("buildah", "debootstrap")

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not all(map(shutil.which, PROGRAMS)), reason=f"needs root and {' and '.join(PROGRAMS)}")


def run(*argv, **options):
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


class Image:
    def __init__(self, root):
        self.buildah = ["buildah", "--root", root / "store", "--runroot", root / "run", "--storage-driver", "vfs"]
        system, base, context = root / "debian", root / "base", root / "context"
        run("debootstrap", "--variant=minbase", "bookworm", system)
        base.mkdir()
        run("tar", "-C", system, "-cf", base / "base.tar", ".")
        (base / "Containerfile").write_text("FROM scratch\nADD base.tar /\n")
        self.build(BASE, base / "Containerfile", base)
        run("cmake", "--workflow", "--preset", "package", cwd=cli.ROOT)
        context.mkdir()
        package, = (cli.ROOT / "build").glob("stoker_*.deb")
        shutil.copy(package, context)
        self.build(NAME, RECIPE, context)
        self.config = json.loads(run(*self.buildah, "inspect", "--type", "image", NAME))["OCIv1"]["config"]
        self.container = run(*self.buildah, "from", "--pull-never", NAME).strip()

    def build(self, name, recipe, context):
        run(*self.buildah, "bud", "--isolation", "chroot", "--pull-never", "-f", recipe, "-t", name, context)

    def run(self, *argv, options=(), env=None):
        for name, value in (env or {}).items():
            options = (*options, "--env", f"{name}={value}")
        return run(*self.buildah, "run", "--isolation", "chroot", *options, self.container, "--", *argv)


@pytest.fixture(scope="module")
def image():
    with tempfile.TemporaryDirectory() as folder:
        yield Image(Path(folder))


@pytest.fixture
def job():
    with tempfile.TemporaryDirectory() as folder:  # not in pytest's own, which is nobody else's
        Path(folder).chmod(0o755)
        standin = Path(folder) / "standin"
        standin.mkdir()
        aws = Aws(standin)
        made = BatchJob(Path(folder) / "project", aws)
        yield made
        made.stop()
        aws.stop()


def test_what_starts_in_it_is_nobody_and_can_write_next_to_nothing(image):
    assert image.config["User"] == "10000:10000"
    assert image.config["Cmd"] == ["stoker", "--help"] and not image.config.get("Entrypoint")
    assert "stoker carries a training job" in image.run(*image.config["Cmd"])
    assert image.run("id", "-u").strip() == "10000"
    found = image.run("sh", "-c", "find / -xdev -not -type l -not -path '/proc/*' -not -path '/dev/*' -not -path '/sys/*' "
                      "-writable 2>/dev/null; true")
    assert sorted(found.split()) == WRITABLE


def test_it_is_a_step_of_a_pipeline(image, job):
    """The role of its job for credentials is the stand-in's concern elsewhere: here it has keys."""
    subprocess.run(["chmod", "-R", "a+rX", job.root], check=True)
    env = {name: value for name, value in job.env(HOME="/nonexistent").items() if name.startswith(("AWS_", "STOKER_"))}
    rows = image.run("stoker", "--json", "run", job.spec_path, "--id", "nightly", env=env,
                     options=("--volume", f"{job.root}:{job.root}:ro")).splitlines()
    events = [json.loads(row) for row in rows]
    assert (events[-1]["event"], events[-1]["exit_code"]) == ("run.ended", 0)
    assert [row["jobName"] for row in job.jobs()] == ["stk-nightly-precompile-1", "stk-nightly-train-1"]


def test_it_brings_the_agent_to_others(image, job, tmp_path):
    """As batch.helper_image, by the words that are sent to AWS Batch."""
    job.write(batch={"job_queue": QUEUE, "helper_image": NAME})
    plan, = job.ok("--json", "plan", job.spec_path, "--requests").lines
    definition, _ = (row["body"] for row in plan["requests"][0]["sends"])
    helper, _ = definition["ecsProperties"]["taskProperties"][0]["containers"]
    mount, = helper["mountPoints"]
    volume = tmp_path / "volume"
    volume.mkdir()
    image.run(*helper["command"], options=("--user", helper["user"], "--volume", f"{volume}:{mount['containerPath']}"))
    done = subprocess.run(["sh", volume / "start", "-", "batch"], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 70 and "there is no order in STOKER_ORDER" in done.stderr
