"""The quickstart, a real model in JAX, with everything on S3; then the same spec from
another home under another host name: warm."""

import os
import shutil

import pytest
import stoker as cli
from quickstart import QUICKSTART, Job

PLACES = {"workspace": "stoker", "compile.cache_url": "cache", "checkpoint.url": "ckpt"}
SETS = [word for field, key in PLACES.items() for word in ("--set", f"{field}=s3://bucket/quick/{key}")]


class BucketQuickstart(Job):
    def __init__(self, root, aws):
        super().__init__(root)
        self.aws = aws
        aws.make_bucket("bucket")

    def stoker(self, *argv, code=0, seconds=600, home="home", far=False):
        (self.root / home).mkdir(exist_ok=True)
        env = self.aws.env(STOKER_STATE="s3://bucket/quick/state", HOME=self.root / home)
        prefix = ("unshare", "--uts", "/bin/sh", "-c", 'hostname far && exec "$@"', "far") if far else ()
        result = cli.finish(cli.start(*argv, env=env, cwd=self.root, prefix=prefix), argv, seconds)
        assert code is None or result.code == code, str(result)
        return result


@pytest.mark.long
def test_the_quickstart_on_s3_is_warm_from_another_machine(aws, tmp_path):
    job = BucketQuickstart(tmp_path, aws)
    job.stoker("run", job.spec, *SETS, "--set", "compile.quiet_period=1s", "--set", "hyperparameters.max_steps=200")
    assert job.phases() == ["precompile", "train"]
    status = job.status()
    assert (status["state"], status["jit"]["graphs"]) == ("succeeded", 0)
    verified, = job.events("cache.verified")
    assert verified["graphs"] > 0 and verified["compiled"] == verified["graphs"]
    assert status["checkpoint"]["url"].startswith("s3://bucket/quick/ckpt/")
    bins = dict(status["ledger"])
    assert abs(sum(bins.values()) - 2 * bins["total"]) < 0.01
    since = aws.mark()
    shutil.rmtree(tmp_path / "home")
    job.stoker("run", job.spec, *SETS, "--set", "hyperparameters.max_steps=40", home="other", far=os.geteuid() == 0)
    assert job.phases() == ["train"]
    assert job.status()["jit"]["graphs"] == 0
    # The graphs came out of the bucket, and none went in.
    names = [entry["name"] for entry in aws.ledger(since) if entry["effect"] and entry["operation"] == "PutObject"]
    assert [name for name in names if "/cache/" in name and name.endswith("-cache")] == []
