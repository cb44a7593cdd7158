"""One job of AWS Batch from SUBMITTED to its end: what is run, how often, on how many
nodes, and what Describe says meanwhile."""

import json
import re
import time
import uuid

from standin import containers, ecs, given, hosts, processes
from standin.errors import Refusal

GROUP = "/aws/batch/job"
ATTEMPTS = 10
OVER = ("SUCCEEDED", "FAILED")


def wrong(message):
    return Refusal("ClientException", f"Error executing request, Exception : {message}", 400)


def now():
    return int(time.time() * 1000)


# What a request may say

def containers_of(definition):
    if "containerProperties" in definition:
        yield definition["containerProperties"]
    if "ecsProperties" in definition:
        yield from ecs.containers_of(definition["ecsProperties"])
    for each in definition.get("nodeProperties", {}).get("nodeRangeProperties", []):
        if "container" in each:
            yield each["container"]
        if "ecsProperties" in each:
            yield from ecs.containers_of(each["ecsProperties"])


def overrides_of(request):
    yield request.get("containerOverrides", {})
    for each in request.get("nodeOverrides", {}).get("nodePropertyOverrides", []):
        yield each.get("containerOverrides", {})


def check_environment(pairs):
    for each in pairs:
        if each.get("name", "").startswith("AWS_BATCH"):
            raise wrong("environment variables must not start with AWS_BATCH")


def check_retries(strategy):
    if strategy and not 1 <= strategy.get("attempts", 0) <= ATTEMPTS:
        raise wrong(f"attempts must be between 1 and {ATTEMPTS}")
    rules = strategy.get("evaluateOnExit", [])
    if len(rules) > 5:
        raise wrong("at most 5 evaluateOnExit")
    for rule in rules:
        for name in ("onStatusReason", "onReason", "onExitCode"):
            letters = r"\d{1,512}\*?|\*" if name == "onExitCode" else r"[\w.:\s]{0,511}\*?"
            if name in rule and not re.fullmatch(letters, rule[name], re.ASCII):
                raise wrong(f"{name} '{rule[name]}' is not a valid pattern")


def check_timeout(timeout):
    if timeout and timeout.get("attemptDurationSeconds", 60) < 60:
        raise wrong("attemptDurationSeconds must be at least 60")


def bounds(text, count):
    """(first, last) of "0:3", ":n", "n:", "n"."""
    first, colon, last = text.partition(":")
    low = int(first or 0)
    return low, (int(last) if last else count - 1) if colon else low


def check_ranges(properties):
    count, covered = properties["numNodes"], set()
    for each in properties["nodeRangeProperties"]:
        low, high = bounds(each["targetNodes"], count)
        covered |= set(range(low, min(high, count - 1) + 1))
    if covered != set(range(count)) or not 0 <= properties["mainNode"] < count:
        raise wrong("node ranges must cover all nodes, and the main node is one of them")


def like(pattern, text):
    return pattern is None or (text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern)


def passes(job, wanted):
    values = wanted["values"]
    if wanted["name"] == "JOB_NAME":
        return any(like(value.lower(), job.name.lower()) for value in values)
    if wanted["name"] == "JOB_DEFINITION":
        return any(like(value, job.definition["jobDefinitionName"]) or value == job.definition["jobDefinitionArn"]
                   for value in values)
    if wanted["name"] == "SHARE_IDENTIFIER":
        return job.request.get("shareIdentifier") in values
    if wanted["name"] in ("BEFORE_CREATED_AT", "AFTER_CREATED_AT"):
        before = wanted["name"].startswith("BEFORE")
        return (job.created < int(values[0])) if before else (job.created > int(values[0]))
    raise wrong(f"no filter {wanted['name']}")


class Job:
    """A job, a node of one, or an element of an array."""

    def __init__(self, call, state, request, definition, queue, parent=None, suffix=""):
        self.front, self.floor, self.state, self.call = call.front, call.front.floor, state, call
        self.region, self.account = call.region, call.who.account
        self.request, self.definition, self.queue, self.parent = request, definition, queue, parent
        self.id = (parent.id if parent else str(uuid.uuid4())) + suffix
        self.number = int(suffix[1:]) if suffix else 0
        self.name, self.arn = request["jobName"], f"arn:aws:batch:{self.region}:{self.account}:job/{self.id}"
        self.status, self.reason, self.created = "SUBMITTED", None, now()
        self.started = self.stopped = self.stream = self.code = self.container_reason = None
        self.attempts, self.ending, self.process, self.lost = [], None, None, None  # `lost`: what is said of its machine
        self.plan = call.fault if call.fault and call.fault.kind.startswith("job_") else None
        self.children, self.nodes, self.size = [], 0, 0
        if parent is None:
            self.nodes = request.get("nodeOverrides", {}).get("numNodes") or definition.get(
                "nodeProperties", {}).get("numNodes", 0)
            self.size = request.get("arrayProperties", {}).get("size", 0)
            mark = "#" if self.nodes else ":"
            self.children = [Job(call, state, request, definition, queue, self, f"{mark}{number}")
                             for number in range(self.nodes or self.size)]

    # What is told

    def summary(self):
        fields = {"jobId": self.id, "jobArn": self.arn, "jobName": self.name, "createdAt": self.created,
                  "status": self.status, "jobDefinition": self.definition["jobDefinitionArn"]}
        reason = self.ending[0] if self.ending and self.reason is None and not self.parent else self.reason
        for name, value in (("statusReason", reason), ("startedAt", self.started), ("stoppedAt", self.stopped)):
            if value is not None:
                fields[name] = value
        if self.code is not None:
            fields["container"] = {"exitCode": self.code}
        return fields

    def describe(self):
        fields = self.summary() | {
            "jobQueue": self.queue, "attempts": self.attempts, "dependsOn": self.request.get("dependsOn", []),
            "parameters": {**self.definition.get("parameters", {}), **self.request.get("parameters", {})},
            "tags": self.request.get("tags", {}), "platformCapabilities": ["EC2"], "isCancelled": False,
            "isTerminated": False, "startedAt": self.started or 0}
        strategy = self.request.get("retryStrategy") or self.definition.get("retryStrategy")
        if strategy:
            fields["retryStrategy"] = strategy
        timeout = self.request.get("timeout") or self.definition.get("timeout")
        if timeout:
            fields["timeout"] = timeout
        if self.ending:
            fields["isCancelled" if self.ending[1] == "cancelled" else "isTerminated"] = True
        if self.nodes:
            fields["nodeProperties"] = {**self.definition["nodeProperties"], "numNodes": self.nodes}
        elif self.parent and self.parent.nodes:
            fields["nodeDetails"] = {"nodeIndex": self.number,
                                     "isMainNode": self.number == self.definition["nodeProperties"]["mainNode"]}
        if self.size:
            counts = {}
            for child in self.children:
                counts[child.status] = counts.get(child.status, 0) + 1
            fields["arrayProperties"] = {"size": self.size, "statusSummary": counts}
        elif self.parent and self.parent.size:
            fields["arrayProperties"] = {"index": self.number}
        if not self.nodes and self.task():
            fields["ecsProperties"] = ecs.detail(self.task(), self)
            fields.pop("container", None)
        elif not self.nodes:
            fields["container"] = self.container()
        return fields

    def group(self):
        """What the definition says to this node."""
        if "nodeProperties" not in self.definition:
            return self.definition
        count = self.parent.nodes if self.parent else self.nodes
        chosen = {}
        for each in self.definition["nodeProperties"]["nodeRangeProperties"]:
            low, high = bounds(each["targetNodes"], count)
            if low <= self.number <= high:
                chosen = each
        return chosen

    def task(self):
        """Its ecsProperties; None: it has one container."""
        return self.group().get("ecsProperties")

    def container(self):
        properties = self.properties()
        fields = {name: value for name, value in properties.items() if name != "command"}
        fields["command"] = self.command(properties)
        for name, value in (("exitCode", self.code), ("logStreamName", self.stream),
                            ("reason", self.container_reason)):
            if value is not None:
                fields[name] = value
        if self.stream:
            fields["containerInstanceArn"] = hosts.arn_of(self)
            fields["taskArn"] = f"arn:aws:ecs:{self.region}:{self.account}:task/{self.stream.rpartition('/')[2]}"
        return fields

    def properties(self):
        """The container's properties, with what was overridden."""
        if "nodeProperties" in self.definition:
            count = self.parent.nodes if self.parent else self.nodes
            chosen = self.group().get("container", {})
            said = [each for each in self.request.get("nodeOverrides", {}).get("nodePropertyOverrides", [])
                    if bounds(each["targetNodes"], count)[0] <= self.number <= bounds(each["targetNodes"], count)[1]]
        else:
            chosen, said = self.definition.get("containerProperties", {}), [self.request]
        changes = [each.get("containerOverrides", {}) for each in said]
        if self.task():
            chosen = ecs.main_of(self.task())
            changes = [ecs.changes_of(self.task(), each.get("ecsPropertiesOverride", {})) for each in said]
        merged = dict(chosen)
        for change in changes:
            merged |= {name: value for name, value in change.items()
                       if name not in ("environment", "resourceRequirements")}
            for field, key in (("environment", "name"), ("resourceRequirements", "type")):
                rows = {each[key]: each for each in merged.get(field, [])}
                rows |= {each[key]: each for each in change.get(field, [])}
                merged[field] = list(rows.values())
        return merged

    def command(self, properties):
        values = {**self.definition.get("parameters", {}), **self.request.get("parameters", {})}
        return [values.get(word[5:], word) if word.startswith("Ref::") else word
                for word in properties.get("command", [])]

    # What happens

    def ask_to_end(self, reason, how):
        if not (self.ending and self.front.settings["first_reason"]):
            self.ending = (reason, how)  # which of several reasons counts is not documented
        for child in self.children:
            if child.status not in OVER:
                child.ask_to_end(reason, how)

    def ended(self):
        return self.ending or self.floor.ended

    def run(self):
        try:
            self.life()
        except Exception as error:  # noqa: BLE001 — a service does not die of a job
            self.front.broke()
            self.end("FAILED", f"the stand-in broke: {error}")

    def end(self, status, reason=None):
        self.status, self.reason, self.stopped = status, reason, now()

    def pause(self, is_over):
        began = time.monotonic()
        while not is_over(began) and not self.ended():
            time.sleep(0.02)

    def life(self):
        if not self.wait_for_others():
            return
        # ECS's own limit, which Batch does not look at before.
        for each in (self.request, *self.request.get("nodeOverrides", {}).get("nodePropertyOverrides", [])):
            for name in ("containerOverrides", "ecsPropertiesOverride"):
                most = self.front.settings["most_overrides"]
                if len(json.dumps(each.get(name, {}))) > most:
                    self.end("FAILED", f"Container Overrides length must be at most {most}")
                    return
        self.status = "RUNNABLE"
        self.pause(lambda began: time.monotonic() - began >= self.front.settings["job_seconds"])
        if self.vcpus() > self.front.settings["most_vcpus"]:
            self.reason = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement (vCPU/memory/GPU) is " \
                          "higher than that of the CE(s) attached to the job queue."
            self.pause(lambda _: False)
        if self.nodes > 1 and self.is_spot() and not self.front.settings["spot_nodes"]:
            self.pause(lambda _: False)
        if self.plan and self.plan.kind == "job_pending":
            self.reason = self.plan.fields.get("reason", "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - no capacity")
            self.pause(self.plan.is_over)
            self.reason = None
        if self.size:
            self.status = "PENDING"
            self.run_children()
            return
        strategy = self.request.get("retryStrategy") or self.definition.get("retryStrategy") or {}
        forced = self.front.settings["batch_attempts"]
        attempts = forced or strategy.get("attempts", 1)
        for number in range(1, attempts + 1):
            if self.ended():
                break
            self.status = "STARTING"
            (self.run_nodes if self.nodes else self.attempt)(number)
            if self.code == 0 or self.ended() or not (forced or self.again(strategy)):
                break
            if number < attempts:
                self.status = "RUNNABLE"
        if self.ending:
            self.end("FAILED", self.ending[0])
        else:
            failed = self.front.settings["any_node_fails"] and any(child.code for child in self.children)
            self.end("SUCCEEDED" if self.code == 0 and not failed else "FAILED", self.reason)

    def is_spot(self):
        """Whether its queue has Spot machines alone."""
        order = self.state.queues[self.queue.rpartition("/")[2]]["computeEnvironmentOrder"]
        rows = [self.state.environments[each["computeEnvironment"].rpartition("/")[2]] for each in order]
        return all(row.get("computeResources", {}).get("type") == "SPOT" for row in rows)

    def vcpus(self):
        return max([float(each["value"]) for each in self.properties().get("resourceRequirements", [])
                    if each["type"] == "VCPU"], default=0)

    def limit(self, properties):
        """MiB of its container; 0: it may have as many as it likes. The stand-ins of tests take more than the real tools."""
        asked = max([int(each["value"]) for each in properties.get("resourceRequirements", []) if each["type"] == "MEMORY"],
                    default=0)
        return asked if asked <= self.front.settings["most_limited"] else 0

    def wait_for_others(self):
        parents = [self.state.jobs[each["jobId"]] for each in self.request.get("dependsOn", []) if "jobId" in each]
        while parents and not self.ended():
            self.status = "PENDING"
            if any(parent.status == "FAILED" for parent in parents):
                self.end("FAILED", "Dependent Job failed")
                return False
            if all(parent.status == "SUCCEEDED" for parent in parents):
                return True
            time.sleep(0.02)
        if self.ended():
            self.end("FAILED", self.ending[0] if self.ending else "the stand-in ends")
            return False
        return True

    def run_children(self):
        for child in self.children:
            child.request = {name: value for name, value in self.request.items() if name != "dependsOn"}
            self.floor.start(child.run)
        while not all(child.status in OVER for child in self.children):
            time.sleep(0.02)
        failed = any(child.status == "FAILED" for child in self.children)
        self.end("FAILED" if failed else "SUCCEEDED", "Array Child Job failed" if failed else None)

    def again(self, strategy):
        if self.reason == "Job attempt duration exceeded timeout":
            return False
        for rule in strategy.get("evaluateOnExit", []):
            if like(rule.get("onStatusReason"), self.reason or "") and like(
                    rule.get("onReason"), self.container_reason or "") and like(
                    rule.get("onExitCode"), str(self.code if self.code is not None else "")):
                return rule["action"].upper() == "RETRY"
        return True

    def launch(self, attempt, **more):
        """Start the container; its log stream is known from here on."""
        properties = self.properties()
        task = uuid.uuid4().hex
        self.stream = f"{self.definition['jobDefinitionName']}/default/{task}"
        env = {"AWS_EXECUTION_ENV": "AWS_ECS_EC2"}
        env |= {each["name"]: each.get("value", "") for each in properties.get("environment", [])}
        # So many GPUs the tools in its image show.
        env |= {"STANDIN_GPUS": str(int(each["value"]) + self.front.settings["more_gpus"])
                for each in properties.get("resourceRequirements", []) if each["type"] == "GPU"}
        env |= {"AWS_BATCH_JOB_ID": self.id, "AWS_BATCH_JOB_ATTEMPT": str(attempt), "AWS_BATCH_CE_NAME": "standin",
                "AWS_BATCH_JQ_NAME": self.queue.rpartition("/")[2], **more}
        if self.parent and self.parent.size:
            env |= {"AWS_BATCH_JOB_ARRAY_INDEX": str(self.number), "AWS_BATCH_JOB_ARRAY_SIZE": str(self.parent.size)}
        self.code = self.container_reason = self.reason = None
        self.started, self.status = now(), "RUNNING"
        logs = processes.Logs(self.account, self.region, GROUP, self.stream)
        settings = self.front.settings
        image = self.front.registry.named(properties.get("image"))
        argv = [*settings["image_entries"].get(image, []),
                *(self.command(properties) or settings["images"].get(image, ["true"]))]
        folder = self.floor.folder(self.name)
        volumes = ecs.Volumes(folder, settings["image_files"])
        role = ecs.task_of(self.task()).get("taskRoleArn") if self.task() else properties.get("jobRoleArn")
        helpers = ecs.helpers_of(self.task()) if self.task() and settings["helpers_first"] else []
        for helper in helpers:
            command = [*settings["image_entries"].get(helper["image"], []), *helper["command"]]
            container = containers.Container(self.front, folder, helper["image"], role)
            before = processes.Process(command, container.env(), logs, folder, shown=volumes.shown(helper),
                                       ended=container.end)
            while before.poll() is None:
                time.sleep(0.02)
            if before.code != 0:
                self.container_reason = f"Container {helper['name']} did not end with SUCCESS (exit {before.code})"
                argv = ["false"]
        if lacks := self.lacks(properties):
            self.container_reason, argv = f"CannotPullContainerError: {lacks}", ["false"]
        container = containers.Container(self.front, folder, image, role)
        shm = settings["shm_mib"] or properties.get("linuxParameters", {}).get("sharedMemorySize", 0)
        self.process = processes.Process(argv, container.env(**env), logs, folder, shown=volumes.shown(properties),
                                         shm=shm, memory=self.limit(properties), ended=container.end)

    def lacks(self, properties):
        """What its execution role may not do, if it has one: else the machine's role does it."""
        task = ecs.task_of(self.task()) if self.task() else properties
        images = [properties.get("image"), *(each["image"] for each in (ecs.helpers_of(self.task()) if self.task() else []))]
        role = task.get("executionRoleArn")
        return role and given.refused(self.front, role, given.of_task(self.region, self.account, images, GROUP))

    def settle(self):
        """The attempt is over: write down how."""
        self.code = self.process.poll()
        if self.reason is None:
            self.reason = "Essential container in task exited"
        container = {"logStreamName": self.stream, "taskArn": self.container()["taskArn"]}
        if self.code is not None and self.reason.startswith("Essential"):
            container["exitCode"] = self.code
        else:
            self.code = self.code or 1
        if self.container_reason:
            container["reason"] = self.container_reason
        arn = container["taskArn"]
        if self.task():
            del container["taskArn"]
            row = {"taskProperties": [{"taskArn": arn, "containers": [
                {"name": ecs.main_of(self.task())["name"], **container}]}]}
        else:
            row = {"container": container}
        self.attempts.append({**row, "startedAt": self.started, "stoppedAt": now(), "statusReason": self.reason})

    def troubled(self, began):
        """Whether it must end now, for a reason that is not its own."""
        timeout = self.request.get("timeout") or self.definition.get("timeout")
        if timeout and time.monotonic() - began > timeout["attemptDurationSeconds"] * self.front.settings["time_scale"]:
            self.reason = "Job attempt duration exceeded timeout"
        elif self.plan and self.plan.kind in ("job_fails", "job_interrupted") and self.plan.fields and (
                self.plan.is_due(began)):
            self.reason = self.plan.fields.get("reason", "Host EC2 (instance i-0123456789abcdef0) terminated.")
            self.container_reason = self.plan.fields.get("container_reason")
            self.plan = None
        elif self.lost:
            self.reason = self.lost
        elif not self.ended():
            return False
        return True

    def attempt(self, number):
        self.launch(number)
        began = time.monotonic()
        while self.process.poll() is None:
            if self.troubled(began):
                processes.end([self.process], self.front.settings["stop_seconds"])
                break
            time.sleep(0.02)
        self.settle()

    @staticmethod
    def see_ends(nodes):
        for node in nodes:
            if node.status == "RUNNING" and node.process.poll() is not None:
                node.settle()
                node.end("SUCCEEDED" if node.code == 0 else "FAILED", node.reason)

    def run_nodes(self, number):
        """The main node first, the others once it runs; its end is the end of all."""
        main = self.children[self.definition["nodeProperties"]["mainNode"]]
        common = {"AWS_BATCH_JOB_NUM_NODES": str(self.nodes), "AWS_BATCH_JOB_MAIN_NODE_INDEX": str(main.number)}
        self.started, self.status, self.reason = now(), "RUNNING", None
        main.launch(number, AWS_BATCH_JOB_NODE_INDEX=str(main.number), **common)
        others = [child for child in self.children if child is not main]
        for child in others:
            child.launch(number, AWS_BATCH_JOB_NODE_INDEX=str(child.number),
                         AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS="127.0.0.1", **common)
        began = time.monotonic()
        while main.process.poll() is None:
            if self.troubled(began):
                main.reason = self.reason
                break
            self.see_ends(others)
            time.sleep(0.02)
        # Each is a task of its own, and is over when it is over.
        processes.end([child.process for child in self.children], self.front.settings["stop_seconds"],
                      lambda: self.see_ends(self.children))
        self.see_ends(self.children)
        self.code, self.reason, self.container_reason = main.code, main.reason, main.container_reason
        self.attempts.append(main.attempts[-1])
