"""The real torchrun and the real accelerate start as many workers as stoker says, on one node and on two, with a count in
the command, without one, and with another one than the command's. On CPUs: the ranks meet over gloo."""

import os
from pathlib import Path

import pytest
import stoker as cli
import yaml

PYTHON = Path(os.environ.get("STOKER_TEST_TORCH", "/nonexistent"))
SCRIPT = """import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}, sum {int(total)}, workers {os.environ.get('STOKER_WORKERS')}",
      flush=True)
dist.destroy_process_group()
"""
ROWS = [
    (["torchrun", "t.py"], {}, 2),
    (["torchrun", "--nproc_per_node", "1", "t.py"], {}, 1),
    (["torchrun", "--nproc-per-node=1", "t.py"], {"workers": 2}, 2),
    (["python3", "-m", "torch.distributed.run", "--max-restarts", "0", "t.py"], {}, 2),
    (["env", "PET_NPROC_PER_NODE=1", "torchrun", "t.py"], {"workers": 2}, 2),
    (["bash", "-c", "torchrun --nproc_per_node $STOKER_WORKERS t.py"], {"workers": 2}, 2),
    (["accelerate", "launch", "t.py"], {}, 2),
    (["accelerate", "launch", "--num_processes", "1", "t.py"], {"workers": 2}, 2),
    (["python3", "-m", "accelerate.commands.launch", "--mixed_precision", "no", "t.py"], {}, 2),
]


@pytest.mark.skipif(not PYTHON.exists(), reason="STOKER_TEST_TORCH names no Python with torch and accelerate")
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("command,resources,workers", ROWS, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_the_real_launcher_starts_so_many(tmp_path, command, resources, workers, nodes):
    (tmp_path / "t.py").write_text(SCRIPT)
    (tmp_path / "stoker.yaml").write_text(yaml.safe_dump({
        "version": 1, "name": "ranks", "source": {"path": ".", "include": ["t.py"]}, "command": command,
        "resources": {"instance": "trn1.2xlarge", "nodes": nodes, **resources}, "health": {"device": False},
        "compile": {"kind": "none"}}))
    env = cli.environment(STOKER_STATE=str(tmp_path / "state"), HOME=str(tmp_path),
                          PATH=f"{PYTHON.parent}:{os.environ['PATH']}")
    for words in (["run", "stoker.yaml", "--id", "one"], ["logs", "one", "--all-nodes"]):
        result = cli.finish(cli.start(*words, env=env, cwd=tmp_path), words, 600)
        assert result.code == 0, str(result)
    said = sorted(line[line.index("rank "):] for line in result.out.splitlines() if "rank " in line and "sum" in line)
    world = workers * nodes
    assert said == sorted(f"rank {rank} of {world}, sum {world}, workers {workers}" for rank in range(world)), result.out
