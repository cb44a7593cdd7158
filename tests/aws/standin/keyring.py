"""Which access keys exist, whose they are and until when: those the test has named, and
those that STS, SSO, instance metadata and container credentials have given out."""

import base64
import os
import threading
from dataclasses import dataclass, field

ACCOUNT = "123456789012"


@dataclass
class Key:
    access: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    expires: float | None = None  # by the stand-in's clock
    account: str = ACCOUNT
    arn: str = f"arn:aws:iam::{ACCOUNT}:user/tester"
    user_id: str = "AIDATESTER"


class Keyring:
    def __init__(self, clock):
        self.clock, self.lock, self.keys = clock, threading.Lock(), {}

    def add(self, access, secret, **more):
        with self.lock:
            self.keys[access] = Key(access, secret, **more)

    def find(self, access):
        return self.keys.get(access)

    def issue(self, seconds, account=ACCOUNT, arn=None, user_id="AROATESTER:session"):
        """Keys that last this long."""
        word = base64.b32encode(os.urandom(10)).decode()
        key = Key("ASIA" + word, base64.b64encode(os.urandom(30)).decode(),
                  "IQoJ" + base64.b64encode(os.urandom(120)).decode(), self.clock() + seconds, account,
                  arn or f"arn:aws:sts::{account}:assumed-role/tester/session", user_id)
        with self.lock:
            self.keys[key.access] = key
        return key

    def expire_all(self):
        """What was given out is no longer good."""
        with self.lock:
            for key in self.keys.values():
                if key.token:
                    key.expires = self.clock() - 1
