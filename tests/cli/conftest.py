"""What every test of the command line needs: a project of its own, and where it is
one for Neuron the stand-ins for its tools."""

import pytest
from neuron_standin.install import Installation
from project import Project


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


@pytest.fixture
def neuron(tmp_path):
    return Installation(tmp_path / "neuron")


@pytest.fixture
def job(project, neuron):
    neuron.train_script(project.source / "train.py")
    project.write(command=["torchrun", "--nproc_per_node", "2", "train.py"],
                  hyperparameters={"max_steps": 12, "lr": 0.01},
                  compile={"kind": "neuron", "cache_url": str(project.cache), "max_steps": 3},
                  metrics=[{"name": "step", "regex": "^step: ([0-9]+)"}, {"name": "loss", "regex": "loss: ([0-9.eE+-]+)"}],
                  retry={"attempts": 3, "backoff": {"first": "0s", "max": "0s"}})
    project.path = neuron.path

    def run(*sets, code=0):
        words = [word for each in sets for word in ("--set", each)]
        return project.run(*words, code=code, env={"PATH": neuron.path})
    project.go = run
    return project
