"""What the containers of conform's jobs run, as `python3 -c`: CONFORM_DO says what. It prints lines of JSON behind the word
"conform". It goes on at a word from conform: an object that a presigned link reads, or writes. It ends by itself."""

import json
import os
import signal
import socket
import sys
import time
import urllib.request

BEGAN = time.time()
LONGEST = 600  # seconds


def say(**facts):
    print("conform " + json.dumps(facts), flush=True)


def text_of(name):
    """A long text comes in several variables."""
    return "".join(os.environ.get("CONFORM_%s_%d" % (name, number), "") for number in range(40))


def read(name):
    """The object, as soon as it is there."""
    while time.time() < BEGAN + LONGEST:
        try:
            return urllib.request.urlopen(text_of(name), timeout=20).read().decode()
        except OSError:
            time.sleep(0.5)
    sys.exit(77)


def write(name, text):
    urllib.request.urlopen(urllib.request.Request(text_of(name), data=text.encode(), method="PUT"), timeout=20)


def address():
    """The first address of the interface of the default route."""
    import fcntl
    import struct
    for line in open("/proc/net/route").read().splitlines()[1:]:
        if line.split()[1] == "00000000":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
                raw = fcntl.ioctl(asked.fileno(), 0x8915, struct.pack("256s", line.split()[0].encode()[:15]))
            return socket.inet_ntoa(raw[20:24])
    return "127.0.0.1"


def pair():
    """Two nodes of AWS Batch: the second one meets the first, and ends with 42; the first one ends when it is told."""
    shm = os.statvfs("/dev/shm")
    rank = os.environ.get("AWS_BATCH_JOB_NODE_INDEX")
    say(names=sorted(os.environ), given=os.environ.get("CONFORM_GIVEN"), attempt=os.environ.get("AWS_BATCH_JOB_ATTEMPT"),
        index=rank, shm=shm.f_blocks * shm.f_frsize)
    if rank == "0":
        with socket.socket() as door:
            door.bind(("", 0))
            door.listen()
            write("ADDRESS", "%s:%d" % (address(), door.getsockname()[1]))
            read("GATE")
        return 0
    host, port = read("THERE").split(":")
    try:
        socket.create_connection((host, int(port)), 20).close()
        say(met=True)
    except OSError as error:
        say(met=False, why=str(error))
    return 42


def hosts():
    """Hosts of SageMaker: what each finds. The last one waits for the first, and ends with 42."""
    path = "/opt/ml/input/config/resourceconfig.json"
    found = json.load(open(path)) if os.path.exists(path) else {}
    looked, names = {}, found.get("hosts", [])
    for name in names:
        began = time.time()
        while name not in looked:
            try:
                socket.getaddrinfo(name, None)
                looked[name] = round(time.time() - began, 1)
            except OSError:
                if time.time() > began + float(os.environ["CONFORM_PATIENCE"]):
                    looked[name] = None
                time.sleep(0.5)
    files = {}
    for base, _, each in os.walk("/opt/ml/input/data/stoker"):
        for name in each:
            path = os.path.join(base, name)
            files[os.path.relpath(path, "/opt/ml/input/data/stoker")] = os.path.getsize(path)
    say(names=sorted(os.environ), given=os.environ.get("CONFORM_GIVEN"), config=found, looked=looked, files=files,
        words=sys.argv[1:])
    if found.get("current_host") == names[0]:
        write("GATE", "go")
        return 0
    read("THERE")
    time.sleep(2)
    return 42


def waits():
    """Until it is told; 41: it was told so."""
    say(began=True)
    return int(read("GATE"))


def goes_on():
    """Through SIGTERM, and tells the time from then on."""
    signal.signal(signal.SIGTERM, lambda *_: say(asked=time.time()))
    say(began=True)
    while time.time() < BEGAN + LONGEST:
        time.sleep(0.5)
        say(now=time.time())
    return 0


def saves():
    """A file to checkpoints, where there is none; tells what there was."""
    path = "/opt/ml/checkpoints/conform"
    say(found=open(path).read() if os.path.exists(path) else None)
    with open(path, "w") as file:
        file.write(os.environ["CONFORM_SAVES"])
    return 0


def sleeps():
    say(began=True)
    time.sleep(LONGEST)
    return 0


def lines():
    for number in range(int(os.environ["CONFORM_COUNT"])):
        say(line=number, host=os.environ.get("CURRENT_HOST"))
        time.sleep(float(os.environ["CONFORM_EVERY"]))
    return 0


def ticks():
    """A line a second, of this life of the job."""
    number = 0
    while time.time() < BEGAN + float(os.environ["CONFORM_SECONDS"]):
        say(line=number, life=BEGAN)
        number += 1
        time.sleep(1)
    return 0


def killed():
    """How often the kernel has killed in this control group for want of memory; None: it does not say."""
    groups = dict(line.strip().split(":", 2)[1:] for line in open("/proc/self/cgroup"))
    for base, name, own in (("/sys/fs/cgroup/memory", "memory.oom_control", groups.get("memory")),
                            ("/sys/fs/cgroup", "memory.events", groups.get(""))):
        for path in ("%s%s/%s" % (base, own, name), "%s/%s" % (base, name)):
            if own and os.path.exists(path):
                return int(dict(line.split() for line in open(path))["oom_kill"])
    return None


def memory():
    """A child takes more than the container has, or 4 GiB."""
    before, child = killed(), os.fork()
    if not child:
        held = [b"x" * (16 << 20) for _ in range(256)]
        os._exit(len(held) and 1)
    say(before=before, ended=os.waitpid(child, 0)[1], after=killed())
    return 0


def names():
    say(names=sorted(os.environ))
    return 0


def device():
    """The accelerator that PyTorch computes on here."""
    import importlib.util
    if importlib.util.find_spec("torch_xla"):
        import torch_xla.core.xla_model
        return torch_xla.core.xla_model.xla_device()
    return "cuda:" + os.environ.get("LOCAL_RANK", "0")


def computes():
    """Products, for so many seconds."""
    import torch
    where = device()
    while time.time() < BEGAN + float(os.environ["CONFORM_SECONDS"]):
        left, right = [torch.tensor([[1.0] * 64] * 64).to(where) for _ in range(2)]
        found = (left @ right).cpu().tolist()[0][0]
        time.sleep(0.05)
    say(product=found)
    return 0 if found == 64 else 1


def trains():
    """Three steps, each with the same small graph."""
    import torch
    import torch_xla
    import torch_xla.core.xla_model
    if "RANK" in os.environ:
        import torch.distributed
        import torch_xla.distributed.xla_backend
        torch.distributed.init_process_group("xla")
    where = torch_xla.core.xla_model.xla_device()
    step_ends = getattr(torch_xla, "sync", None) or torch_xla.core.xla_model.mark_step
    say(names=sorted(os.environ))
    for step in range(3):
        left, right = [torch.tensor([[float(step + 1)] * 64] * 64).to(where) for _ in range(2)]
        product = left @ right
        step_ends()
        say(step=step, product=product.cpu().tolist()[0][0])
    return 0


def reduces():
    """A rank of torchrun: the sum of what each gives, over NCCL."""
    import torch
    import torch.distributed
    where = "cuda:" + os.environ["LOCAL_RANK"]
    torch.cuda.set_device(where)
    torch.distributed.init_process_group("nccl")
    data = torch.full((1 << 20,), float(torch.distributed.get_rank() + 1), device=where)
    torch.distributed.all_reduce(data)
    torch.cuda.synchronize()
    total = torch.distributed.get_world_size() * (torch.distributed.get_world_size() + 1) / 2
    say(sum=total if not (data.cpu() != total).sum() else -1)
    torch.distributed.destroy_process_group()
    return 0


def ends():
    say(began=True, words=sys.argv[1:])
    return int(os.environ.get("CONFORM_CODE", "0"))


DOES = {"pair": pair, "hosts": hosts, "waits": waits, "goes-on": goes_on, "saves": saves, "sleeps": sleeps, "lines": lines,
        "ticks": ticks, "memory": memory, "names": names, "computes": computes, "trains": trains,
        "reduces": reduces, "ends": ends}
sys.exit(DOES[os.environ["CONFORM_DO"]]())
