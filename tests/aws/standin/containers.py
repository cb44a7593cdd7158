"""What a container finds in its environment, and the keys of its role. The image's ENV comes first, then
what the machine adds (ECS, SageMaker, a compute environment), then what the request says. There is
nothing of this machine in it: no home, no path, no keys.

A container reaches the stand-in by AWS_ENDPOINT_URL, which stands for its network. The keys of its role
are given out at a URL of its own to whoever has its token, and only while it runs: Batch gives them to
a job with a job role, SageMaker to every job. A real URL is at 169.254.170.2, which no process here can
listen on."""

import os
import secrets
import uuid

from standin import images

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # as Docker has it where an image has none


class Container:
    """`role`: an ARN; None: it has none."""

    def __init__(self, front, folder, image, role=None, service="batch"):
        self.front, self.image, self.role, self.service = front, front.registry.named(image), role, service
        self.home = os.path.join(folder, "home")
        os.makedirs(self.home, exist_ok=True)
        self.ticket, self.token = uuid.uuid4().hex, secrets.token_urlsafe(30)
        if role:
            front.containers[self.ticket] = self

    def env(self, **more):
        """`more`: of the request and its service."""
        settings = self.front.settings
        found = {"PATH": PATH, "HOME": self.home, "HOSTNAME": f"ip-10-0-0-1-{self.ticket[:8]}",
                 **images.env_of(self.front, self.image), **settings["machine_env"], **more, "AWS_ENDPOINT_URL": self.front.url}
        if self.role:
            found |= {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.front.url}/v2/credentials/{self.ticket}",
                      "AWS_CONTAINER_AUTHORIZATION_TOKEN": self.token}
        found |= settings["job_env"].get(self.service, {})
        return {name: value for name, value in found.items() if value is not None}

    def keys(self, seconds):
        account, name = self.role.split(":")[4], self.role.rpartition("/")[2]
        return self.front.keyring.issue(seconds, account,
                                        f"arn:aws:sts::{account}:assumed-role/{name}/{self.ticket}")

    def end(self):
        """Nobody gets its keys any more."""
        self.front.containers.pop(self.ticket, None)
