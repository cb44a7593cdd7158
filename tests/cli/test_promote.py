"""promote, rollback and lineage: a chain of which any byte can be checked on a copy, and clear words where nothing may
be promoted."""

import hashlib
import json
import os
import random
import shutil
from collections import Counter

import crash
import pytest
import stoker as cli
from versions import TRAINER, Versions, verified


@pytest.fixture
def job(tmp_path):
    return Versions(tmp_path / "project")


def test_a_run_is_promoted_and_gone_back_from_and_rm_takes_nothing_away(job):
    assert job.stoker("lineage").code == 0
    first, = job.ok("--json", "promote", "week-1").lines
    assert (first["generation"], first["action"], first["changed"], first["model"]["step"]) == (1, "promote", True, 20)
    again, = job.ok("--json", "promote", "week-1").lines
    assert (again["generation"], again["changed"]) == (1, False)
    job.ok("promote", "week-2")
    job.ok("rm", "week-1", "--with-checkpoints")
    job.ok("rollback", "--reason", "bad labels")
    rows = job.chain("m5")
    assert [(row["generation"], row["action"], row["run"]) for row in rows] == [
        (3, "rollback", "week-1"), (2, "promote", "week-2"), (1, "promote", "week-1")]
    assert rows[0]["reason"] == "bad labels" and rows[0]["of"] == 1 and rows[0]["current"]
    assert rows[0]["before"] == rows[1]["digest"] and "before" not in rows[2]
    pointer = json.loads((job.models / "current.json").read_text())
    assert (pointer["generation"], pointer["digest"]) == (3, rows[0]["digest"])
    model = job.models / "versions/week-1/model/1/step-20"
    assert pointer["model"] == str(model) == rows[0]["model"]["url"]
    assert (model / "weights.bin").read_bytes() == b"weights of 0.1" * 1000
    assert rows[0]["digest"] == hashlib.sha256((job.models / "entries/3.json").read_bytes()).hexdigest()
    assert verified(job.models) == []


def test_one_byte_of_any_object_is_named_on_a_copy(job, tmp_path):
    for number in (1, 2):
        job.ok("promote", f"week-{number}")
    copy = shutil.copytree(job.models, tmp_path / "copy")
    head = job.chain()[0]["digest"]
    assert verified(copy, 0, "--head", head) == []
    files = sorted(path for path in copy.rglob("*.*") if path.is_file() and not path.name.startswith("."))
    kinds = {path.relative_to(copy).parts[0] for path in files} | {path.parts[-2] for path in files}
    assert {"current.json", "entries", "versions", "evidence", "step-20"} <= kinds
    draw = random.Random(crash.SEED)
    for path in files:
        text = bytearray(path.read_bytes())
        at = draw.randrange(len(text) - 1)
        text[at] ^= 1
        path.write_bytes(text)
        assert verified(copy, 5) == [str(path.relative_to(copy))], (path, at)
        text[at] ^= 1
        path.write_bytes(text)
    assert verified(copy) == []
    (copy / "entries/2.json").unlink()
    (copy / "current.json").unlink()
    assert "entries/" in verified(copy, 5, "--head", head)


def test_the_section_promote(job):
    """A place of its own, an output in place of a checkpoint, and few versions with their files."""
    models = job.root / "models"
    job.extra("import os\nfrom pathlib import Path\n\n\ndef end(args):\n    folder = Path(os.environ['STOKER_OUTPUT_DIR'])"
              " / 'model'\n    folder.mkdir(exist_ok=True)\n    (folder / 'w.bin').write_text(f'of {args.lr}')\n")
    job.write(promote={"url": str(models), "when": "manual", "from": "output:model", "keep": 2})
    for number in (1, 2, 3):
        job.run("--id", f"out-{number}", "--set", f"hyperparameters.lr=0.{number}")
        job.ok("promote", f"out-{number}")
    rows = job.chain("out-3")
    assert [row["model"].get("removed", False) for row in rows] == [False, False, True]
    assert rows[0]["model"]["kind"] == "output" and rows[0]["model"]["files"] == 1
    assert (models / "versions/out-3/model/1/model/w.bin").read_text() == "of 0.3"
    assert [path.parts[-5] for path in sorted(models.rglob("w.bin"))] == ["out-2", "out-3"]
    assert verified(models) == []
    result = job.stoker("rollback", "out-3", "1", "--reason", "x")
    assert result.code == 4 and "promote.keep" in result.err and result.cure, str(result)
    result = job.stoker("promote", "out-1")
    assert result.code == 4 and "promote.keep" in result.err and result.cure, str(result)


WRONG = [
    (("promote", "nosuch"), 9, "nosuch"),
    (("promote", "week-1", "--force"), 2, "--reason"),
    (("rollback",), 2, "--reason"),
    (("rollback", "--reason", "x"), 9, "no earlier version"),
    (("rollback", "0", "--reason", "x"), 2, "generation"),
    (("lineage", "nosuch"), 9, "nosuch"),
    (("lineage", "--head", "abc"), 2, "--head"),
]


def test_what_is_asked_for_wrongly(job):
    for words, code, part in WRONG:
        result = job.stoker(*words)
        assert result.code == code and part in result.err and result.cure, str(result)
    assert not job.models.exists()


def test_what_is_not_promoted(job):
    job.extra("raise SystemExit(3)\n")
    job.run("--id", "fails", "--set", "retry.attempts=1", code=1)
    result = job.stoker("promote", "fails")
    assert result.code == 4 and "--force" in result.cure
    result = job.stoker("promote", "fails", "--force", "--reason", "x")
    assert result.code == 1 and "no complete checkpoint" in result.err
    job.extra(TRAINER)
    job.run("--id", "debugs", "--set", "debug=true")
    result = job.stoker("promote", "debugs", "--force", "--reason", "x")
    assert result.code == 4 and "debug run" in result.err and result.cure
    assert not list(job.models.glob("entries/*"))


def test_a_model_that_is_not_what_the_run_wrote(job):
    weights, = job.state.rglob("runs/week-2/**/step-20/weights.bin")
    weights.write_bytes(weights.read_bytes()[:-1])
    result = job.stoker("promote", "week-2")
    assert result.code in (1, 5) and result.cure, str(result)
    assert not list(job.models.glob("entries/*"))


BY_HAND = [
    ("current.json", lambda text: text.replace('"generation":2', '"generation":7'), "sum does not fit"),
    ("current.json", lambda text: text[:40], "not valid JSON"),
    ("current.json", lambda text: text.replace('{"v":1', '{"v":9'), "format 9"),
    ("entries/2.json", lambda text: text.replace("week-2", "week-9"), "sum does not fit"),
    ("entries/2.json", lambda text: "", "entries/2.json"),
    ("entries/2.json", lambda text: text.replace('{"v":1', '{"v":9'), "format 9"),
]


def test_what_hands_have_made_of_the_chain(job):
    for number in (1, 2):
        job.ok("promote", f"week-{number}")
    for name, change, part in BY_HAND:
        path = job.models / name
        whole = path.read_text()
        path.write_text(change(whole))
        for words in (("promote", "week-3"), ("rollback", "--reason", "x"), ("lineage",)):
            result = job.stoker(*words)
            assert result.code == 4 and part in result.err and result.cure, str(result)
        assert name in verified(job.models, 5)
        path.write_text(whole)
    job.ok("promote", "week-3")
    assert verified(job.models) == []


def test_a_folder_of_another_name(job):
    job.ok("promote", "week-1")
    job.write(name="other")
    job.run("--id", "alien")
    shutil.copytree(job.models, job.models.parent / "other")
    result = job.stoker("promote", "alien")
    assert result.code == 4 and "'m5'" in result.err and result.cure, str(result)


def test_two_promotions_at_once(job):
    met = Counter()
    for _ in range(int(os.environ.get("STOKER_TEST_PROMOTIONS", "3"))):
        shutil.rmtree(job.models, ignore_errors=True)
        both = [job.start("promote", f"week-{number}") for number in (1, 2)]
        codes = sorted(cli.finish(process).code for process in both)
        rows = job.chain()
        # One wins, and the other exits with 5, or follows it in the chain.
        assert codes == [0, 0] and len(rows) == 2 or codes == [0, 5] and len(rows) == 1, (codes, rows)
        assert verified(job.models) == []
        met[tuple(codes)] += 1
    print(f"exit codes: {dict(met)}")
