"""What people use today to sign: botocore. sign.py FILE ROUNDS, as bench_sign.c has it;
the requests are ready before the clock runs, as there."""

import datetime
import hashlib
import json
import sys
import time
from pathlib import Path
from urllib.parse import quote

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials


def prepare(told):
    query = "&".join(quote(name, safe="-_.~") + "=" + quote(value, safe="-_.~") for name, value in told["params"])
    url = f"http://{told['host']}{quote(told['path'], safe='/-_.~')}" + (f"?{query}" if query else "")
    request = AWSRequest(method=told["method"], url=url, data=bytes.fromhex(told["body"]))
    for name, value in told["headers"]:
        request.headers[name] = value
    kind = botocore.auth.S3SigV4Auth if told["s3"] else botocore.auth.SigV4Auth
    who = Credentials(told["access_key"], told["secret_key"], told["token"])
    return kind(who, told["service"], told["region"]), request


lines = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
rounds = int(sys.argv[2])
now = datetime.datetime.fromtimestamp(lines[0]["at"] / 1000, datetime.timezone.utc)
botocore.auth.get_current_datetime = lambda *_, **__: now
pairs = [prepare(told) for told in lines]
digest = hashlib.sha256()
for auth, request in pairs:
    auth.add_auth(request)
    digest.update(request.headers["Authorization"].rpartition("=")[2].encode())
begin = time.process_time()
for _ in range(rounds):
    for auth, request in pairs:
        auth.add_auth(request)
print(json.dumps({"seconds": time.process_time() - begin, "signatures": len(pairs) * rounds, "digest": digest.hexdigest()}))
