"""Logs of jobs of 8 to 32 ranks in which one rank goes wrong first, and the others end of it. Each shape
names where it was seen; the tracebacks' frames are Python's own form."""

import random

import progress_logs
from progress_logs import ASIDES, SHAPES

LAUNCHERS = ("torchrun", "torchrun-nodes", "torchrun-tee", "mpirun", "srun")


def trace(last, *calls):
    """A traceback through the program's own files; `last` may have several lines."""
    out = ["Traceback (most recent call last):", '  File "/opt/train/train.py", line 212, in <module>', "    main()",
           '  File "/opt/train/train.py", line 190, in main', "    train(args)"]
    for file, line, name, code in calls:
        out += [f'  File "{file}", line {line}, in {name}', f"    {code}"]
    return [*out, *last.splitlines()]


STEP = ("/opt/train/loop.py", 77, "train_step", "out = model(batch)")
DATA = ("/opt/train/data.py", 41, "__getitem__", "row = self.rows[index]")
SAVE = ("/opt/train/save.py", 19, "save", "torch.save(state, path)")
LOAD = ("/opt/train/save.py", 33, "load", "state = torch.load(path)")
S3 = ("/l/botocore/httpsession.py", 493, "send", "raise EndpointConnectionError(endpoint_url=request.url, error=e)")


def nrt(where, text):
    """Lines of the Neuron runtime: github.com/aws-neuron/aws-neuron-sdk/issues/851 and /1018"""
    return f"2026-Nov-25 12:42:59.{where % 1000:03}978 {4000 + where}:{4100 + where} ERROR  TDRV:exec_consume_infer_status_notifications  {text}"


def dump(where):
    head = f"2026-Nov-25 12:43:00.200978 {4000 + where}:{4100 + where} ERROR   NRT:nrt_infodump                            "
    return [head + text for text in ("------------->8------------[ cut here ]------------>8-------------", "NRT version: 2.20.22.0 (1b3ca64250aae3cc)",
                                     "CCOM version: 2.20.22.0-c101c322e940b1 (compat 36)", "Instance ID: i-0975663b229a10fd1", "Driver version: 2.16.7.0",
                                     "Visible cores: 0-31")]


# (name, the classes that are right, what the evidence must hold, what the first rank says, its exit as torchrun gives it)
CAUSES = [
    ("sram", ["hardware-node"], "Uncorrectable memory error is detected",
     lambda r: [nrt(r, "Uncorrectable memory error is detected, metadata: 0x16"), *dump(r), *trace("RuntimeError: Bad StatusOr access: INTERNAL: nrt_execute status=1202", STEP)], 1),
    ("hbm", ["hardware-node"], "NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR",
     lambda r: ["[ 7711.120] neuron: NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR instance-id=i-0 hostname=node-0 nd-id=3 hbm-idx=1 action=TERMINATE_INSTANCE",
                *trace("RuntimeError: Bad StatusOr access: INTERNAL: nrt_execute status=1200", STEP)], 1),
    ("core-hang", ["hardware-node"], "on Neuron Device 3",
     lambda r: [nrt(r, "(FATAL-RT-UNDEFINED-STATE) execution timeout (30000 ms) on Neuron Device 3 NC 1, model /tmp/m.neff, waiting for execution completion notification"), *dump(r)], -6),
    ("ecc", ["hardware-node"], "uncorrectable ECC error",
     lambda r: trace("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be asynchronously reported at some other API call, "
                     "so the stacktrace below might be incorrect.", STEP), 1),
    ("cuda-memory", ["user-config"], "CUDA out of memory",
     lambda r: trace("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.02 GiB is free.", STEP), 1),
    ("jax-memory", ["user-config"], "RESOURCE_EXHAUSTED",
     lambda r: trace("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.", STEP), 1),
    ("nan", ["data"], "loss is nan", lambda r: trace("ValueError: loss is nan at step 412, stopping", STEP), 1),
    ("no-file", ["user-config"], "shard-00412.bin", lambda r: trace("FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-00412.bin'", DATA), 1),
    ("key", ["user-code"], "KeyError: 'labels'", lambda r: trace("KeyError: 'labels'", DATA), 1),
    ("type", ["user-code"], "unsupported operand", lambda r: trace("TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'", STEP), 1),
    ("hung-peer", ["comm"], "Watchdog caught collective operation timeout",
     lambda r: [f"[rank{r}]:[E1125 12:42:59.1{r:02} 77 ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1032, "
                "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600070 milliseconds before timing out.",
                f"[rank{r}]:[E1125 12:42:59.2{r:02} 77 ProcessGroupNCCL.cpp:630] [Rank {r}] Some NCCL operations have failed or timed out.",
                "terminate called after throwing an instance of 'c10::DistBackendError'"], -6),
    ("s3-refused", ["transient-infra", "comm"], "Could not connect to the endpoint URL",
     lambda r: trace('botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "https://s3.us-west-2.amazonaws.com/b/ckpt"', S3), 1),
    ("s3-slow", ["transient-infra"], "SlowDown",
     lambda r: trace("botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject operation (reached max retries: 4): Please reduce your request rate.", SAVE), 1),
    ("token", ["transient-infra"], "ExpiredToken",
     lambda r: trace("botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the PutObject operation: The provided token has expired.", SAVE), 1),
    ("denied", ["quota-permission"], "AccessDenied",
     lambda r: trace("botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the PutObject operation: Access Denied", SAVE), 1),
    ("disk", ["user-config"], "No space left on device", lambda r: trace("OSError: [Errno 28] No space left on device: '/ckpt/step-400'", SAVE), 1),
    ("stale", ["hardware-node"], "Stale file handle", lambda r: trace("OSError: [Errno 116] Stale file handle: '/data/shard-00412.bin'", DATA), 1),
    ("compiler", ["compile"], "Failed compilation with ['neuronx-cc'",
     lambda r: ["2026-11-25 12:42:50.000217:  412  ERROR ||NEURON_CC_WRAPPER||: Failed compilation with ['neuronx-cc', 'compile', '--framework=XLA', '/tmp/m.hlo_module.pb'] after 0 retries.",
                *trace("RuntimeError: neuronx-cc compilation failed with 70", STEP)], 1),
    ("segfault", ["unknown"], "Segmentation fault",
     lambda r: ["Fatal Python error: Segmentation fault", "", "Current thread 0x00007f1c (most recent call first):", '  File "/opt/train/loop.py", line 77 in train_step'], -11),
    ("damaged", ["data"], "PytorchStreamReader failed",
     lambda r: trace("RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory", LOAD), 1),
    ("picture", ["data"], "cannot identify image file", lambda r: trace("PIL.UnidentifiedImageError: cannot identify image file '/data/3/412.jpg'", DATA), 1),
    ("module", ["user-config"], "No module named 'flash_attn'", lambda r: trace("ModuleNotFoundError: No module named 'flash_attn'", STEP), 1),
    ("worker", ["user-config"], "killed by signal: Killed",
     lambda r: trace("RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.", DATA), 1),
    ("gated", ["quota-permission"], "gated repo",
     lambda r: trace("OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/meta-llama/Llama-3.1-8B.\n401 Client Error.", LOAD), 1),
    ("assert", ["user-code"], "device-side assert", lambda r: trace("torch.AcceleratorError: CUDA error: device-side assert triggered", STEP), 1),
]
TRANSIENT = {"transient-infra", "comm", "hardware-node", "unknown"}

BACKEND = ("/l/torch/distributed/distributed_c10d.py", 2806, "all_reduce", "work = group.allreduce([tensor], opts)")
GLOO = ("/l/torch/distributed/distributed_c10d.py", 4159, "barrier", "work = group.barrier(opts=opts)")


def cascade(rank, draw):
    """What a rank says of a peer that is gone: github.com/pytorch/pytorch/issues/121209, github.com/NVIDIA/Megatron-LM/issues/1140"""
    return draw.choice([
        trace("torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, remote process exited or there was a network "
              "error, NCCL version 2.19.3\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.", STEP, BACKEND),
        trace("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:29511", STEP, GLOO),
        trace("ConnectionResetError: [Errno 104] Connection reset by peer", STEP, BACKEND),
        [f"[rank{rank}]:[E1125 12:53:03.1{rank:02} 77 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1032, "
         "OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600070 milliseconds before timing out.",
         f"node-0:{4000 + rank}:4100 [0] NCCL INFO [Service thread] Connection closed by localRank 3"],
        [nrt(rank, "RX, connection closed by remote peer"), *trace("RuntimeError: Bad StatusOr access: INTERNAL: nrt_execute status=1006", STEP)],
    ])


def mix(said, draw):
    """The lines of several ranks as they arrive: each in its order, chunks of a few lines."""
    said = {rank: list(lines) for rank, lines in said.items()}
    out = []
    while said:
        rank = draw.choice(list(said))
        for _ in range(draw.randrange(1, 4)):
            if said[rank]:
                out.append((rank, said[rank].pop(0)))
        if not said[rank]:
            del said[rank]
    return out


def label(launcher, rank, text, begun):
    if launcher == "mpirun":
        return f"[1,{rank}]<stderr>:{text}"
    if launcher == "srun":
        return f"{rank:2}: {text}"
    if launcher == "torchrun-tee":
        return f"[default{rank % 8}]:{text}"
    # PyTorch puts the rank in front of an exception's lines alone
    return text if not begun or text.startswith("[rank") else f"[rank{rank}]: {text}"


def one(n, draw):
    name, classes, holds, says, code = CAUSES[n % len(CAUSES)]
    launcher = LAUNCHERS[(n // len(CAUSES) + n) % len(LAUNCHERS)]
    ranks = draw.choice([8, 16, 24, 32])
    nodes = ranks // 8 if launcher == "torchrun-nodes" else 1
    first = draw.randrange(ranks)
    regex, line = SHAPES[list(SHAPES)[n % len(SHAPES)]]
    known = draw.random() < 0.5
    lines, now = [], 0

    def say(rank, text, begun=False):
        shown = label(launcher, rank, text, begun).replace("\r", "") if launcher != "torchrun" else label(launcher, rank, text, begun)
        lines.append((rank * nodes // ranks, now, shown))

    for aside in draw.sample(ASIDES, 20):
        say(draw.randrange(ranks), aside.replace("{n}", "0"))
    for step in range(1, draw.randrange(150, 400)):
        now += 300
        say(0, line(step, draw))
        if draw.random() < 0.05:
            say(draw.randrange(ranks), draw.choice(ASIDES).replace("{n}", str(step)))
    now += 300
    told = says(first)
    start = next((at for at, text in enumerate(told) if text.startswith("Traceback")), len(told))
    head = draw.randrange(len(told))  # so far it is heard before the others are
    for at, text in enumerate(told[:head + 1]):
        say(first, text, at >= start)
    others = {rank: cascade(rank, draw) for rank in range(ranks) if rank != first}
    now += 200
    rest = {rank: [(text, any(before.startswith("Traceback") for before in said[:at + 1])) for at, text in enumerate(said)] for rank, said in others.items()}
    rest[first] = [(text, head + 1 + at >= start) for at, text in enumerate(told[head + 1:])]
    labelled = launcher in ("mpirun", "srun") or (launcher != "torchrun-tee" and start < len(told))
    if not labelled:  # nothing would tell whose line it is
        order = [(first, part) for part in rest.pop(first)] + [(rank, part) for rank, parts in rest.items() for part in parts]
    else:
        order = mix({rank: parts for rank, parts in rest.items() if parts}, draw)
    for rank, (text, begun) in order:
        say(rank, text, begun)
    while len(lines) < 500:
        rank = draw.randrange(ranks)
        for text in cascade(rank, draw):
            say(rank, text, True)
    now += 3000
    for node in range(nodes):
        end = {"mpirun": lambda: progress_logs.mpirun(first, -code if code < 0 else 0),
               "srun": lambda: progress_logs.srun(first, "Exited with exit code 1")}.get(launcher, lambda: progress_logs.torchrun(first % 8, code))()
        lines.extend((node, now, text) for text in end)
    shell = 128 - code if launcher == "mpirun" and code < 0 else 1
    return (f"{n}-{name}-{launcher}-{ranks}", nodes, shell, regex if known else "-", lines), (classes, holds)


def logs(count=100, seed=19):
    """[(case as in progress_logs.logs(), (classes, what the evidence must hold))]"""
    draw = random.Random(seed)
    return [one(n, draw) for n in range(count)]
