"""Prints the log of a published measurement, line by line as the program that was measured prints
it, CLOCK times as fast. Which log that is, the settings of the run say, as they did then; repeats
differ by SPREAD, one to each side."""

import argparse
import os
import sys
import time

CLOCK = 20
SPREAD = 1.002

parser = argparse.ArgumentParser()
parser.add_argument("ladder")
for name in ("batch_size", "num_workers", "num_cores", "per_device_train_batch_size", "num_train_epochs"):
    parser.add_argument(f"--{name}", type=int)
parser.add_argument("--learning_rate", type=float)
args = parser.parse_args()

# Samples/s by compiler flag, batch, workers, cores, pinned memory and bfloat16. The first and the
# last are as published, and so are the kinds of rows; the others lie between.
TUNING = {
    ("", 16, 0, 1, 0, 0): 252.0,
    ("--optlevel=1", 16, 0, 1, 0, 0): 252.0 * 0.74,
    ("--model-type=transformer", 16, 0, 1, 0, 0): 252.2,
    ("--model-type=transformer", 16, 4, 1, 0, 0): 301.0,
    ("--model-type=transformer", 16, 4, 2, 0, 0): 480.0,
    ("--model-type=transformer", 32, 4, 2, 0, 0): 618.0,
    ("--model-type=transformer", 32, 4, 2, 1, 0): 634.0,
    ("--model-type=transformer", 32, 4, 2, 1, 1): 969.0,
    ("--model-type=transformer", 64, 4, 2, 1, 1): 1093.0,
}
# Seconds of a step by number of nodes and whether it is the second machine; samples of a node.
MACHINES = {(1, False): 0.41, (1, True): 0.199, (2, False): 0.4227, (4, False): 0.4556}
NODE_SAMPLES = 256
# Of each epoch the loss and the learning rate; seconds in all, and samples.
COMPILER = {10: ([3.25, 2.9, 2.75], [6.25e-05, 4.1666666666666665e-05, 0.0], 1402.7),
            22: ([3.31, 2.94, 2.77], [0.0001375, 9.166666666666667e-05, 0.0], 958.4)}
SAMPLES = 13902


def side() -> float:
    """The factor of this repeat: the runs of a cell are called SWEEP-CELL-REPEAT."""
    return SPREAD if os.environ["STOKER_RUN"].endswith("1") else 1 / SPREAD


def wait(seconds: float) -> None:
    sys.stdout.flush()
    time.sleep(seconds / CLOCK)


def tuning() -> None:
    flags = os.environ.get("NEURON_CC_FLAGS", "")
    if flags == "--enable-fp8":
        sys.exit("ERROR: [NCC_EARG001] option --enable-fp8 is not supported on this target")
    rate = side() * TUNING[flags, args.batch_size, args.num_workers, args.num_cores,
                           int(os.environ.get("PJRT_PINNED", "0")), int(os.environ.get("XLA_USE_BF16", "0"))]
    summ = count = 0
    for idx in range(1, 31):
        # The first ones compile and fill queues; the others swing about their mean.
        batch_time = args.batch_size * args.num_cores / rate * (3 if idx <= 10 else 1.05 if idx % 2 else 0.95)
        wait(batch_time)
        print(f"step: {idx}: step time is {batch_time}")
        if idx > 10:
            summ += batch_time
            count += 1
    print(f"average step time: {summ/count}")
    print(f"throughput: {count*args.batch_size*args.num_cores/summ}")


def machines() -> None:
    nodes = int(os.environ["STOKER_NODES"])
    step_time = MACHINES[nodes, "p5" in os.environ.get("MACHINE", "")]
    wait(10 * step_time)
    print(f"average step time: {step_time}")
    print(f"throughput: {nodes * NODE_SAMPLES / step_time}")


def compiler() -> None:
    losses, rates, runtime = COMPILER[args.per_device_train_batch_size]
    assert rates[0] == args.learning_rate == 5e-5 / 32 * args.per_device_train_batch_size * 4
    for epoch, (loss, rate) in enumerate(zip(losses, rates), 1):
        wait(runtime / len(losses) / 50)
        print({"loss": loss, "learning_rate": rate, "epoch": float(epoch)})
    speed = round(SAMPLES * args.num_train_epochs / runtime, 3)
    print({"train_runtime": runtime, "train_samples_per_second": speed, "epoch": float(args.num_train_epochs)})
    print("***** train metrics *****")
    for name, value in (("epoch", float(args.num_train_epochs)), ("train_runtime", runtime),
                        ("train_samples_per_second", speed)):
        print(f"  {name:<24} = {value:>10}")


{"tuning": tuning, "machines": machines, "compiler": compiler}[args.ladder]()
sys.stdout.flush()
