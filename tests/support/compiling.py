"""The learner (learner.py) with graphs: each of its commands compiles some of its own first, as a JAX job does, and
notes what it was given. Beside it lie learner.py and train.py (fake_train.py)."""

import json
import os
import sys
import time

import learner
from train import compile_graph

GRAPHS = {"train": ["train_step"], "evaluate": ["eval_step", "accuracy"], "infer": ["embed"]}
NOTED = ["PHASE", "STAGE", "ATTEMPT", "MODEL", "MODEL_ROLE", "REPEAT", "SHARD", "SHARDS", "OUTPUT_DIR", "INIT_FROM",
         "HP_BATCH", "HP_ITEMS"]


def main():
    command = sys.argv[1]
    with open(os.environ["NOTES"], "a", encoding="utf-8") as file:
        file.write(json.dumps({name: os.environ[f"STOKER_{name}"] for name in NOTED if f"STOKER_{name}" in os.environ}))
        file.write("\n")
    for name in GRAPHS[command]:
        compile_graph(name, f"float32[{os.environ.get('STOKER_HP_BATCH', '8')}]")
    stage = os.environ.get("STOKER_STAGE", "")
    if stage == os.environ.get("FAILS"):
        sys.exit("ValueError: this stage cannot be traced")
    while stage == os.environ.get("HELD") and not os.path.exists(os.environ["NOTES"] + ".go"):
        time.sleep(0.02)
    getattr(learner, command)()


main()
