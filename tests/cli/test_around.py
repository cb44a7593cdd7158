"""Commands around a run: its logs are searched and cut, its end is waited for, its checkpoints and
outputs are copied, a command runs beside it, two runs are compared."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
import stoker as cli
from project import Project
from shell_terminal import ShellTerminal

SCRIPT = """\
import os, sys, time
for step in range(int(os.environ["STEPS"])):
    print(f"step: {step} node {os.environ['STOKER_NODE_RANK']}", flush=True)
    while os.environ.get("HOLD") and step == 3 and os.path.exists(os.environ["HOLD"]):
        time.sleep(0.05)
with open(os.environ["STOKER_OUTPUT_DIR"] + "/result.txt", "w") as file:
    print("made", file=file)
sys.exit(int(os.environ.get("EXIT", 0)))
"""

TENSORS = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
SAVES = f"""
import os, pathlib


def end(args):
    file = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"]) / "NAME"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes({len(TENSORS).to_bytes(8, "little") + TENSORS + bytes(8)!r})
"""


def with_script(project, **more):
    (project.source / "train.py").write_text(SCRIPT)
    project.write(compile=None, hyperparameters=None, env={"STEPS": "20"}, retry={"attempts": 1}, **more)
    return project


@pytest.fixture
def job(project):
    return with_script(project)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Run 'one' of two nodes, which has ended, and the spec that it is of."""
    project = with_script(Project(tmp_path_factory.mktemp("ended") / "project"), resources={"nodes": 2})
    project.began = time.time()
    project.run("--id", "one")
    return project


@pytest.fixture
def held(job, tmp_path):
    """A run that goes on until its hold is removed."""
    hold = tmp_path / "hold"
    hold.touch()
    job.run("--id", "held", "--detach", "--set", f"env.HOLD={hold}")
    cli.until(lambda: "step: 3" in job.stoker("logs", "held").out)
    yield hold
    hold.unlink(missing_ok=True)
    job.stoker("wait", "held")


def lines(result):
    return result.out.splitlines()


def test_the_last_lines_and_those_that_match(ended):
    assert lines(ended.ok("logs", "--tail", "2")) == ["step: 18 node 0", "step: 19 node 0"]
    assert lines(ended.ok("logs", "-n", "0")) == []
    assert len(lines(ended.ok("logs", "--tail", "1000"))) == 20
    assert lines(ended.ok("logs", "--grep", r"step: 1\d n")) == [f"step: {step} node 0" for step in range(10, 20)]
    assert lines(ended.ok("logs", "--grep", "step", "--tail", "1", "--node", "1")) == ["step: 19 node 1"]
    both = lines(ended.ok("logs", "--all-nodes", "--tail", "1"))
    assert both == ["[node 0] step: 19 node 0", "[node 1] step: 19 node 1"]


def test_the_last_lines_of_a_long_log_with_lines_of_its_own_between(job):
    job.run("--id", "long", "--set", "env.STEPS=20000")
    everything = lines(job.ok("logs"))
    assert everything[-3:] == [f"step: {step} node 0" for step in (19997, 19998, 19999)]
    for count in (3, 5000, 19999, 20000, 30000):
        assert lines(job.ok("logs", "--tail", str(count))) == everything[-count:]


def test_times_of_lines_bound_them(ended):
    rows = ended.ok("--json", "logs").lines
    assert len(rows) == 20 and all(row["at"].endswith("Z") for row in rows)
    stamped = lines(ended.ok("logs", "--timestamps"))
    assert [line.split(" ", 1)[1] for line in stamped] == lines(ended.ok("logs"))
    assert [line.split(" ", 1)[0] for line in stamped] == [row["at"] for row in rows]
    assert len(lines(ended.ok("logs", "--since", f"{int(time.time() - ended.began) + 3600}s"))) == 20
    assert lines(ended.ok("logs", "--since", "2999-01-01")) == []
    assert len(lines(ended.ok("logs", "--since", "2001-01-01T12:30:00Z"))) == 20
    for times in ended.state.rglob("times"):
        assert times.stat().st_mode & 0o777 == 0o600
        times.write_text(f"0 {int(ended.began * 1000)}\ngarbage\n99999999 1")
    assert len(lines(ended.ok("logs", "--since", "2001-01-01"))) == 20


def test_who_follows_waits_or_watches_sees_the_end(job, held):
    late = job.stoker("wait", "held", "--timeout", "1s")
    assert late.code == 8 and "not ended" in late.err, str(late)
    assert job.stoker("status", "held", "--exit-code").code == 8
    following = job.start("logs", "held", "--tail", "1", "--follow")
    assert following.stdout.readline() == b"step: 3 node 0\n"
    watching = job.start("--json", "status", "--watch", "held")
    assert json.loads(watching.stdout.readline())["state"] == "running"
    waiting = job.start("--json", "wait", "held")
    held.unlink()
    assert lines(cli.finish(following)) == [f"step: {step} node 0" for step in range(4, 20)]
    for process in (watching, waiting):
        result = cli.finish(process)
        assert result.code == 0 and result.lines[-1]["state"] == "succeeded", str(result)


def test_waiting_gives_the_exit_code_of_a_run_that_failed(job):
    job.stoker("run", "--id", "bad", "--set", "env.EXIT=3")
    assert job.stoker("wait", "bad").code == job.stoker("status", "bad", "--exit-code").code == 1
    assert job.stoker("status", "bad").code == 0


def test_waiting_without_a_driver_does_not_say_that_the_run_continues(job, held):
    os.kill(job.status("held")["driver"]["pid"], signal.SIGKILL)
    waiting = job.start("wait", "held")
    assert b"has no driver" in waiting.stderr.readline()
    waiting.terminate()
    _, said = waiting.communicate(timeout=cli.SECONDS)
    job.ok("resume", "held", "--detach")
    assert waiting.returncode == 8 and b"continues" not in said


def test_watching_needs_a_terminal_or_json(ended):
    refused = ended.stoker("status", "--watch")
    assert refused.code == 2 and "terminal" in refused.err and "--json" in refused.cure


def test_a_command_beside_the_job_has_its_environment_and_folder(job, held):
    said = job.stoker("exec", "held", "--", "sh", "-c", "echo $STOKER_RUN $STEPS $STOKER_NODE_RANK; ls; exit 5")
    assert said.code == 5, str(said)
    assert said.out.splitlines()[0] == "held 20 0" and "train.py" in said.out.split()
    assert job.stoker("exec", "--", "true").code == 0
    absent = job.stoker("exec", "--", "no-such-program")
    assert absent.code == 4 and "no-such-program" in absent.err and absent.cure
    assert job.stoker("exec", "held", "--node", "1", "--", "true").code == 2
    held.unlink()
    job.ok("wait", "held")
    over = job.stoker("exec", "held", "--", "true")
    assert over.code == 4 and "runs" in over.err and over.cure


def test_what_a_run_made_is_copied(ended, tmp_path):
    ended.ok("cp", "one:outputs", tmp_path / "out")
    ended.ok("cp", "@last:log", tmp_path / "out")
    made = {str(path.relative_to(tmp_path / "out")): path.read_text()
            for path in (tmp_path / "out").rglob("*") if path.is_file()}
    log = [f"step: {step} node %d\n" for step in range(20)]
    assert made == {"node-0/result.txt": "made\n", "node-1/result.txt": "made\n",
                    "train-1-node-0.log": "".join(log) % ((0,) * 20), "train-1-node-1.log": "".join(log) % ((1,) * 20)}
    none = ended.stoker("cp", "one:checkpoint", tmp_path / "out")
    assert none.code == 4 and "no complete checkpoint" in none.err and none.cure
    assert ended.stoker("cp", "log", "/proc/nowhere").code == 4
    (tmp_path / "full").mkdir()
    (tmp_path / "full/train-1-node-0.log").symlink_to("/dev/full")
    full = ended.stoker("cp", "log", tmp_path / "full")
    assert full.code == 4 and "No space left" in full.err, str(full)


@pytest.mark.parametrize("what", ["log", "outputs"])
def test_nothing_is_copied_into_a_bucket_or_a_folder_that_is_called_like_one(job, what):
    job.run("--id", "one")
    result = job.stoker("cp", f"one:{what}", "s3://bucket/here")
    assert result.code == 4 and "s3://bucket/here" in result.err and "directory on this machine" in result.cure
    assert not (job.source / "s3:").exists()


@pytest.mark.parametrize("saved", ["checkpoint-9/model.safetensors", "checkpoint-9.safetensors"])
def test_the_newest_checkpoint_is_copied_under_its_name(project, tmp_path, saved):
    project.extra(SAVES.replace("NAME", saved))
    project.write(compile=None)
    project.run("--id", "one")
    url = project.status("one")["checkpoint"]["url"]
    Path(url + ".more").write_text("its name only begins like that of the checkpoint")
    project.ok("cp", "one:checkpoint", tmp_path / "models")
    copied = [str(path.relative_to(tmp_path / "models")) for path in (tmp_path / "models").rglob("*") if path.is_file()]
    assert copied == [saved]
    assert project.ok("cp", "one:checkpoint", tmp_path / "models").code == 0
    Path(url).rename(url + ".away")
    gone = project.stoker("cp", "one:checkpoint", tmp_path / "again")
    assert gone.code == 4 and "nothing is left" in gone.err and url in gone.err and gone.cure, str(gone)


def test_differences_are_named_and_are_an_exit_code(job):
    job.run("--id", "one")
    job.run("--id", "two", "--set", "env.STEPS=3", "--set", "env.API_TOKEN=hidden-value")
    same = job.stoker("diff", "one", "./stoker.yaml")
    assert (same.code, same.out) == (0, ""), str(same)
    other = job.stoker("diff", "one", "two")
    assert other.code == 1 and 'env.STEPS: "20" -> "3"' in other.out, str(other)
    assert "env.API_TOKEN" in other.out and "hidden-value" not in other.out
    (job.source / "train.py").write_text(SCRIPT + "# more\n")
    edited = job.stoker("--json", "diff", "one", "./stoker.yaml")
    assert edited.code == 1 and {row["field"] for row in edited.lines} >= {"source.digest"}, str(edited)
    (job.source / "wrong.yaml").write_text("version: 1\n")
    wrong = job.stoker("--json", "diff", "one", "./wrong.yaml")
    assert wrong.code == 3 and wrong.lines[-1]["error"]["file"] == "./wrong.yaml", str(wrong)


def test_a_repeated_id_names_what_has_changed(ended):
    other = ended.stoker("run", "--id", "one", "--set", "env.STEPS=7")
    assert other.code == 3 and 'env.STEPS: "20" -> "7"' in other.err and "stoker diff one" in other.cure, str(other)


def test_stop_asks_on_a_terminal(job, held):
    argv = [str(cli.BINARY), "stop"]
    with ShellTerminal(argv, job.env(TERM="xterm"), job.source) as terminal:
        terminal.until(r"1  held  fake, train running[\s\S]*which run is to stop")
        terminal.type("1\r")
        terminal.until("run stopped")
    assert job.stoker("wait", "held").code == 6
    with ShellTerminal(argv, job.env(TERM="xterm"), job.source) as terminal:
        terminal.until("no run goes on")


def test_the_first_words_of_a_page_of_logs_are_its_own(job):
    """Prefixes and times are ours; a line that poses as one of them stays what it is."""
    (job.source / "train.py").write_text("print('[node 7] \x1b[31mred')\n")
    job.run("--id", "one")
    said = job.ok("logs", "--all-nodes", "--color", "always")
    assert said.out == "[node 0] [node 7] \\x1b[31mred\n", str(said)


@pytest.mark.parametrize("regex, of", [(r"Epoch ([0-9]+)/([0-9]+)", None), (r"Epoch ([0-9]+)", 6)])
def test_epochs_count_as_progress_where_there_are_no_steps(job, regex, of):
    (job.source / "train.py").write_text("for epoch in range(1, 7):\n    print(f'Epoch {epoch}/6', flush=True)\n")
    job.write(metrics=[{"name": "step", "regex": regex}], progress=of and {"of": of})
    job.run("--id", "one")
    progress = job.status("one")["progress"]
    assert (progress["step"], progress["of"]) == (6, 6), progress


def test_a_large_state_is_told_with_the_commands_that_free_it(job):
    """A file with a hole counts as large and takes no room."""
    assert "holds" not in job.run("--id", "one").err
    with open(job.state / "stoker/runs/large", "wb") as file:
        file.truncate(11 << 30)
    said = job.run("--id", "two").err
    assert f"the state directory '{job.state}/stoker' holds 11.0 GiB" in said, said
    assert "stoker list --sort size" in said and "stoker list --prune" in said, said
