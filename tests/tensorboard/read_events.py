"""What TensorBoard itself finds beneath a folder, as JSON: {"run": {"tag": [[wall time, step, value]…]}}.
By hand: tests/tensorboard/.venv/bin/python tests/tensorboard/read_events.py FOLDER"""

import json
import sys

from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer


def main(folder: str) -> None:
    reader = EventMultiplexer(size_guidance={"scalars": 0})
    reader.AddRunsFromDirectory(folder)
    reader.Reload()
    runs = {run: {tag: [[row.wall_time, row.step, row.value] for row in reader.Scalars(run, tag)]
                  for tag in found["scalars"]} for run, found in reader.Runs().items()}
    json.dump(runs, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
