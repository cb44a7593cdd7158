"""What runs in SageMaker's own PyTorch containers in script mode, as sagemaker-training 4.8.1 and
sagemaker-pytorch-training 2.8 do it: the source unpacked, hyperparameters as arguments and
variables, torchrun through a shell with neuron_parallel_compile in front of it where
RUN_NEURON_PARALLEL_COMPILE is "1", its lines passed on, its failure told in a file.

Only modules of Python itself: it is started without site packages."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile

OPT_ML = "/opt/ml" if os.path.isfile("/opt/ml/input/config/hyperparameters.json") else os.environ["OPT_ML"]
MASTER_PORT = "7777"
EFA = ("ml.p4d.24xlarge", "ml.p4de.24xlarge", "ml.p5.48xlarge", "ml.trn1.32xlarge")
ERRORS = ("Error", "error", "Exception", "FAILED")


class ClientError(Exception):
    """The user's fault: its words become the failure."""


def say(text, level="INFO"):
    print(f"sagemaker-training-toolkit {level:8} {text}", flush=True)


def config(name):
    with open(os.path.join(OPT_ML, "input/config", f"{name}.json"), encoding="utf-8") as file:
        return json.load(file)


def hyperparameters():
    found = {}
    for name, text in config("hyperparameters").items():
        try:
            found[name] = json.loads(text)
        except ValueError:
            say(f"Failed to parse hyperparameter {name} value {text} to Json.\nReturning the value itself")
            found[name] = text
    return found


def arguments(values):
    """Sorted by name; a name of one letter has one dash."""
    words = []
    for name in sorted(values):
        words += [f"--{name}" if len(name) > 1 else f"-{name}", "" if values[name] is None else str(values[name])]
    return words


def unpack(code):
    if os.listdir(code):
        return
    packed = os.path.join(OPT_ML, "input/submit.tar.gz")
    if not os.path.exists(packed):
        raise RuntimeError("An error occurred (404) when calling the HeadObject operation: Not Found")
    with tarfile.open(packed, "r:gz") as archive:
        archive.extractall(code, filter="data")


def neurons():
    found = shutil.which("neuron-ls")
    if not found:
        return 0
    done = subprocess.run([found, "-j"], capture_output=True, text=True, check=False)
    return sum(device["nc_count"] for device in json.loads(done.stdout)) if done.returncode == 0 else 0


def environment(values, framework, resource, cores):
    """The variables of the toolkit that scripts go by."""
    data = os.path.join(OPT_ML, "input/data")
    channels = sorted(os.listdir(data))
    told = {"SM_HOSTS": json.dumps(resource["hosts"]), "SM_CURRENT_HOST": resource["current_host"],
            "SM_CURRENT_INSTANCE_TYPE": resource.get("current_instance_type") or "",
            "SM_NETWORK_INTERFACE_NAME": resource["network_interface_name"],
            "SM_HPS": json.dumps(values, sort_keys=True, separators=(",", ":")),
            "SM_FRAMEWORK_PARAMS": json.dumps(framework, sort_keys=True, separators=(",", ":")),
            "SM_USER_ENTRY_POINT": framework["sagemaker_program"], "SM_MODEL_DIR": os.path.join(OPT_ML, "model"),
            "SM_OUTPUT_DATA_DIR": os.path.join(OPT_ML, "output/data"), "SM_CHANNELS": json.dumps(channels),
            "SM_RESOURCE_CONFIG": json.dumps(resource), "SM_NUM_NEURONS": str(cores), "SM_NUM_GPUS": "0",
            "SM_NUM_CPUS": str(os.cpu_count()), "SM_MASTER": resource["hosts"][0],
            "MASTER_ADDR": resource["hosts"][0], "MASTER_PORT": MASTER_PORT,
            "NCCL_SOCKET_IFNAME": resource["network_interface_name"], "NCCL_PROTO": "simple"}
    told |= {f"SM_CHANNEL_{name.upper()}": os.path.join(data, name) for name in channels}
    told |= {f"SM_HP_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
             for name, value in values.items()}
    if resource.get("current_instance_type") in EFA:
        told |= {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "RDMAV_FORK_SAFE": "1"}
    return told


def launcher(program, code, framework, resource, cores):
    """The words in front of the program."""
    if program.endswith(".sh") or not program.endswith(".py"):
        raise ClientError("Unsupported entry point type for torch_distributed")
    if os.path.exists(os.path.join(code, "setup.py")):
        raise ClientError("Python packages are not supported for torch_distributed. Please use a python script as "
                          "the entry-point")
    if not framework.get("sagemaker_torch_distributed_enabled"):
        return ["python3", program]
    hosts = resource["hosts"]
    words = ["neuron_parallel_compile"] if os.environ.get("RUN_NEURON_PARALLEL_COMPILE") == "1" else []
    words += ["torchrun", "--nnodes", str(len(hosts)), "--nproc_per_node", str(cores or 1)]
    if len(hosts) > 1:
        words += ["--master_addr", hosts[0], "--master_port", MASTER_PORT,
                  "--node_rank", str(hosts.index(resource["current_host"]))]
    return [*words, program]


def pass_on(stream):
    """Piece by piece as they come, which may cut a line in two; what looks like an error is kept."""
    kept = []
    while piece := os.read(stream.fileno(), 65536):
        for line in piece.decode("utf-8", "replace").strip().split("\n"):
            print(line, flush=True)
            if (kept or any(error in line for error in ERRORS)) and f"{line}\n" not in kept:
                kept.append(f"{line.strip(' :')}\n")
    return " ".join(kept).strip()


def run(words, code):
    child = subprocess.Popen(" ".join(words), shell=True, cwd=code, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
    output = pass_on(child.stdout)
    status = child.wait()
    if status:
        raise ClientError(f'ExecuteUserScriptError:\nExitCode {status}\nErrorMessage "{output}"\n'
                          f'Command "{" ".join(words)}"')


def train():
    values, resource = hyperparameters(), config("resourceconfig")
    framework = {name: values.pop(name) for name in list(values) if name.startswith("sagemaker_")}
    code, cores = os.path.join(OPT_ML, "code"), neurons()
    for host in resource["hosts"]:
        socket.gethostbyname(host) if OPT_ML == "/opt/ml" else None
    unpack(code)
    os.environ.update(environment(values, framework, resource, cores))
    words = launcher(framework["sagemaker_program"], code, framework, resource, cores) + arguments(values)
    say("Invoking TorchDistributed...")
    say(f"Invoking script with the following command:\n\n{' '.join(words)}\n")
    run(words, code)
    say("Reporting training SUCCESS")


def main():
    sys.stdout.reconfigure(line_buffering=True)
    try:
        train()
        return 0
    except ClientError as error:
        failure = str(error)
    except Exception as error:  # noqa: BLE001 — the toolkit's own: whatever it is
        failure = f"Framework Error: \n{error}"
    with open(os.path.join(OPT_ML, "output/failure"), "w", encoding="utf-8") as file:
        file.write(failure)
    say("Reporting training FAILURE", "ERROR")
    say(re.sub(r"\n+", "\n", failure), "ERROR")
    return 1


sys.exit(main())
