"""Two phases, and when the first one is not needed: the same script, run again
with this or that changed."""

import re
import zlib

import pytest


def phases(project):
    return [phase for phase, _ in project.attempts()]


def change(project, old, new):
    script = project.source / "train.py"
    text = script.read_text()
    assert old in text
    script.write_text(text.replace(old, new))


def test_a_first_run_precompiles_verifies_and_trains(project):
    assert project.plan()["cache"]["verdict"] == "cold"
    project.run()
    assert project.attempts() == [("precompile", 1), ("train", 1)]
    assert len(project.entries()) == 3
    status = project.status()
    assert status["state"] == "succeeded"
    assert status["exit_code"] == 0
    assert status["cache"]["graphs"] == 3
    assert status["jit"]["graphs"] == 0
    assert status["metrics"]["accuracy"] == 0.975
    assert status["progress"]["step"] == 20
    verified = project.events(kind="cache.verified")
    assert [row["complete"] for row in verified] == [True]


def test_phase_one_is_short_and_phase_two_is_whole(project):
    project.run()
    said = {phase: project.logs("--phase", phase) for phase in ("precompile", "train")}
    assert "eval step: 2 " in said["precompile"]
    assert "eval step: 20 " in said["train"]


def test_the_run_says_at_its_end_what_was_compiled_where(project):
    result = project.run()
    assert re.search(r"^phase 1: +3 graphs compiled, 0 found", result.out, re.MULTILINE), str(result)
    assert re.search(r"^phase 2: +0 graphs compiled", result.out, re.MULTILINE), str(result)
    assert re.search(r"^precompile: +[0-9.]+", result.out, re.MULTILINE), str(result)
    assert re.search(r"^train: +[0-9.]+", result.out, re.MULTILINE), str(result)
    assert "accuracy 0.975" in result.out


def test_a_second_run_is_warm_and_makes_no_precompile_attempt(project):
    project.run()
    plan = project.plan()
    assert plan["cache"]["verdict"] == "warm"
    assert plan["cache"]["graphs"] == 3
    said = project.ok("plan", project.spec_path).out
    assert re.search(r"warm", said) and "3 graphs" in said, said
    assert re.search(r"^source: .*, (1 file|(?!1 )\d+ files), ", said, re.MULTILINE), said
    project.run()
    assert phases(project) == ["train"]
    assert project.status()["cache"]["verdict"] == "warm"
    assert project.status()["jit"]["graphs"] == 0


def test_a_changed_comment_is_no_change(project):
    project.run()
    change(project, "    parser = argparse", "    # how it is called\n    parser = argparse")
    assert project.plan()["cache"]["verdict"] == "warm"
    project.run()
    assert phases(project) == ["train"]


def test_code_that_changes_no_graph_is_traced_again_and_nothing_is_compiled(project):
    project.run()
    before = [(path, path.stat().st_mtime_ns) for path in project.entries()]
    change(project, "    parser = argparse", "    called = True\n    parser = argparse")
    plan = project.plan()
    assert plan["cache"]["verdict"] == "cold"
    assert [row["field"] for row in plan["cache"]["changed"]] == ["source:train.py"]
    project.run()
    assert phases(project) == ["precompile", "train"]
    verified = project.events(kind="cache.verified")[-1]
    assert verified["graphs"] == 3
    assert verified["hits"] == 3
    assert verified["compiled"] == 0
    assert [(path, path.stat().st_mtime_ns) for path in project.entries()] == before


def test_a_changed_learning_rate_is_warm(project):
    project.run()
    assert project.plan("--set", "hyperparameters.lr=0.2")["cache"]["verdict"] == "warm"
    project.run("--set", "hyperparameters.lr=0.2")
    assert phases(project) == ["train"]
    assert "--lr 0.2" in project.ok("plan", project.spec_path, "--set", "hyperparameters.lr=0.2").out


def test_a_learning_rate_changed_in_the_spec_file_is_warm_too(project):
    """The spec lies among the sources; what counts of it is counted field by field."""
    project.run()
    project.spec["hyperparameters"]["lr"] = 0.4
    project.write()
    plan = project.plan()
    assert plan["cache"]["verdict"] == "warm", plan["cache"]


def test_a_changed_batch_size_is_cold_and_cache_why_names_it(project):
    project.run()
    project.spec["hyperparameters"]["batch_size"] = 16
    project.write()
    plan = project.plan()
    assert plan["cache"]["verdict"] == "cold"
    changed, = plan["cache"]["changed"]
    assert changed["field"] == "hyperparameters.batch_size"
    assert (str(changed["old"]), str(changed["new"])) == ("8", "16")
    why = project.ok("cache", "why", project.spec_path).out
    assert "cold" in why and "hyperparameters.batch_size" in why
    assert re.search(r"\b8\b.*\b16\b", why), why
    project.run()
    assert phases(project) == ["precompile", "train"]
    assert len(project.entries()) == 6


def test_cache_why_says_what_makes_it_warm(project):
    project.run()
    why = project.ok("cache", "why", project.spec_path).out
    assert "warm" in why and "3" in why


def damage_then_run(project, damage, word):
    project.run()
    entry = project.entries()[1]
    whole = entry.read_bytes()
    damage(entry)
    verify = project.stoker("cache", "verify", project.cache)
    assert verify.code != 0, str(verify)
    graph = entry.name.removesuffix("-cache")
    assert re.search(rf"{word}.*{graph}", verify.out), str(verify)
    by_spec = project.stoker("cache", "verify", project.spec_path)
    assert by_spec.code == verify.code and graph in by_spec.out, str(by_spec)
    plan = project.plan()
    assert plan["cache"]["verdict"] == "cold"
    project.run()
    assert phases(project) == ["precompile", "train"]
    assert entry.read_bytes() != whole
    zlib.decompress(entry.read_bytes())
    assert project.status()["jit"]["graphs"] == 0
    assert project.ok("cache", "verify", project.cache).code == 0
    assert project.plan()["cache"]["verdict"] == "warm"


def test_a_deleted_entry_is_named_and_compiled_again(project):
    damage_then_run(project, lambda entry: entry.unlink(), "missing")


def test_a_truncated_entry_is_named_and_compiled_again(project):
    def cut(entry):
        entry.write_bytes(entry.read_bytes()[:-7])
    damage_then_run(project, cut, "truncated")


def test_an_emptied_entry_is_named_and_compiled_again(project):
    damage_then_run(project, lambda entry: entry.write_bytes(b""), "truncated")


def test_an_entry_with_a_flipped_bit_is_named_and_compiled_again(project):
    def flip(entry):
        whole = bytearray(entry.read_bytes())
        whole[len(whole) // 2] ^= 1
        entry.write_bytes(whole)
    damage_then_run(project, flip, "changed")


def test_other_graphs_in_the_cache_are_neither_counted_nor_touched(project):
    project.cache.mkdir()
    foreign = project.cache / f"jit_other-{'ab' * 32}-cache"
    foreign.write_bytes(b"")
    project.run()
    assert foreign.read_bytes() == b""
    assert project.status()["cache"]["graphs"] == 3


def test_without_a_compile_phase_it_only_trains(project):
    project.write(compile=None)
    plan = project.plan()
    assert plan["cache"]["verdict"] == "none"
    project.run()
    assert phases(project) == ["train"]
    assert project.status()["state"] == "succeeded"


def test_a_graph_that_only_training_needs_is_metered_and_joins_the_lock(project):
    project.extra("""
import __main__


def step(number, args):
    if number == 15:
        __main__.compile_graph("late_eval", "float32[3]")
""")
    project.run()
    assert project.status()["jit"]["graphs"] == 1
    compiled = project.events(kind="jit.compiled")[-1]
    assert "late_eval" in str(compiled["names"])
    assert project.plan()["cache"]["graphs"] == 4
    project.run()
    assert phases(project) == ["train"]
    assert project.status()["jit"]["graphs"] == 0


def test_the_same_id_again_does_nothing_twice(project):
    first = project.run("--id", "nightly-7")
    attempts = project.attempts("nightly-7")
    again = project.run("--id", "nightly-7")
    assert (first.code, again.code) == (0, 0)
    assert project.attempts("nightly-7") == attempts
    assert len(project.ok("--json", "list").lines) == 1


def test_a_failed_id_again_gives_its_own_exit_code_and_submits_nothing(project):
    project.extra("def end(args):\n    raise SystemExit(3)\n")
    project.run("--id", "broken", code=1)
    attempts = project.attempts("broken")
    project.run("--id", "broken", code=1)
    assert project.attempts("broken") == attempts


def test_another_plan_under_the_same_id_is_refused(project):
    project.run("--id", "one")
    result = project.run("--id", "one", "--set", "hyperparameters.lr=0.3", code=3)
    assert "one" in result.err and "hint:" in result.err


def test_dry_run_is_plan(project):
    plan = project.ok("plan", project.spec_path).out
    dry = project.run("--dry-run").out
    assert dry == plan
    assert project.ok("--json", "list").lines == []


def test_set_overrides_a_field_and_engine_is_short_for_it(project):
    assert project.plan("--set", "name=other", "--engine", "local")["engine"] == "local"
    result = project.run("--engine", "slurm", code=4)
    assert "slurm" in result.err


@pytest.mark.parametrize("argv", [(), ("--detach",)], ids=" ".join)
def test_the_same_id_again_gives_its_events_again(project, argv):
    project.run("--id", "one")
    again = project.stoker("--json", "run", project.spec_path, "--id", "one", *argv)
    assert again.code == 0 and again.lines == project.events("one")


def test_of_many_changed_files_a_plan_shows_a_few(project):
    for number in range(30):
        (project.source / f"more-{number}.py").write_text("x = 1\n")
    project.run()
    for number in range(30):
        (project.source / f"more-{number}.py").write_text("x = 2\n")
    plan = project.ok("plan", project.spec_path).out
    assert plan.count("source:more-") == 10 and "and 20 more" in plan, plan
    why = project.ok("cache", "why", project.spec_path).out
    assert why.count("source:more-") == 30, why
    assert len(project.plan()["cache"]["changed"]) == 30


def test_an_override_of_several_lines_stays_one(project):
    text = project.plan("--set", "hyperparameters.nl=a\nb\n c", "--set", "hyperparameters.n=5\n")
    train = [phase for phase in text["phases"] if phase["phase"] == "train"][0]
    assert train["command"][train["command"].index("--nl") + 1] == "a\nb\n c"
    assert train["command"][train["command"].index("--n") + 1] == "5"
