"""What was asked and what came of it, in order: with it a test shows that nothing was
done twice, or not at all."""

import collections
import json
import threading

# Operations that begin a job: their bodies are kept.
KEPT = ("RegisterJobDefinition", "SubmitJob", "CreateTrainingJob")


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.clear()

    def clear(self):
        with self.lock:
            self.entries = []

    def add(self, call, status, code):
        """Called before the reply goes out, so that whoever has it finds it here."""
        request = call.request
        body = request.body
        entry = {"service": call.service, "operation": call.operation, "name": call.name, "status": status,
                 "code": code, "effect": call.effect, "fault": call.fault.kind if call.fault else None,
                 "method": request.method, "bytes_in": body.size if body else 0, "region": call.region,
                 "access_key": call.claim.access if call.claim else None, "who": call.who.arn if call.who else None,
                 "request_id": call.ids[0][1] if call.ids else None, "range": request.header("range"),
                 "payload": request.header("x-amz-content-sha256"), "query": dict(call.query),
                 "conditions": {name: request.headers[name] for name in ("if-match", "if-none-match")
                                if name in request.headers},
                 "retry": request.header("amz-sdk-request"), "agent": request.header("user-agent"),
                 "peer": request.peer[1], "at": call.front.clock()}
        if call.protocol in ("query", "ec2"):
            entry["query"] = {}  # a form: it may hold a token
        entry["query"].pop("X-Amz-Security-Token", None)
        if call.operation in KEPT and body:
            entry["body"] = json.loads(body.bytes())
        call.noted = True
        with self.lock:
            entry["seq"] = len(self.entries)
            self.entries.append(entry)

    def show(self, since=0):
        with self.lock:
            entries = self.entries[since:]
        asked, done = collections.Counter(), collections.Counter()
        for entry in entries:
            asked[entry["operation"]] += 1
            done[entry["operation"]] += entry["effect"]
        return {"entries": entries, "requests": dict(asked), "effects": {name: n for name, n in done.items() if n}}
