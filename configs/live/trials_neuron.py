"""How the rows of configs/live/rows.yaml on Neuron's compile cache are tried: a run of the built stoker through both phases
with a small graph, whose cache in S3 the SDK lists meanwhile and afterwards. By their names alone, in an image that has
torch-neuronx; for SageMaker's toolkit, one that has that too."""

import contextlib
import email.utils
import re

import botocore.exceptions
from jobs import facts
from lab import NotTried, shared, trial
from trials_runs import URI

KEYS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE"}
NO_KEYS = re.compile(r"NoCredentials\w*|Unable to locate credentials|InvalidAccessKeyId|ExpiredToken\w*")
TOOK = re.compile(r'"compile_time": ([0-9.]+)')
STARTS = re.compile(r"Invoking script with the following command:\s*(\S.*)")
HIT = re.compile(r"Using a cached neff at \S*/(MODULE_[^/\s]+)/")
INPUTS = {"model.hlo_module.pb", "model.hlo_module.pb.gz"}
EVERY = 30  # listings in the time for which is watched
MARGIN = 2  # seconds: times of S3 are whole ones


class Compiled:
    """The run, as its events and logs tell of it, and what S3 has listed: (S3's time, {name below the cache: its time})."""

    def __init__(self, lab, engine, kind, **more):
        self.lab, self.name, self.prefix = lab, f"{lab.name}-{engine[0]}neuron", f"{lab.name}/cache-{engine}/"
        spec = lab.stoker.spec(engine, "trains", kind, compile={
            "kind": "neuron", "cache_url": f"s3://{lab.bucket}/{self.prefix}", "quiet_period": "2s"}, **more)
        self.plan, _ = lab.stoker.ask("plan", spec)
        driver, self.seen = lab.stoker.start(spec, self.name), []
        self.said, self.code = lab.stoker.ended(driver, self.look, lab.watch / EVERY), driver.returncode
        _, self.last = self.listed()
        self.events = lab.stoker.ask("events", self.name)[0]
        self.logs = {phase: lab.stoker.text("logs", self.name, "--phase", phase) for phase in ("precompile", "train")}
        self.log = self.logs["precompile"]

    def listed(self):
        at, found = 0, {}
        for page in self.lab.s3.get_paginator("list_objects_v2").paginate(Bucket=self.lab.bucket, Prefix=self.prefix):
            at = email.utils.parsedate_to_datetime(page["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()
            found |= {row["Key"].removeprefix(self.prefix): row["LastModified"].timestamp() for row in page.get("Contents", [])}
        return at, {name: time for name, time in found.items() if not name.startswith("stoker/")}

    def look(self):
        """Ids of listings that show nothing new are not kept."""
        with contextlib.suppress(botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
            count = len(self.lab.ids)
            self.seen.append(self.listed())
            if len(self.seen) > 1 and self.seen[-2][1] == self.seen[-1][1]:
                del self.lab.ids[count:]

    def graphs(self):
        """{folder: {name: its time}} at the end."""
        found = {}
        for path, time in self.last.items():
            folder, _, name = path.rpartition("/")
            if "MODULE_" in folder:
                found.setdefault(folder, {})[name] = time
        return found

    def compiled(self):
        """The same; NotTried if there is none, or the compiler has refused one."""
        found = self.graphs()
        if not found:
            raise NotTried(f"there is no graph in the cache; {self.words()}")
        if any("model.log" in names for names in found.values()):
            raise NotTried(f"the compiler has refused the graph; {self.words()}")
        return found

    def variables(self):
        """Of the command, as it prints them; none, if others have cut its lines."""
        try:
            return {name for each in facts(self.log.splitlines()) for name in each.get("names", [])}
        except ValueError:
            return set()

    def of(self, event):
        return [row for row in self.events if row.get("event") == event]

    def words(self):
        ends = [f"{row['phase']} ended as {row['class']}" for row in self.of("attempt.ended")]
        last = " ".join(self.said.strip().splitlines()[-1:])
        return ", ".join(ends or [last]) + f"; stoker run ended with {self.code}"


RUN = shared(lambda lab: Compiled(lab, "batch", "inf2.xlarge"))


@trial("neuron-cache-role", role=True, queue=True, image=True)
def neuron_cache_role(lab):
    """With keys in the environment, or without the service's variable, nothing can be said of it."""
    run = RUN(lab)
    has = run.variables()
    if not any(URI.fullmatch(name) for name in has) or has & KEYS:
        raise NotTried(f"the command has {', '.join(sorted(has & KEYS)) or 'no address of keys'}; {run.words()}")
    if found := run.graphs():
        return True, f"{len(found)} graphs in the cache; {run.words()}"
    if match := NO_KEYS.search(run.log):
        return False, f"{match[0]}; {run.words()}"
    raise NotTried(f"there is no graph in the cache, and no word of keys in the log; {run.words()}")


@trial("neuron-cache-names", role=True, queue=True, image=True)
def neuron_cache_names(lab):
    run = RUN(lab)
    fine = all({"model.neff", "model.done"} <= names.keys() and INPUTS & names.keys() and
               names["model.done"] >= max(time for name, time in names.items() if name == "model.neff" or name in INPUTS)
               for names in run.compiled().values())
    shown = "; ".join(", ".join(f"{name} {time - min(names.values()):+.0f} s" for name, time in sorted(names.items()))
                      for names in run.graphs().values())
    return fine, f"{shown}; {run.words()}"


@trial("neuron-cache-locks", role=True, queue=True, image=True)
def neuron_cache_locks(lab):
    """Without a lock in sight, only what was listed while the compiler ran tells something: until the compiled graph was
    written, for so long as the front-end has told."""
    run = RUN(lab)
    done = [names["model.neff"] for names in run.compiled().values() if "model.neff" in names]
    held = {name for _, names in run.seen for name in names if name.endswith(".lock")}
    left = [name for name in run.last if name.endswith(".lock")]
    if held:
        return not left, f"{', '.join(sorted(name.rpartition('/')[2] for name in held))}; {len(left)} left; {run.words()}"
    took = [float(text) for text in TOOK.findall(run.log)]
    if len(took) != 1 or len(done) != 1:
        raise NotTried(f"no lock was seen, and the log does not tell how long the compiler ran; {run.words()}")
    within = [names for at, names in run.seen if done[0] - took[0] + MARGIN <= at <= done[0] - MARGIN]
    if not within:
        raise NotTried(f"the compiler ran for {took[0]:.1f} s, too short for a listing; {run.words()}")
    names = sorted({name.rpartition("/")[2] for listed in within for name in listed})
    return False, f"{len(within)} listings while the compiler ran have {', '.join(names)}; {run.words()}"


@trial("neuron-words", role=True, queue=True, image=True)
def neuron_words(lab):
    """As stoker's events count them."""
    run = RUN(lab)
    count, verified = len(run.compiled()), run.of("cache.verified")
    if not verified:
        raise NotTried(f"the cache was not verified; {run.words()}")
    misses = verified[-1].get("sources", {}).get("log", {}).get("misses", 0)
    words = f"the cache has {count} graphs, of {misses} phase 1 says that they were compiled"
    if misses != count:
        return False, f"{words}; {run.words()}"
    if not [row for row in run.of("attempt.ended") if row["phase"] == "train"]:
        raise NotTried(f"{words}; there was no phase 2; {run.words()}")
    compiled = sum(row["graphs"] for row in run.of("jit.compiled")[-1:])
    found = {folder.rpartition("/")[2] for folder in run.compiled()} & set(HIT.findall(run.logs["train"]))
    return compiled == 0 and len(found) == count, f"{words}; phase 2: {compiled} compiled, {len(found)} found; {run.words()}"


@trial("toolkit-command", role=True, image=True)
def toolkit_command(lab):
    run = Compiled(lab, "sagemaker", "trn1.2xlarge", sagemaker={"launcher": "toolkit"})
    planned = [" ".join(each["command"]) for row in run.plan[-1:] for each in row.get("phases", [])
               if each["phase"] == "precompile"]
    started = [text.strip() for text in STARTS.findall(run.log)]
    if not planned or not started:
        raise NotTried(f"{'the log names no command' if planned else 'there is no plan'}; {run.words()}")
    words = f"phase 1 starts {started[0]}"
    if started != planned:
        return False, f"{words}, and not {planned[0]}; {run.words()}"
    return True, f"{words}; {len(run.compiled())} graphs in the cache; {run.words()}"
