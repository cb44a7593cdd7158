"""What caches, compilers and logs of the kind `neuron` hide or feign, one by one, and
what the run makes of each, from the outside; and what makes a cache warm or cold."""

import os
import subprocess

import pytest
from neuron_job import phases, verdict
from neuron_standin import plant

KEEPER = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all")


def entries(job):
    return sorted(job.cache.glob("neuronxcc-*/MODULE_*"))


# --- entries ---

def test_a_compiled_graph_of_5_bytes_is_a_failure(job, neuron):
    """What somebody has left: marked by its log alone, replayed until somebody asks for
    another try. A run of our own takes it away again."""
    neuron.set(STANDIN_FAIL_GRAPHS="train_step", STANDIN_FAILED_NEFF_BYTES=5)
    job.go(code=1)
    removed, = job.events(kind="cache.repaired")[0]["removed"]
    assert [key.rsplit("/", 1)[1] for key in removed["keys"]] == ["model.neff", "model.log"], removed
    assert removed["state"] == "failed", removed
    folder = job.cache / removed["graph"]
    (folder / "model.neff").write_bytes(b"12345")
    (folder / "model.log").write_text("Failed compilation: [NCC_EVRF001] stand-in")
    neuron.set(STANDIN_FAIL_GRAPHS=None)
    job.go()
    said = verdict(job)
    assert said["complete"] and said["failed"] == 0, said
    assert min(path.stat().st_size for path in job.cache.rglob("model.neff")) > 1024


def test_old_layouts_without_a_marker_are_complete(job, neuron):
    neuron.upgrade("neuronx-cc", plant.OLD.removeprefix("neuronxcc-"))
    job.go()
    assert not list(job.cache.rglob("model.done")), entries(job)
    said = verdict(job)
    assert said["complete"] and said["done"] == said["graphs"] > 0, said
    job.go()
    assert phases(job) == [("train", "none")]


def test_a_new_layout_without_its_markers_is_not_complete(job, neuron):
    neuron.set(STANDIN_NO_DONE=1)
    job.go(code=None)
    assert not job.events(kind="cache.verified")[0]["complete"]
    assert "train" not in [row[0] for row in phases(job)]


def test_half_done_graphs_and_locks_of_another_team_are_neither_counted_nor_waited_for(job):
    plant.other_team(job.cache)
    folder = plant.locked(job.cache, "4242+e30acd3a", age=7200)
    job.go()
    said = verdict(job)
    assert said["complete"] and said["graphs"] == said["done"] == said["compiled"], said
    assert said["locked"] == said["failed"] == said["missing"] == 0, said
    assert "Another process must be compiling" not in job.logs()
    assert (folder / "model.hlo_module.pb.lock").exists()


# --- logs ---

def test_swallowed_output_proves_nothing(job):
    """The script's output goes elsewhere: nobody has told which graphs there are."""
    script = job.source / "train.py"
    script.write_text("import os, sys\nif os.environ['STOKER_PHASE'] == 'precompile':\n"
                      "    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)\n    os.dup2(1, 2)\n" + script.read_text())
    result = job.go(code=5)
    said = verdict(job)
    assert not said["complete"], said
    assert "train" not in [row[0] for row in phases(job)]
    assert said["reason"] in result.text


LATE = 5  # graphs that the training alone asks for


@pytest.fixture
def wide(job, neuron):
    """32 ranks, of which the training meets graphs that phase 1 did not reach."""
    job.write(command=["torchrun", "--nproc_per_node", "32", "train.py"])
    neuron.set(STANDIN_LINE_PREFIX="[{rank}]: ")

    def train(**settings):
        script = job.source / "train.py"
        script.write_text("import os\nif os.environ['STOKER_PHASE'] == 'train':\n"
                          f"    os.environ |= {dict(STANDIN_EXTRA_GRAPHS=str(LATE), **settings)!r}\n"
                          + script.read_text())
        job.go("hyperparameters.max_steps=4")
        assert verdict(job)["complete"]
        assert len(entries(job)) == verdict(job)["graphs"] + LATE
        return job.status()["jit"]
    return train


@pytest.mark.parametrize("prefix", ["2022", "2023", "2026"])
def test_late_graphs_of_32_ranks_are_counted_once(wide, neuron, prefix):
    """Each is compiled by one rank, and found or waited for by 31."""
    neuron.set(STANDIN_PREFIX=prefix)
    assert wide()["graphs"] == LATE


def test_torn_lines_of_32_ranks_make_up_no_graph_and_no_other_cache(wide, job):
    """What is lost is lost; what is left of it must not mislead."""
    late = wide(STANDIN_TORN_LINES="1")
    assert late["graphs"] <= LATE
    assert set(late["names"]) <= {path.name for path in entries(job)}, late


# --- disks and rights ---

def test_a_cache_that_may_not_be_read_is_refused_before_anything_is_paid(job):
    job.cache.mkdir(mode=0o000)
    try:
        result = job.stoker("run", job.spec_path, env={"PATH": job.path}, prefix=KEEPER)
    finally:
        job.cache.chmod(0o700)
    assert result.code in (1, 4), str(result)
    assert str(job.cache) in result.text and "ermission denied" in result.text, str(result)
    assert "hint:" in result.text or "cure:" in result.text, str(result)


def run_without_rights(job, *sets):
    return job.stoker("run", job.spec_path, *sets, env={"PATH": job.path}, prefix=KEEPER)


def test_a_cache_that_may_not_be_written_is_refused_before_phase_1(job):
    job.cache.mkdir(mode=0o555)
    result = run_without_rights(job)
    job.cache.chmod(0o700)
    assert result.code == 4, str(result)
    assert str(job.cache) in result.text and "ermission denied" in result.text and "hint:" in result.text, str(result)
    assert not job.events(kind="attempt.intended")
    run, = {row["run"] for row in job.events()}
    assert job.stoker("resume", run, env={"PATH": job.path}).code == 0
    assert [row[0] for row in phases(job)] == ["precompile", "train"]


def test_a_cache_that_may_not_be_made_is_refused_for_what_it_is(job):
    closed = job.root / "closed"
    closed.mkdir(mode=0o555)
    result = run_without_rights(job, "--set", f"compile.cache_url={closed / 'below' / 'cache'}")
    assert result.code == 4, str(result)
    assert "ermission denied" in result.text and "o such file" not in result.text, str(result)


def test_a_warm_cache_need_not_be_writable(job):
    job.go()
    folders = [job.cache, *(path for path in job.cache.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    result = run_without_rights(job)
    for folder in folders:
        folder.chmod(0o700)
    assert result.code == 0, str(result)
    assert [row[0] for row in phases(job)] == ["train"]


def test_a_cache_directory_that_is_not_there_is_no_spec(job):
    for command in ("ls", "verify", "gc"):
        result = job.stoker("cache", command, job.root / "none")
        assert result.code == 4 and "no cache directory" in result.text, str(result)
    assert job.stoker("cache", "verify", job.root / "none.yaml").code == 3


def test_a_graph_that_may_not_be_read_is_not_taken_for_done(job):
    job.go()
    hidden = entries(job)[0]
    hidden.chmod(0o000)
    try:
        result = job.stoker("run", job.spec_path, env={"PATH": job.path}, prefix=KEEPER)
    finally:
        hidden.chmod(0o755)
    assert result.code != 0, str(result)
    assert hidden.name in result.text or str(job.cache) in result.text, str(result)
    assert "train" not in [row[0] for row in phases(job)], phases(job)


@pytest.fixture
def small_cache(job):
    job.cache.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(job.cache)],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    yield job.cache
    subprocess.run(["umount", "--lazy", str(job.cache)], check=True)


def test_a_cache_on_a_full_disk_is_named_with_its_cure(job, neuron, small_cache):
    neuron.set(STANDIN_NEFF_BYTES=60000)
    result = job.go(code=None)
    assert result.code in (1, 5), str(result)
    assert "train" not in [row[0] for row in phases(job)]
    assert "o space left" in result.text, str(result)
    assert not any(row["complete"] for row in job.events(kind="cache.verified"))


# --- warm and cold ---

def touched(job):
    for path in job.source.rglob("*"):
        os.utime(path, (1, 1))


def listed_anew(job):
    """The same files, made in another order."""
    texts = {path.name: path.read_bytes() for path in sorted(job.source.iterdir()) if path.is_file()}
    for name in texts:
        (job.source / name).unlink()
    for name in sorted(texts, reverse=True):
        (job.source / name).write_bytes(texts[name])


@pytest.mark.parametrize("act", [touched, listed_anew])
def test_what_no_graph_depends_on_is_warm(job, act):
    (job.source / "a.py").write_text("A = 1\n")
    job.go()
    act(job)
    job.go("hyperparameters.seed=7", "hyperparameters.max_steps=9", "hyperparameters.lr=0.5",
           "env.LOG_LEVEL=debug", "env.WANDB_PROJECT=other")
    assert phases(job) == [("train", "none")]


COLD = {
    "hyperparameters.batch_size=16": "hyperparameters.batch_size",
    "hyperparameters.seq_length=8": "hyperparameters.seq_length",
    "env.NEURON_CC_FLAGS=--model-type=transformer --auto-cast=all": "env.NEURON_CC_FLAGS",
    "env.NEURON_CC_FLAGS=--model-type=transformer --auto-cast=none -O1": "env.NEURON_CC_FLAGS",
    "env.XLA_USE_BF16=1": "env.XLA_USE_BF16",
    "resources.nodes=2": "resources.nodes",
}


@pytest.mark.parametrize("change", COLD)
def test_what_graphs_depend_on_is_cold_and_named(job, change):
    job.spec["env"] = {"NEURON_CC_FLAGS": "--model-type=transformer --auto-cast=none"}
    job.write()
    job.go()
    why = job.ok("cache", "why", job.spec_path, "--set", change, env={"PATH": job.path}).out
    assert COLD[change] in why and "cold" in why, why
    job.go(change)
    assert phases(job) == [("precompile", "none"), ("train", "none")]
    assert verdict(job)["compiled"] > 0
    assert job.status()["jit"]["graphs"] == 0


def test_what_the_spec_says_graphs_depend_on_is_part_of_the_key(job):
    (job.source / "sizes.bin").write_text("one")
    (job.source / ".stokerignore").write_text("sizes.bin\n")
    job.spec["compile"]["depends_on"] = ["sizes.bin"]
    job.write()
    job.go()
    (job.source / "sizes.bin").write_text("two")
    why = job.ok("cache", "why", job.spec_path, env={"PATH": job.path}).out
    assert "cold" in why and "sizes.bin" in why, why


def test_late_graphs_join_the_lock_and_are_late_once(wide, job):
    assert wide()["graphs"] == LATE
    job.go("hyperparameters.max_steps=4")
    assert phases(job) == [("train", "none")]
    assert job.status()["jit"]["graphs"] == 0


def test_a_compiler_that_runs_out_of_memory_gets_fewer_workers(job, neuron):
    neuron.set(STANDIN_OOM_ABOVE=1, STANDIN_MEMORY_GIB=512)
    job.go()
    assert [row[0] for row in phases(job)] == ["precompile", "precompile", "train"]
    assert "error code: -9" in str(job.events(kind="cache.verified")[0])
    assert verdict(job)["complete"]
    assert [row.get("workers") for row in job.status()["attempts"]][1] == 1
