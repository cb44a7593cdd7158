"""The way of every request: what is it, whose is it, is it allowed, does it go wrong, what
came of it. Behind it stand handlers of our own and moto."""

import copy
import json
import re
import sys
import threading
import time
import traceback

from standin import (
    batch, behind, chunked, control, ec2, errors, faults, hosts, images, metadata, pipelines, processing, quotas, rights, roles,
    s3, sagemaker, scheduler, services, sigv4, states, sts, validate,
)
from standin import call as calls
from standin.keyring import Keyring
from standin.ledger import Ledger
from standin.processes import Floor
from standin.s3_store import Store
from standin.wire import Body, Gone

SMALL = 8 << 20  # bodies of services other than S3
LARGEST = 5 << 30
SETTINGS = {
    "account": "123456789012",
    "page_size": 1000,           # of S3's lists, at most
    "min_part": 5 << 20,         # S3's parts but the last, at least
    "wrong_region": "redirect",  # or "malformed": what a bucket of another region answers
    "clock_offset": 0,           # seconds
    "sts_seconds": 0,            # how long keys of a role last; 0: as asked
    "job_seconds": 0.1,          # until a job of SageMaker or Batch starts
    "stop_seconds": 30,          # from the polite signal to the other
    "training_stop_seconds": 0,  # at SageMaker alone; 0: the same
    "pool_seconds": 0.3,         # after the end of a job SageMaker tells what became of its machines
    "time_scale": 1.0,           # what a second of a job's limits is
    "longest_run": 432000,       # seconds of a training job that the account's quota allows
    "infra_check": True,         # SageMaker tests machines if it is asked to, or refuses to
    "interface": "lo",           # what a training job's containers are told of
    "images": {},                # image → what it runs if the request does not say
    "image_entries": {},         # image → its entry point, which only SageMaker can replace
    "image_files": {},           # image → {folder that it holds, below /opt: where that lies here}
    "image_env": {},             # image, or "*" → its ENV
    "image_platforms": {},       # image → architectures; a word: that one, without an index
    "machine_env": {},           # what the machines that jobs run on add to every container's environment
    "job_env": {},               # service → what its containers have otherwise: {name: value, null: not at all}
    "shm_mib": 0,                # of /dev/shm in a job of Batch; 0: as it asks
    "most_limited": 0,           # MiB: containers of Batch that ask for more are not held to it
    "more_gpus": 0,              # than a container of Batch asks for
    "most_vcpus": 448,           # of a machine; jobs of Batch that ask for more are blocked
    "spot_nodes": False,         # Batch starts jobs of several nodes on queues that have Spot machines alone
    "most_overrides": 8192,      # characters that ECS takes
    "batch_attempts": 0,         # how often Batch starts a job that fails; 0: as it asks
    "host_words": "Host EC2 (instance {instance}) terminated.",  # of a job whose machine was ended
    "helpers_first": True,       # containers that others depend on run before those, or never
    "first_reason": False,       # of several TerminateJobs the first one counts
    "any_node_fails": False,     # a job fails with any of its nodes
    "host_names": True,          # SageMaker's hosts know the names of all
    "channels": "input/data",    # where channels lie below /opt/ml, in a training job of several hosts
    "processing_writable": True,  # output folders of processing jobs are everybody's
    "chosen_files": True,        # conditions of a pipeline may read files of steps that another one has chosen
    "execution_id": "0123456789abcdefghijklmnopqrstuvwxyz",  # what the ids of executions are made of
    "entry_stays": False,        # SageMaker runs an image's entry point although a request has its own
    "first_host_counts": False,  # a training job ends as its first host does, whatever the others do
    "checkpoints_return": True,  # a training job begins with what lies at its CheckpointConfig
    "job_cause": "",             # what Step Functions says of a job that failed; "": all that Batch tells of it
    "scheduled_time": "%Y-%m-%dT%H:%M:%SZ",  # what EventBridge Scheduler puts in the place of its word for that
    "ring_soon": 0,              # seconds: a schedule that is made rings at once for what is due in them
    "known_seconds": 7 * 86400,  # for which Batch knows a job that has ended
    "batch_later": 0,            # seconds that have passed for that since a job ended, beside those that have
    "limits": {},                # operation → requests in any second; beyond that it is throttled
    "policies": {},              # whose → what they may do; see rights.py
    "bucket_keys": {},           # bucket → ARN of the key that it encrypts by unless told otherwise
    "ec2": {}, "iam_roles": {}, "quotas": {},  # what the account has; see ec2.py, roles.py, quotas.py
    "roles": {}, "web_identity": {}, "imds": {}, "container": {}, "sso": {},  # see sts.py, metadata.py
}


class Pace:
    """Slowness: so many bytes, then a pause."""

    def __init__(self, rule, step):
        self.step, self.interval, self.due = rule.number("step", step), rule.number("interval", 0.05), 0

    def __call__(self, size):
        self.due += size
        while self.due >= self.step:
            self.due -= self.step
            time.sleep(self.interval)


class Front:
    def __init__(self, folder, keys, settings):
        self.folder, self.initial_keys, self.initial = folder, keys, {**SETTINGS, **settings}
        self.keyring, self.faults, self.ledger = Keyring(self.clock), faults.Faults(), Ledger()
        self.settings, self.tokens = {}, {}
        self.store, self.floor, self.url = Store(folder, self.clock), Floor(self), None
        self.asked, self.broken, self.limit_lock = [], [], threading.Lock()
        self.reset()

    def clock(self):
        return time.time() + self.settings.get("clock_offset", 0)

    def reset(self):
        self.floor.clear()
        self.settings = copy.deepcopy(self.initial)
        self.tokens, self.keyring.keys, self.containers = {}, {}, {}
        self.training, self.batch, self.recent, self.registry = {}, {}, {}, images.Registry()
        self.schedules, self.asked, self.processing, self.pipelines = {}, [], {}, {}
        for key in self.initial_keys:
            self.keyring.add(**key)
        self.faults.clear()
        self.store.clear()
        behind.clear()
        self.ledger.clear()

    def broke(self):
        """A mistake of the stand-in's own: kept, so that the test fails."""
        self.broken.append(traceback.format_exc())
        sys.stderr.write(self.broken[-1])

    def handle(self, connection, request):
        """One request; False: the connection is done with."""
        if request.path.startswith("/standin/"):
            return control.handle(self, connection, request)
        call = calls.Call(request, self, connection)
        request.body = Body(self.folder)
        try:
            reply, code = self.answer(call)
            if reply is None:
                self.ledger.add(call, 0, code)
                connection.reset()
                return False
            return self.send(call, reply, code)
        except Gone:
            if not call.noted:
                self.ledger.add(call, 0, "(the peer has gone)")
            raise
        except OSError:
            raise
        except Exception:  # noqa: BLE001
            self.broke()
            call.connection.reset()
            return False
        finally:
            request.body.drop()

    def answer(self, call):
        """(reply, code of the error or ""); (None, why): the connection is to be reset."""
        try:
            known = self.identify(call)
            call.ids = errors.request_ids(call.protocol)
            call.fault = self.faults.choose(call)
            if call.fault and (why := self.spoil_request(call)):
                return None, why
            self.read(call)
            if call.service not in UNSIGNED:
                self.admit(call)
            if not known:
                raise errors.generic("unknown-operation", call.protocol, "The stand-in knows no such operation",
                                     call.service)
            self.hold_back(call)
            reply = self.run(call)
        except errors.Refusal as refusal:
            self.read(call)
            call.ids = call.ids or errors.request_ids(call.protocol)
            return errors.render(refusal, call.protocol, call.ids, call.request.path), refusal.code
        for name, value in call.ids:
            reply.set(name, value)
        return reply, "" if reply.status < 400 else code_of(reply)

    def hold_back(self, call):
        limit = self.settings["limits"].get(call.operation)
        if limit is None:
            return
        with self.limit_lock:
            now = time.monotonic()
            recent = [at for at in self.recent.get(call.operation, []) if now - at < 1]
            self.recent[call.operation] = [*recent, now]
        if len(recent) >= limit:
            raise errors.generic("throttle", call.protocol, "Rate exceeded", call.service)

    def read(self, call, pace=None, until=None):
        """The body, once."""
        if call.was_read:
            return
        call.was_read = True
        length = call.request.header("content-length", "0")
        if length.isdigit() and int(length) > (LARGEST if call.service == "s3" else SMALL):
            raise Gone
        call.connection.read_body(call.request, call.request.body, pace, until)

    def identify(self, call):
        """Service, operation and what it is about; False: there is no such operation. The
        body of S3's requests is read later."""
        request = call.request
        call.query = calls.query_of(request.query)
        if metadata.find(call) or images.find_layer(call):
            return True
        try:
            call.claim = sigv4.read_claim(request)
        except ValueError as error:
            call.service = call.protocol = "s3"
            code = "AuthorizationHeaderMalformed" if "authorization" in request.headers \
                else "AuthorizationQueryParametersError"
            raise errors.Refusal(code, str(error), 400) from None
        form = request.header("content-type", "").startswith("application/x-www-form-urlencoded")
        if call.claim is None:
            call.service = "sts" if form and request.method == "POST" and request.path == "/" else "s3"
        else:
            call.service, call.region = call.claim.service, call.claim.region
        call.protocol = "s3" if call.service == "s3" else services.protocol(call.service)
        if call.service == "s3":
            host = request.header("host", "").partition(":")[0]
            suffix = next((end for end in (".s3.localhost", ".localhost") if host.endswith(end)), None)
            return s3.locate(call, host.removesuffix(suffix) if suffix else None)
        self.read(call)
        if call.service not in services.KNOWN:
            return False
        if call.protocol in ("query", "ec2") and form:
            call.query = {**call.query, **calls.query_of(request.body.bytes().decode("latin-1"))}
        found = services.find(call)
        call.name = name_of(call)
        return found

    def spoil_request(self, call):
        """Faults that come before or with the body: why it is to be reset, or None."""
        rule = call.fault
        if rule.kind == "reset_before":
            return "(reset before)"
        if rule.kind == "reset_body":
            length = call.request.header("content-length", "0")
            half = int(length) // 2 if length.isdigit() else 0
            self.read(call, until=max(rule.number("bytes", half), 1))
            return "(reset in the body)"
        if rule.kind == "hang":
            ends = time.monotonic() + rule.number("seconds", 60.0)
            while time.monotonic() < ends and call.connection.is_open():
                time.sleep(0.05)
            return "(hung)"
        if rule.kind == "slow_read":
            self.read(call, Pace(rule, 4096))
        return None

    def admit(self, call):
        """Signed by somebody who is known, now, over what has come; in the model's limits."""
        request, service = call.request, call.service
        if call.claim is None:
            if (service, call.operation) != ("sts", "AssumeRoleWithWebIdentity"):
                raise errors.generic("unsigned", call.protocol, "Access Denied" if service == "s3"
                                     else "Missing Authentication Token", service)
        else:
            skew = call.fault.number("seconds", 0) if call.fault and call.fault.kind == "skew" else 0
            call.who = sigv4.verify(request, call.claim, self.keyring, self.clock() + skew, call.protocol, service)
            sigv4.check_payload(request, call.protocol, service)
            if request.header("x-amz-content-sha256", "").startswith(sigv4.STREAMING):
                chunked.decode(request, call.claim, call.who.secret)

    def run(self, call):
        """What was asked, or what a fault puts in its place."""
        if call.operation not in s3.UNMODELLED and call.service != images.LAYER:
            validate.request(call)
        if call.service not in ("s3", "imds", "container", images.LAYER):
            call.name = call.name or name_of(call)
        if call.service not in UNSIGNED:
            rights.ask(call)
        if call.fault:
            reply = faults.instead(call)
            if reply is not None:
                return reply
            if call.fault.kind == "delay":
                began = time.monotonic()
                while not call.fault.is_over(began):
                    time.sleep(0.01)
        if call.service in OWN:
            try:
                return OWN[call.service](call)
            except errors.Refusal as refusal:
                raise rights.hide(call, refusal) from None
        own = {"sagemaker": {**sagemaker.HANDLERS, **processing.HANDLERS, **pipelines.HANDLERS},
               "batch": batch.HANDLERS, "ecr": images.HANDLERS,
               "scheduler": scheduler.HANDLERS, "iam": roles.HANDLERS, "servicequotas": quotas.HANDLERS,
               "ec2": {**ec2.HANDLERS, "TerminateInstances": hosts.terminate},
               "ecs": {"DescribeContainerInstances": hosts.describe}}.get(call.service, {})
        return own.get(call.operation, states.handle if call.service == "states" else behind.handle)(call)

    def send(self, call, reply, code):
        """The reply, or what a fault makes of it; it is in the ledger before it goes out."""
        rule, request = call.fault, call.request
        cut, pace, now = None, None, self.clock()
        if rule and rule.kind == "delay_after":
            time.sleep(rule.number("seconds", 1.0))
        if rule and rule.kind == "lost":
            self.ledger.add(call, 0, "(lost)")
            call.connection.reset()
            return False
        if rule and rule.kind == "truncate":
            cut = rule.number("bytes", reply.length // 2)
        if rule and rule.kind == "slow":
            pace = Pace(rule, 16)
        if rule and rule.kind in ("skew", "date"):
            now += rule.number("seconds", 0)
        if rule:
            faults.spoil(rule, reply)
        reply.close = reply.close or request.header("connection", "").lower() == "close"
        self.ledger.add(call, reply.status, code)
        call.connection.write_reply(request, reply, cut, pace, now)
        return not reply.close


# Who answers; what is not here and is no job is moto's.
OWN = {"s3": s3.handle, "sts": sts.handle, images.LAYER: images.layer,
       **dict.fromkeys(metadata.HANDLERS, metadata.handle)}
UNSIGNED = {images.LAYER, *metadata.HANDLERS}
NAMES = ("TrainingJobName", "jobName", "logGroupName", "SecretId", "Name", "PipelineName", "RoleArn", "jobId",
         "ProcessingJobName", "TransformJobName", "jobDefinitionName", "jobQueue", "name", "repositoryName", "RoleName",
         "PolicySourceArn", "QuotaCode", "LaunchTemplateName")


def name_of(call):
    """What a request is about, for the rules of faults and for the ledger."""
    fields = call.query
    if call.protocol in ("json", "rest-json"):
        try:
            fields = json.loads(call.request.body.bytes() or b"{}")
        except (ValueError, RecursionError):
            return ""
    if not isinstance(fields, dict):
        return ""
    return next((str(fields[name]) for name in NAMES if name in fields), "")


def code_of(reply):
    """The code in an error of moto's, for the ledger."""
    body = reply.body if isinstance(reply.body, bytes) else b""
    found = re.search(rb'"__type": ?"(?:[^"#]*#)?([^"]+)"|<Code>([^<]+)</Code>', body)
    return (found[1] or found[2]).decode() if found else str(reply.status)
