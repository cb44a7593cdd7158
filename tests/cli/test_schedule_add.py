"""`schedule add --print`: what the other schedulers are given, and what is refused. tests/cli/test_schedules_ring.py has
them ring."""

import json
import re
import shutil
import subprocess

import pytest
import stoker as cli
from scheduled import Scheduled


def spec(tmp_path, name="m5", schedule=None, **more):
    path = tmp_path / "stoker.yaml"
    path.write_text(json.dumps({"version": 1, "name": name, "command": ["true"], "workspace": str(tmp_path / "ws"),
                                "promote": {"when": "always"}, "schedule": schedule or {"cron": "30 2 * * SUN", "timezone": "Europe/Berlin"}, **more}))
    return path


def shown(tmp_path, path, *words, code=0, state=None, **env):
    done = cli.stoker("--state", state or tmp_path / "state", "schedule", "add", path, "--print", *words,
                      env=cli.environment(HOME=str(tmp_path), **env))
    assert done.code == code, done
    assert not (tmp_path / "ws").exists() and not (tmp_path / ".config").exists(), "--print changes nothing"
    return done


def test_systemd_gets_a_service_and_a_timer_that_it_accepts(tmp_path):
    path = spec(tmp_path, schedule={"cron": "30 2 1,15 * SUN", "timezone": "Europe/Berlin", "jitter": "10m"})
    state = tmp_path / "sta te%h$HOME\\\"'"
    text = shown(tmp_path, path, "--to", "systemd", state=state).out
    _, service_name, service, timer_name, timer = re.split(r"^# (/.*)\n", text, flags=re.M)
    assert service_name == f"{tmp_path}/.config/systemd/user/stoker-m5.service"
    assert timer_name.endswith("stoker-m5.timer")
    assert re.findall("^OnCalendar=(.*)", timer, re.M) == [
        "*-*-01,15 02:30:00 Europe/Berlin", "Sun *-*-* 02:30:00 Europe/Berlin", "*-03-25..31 03:00:00 Europe/Berlin"]
    assert "Persistent=true" in timer and "RandomizedDelaySec=600000ms" in timer
    # systemd reads the words of the command as they were meant.
    (tmp_path / "units").mkdir()
    (tmp_path / "units/stoker-m5.service").write_text(service)
    (tmp_path / "units/stoker-m5.timer").write_text(timer)
    if shutil.which("systemd-analyze"):
        subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", tmp_path / "units/stoker-m5.timer",
                        tmp_path / "units/stoker-m5.service"], check=True, timeout=cli.SECONDS)
    command = re.search("^ExecStart=(.*)", service, re.M)[1]
    words = [re.sub(r"\\(.)|%(%)|\$(\$)", lambda match: match[1] or match[2] or match[3], word)
             for word in re.findall(r'"((?:[^"\\]|\\.)*)"', command)]
    assert words == [str(cli.BINARY), "--state", str(state), "schedule", "run", "m5"]


def test_cron_gets_one_marked_line_for_its_shell(tmp_path):
    state = tmp_path / "it's 100% $HOME\\ `here`"
    line = shown(tmp_path, spec(tmp_path), "--to", "cron", state=state).out.removesuffix("\n")
    times, command = line.split(" PATH=", 1)
    assert len(times.split(" ")) == 5 and line.endswith(" # stoker schedule m5")
    assert not re.search(r"(?<!\\)%", command), "cron ends a command there"
    told = subprocess.run(["sh", "-c", "PATH=" + command.replace("\\%", "%").replace(str(cli.BINARY), 'printf "%s\\n" "$PATH"', 1)],
                          capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[1:] == ["--state", str(state), "schedule", "run", "m5"]


def test_what_a_scheduler_cannot_do_is_refused_with_the_reason(tmp_path):
    path = spec(tmp_path)
    assert "choose one of systemd|cron|eventbridge" in shown(tmp_path, path, code=2).cure
    assert "no scheduler is called 'at'" in shown(tmp_path, path, "--to", "at", code=2).text
    assert "--system is for systemd" in shown(tmp_path, path, "--to", "cron", "--system", code=2).text
    done = shown(tmp_path, path, "--to", "cron", state=f"{tmp_path}/a\nb", code=4)
    assert "control character" in done.text
    path = spec(tmp_path, schedule={"cron": "0 3 * * MON", "jitter": "5m"})
    assert "cron has no random delay" in shown(tmp_path, path, "--to", "cron").err
    bare = tmp_path / "bare.yaml"
    bare.write_text("version: 1\nname: x\ncommand: [x]\n")
    assert "the spec has no section 'schedule'" in shown(tmp_path, bare, "--to", "cron", code=3).text


# ---- a crontab that others write too

FOREIGN = "# mine\r\nMAILTO=\"a%b\"\n5 4 * * *\ttrue 100\\% # stoker schedule other\n0 0 * * * x # stoker schedule m5 \n\n  # end"


@pytest.fixture
def turns(tmp_path):
    made = Scheduled(tmp_path)
    made.put("1.csv", "good")
    return made


def test_a_foreign_crontab_stays_as_it_is(turns):
    turns.table.write_bytes(FOREIGN.encode())
    turns.add()
    first = turns.table.read_bytes().decode()
    assert first.startswith(FOREIGN + "\n") and first.count("\n") == FOREIGN.count("\n") + 2
    # Added again, the line is in its place, also when lines have come behind it.
    turns.table.write_bytes((first + "1 1 1 1 1 last\n").encode())
    turns.write(schedule={"cron": "30 4 * * *"})
    turns.add()
    assert turns.table.read_bytes().decode() == first.replace("\n0 3 * * * PATH", "\n30 4 * * * PATH") + "1 1 1 1 1 last\n"
    assert turns.ok("--json", "schedule", "ls").lines[0]["set"] is True
    turns.ok("schedule", "rm", "m5")
    assert turns.table.read_bytes().decode() == FOREIGN + "\n1 1 1 1 1 last\n"
    assert turns.ok("schedule", "ls").out == ""


def test_a_crontab_that_changes_meanwhile_is_read_again(turns):
    turns.table.write_text("a\n")
    tool = turns.tools / "crontab"
    tool.write_text(tool.read_text().replace(
        "-l) ", '-l) [ -e "$TABLE.seen" ] && [ ! -e "$TABLE.once" ] && { echo b >>"$TABLE"; touch "$TABLE.once"; }; touch "$TABLE.seen"; '))
    turns.add()
    assert (turns.root / "table.once").exists()
    lines = turns.table.read_text().splitlines()
    assert lines[:2] == ["a", "b"] and lines[2].endswith("# stoker schedule m5") and len(lines) == 3
    tool.write_text(tool.read_text().replace("-l) ", '-l) date +%N >>"$TABLE"; '))
    turns.write(schedule={"cron": "30 4 * * *"})
    busy = turns.stoker("schedule", "add", turns.spec_path, "--to", "cron")
    assert busy.code == 4 and "another program keeps changing the crontab" in busy.err, busy


def test_a_crontab_that_may_not_be_read_is_an_error(turns):
    (turns.tools / "crontab").write_text("#!/bin/sh\necho 'You (tester) are not allowed to use this program' >&2\nexit 1\n")
    done = turns.stoker("schedule", "add", turns.spec_path, "--to", "cron")
    assert done.code == 4 and "not allowed to use this program" in done.err and "cron.allow" in done.err, done
    (turns.tools / "crontab").unlink()
    if not shutil.which("crontab", path="/usr/sbin:/usr/bin:/sbin:/bin"):
        done = turns.stoker("schedule", "add", turns.spec_path, "--to", "cron")
        assert done.code == 4 and "the program 'crontab' is not there" in done.err, done


def test_variables_are_what_they_were_and_secrets_of_the_shell_are_refused(turns):
    turns.write(env={"STEM": "${STEM}"})
    turns.ok("schedule", "add", turns.spec_path, "--to", "cron", env={"STEM": "first"})
    pin = json.loads((turns.models / "schedule/pin.json").read_text())
    assert pin["plan"]["spec"]["env"]["STEM"] == "first"
    turns.alarm(1)
    created = turns.events("m5-20310101t0300", "run.created")[0]
    assert created["plan"]["spec"]["env"]["STEM"] == "first", "an alarm has no STEM"
    unset = turns.stoker("schedule", "add", turns.spec_path, "--to", "cron")
    assert unset.code == 3 and "STEM" in unset.err
    turns.write(env=None, secrets={"KEY": "env:KEY"})
    before = turns.table.read_text()
    for words in ((), ("--print",)):
        done = turns.stoker("schedule", "add", turns.spec_path, "--to", "cron", *words, env={"KEY": "hush"})
        assert done.code == 3 and "secret 'KEY' comes from this shell's environment" in done.err, done
        assert "hush" not in done.text and done.out == ""
    assert turns.table.read_text() == before


def test_a_name_stands_for_one_model(turns, tmp_path):
    turns.add()
    assert turns.ok("complete", "--", "schedule", "rm", "").out.startswith("m5")
    turns.write(promote={"url": str(tmp_path / "elsewhere")})
    done = turns.stoker("schedule", "add", turns.spec_path, "--to", "cron")
    assert done.code == 4 and "schedule 'm5' is of another model" in done.err, done
    gone = turns.stoker("schedule", "rm", "m6")
    assert gone.code == 9 and "no schedule 'm6'" in gone.err
