"""What an S3 object keeps of the headers it was written with, and which it gives back."""

import os
from hashlib import md5
from urllib.parse import unquote

from standin import checksums
from standin.errors import Refusal

# What a write may say and a read gives back.
KEPT = ("content-type", "content-encoding", "content-language", "content-disposition", "cache-control", "expires",
        "x-amz-storage-class", "x-amz-website-redirect-location")
ENCRYPTION = ("x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id",
              "x-amz-server-side-encryption-bucket-key-enabled")


def key_of(call):
    """The key of KMS by which a bucket encrypts what is written to it; None: one of S3's own."""
    return call.front.settings["bucket_keys"].get(call.bucket)


def encrypted(call, headers):
    """The headers of an object, as the bucket encrypts it unless the request says how."""
    if ENCRYPTION[0] not in headers and key_of(call):
        headers |= {ENCRYPTION[0]: "aws:kms", ENCRYPTION[1]: key_of(call)}
    return headers


def tag_of(call, digest):
    """The ETag of bytes; of those that a key of KMS encrypts it is no digest of them."""
    return f'"{md5(os.urandom(16)).hexdigest() if key_of(call) else digest}"'


def stored_headers(call):
    request = call.request
    kept = {name: value for name, value in request.headers.items()
            if name in KEPT or name in ENCRYPTION or name.startswith("x-amz-meta-")}
    if "content-encoding" in kept:  # aws-chunked is how it came, not what it is
        words = [word.strip() for word in kept["content-encoding"].split(",")]
        kept["content-encoding"] = ",".join(word for word in words if word != "aws-chunked")
        if not kept["content-encoding"]:
            del kept["content-encoding"]
    kept.setdefault("content-type", "binary/octet-stream")
    return encrypted(call, kept)


def copied_headers(call, thing):
    """Those of an object, for a copy of it: how it is encrypted is not among them."""
    return encrypted(call, {name: value for name, value in thing.headers.items() if name not in ENCRYPTION})


def encryption_of(thing):
    """Of an object, or of an upload in parts."""
    found = [(name, thing.headers[name]) for name in ENCRYPTION if name in thing.headers]
    return found or [(ENCRYPTION[0], "AES256")]


def checksum_headers(thing):
    algorithm, value = thing.checksum()
    return [(checksums.HEADER + algorithm.lower(), value), ("x-amz-checksum-type", thing.checksum_type)]


def source_of_copy(call, store):
    """(object, None) or (object, (start, end)) that x-amz-copy-source names."""
    name = unquote(call.header("x-amz-copy-source")).lstrip("/")
    bucket, _, key = name.partition("/")
    thing = store.object(store.bucket(bucket), key)
    match, none = call.header("x-amz-copy-source-if-match"), call.header("x-amz-copy-source-if-none-match")
    if (match is not None and match.strip('"') != thing.etag.strip('"')) or (
            none is not None and none.strip('"') == thing.etag.strip('"')):
        raise Refusal("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", 412)
    return thing
