"""What people use today to watch and to submit many jobs: boto3, by the best way that its
service has. jobs.py watch|submit batch|sagemaker NAMES ROUNDS, a line a round as
tests/aws/many_jobs.c has it; NAMES holds a job a line: its name, its id (Batch)."""

import json
import sys
import time
from collections import Counter
from pathlib import Path

import boto3

what, service, names, rounds = *sys.argv[1:4], int(sys.argv[4])
rows = [line.split() for line in Path(names).read_text().splitlines()]
client = boto3.client(service)
WORDS = {"RUNNING": "running", "InProgress": "running", "FAILED": "ended", "SUCCEEDED": "ended"}


def watch_batch():
    for start in range(0, len(rows), 100):
        for job in client.describe_jobs(jobs=[row[1] for row in rows[start:start + 100]])["jobs"]:
            yield job["status"]


def watch_sagemaker():
    for name, *_ in rows:
        yield client.describe_training_job(TrainingJobName=name)["TrainingJobStatus"]


def submit_batch():
    for name, *_ in rows:
        client.submit_job(jobName=name, jobQueue="queue", jobDefinition="trainer")
        yield "submitted"


act = {"watch_batch": watch_batch, "watch_sagemaker": watch_sagemaker, "submit_batch": submit_batch}[f"{what}_{service}"]
for _ in range(rounds):
    cpu, wall = time.process_time(), time.monotonic()
    states = Counter(WORDS.get(state, state) for state in act())
    print(json.dumps({"cpu": time.process_time() - cpu, "wall": time.monotonic() - wall, "states": states}))
