"""What commands were given of the data, as they saw it: code for a project's extra.py that writes it down, and what it
wrote."""

import json

SEES = """
import json, os, pathlib
data = os.environ.get("STOKER_DATA_DIR")
files = {}
for path in sorted(pathlib.Path(data).rglob("*")) if data else []:
    if not path.is_dir():
        files[str(path.relative_to(data))] = [path.read_text(), path.is_symlink()]
line = {"phase": os.environ["STOKER_PHASE"], "attempt": int(os.environ["STOKER_ATTEMPT"]), "files": files,
        "rows": [json.loads(line) for line in open(os.environ["STOKER_DATA_MANIFEST"], encoding="utf-8")]}
with open(GIVEN, "a") as file:
    file.write(json.dumps(line) + "\\n")
"""


def sees(path):
    return f"GIVEN = {str(path)!r}\n{SEES}"


def seen(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    return lines
