"""The check-up of the nodes before a training starts: what is wrong with one is named, with
figures, and no training starts on it; what cannot be looked at is said and stops nothing."""

import json
import re
import socket
from datetime import datetime

import pytest
import yaml

COUNTERS = ("mem_ecc_corrected", "sram_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_uncorrected",
            "mem_ecc_repairable_uncorrected")


class Clinic:
    def __init__(self, project, neuron):
        self.project, self.neuron = project, neuron
        project.write(compile={"kind": "none"}, command=["python3", "train.py"], hyperparameters={"max_steps": 3}, retry={"attempts": 1},
                      health={"device": True, "timeout": "2m", "collectives": {"size": "4MiB"}},
                      env={"NEURON_SYSFS_ROOT": f"{project.root}/sysfs-${{STOKER_NODE_RANK}}"})

    def counters(self, node, devices=1, **counts):
        """What the kernel of that node shows."""
        for device in range(devices):
            folder = self.project.root / f"sysfs-{node}/neuron{device}/stats/hardware"
            folder.mkdir(parents=True)
            for name in COUNTERS:
                (folder / name).write_text(f"{counts.get(name, 0) if device == devices - 1 else 0}\n")

    def go(self, nodes=1, code=0, **changes):
        self.project.write(resources={"nodes": nodes, **changes.pop("resources", {})}, **changes)
        self.result = self.project.run(code=code, env={"PATH": self.neuron.path})
        self.events = self.project.events()
        self.status = self.project.status()
        said = [row for row in self.events if row["event"] == "health.checked"]
        assert len(said) == len(self.status["attempts"]), self.result
        self.said = said[-1]
        return self.said

    def sick(self):
        """Who is, and that nothing was started."""
        assert not self.said["healthy"]
        assert not [row for row in self.events if row["event"] in ("attempt.started", "train.progress")]
        ended = [row for row in self.events if row["event"] == "attempt.ended"][-1]
        assert (ended["class"], ended["exit"]) == ("hardware-node", 87), ended
        assert "is sick" in ended["evidence"] and ended["hint"], ended
        assert self.said["reason"] in self.result.text
        assert self.said["reason"] in self.project.ok("status", "@last").out
        return {row["node"]: row["words"] for row in self.said["health"]["sick"]}

    def checks(self, node=0):
        rows = self.said["health"]["nodes"][node]["checks"]
        return {row["check"]: (row["verdict"], row["words"]) for row in rows}


@pytest.fixture
def clinic(project, neuron):
    return Clinic(project, neuron)


def test_nodes_that_are_fit_train_and_their_figures_are_kept(clinic):
    """With a place where the training's collectives meet, at which no test may."""
    clinic.neuron.with_xla()
    for node in range(2):
        clinic.counters(node, mem_ecc_corrected=7)
    said = clinic.go(nodes=2, env={**clinic.project.spec["env"], "NEURON_RT_ROOT_COMM_ID": "10.0.0.1:48620"})
    assert said["healthy"] and said["reason"].startswith("all 2 nodes are fit"), said
    assert {check: verdict for check, (verdict, _) in clinic.checks(1).items()} == {
        name: "ok" for name in ("disk", "memory", "clock", "devices", "counters", "tensor", "collectives")}
    for node in said["health"]["nodes"]:
        assert set(node["figures"]) >= {"all_gather", "all_reduce", "reduce_scatter"}
        assert 20 < node["figures"]["all_reduce"]["busbw"] < 40, node
    assert said["health"]["across"]["how"] == "torch" and said["health"]["across"]["figures"]["all_reduce"]["ranks"] == 4
    attempt, = clinic.status["attempts"]
    assert attempt["health"]["healthy"]
    assert 0 < clinic.status["ledger"]["health"] <= attempt["health"]["seconds"] + 0.01
    status = clinic.project.ok("status", "@last").out
    assert f"health: {said['reason']}" in status
    assert all(low != high for low, high in re.findall(r"([0-9.]+) to ([0-9.]+) GB/s", said["reason"])), said
    assert "exit 0\n" in status, "which node was the first to end well is nobody's question"
    baseline = clinic.project.state / f"stoker/workspace/health/host-{socket.gethostname()}.json"
    kept = json.loads(baseline.read_text())["figures"]
    assert any(name.startswith("all_gather of 4194304 bytes over 2 ranks") for name in kept), kept
    planned = clinic.project.ok("plan", clinic.project.spec_path).out
    assert "a tensor operation on each core; all_gather, all_reduce, reduce_scatter of 4.0 MiB on each node" in planned


def test_where_all_are_slower_than_before_that_is_said_and_the_training_starts(clinic):
    clinic.neuron.with_torch()
    clinic.go(nodes=2)
    clinic.neuron.set(STANDIN_NCCOM_BUSBW=4, STANDIN_TORCH_SECONDS=0.3)
    said = clinic.go(nodes=2)
    assert said["healthy"] and not said["health"]["sick"], said
    for what in ("all_gather of 4.0 MiB on all 2 nodes runs at 3.", "all_reduce by torch between 2 nodes runs at 0."):
        assert f"; warning: {what}" in said["reason"], said["reason"]
    assert len(said["health"]["warned"]) == 4
    assert f"health: {said['reason']}" in clinic.project.ok("status", "@last").out


def test_what_is_wrong_with_each_of_five_nodes_is_named(clinic):
    """A device missing, an error that nothing corrected, a stranger on a device, an error that was
    corrected, which is none, and a device missing by the kernel alone."""
    clinic.neuron.set(STANDIN_INSTANCE="trn1.32xlarge", STANDIN_MISSING_DEVICES_ON_0=1,
                      STANDIN_FOREIGN_PROCESS_ON_2="3:4711:python other.py", STANDIN_LS_SAYS_ON_4='{"devices": []}')
    for node, counts in enumerate(({}, {"sram_ecc_uncorrected": 3}, {}, {"mem_ecc_corrected": 9}, {})):
        clinic.counters(node, devices=15 if node == 4 else 16, **counts)
    clinic.go(nodes=5, code=1, resources={"instance": "trn1.32xlarge"})
    sick = clinic.sick()
    assert sorted(sick) == [0, 1, 2, 4]
    assert sick[4] == "the kernel shows 15 of 16 Neuron devices"
    assert sick[0] == "neuron-ls shows 15 of 16 Neuron devices"
    assert sick[1] == "device 15 has 3 uncorrected errors in its SRAM: have it replaced"
    assert sick[2] == "device 3 is in use by process 4711 (python other.py)"


def test_a_slow_node_of_four_is_named_with_its_figures(clinic):
    clinic.neuron.set(STANDIN_NCCOM_BUSBW_ON_2=4)
    clinic.go(nodes=4, code=1)
    (node, words), = clinic.sick().items()
    assert node == 2 and "runs at 3." in words and "the median of the nodes is" in words, words
    assert not (clinic.project.state / "stoker/workspace/health").exists()


def test_a_node_alone_slower_than_healthy_runs_were_is_sick_until_that_is_usual(clinic):
    """It may be the machine, which others stand in for, or what runs on all of them by now."""
    clinic.go()
    clinic.neuron.set(STANDIN_NCCOM_BUSBW=4)
    clinic.go(retry={"attempts": 3, "backoff": {"first": "0s", "max": "0s"}})
    said = [row for row in clinic.events if row["event"] == "health.checked"]
    assert [row["healthy"] for row in said] == [False, False, True]
    words = said[0]["reason"]
    baseline, = (clinic.project.state / "stoker/workspace/health").glob("*.json")
    assert "the node is sick: all_gather of 4.0 MiB runs at 3." in words and "the baseline of healthy runs is" in words, words
    assert f"{baseline}; 3 slower runs in a row replace the baseline, and this is number 1" in words, words
    assert "; warning: all_gather of 4.0 MiB runs at 3." in said[2]["reason"], said[2]
    assert all(row["busbw"] < 4 and row["runs"] == 1 for row in json.loads(baseline.read_text())["figures"].values())
    assert [row["action"] for row in clinic.events if row["event"] == "retry.scheduled"] == ["exclude"] * 2


def test_a_wrong_all_reduce_is_traced_to_its_node(clinic):
    """All nodes fail together: halves, then single nodes are tested."""
    clinic.neuron.with_torch().set(STANDIN_TORCH_WRONG_SUM_ON_2=1)
    clinic.go(nodes=4, code=1)
    (node, words), = clinic.sick().items()
    assert node == 2 and "fails the test of collectives alone, too" in words, words
    assert "elements of an all-reduce are wrong: each should be 1" in words, words
    assert [row["failed"] for row in clinic.said["health"]["across"]["rounds"]] == [1, 1, 1]


def test_a_node_that_fails_only_with_others_is_found_with_one_that_is_good(clinic):
    """Each is fine alone, and so are the first two together."""
    clinic.neuron.with_torch().set(STANDIN_TORCH_WRONG_AMONG_ON_2=1)
    clinic.go(nodes=4, code=1)
    (node, words), = clinic.sick().items()
    assert node == 2 and "fails the test of collectives with the good node 0: node 0: 5242880 of 5242880 elements" in words, words
    assert [row["failed"] for row in clinic.said["health"]["across"]["rounds"]] == [1, 1, 0, 1]


def test_where_mpirun_gets_to_all_nodes_nccom_test_goes_over_them(clinic):
    for name in ("mpirun", "ssh"):
        (clinic.neuron.bin / name).symlink_to("/bin/true")
    said = clinic.go(nodes=2)
    figure = said["health"]["across"]["figures"]["all_reduce"]
    assert said["healthy"] and said["health"]["across"]["how"] == "mpi" and figure["ranks"] == 4, said
    assert 20 < figure["busbw"] < 40 and "; all_reduce between them 3" in said["reason"], said


def test_a_wrong_product_and_a_wrong_collective_are_named(clinic):
    clinic.neuron.with_torch().set(STANDIN_TORCH_WRONG_PRODUCT_ON_0=1, STANDIN_NCCOM_FAILS_ON_1="check")
    clinic.go(nodes=2, code=1)
    sick = clinic.sick()
    assert "a product with a known answer (torch): core 0: 1 of 4096 elements" in sick[0], sick
    assert "nccom-test says: 4194304 Failure running neuron-bench" in sick[1], sick


def test_what_computes_elsewhere_or_not_at_all_is_named(clinic):
    """JAX whose core fails, that is on the CPU, that is killed, and that is fine."""
    clinic.neuron.with_jax().set(STANDIN_JAX_ON_0="raises", STANDIN_JAX_ON_1="cpu", STANDIN_JAX_ON_2="killed")
    clinic.go(nodes=4, code=1)
    sick = clinic.sick()
    assert sorted(sick) == [0, 1, 2]
    assert "(jax): core 1: the operation fails: NRT_EXEC_UNIT_UNRECOVERABLE on core 1" in sick[0], sick
    assert sick[1] == "jax computes on the CPU: the plugin for the 2 cores does not start, or does not fit jax"
    assert sick[2].startswith("a tensor operation was ended by signal 11")
    assert clinic.checks(3)["tensor"] == ("ok", "a product is right on 2 cores (jax)")
    # What is so on all nodes is none's.
    clinic.neuron.set(STANDIN_JAX_ON_0="cpu")
    said = clinic.go(nodes=2, code=1)
    assert not said["healthy"] and not said["health"]["sick"], said
    assert said["reason"] == f"{sick[1]}; the same on all 2 nodes, which have the image in common"
    ended = [row for row in clinic.events if row["event"] == "attempt.ended"][-1]
    assert ended["class"] == "comm" and "the image" in ended["hint"], ended


def test_without_devices_and_nccom_test_the_nodes_are_still_tested_together(clinic):
    clinic.neuron.with_torch()
    (clinic.neuron.bin / "nccom-test").unlink()
    said = clinic.go(nodes=2, health={"timeout": "2m", "collectives": {"size": "4MiB"}})
    assert clinic.checks()["collectives"] == ("unchecked", "nccom-test is not in this image")
    assert said["healthy"] and said["health"]["across"]["how"] == "torch", said
    assert said["reason"].endswith("not checked: collectives"), said


def test_without_any_tool_that_is_said_and_the_training_starts(clinic):
    """Or with one that the image cannot import, or that has too little memory."""
    clinic.neuron.with_torch().set(STANDIN_TORCH_ON_0="broken", STANDIN_TORCH_ON_1="killed")
    for name in ("nccom-test", "neuron-ls"):
        (clinic.neuron.bin / name).unlink()
    said = clinic.go(nodes=2)
    assert said["healthy"], said
    assert "not checked: devices, counters, tensor, collectives" in said["reason"], said
    assert "not checked: between the nodes" in said["reason"], said
    assert clinic.checks(0)["tensor"] == ("unchecked", "torch cannot be imported: undefined symbol - stand-in")
    assert clinic.checks(1)["tensor"] == ("unchecked", "the process of core 0 was killed: there may be too little memory")


def test_a_hang_is_stopped_in_time_and_named(clinic):
    clinic.neuron.set(STANDIN_NCCOM_SECONDS_ON_1=600)
    clinic.go(nodes=2, code=1, health={"device": True, "timeout": "20s"})
    (node, words), = clinic.sick().items()
    assert node == 1 and "nccom-test all_gather hangs, stopped after" in words, words
    assert "health.timeout (20.0 s)" in words, words
    took = datetime.fromisoformat(clinic.said["finished"]) - datetime.fromisoformat(clinic.said["since"])
    assert took.total_seconds() < 300, "half of what the hang takes"


def test_older_tools_are_understood(clinic):
    clinic.neuron.set(STANDIN_OLD_NCCOM=1, STANDIN_OLD_LS=1)
    said = clinic.go()
    assert said["healthy"] and clinic.checks()["devices"] == ("ok", "1 devices with 2 cores"), said
    figure = said["health"]["nodes"][0]["figures"]["all_reduce"]
    assert figure["busbw"] > 20 and figure["time_us"] > 0, figure


def test_who_asks_for_nothing_gets_no_check_up(clinic):
    spec = clinic.project.write(health=None, env=None)
    assert "health" not in yaml.safe_load(spec.read_text())
    clinic.project.run(env={"PATH": clinic.neuron.path})
    assert not clinic.project.events(kind="health.checked")
    assert clinic.project.status()["ledger"]["health"] == 0
