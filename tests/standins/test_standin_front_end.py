"""neuron_parallel_compile and torchrun, stand-ins: their summaries, exit codes
and the lies that are known of them."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from neuron_standin import plant

LIST = "2.12.68.0+4480452af"
NOTHING = "No todo hlos found in cache or hlo_tasklist, parallel_compile return before spawning workers....\n"


def block(result):
    """The summary's JSON, and the numbers of the three lines behind it."""
    found = re.findall(r"(?:\|\|: |\[INFO\]: )(\{\n.*?\n\})\n", result.out, re.DOTALL)
    totals = re.findall(r"Total (?:graphs|successful compilations|failed compilations): (\d+)\n", result.out)
    assert len(found) == 1 and len(totals) == 3, str(result)
    return json.loads(found[0]), tuple(map(int, totals))


def states(machine):
    scan = machine.run("neuron_parallel_compile", "--command", "scan-with-failed")
    return {name: int(count) for name, count in re.findall(r"(todo|locked|done|failed)\[(\d+)\]", scan.out)}


def test_a_trial_then_compilations_then_a_summary(machine):
    done = machine.precompile(front=("--num_parallel", 2))
    assert done.code == 0, str(done)
    named = done.modules("Extracting graphs (")
    report, totals = block(done)
    assert totals == (3, 3, 0)
    assert report["compilation_summary"] == {"true": 3}
    assert set(report) == {"compilation_summary", "compilation_report", "start_time", "compilation_time"}
    for path, one in report["compilation_report"].items():
        assert path.startswith(f"{machine.cache}/neuronxcc-") and path.endswith("/model.hlo_module.pb")
        assert set(one) == {"status", "retry", "compile_time"} and one["status"] is True and one["retry"] == 0
    assert {path.split("/")[-2] for path in report["compilation_report"]} == set(named)
    assert done.said(r"New graph list from script (\d+): /") == ["3"]
    assert done.said(r"Current remaining items are 0, locked are \d, failed are 0, done are \d, total is 3\n")
    assert states(machine) == {"todo": 0, "locked": 0, "done": 3, "failed": 0}
    assert "Call compiler" not in machine.train().out


def test_the_old_summary_has_no_times(machine):
    machine.neuron.set(STANDIN_CC_VERSION="2.9.0.40+07376825f")
    done = machine.precompile()
    report, totals = block(done)
    assert set(report) == {"compilation_summary", "compilation_report"} and totals == (3, 3, 0)
    assert all(set(one) == {"status", "retry"} for one in report["compilation_report"].values())
    assert " INFO ||PARALLEL_COMPILE||: Total graphs: 3\n" in done.out
    assert re.search(r"New graph list from script: /", done.out)


def test_nothing_to_do_has_no_summary(machine):
    machine.precompile()
    again = machine.precompile()
    assert again.code == 0 and NOTHING in again.out
    assert "compilation_summary" not in again.out and "Total graphs" not in again.out
    assert len(again.modules("Using a cached neff at ")) == 3


@pytest.mark.parametrize("version,code", [("2.18.121.0+9e31e41a", 2), ("2.17.194.0+d312836f", 0), (LIST, 0)])
def test_failed_graphs_are_the_exit_code_since_2_23_and_nothing_before(machine, version, code):
    machine.neuron.upgrade("neuronx-cc", version)
    machine.neuron.set(STANDIN_FAIL_GRAPHS="train_step,eval_step")
    done = machine.precompile()
    report, totals = block(done)
    assert (done.code, totals) == (code, (3, 1, 2)), str(done)
    assert report["compilation_summary"] == {"true": 1, "false": 2} or report["compilation_summary"] == {
        "false": 2, "true": 1}
    assert len(done.modules("Failed compilation with ['neuronx-cc', ")) >= 2
    assert done.said(r"Compilation failed for \S+ after 0 retries\.\n")
    assert "returned non-zero exit status 70." in done.out and "[NCC_EVRF001]" in done.out
    assert states(machine) == {"todo": 0, "locked": 0, "done": 1, "failed": 2}


def test_failures_of_all_graphs_leave_out_the_other_key(machine):
    machine.neuron.set(STANDIN_FAIL_GRAPHS="*")
    report, totals = block(machine.precompile())
    assert report["compilation_summary"] == {"false": 3} and totals == (3, 0, 3)


def test_256_failures_look_like_none(machine):
    machine.neuron.set(STANDIN_FAIL_GRAPHS="*", STANDIN_EXTRA_GRAPHS=253, STANDIN_COMPILE_SECONDS=0)
    done = machine.precompile(front=("--num_parallel", os.cpu_count()))
    assert block(done)[1] == (256, 0, 256) and done.code == 0


def test_an_exit_code_can_be_whatever_is_asked_for(machine):
    machine.neuron.set(STANDIN_EXIT="zero", STANDIN_FAIL_GRAPHS="*")
    assert machine.precompile().code == 0
    machine.neuron.set(STANDIN_EXIT="9")
    assert machine.precompile().code == 9


def test_a_script_that_fails_ends_it_unless_told_to_go_on(machine):
    machine.neuron.set(STANDIN_CRASH="extract:2")
    done = machine.precompile()
    assert done.code == 1 and "There was an error in the training script.\n" in done.out
    assert "Call compiler" not in done.out
    done = machine.precompile(NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE="1")
    assert done.code == 0 and block(done)[1] == (1, 1, 0)
    assert machine.train().code == 0


def test_a_script_can_end_with_words_of_the_runtime(machine):
    machine.neuron.set(STANDIN_CRASH="train:3", STANDIN_CRASH_TEXT="ERROR  NRT: told to say this")
    assert machine.precompile("--max_steps", 5).code == 0
    done = machine.train()
    assert done.code == 1 and "step: 2 " in done.out and "step: 3 " not in done.out
    assert done.out.endswith("ERROR  NRT: told to say this\n") and done.err == ""


def test_a_trial_cannot_start_while_the_cores_are_taken(machine):
    machine.neuron.set(STANDIN_FOREIGN_PROCESS="0:4711:python train.py")
    done = machine.precompile()
    assert done.code == 1 and "NeuronCore(s) not available - Requested:1 Available:0\n" in done.out


def test_a_killed_compilation_leaves_its_lock(machine):
    machine.neuron.set(STANDIN_COMPILE_SECONDS=60)
    process = machine.start("python3", "-u", machine.script)
    machine.read_until(process, "Call compiler")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not children.read_text():
        time.sleep(0.01)
    compiler, = map(int, children.read_text().split())
    process.kill()
    os.kill(compiler, signal.SIGKILL)
    process.communicate()
    assert states(machine) == {"todo": 0, "locked": 1, "done": 0, "failed": 0}


def test_without_a_command_it_shows_its_help(machine):
    done = machine.run("neuron_parallel_compile")
    assert done.code == 0 and done.out.startswith("usage: neuron_parallel_compile")


def test_a_worker_that_dies_is_not_counted(machine):
    machine.neuron.set(STANDIN_DEAD_WORKER="pool")
    done = machine.precompile(front=("--num_parallel", 1))
    assert done.code == 0
    assert done.said(r"\[INFO\]: sub-process 0 got exception: (A process in the process pool was terminated abruptly)")
    assert block(done) == ({**block(done)[0], "compilation_summary": {}, "compilation_report": {}}, (0, 0, 0))
    assert states(machine) == {"todo": 2, "locked": 1, "done": 0, "failed": 0}


def test_a_worker_without_its_folder_is_not_counted_either(machine):
    machine.neuron.set(STANDIN_DEAD_WORKER="file")
    done = machine.precompile(front=("--num_parallel", 1))
    assert done.code == 0 and block(done)[1] == (0, 0, 0)
    assert done.said(r"\[INFO\]: sub-process 0 got exception: \[Errno 2\] No such file or directory: ")
    assert states(machine) == {"todo": 3, "locked": 0, "done": 0, "failed": 0}


def test_a_graph_is_tried_again_as_often_as_told(machine):
    machine.neuron.set(STANDIN_FAIL_GRAPHS="train_step", STANDIN_FAIL_TRIES=2)
    done = machine.precompile(NEURON_PARALLEL_COMPILE_MAX_RETRIES="3")
    assert done.code == 0
    assert sorted(one["retry"] for one in block(done)[0]["compilation_report"].values()) == [0, 0, 2]


def test_a_failure_is_kept_and_repeated_until_a_retry_is_asked_for(machine):
    machine.neuron.set(STANDIN_FAIL_GRAPHS="train_step")
    assert machine.precompile().code == 1
    failed, = machine.folders("model.log")
    assert "[NCC_EVRF001]" in (failed / "model.log").read_text()
    machine.neuron.set(STANDIN_FAIL_GRAPHS=None)
    again = machine.precompile()
    assert again.code == 1 and "Call compiler" not in again.out
    assert (f"[ERROR]: Got a cached failed neff at {failed}/model.neff. Will skip compilation, please set "
            f"--retry_failed_compilation for recompilation: \n Failed compilation with [") in again.out
    train = machine.train()
    assert train.code == -signal.SIGABRT and "Got a cached failed neff at " in train.out
    assert "RunNeuronCCImpl: error condition error != 0: " in train.out
    retry = machine.precompile(NEURON_CC_FLAGS="--retry_failed_compilation")
    assert retry.code == 0 and not machine.folders("model.log")
    assert machine.train().code == 0


def test_a_failure_of_old_leaves_a_compiled_graph_of_five_bytes(machine):
    machine.neuron.upgrade("neuronx-cc", "2.12.54.0+f631c2365")
    machine.neuron.set(STANDIN_FAIL_GRAPHS="train_step", STANDIN_FAILED_NEFF_BYTES=5)
    assert machine.precompile().code == 0
    folder, = machine.folders("model.log")
    assert (folder / "model.neff").stat().st_size == 5


def test_what_failed_can_be_cured_in_between(machine):
    cure = machine.root / "cure"
    machine.neuron.set(STANDIN_FAIL_GRAPHS="*", STANDIN_FAIL_UNTIL=cure)
    assert machine.precompile().code == 3
    cure.touch()
    assert machine.precompile(NEURON_CC_FLAGS="--retry_failed_compilation").code == 0


def test_success_can_be_reported_as_failure(machine):
    machine.neuron.set(STANDIN_SOFT_FAIL="*")
    done = machine.precompile()
    assert done.code == 3 and block(done)[1] == (3, 0, 3)
    assert len(done.said("encountered error: stat: path should be string, bytes, os.PathLike or integer, "
                         "not NoneType")) == 3
    assert states(machine)["done"] == 3
    assert len(done.modules("Compilation Successfully Completed for model.")) == 3
    assert machine.train().code == 0


def test_too_many_workers_run_out_of_memory(machine):
    machine.neuron.set(STANDIN_OOM_ABOVE=1)
    done = machine.precompile(front=("--num_parallel", 2))
    assert done.code == 3
    assert "parallel compilation with neuronx-cc exited with error.Received error code: -9\n" in done.out
    cured = machine.precompile(front=("--num_parallel", 1), NEURON_CC_FLAGS="--retry_failed_compilation")
    assert cured.code == 0 and states(machine)["done"] == 3


def test_a_compiler_can_be_killed_over_one_graph(machine):
    machine.neuron.set(STANDIN_KILL_GRAPHS="eval_step")
    done = machine.precompile()
    assert done.code == 1 and "Received error code: -9\n" in done.out
    assert states(machine) == {"todo": 0, "locked": 0, "done": 2, "failed": 1}


def test_a_marker_can_be_missing_from_a_new_layout(machine):
    machine.neuron.set(STANDIN_NO_DONE=1)
    assert machine.precompile().code == 0
    assert list(machine.files().values()) == [{"model.hlo_module.pb", "compile_flags.json", "model.neff"}] * 3


def test_its_own_folder_is_made_anew_where_one_is_told(machine):
    folder = machine.root / "folder"
    machine.precompile(front=("--parallel_compile_workdir", folder))
    (folder / "old").touch()
    done = machine.precompile(front=("--parallel_compile_workdir", folder))
    assert f"Removing existing workdir {folder}\n" in done.out and not (folder / "old").exists()
    assert list(folder.glob("trial_run_pid*_log.txt")) and list(folder.glob("cache_path_pid*_log.txt"))


def test_a_full_disk_leaves_half_a_graph_without_a_marker(machine):
    machine.neuron.set(STANDIN_FULL_DISK="train_step")
    done = machine.precompile()
    assert done.code == 1 and "encountered error: [Errno 28] No space left on device" in done.out
    halves = [folder for folder in machine.folders("model.neff") if not (folder / "model.done").exists()]
    assert len(halves) == 1 and (halves[0] / "model.neff").stat().st_size == 10000


def test_a_locked_graph_is_passed_over_in_silence(machine):
    machine.train("--max_steps", 2, NEURON_EXTRACT_GRAPHS_ONLY="1")
    plant.lock(machine.folders("model.hlo_module.pb")[0], age=7200)
    done = machine.precompile()
    assert done.code == 0 and block(done)[1] == (2, 2, 0)
    assert states(machine)["locked"] == 1
    assert "Cleanup locks done." in machine.run("neuron_parallel_compile", "--command", "clear-locks").out
    assert states(machine) == {"todo": 1, "locked": 0, "done": 2, "failed": 0}


def test_others_in_the_same_cache_are_left_alone(machine):
    plant.other_team(machine.cache)
    before = machine.files()
    assert machine.precompile().code == 0
    assert {key: machine.files()[key] for key in before} == before


def test_hidden_output_hides_the_graphs(machine):
    done = machine.run("neuron_parallel_compile", "torchrun", "-r", "3", "--log_dir", "logs", machine.script)
    assert done.code == 0 and NOTHING in done.out
    assert states(machine)["todo"] == 3
    refused = machine.run("neuron_parallel_compile", "torchrun", "--redirects", "3", machine.script)
    assert refused.code == 1 and "incompatible with torchrun redirect" in refused.out


def test_odd_bytes_cut_the_list_of_an_old_version(machine):
    machine.neuron.set(STANDIN_BAD_BYTES=1)
    whole = machine.precompile("--batch_size", 4)
    assert b"\xff\xfe" in whole.raw and block(whole)[1] == (3, 3, 0)
    machine.neuron.set(STANDIN_STRICT_UTF8=1)
    assert block(machine.precompile("--seq_length", 6))[1] == (1, 1, 0)


def test_lines_can_be_torn_and_prefixed(machine):
    machine.neuron.set(STANDIN_TORN_LINES=1)
    torn = machine.run("neuron_parallel_compile", "--num_parallel", 2, "torchrun", "--nproc_per_node", 8,
                       machine.script, "--max_steps", 2)
    assert torn.code == 0
    machine.neuron.set(STANDIN_TORN_LINES=None, STANDIN_LINE_PREFIX="[1,{rank}]<stdout>:")
    done = machine.precompile("--batch_size", 2, RANK="5")
    assert done.code == 0 and all(line.startswith("[1,5]<stdout>:") for line in done.out.splitlines())
    assert "[1,5]<stdout>:    \"compilation_summary\": {\n" in done.out


def test_each_node_sums_up_what_it_compiled(machine):
    machine.neuron.set(STANDIN_EXTRA_GRAPHS_ON_3=1)
    results = [machine.run("neuron_parallel_compile", "--num_parallel", 1, "torchrun", "--nnodes", 4,
                           "--node_rank", node, machine.script, "--max_steps", 2, STOKER_NODE_RANK=str(node))
               for node in range(4)]
    assert [result.code for result in results] == [0] * 4
    assert block(results[0])[1] == (3, 3, 0) and block(results[3])[1] == (1, 1, 0)
    assert all(NOTHING in results[node].out for node in (1, 2))
    assert len(machine.folders("model.done")) == 4


def test_results_are_dumped_where_asked(machine):
    machine.precompile(NEURON_PARALLEL_COMPILE_DUMP_RESULTS="1")
    names = sorted(path.name.rpartition("_")[0] for path in machine.work.glob("*.json"))
    assert names == ["neuron_parallel_compile_results", "total_neuron_parallel_compile_results"]


def test_collecting_and_compiling_can_be_two_commands(machine):
    collected = machine.precompile(front=("--command", "collect"))
    assert collected.code == 0 and states(machine)["todo"] == 3
    assert block(machine.run("neuron_parallel_compile", "--command", "compile"))[1] == (3, 3, 0)
    machine.run("neuron_parallel_compile", "--command", "clear-neffs")
    assert states(machine)["todo"] == 3
    machine.run("neuron_parallel_compile", "--command", "clean")
    assert not machine.cache.exists()


def test_torchrun_tells_each_rank_who_it_is_and_ends_all_when_one_fails(machine):
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
    (machine.work / "who.py").write_text(
        f"import os\nos.write(1, (' '.join(os.environ[name] for name in {names}) + '\\n').encode())\n")
    done = machine.run("torchrun", "--nproc_per_node", "2", "who.py", PET_NNODES="2", PET_NODE_RANK="1",
                       PET_MASTER_ADDR="10.0.0.1", PET_MASTER_PORT="41000")
    assert sorted(done.out.splitlines()) == ["2 0 4 1 10.0.0.1 41000", "3 1 4 1 10.0.0.1 41000"]
    (machine.work / "one.py").write_text(
        "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(3)\ntime.sleep(600)\n")
    done = machine.run("torchrun", "--nproc_per_node", "2", "one.py")
    assert done.code == 1
    assert "rank      : 1 (local_rank: 1)\n  exitcode  : 3 (pid: " in done.err


def test_torchrun_passes_on_that_it_is_to_stop(machine):
    machine.neuron.set(STANDIN_STEP_SECONDS=0.2)
    process = machine.start("torchrun", "--nproc_per_node", "2", machine.script, "--max_steps", "1000")
    machine.read_until(process, "^step: 2 ")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_checkpoint_comes_when_it_is_asked_for(machine):
    machine.neuron.set(STANDIN_STEP_SECONDS=0.05)
    process = machine.start("python3", "-u", machine.script, "--max_steps", "2000", "--save_steps", "5000")
    try:
        machine.read_until(process, "^step: 2 ")
        process.send_signal(signal.SIGUSR1)
        while not list((machine.work / "checkpoints").glob("*")):
            machine.read_until(process, "^step: ")
        assert process.poll() is None, "it comes before the end"
    finally:
        process.kill()
        process.communicate()
