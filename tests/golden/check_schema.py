#!/usr/bin/env python3
"""The JSON Schema held against golden specs: tests/golden/check_schema.py STOKER.

With an independent validator: every good spec and template is accepted, and no
spec is refused that `stoker validate` accepts.
"""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import yaml

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests/golden/spec"
# What a schema can refuse: of these cases it must refuse each.
REFUSED = """
bucket-names camel-case choices collective-unknown cron cron-six-fields duration-compound
duration-without-unit empty-command engine-mistyped exponent-for-a-whole-number
field-of-another-section hyperparameter-at-the-top hyperparameter-names ignore-patterns
list-for-a-section list-for-a-text list-for-variables list-in-env map-for-a-text maybe
missing-fields missing-in-sections mounts name-too-long names near-nothing negative number-too-large
out-of-range paths-that-lead-out percent quotes-around-a-number quotes-around-true retires
secret-in-the-clear size-units text-for-a-list text-for-a-number text-for-a-section too-many-metrics
true-in-env unknown-field unknown-in-a-list-item unknown-nested-field upper-case variable-names
webhook
""".split()


class Loader(yaml.SafeLoader):
    """Dates stay text, as in YAML 1.2."""


Loader.yaml_implicit_resolvers = {
    key: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for key, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    schema = json.loads(subprocess.run([sys.argv[1], "schema"], check=True,
                                       capture_output=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    failed = []
    good = [path for path in CASES.glob("good/*/spec.yaml")
            if not (path.parent / "sets.txt").exists()]
    for path in [*good, *ROOT.glob("templates/*.yaml"), ROOT / "configs/quickstart/stoker.yaml"]:
        text = path.read_bytes().decode("utf-8-sig")
        failed += [f"{path.parent.name}/{path.name}: {error.json_path}: {error.message[:200]}"
                   for error in validator.iter_errors(yaml.load(text, Loader))]
    for name in REFUSED:
        text = (CASES / "bad" / name / "spec.yaml").read_text()
        if validator.is_valid(yaml.load(text, Loader)):
            failed.append(f"{name}: accepted")
    print("\n".join(failed) or f"{len(good)} good specs accepted, {len(REFUSED)} bad ones refused")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
