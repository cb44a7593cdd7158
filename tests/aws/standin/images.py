"""Amazon ECR, as far as pulls go: which image a tag leads to, and what its config says. Tests push
(control `push`); an image is its digest, and stays there when its tag has moved to another. It is an
index of images for two architectures, as most builders make them."""

import hashlib
import json

from standin.errors import Refusal
from standin.wire import Reply


class Registry:
    def __init__(self):
        self.tags, self.known = {}, {}  # reference → digest; (repository, digest) → first reference

    def push(self, reference, digest=None):
        """The same reference again, with another digest: its tag moves."""
        repository, _, tag = reference.rpartition(":")
        if not tag or "/" in tag:
            raise ValueError(f"{reference} has no tag")
        digest = digest or "sha256:" + hashlib.sha256(reference.encode()).hexdigest()
        self.tags[reference] = digest
        self.known.setdefault((repository, digest), reference)
        return digest

    def named(self, image):
        """The reference by which tests know an image that is asked for by digest."""
        repository, _, digest = (image or "").partition("@")
        return self.known.get((repository, digest), image) if digest else image


def find(call):
    """(account, repository, {tag: digest}, its URL); refused if there is no such repository."""
    account = call.params.get("registryId", call.who.account)
    domain = "amazonaws.com.cn" if call.region.startswith("cn-") else "amazonaws.com"
    name = call.params["repositoryName"]
    url = f"{account}.dkr.ecr.{call.region}.{domain}/{name}"
    registry = call.front.registry
    tags = {reference.rpartition(":")[2]: digest for reference, digest in registry.tags.items()
            if reference.rpartition(":")[0] == url}
    if not tags:
        raise Refusal("RepositoryNotFoundException", f"The repository with name '{name}' does not exist in the registry "
                      f"with id '{account}'", 400)
    return account, name, tags, url


# What an image is made of

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LAYER = "ecr-layer"
LAYERS = "/ecr-layers/"  # where links to them lead, which are not signed here


def digest_of(text):
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def env_of(front, reference):
    """The ENV of an image, by the setting `image_env`."""
    settings = front.settings["image_env"]
    return {**settings.get("*", {}), **settings.get(reference, {})}


def config_of(front, reference, architecture="amd64"):
    env = env_of(front, reference) if architecture == "amd64" else {"XLA_FLAGS": "--of-another-machine"}
    return json.dumps({"architecture": architecture, "os": "linux", "config": {
        "Env": [f"{name}={value}" for name, value in env.items()], "Cmd": ["train"]}, "rootfs": {"type": "layers"}})


def manifest_of(front, reference, architecture="amd64"):
    return json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": {
        "mediaType": "application/vnd.oci.image.config.v1+json", "size": 1,
        "digest": digest_of(config_of(front, reference, architecture))}, "layers": [
            {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "size": 3 << 29,
             "digest": digest_of(f"{reference} {architecture}")}]})


def platforms_of(front, reference):
    found = front.settings["image_platforms"].get(reference, ["arm64", "amd64"])
    return [found] if isinstance(found, str) else found


def root_of(front, reference):
    """What its digest stands for."""
    found = front.settings["image_platforms"].get(reference)
    return manifest_of(front, reference, found) if isinstance(found, str) else index_of(front, reference)


def index_of(front, reference):
    rows = [{"mediaType": MANIFEST, "size": 1, "digest": digest_of(manifest_of(front, reference, each)),
             "platform": {"architecture": each, "os": "linux"}} for each in platforms_of(front, reference)]
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": rows})


def texts(front, repository):
    """{digest: text} of manifests, and of configs, in that repository."""
    manifests, configs = {}, {}
    for (url, digest), reference in front.registry.known.items():
        if url == repository:
            manifests[digest] = root_of(front, reference)
            for each in platforms_of(front, reference):
                manifests[digest_of(manifest_of(front, reference, each))] = manifest_of(front, reference, each)
                configs[digest_of(config_of(front, reference, each))] = config_of(front, reference, each)
    return manifests, configs


def find_layer(call):
    """Is it a link to one? Then it is answered like a service of its own, unsigned."""
    if not call.request.path.startswith(LAYERS):
        return False
    call.service, call.protocol, call.operation = LAYER, "rest-json", "GetLayer"
    call.name = call.request.path.removeprefix(LAYERS)
    return True


def layer(call):
    for repository in {url for url, _ in call.front.registry.known}:
        text = texts(call.front, repository)[1].get(call.name)
        if text is not None:
            return Reply(200, [("Content-Type", "application/octet-stream")], text.encode())
    return Reply(404, [], b"")


def answer(body):
    return Reply(200, [("Content-Type", "application/x-amz-json-1.1")], json.dumps(body).encode())


def batch_get(call):
    account, name, tags, url = find(call)
    manifests, images, failures = texts(call.front, url)[0], [], []
    for wanted in call.params["imageIds"]:
        digest = tags.get(wanted.get("imageTag"), wanted.get("imageDigest"))
        if digest in manifests:
            images.append({"registryId": account, "repositoryName": name, "imageManifest": manifests[digest],
                           "imageId": {**wanted, "imageDigest": digest}})
        else:
            failures.append({"imageId": wanted, "failureCode": "ImageNotFound",
                             "failureReason": "Requested image not found"})
    return answer({"images": images, "failures": failures})


def describe(call):
    account, name, tags, _ = find(call)
    details = []
    for wanted in call.params.get("imageIds", []):
        digest = tags.get(wanted.get("imageTag"))
        if not digest:
            raise Refusal("ImageNotFoundException", f"The image with imageId {{imageTag:'{wanted.get('imageTag')}'}} does "
                          f"not exist within the repository with name '{name}' in the registry with id '{account}'", 400)
        details.append({"registryId": account, "repositoryName": name, "imageDigest": digest,
                        "imageTags": [tag for tag, each in tags.items() if each == digest]})
    return answer({"imageDetails": details})


def link(call):
    _, _, _, url = find(call)
    digest = call.params["layerDigest"]
    if digest not in texts(call.front, url)[1]:
        raise Refusal("LayersNotFoundException", f"The layer with digest '{digest}' does not exist", 400)
    return answer({"downloadUrl": f"{call.front.url}{LAYERS}{digest}", "layerDigest": digest})


HANDLERS = {"BatchGetImage": batch_get, "DescribeImages": describe, "GetDownloadUrlForLayer": link}
