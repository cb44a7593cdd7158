"""How a test speaks to the stand-in itself: JSON beneath /standin/, not signed, because it
listens on loopback only.

  GET  health                    it is there
  POST reset                     as it was at the start: no objects, faults, ledger
  POST settings  {name: value}   see front.SETTINGS; GET: those in force
  POST faults    [rule, …]       see faults.py; GET: what has struck; DELETE: no more of them
  GET  ledger?since=N            {"entries", "requests", "effects"}; see ledger.py
  POST keys      {"access", "secret", "token", "expires", "account", "arn"}
  POST expire    {"access"}      that key, or without one all that were given out
  POST push {"reference", "digest"}  an image is in ECR, its tag leads there; the digest
  POST ring {"from", "until", "twice"}   schedules ring; see scheduler.py
  GET  asked                     rights that policies were asked for: [whose, action, resource, context, verdict]
  GET  broken                    mistakes of the stand-in's own since the start
  GET  buckets                   {bucket: {"region", "objects", "bytes", "uploads"}}"""

import json

from standin import rights, scheduler
from standin.wire import Body, Reply


def ledger(front, request, _):
    since = request.query.partition("since=")[2].partition("&")[0]
    return front.ledger.show(int(since or 0))


def add_faults(front, _, rules):
    return [front.faults.add(rule).id for rule in rules]


def set_settings(front, _, values):
    unknown = set(values) - set(front.settings)
    if unknown:
        raise ValueError(f"no such setting: {', '.join(sorted(unknown))}")
    rights.check(values.get("policies", {}))
    front.settings.update(values)
    return front.settings


def expire(front, _, what):
    if "access" not in what:
        return front.keyring.expire_all()
    key = front.keyring.find(what["access"])
    if key is None:
        raise ValueError("no such key")
    key.expires = front.clock() - 1
    return None


def buckets(front, *_):
    with front.store.lock:
        return {name: {"region": each.region, "objects": len(each.objects), "uploads": len(each.uploads),
                       "bytes": sum(thing.size for thing in each.objects.values())}
                for name, each in front.store.buckets.items()}


HANDLERS = {
    ("GET", "health"): lambda front, *_: {"ok": True},
    ("POST", "reset"): lambda front, *_: front.reset(),
    ("GET", "settings"): lambda front, *_: front.settings,
    ("POST", "settings"): set_settings,
    ("GET", "faults"): lambda front, *_: [rule.show() for rule in front.faults.rules],
    ("POST", "faults"): add_faults,
    ("DELETE", "faults"): lambda front, *_: front.faults.clear(),
    ("GET", "ledger"): ledger,
    ("POST", "keys"): lambda front, _, key: front.keyring.add(**key),
    ("POST", "expire"): expire,
    ("GET", "buckets"): buckets,
    ("POST", "push"): lambda front, _, image: front.registry.push(**image),
    ("POST", "ring"): scheduler.ring,
    ("GET", "asked"): lambda front, *_: front.asked,
    ("GET", "broken"): lambda front, *_: front.broken,
}


def handle(front, connection, request):
    body = Body(front.folder)
    try:
        connection.read_body(request, body)
        handler = HANDLERS.get((request.method, request.path.removeprefix("/standin/")))
        if handler is None:
            status, said = 404, {"error": "no such control", "known": sorted(" ".join(pair) for pair in HANDLERS)}
        else:
            status, said = 200, handler(front, request, json.loads(body.bytes() or b"{}"))
    except (ValueError, TypeError, KeyError) as error:
        status, said = 400, {"error": f"{type(error).__name__}: {error}"}
    finally:
        body.drop()
    connection.write_reply(request, Reply(status, [("Content-Type", "application/json")], json.dumps(said).encode()))
    return True
