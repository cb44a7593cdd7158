"""kill -9, EIO and ENOSPC at each call of `promote` that changes something: it says once what was wrong, and whoever
repeats it finds one promotion, in an unbroken chain. (A lost reply: tests/aws/test_promote_s3.py.)"""

import json
import re
import shutil
import subprocess
from collections import Counter

import preload
import stoker as cli
from versions import Versions, verified


def test_a_promotion_that_is_killed_or_fails_anywhere_is_done_once(tmp_path):
    job, tool, log = Versions(tmp_path / "project", runs=2), preload.Preload(tmp_path), tmp_path / "log"
    job.ok("promote", "week-1")
    before = shutil.copytree(job.models, tmp_path / "before")
    env = job.env(ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0")

    def promote(prefix):
        return subprocess.run([*prefix, str(cli.BINARY), "promote", "week-2"], env=env, cwd=job.source,
                              capture_output=True, text=True)

    assert promote(tool.watch(log)).returncode == 0
    places = [("kill", point) for point in tool.points(log)]
    places += [(error, point) for point, error in tool.failures(log) if error in ("EIO", "ENOSPC")]
    met = Counter()
    for at, (how, point) in enumerate(places):
        shutil.rmtree(job.models)
        shutil.copytree(before, job.models)
        mark = tmp_path / f"fails-{at}"
        done = promote(tool.kill_at(point) if how == "kill" else tool.fail_at(point, how, mark))
        assert "Sanitizer" not in done.stderr, done.stderr
        if done.returncode > 0:
            told = re.findall(r"^error: ", done.stderr, re.MULTILINE)
            assert done.returncode in (4, 75) and len(told) == 1, (how, point, done.stderr)
        met[how] += done.returncode == -9 if how == "kill" else mark.exists()
        job.ok("promote", "week-2")
        assert [row["run"] for row in job.chain()] == ["week-2", "week-1"], (how, point)
        assert verified(job.models) == [], (how, point)
        assert json.loads((job.models / "current.json").read_text())["generation"] == 2
    print(f"{met.total()} of {len(places)}: {dict(met)}")
    assert met.total() >= len(places) * 0.9 and min(met[how] for how in ("kill", "EIO", "ENOSPC")) > 20, met
