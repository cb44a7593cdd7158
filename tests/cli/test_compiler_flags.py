"""Flags of the Neuron compiler, against what AWS documents of them (compiler_flags.def): values that
no compiler knows, flags for another machine, flags that undo each other; and that nothing is said
against what people really pass."""

import re

import pytest
import stoker as cli

ROWS = cli.ROOT / "jobs/spec/fields/compiler_flags.def"
HEAD = "version: 1\nname: x\ncommand: [torchrun, t.py]\n"
BATCH = ("version: 1\nname: x\nengine: batch\nworkspace: s3://bucket/stoker\nimage: repo/image:1\n"
         "batch: {{job_queue: q}}\nresources: {{instance: {}}}\ncommand: [torchrun, t.py]\n")
SAGEMAKER = ("version: 1\nname: x\nengine: sagemaker\nworkspace: s3://bucket/stoker\nimage: repo/image:1\n"
             "sagemaker: {{role: 'arn:aws:iam::123456789012:role/r'}}\nresources: {{instance: {}}}\n"
             "command: [torchrun, t.py]\n")


def quoted(flags):
    return "'" + flags.replace("'", "''") + "'"


class Told:
    def __init__(self, tmp_path, text):
        (tmp_path / "spec.yaml").write_text(text)
        self.result = cli.stoker("--json", "validate", "spec.yaml", cwd=tmp_path)
        rows = [row for row in self.result.lines if "NEURON_CC_FLAGS" in row.get("field", "")
                or row.get("field", "").startswith("command")]
        self.errors = [row for row in rows if not row.get("lint")]
        self.warnings = [row for row in rows if row.get("lint") and not row.get("remark")]
        self.remarks = [row for row in rows if row.get("remark")]
        assert all(row["hint"] for row in rows), rows

    def __repr__(self):
        return str(self.result)


@pytest.fixture
def told(tmp_path):
    def tell(flags, head=HEAD, machine=None):
        head = BATCH.format(machine) if machine else head
        return Told(tmp_path, head + "env:\n  NEURON_CC_FLAGS: " + quoted(flags) + "\n")
    return tell


# In training and inference scripts of AWS's samples, SDK, neuronx-distributed, -inference and
# -training, nemo-megatron, optimum-neuron and of others, with the machine that the script is for.
REAL = [
    ("--model-type=transformer", "trn1.32xlarge"),
    ("--model-type transformer --retry_failed_compilation", "trn1.32xlarge"),
    ("--model-type=transformer -O1 ", "trn1.32xlarge"),
    ("--model-type=transformer --distribution-strategy=llm-training --cache_dir=/opt/neuron_compile_cache/ -O1",
     "trn1.32xlarge"),
    ("--retry_failed_compilation --distribution-strategy llm-training --model-type transformer", "trn1.32xlarge"),
    ("--retry_failed_compilation --enable-mixed-precision-accumulation --distribution-strategy llm-training "
     "--model-type transformer", "trn1n.32xlarge"),
    ("--model-type=transformer --enable-experimental-O1 --enable-saturate-infinity --retry_failed_compilation",
     "trn1.32xlarge"),
    ("--model-type=transformer --enable-saturate-infinity --retry_failed_compilation --auto-cast=none ",
     "trn1.32xlarge"),
    ("-O1 --internal-enable-dge-levels vector_dynamic_offsets spill_reload scalar_dynamic_offset io "
     "--model-type=transformer --retry_failed_compilation --enable-saturate-infinity --cache_dir=${CACHE}",
     "trn2.48xlarge"),
    ("${NEURON_CC_FLAGS} --target=trn2 --internal-num-neuroncores-per-sengine=${vnc_size} "
     "--internal-hlo2tensorizer-options='--fuse-dot-logistic=false'", "trn2.48xlarge"),
    ("--model-type transformer --enable-mixed-precision-accumulation --enable-experimental-O1 "
     "--distribution-strategy=nemo --cache_dir=$NEURON_CACHE_DIR", "trn1.32xlarge"),
    ("--model-type transformer --distribution-strategy=llm-training --cache_dir=$NEURON_COMPILE_CACHE_URI",
     "trn1.32xlarge"),
    ("--cache_dir=./compiler_cache --model-type=cnn-training", "trn1.2xlarge"),
    (' --retry_failed_compilation --cache_dir="./compiler_cache" --model-type=cnn-training  '
     "--enable-saturate-infinity ", "trn1.32xlarge"),
    ("--model-type=transformer --verbose=info", "trn1.2xlarge"),
    (" --verbose=INFO --target=trn2 --lnc=2 --internal-hlo2tensorizer-options='--fuse-dot-logistic=false' "
     "--model-type=unet-inference --enable-fast-loading-neuron-binaries ", "trn2.48xlarge"),
    (" --verbose=INFO --target=trn1 --model-type=unet-inference --enable-fast-loading-neuron-binaries ",
     "trn1.32xlarge"),
    ("--enable-saturate-infinity --target=inf2", "inf2.8xlarge"),
    ("--enable-saturate-infinity --auto-cast=none --model-type=transformer "
     "--tensorizer-options='--enable-ccop-compute-overlap --cc-pipeline-tiling-factor=2' -O1 ", "trn1.32xlarge"),
    ("--enable-saturate-infinity --enable-mixed-precision-accumulation --model-type transformer -O1 --lnc=2",
     "trn2.48xlarge"),
    ("--enable-saturate-infinity --enable-mixed-precision-accumulation --model-type transformer -O1 --lnc=1 "
     "--tensorizer-options='--enable-ccop-compute-overlap --cc-pipeline-tiling-factor=2' "
     "--tensorizer-options='--vectorize-strided-dma' "
     "--internal-hlo2tensorizer-options=' --modular-flow-mac-threshold=10  --verify-hlo=true' --verbose=35",
     "trn1.32xlarge"),
    (" --auto-cast matmult --lnc 2", "trn2.3xlarge"),
    ("--auto-cast=none  --optlevel=1 --enable-saturate-infinity", "trn1.32xlarge"),
    ("--target trn2 --lnc 2", "trn2u.48xlarge"),
    (" --model-type=transformer --disable-dge ", "trn2.48xlarge"),
    (" --target trn3 --pipeline compile SaveTemps --internal-compiler-debug-mode=all "
     "--internal-backend-options='--print-format=json,condensed'  --compile_workdir /tmp/w", None),
    ("--temp-dir=/tmp/neuroncc_tmp", "trn2.48xlarge"),
    (" --hbm-scratchpad-page-size=2048 ", "trn2.48xlarge"),
    ("--auto-cast=matmult --auto-cast-type=bf16", "inf2.xlarge"),
    ("--auto-cast all --auto-cast-type tf32", "trn1.32xlarge"),
    ("--framework XLA", "trn1.32xlarge"),
    ("--internal-hlo2tensorizer-options=--experimental-unsafe-fp8e4m3fn-as-fp8e4m3", "trn1.32xlarge"),
    ("--extract-weights trn1.2xlarge", "trn1.2xlarge"),
    ("--log_level=INFO", "trn1.32xlarge"),
    ("--native-int64=enabled --implicit-integer-downcast=dot,pow", "trn2.48xlarge"),
    ("--native-int64=disabled --implicit-integer-downcast=all", "trn1.32xlarge"),
    ("", "trn1.32xlarge"),
]


def about_caches(row):
    """A cache of the script's own is told, wherever it stands: that is not about the compiler."""
    return "--cache_dir" in row["message"]


@pytest.mark.parametrize("flags, machine", REAL, ids=[f"{i}" for i in range(len(REAL))])
def test_what_scripts_really_pass_is_no_warning(tmp_path, told, flags, machine):
    line = quoted(f'export NEURON_CC_FLAGS="{flags}"; torchrun t.py'.replace("$", "$$"))
    in_shell = BATCH.format(machine).replace("[torchrun, t.py]", f"[bash, -c, {line}]")
    seen = Told(tmp_path, in_shell) if "$" in flags else told(flags, machine=machine)
    assert seen.result.code == 0 and not seen.errors, str(seen)
    assert [row for row in seen.warnings if not about_caches(row)] == [], str(seen)


def rows_of_the_table():
    for row in re.finditer(r'^COMPILER_FLAG\("([^"]+)", (\w+),\s+(?:"([^"]*)"|NULL)', ROWS.read_text(), re.MULTILINE):
        yield row[1], row[2], (row[3] or "").split()


@pytest.mark.parametrize("name, takes, values", list(rows_of_the_table()), ids=lambda value: str(value))
def test_every_row_of_the_table_fits_itself(told, name, takes, values):
    texts = {"NOTHING": [name], "TEXT": [f"{name}=/x", f"{name} x"], "MANY": [f"{name} a b c"]}.get(
        takes, [f"{name}{sign}{value.replace('#', '7')}" for value in values for sign in " ="])
    for text in texts:
        seen = told(("--auto-cast all " if name == "--auto-cast-type" else "") + text)
        of_caches = name in ("--cache_dir", "--no_cache", "--log_level")
        assert seen.result.code == 0 and (of_caches or not seen.warnings), f"{text}: {seen}"
        assert not seen.remarks or name == "--enable-experimental-O1", f"{text}: {seen}"


def test_four_mistakes_are_four_warnings_that_name_what_was_meant(told):
    seen = told("--optlevel 7 --model-type tranformer --auto-cast-type fp9 --target inf9")
    assert seen.result.code == 0 and not seen.errors and not seen.remarks, str(seen)
    assert [row["hint"] for row in seen.warnings] == [
        f"did you mean '{word}'?" for word in ("3", "transformer", "fp8_e4m3", "inf2")], str(seen)
    assert all(row["line"] == 5 and row["column"] == 20 for row in seen.warnings)


# flags, machine: words of the one warning
WARNED = {
    "of trn2 on trn1": ("--native-int64 enabled", "trn1.32xlarge", ["--native-int64", "trn2", "trn1.32xlarge"]),
    "another core on trn1": ("-lnc 2", "trn1.2xlarge", ["--logical-nc-config", "trn1.2xlarge"]),
    "of trn2 on inf2": ("--logical-nc-config=2", "inf2.xlarge", ["--logical-nc-config", "inf2.xlarge"]),
    "twice": ("-O1 --model-type transformer --optlevel=2", None, ["--optlevel", "twice", "'1'", "'2'"]),
    "twice, both ways": ("--enable-mixed-precision-accumulation --disable-mixed-precision-accumulation", None,
                         ["undoes"]),
    "a type without a cast": ("--auto-cast-type bf16", None, ["--auto-cast-type bf16", "without"]),
    "a type beside none": ("--auto-cast none --auto-cast-type fp16", None, ["beside '--auto-cast none'"]),
    "no value": ("--model-type --auto-cast none", None, ["--model-type", "no value"]),
    "a letter": ("-Ofast", None, ["--optlevel", "fast"]),
    "a word of a list": ("--implicit-integer-downcast dot,pwo", None, ["--implicit-integer-downcast"]),
    "a word in capitals": ("--target TRN1", None, ["--target", "trn1"]),
    "one family, another network": ("--target trn1", "trn1n.32xlarge", ["trn1n.32xlarge"]),
}


@pytest.mark.parametrize("name", WARNED)
def test_what_does_not_do_what_it_says_is_a_warning(told, name):
    flags, machine, words = WARNED[name]
    seen = told(flags, machine=machine)
    row, = seen.warnings
    assert seen.result.code == 0 and not seen.errors and not seen.remarks, str(seen)
    assert all(word in row["message"] + row["hint"] for word in words), row


REMARKED = {
    "of no row": ("--frobnicate 3", None, "--frobnicate"),
    "nearly of a row": ("--optlevl 2", None, "did you mean '--optlevel'?"),
    "an older value": ("--model-type=cnn-training", None, "older compilers"),
    "an older spelling": ("--distribution-strategy NEMO", None, "llm-training"),
    "idle here": ("--enable-saturate-infinity", "trn2.48xlarge", "trn2.48xlarge"),
}


@pytest.mark.parametrize("name", REMARKED)
def test_what_may_well_be_meant_is_a_remark(told, name):
    flags, machine, words = REMARKED[name]
    seen = told(flags, machine=machine)
    row, = seen.remarks
    assert seen.result.code == 0 and not seen.errors and not seen.warnings, str(seen)
    assert words in row["message"] + row["hint"], row


@pytest.mark.parametrize("head, flags, machine, target", [
    (BATCH, "--target trn2", "trn1.32xlarge", "trn1"), (BATCH, "--target=trn1", "trn2.48xlarge", "trn2"),
    (BATCH, "--target inf2", "trn1n.32xlarge", "trn1n"), (BATCH, "--target trn1", "inf2.xlarge", "inf2"),
    (BATCH, "--model-type transformer --target trn1 -O1", "trn2u.48xlarge", "trn2"),
    (SAGEMAKER, "--target trn2", "ml.trn1.2xlarge", "trn1"), (SAGEMAKER, "--target trn1", "ml.trn2.48xlarge", "trn2"),
    (SAGEMAKER, "--target trn2", "ml.trn1n.32xlarge", "trn1n")])
def test_another_familys_target_is_an_error(tmp_path, head, flags, machine, target):
    seen = Told(tmp_path, head.format(machine) + f"env: {{NEURON_CC_FLAGS: {flags}}}\n")
    row, = seen.errors
    assert seen.result.code == 3 and machine in row["message"] and f"--target {target}," in row["hint"], str(seen)
    fine = Told(tmp_path, head.format(machine) + f"env: {{NEURON_CC_FLAGS: --target {target}}}\n")
    assert fine.result.code == 0 and not fine.warnings, str(fine)


def test_a_machine_without_neuron_may_compile_for_one_that_has_it(told):
    assert not told("--target trn1 --lnc 2", machine="m5.large").errors
    assert told("--target trn1").result.lines == []


# where flags can stand: what is put in place of {}, and the field
PLACES = {
    "env": ("env: {{NEURON_CC_FLAGS: {}}}\n", "env.NEURON_CC_FLAGS"),
    "phase 1": ("compile: {{kind: neuron, cache_url: s3://b/c, overrides: {{env: {{NEURON_CC_FLAGS: {}}}}}}}\n",
                "compile.overrides.env.NEURON_CC_FLAGS"),
    "evaluation": ("metrics: [{{name: loss, regex: 'loss (.*)'}}]\nevaluate:\n  command: [python3, e.py]\n"
                   "  metric: loss\n  direction: min\n  env: {{NEURON_CC_FLAGS: {}}}\n", "evaluate.env.NEURON_CC_FLAGS"),
    "inference": ("infer:\n  command: [python3, e.py]\n  output: s3://b/o\n  env: {{NEURON_CC_FLAGS: {}}}\n",
                  "infer.env.NEURON_CC_FLAGS"),
    "a grid": ("sweep: {{grid: {{env.NEURON_CC_FLAGS: ['-O1', {}]}}}}\n", "sweep.grid.env.NEURON_CC_FLAGS[1]"),
    "a ladder": ("sweep: {{ladder: [{{env.NEURON_CC_FLAGS: {}}}]}}\n", "sweep.ladder[0].env.NEURON_CC_FLAGS"),
}


@pytest.mark.parametrize("place", PLACES)
def test_flags_are_read_wherever_they_stand(tmp_path, place):
    text, field = PLACES[place]
    seen = Told(tmp_path, BATCH.format("trn1.32xlarge") + text.format("--target trn2 --optlevel 7"))
    assert [row["field"] for row in seen.errors] == [field], str(seen)
    assert [row["field"] for row in seen.warnings] == [field], str(seen)


@pytest.mark.parametrize("command, field", [
    ("[env, NEURON_CC_FLAGS=--target trn2 --optlevel 7, torchrun, t.py]", "command[1]"),
    ("""[bash, -c, 'export NEURON_CC_FLAGS="$NEURON_CC_FLAGS --target trn2 --optlevel 7"; torchrun t.py']""",
     "command[2]"),
    ("""[bash, -c, 'NEURON_CC_FLAGS+=" --target=trn2 --optlevel=7" torchrun t.py']""", "command[2]")])
def test_flags_in_a_command_are_read(tmp_path, command, field):
    head = BATCH.format("trn1.32xlarge").replace("[torchrun, t.py]", command)
    seen = Told(tmp_path, head)
    assert [row["field"] for row in seen.errors] == [field], str(seen)
    assert [row["field"] for row in seen.warnings] == [field], str(seen)
    beside = head.replace("--target trn2 --optlevel 7", "--auto-cast-type bf16")
    if "$" in beside:
        assert not Told(tmp_path, beside).warnings, "the variable may hold the cast"


def test_a_stage_on_another_machine_has_that_machines_flags(tmp_path):
    head, stage = BATCH.format("trn1.32xlarge"), PLACES["evaluation"][0] + "  resources: {{instance: inf2.xlarge}}\n"
    assert not Told(tmp_path, head + stage.format("--target inf2")).errors
    row, = Told(tmp_path, head + stage.format("--target trn1")).errors
    assert "inf2.xlarge" in row["message"]


def test_every_group_of_machines_counts(tmp_path):
    head = SAGEMAKER.format("ml.trn1.32xlarge").replace(
        "role/r'}", "role/r', instance_groups: [{name: a, instance: ml.trn1.32xlarge, nodes: 1},"
        " {name: b, instance: ml.trn2.48xlarge, nodes: 1}]}").replace("32xlarge}", "32xlarge, nodes: 2}")
    rows = Told(tmp_path, head + "env: {NEURON_CC_FLAGS: --target trn1}\n").errors
    assert [row["message"] for row in rows if row["field"] == "env.NEURON_CC_FLAGS" and "ml.trn2.48xlarge" in row["message"]]


def test_each_profile_has_its_own_machines_and_flags(tmp_path):
    head = BATCH.format("trn1.32xlarge") + "compile: {kind: neuron, cache_url: s3://b/c, max_steps: 5}\n"
    seen = Told(tmp_path, head + "env: {NEURON_CC_FLAGS: --target trn1}\nprofiles:\n"
                "  big: {resources: {instance: trn2.48xlarge}}\n"
                "  own: {env: {NEURON_CC_FLAGS: --cache_dir=/x}}\n  none: {env: {NEURON_CC_FLAGS: --no_cache}}\n"
                "  fine: {resources: {instance: trn1n.32xlarge}, env: {NEURON_CC_FLAGS: -O1}}\n")
    assert seen.result.code == 3
    told = {row["profiles"]: row["message"] for row in seen.errors}
    assert set(told) == {"big", "own", "none"}, str(seen)
    assert "trn2.48xlarge" in told["big"] and "--cache_dir" in told["own"] and "--no_cache" in told["none"]


def test_a_remark_is_printed_as_one(tmp_path):
    (tmp_path / "spec.yaml").write_text(HEAD + "env: {NEURON_CC_FLAGS: --frobnicate}\n")
    human = cli.stoker("validate", "spec.yaml", cwd=tmp_path)
    assert human.code == 0 and "spec.yaml:4:24: remark: " in human.err and "warning" not in human.err, str(human)
    forge = cli.stoker("validate", "--format", "github", "spec.yaml", cwd=tmp_path)
    assert forge.out.startswith("::notice file=spec.yaml,line=4,col=24,title=env.NEURON_CC_FLAGS::"), str(forge)
