"""Stand-ins for the tools that watch devices, as programs: neuron-monitor, and nvidia-smi where it watches. They print what
the real ones do, for ever."""

NEURON = """#!/usr/bin/python3
import json, os, re, sys, time
assert sys.argv[1] == "-c"
config = json.load(open(sys.argv[2]))
assert re.fullmatch("[0-9]+s", config["period"])
kinds = {metric["type"] for runtime in config["neuron_runtimes"] for metric in runtime["metrics"]}
assert kinds == {"neuroncore_counters", "memory_used"}
BUSY, BYTES = %r, %r
while True:
    cores = {str(i): {"neuroncore_utilization": busy, "flops": 0} for i, busy in enumerate(BUSY)}
    memory = {str(i): {"constants": 1000, "model_code": 0, "model_shared_scratchpad": 0, "runtime_memory": 0,
                       "tensors": BYTES} for i in range(len(BUSY))}
    print(json.dumps({"neuron_runtime_data": [{"pid": 7, "address": "", "neuron_runtime_tag": "7", "error": "", "report": {
        "neuroncore_counters": {"period": 5.0, "neuroncores_in_use": cores, "error": ""},
        "memory_used": {"period": 5.0, "neuron_runtime_used_bytes": {"host": 1, "neuron_device": BYTES,
            "usage_breakdown": {"host": {"tensors": 1}, "neuroncore_memory_usage": memory}}, "error": ""}}}],
        "system_data": {}, "instance_info": {"error": ""},
        "neuron_hardware_info": {"neuron_device_type": "trainium", "neuron_device_count": 2,
            "neuron_device_memory_size": 34359738368, "neuroncore_per_device_count": 2, "error": ""}}), flush=True)
    time.sleep(0.3)
"""

NVIDIA = """#!/usr/bin/python3
import sys, time
assert "--query-gpu=index,utilization.gpu,memory.used,memory.total" in sys.argv and "-l" in sys.argv, sys.argv
while True:
    for i, busy in enumerate(%r):
        print(f"{i}, {busy}, %d, 81559", flush=True)
    time.sleep(0.3)
"""
