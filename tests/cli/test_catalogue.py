"""The catalogue of instance types: its rows against each other and SageMaker's names, `stoker machines`, what an
engine says of a type's name, and the script that makes the rows anew."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import stoker as cli
from described import DESCRIBED

ROOT = cli.ROOT
CATALOGUE = ROOT / "configs/catalogue"
SAMPLES = ROOT / "tests/golden/refresh"
GIB = 1 << 30
FAMILIES = ("trn1 trn1n trn2 inf2 p3 p3dn p4d p4de p5 p5e p5en g4dn g5 g6 g6e c5 m5 r5 c6i m6i r6i c7i m7i r7i").split()


def machines(*argv, **env):
    said = cli.stoker("--json", "machines", *argv, env=cli.environment(**env))
    assert said.code == 0, str(said)
    return {line["type"]: line for line in said.lines}


# ---- the rows


def test_every_family_that_trains_has_its_rows():
    rows = machines()
    assert {name.split(".")[0] for name in rows} >= set(FAMILIES)
    names = re.findall(r"^  - ml\.(\S+)$", (CATALOGUE / "sagemaker.yaml").read_text(), re.M)
    assert len(names) > 200
    # All that SageMaker trains on of these families, and no other row says so.
    assert {name for name, row in rows.items() if row["sagemaker"]} == \
        {name for name in names if name.split(".")[0] in FAMILIES}


def test_each_figure_has_its_source_and_day():
    for name, row in machines().items():
        assert row["figures"] and re.fullmatch(r"\d{4}-\d\d(-\d\d)?", row["figures_dated"]), name
        assert {"price", "region", "dated", "source"} & row.keys() in \
            (set(), {"price", "region", "dated", "source"}), name
        assert row["vcpus"] > 0 and row["ram_bytes"] > 0 and row["arch"] == "x86_64", name
        assert {"gpus", "gpu", "gpu_memory_bytes"} <= row.keys() or row.get("accelerator") != "nvidia", name
        assert {"devices", "cores", "memory_bytes"} <= row.keys() or row.get("accelerator") != "neuron", name
        assert row.get("accelerator") in ("neuron", "nvidia") or not {"gpus", "devices"} & row.keys(), name


def test_each_row_is_what_ec2_says_by_another_record():
    """tests/support/described.txt says whose; the network's bursts are in none of them."""
    rows = machines()
    assert rows.keys() - DESCRIBED.keys() == {"trn2u.48xlarge"} and not DESCRIBED.keys() - rows.keys()
    for name, told in DESCRIBED.items():
        row = rows[name]
        ours = {"vcpus": row["vcpus"], "mib": row["ram_bytes"] >> 20, "nvme": row["nvme_bytes"] // 10**9, "efa": row["efa"],
                "arch": {"x86_64": "amd64"}.get(row["arch"], row["arch"]), "gpus": row.get("gpus", 0),
                "gpu": row.get("gpu", "-").lower(), "gpu_mib": row.get("gpu_memory_bytes", 0) >> 20,
                "devices": row.get("devices", 0), "cores": row.get("physical_cores", row.get("cores", 0)),
                "usd": row.get("price"), "source": told["source"]}
        assert {column: ours[column] for column in told} == told, name


def test_a_price_of_an_accelerator_is_its_share():
    rows = machines()
    assert rows["p5.48xlarge"]["accelerator_price"] == 55.04 / 8
    assert rows["trn1.32xlarge"]["accelerator_price"] == 21.5 / 16
    assert "accelerator_price" not in rows["m5.large"] and "accelerator_price" not in rows["trn2.48xlarge"]


# ---- stoker machines


def test_a_word_is_part_of_a_type_of_a_gpu_or_a_kind():
    assert set(machines("trn1")) == {"trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge"}
    assert set(machines("h200")) == {"p5e.48xlarge", "p5en.48xlarge"}
    assert {row["accelerator"] for row in machines("neuron").values()} == {"neuron"}
    assert set(machines("ml.trn2")) == {"trn2.48xlarge"}


def test_the_table_has_the_figures_and_their_sources():
    said = cli.stoker("machines", "p4d.")
    title, row = said.out.splitlines()
    assert title.split()[:8] == ["TYPE", "ACCELERATORS", "MEMORY", "VCPUS", "RAM", "NVME", "EFA", "USD/H"]
    assert row.split() == ("p4d.24xlarge 8 A100 320 GiB 96 1152 GiB 8000 GB 4 21.957642 2.7447 yes EC2 "
                           "DescribeInstanceTypes, as moto keeps it (34d6cad5) 2026-08-02 AWS Price List, as "
                           "karpenter-provider-aws keeps it (6fc13b52) us-east-1 2026-07-20").split()


def test_a_row_of_ones_own_is_listed_with_its_file(tmp_path):
    own = tmp_path / "mine.yaml"
    own.write_text("version: 1\ninstances:\n  g9.huge: {gpus: 4, gpu: B900, gpu_memory: 256GiB, vcpus: 8, ram: 64GiB}\n"
                   "  trn1.2xlarge: {price: 1.2}\n")
    rows = machines(STOKER_INSTANCES=str(own))
    assert rows["g9.huge"] == {"type": "g9.huge", "accelerator": "nvidia", "gpus": 4, "gpu": "B900",
                               "gpu_memory_bytes": 256 * GIB, "vcpus": 8, "ram_bytes": 64 * GIB, "sagemaker": False,
                               "figures": str(own)}
    assert rows["trn1.2xlarge"]["price"] == 1.2 and rows["trn1.2xlarge"]["source"] == str(own)
    own.write_text("version: 1\ninstances:\n  g9.huge: {gpus: many}\n")
    said = cli.stoker("machines", "g9", env=cli.environment(STOKER_INSTANCES=str(own)))
    assert said.code == 3 and f"{own}:3:19: 'gpus' of an instance type must be an integer" in said.err, str(said)


def test_a_word_that_nothing_has_is_told_with_the_nearest():
    said = cli.stoker("machines", "trn1.2xlrage")
    assert said.code == 2 and "did you mean 'trn1.2xlarge'?" in said.err, str(said)


# ---- what an engine says of a name


SPEC = """version: 1
name: x
engine: {engine}
command: [python3, train.py]
compile: {{kind: none}}
resources: {{instance: {instance}}}
{own}
"""
SAGEMAKER = "workspace: s3://bucket/w\nimage: i:1\nsagemaker: {{role: 'arn:aws:iam::123456789012:role/r'{volume}}}"


def told(tmp_path, instance, engine="sagemaker", volume="", env=None):
    own = {"sagemaker": SAGEMAKER.format(volume=volume), "slurm": "workspace: /tmp/w", "local": ""}[engine]
    (tmp_path / "spec.yaml").write_text(SPEC.format(engine=engine, instance=instance, own=own))
    said = cli.stoker("--json", "validate", "spec.yaml", cwd=tmp_path, env=env or cli.environment())
    return said.code, [f"{row['message']} | {row.get('hint', '')}" for row in said.lines if "resources.instance" in str(row) or "volume" in str(row)]


@pytest.mark.parametrize(("name", "nearest"), [
    ("ml.inf2.xlarge", "ml.trn1.2xlarge"), ("ml.inf2.48xlarge", "ml.trn1.32xlarge"),
    ("ml.trn2.3xlarge", "ml.trn2.48xlarge"), ("ml.m5.8xlarge", "ml.m5.12xlarge"),
    ("trn1.32xlarge", "ml.trn1.32xlarge"), ("m5.large", "ml.m5.large")])
def test_a_name_that_sagemaker_does_not_have_is_an_error_with_the_nearest(tmp_path, name, nearest):
    code, (problem,) = told(tmp_path, name)
    assert code == 3 and f"SageMaker trains on no '{name}'" in problem and f"did you mean '{nearest}'?" in problem


def test_a_row_of_ones_own_says_that_a_name_is_newer(tmp_path):
    own = tmp_path / "mine.yaml"
    own.write_text("version: 1\ninstances:\n  ml.trn2.3xlarge: {sagemaker: true}\n")
    assert told(tmp_path, "ml.trn2.3xlarge", env=cli.environment(STOKER_INSTANCES=str(own))) == (0, [])


@pytest.mark.parametrize("name", ["ml.m9.large", "ml.quantum.2xlarge"])
def test_a_name_that_nobody_has_is_a_warning(tmp_path, name):
    code, (problem,) = told(tmp_path, name)
    assert code == 0 and f"'{name}' is in no catalogue, and none of SageMaker's names in botocore" in problem


def test_a_name_of_sagemakers_without_a_row_is_nothing_to_tell(tmp_path):
    assert told(tmp_path, "ml.m4.xlarge") == (0, [])


def test_a_volume_beside_nvme_and_a_machine_without_either_are_told(tmp_path):
    assert told(tmp_path, "ml.trn1.2xlarge") == (0, [])
    code, (problem,) = told(tmp_path, "ml.trn1.2xlarge", volume=", volume: 200GiB")
    assert code == 0 and "'sagemaker.volume' has no effect on 'ml.trn1.2xlarge', which has 474 GB of NVMe" in problem
    code, (problem,) = told(tmp_path, "ml.m5.large")
    assert code == 0 and "'ml.m5.large' has no storage of its own, so each machine gets 100GiB" in problem
    assert told(tmp_path, "ml.m5.large", volume=", volume: 200GiB") == (0, [])


@pytest.mark.parametrize("engine", ["local", "slurm"])
def test_elsewhere_a_type_of_no_catalogue_is_a_warning(tmp_path, engine):
    code, (problem,) = told(tmp_path, "m5.lagre", engine)
    assert code == 0 and "no catalogue has 'm5.lagre'" in problem and "did you mean 'm5.large'" in problem
    code, (problem,) = told(tmp_path, "x9.huge", engine)
    assert code == 0 and "no catalogue has 'x9.huge', so its cores, memory and price are not known" in problem
    assert "x9.huge: {vcpus:" in problem
    assert told(tmp_path, "m5.large", engine) == (0, [])


@pytest.mark.parametrize("engine", ["batch", "sagemaker"])
@pytest.mark.parametrize("stage", ["evaluate", "infer"])
def test_the_machines_of_a_stage_are_held_against_the_same(tmp_path, engine, stage):
    own = {"batch": "workspace: s3://bucket/w\nimage: i:1\nbatch: {job_queue: q}", "sagemaker": SAGEMAKER.format(volume="")}
    more = {"evaluate": "evaluate: {command: [a], resources: {instance: x9.huge}}",
            "infer": "infer: {command: [a], output: 's3://bucket/o', resources: {instance: x9.huge}}"}
    instance = "trn1.2xlarge" if engine == "batch" else "ml.trn1.2xlarge"
    (tmp_path / "spec.yaml").write_text(SPEC.format(engine=engine, instance=instance, own=f"{own[engine]}\n{more[stage]}"))
    said = cli.stoker("--json", "validate", "spec.yaml", cwd=tmp_path)
    told = [row for row in said.lines if row.get("field") == f"{stage}.resources.instance"]
    assert len(told) == 1 and "'x9.huge'" in told[0]["message"], str(said)
    assert told[0].get("lint", False) == (engine == "sagemaker"), told


# ---- the script


@pytest.fixture
def copies(tmp_path):
    for name in ("instances.yaml", "sagemaker.yaml"):
        shutil.copy(CATALOGUE / name, tmp_path)
    return tmp_path


def refresh(copies, *argv, code=0):
    done = subprocess.run([sys.executable, CATALOGUE / "refresh", "--instances", copies / "instances.yaml", "--names",
                           copies / "sagemaker.yaml", *argv], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


TYPES = ("--types", str(SAMPLES / "types-1.json"), str(SAMPLES / "types-2.json"), "--types-dated", "2026-10-20",
         "--types-source", "EC2 DescribeInstanceTypes, my account")


def test_what_the_files_say_already_changes_nothing(copies):
    before = (copies / "instances.yaml").read_text(), (copies / "sagemaker.yaml").read_text()
    source = re.search(r'figures: "(.*34d6cad5.*?)"', before[0])[1]
    said = refresh(copies, "--types", SAMPLES / "types-1.json", SAMPLES / "types-2.json", "--types-dated", "2026-08-02",
                   "--types-source", source)
    assert set(re.sub(r"\S+: in none of the files, stays as it is", "", said).split()) == set(), said
    assert ((copies / "instances.yaml").read_text(), (copies / "sagemaker.yaml").read_text()) == before


def test_figures_and_prices_are_taken_from_the_files(copies):
    text = (copies / "instances.yaml").read_text()
    (copies / "instances.yaml").write_text(text.replace("gpus: 1, gpu: H100", "gpus: 2, gpu: H99"))
    said = refresh(copies, *TYPES, "--offer", SAMPLES / "offer.json", "--dry-run").splitlines()
    assert {"p5.4xlarge: gpus 2 -> 1", "p5.4xlarge: gpu H99 -> H100", "g4dn.xlarge: price 0.526 -> 0.6",
            "g4dn.xlarge: dated 2026-07-20 -> 2026-10-15", "trn1.32xlarge: price 21.5 -> none",
            "g4dn.xlarge: figures_dated 2026-08-02 -> 2026-10-20",
            "trn2.48xlarge: in none of the files, stays as it is"} <= set(said), said
    assert "H99" in (copies / "instances.yaml").read_text(), "--dry-run has written"
    refresh(copies, *TYPES, "--offer", SAMPLES / "offer.json")
    # As stoker reads it: the same layout, so as a file of one's own by its rows.
    rows = own_rows(copies)
    assert rows["p5.4xlarge"]["gpus"] == "1" and rows["g4dn.xlarge"]["price"] == "0.6"
    assert rows["g4dn.xlarge"]["dated"] == "2026-10-15" and rows["g4dn.2xlarge"]["figures_dated"] == "2026-08-02"
    assert rows["g4dn.xlarge"]["figures_dated"] == "2026-10-20"
    assert "price" not in rows["trn1.32xlarge"] and "source" not in rows["trn1.32xlarge"]
    # EC2 describes another memory of a Trainium2 than AWS's documents; g4ad has no rows.
    assert rows["trn2.3xlarge"]["memory"] == "96GiB" and rows["trn2.3xlarge"]["cores"] == "4"
    assert not [name for name in rows if name.startswith("g4ad")]


def own_rows(copies):
    rows, common = {}, {}
    for line in re.findall(r"^ {4}(all): (\{.*?\})$|^ {6}(\S+): (\{.*?\})$", (copies / "instances.yaml").read_text(),
                           re.M | re.S):
        fields = dict(re.findall(r'(\w+): ("[^"]*"|[^,}]*)', line[1] or line[3]))
        if line[0]:
            common = fields
            continue
        rows[line[2]] = {**common, **fields}
        if "price" not in rows[line[2]]:
            rows[line[2]] = {key: value for key, value in rows[line[2]].items() if key not in ("region", "dated", "source")}
    return rows


def test_a_new_size_gets_a_row_and_a_new_family_none(copies):
    text = (copies / "instances.yaml").read_text()
    cut = re.sub(r"      p5\.4xlarge: \{[^}]*\}\n", "", text)
    assert cut != text
    (copies / "instances.yaml").write_text(cut)
    said = refresh(copies, *TYPES)
    assert "p5.4xlarge: new" in said.splitlines() and "g4ad" not in said
    rows = own_rows(copies)
    assert rows["p5.4xlarge"]["efa"] == "1" and rows["p5.4xlarge"]["spot_quota"] == "L-C4BD4855"
    assert rows["p5.4xlarge"]["sagemaker"] == "true"


def test_names_of_sagemaker_are_taken_from_a_service_model(copies):
    said = refresh(copies, "--model", SAMPLES / "service-2.json", "--model-version", "botocore 9.9", "--model-dated",
                   "2027-01-01").splitlines()
    assert {"ml.trn2.3xlarge: a new name of SageMaker's", "ml.trn1.2xlarge: no name of SageMaker's any more",
            "trn2.3xlarge: sagemaker false -> true", "trn1.2xlarge: sagemaker true -> false"} <= set(said), said
    text = (copies / "sagemaker.yaml").read_text()
    assert 'model: "botocore 9.9"\ndated: 2027-01-01\n' in text
    assert re.findall(r"^  - (\S+)$", text, re.M) == ["ml.g4dn.xlarge", "ml.m5.large", "ml.p5.4xlarge", "ml.trn2.3xlarge"]


def test_a_file_that_is_another_is_refused_and_nothing_is_written(copies, tmp_path):
    before = (copies / "instances.yaml").read_text()
    bad = tmp_path / "bad.json"
    offer = json.loads((SAMPLES / "offer.json").read_text())
    offer["products"]["CCC1"]["attributes"]["regionCode"] = "eu-west-1"
    reply = json.loads((SAMPLES / "types-1.json").read_text())
    del reply["InstanceTypes"][0]["VCpuInfo"]
    for text, argv, said in (("{}", ("--types", bad, "--types-dated", "2026-01-01"), "no list 'InstanceTypes'"),
                             ("[", ("--types", bad, "--types-dated", "2026-01-01"), "bad.json: "),
                             (json.dumps(reply), ("--types", bad, "--types-dated", "2026-01-01"),
                              "the description of g4dn.xlarge lacks 'VCpuInfo'"),
                             ("{}", ("--offer", bad), "no offer file"),
                             (json.dumps(offer), ("--offer", bad), "a file of one region is needed; this one has eu-west-1, us-east-1"),
                             ("{}", ("--model", bad, "--model-version", "x", "--model-dated", "y"), "no enum TrainingInstanceType"),
                             ("{}", ("--types", bad), "--types needs --types-dated"), ("{}", (), "say which files you have")):
        bad.write_text(text)
        assert said in refresh(copies, *argv, code=2)
    assert (copies / "instances.yaml").read_text() == before
