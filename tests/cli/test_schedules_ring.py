"""Real schedulers wake stoker: Debian's cron with a spool of its own, and Debian's systemd as pid 1 of namespaces of its
own. Both only as root."""

import json
import os
import shutil
import subprocess

import pytest
import stoker as cli
from project import SUPPORT
from scheduled import Scheduled



def may_have_its_own():
    """Whether this process may make namespaces, and a group of processes."""
    groups = subprocess.run(["findmnt", "--noheadings", "--first-only", "--types", "cgroup2", "--output", "TARGET"],
                            capture_output=True, text=True).stdout.strip()
    return os.geteuid() == 0 and groups and os.access(groups, os.W_OK) and subprocess.run(
        ["unshare", "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--fork", "true"], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not may_have_its_own(),
                                reason="only root has namespaces with a cron or systemd of their own")
MINUTES = 3 * 60  # an alarm is a minute away, at most
FOREIGN = "# mine, with a % and no marker\n5 4 * * *\ttrue 100\\% # stoker schedule other\n\n"


class Rung(Scheduled):
    """Its schedule is due every minute; what is done inside is a script of sh."""

    def __init__(self, root, seen_as):
        super().__init__(root)
        (self.tools / "crontab").unlink()
        self.seen_as = seen_as
        self.put("1.csv", "good")
        self.write(schedule={"cron": "* * * * *"}, notify=None)
        for path in (self.spec_path, self.source / "patient.sh"):
            path.write_text(path.read_text().replace(str(root), seen_as))

    def inside(self, tool, script, *before):
        path = self.root / "script"
        path.write_text(f"""set -e
cd {self.seen_as}/job
stoker() {{ {cli.BINARY} --state {self.seen_as}/state "$@"; }}
{script}
""")
        done = subprocess.run([SUPPORT / tool, *before, "sh", f"{self.seen_as}/script"], capture_output=True, text=True,
                              env={**cli.environment(HOME="/root"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, timeout=MINUTES)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def has_promoted(self):
        pointer = json.loads((self.models / "current.json").read_text())
        due, = [record for record in self.records() if record.get("run") == pointer["run"]]
        assert pointer["generation"] == 1 and due["by"] == "schedule" and due["exit_code"] == 0
        assert pointer["run"] == "m5-" + due["at"][:16].replace("-", "").replace(":", "").replace("T", "t")
        return True


PROMOTED = 'until grep -q \'"exit_code":0\' {root}/models/turns/2*.json 2>/dev/null; do sleep 0.2; done'


@pytest.mark.skipif(not shutil.which("cron", path="/usr/sbin"), reason="there is no cron here")
def test_cron_wakes_stoker(tmp_path):
    rung = Rung(tmp_path, str(tmp_path))
    (tmp_path / "foreign").write_text(FOREIGN)
    out = rung.inside("own_cron.sh", f"""
crontab {tmp_path}/foreign
stoker schedule add --to cron
crontab -l >{tmp_path}/both
{PROMOTED.format(root=tmp_path)}
stoker --json schedule ls
stoker schedule rm m5
crontab -l >{tmp_path}/left""")
    assert rung.has_promoted()
    assert (tmp_path / "left").read_text() == FOREIGN
    both = (tmp_path / "both").read_text()
    assert both.startswith(FOREIGN) and both.count("\n") == FOREIGN.count("\n") + 1
    listed, = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert listed["set"] is True and listed["to"] == "cron"


@pytest.mark.skipif(not os.path.exists("/lib/systemd/systemd"), reason="there is no systemd here")
def test_systemd_wakes_stoker(tmp_path):
    rung = Rung(tmp_path, "/srv")
    rung.inside("own_systemd.sh", f"""
find /etc/systemd /var/lib | sort >/srv/before
stoker schedule add --to systemd --system
{PROMOTED.format(root="/srv")}
until [ "$(systemctl is-active stoker-m5.service)" = inactive ]; do sleep 0.1; done
stoker --json schedule ls
systemctl show --property=Result stoker-m5.service
stoker schedule rm m5
rmdir /etc/systemd/system/timers.target.wants /var/lib/systemd/timers /var/lib/systemd 2>/dev/null || true
find /etc/systemd /var/lib | sort >/srv/after""", tmp_path)
    assert (tmp_path / "status").read_text() == "0\n", (tmp_path / "err").read_text()
    assert rung.has_promoted()
    out = (tmp_path / "out").read_text()
    listed, = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert listed["set"] is True and "Result=success" in out
    assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text()
