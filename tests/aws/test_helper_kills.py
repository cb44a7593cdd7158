"""kill -9 of each helper of the agent in a run whose workspace, cache and checkpoints lie in a bucket: the uploader,
the prefetch, the checkpoint worker, at calls that change something. The agent starts another one: no attempt
is made again, nothing is uploaded for nothing, and the run ends as if nobody had died.

A run that is only watched tells the calls; of these `./test` takes a share, STOKER_TEST_KILLS=all each (tests/soak)."""

import os

import preload
import pytest
import stories
import wrapped

SHARE = 6  # of each helper's calls are played
MET = 0.55  # of them, at least: how often a helper writes, and when, differs from run to run
HELPERS = {"uploader": ("stoker-upload", "train-1"), "prefetch": ("stoker-prefetch", "train-1"),
           "checkpointer": ("stoker-ckpt", "train-1")}


class Killed:
    def __init__(self, job, folder, role, attempt):
        self.job, self.folder, self.role, self.attempt = job, folder, role, attempt
        self.agent = wrapped.Agent(folder / "wrapped")

    def run(self, name, **settings):
        self.agent.count(name, self.attempt, role=self.role, **settings)
        done = self.job.stoker("--json", "run", self.job.spec_path, "--id", name, "--set",
                               f"compile.cache_url={self.job.url['cache']}/{name}", env=self.agent.env())
        assert done.code == 0, f"{name}: {settings}\n{done}"
        return done.lines

    def watch(self):
        log = self.folder / "log"
        self.run("watched", log=log)
        return preload.points(log)

    def play(self, point):
        """Whether the helper was killed at all."""
        name, mark = f"{point.name}-{point.nth}".replace("_", "-"), self.folder / f"{point}".replace(" ", "-")
        rows = self.run(name, call=point.name, number=point.nth, mark=mark)
        told = f"{self.role} killed at {point}: {rows}"
        submitted = [(row["phase"], row["attempt"]) for row in rows if row["event"] == "attempt.submitted"]
        assert submitted == [("precompile", 1), ("train", 1)], told
        starts = [row["phase"] for row in self.job.effects("start") if row["run"] == name]
        assert starts == ["precompile", "train"], told
        assert [row["graphs"] for row in rows if row["event"] == "jit.compiled"] in ([], [0]), told
        saved = {row["step"] for row in self.job.effects("saved") if row["run"] == name and row["phase"] == "train"}
        assert set(self.job.marks(name)) == saved, told
        # The log is whole in the bucket too, to its last line.
        assert "eval step" in self.job.ok("logs", name, "--phase", "train", env=self.job.elsewhere()).out, told
        return mark.exists()


@pytest.mark.parametrize("name", HELPERS)
def test_a_helper_that_is_killed_is_replaced(job, tmp_path, name):
    killed = Killed(job, tmp_path, *HELPERS[name])
    points = killed.watch()
    points = points[::1 if "STOKER_TEST_KILLS" in os.environ else max(1, len(points) // SHARE)]
    stories.play_places(lambda number: killed.play(points[number]), len(points), 2, f"{name} killed", MET)
