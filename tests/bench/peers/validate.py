"""What people do today to check a spec: PyYAML and jsonschema. validate.py SPEC SCHEMA"""

import json
import sys
from pathlib import Path

import jsonschema
import yaml

spec = yaml.safe_load(Path(sys.argv[1]).read_text())
schema = json.loads(Path(sys.argv[2]).read_text())
errors = list(jsonschema.Draft202012Validator(schema).iter_errors(spec))
for error in errors:
    print(error.json_path, error.message)
print("invalid" if errors else "valid")
sys.exit(3 if errors else 0)
