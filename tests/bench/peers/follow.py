"""What people do today to read numbers from a log, those of the newest step: re.

follow.py LOG METRICS.json
"""

import json
import re
import sys
import time
from pathlib import Path

metrics = [(each["name"], re.compile(each["regex"])) for each in json.loads(Path(sys.argv[2]).read_text())]
last = {}
lines = 0
wall, cpu = time.perf_counter(), time.process_time()
with open(sys.argv[1], encoding="utf-8") as log:
    for line in log:
        lines += 1
        readings = {}
        for name, pattern in metrics:
            found = pattern.search(line)
            if found:
                readings[name] = float(found[1])
        if "step" in readings:
            last = readings  # a row begins
        elif readings:
            last.update(readings)
print(json.dumps({"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "lines": lines,
                  "last": last}))
