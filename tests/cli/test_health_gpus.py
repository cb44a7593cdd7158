"""The check-up of nodes with GPUs, on stand-ins for the tools of three generations of drivers: what is wrong is
named, and what a driver prints otherwise is not checked, never well."""

import pytest
from test_health import Clinic

INSTANCE = "p4d.24xlarge"


@pytest.fixture
def clinic(project, neuron):
    made = Clinic(project, neuron)
    project.write(env={})
    return made


def go(clinic, nodes=1, code=0, **changes):
    changes.setdefault("resources", {"instance": INSTANCE})
    changes.setdefault("health", {"timeout": "2m", "collectives": {"size": "4MiB"}})
    return clinic.go(nodes=nodes, code=code, **changes)


def test_what_is_wrong_with_each_of_eight_nodes_is_named(clinic):
    """With health.device as it is: such a machine is checked."""
    clinic.neuron.with_gpus(
        STANDIN_GPU_MISSING_ON_0=1, STANDIN_GPU_FOREIGN_ON_1="3:4711:python, other.py",
        STANDIN_GPU_DRIVER_ON_2=418, STANDIN_GPU_UNCORRECTED_ON_2="5:2",
        STANDIN_GPU_DRIVER_ON_3=418, STANDIN_GPU_PENDING_ON_3=6, STANDIN_GPU_DRIVER_ON_4=470, STANDIN_GPU_PENDING_ON_4=7,
        STANDIN_GPU_FAILED_ROW_ON_5=0, STANDIN_XID_ON_6=79,
        STANDIN_SMI_FAILS_ON_7="Unable to determine the device handle for GPU0000:B3:00.0: GPU is lost.  Reboot the system")
    go(clinic, nodes=8, code=1)
    sick = clinic.sick()
    assert sick.pop(6).startswith("the kernel reports 1 since it started: NVRM: Xid (PCI:0000:b3:00): 79, "), sick
    assert sick == {
        0: "nvidia-smi shows 7 of 8 GPUs",
        1: "device 3 is in use by process 4711 (python, other.py)",
        2: "GPU 5 has errors that were not corrected: have it reset, or replaced",
        3: "GPU 6 has pages of memory that wait to be retired: have it reset",
        4: "GPU 7 has rows of memory that wait to be remapped: have it reset",
        5: "GPU 0 has rows of memory that could not be remapped: have it replaced",
        7: "nvidia-smi ended with 15: Unable to determine the device handle for GPU0000:B3:00.0: GPU is lost.  Reboot the system",
    }


def test_a_tool_that_hangs_is_stopped_and_named(clinic):
    clinic.neuron.with_gpus(STANDIN_SMI_SECONDS_ON_1=600)
    go(clinic, nodes=2, code=1, health={"timeout": "20s"})
    (node, words), = clinic.sick().items()
    assert node == 1 and words.startswith("nvidia-smi hangs, stopped after"), words


def test_a_collective_that_is_wrong_or_fails_is_named(clinic):
    clinic.neuron.with_gpus(STANDIN_NCCOM_FAILS_ON_0="check", STANDIN_NCCOM_FAILS_ON_1="driver")
    go(clinic, nodes=3, code=1)
    sick = clinic.sick()
    assert sorted(sick) == [0, 1]
    assert "all_gather among its 8 GPUs: all_gather_perf says: # Out of bounds values : 7 FAILED" in sick[0], sick
    assert "Test NCCL failure" in sick[1], sick


def test_without_any_tool_that_is_said_and_the_training_starts(clinic):
    """Or with one that says it otherwise: then it is not known to be well."""
    clinic.neuron.with_gpus(nccl=False, STANDIN_GPU_CELLS="[Unknown Error]", STANDIN_XID="denied")
    said = go(clinic)
    checks = clinic.checks()
    assert said["healthy"] and checks["devices"] == ("ok", "8 GPUs, NVIDIA H100 80GB HBM3"), said
    for name in ("counters", "repairs"):
        assert checks[name] == ("unchecked", "nvidia-smi shows [Unknown Error] for 8 of 8 GPUs"), checks
    assert checks["xid"][0] == "unchecked" and "Operation not permitted" in checks["xid"][1], checks
    assert checks["collectives"] == ("unchecked", "all_gather_perf (nccl-tests) is not in this image"), checks
    for name in ("nvidia-smi", "dmesg"):
        (clinic.neuron.bin / name).unlink()
    (clinic.neuron.bin / "dmesg").symlink_to("/bin/false")
    said = go(clinic)
    assert said["healthy"] and "not checked: devices, counters, repairs, xid, tensor, collectives" in said["reason"], said


def test_a_product_and_an_all_reduce_by_torch(clinic):
    """On each GPU, and among them where nccl-tests are not there; then one whose product is wrong."""
    clinic.neuron.with_torch().with_gpus(nccl=False, STANDIN_TORCH_CUDA=1, STANDIN_GPUS=2)
    said = go(clinic, nodes=2, resources={"instance": "ml.g9.xlarge"}, health={"device": True, "timeout": "2m", "collectives": {"size": "4MiB"}})
    for node in range(2):
        checks = clinic.checks(node)
        assert checks["tensor"] == ("ok", "a product is right on 2 GPUs (torch)"), checks
        assert checks["collectives"][0] == "ok" and checks["collectives"][1].startswith("all_reduce "), checks
        assert "not tested: all_gather_perf (nccl-tests) is not in this image" in checks["collectives"][1], checks
    across = said["health"]["across"]
    assert across["how"] == "torch" and across["figures"]["all_reduce"]["ranks"] == 4, across
    clinic.neuron.set(STANDIN_TORCH_WRONG_PRODUCT_ON_1=1)
    go(clinic, nodes=2, code=1, resources={"instance": "ml.g9.xlarge"})
    (node, words), = clinic.sick().items()
    assert node == 1 and "(torch): GPU 0: 1 of 4096 elements of a product are wrong" in words, words


@pytest.mark.parametrize("driver", [418, 470, 550])
def test_thirty_healthy_nodes_raise_nothing(clinic, driver):
    """Ten of each driver, with 1 to 8 GPUs more than are needed, or with figures that are those of health."""
    names = {f"STANDIN_GPU_UNCORRECTED_ON_{node}": f"{node % 8}:0" for node in range(10)}
    clinic.neuron.with_gpus(STANDIN_GPU_DRIVER=driver, **names, **{f"STANDIN_NCCOM_BUSBW_ON_{node}": 40 + node for node in range(10)})
    said = go(clinic, nodes=10)
    assert said["healthy"] and not said["health"]["sick"] and not said["health"]["warned"], said
    # Of many nodes only the rows that are not well are told: of these images, that they have no torch.
    assert {row["check"] for node in said["health"]["nodes"] for row in node["checks"]} == {"tensor"}, said
