"""An installation of the stand-ins as a job finds the real tools: a virtual
environment whose python, programs and package versions are its own, and a file
of settings that no command, variable or source of the job shows."""

import importlib.util
import json
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
PYTHON = "/usr/bin/python3"
VERSIONS = {
    "neuronx-cc": "2.25.3371.0+f524f7f8",
    "libneuronxla": "2.2.16974.0+a550bfe0",
    "torch-neuronx": "2.9.0.2.14.27725+e2ff0410",
    "torch-xla": "2.9.0",
    "torch": "2.9.0",
}


class Installation:
    """At `root`. Nothing is in it but links, names of packages and settings. `python`: another
    one than the machine's, as python3.N."""

    def __init__(self, root: Path, python: str | Path = PYTHON, **settings: object):
        self.root, self.bin = Path(root), Path(root) / "bin"
        minor = Path(python).resolve().name.removeprefix("python")
        self.packages = self.root / f"lib/python{minor}/site-packages"
        self.bin.mkdir(parents=True)
        self.packages.mkdir(parents=True)
        for program in (HERE / "bin").iterdir():
            (self.bin / program.name).symlink_to(program)
        for name in ("python3", "python"):
            (self.bin / name).symlink_to(python)
        (self.root / "pyvenv.cfg").write_text(
            f"home = {Path(python).parent}\ninclude-system-site-packages = false\nversion = {minor}\n")
        (self.packages / "neuron_standin.pth").write_text(f"{HERE}\n")
        for name, version in VERSIONS.items():
            self.upgrade(name, version)
        (self.root / "tmp").mkdir()
        self.set(STANDIN_DEFAULT_CACHE=self.root / "default-cache", STANDIN_TMP=self.root / "tmp", **settings)

    @property
    def path(self) -> str:
        """The job's PATH."""
        return f"{self.bin}:/usr/bin:/bin"

    def with_gpus(self, nccl: bool = True, **settings: object) -> "Installation":
        """With the tools of GPUs in place of Neuron's, and, with `nccl`, programs of nccl-tests."""
        for name in ("neuron-ls", "nccom-test"):
            (self.bin / name).unlink()
        for program in (HERE / "gpu_bin").iterdir():
            if nccl or not program.name.endswith("_perf"):
                (self.bin / program.name).symlink_to(program)
        self.set(**settings)
        return self

    def with_framework(self, *names: str) -> "Installation":
        for name in names:
            (self.packages / name).symlink_to(HERE / "framework_standin" / name)
        return self

    def with_torch(self) -> "Installation":
        """With a torch that can be imported, as far as a check-up of nodes goes."""
        return self.with_framework("torch")

    def with_xla(self) -> "Installation":
        """And one that computes on the accelerator."""
        return self.with_framework("torch", "torch_xla", "torch_neuronx")

    def with_jax(self) -> "Installation":
        return self.with_framework("jax", "libneuronxla")

    def with_packages(self, folder: Path) -> "Installation":
        """With what is installed in a folder of another environment of the same Python."""
        (self.packages / "others.pth").write_text(f"{folder}\n")
        return self

    def with_boto3(self) -> "Installation":
        """With that of the Python that runs this, for a cache in S3."""
        return self.with_packages(Path(importlib.util.find_spec("boto3").origin).parents[1])

    def upgrade(self, name: str, version: str) -> None:
        """Another version of one package, as a package manager leaves it behind."""
        stem = name.replace("-", "_")
        for old in self.packages.glob(f"{stem}-*.dist-info"):
            shutil.rmtree(old)
        folder = self.packages / f"{stem}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: a stand-in for tests\n")

    def set(self, **settings: object) -> None:
        """Add settings from the table in settings.py; None takes one out."""
        path = self.root / "standin.json"
        now = json.loads(path.read_text()) if path.exists() else {}
        now.update(settings)
        new = path.with_suffix(".new")
        new.write_text(json.dumps({name: str(value) for name, value in now.items() if value is not None}))
        new.rename(path)  # whole, for whoever reads it just now

    def train_script(self, to: Path) -> Path:
        """A copy of the training script, for a project to change."""
        shutil.copy(HERE / "neuron_train.py", to)
        return Path(to)
