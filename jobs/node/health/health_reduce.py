# An all-reduce with a known answer over torchrun.
"""Each rank gives its number from 1 on, so that the sum of all is known. Prints, on rank 0,
one line of JSON: {"busbw": GiB/s, "time_us", "ranks"}; a rank whose
answer is wrong says so and exits 1."""

import json
import os
import sys
import time

import torch
import torch.distributed as dist

ROUNDS = 5


def begin():
    """Over the accelerator where it has one, else over the network that Python reaches. Returns the
    device, and what waits for its work (None: reading the result does)."""
    if os.environ.get("HEALTH_BACKEND") == "xla":
        import torch_xla.core.xla_model as xm
        import torch_xla.distributed.xla_backend  # noqa: F401 - makes the backend known
        dist.init_process_group("xla")
        return xm.xla_device(), None
    if os.environ.get("HEALTH_BACKEND") == "nccl":
        device = "cuda:" + os.environ["LOCAL_RANK"]
        torch.cuda.set_device(device)
        dist.init_process_group("nccl")
        return device, torch.cuda.synchronize
    dist.init_process_group("gloo")
    return "cpu", None


def main():
    device, settle = begin()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    count = max(int(sys.argv[1]) // 4, 1)
    expected = ranks * (ranks + 1) / 2
    times, wrong = [], 0
    for _ in range(ROUNDS):
        data = torch.full((count,), float(rank + 1), device=device)
        began = time.monotonic()
        dist.all_reduce(data)
        if settle:
            settle()
            times.append(time.monotonic() - began)
        wrong += int((data.cpu() != expected).sum())
        if not settle:
            times.append(time.monotonic() - began)
    seconds = min(times)
    if wrong:
        print(json.dumps({"wrong": wrong, "rank": rank, "expected": expected, "of": ROUNDS * count}), flush=True)
    elif rank == 0:
        busbw = count * 4 / max(seconds, 1e-9) / (1 << 30) * 2 * (ranks - 1) / ranks
        print(json.dumps({"busbw": busbw, "time_us": seconds * 1e6, "ranks": ranks}), flush=True)
    dist.destroy_process_group()
    sys.exit(1 if wrong else 0)


main()
