"""Tries on a live account what configs/live/rows.yaml takes for granted.

  configs/live/conform --region us-west-2 --bucket my-bucket [--role ARN] [--queue my-queue] [--rows 's3-*'] [--budget 2]
  configs/live/conform --region us-west-2 --bucket my-bucket --clean

Each row that is chosen is printed with its estimate, and the sum. Then `stoker doctor` looks at the bucket, and for rows
with jobs at a spec with queue and role: what it finds to fail ends all. It writes a probe, and removes it. Nothing else is
sent before you have said yes.

Jobs on AWS Batch go to --queue, on its smallest type, those on SageMaker take ml.m5.large and need --role; so does a job
on AWS Batch that wants a role. So the role lets sagemaker.amazonaws.com and ecs-tasks.amazonaws.com assume it, and may use
the bucket, make processing jobs and pass itself on to them. states-cause makes a state machine with --states-role, which
states.amazonaws.com assumes: it may run jobs and register definitions on AWS Batch, and has events:PutTargets, PutRule and
DescribeRule, as Step Functions wants for that. scheduler-target makes a schedule with --scheduler-role, which
scheduler.amazonaws.com assumes to submit jobs. A row whose options are missing, or that rows.yaml says is not tried, is
listed so. A row with `named: true`, such as those with accelerators, is chosen by its whole id alone. Rows on accelerators
need an --image with their tools and PyTorch, and a --queue with their type of machine; on EFA, one whose launch template
has it.

What is made is called "stoker-conform-…" (jobs of the built stoker "stk-stoker-conform-…"; those of a pipeline have the
service's names), is tagged (but a schedule, which can have no tags), and is ended and removed at the end, also after a
signal; --clean does so for what a killed one has left: of this folder's run, or without one of all runs, on --queue or all
queues. Jobs end by themselves after a quarter of an hour (that of sagemaker-again after ten hours). A repeat in the same folder
(--output) goes on where it was; batch-forgotten is judged by one that comes 8 days later. Lines in CloudWatch Logs stay. A
bucket with versions keeps those of what is removed: name one without.

The folder gets results.json and results.md, a table without account, names and ARNs.

Exit codes: 0 all that was tried is as taken; 1 a row is otherwise; 2 wrong options or rows; 4 nothing was begun (not asked,
above the budget, no access, doctor), or something could not be ended or removed; 128 and the number of a signal that ended
it.
"""

import argparse
import contextlib
import datetime
import fnmatch
import math
import signal
import subprocess
import sys
from collections import Counter

import botocore.exceptions
import clean
import jobs
import lab as labs
import results as kept
import rows
import runs
import trials_batch  # noqa: F401
import trials_devices  # noqa: F401
import trials_images  # noqa: F401
import trials_later  # noqa: F401
import trials_more  # noqa: F401
import trials_neuron  # noqa: F401
import trials_orchestrators  # noqa: F401
import trials_pipelines  # noqa: F401
import trials_requests  # noqa: F401
import trials_runs  # noqa: F401
import trials_sagemaker  # noqa: F401
import trials_spot  # noqa: F401
import trials_toolkit  # noqa: F401
from results import VERDICTS, mask

DONE, OTHERWISE, USAGE, REFUSED = 0, 1, 2, 4
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def say(text):
    print(text, flush=True)


def refuse(code, text):
    print(f"conform: {text}", file=sys.stderr)
    raise SystemExit(code)


def dollars(text):
    if not 0 <= float(text) < math.inf:
        raise ValueError
    return float(text)


def options(words):
    parser = argparse.ArgumentParser(prog="conform", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--region", required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--role", metavar="ARN", help="of jobs, and of what else is made with one")
    parser.add_argument("--queue", metavar="NAME", help="of AWS Batch, for its jobs")
    parser.add_argument("--states-role", metavar="ARN", help="of Step Functions, for its row")
    parser.add_argument("--scheduler-role", metavar="ARN", help="of EventBridge Scheduler, for its row")
    parser.add_argument("--image", metavar="URL", help=f"of jobs, with python3; default: {jobs.BATCH_IMAGE} on AWS Batch, "
                        "AWS's for PyTorch on CPUs on SageMaker, where it is published whose it is")
    parser.add_argument("--stoker-image", metavar="URL", help="with stoker in it (configs/container), for the rows that "
                        "need it, and of processing jobs")
    parser.add_argument("--rows", action="append", metavar="GLOB", help="which rows; repeatable; default: all")
    parser.add_argument("--budget", type=dollars, default=2.0, metavar="USD")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--clean", action="store_true", help="only end and remove what is left")
    parser.add_argument("--output", default="stoker-conform", metavar="FOLDER")
    parser.add_argument("--stoker", metavar="FILE", help="default: build/release/stoker")
    return parser.parse_args(words)


# ---- which rows


def chosen(live, globs):
    """The rows that the globs choose, in the file's order; a row that must be named, by its whole id alone."""
    found = [row for row in live.all if any(
        fnmatch.fnmatchcase(row["id"], glob) and (glob == row["id"] or not row["shape"].get("named")) for glob in globs)]
    for glob in globs:
        like = [row["id"] for row in live.all if fnmatch.fnmatchcase(row["id"], glob)]
        if not like:
            refuse(USAGE, f"no row is called '{glob}'")
        if not any(row["id"] in like for row in found):
            refuse(USAGE, f"'{glob}' is like rows that have to be named whole: {', '.join(like)}")
    return found


def ask_queue(lab, live, args):
    """The queue, by whose smallest type jobs are estimated; why there is none, or None."""
    if not args.queue:
        return "it needs --queue"
    try:
        lab.queue = jobs.Queue(lab, args.queue, live.machines)
    except (labs.NotTried, *clean.PROBLEMS) as error:
        return str(error)
    live.estimate["smallest"] = lab.queue.smallest
    return None


def why_not(row, args, no_queue, lab):
    """Why a row is not tried; None: it is."""
    name, shape = row["id"], row["shape"]
    if "untried" in shape:
        return shape["untried"]
    if name in labs.NEEDS_ROLE and not args.role:
        return "it needs --role"
    if name in labs.NEEDS_STATES and not args.states_role:
        return "it needs --states-role"
    if name in labs.NEEDS_SCHEDULER and not args.scheduler_role:
        return "it needs --scheduler-role"
    if not args.image and (name in labs.NEEDS_IMAGE or shape["by"] == "sagemaker" and not jobs.aws_image(args.region)):
        return "it needs --image"
    if name in labs.NEEDS_QUEUE and no_queue:
        return no_queue
    if shape["by"] == "batch" and shape.get("nodes", 1) > 1 and lab.queue.is_spot and name != "batch-spot-nodes":
        return "the queue has Spot machines alone, which run no job of several nodes"
    return None


def cost(live, row):
    """In USD, by the queue's smallest type."""
    by_queue = row["shape"]["by"] == "batch" and "type" not in row["shape"]
    return live.usd(row["shape"]) if by_queue else row["shape"]["usd"]


def estimate(live, tried, known, args):
    """Prints what it costs, and how many rows are known from an earlier run. Ends with REFUSED if that is too much, or nobody can be asked."""
    for row in tried:
        say(f"{row['id']}: {cost(live, row):.2f} USD: {row['shape']['does']}")
    usd = sum(cost(live, row) for row in tried)
    say(f"{len(tried)} rows, {usd:.2f} USD at most" + (f"; {known} are known already" if known else ""))
    if usd > args.budget:
        refuse(REFUSED, f"that is above the budget of {args.budget:.2f} USD; nothing was begun")
    if not args.yes and not sys.stdin.isatty():
        refuse(REFUSED, "without a terminal say --yes; nothing was begun")


def ask(args):
    if not args.yes and input("Begin? [y/N] ").strip().lower() not in ("y", "yes"):
        refuse(REFUSED, "nothing was begun")


# ---- before all


@contextlib.contextmanager
def heard(lab):
    """A signal ends what is under way in order."""
    before = {each: signal.signal(each, lambda number, _: setattr(lab, "ended", number)) for each in SIGNALS}
    try:
        yield
    finally:
        for each in SIGNALS:
            signal.signal(each, before[each])


def examine(lab, tried):
    """stoker's doctor. Ends with REFUSED if it finds what will fail; returns a signal's exit code, or 0."""
    engines = sorted({row["shape"]["by"] for row in tried} & set(clean.PLACES))
    try:
        with heard(lab):
            found = lab.stoker.doctor(engines)
    except labs.Ended as error:
        lab.ended = None
        remove(lab, lab.name, [])
        return 128 + error.args[0]
    except (labs.NotTried, OSError, ValueError, subprocess.SubprocessError) as error:
        refuse(REFUSED, f"doctor: {mask(str(error), lab)}; nothing was begun")
    for row in found:
        if row["state"] != "ok":
            on = f" of {row['on']}" if row.get("on") else ""
            cure = f"; cure: {row['cure']}" if row.get("cure") else ""
            say(mask(f"doctor: {row['state']}: {row['check']}{on}: {row.get('seen')}{cure}", lab))
    counts = Counter(row["state"] for row in found)
    say("doctor: " + ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    if counts["fail"]:
        refuse(REFUSED, "doctor has found what will fail; nothing was begun")
    return DONE


# ---- trying


def attempt(lab, live, row):
    """One row: what becomes of it in the results."""
    lab.ids = []
    try:
        taken, seen = labs.TRIALS[row["id"]](lab)
        verdict = VERDICTS[0] if taken else VERDICTS[1]
    except (labs.NotTried, *clean.PROBLEMS) as error:
        verdict, seen = "not tried", str(error) or type(error).__name__
    return {"verdict": verdict, "seen": mask(seen, lab), "requests": lab.ids, "at": now(), "usd": cost(live, row)}


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def try_all(lab, live, results, tried):
    """Tries the rows; returns 0, or the signal's exit code. What is left is removed in any case."""
    code = DONE
    try:
        if not results.is_new:
            clean.Clean(lab, lab.name, results.data["places"], queues_of(lab, results.data["places"]))  # of a run that was killed
        for row in tried:
            lab.go_on()
            results.data["rows"][row["id"]] = found = attempt(lab, live, row)
            results.save(live)
            say(f"{row['id']}: {found['verdict']} ({found['seen']})")
    except labs.Ended as error:
        code = 128 + error.args[0]
    except botocore.exceptions.ClientError as error:
        print(f"conform: {mask(str(error), lab)}", file=sys.stderr)
        code = REFUSED
    finally:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        lab.ended = None
        left = remove(lab, lab.name, results.data["places"])
    return code or left


def queues_of(lab, places):
    """Where it may have jobs: its queue, or all."""
    if "batch" not in places or lab.queue_name:
        return [lab.queue_name] if lab.queue_name else []
    pages = lab.client("batch").get_paginator("describe_job_queues").paginate()
    return [row["jobQueueName"] for page in pages for row in page["jobQueues"]]


def remove(lab, prefix, places):
    try:
        done = clean.Clean(lab, prefix, places, queues_of(lab, places))
        count, untold = done.count, done.untold
    except clean.PROBLEMS as error:
        count, untold = 0, [str(error)]
    if count:
        say(f"removed {count} of {prefix}…")
    for words in untold:
        print(f"conform: cannot look for what is left: {mask(words, lab)}", file=sys.stderr)
    return REFUSED if untold else DONE


def begin(args):
    """(results, lab) of these options."""
    try:
        results = kept.Results(args.output, args.region, args.bucket)
    except kept.Unusable as error:
        refuse(USAGE, error)
    try:
        lab = labs.Lab(args.region, args.bucket, results.nonce, args.role)
    except botocore.exceptions.BotoCoreError as error:
        refuse(REFUSED, f"{error}; nothing was begun")
    lab.queue_name, lab.image, lab.stoker_image = args.queue, args.image, args.stoker_image
    lab.states_role, lab.scheduler_role = args.states_role, args.scheduler_role
    lab.begun = results.data.setdefault("begun", {})
    return results, lab


def main(words):
    args = options(words)
    live = rows.Live()
    wrong = list(live.problems())
    if wrong:
        refuse(USAGE, "\n".join(wrong))
    results, lab = begin(args)
    if args.clean:
        everywhere = results.is_new
        return remove(lab, labs.PREFIX if everywhere else lab.name, clean.PLACES if everywhere else results.data["places"])
    lab.stoker = runs.Stoker(lab, args.stoker)
    try:
        version = lab.stoker.version()
    except (OSError, subprocess.CalledProcessError) as error:
        refuse(USAGE, f"cannot ask stoker for its version ({error}): build it, or name it by --stoker")
    everything = chosen(live, args.rows or ["*"])
    no_queue = ask_queue(lab, live, args) if labs.NEEDS_QUEUE & {row["id"] for row in everything} else None
    reasons = {row["id"]: why_not(row, args, no_queue, lab) for row in everything}
    tried = [row for row in everything if not reasons[row["id"]] and row["id"] not in results.done]
    for row in everything:
        if reasons[row["id"]] and row["id"] not in results.done:
            results.data["rows"][row["id"]] = {"verdict": "not tried", "seen": mask(reasons[row["id"]], lab),
                                               "requests": [], "at": now(), "usd": cost(live, row)}
    ids = {row["id"] for row in tried}
    places = {place for place, needed in (("batch", labs.NEEDS_QUEUE), ("sagemaker", labs.NEEDS_ROLE), (
        "states", labs.NEEDS_STATES), ("scheduler", labs.NEEDS_SCHEDULER)) if needed & ids}
    results.data.update(date=now()[:10], stoker=version,
                        places=sorted(places | set(results.data["places"])))
    estimate(live, tried, sum(row["id"] in results.done for row in everything), args)
    if tried and (code := examine(lab, tried)):
        return code
    ask(args)
    try:
        lab.location()
    except clean.PROBLEMS as error:
        refuse(REFUSED, f"no access to the bucket: {mask(str(error), lab)}; nothing was begun")
    with heard(lab):
        results.save(live)  # before the first object: --clean knows its name
        code = try_all(lab, live, results, tried)
    if lab.has_versions:
        say(f"the bucket keeps versions of what was removed, below {lab.name}/")
    say(f"{results.path.with_name('results.md')}: the table; {sum(map(bool, reasons.values()))} rows were not tried")
    if code:
        return code
    return OTHERWISE if any(row["verdict"] == VERDICTS[1] for row in results.data["rows"].values()) else DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
