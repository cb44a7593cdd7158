"""What an S3 object keeps of the headers it was written with, and which it gives back."""

from urllib.parse import unquote

from standin import checksums
from standin.errors import Refusal

# What a write may say and a read gives back.
KEPT = ("content-type", "content-encoding", "content-language", "content-disposition", "cache-control", "expires",
        "x-amz-storage-class", "x-amz-website-redirect-location")
ENCRYPTION = ("x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id",
              "x-amz-server-side-encryption-bucket-key-enabled")


def stored_headers(request):
    kept = {name: value for name, value in request.headers.items()
            if name in KEPT or name in ENCRYPTION or name.startswith("x-amz-meta-")}
    if "content-encoding" in kept:  # aws-chunked is how it came, not what it is
        words = [word.strip() for word in kept["content-encoding"].split(",")]
        kept["content-encoding"] = ",".join(word for word in words if word != "aws-chunked")
        if not kept["content-encoding"]:
            del kept["content-encoding"]
    kept.setdefault("content-type", "binary/octet-stream")
    return kept


def encryption_of(thing):
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
