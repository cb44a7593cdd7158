"""A step of a pipeline in Python: step.py SPEC ID prints the progress and ends with the run's exit
code. Killed and repeated, it continues the same run."""
import json
import subprocess
import sys

with subprocess.Popen(["stoker", "--json", "run", sys.argv[1], "--id", sys.argv[2]],
                      stdout=subprocess.PIPE, text=True) as job:
    for event in map(json.loads, job.stdout):
        if event.get("event") == "train.progress":
            print("step", event.get("step"), "of", event.get("of"), event.get("metrics"), flush=True)
        if event.get("event") == "run.ended":
            print(event["state"], event.get("reason", ""), event.get("evidence", ""))
sys.exit(job.returncode)
