"""A compile cache in a bucket, of a compiler that knows folders only: what nodes fetch before
the command and bring back after it, and what is told and tidied of it there."""

import json
import time
import zlib
from datetime import datetime, timezone

import pytest
from bucket_job import BUCKET


def entries(job):
    folder = f"{job.prefix}/cache/"
    return {key.removeprefix(folder): body for key, body in job.aws.objects(BUCKET).items()
            if key.startswith(folder) and key.endswith("-cache")}


def lock(job):
    key, = [key for key in job.aws.objects(BUCKET) if "/cache/stoker/" in key and "claims" not in key]
    return key, json.loads(job.aws.objects(BUCKET)[key])


def starts(job, run):
    return [row["phase"] for row in job.effects("start") if row["run"] == run]


def compiled(job, run):
    said, = job.events(run, "cache.verified")
    return said["complete"], said["graphs"], said["compiled"], said["hits"]


def test_a_second_machine_finds_it_warm(job):
    job.run("--id", "first")
    assert compiled(job, "first") == (True, 3, 3, 0)
    assert len(entries(job)) == 3
    _, pinned = lock(job)
    heads = {row["Key"]: row for row in
             job.aws.client().list_objects_v2(Bucket=BUCKET, Prefix=f"{job.prefix}/cache/jit")["Contents"]}
    assert {(graph["path"], graph["size"], graph["etag"]) for graph in pinned["graphs"]} == \
        {(key.removeprefix(f"{job.prefix}/cache/"), row["Size"], row["ETag"]) for key, row in heads.items()}
    since = job.aws.mark()
    job.run("--id", "second", env=job.elsewhere())
    assert starts(job, "second") == ["train"]
    assert job.events("second", "cache.checked")[0]["verdict"] == "warm"
    assert job.status("second")["jit"]["graphs"] == 0
    written = [row["name"] for row in job.aws.ledger(since, "PutObject") if "/cache/jit" in row["name"]]
    assert written == []


def test_code_that_makes_the_same_graphs_compiles_nothing(job):
    job.run("--id", "first")
    before = entries(job)
    (job.source / "train.py").write_text((job.source / "train.py").read_text() + "\nA_WORD_MORE = True\n")
    job.run("--id", "second", env=job.elsewhere())
    assert starts(job, "second") == ["precompile", "train"]
    assert compiled(job, "second") == (True, 3, 0, 3)
    assert entries(job) == before


def test_a_training_fetches_what_its_lock_names_and_no_more(job):
    job.run("--id", "first")
    stray = f"jit_stray-{'a' * 64}-cache"
    job.aws.client().put_object(Bucket=BUCKET, Key=f"{job.prefix}/cache/{stray}", Body=zlib.compress(b"x"))
    since = job.aws.mark()
    job.run("--id", "second", env=job.elsewhere())
    fetched = [row["name"] for row in job.aws.ledger(since, "GetObject") if "/cache/jit" in row["name"]]
    assert len(fetched) >= 3 and not any(stray in name for name in fetched), fetched


def test_graphs_of_the_training_join_the_lock(job):
    text = (job.source / "train.py").read_text()
    late = text.replace('call("end", args)\n', 'if os.environ["STOKER_PHASE"] == "train":\n'
                        '        compile_graph("late", "float32[1]")\n    call("end", args)\n')
    assert late != text
    (job.source / "train.py").write_text(late)
    job.run("--id", "first")
    assert len(entries(job)) == 4
    _, pinned = lock(job)
    assert [graph["late"] for graph in pinned["graphs"] if "jit_late" in graph["key"]] == [True]
    job.run("--id", "second", env=job.elsewhere())
    assert job.status("second")["jit"]["graphs"] == 0
    assert starts(job, "second") == ["train"]


def damage_truncate(job, key, body):
    job.aws.client().put_object(Bucket=BUCKET, Key=key, Body=body[:-3])


def damage_overwrite(job, key, body):
    job.aws.client().put_object(Bucket=BUCKET, Key=key, Body=body[:-1] + bytes([body[-1] ^ 1]))


def damage_delete(job, key, body):
    job.aws.client().delete_object(Bucket=BUCKET, Key=key)


@pytest.mark.parametrize(("damage", "state"), [(damage_truncate, "truncated"), (damage_overwrite, "changed"),
                                               (damage_delete, "missing")], ids=lambda value: str(value)[:20])
def test_a_damaged_entry_is_told_and_compiled_again(job, damage, state):
    job.run("--id", "first")
    name, body = sorted(entries(job).items())[0]
    damage(job, f"{job.prefix}/cache/{name}", body)
    said = job.stoker("--json", "cache", "verify", job.url["cache"])
    assert said.code == 5, str(said)
    assert (said.lines[0]["path"], said.lines[0]["state"]) == (name, state)
    why = job.stoker("cache", "why", job.spec_path)
    assert why.code == 0 and state in why.out, str(why)
    job.run("--id", "second", env=job.elsewhere())
    assert starts(job, "second") == ["precompile", "train"]
    assert compiled(job, "second") == (True, 3, 1, 2)
    job.ok("cache", "verify", job.url["cache"])


def test_what_is_listed_is_what_lies_there(job):
    job.run("--id", "first")
    rows = job.ok("--json", "cache", "ls", job.url["cache"] + "/").lines
    assert {row["path"]: row["size_bytes"] for row in rows} == {name: len(body) for name, body in entries(job).items()}
    assert all(row["state"] == "done" and len(row["locks"]) == 1 for row in rows)
    good = job.ok("--json", "cache", "verify", job.url["cache"]).lines[-1]
    assert (good["complete"], good["ok"], good["others"]) == (True, 3, 0)
    good = job.ok("--json", "cache", "verify", job.spec_path).lines[-1]
    assert good["complete"] and good["ok"] == 3


def test_old_graphs_go_that_no_lock_names(job, tmp_path):
    """Times of a bucket cannot be set: what is young stays."""
    job.run("--id", "first")
    stray = f"jit_stray-{'a' * 64}-cache"
    job.aws.client().put_object(Bucket=BUCKET, Key=f"{job.prefix}/cache/{stray}", Body=zlib.compress(b"x"))
    *_, total = job.ok("--json", "cache", "gc", job.url["cache"], "--delete").lines
    assert total["graphs"] == 0 and total["kept"] == {"named": 3, "young": 1, "compiling": 0, "unknown": 0}
    assert stray in entries(job)


def test_a_precompile_whose_graphs_do_not_arrive_has_not_ended_well(job):
    """What a node compiled is worth nothing where nobody finds it: the attempt fails as one
    that may be repeated, and says why."""
    job.aws.fault("denied", operation="PutObject", key="cache/jit_train_step", count=100)
    result = job.run("--id", "alone", code=None)
    ended = [row for row in job.events("alone", "attempt.ended") if row["phase"] == "precompile"]
    said = json.dumps(ended[0])
    assert "cannot upload" in said and "AccessDenied" in said and ended[0]["class"] == "transient-infra", said
    assert result.code != 0 and "train" not in starts(job, "alone")
    job.aws.clear_faults()


@pytest.mark.parametrize("kind", ["lost", "throttle", "internal", "reset_body", "conflict"])
def test_what_goes_wrong_on_the_way_does_no_harm(job, kind):
    job.aws.fault(kind, operation="PutObject", key="cache/jit", count=2)
    job.run("--id", "rough")
    assert compiled(job, "rough") == (True, 3, 3, 0)
    assert job.aws.struck() == 2


def test_a_cut_entry_is_not_brought_there(job):
    """A compiler that dies leaves a part of a file; nobody else shall meet it."""
    text = (job.source / "train.py").read_text()
    cut = text.replace('    for step in range(first', '    if os.environ["STOKER_ATTEMPT"] == "1" and '
                       'os.environ["STOKER_PHASE"] == "precompile":\n'
                       '        folder = Path(os.environ["JAX_COMPILATION_CACHE_DIR"])\n'
                       '        victim = next(folder.glob("jit_train_step*"))\n'
                       '        victim.write_bytes(victim.read_bytes()[:-5])\n'
                       '        os.kill(os.getpid(), 9)\n'
                       '    for step in range(first')
    assert cut != text
    (job.source / "train.py").write_text(cut)
    job.run("--id", "cut")
    assert starts(job, "cut") == ["precompile", "precompile", "train"]
    for body in entries(job).values():
        zlib.decompress(body)
    report = json.loads(job.aws.objects(BUCKET)[f"{job.prefix}/stoker/runs/cut/precompile-1/node-0/report.json"])
    assert report["cache"] == {"brought": 2, "cut": 1}


def test_two_nodes_have_a_folder_each(job):
    job.write(resources={"nodes": 2})
    job.run("--id", "pair")
    assert len(entries(job)) == 3
    reports = [json.loads(job.aws.objects(BUCKET)[f"{job.prefix}/stoker/runs/pair/precompile-1/node-{node}/report.json"])
               for node in range(2)]
    assert sum(report["cache"]["brought"] for report in reports) >= 3
    assert job.status("pair")["state"] == "succeeded"


def test_runs_that_need_the_same_graphs_compile_them_once(job):
    """The claim on a graph key stands in the bucket too."""
    first = job.start("run", job.spec_path, "--id", "one")
    second = job.start("run", job.spec_path, "--id", "two", env=job.elsewhere())
    for process in (first, second):
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, out + err
    phases = starts(job, "one") + starts(job, "two")
    assert phases.count("precompile") == 1 and phases.count("train") == 2, phases
    assert len(entries(job)) == 3


def test_the_quiet_period_is_kept(job):
    job.write(compile={**job.spec["compile"], "quiet_period": "3s"})
    begun = time.monotonic()
    job.run("--id", "quiet")
    assert time.monotonic() - begun >= 3
    rows = job.events("quiet")
    ended = [row for row in rows if row["event"] == "attempt.ended" and row["phase"] == "precompile"][0]
    verified, = [row for row in rows if row["event"] == "cache.verified"]
    at = [datetime.fromisoformat(row["at"]).astimezone(timezone.utc) for row in (ended, verified)]
    assert (at[1] - at[0]).total_seconds() >= 3
