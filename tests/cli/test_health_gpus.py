"""The check-up of nodes with GPUs, on a stand-in for nvidia-smi in the forms of three generations of drivers
(tests/standins/gpu_bin/nvidia-smi says where they are from): each fault is named with each of them, and what a driver
prints otherwise is not checked, never well."""

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


LOST = "Unable to determine the device handle for GPU"
# The generation's own words for a GPU that left the bus, alone; in front of the rows of the others; and in its row.
FAULTS = {"470": (f"{LOST} 0000:B3:00.0: GPU is lost.  Reboot the system to recover this GPU", "[GPU is lost]"),
          "535": (f"{LOST}0000:B3:00.0: Unknown Error", "[GPU requires reset]"),
          "590": (f"{LOST}1: 0000:B3:00.0: Unknown Error", "[GPU requires reset]")}


@pytest.mark.parametrize("driver", FAULTS)
def test_each_fault_is_named_in_the_forms_of_each_driver(clinic, driver):
    """A GPU that is missing, in three forms; a foreign process; an error that was not corrected; a page or row that
    waits; a GPU that must be reset. With health.device as it is: such a machine is checked."""
    lost, broken = FAULTS[driver]
    clinic.neuron.with_gpus(
        STANDIN_GPU_DRIVER=driver, STANDIN_GPU_MISSING_ON_0=1, STANDIN_SMI_FAILS_ON_1=lost, STANDIN_SMI_FAILS_ON_2=lost,
        STANDIN_SMI_MORE_ON_2=1, STANDIN_GPU_MISSING_ON_2=1, STANDIN_GPU_BROKEN_ON_3=f"5:{broken}",
        STANDIN_GPU_FOREIGN_ON_4="3:4711:python, other.py", STANDIN_GPU_UNCORRECTED_ON_5="5:2", STANDIN_GPU_PENDING_ON_6=6)
    go(clinic, nodes=8, code=1)
    waits = "pages of memory that wait to be retired" if driver == "470" else "rows of memory that wait to be remapped"
    assert clinic.sick() == {
        0: "nvidia-smi shows 7 of 8 GPUs",
        1: f"nvidia-smi ended with 15: {lost}",
        2: f"nvidia-smi ended with 15: {lost}",
        3: f"nvidia-smi says of GPU 5: {broken[1:-1]}; have the machine restarted, or replaced",
        4: "device 3 is in use by process 4711 (python, other.py)",
        5: "GPU 5 has 2 errors that were not corrected: have it reset, or replaced",
        6: f"GPU 6 has {waits}: have it reset",
    }


@pytest.mark.parametrize("driver", ["535", "590"])
def test_a_row_that_failed_and_an_xid_are_named(clinic, driver):
    clinic.neuron.with_gpus(STANDIN_GPU_DRIVER=driver, STANDIN_GPU_FAILED_ROW_ON_0=0, STANDIN_XID_ON_1=79)
    go(clinic, nodes=3, code=1)
    sick = clinic.sick()
    assert sick.pop(1).startswith("the kernel reports 1 since it started: NVRM: Xid (PCI:0000:b3:00): 79, "), sick
    assert sick == {0: "GPU 0 has rows of memory that could not be remapped: have it replaced"}


def test_an_inforom_that_is_corrupted_is_a_warning(clinic):
    """nvidia-smi ends with 14 then, and has the figures all the same."""
    clinic.neuron.with_gpus(STANDIN_GPU_INFOROM=1, STANDIN_GPU_UNCORRECTED_ON_1="3:4")
    go(clinic, nodes=2, code=1)
    assert clinic.sick() == {1: "GPU 3 has 4 errors that were not corrected: have it reset, or replaced"}
    assert clinic.checks(0)["devices"] == ("warned", "nvidia-smi says that the infoROM of a GPU is corrupted")


def test_a_tool_that_hangs_is_stopped_and_named(clinic):
    """Of each driver, before it has printed anything."""
    clinic.neuron.with_gpus(**{f"STANDIN_GPU_DRIVER_ON_{node}": driver for node, driver in enumerate(FAULTS)},
                            **{f"STANDIN_SMI_SECONDS_ON_{node}": 600 for node in range(3)})
    go(clinic, nodes=4, code=1, health={"timeout": "20s"})
    sick = clinic.sick()
    assert sorted(sick) == [0, 1, 2] and all(words.startswith("nvidia-smi hangs, stopped after") for words in sick.values()), sick


def test_a_collective_that_is_wrong_or_fails_is_named(clinic):
    clinic.neuron.with_gpus(STANDIN_NCCOM_FAILS_ON_0="check", STANDIN_NCCOM_FAILS_ON_1="driver")
    go(clinic, nodes=3, code=1)
    sick = clinic.sick()
    assert sorted(sick) == [0, 1]
    assert "all_gather among its 8 GPUs: all_gather_perf says: # Out of bounds values : 7 FAILED" in sick[0], sick
    assert "Test NCCL failure" in sick[1], sick


def test_without_any_tool_that_is_said_and_the_training_starts(clinic):
    """Or with one that says it otherwise: then it is not known to be well."""
    clinic.neuron.with_gpus(nccl=False, STANDIN_GPU_SAYS="NVIDIA H100 80GB HBM3: " + ", ".join(["[Unknown Error]"] * 4),
                            STANDIN_XID="denied")
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


NONE, OLD = "[N/A]", "[Not Supported]"
BOTH, PROCESSES = ("counters", "repairs"), ("processes",)
# Outputs of healthy GPUs: name, the cells for uncorrected errors, a page that waits, a row that waits and one that
# failed; what of them is not checked, as the driver tells no figure; what else is in the output.
HEALTHY = {
    "470": [
        ("Tesla V100-SXM2-16GB", ("0", "No", NONE, NONE), (), {}),
        ("Tesla V100-SXM2-32GB", ("0", "No", OLD, OLD), (), {}),
        ("Tesla V100-SXM3-32GB", ("0", "No", NONE, NONE), (), {"SMI_CRLF": 1}),
        ("Tesla V100-PCIE-16GB", (NONE, "No", NONE, NONE), ("counters",), {}),  # ECC is off
        ("Tesla T4", ("0", "No", NONE, NONE), (), {"SMI_REMARK": "WARNING: infoROM is corrupted at gpu 0000:00:1E.0"}),
        ("NVIDIA T4G", ("0", "No", NONE, NONE), (), {"GPUS": 8}),
        ("NVIDIA A100-SXM4-40GB", ("0", NONE, "0", "0"), (), {}),
        ("NVIDIA A10G", ("0", NONE, "0", "0"), (), {}),
        ("NVIDIA GeForce RTX 2080 SUPER", (NONE, NONE, NONE, NONE), BOTH, {}),  # recorded, 465.27
        ("GeForce GTX TITAN X", (OLD, OLD, OLD, OLD), (*PROCESSES, *BOTH), {"GPU_FOREIGN": f"7:{OLD}:{OLD}"}),
    ],
    "535": [
        ("NVIDIA A100-SXM4-40GB", ("0", NONE, "0", "0"), (), {}),
        ("NVIDIA A100-SXM4-80GB", ("0", NONE, "0", "0"), (), {"SMI_CRLF": 1}),
        ("NVIDIA A100-SXM4-40GB", ("0", NONE, NONE, NONE), ("repairs",), {}),  # with MIG
        ("NVIDIA A10G", ("0", NONE, "0", "0"), (), {"SMI_REMARK": " "}),
        ("NVIDIA L4", ("0", NONE, "0", "0"), (), {}),
        ("NVIDIA H100 80GB HBM3", ("0", NONE, "0", "0"), (), {}),
        ("Tesla V100-SXM2-32GB", ("0", "No", NONE, NONE), (), {}),
        ("Tesla T4", ("0", "No", NONE, NONE), (), {}),
        ("NVIDIA GeForce RTX 4090", (NONE, NONE, NONE, NONE), BOTH, {}),
        ("GRID A100D-10C", ("[Insufficient Permissions]", NONE, NONE, NONE), BOTH, {}),
    ],
    "590": [
        ("NVIDIA H100 80GB HBM3", ("0", NONE, "No", "No"), (), {}),  # recorded, 590.48.01
        ("NVIDIA H200", ("0", NONE, "No", "No"), (), {}),  # the same
        ("NVIDIA L40S", ("0", NONE, "No", "No"), (), {}),  # recorded, 595.80
        ("NVIDIA H100 80GB HBM3", ("0", NONE, NONE, NONE), ("repairs",), {}),  # recorded, 590.48.01, with MIG
        ("NVIDIA H200", ("0", NONE, NONE, NONE), ("repairs",), {"SMI_CRLF": 1}),  # the same
        ("NVIDIA GeForce RTX 4080 SUPER", (NONE, NONE, NONE, NONE), BOTH, {}),  # recorded, 595.71.05
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", ("0", NONE, "No", "No"), (), {}),
        ("NVIDIA A100-SXM4-40GB", ("0", NONE, "No", "No"), (), {"SMI_REMARK": "WARNING: infoROM is corrupted at gpu 0"}),
        ("NVIDIA A10G", ("0", "[Requested functionality has been deprecated]", "No", "No"), (), {}),
        ("NVIDIA GB10", (NONE, NONE, NONE, NONE), (*PROCESSES, *BOTH), {"GPU_FOREIGN": f"0:{NONE}:{NONE}"}),
    ],
}


@pytest.mark.parametrize("driver", HEALTHY)
def test_thirty_healthy_outputs_raise_nothing(clinic, driver):
    """Ten of each driver: nobody is sick, nothing is warned of, and what the driver tells no figure of is not checked."""
    told = {}
    for node, (name, cells, _, more) in enumerate(HEALTHY[driver]):
        told[f"STANDIN_GPU_SAYS_ON_{node}"] = f"{name}: {', '.join(cells)}"
        told.update({f"STANDIN_{what}_ON_{node}": value for what, value in more.items()})
    clinic.neuron.with_gpus(STANDIN_GPU_DRIVER=driver, **told)
    said = go(clinic, nodes=10)
    assert said["healthy"] and not said["health"]["sick"] and not said["health"]["warned"], said
    # Of many nodes only the rows that are not well are told: of these images, that they have no torch.
    for node, (name, _, unchecked, _) in zip(said["health"]["nodes"], HEALTHY[driver], strict=True):
        assert [(row["check"], row["verdict"]) for row in node["checks"]] == [
            (check, "unchecked") for check in (*unchecked, "tensor")], (name, node)
