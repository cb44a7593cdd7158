"""The built stoker, as conform uses it: its doctor before all, and runs of one small job by a spec that is made here."""

import ctypes
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import jobs
from lab import PREFIX, NotTried

ROOT = Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1
DOCTOR_SECONDS = 300


def dies_with_us():
    """A driver without conform would go on starting jobs behind the back of --clean."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Stoker:
    def __init__(self, lab, binary=None):
        self.lab, self.binary = lab, Path(binary or ROOT / "build/release/stoker").absolute()
        self.folder = tempfile.TemporaryDirectory(prefix="stoker-conform-")
        self.env = {**os.environ, "STOKER_STATE": f"s3://{lab.bucket}/{lab.name}/state", "STOKER_CONFIG": "",
                    "AWS_REGION": lab.region, "NO_COLOR": "1"}

    def version(self):
        """Its first line; OSError or CalledProcessError if there is none."""
        done = subprocess.run([self.binary, "--version"], capture_output=True, text=True, check=True)
        return done.stdout.split("\n")[0]

    def spec(self, engine, do="ends", kind=None, **more):
        """A file: one small job on that engine that runs far.py, on that type. `more`: fields of it; of `env`, `batch`,
        `sagemaker` and `resources` they are added."""
        lab, source = self.lab, Path(self.folder.name) / "source"
        source.mkdir(exist_ok=True)
        (source / "far.py").write_text(jobs.PROGRAM, "utf-8")
        spec = {"version": 1, "name": "conform", "engine": engine, "workspace": f"s3://{lab.bucket}/{lab.name}/work",
                "aws": {"region": lab.region}, "tags": {f"{PREFIX}run": lab.name},
                "source": {"path": str(source), "include": ["far.py"], "allow_dirty": True},
                "command": ["python3", "far.py"], "env": {"CONFORM_DO": do}, "health": {"device": False},
                "retry": {"attempts": 1}, "limits": {"deadline": f"{jobs.LASTS}s", "queue": f"{jobs.COMES}s"}}
        if engine == "batch":
            spec |= {"image": lab.image or jobs.BATCH_IMAGE, "resources": {"instance": kind or lab.queue.smallest},
                     "batch": {"job_queue": lab.queue.name, **({"job_role": lab.role} if lab.role else {}),
                               **({"share_identifier": "stoker"} if lab.queue.has_shares else {})}}
        else:
            spec |= {"image": lab.image or jobs.aws_image(lab.region),
                     "resources": {"instance": f"ml.{kind or jobs.MACHINE}"},
                     "sagemaker": {"role": lab.role, "max_runtime": f"{jobs.LASTS}s"}}
        spec |= {name: {**spec[name], **value} if name in ("env", "batch", "sagemaker", "resources") else value
                 for name, value in more.items()}
        path = Path(self.folder.name) / f"{engine}-{do}-{kind}.yaml"
        path.write_text(json.dumps(spec), "utf-8")
        return path

    def doctor(self, engines):
        """All findings, for these engines; without one, for the account and the bucket."""
        found = []
        for argv in [[self.spec(engine)] for engine in engines] or [[]]:
            done = subprocess.run([self.binary, "--json", "doctor", *argv], env=self.env, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=DOCTOR_SECONDS)
            if done.returncode not in (0, 4):
                raise NotTried(f"stoker doctor ended with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
            found += [json.loads(line) for line in done.stdout.splitlines()]
        return found

    # Runs

    def start(self, spec, run):
        """Its driver."""
        self.lab.go_on()
        return subprocess.Popen([self.binary, "--json", "run", spec, "--id", run], env=self.env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                preexec_fn=dies_with_us)

    def ended(self, driver, meanwhile=lambda: None, every=0.2):
        """What it printed; a signal to conform ends it. `meanwhile` is called every so many seconds."""
        try:
            while True:
                self.lab.go_on()
                try:
                    return driver.communicate(timeout=every)[0]
                except subprocess.TimeoutExpired:
                    meanwhile()
        finally:
            if driver.poll() is None:
                driver.kill()
                driver.communicate()

    def text(self, *words):
        """What a command prints."""
        return subprocess.run([self.binary, *words], env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=DOCTOR_SECONDS).stdout

    def ask(self, *words):
        """Rows of JSON that a command prints, and its exit code."""
        done = subprocess.run([self.binary, "--json", *words], env=self.env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=DOCTOR_SECONDS)
        return [json.loads(line) for line in done.stdout.splitlines()], done.returncode
