"""Buckets and objects of the stand-in: metadata in memory, bytes in memory if they are
few and else in files. Everything that changes something does so under one lock, at one
moment, so that conditions hold as they do at S3."""

import bisect
import contextlib
import itertools
import os
import threading
import uuid
from dataclasses import dataclass, field

from standin import checksums
from standin.errors import Refusal

PIECE = 1048576


class Blob:
    """Bytes that do not change; a file of its own is deleted with the last use."""

    def __init__(self, data=None, path=None, size=0):
        self.data, self.path = data, path
        self.size = len(data) if data is not None else size

    def __del__(self):
        if self.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def read(self, start, end):
        if self.data is not None:
            yield self.data[start:end]
            return
        with open(self.path, "rb", buffering=0) as file:
            file.seek(start)
            left = end - start
            while left and (piece := file.read(min(left, PIECE))):
                left -= len(piece)
                yield piece


def blob_of(body):
    """Take over what a request's body holds."""
    if body.path is not None:
        path, body.path = body.path, None
        return Blob(path=path, size=body.size)
    return Blob(data=body.bytes())


@dataclass
class Object:
    key: str
    blobs: list
    etag: str                                   # with its quotes
    headers: dict = field(default_factory=dict)  # stored with it and returned: Content-Type, x-amz-meta-*
    checksums: dict = field(default_factory=dict)  # algorithm → base64
    checksum_type: str = "FULL_OBJECT"
    part_sizes: list = field(default_factory=list)
    modified: float = 0.0
    size: int = 0

    def __post_init__(self):
        self.size = sum(blob.size for blob in self.blobs)

    def read(self, start=0, end=None):
        end = self.size if end is None else end
        for blob in self.blobs:
            if start < blob.size and end > 0:
                yield from blob.read(max(start, 0), min(end, blob.size))
            start, end = start - blob.size, end - blob.size

    def checksum(self):
        """(algorithm, value): S3 takes one of its own if the uploader sent none."""
        if not self.checksums:
            self.checksums["CRC64NVME"] = checksums.over("CRC64NVME", self.read())
        return next(iter(self.checksums.items()))


@dataclass
class Part:
    number: int
    blob: Blob
    etag: str
    checksums: dict
    modified: float


@dataclass
class Upload:
    id: str
    key: str
    headers: dict
    algorithm: str | None
    kind: str                                   # COMPOSITE or FULL_OBJECT
    parts: dict = field(default_factory=dict)
    initiated: float = 0.0


class Bucket:
    def __init__(self, name, region, clock):
        self.name, self.region, self.clock, self.created = name, region, clock, clock()
        self.objects, self.uploads = {}, {}
        self.keys = []       # sorted; code points sort as their UTF-8 bytes do
        self.graves = []     # (object, when it went): for lists that lag behind

    def put(self, thing):
        if thing.key not in self.objects:
            bisect.insort(self.keys, thing.key)
        self.objects[thing.key] = thing

    def remove(self, key):
        gone = self.objects.pop(key, None)
        if gone:
            del self.keys[bisect.bisect_left(self.keys, key)]
            self.graves.append((gone, self.clock()))
        return gone

    def keys_of(self, prefix, after, lag=0.0):
        """Keys with this prefix beyond `after`, in order; as of `lag` seconds ago."""
        keys, objects = self.keys, self.objects
        if lag:
            then = self.clock() - lag
            objects = {thing.key: thing for thing, when in self.graves if when > then and thing.modified <= then}
            objects.update((key, thing) for key, thing in self.objects.items() if thing.modified <= then)
            keys = sorted(objects)
        at = bisect.bisect_left(keys, prefix)
        if after:
            at = max(at, bisect.bisect_right(keys, after))
        for key in itertools.islice(keys, at, None):
            if not key.startswith(prefix):
                return
            yield objects[key]


class Store:
    def __init__(self, folder, clock):
        self.folder, self.clock, self.lock = folder, clock, threading.RLock()
        self.buckets = {}
        os.makedirs(folder, exist_ok=True)

    def clear(self):
        with self.lock:
            self.buckets = {}

    def create(self, name, region):
        with self.lock:
            if name in self.buckets:
                raise Refusal("BucketAlreadyOwnedByYou", "Your previous request to create the named bucket "
                              "succeeded and you already own it.", 409, BucketName=name)
            self.buckets[name] = Bucket(name, region, self.clock)

    def bucket(self, name):
        found = self.buckets.get(name)
        if found is None:
            raise Refusal("NoSuchBucket", "The specified bucket does not exist", 404, BucketName=name)
        return found

    def drop(self, name):
        with self.lock:
            bucket = self.bucket(name)
            if bucket.objects or bucket.uploads:
                raise Refusal("BucketNotEmpty", "The bucket you tried to delete is not empty", 409, BucketName=name)
            del self.buckets[name]

    def object(self, bucket, key):
        found = bucket.objects.get(key)
        if found is None:
            raise Refusal("NoSuchKey", "The specified key does not exist.", 404, Key=key)
        return found

    @staticmethod
    def may_write(bucket, key, headers):
        """If-None-Match and If-Match of a write; to be called with the lock held."""
        none, match = headers.get("if-none-match"), headers.get("if-match")
        there = bucket.objects.get(key)
        if none is not None:
            if none != "*" or match is not None:
                raise Refusal("NotImplemented", "A header you provided implies functionality that is not "
                              "implemented", 501, Header="If-None-Match")
            if there:
                raise Refusal("PreconditionFailed", "At least one of the pre-conditions you specified did not "
                              "hold", 412, Condition="If-None-Match")
        if match is not None:
            if there is None:
                raise Refusal("NoSuchKey", "The specified key does not exist.", 404, Key=key)
            if match != "*" and match.strip('"') != there.etag.strip('"'):
                raise Refusal("PreconditionFailed", "At least one of the pre-conditions you specified did not "
                              "hold", 412, Condition="If-Match")

    def put(self, bucket, thing, conditions=None):
        with self.lock:
            if self.buckets.get(bucket.name) is not bucket:
                self.bucket(bucket.name)
            self.may_write(bucket, thing.key, conditions or {})
            thing.modified = self.clock()
            bucket.put(thing)

    def begin(self, bucket, upload):
        with self.lock:
            upload.initiated = self.clock()
            bucket.uploads[upload.id] = upload

    @staticmethod
    def upload(bucket, key, upload_id):
        found = bucket.uploads.get(upload_id)
        if found is None or found.key != key:
            raise Refusal("NoSuchUpload", "The specified upload does not exist. The upload ID may be invalid, or "
                          "the upload may have been aborted or completed.", 404, UploadId=upload_id)
        return found


def new_upload_id():
    return uuid.uuid4().hex + uuid.uuid4().hex
