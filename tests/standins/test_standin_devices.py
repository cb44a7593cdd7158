"""neuron-ls and nccom-test, stand-ins; that all of them say what they are; and
that the table of settings is the whole truth about them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from neuron_standin import settings

STANDINS = Path(__file__).resolve().parent


@pytest.mark.parametrize("instance,count,cores,memory", [
    ("trn1.2xlarge", 1, 2, 32), ("trn1.32xlarge", 16, 2, 32), ("trn2.48xlarge", 16, 4, 96), ("inf2.24xlarge", 6, 2, 32)])
def test_devices_are_those_of_the_instance(machine, instance, count, cores, memory):
    machine.neuron.set(STANDIN_INSTANCE=instance)
    devices = json.loads(machine.run("neuron-ls", "-j").out)
    assert [device["neuron_device"] for device in devices] == list(range(count))
    assert {(device["nc_count"], device["memory_size"] >> 30) for device in devices} == {(cores, memory)}
    for device in devices:
        assert set(device) >= {"bdf", "cpu_affinity", "numa_node", "connected_to", "logical_neuroncore_config",
                               "neuroncore_ids", "neuron_processes"}
        assert isinstance(device["numa_node"], str) and len(device["neuroncore_ids"]) == cores
        assert device["neuron_processes"] == []
        assert device["neuron_device"] not in device["connected_to"]


def test_a_device_is_missing_or_in_use(machine):
    machine.neuron.set(STANDIN_INSTANCE="trn1.32xlarge", STANDIN_MISSING_DEVICES_ON_1=2,
                       STANDIN_FOREIGN_PROCESS="3:4711:python train.py")
    assert len(json.loads(machine.run("neuron-ls", "-j").out)) == 16
    devices = json.loads(machine.run("neuron-ls", "-j", STOKER_NODE_RANK="1").out)
    assert len(devices) == 14
    busy = [(device["neuron_device"], process["pid"], process["command"])
            for device in devices for process in device["neuron_processes"]]
    assert busy == [(3, 4711, "python train.py")]


def test_an_old_tool_shows_less_and_a_broken_one_nothing(machine):
    machine.neuron.set(STANDIN_OLD_LS=1)
    device, = json.loads(machine.run("neuron-ls", "--json-output").out)
    assert "logical_neuroncore_config" not in device and device["nc_count"] == 2
    machine.neuron.set(STANDIN_LS_FAILS="neuron-ls: no driver")
    broken = machine.run("neuron-ls", "-j")
    assert (broken.code, broken.out, broken.err) == (1, "", "neuron-ls: no driver\n")


def rows(result):
    lines = [line.split() for line in result.out.splitlines() if not line.startswith("Avg")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def test_the_table_of_collectives(machine):
    report = machine.work / "report.json"
    done = machine.run("nccom-test", "-r", 32, "-b", "1kb", "-e", "1gb", "-f", 1024, "-d", "fp32",
                       "--non-interactive", "--report-to-json-file", report, "allr")
    assert done.code == 0
    found = rows(done)
    assert [row["size(B)"] for row in found] == ["1024", "1048576", "1073741824"]
    assert [row["count(elems)"] for row in found] == ["256", "262144", "268435456"]
    for row in found:
        assert set(row) == {"size(B)", "count(elems)", "type", "time:avg(us)", "algbw(GB/s)", "busbw(GB/s)"}
    assert abs(float(found[2]["busbw(GB/s)"]) / float(found[2]["algbw(GB/s)"]) - 2 * 31 / 32) < 0.01
    average, = re.findall(r"^Avg bus bandwidth:\s+([0-9.]+)GB/s$", done.out, re.MULTILINE)
    results = json.loads(report.read_text())["results"]
    assert abs(sum(row["busbw(GB/s)"] for row in results) / 3 - float(average)) < 0.001
    assert results[0]["size(B)"] == 1024 and isinstance(results[0]["time:avg(us)"], float)


def test_a_slow_node_is_slow(machine):
    machine.neuron.set(STANDIN_NCCOM_BUSBW=40, STANDIN_NCCOM_BUSBW_ON_2=4)
    argv = ("nccom-test", "-r", 32, "-b", "1gb", "-e", "1gb", "all_reduce")
    speed = [float(rows(machine.run(*argv, STOKER_NODE_RANK=str(node)))[0]["busbw(GB/s)"]) for node in (0, 2)]
    assert speed[0] > 39 and speed[1] < 4.1


@pytest.mark.parametrize("how,text", [
    ("driver", "^Neuron DKMS Driver is not running!"),
    ("bench", r"^ +33554432 Failure running neuron-bench - log file \S+\n1 errors found - test failed$"),
])
def test_collectives_fail_in_words_and_perhaps_in_the_exit_code(machine, how, text):
    machine.neuron.set(STANDIN_NCCOM_FAILS=how)
    done = machine.run("nccom-test", "-r", 2, "allr")
    assert done.code == 1 and re.search(text, done.out, re.MULTILINE), str(done)
    assert "Avg bus bandwidth" not in done.out
    machine.neuron.set(STANDIN_NCCOM_EXIT=0)
    assert machine.run("nccom-test", "-r", 2, "allr").code == 0


def test_a_wrong_sum_is_found_only_where_it_is_checked(machine):
    machine.neuron.set(STANDIN_NCCOM_FAILS="check")
    assert machine.run("nccom-test", "allr", "-r", 2).code == 0
    assert "errors found" in machine.run("nccom-test", "allr", "-r", 2, "-c", "random").out


@pytest.mark.parametrize("place,words", [
    (None, ()), ("localhost:48620", ()), ("10.0.0.2:63182", ("-N", 2, "--hosts", "10.0.0.2", "10.0.0.3"))])
def test_collectives_meet_at_the_first_host(machine, place, words):
    told = {"NEURON_RT_ROOT_COMM_ID": place} if place else {}
    assert machine.run("nccom-test", "allr", "-r", 2, *words, **told).code == 0


@pytest.mark.parametrize("place,words", [
    ("10.0.0.2:48620", ()), (None, ("-N", 2, "--hosts", "a", "b")), ("b:1", ("-N", 2, "--hosts", "a", "b")),
    ("a", ("-N", 2, "--hosts", "a", "b"))])
def test_collectives_that_are_told_of_another_host_fail(machine, place, words):
    told = {"NEURON_RT_ROOT_COMM_ID": place} if place else {}
    done = machine.run("nccom-test", "allr", "-r", 2, *words, **told)
    assert done.code == 1 and "NEURON_RT_ROOT_COMM_ID" in done.err, str(done)


PROGRAMS = sorted(path.name for path in (STANDINS / "bin").iterdir())


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_says_that_it_is_a_stand_in(machine, program):
    done = machine.run(program, "--version")
    assert done.code == 0 and "stand-in" in done.out


def test_what_they_make_says_so_too(machine):
    machine.train("--max_steps", 1)
    for path in machine.cache.rglob("model.*"):
        assert path.name == "model.done" or b"stand-in" in path.read_bytes().lower(), path
    assert "stand-in" in machine.run("neuron-ls").out
    assert all(device["stand_in"] for device in json.loads(machine.run("neuron-ls", "-j").out))
    assert "stand-in" in machine.run("nccom-test", "-r", 2, "allr").err


@pytest.mark.parametrize("name", ["STANDIN_FAIL_GRAPH", "STANDIN_FAIL_GRAPHS_ON_x"])
def test_a_setting_that_is_not_in_the_table_is_refused(machine, name):
    for argv in (("neuron-ls",), ("neuronx-cc", "--version"), ("python3", machine.script)):
        done = machine.run(*argv, **{name: "1"})
        assert done.code != 0 and f"there is no setting {name}" in done.err


def test_the_environment_goes_before_the_installation(machine):
    machine.neuron.set(STANDIN_LS_FAILS="one")
    assert machine.run("neuron-ls", STANDIN_LS_FAILS="two").err == "two\n"
    assert machine.run("neuron-ls", STANDIN_LS_FAILS="two", STANDIN_LS_FAILS_ON_4="four",
                       STOKER_NODE_RANK="4").err == "four\n"


def test_each_setting_of_the_table_is_read_somewhere():
    sources = [path for path in STANDINS.rglob("*") if path.is_file() and "__pycache__" not in path.parts
               and not path.name.startswith("test_") and path.name != "settings.py"]
    text = "\n".join(path.read_text() for path in sources)
    assert [name for name in settings.TABLE if not re.search(rf"['\"]{name}['\"]", text)] == []


def test_the_table_can_be_printed():
    done = subprocess.run([sys.executable, "-m", "neuron_standin.settings"], capture_output=True, text=True,
                          cwd=STANDINS, check=True)
    assert re.findall(r"^STANDIN_\w+$", done.stdout, re.MULTILINE) == list(settings.TABLE)


def test_an_upgrade_is_what_is_installed_then(machine):
    assert "2.25.3371.0+f524f7f8" in machine.run("neuronx-cc", "--version").out
    machine.neuron.upgrade("neuronx-cc", "2.26.6360.0+0a0b0c0d")
    assert "2.26.6360.0+0a0b0c0d" in machine.run("neuronx-cc", "--version").out


def test_no_build_takes_them_along():
    root = STANDINS.parents[1]
    built = [root / "CMakeLists.txt", *root.glob("cmake/**/*"), root / "tests/CMakeLists.txt"]
    assert [path for path in built if path.is_file() and "standin" in path.read_text()] == []
