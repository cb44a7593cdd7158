"""Logs of jobs that train and then die without a word, in the shapes of the programs that people
run. Each shape and warning names where it was seen."""

import random

# A job's progress: (the step's expression, as a user would write it; the line of step n).
# torchtitan: github.com/pytorch/torchtitan/pull/1287; Megatron-LM: github.com/epfLLM/Megatron-LLM/issues/11;
# MaxText: github.com/AI-Hypercomputer/maxtext/pull/4847; DeepSpeed: github.com/deepspeedai/DeepSpeed (logging.py);
# Hugging Face Trainer with tqdm: github.com/huggingface/transformers (trainer_callback.py); NeuronX Distributed:
# github.com/aws-neuron/neuronx-distributed (examples/training/llama); Lightning: its progress bar.
SHAPES = {
    "torchtitan": (r"step:\s+(\d+)", lambda n, r: f"[rank0]:[titan] 2025-06-16 22:{n // 60 % 60:02}:{n % 60:02},735 - root - INFO - step: {n:2}  "
                   f"loss:  {6 - n / 500:.4f}  memory: 49.66GiB(52.28%)  tps: 5,{r.randrange(100, 999)}  tflops: 339.16  mfu: 34.29%"),
    "megatron": (r"iteration\s+(\d+)/", lambda n, r: f" iteration {n:8}/  250000 | consumed samples: {n * 1024:12} | elapsed time per iteration (ms): "
                 f"{127000 + r.randrange(999)}.3 | learning rate: 1.365E-05 | global batch size:  1024 | lm loss: {2.4 - n / 9000:.6E} | "
                 "loss scale: 1.0 | grad norm: 0.227 | number of skipped iterations:   0 | number of nan iterations:   0 |"),
    "maxtext": (r"completed step: (\d+)", lambda n, r: f"I0811 21:54:{n % 60:02}.531340 138304841739136 metric_logger.py:226] completed step: {n}, seconds: "
                f"0.6{r.randrange(99):02}, TFLOP/s/device: 568.282, Tokens/s/device: 31162.521, total_weights: 1572864, loss: {12 - n / 300:.3f}"),
    "deepspeed": (r"step=(\d+)", lambda n, r: f"[2023-07-10 04:{n // 60 % 60:02}:{n % 60:02},876] [INFO] [logging.py:93:log_dist] [Rank 0] step={n}, "
                  f"skipped=0, lr=[1e-05], mom=[(0.9, 0.999)], RunningAvgSamplesPerSec={r.uniform(20, 21):.2f}, MemAllocated=12.1GB"),
    "hf": (r"\| (\d+)/", lambda n, r: f"\r{n // 20:3}%|{'#' * (n // 200):10}| {n}/2000 [{n // 60:02}:{n % 60:02}<20:00,  1.66it/s]\r"
           f"{{'loss': {3 - n / 1000:.4f}, 'grad_norm': {r.uniform(0.2, 2):.3f}, 'learning_rate': 1.9e-05, 'epoch': {n / 1000:.2f}}} | {n}/2000"),
    "neuron": (r"step (\d+)", lambda n, r: f"LOG Wed Nov 25 12:{n // 60 % 60:02}:{n % 60:02} 2026 - ({n // 100}, {n}) step_loss : {9 - n / 300:.4f} "
               f"learning_rate : 4.80e-04 throughput : {r.uniform(50, 51):.2f} step {n}"),
    "lightning": (r"(\d+)/2000", lambda n, r: f"\rEpoch 0: {n // 20:3}%|{'█' * (n // 200):10}| {n}/2000 [0{n // 600}:00<09:00,  3.51it/s, v_num=0, "
                  f"train_loss={2.3 - n / 1500:.3f}]"),
}

# What such programs print in passing, and go on. Texts of PyTorch, Transformers, datasets, TensorFlow, the Neuron
# SDK, NCCL, aws-ofi-nccl, wandb, botocore, bitsandbytes, the kernel and shells, as their public issues quote them.
ASIDES = [
    "/l/torch/distributed/distributed_c10d.py:2849: FutureWarning: `torch.distributed._all_gather_base` is deprecated",
    "/l/transformers/optimization.py:391: FutureWarning: This implementation of AdamW is deprecated and will be removed in a future version.",
    "OFI plugin initNet() failed is EFA enabled?",
    "node-0:41:120 [0] NCCL INFO NET/OFI Using aws-ofi-nccl 1.9.1-aws",
    "node-0:41:120 [0] configure_nvls_option:303 NCCL WARN NET/OFI Could not find version of DMABUF: disabled",
    "node-0:41:120 [0] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.",
    "node-0:41:120 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.",
    "node-0:41:120 [0] NCCL INFO Channel 00/24 :    0   1   2   3   4   5   6   7",
    "INFO ||NEURON_PARALLEL_COMPILE||: Total graphs: 12",
    "Total successful compilations: 12", "Total failed compilations: 0",
    "2026-11-25 12:00:01.000217:  412  INFO ||NEURON_CACHE||: Compile cache path: /var/tmp/neuron-compile-cache",
    "2026-11-25 12:00:02.000317:  412  INFO ||NEURON_CC_WRAPPER||: Using a cached neff at /var/tmp/neuron-compile-cache/MODULE_7/model.neff",
    "2026-Nov-25 12:00:01.023168  7340:7340   INFO  TDRV:tdrv_init_one_mla_phase2                Initialized Device: 0 00:1f.0",
    "2026-Nov-25 12:00:09.031487 30993:30994  WARN  TDRV:notification_consume_error_block        Received an unusually large number of error "
    "notifications (count:262126) on nd0 nc0. Performance may be negatively affected",
    "2026-Nov-25 12:00:09.031887 30993:30994  WARN  TDRV:notification_consume_error_block        Error notifications found on nd0 nc0; "
    "action=INFER_ERROR_SUBTYPE_NONE; error_id=0; error string:TRAINIUM_NC_ERROR_TYPE_FP_UNDERFLOW",
    "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to avoid deadlocks...",
    "To disable this warning, you can either:", "\t- Avoid using `tokenizers` before the fork if possible",
    "\t- Explicitly set the environment variable TOKENIZERS_PARALLELISM=(true | false)",
    "Found cached dataset wikitext (~/.cache/huggingface/datasets/wikitext/wikitext-2-raw-v1/1.0.0)",
    "wandb: W&B syncing is set to `offline` in this directory. Run `wandb online` or set WANDB_MODE=online to enable cloud syncing.",
    "wandb: WARNING Calling wandb.login() after wandb.init() has no effect.",
    "wandb: Network error (ConnectionError), entering retry loop.",
    "WARNING:urllib3.connectionpool:Retrying (Retry(total=2, connect=None, read=None, redirect=None, status=None)) after connection broken by "
    "'NewConnectionError('Failed to establish a new connection: [Errno 111] Connection refused')': /api/models",
    "'(ReadTimeoutError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read timeout=10)\"), '(Request ID: 0f3a)')' thrown while "
    "requesting HEAD https://huggingface.co/gpt2/resolve/main/config.json",
    "Retrying in 1s [Retry 1/5].",
    "Saving model checkpoint to /ckpt/checkpoint-{n}", "Configuration saved in /ckpt/checkpoint-{n}/config.json",
    "Model weights saved in /ckpt/checkpoint-{n}/model.safetensors", "successfully saved checkpoint at iteration {n} to /ckpt",
    "E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:152] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: "
    "cannot open shared object file: No such file or directory",
    "/l/torchvision/io/image.py:13: UserWarning: Failed to load image Python extension: '/l/image.so: undefined symbol: _ZN3c10'",
    "Some weights of BertForSequenceClassification were not initialized from the model checkpoint at bert-base-uncased and are newly initialized",
    "Loading the fused kernel failed: No module named 'fused_layer_norm_cuda', using PyTorch's",
    "unexpected key in source state_dict: fc.weight, fc.bias",
    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
    "/bin/sh: 1: nvidia-smi: not found", "fatal: not a git repository (or any of the parent directories): .git",
    "Token indices sequence length is longer than the specified maximum sequence length for this model (1233 > 1024)",
    "`use_cache=True` is incompatible with gradient checkpointing. Setting `use_cache=False`.",
    "Exception ignored in: <function DataLoader.__del__ at 0x7f30>", "AttributeError: 'NoneType' object has no attribute 'shutdown'",
    "rm: cannot remove '/scratch/tmp1/.nfs00000000': Device or resource busy",
    "mce: [Hardware Error]: Corrected error, no action required.",
    "[mp3 @ 0x55d] Header missing", "Error while decoding stream #0:0: Invalid data found when processing input",
    "W1125 12:00:00.123000 77 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default",
    "INFO - skipped 3 corrupt images of 1281167", "DeprecationWarning: invalid escape sequence '\\d'",
    "[2023-07-10 04:09:42,841] [INFO] [comm.py:652:init_distributed] Initializing TorchBackend in DeepSpeed with backend nccl",
    "setting NEURON_RT_EXEC_TIMEOUT=600", "MASTER_PORT is set but not used", "memory report: out of memory events 0, killed 0",
    "preemption handler installed: a request that was preempted is recomputed", "INFO: request scheduler: 0 requests were preempted",
    "[Rank 0] Watchdog: heartbeat interval 600 s", "PERMISSION: checked /data (0755)", "ring buffer: capacity 1024, insufficient 0 times",
]

# A traceback that was logged and survived: what an upload thread or an optional import leaves behind.
SURVIVED = [
    ["Traceback (most recent call last):", '  File "/l/train/upload.py", line 31, in push', "    client.put(path)",
     '  File "/l/train/client.py", line 9, in put', "    raise TimeoutError(path)", "TimeoutError: /ckpt/metrics.json",
     "INFO upload of metrics failed, will retry at the next step"],
    ["ERROR:fsspec:exception in callback", "Traceback (most recent call last):", '  File "/l/train/cache.py", line 12, in load',
     "    return table[key]", "KeyError: 'shape'", "INFO building the cache anew"],
]

# torchrun: github.com/lmzpai/roboMamba/issues/10 and github.com/lzhxmu/CPPO/issues/6
FRAMES = ["Traceback (most recent call last):", '  File "/l/bin/torchrun", line 8, in <module>', "    sys.exit(main())",
          '  File "/l/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 355, in wrapper', "    return f(*args, **kwargs)",
          '  File "/l/torch/distributed/run.py", line 919, in main', "    run(args)",
          '  File "/l/torch/distributed/launcher/api.py", line 269, in launch_agent', "    raise ChildFailedError(",
          "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "]


def failure(rank, code):
    end = f"Signal {-code} (SIG{'KILL' if code == -9 else 'TERM'}) received by PID {4000 + rank}" if code < 0 \
        else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    return [f"[{rank % 8}]:", "  time      : 2026-11-25_12:43:03", "  host      : node-0", f"  rank      : {rank} (local_rank: {rank % 8})",
            f"  exitcode  : {code} (pid: {4000 + rank})", "  error_file: <N/A>", f"  traceback : {end}"]


def torchrun(rank, code, ranks=8, others=-15):
    told = [f"W1125 12:43:02.366000 77 torch/distributed/elastic/multiprocessing/api.py:900] Sending process {4000 + other} closing signal SIGTERM"
            for other in range(ranks) if other != rank]
    told += [f"E1125 12:43:03.620000 77 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {code}) local_rank: {rank % 8} "
             f"(pid: {4000 + rank}) of binary: /opt/conda/bin/python", *FRAMES, "=" * 60, "train.py FAILED", "-" * 60, "Failures:"]
    for other in range(ranks):
        told += failure(other, others) if other != rank else []
    return [*told, "-" * 60, "Root Cause (first observed failure):", *failure(rank, code), "=" * 60]


def mpirun(rank, signal=0):
    """github.com/horovod/horovod/issues/469 and /1421"""
    line = "-" * 74
    if signal:
        return [line, "Primary job  terminated normally, but 1 process returned", "a non-zero exit code. Per user-direction, the job has been aborted.", line, line,
                f"mpirun noticed that process rank {rank} with PID 0 on node node-0 exited on signal {signal} ({'Killed' if signal == 9 else 'Segmentation fault'}).", line]
    return [line, "Primary job  terminated normally, but 1 process returned", "a non-zero exit code. Per user-direction, the job has been aborted.", line, line,
            "mpirun detected that one or more processes exited with non-zero status, thus causing", "the job to be terminated. The first process to do so was:", "",
            f"  Process name: [[29973,1],{rank}]", "  Exit code:    1", line]


def deepspeed(rank, code, ranks=8):
    """github.com/deepspeedai/DeepSpeed/issues/5302"""
    return [*(f"[2024-03-20 20:31:29,{210 + n}] [INFO] [launch.py:315:sigkill_handler] Killing subprocess {4000 + n}" for n in range(ranks)),
            f"[2024-03-20 20:31:29,269] [ERROR] [launch.py:321:sigkill_handler] ['/opt/conda/bin/python', '-u', 'train.py', '--local_rank={rank}', "
            f"'--deepspeed', 'ds.json'] exits with return code = {code}"]


def srun(rank, how):
    """github.com/facebookresearch/ParlAI/issues/3084; slurm.schedmd.com/srun.html"""
    return ["slurmstepd: error: *** STEP 77.0 ON node-0 CANCELLED AT 2026-11-25T12:43:03 ***", f"srun: error: node-0: task {rank}: {how}",
            "srun: Terminating StepId=77.0"]


# How it dies: (name, the shell's exit, the last lines).
DEATHS = {
    "killed": lambda rank: (137, []),
    "killed-by-python": lambda rank: (247, []),
    "silent": lambda rank: (1, []),
    "terminated": lambda rank: (143, []),
    "torchrun-killed": lambda rank: (1, torchrun(rank, -9)),
    "torchrun-silent": lambda rank: (1, torchrun(rank, 1)),
    "mpirun-killed": lambda rank: (137, mpirun(rank, 9)),
    "mpirun-silent": lambda rank: (1, mpirun(rank)),
    "deepspeed-killed": lambda rank: (1, deepspeed(rank, -9)),
    "srun-killed": lambda rank: (137, srun(rank, "Killed")),
    "srun-silent": lambda rank: (1, srun(rank, "Exited with exit code 1")),
    "shell-says-killed": lambda rank: (137, ["train.sh: line 7:  4001 Killed                  python train.py --steps 2000"]),
}


def logs(count=200, seed=16):
    """(name, nodes, exit, step expression or '-', lines [(node, ms, text)])"""
    draw = random.Random(seed)
    for n in range(count):
        shape = list(SHAPES)[n % len(SHAPES)]
        death = list(DEATHS)[n % len(DEATHS)]
        regex, line = SHAPES[shape]
        known = draw.random() < 0.6  # else the spec names no step that this log has
        code, last = DEATHS[death](draw.randrange(8))
        length = draw.randrange(300, 2000)
        lines = [aside.format(n=0) for aside in draw.sample(ASIDES, 25)]
        step = 0
        while len(lines) < length - len(last):
            step += 1
            lines.append(line(step, draw))
            if draw.random() < 0.04:
                lines.append(draw.choice(ASIDES).replace("{n}", str(step)))
            if known and draw.random() < 0.002:
                lines += draw.choice(SURVIVED)
                lines += [line(step + k, draw) for k in (1, 2, 3)]
                step += 3
        yield f"{n}-{shape}-{death}", 1, code, regex if known else "-", [(0, 300 * at, text) for at, text in enumerate(lines + last)]
