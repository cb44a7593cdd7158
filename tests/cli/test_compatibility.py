"""What goes together, by configs/catalogue/compatibility.yaml: what a tag tells, which rule holds for
which machine, image and compiler, and that nothing is concluded from what is not known."""

import re

import pytest
import stoker as cli
import yaml

FILE = cli.ROOT / "configs/catalogue/compatibility.yaml"
AWS = "763104351884.dkr.ecr.us-west-2.amazonaws.com/"
PUBLIC = "public.ecr.aws/neuron/"
OWN = "123456789012.dkr.ecr.us-west-2.amazonaws.com/"

# Tags that AWS lists: github.com/aws/deep-learning-containers, docs/src/data of 2026-08-21, the
# README of github.com/aws-neuron/deep-learning-containers of 2026-08-17, and image_uri_config of the
# SageMaker Python SDK; with what they say.
PUBLISHED = {
    AWS + "pytorch-training-neuronx:1.13.1-neuronx-py310-sdk2.15.0-ubuntu20.04": "pytorch 1.13.1 neuronx 3.10 2.15.0",
    PUBLIC + "pytorch-training-neuronx:2.1.2-neuronx-py310-sdk2.20.2-ubuntu20.04": "pytorch 2.1.2 neuronx 3.10 2.20.2",
    AWS + "pytorch-training-neuronx:2.6.0-neuronx-py310-sdk2.23.0-ubuntu22.04": "pytorch 2.6.0 neuronx 3.10 2.23.0",
    AWS + "pytorch-training-neuronx:2.8.0-neuronx-py311-sdk2.26.1-ubuntu22.04": "pytorch 2.8.0 neuronx 3.11 2.26.1",
    AWS + "pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04": "pytorch 2.9.0 neuronx 3.12 2.30.0",
    AWS + "pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.31.1-ubuntu24.04": "pytorch 2.9.0 neuronx 3.12 2.31.1",
    PUBLIC + "pytorch-inference-neuron:1.13.1-neuron-py310-sdk2.20.2-ubuntu20.04": "pytorch 1.13.1 neuron 3.10 2.20.2",
    PUBLIC + "jax-training-neuronx:0.7-neuronx-py312-sdk2.29.1-ubuntu24.04": "jax 0.7 neuronx 3.12 2.29.1",
    PUBLIC + "jax-training-neuronx:0.10.0-neuronx-py313-sdk2.32.0-ubuntu24.04": "jax 0.10.0 neuronx 3.13 2.32.0",
    PUBLIC + "pytorch-inference-vllm-neuronx:0.24.0.1.1.0-neuronx-py313-sdk2.32.0-ubuntu24.04":
        "vllm 0.24.0.1.1.0 neuronx 3.13 2.32.0",
    AWS + "huggingface-pytorch-training-neuronx:2.8.0-transformers4.55.4-neuronx-py310-sdk2.26.0-ubuntu22.04":
        "pytorch 2.8.0 neuronx 3.10 2.26.0",
    AWS + "huggingface-vllm-inference-neuronx:0.11.0-optimum0.4.5-neuronx-py310-sdk2.26.1-ubuntu22.04":
        "vllm 0.11.0 neuronx 3.10 2.26.1",
    AWS + "pytorch-training:2.9.0-gpu-py312-cu130-ubuntu22.04-sagemaker": "pytorch 2.9.0 gpu 3.12",
    AWS + "pytorch-training:2.9-gpu-py312-cu130-ubuntu22.04-sagemaker-v1": "pytorch 2.9 gpu 3.12",
    AWS + "pytorch-training:2.10-cpu-py313": "pytorch 2.10 cpu 3.13",
    AWS + "pytorch-training:2.6.0-gpu-py312-ec2": "pytorch 2.6.0 gpu 3.12",
    AWS + "pytorch-training:1.8.1-gpu-py36-cu111-ubuntu18.04": "pytorch 1.8.1 gpu 3.6",
    AWS + "pytorch-training-arm64:2.7.0-gpu-py312-cu128-ubuntu22.04-ec2": "pytorch 2.7.0 gpu 3.12",
    AWS + "huggingface-pytorch-training:2.9.0-transformers5.3.0-gpu-py312-cu130-ubuntu22.04": "pytorch 2.9.0 gpu 3.12",
    AWS + "tensorflow-training:2.19-gpu-py312": "tensorflow 2.19 gpu 3.12",
    "907027046896.dkr.ecr.ap-southeast-3.amazonaws.com/pytorch-training-neuronx:2.7.0-neuronx-py310-sdk2.25.0-ubuntu22.04":
        "pytorch 2.7.0 neuronx 3.10 2.25.0",
    OWN + "pytorch-training-neuronx:2.9.0-neuronx-py310-sdk2.27.0-ubuntu24.04": "pytorch 2.9.0 neuronx 3.10 2.27.0",
    OWN + "team/jobs:2.9.0-neuronx-py310-sdk2.27.0-ubuntu24.04": "2.9.0 neuronx 3.10 2.27.0",
}
# From these nothing is concluded.
SILENT = [OWN + "pytorch-training-neuronx:2.1", OWN + "my-image:1", OWN + "my-image:2.32-sdk", "team/image",
          AWS + "pytorch-training-neuronx@sha256:" + "0" * 64,
          AWS + "pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.33.0-ubuntu24.04@sha256:" + "0" * 64,
          AWS + "sagemaker-xgboost:1.7-1", AWS + "djl-inference:0.36.0-lmi25.0.0-cu130",
          OWN + "pytorch-training-neuronx:2.9.0-neuronx-py312-sdkx-ubuntu24.04"]
OTHER = [AWS + "pytorch-training-neuronx:2.1", AWS + "pytorch-training-neuronx:latest", AWS + "pytorch-training-neuronx",
         AWS + "pytorch-training-neuronx:2.9.0-neuronx", PUBLIC + "jax-training-neuronx:0.10",
         PUBLIC + "pytorch-training-neuronx:2.9.0-gpu-py312", AWS + "pytorch-training:2.9-neuronx-py312",
         "763104351884.dkr.ecr.us-west-2.amazonaws.com.cn/pytorch-training-neuronx:2.1",
         AWS + "pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.29.1"]


def spec(image, machine="trn1.32xlarge", compiler="neuron", engine="batch"):
    prefix = "ml." if engine == "sagemaker" else ""
    places = {"batch": "batch: {job_queue: q}\n",
              "sagemaker": "sagemaker: {role: 'arn:aws:iam::123456789012:role/r'}\n"}[engine]
    return (f"version: 1\nname: x\nengine: {engine}\nworkspace: s3://bucket/stoker\nimage: {image}\n{places}"
            f"resources: {{instance: {prefix}{machine}}}\ncommand: [torchrun, t.py]\n"
            + (f"compile: {{kind: {compiler}, cache_url: s3://bucket/c, max_steps: 5}}\n" if compiler != "none" else ""))


class Told:
    """What validate says by the rules: they alone say as of when they are."""

    def __init__(self, tmp_path, text):
        (tmp_path / "spec.yaml").write_text(text)
        self.result = cli.stoker("--json", "validate", "spec.yaml", cwd=tmp_path)
        self.rows = [row for row in self.result.lines if "(as of " in row.get("message", "")]
        assert all(row["hint"] for row in self.rows), str(self.result)

    @property
    def states(self):
        return ["note" if row.get("remark") else "warn" if row.get("lint") else "fail" for row in self.rows]

    def __repr__(self):
        return str(self.result)


@pytest.mark.parametrize("image", PUBLISHED, ids=lambda image: image.rpartition("/")[2])
def test_a_published_tag_tells_its_versions(tmp_path, image):
    (tmp_path / "t.py").write_text("print(1)\n")
    text = spec(image, "trn2.48xlarge" if "-neuron" in image.partition(":")[2] else "m5.large", "none")
    assert Told(tmp_path, text).rows == []
    env = cli.environment(XDG_STATE_HOME=str(tmp_path / "state"), AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b",
                          AWS_REGION="us-west-2", AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_EC2_METADATA_DISABLED="true")
    tag = cli.stoker("--json", "plan", "spec.yaml", cwd=tmp_path, env=env).lines[-1]["image"]
    said = [tag.get(key) for key in ("framework", "framework_version", "device", "python", "sdk")]
    assert " ".join(word for word in said if word) == PUBLISHED[image], tag
    human = cli.stoker("plan", "spec.yaml", cwd=tmp_path, env=env)
    assert f"Python {tag['python']}, by its tag" in human.text and tag["framework_version"] in human.text, str(human)


@pytest.mark.parametrize("image", SILENT)
def test_nothing_is_concluded_from_another_form(tmp_path, image):
    for machine in ("trn1.32xlarge", "trn2.48xlarge"):
        assert Told(tmp_path, spec(image, machine)).rows == []


@pytest.mark.parametrize("image", OTHER)
def test_a_tag_that_aws_does_not_publish_is_warned_of(tmp_path, image):
    told = Told(tmp_path, spec(image))
    row, = told.rows
    assert told.states == ["warn"] and told.result.code == 0 and row["field"] == "image", str(told)
    cured = re.search(r"such as (\S+)$", row["hint"])[1]
    folder, _, name = image.rpartition("/")
    machine = "m5.large" if "-gpu-" in cured else "trn2.48xlarge"
    assert Told(tmp_path, spec(f"{folder}/{name.partition(':')[0]}:{cured}", machine, "none")).rows == []


def neuronx(sdk, pytorch="2.9.0", python="312", at=AWS, name="pytorch-training-neuronx"):
    return f"{at}{name}:{pytorch}-neuronx-py{python}-sdk{sdk}-ubuntu24.04"


# id of the rule: image, machine, compiler, engine → what it says, and where
RULES = {
    "tag-not-published": ((AWS + "pytorch-training-neuronx:2.1", "trn1.32xlarge", "neuron", "batch"), "warn", "image"),
    "npc-machines": ((OWN + "i:1", "inf1.xlarge", "neuron", "sagemaker"), "warn", "resources.instance"),
    "npc-trn3": ((OWN + "i:1", "trn3.48xlarge", "neuron", "sagemaker"), "warn", "resources.instance"),
    "torch-neuronx-last-pytorch": ((neuronx("2.29.1", "2.10.0", at=OWN), "trn2.48xlarge", "neuron", "batch"), "fail",
                                   "image"),
    "torch-neuronx-last-sdk": ((neuronx("2.32.0", at=OWN), "trn2.48xlarge", "neuron", "batch"), "fail", "image"),
    "torchneuron-machines": ((neuronx("2.33.0", "2.12.0", at=OWN), "trn1.32xlarge", "none", "batch"), "fail", "image"),
    "training-image-last-2.30": ((neuronx("2.31.0"), "trn1.32xlarge", "none", "batch"), "warn", "image"),
    "xla-training-support": ((neuronx("2.30.0"), "trn1.32xlarge", "neuron", "batch"), "note", "image"),
    "pytorch-of-sdk-2.29": ((neuronx("2.29.0", "2.8.0"), "trn1.32xlarge", "neuron", "batch"), "warn", "image"),
    "python-of-sdk-2.30": ((neuronx("2.30.0", python="310"), "trn1.32xlarge", "none", "batch"), "warn", "image"),
    "python-of-sdk-2.27": ((neuronx("2.27.0", python="39"), "trn1.32xlarge", "neuron", "batch"), "warn", "image"),
    "image-for-gpus": ((AWS + "pytorch-training:2.9.0-gpu-py312", "trn1.32xlarge", "none", "batch"), "warn", "image"),
    "image-for-neuron": ((neuronx("2.29.1"), "g5.12xlarge", "none", "sagemaker"), "warn", "image"),
    "batch-p3": ((OWN + "i:1", "p3.2xlarge", "none", "batch"), "note", "resources.instance"),
}
OF_DOCTOR = {"batch-nvidia-p3", "batch-amazon-linux-2", "batch-neuron"}  # tests/unit/spec/test_compatibility.c
REPLACED = {"training-image-last-2.28"}


def rules():
    return yaml.safe_load(FILE.read_text())["rules"]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_told_where_it_holds(tmp_path, rule):
    (image, machine, compiler, engine), state, field = RULES[rule]
    told = Told(tmp_path, spec(image, machine, compiler, engine))
    assert told.states == [state], str(told)
    row, = told.rows
    assert row["field"] == field, str(told)
    dated, = [row["dated"] for row in rules() if row["id"] == rule]
    assert row["message"].endswith(f"(as of {dated})") and "{" not in row["message"] + row["hint"], row


def test_the_file_has_the_layout_that_it_is_read_by():
    """Each field is one line, and conditions are words, lists of words or comparisons."""
    line = re.compile(r" *#.*|version: 1|\w+:|  - id: [\w.-]+|    \w+: \S.*|  [\w.-]+: \S.*|")
    for text in FILE.read_text().split("\n"):
        assert line.fullmatch(text), text
        if re.match(r"    (?:when|unless): ", text):
            word = r"[\w.-]+"
            assert re.fullmatch(r"    \w+: \{(?:(?:, )?\w+: (?:%s|\[%s(?:, %s)*\]|\"[<>]=? [\d.]+\"))+\}" % ((word,) * 3),
                                text), text


def test_every_rule_has_a_source_and_a_case():
    known = {row["id"]: row for row in rules()}
    sources = yaml.safe_load(FILE.read_text())["sources"]
    assert set(known) == set(RULES) | OF_DOCTOR | REPLACED
    for row in known.values():
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["dated"]), row
        assert all(name in sources for name in row["source"].split(", ")), row
        assert row["state"] in ("fail", "warn", "note") and row["says"] and row["cure"], row
        documented = set(re.findall(r"^#   (\w+) ", FILE.read_text(), re.MULTILINE))
        assert set(row["when"]) | set(row.get("unless", {})) <= documented, row
    for row in yaml.safe_load(FILE.read_text())["tags"]:
        assert re.search(row["form"], row["example"]) and row["source"] and row["dated"], row


@pytest.mark.parametrize("sdk, states", [("2.27.1", []), ("2.28.0", []), ("2.29.1", []), ("2.30.0", ["note"]),
                                         ("2.31.0", ["warn", "note"]), ("2.32.0", ["fail", "fail", "warn"])])
def test_the_later_of_two_notices_rules(tmp_path, sdk, states):
    """One notice says that SDK 2.28 has the last image for training, a later one 2.30."""
    assert Told(tmp_path, spec(neuronx(sdk))).states == states


@pytest.mark.parametrize("machine", ["trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge", "inf2.48xlarge", "trn2.48xlarge",
                                     "trn2u.48xlarge"])
def test_what_works_is_told_nothing(tmp_path, machine):
    for sdk in ("2.23.0", "2.29.1"):
        assert Told(tmp_path, spec(neuronx(sdk, "2.9.0" if sdk == "2.29.1" else "2.6.0"), machine)).rows == []
    torchneuron = Told(tmp_path, spec(neuronx("2.33.0", "2.12.0", at=OWN), machine, "none"))
    assert torchneuron.states == ([] if machine.startswith("trn2") else ["fail"]), str(torchneuron)


def test_each_profile_is_held_against_the_rules(tmp_path):
    text = spec(neuronx("2.29.1")) + ("profiles:\n  newer: {image: '%s'}\n  big: {resources: {instance: trn2.48xlarge}}\n"
                                      % neuronx("2.33.0", "2.12.0", at=OWN))
    told = Told(tmp_path, text)
    assert told.states == ["fail"] * 3 and all(row["profiles"] == "newer" for row in told.rows), str(told)


def test_trn3_names_both_pages(tmp_path):
    row, = Told(tmp_path, spec(OWN + "i:1", "trn3.48xlarge", "neuron", "sagemaker")).rows
    assert "pytorch-neuron-parallel-compile.html" in row["message"] and "torch/index.html" in row["message"]


def test_jax_stays_with_the_newest_sdk(tmp_path):
    text = spec(PUBLIC + "jax-training-neuronx:0.10.0-neuronx-py313-sdk2.32.0-ubuntu24.04", "trn1.32xlarge", "jax")
    assert Told(tmp_path, text).rows == []


def test_a_stage_is_held_against_its_own_machine(tmp_path):
    stage = ("metrics: [{name: loss, regex: 'loss (.*)'}]\nevaluate:\n  command: [python3, e.py]\n  metric: loss\n"
             f"  direction: min\n  image: {neuronx('2.33.0', '2.12.0', at=OWN)}\n")
    fine = Told(tmp_path, spec(neuronx("2.29.1")) + stage + "  resources: {instance: trn2.48xlarge}\n")
    assert [row["field"] for row in fine.rows] == ["evaluate.image"] * 2, "phase 1 of a stage needs torch-neuronx, too"
    other = Told(tmp_path, spec(neuronx("2.29.1"), compiler="none") + stage)
    row, = other.rows
    assert row["field"] == "evaluate.image" and "trn1" in row["message"], str(other)


def test_every_group_of_machines_counts(tmp_path):
    text = spec(neuronx("2.33.0", "2.12.0", at=OWN), "trn2.48xlarge", "none", "sagemaker").replace(
        "role/r'}", "role/r', instance_groups: [{name: a, instance: ml.trn2.48xlarge, nodes: 1},"
        " {name: b, instance: ml.trn1.32xlarge, nodes: 1}]}").replace("48xlarge}\n", "48xlarge, nodes: 2}\n")
    row, = Told(tmp_path, text).rows
    assert "trn1" in row["message"]


# SDK of the image, flags: whether they are warned of
@pytest.mark.parametrize("sdk, flags, warned", [
    ("2.29.1", "--native-int64 enabled", True), ("2.32.0", "--native-int64 enabled", False),
    ("2.20.2", "--lnc 2", True), ("2.21.0", "--lnc 2", False),
    ("2.26.1", "--disable-mixed-precision-accumulation", True),
    ("2.29.1", "--auto-cast-type bf16", True), ("2.26.1", "--auto-cast-type bf16", False),
    ("2.26.1", "--auto-cast none --auto-cast-type bf16", True)])
def test_flags_of_the_compiler_are_held_against_the_sdk(tmp_path, sdk, flags, warned):
    text = spec(neuronx(sdk), "trn2.48xlarge", "none") + f"env: {{NEURON_CC_FLAGS: {flags}}}\n"
    rows = [row for row in Told(tmp_path, text).result.lines if "NEURON_CC_FLAGS" in row.get("field", "")]
    assert bool(rows) == warned, rows


# Data of ours, not specs.
DATA = ("catalogue", "live")
OURS = [path for path in (*cli.ROOT.glob("templates/*.yaml"), *cli.ROOT.glob("configs/*/*.yaml"))
        if path.parent.name not in DATA]


@pytest.mark.parametrize("path", sorted(OURS), ids=lambda path: path.name)
def test_ours_are_told_nothing(tmp_path, path):
    told = Told(tmp_path, path.read_text())
    assert told.rows == [] and told.result.code == 0, str(told)
