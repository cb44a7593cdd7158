"""S3: buckets and whole objects. Written anew instead of left to moto, which checks no
checksum, knows no region and keeps large bodies in memory several times; a test holds
what both can do against each other."""

import hashlib
import re
from email.utils import formatdate, parsedate_to_datetime
from urllib.parse import unquote

from standin import checksums, faults, s3_list, s3_parts
from standin.errors import Refusal
from standin.s3_headers import checksum_headers, copied_headers, encryption_of, source_of_copy, stored_headers, tag_of
from standin.s3_store import Object, blob_of
from standin.s3_xml import document, element, parse, stamp
from standin.wire import Reply

BUCKET_NAME = re.compile(r"(?!xn--|sthree-)(?!.*\.\.)(?!\d+\.\d+\.\d+\.\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
KEY_BYTES = 1024

# (on what, method) → (what the query or the headers must hold, operation), first match counts
TABLE = {
    ("service", "GET"): [("", "ListBuckets")],
    ("bucket", "GET"): [("location", "GetBucketLocation"), ("versioning", "GetBucketVersioning"),
                        ("uploads", "ListMultipartUploads"), ("list-type", "ListObjectsV2"),
                        ("versions", "ListObjectVersions"), ("acl", "GetBucketAcl"),
                        ("encryption", "GetBucketEncryption"), ("policy", "GetBucketPolicy"), ("", "ListObjects")],
    ("bucket", "HEAD"): [("", "HeadBucket")],
    ("bucket", "PUT"): [("versioning", "PutBucketVersioning"), ("policy", "PutBucketPolicy"),
                        ("lifecycle", "PutBucketLifecycleConfiguration"), ("", "CreateBucket")],
    ("bucket", "DELETE"): [("", "DeleteBucket")],
    ("bucket", "POST"): [("delete", "DeleteObjects")],
    ("object", "GET"): [("uploadId", "ListParts"), ("tagging", "GetObjectTagging"), ("acl", "GetObjectAcl"),
                        ("attributes", "GetObjectAttributes"), ("", "GetObject")],
    ("object", "HEAD"): [("", "HeadObject")],
    ("object", "PUT"): [("partNumber x-amz-copy-source", "UploadPartCopy"), ("partNumber", "UploadPart"),
                        ("tagging", "PutObjectTagging"), ("acl", "PutObjectAcl"),
                        ("x-amz-copy-source", "CopyObject"), ("", "PutObject")],
    ("object", "DELETE"): [("uploadId", "AbortMultipartUpload"), ("", "DeleteObject")],
    ("object", "POST"): [("uploads", "CreateMultipartUpload"), ("uploadId", "CompleteMultipartUpload")],
}


def locate(call, host):
    """Bucket, key and operation of a request; False if S3 has no such operation."""
    request = call.request
    try:
        path = unquote(request.path, errors="strict")
    except UnicodeDecodeError:
        raise Refusal("InvalidURI", "Couldn't parse the specified URI.") from None
    if host:  # the bucket's own host name
        call.bucket, call.key = host, path[1:]
    else:
        call.bucket, _, call.key = path[1:].partition("/")
    call.name = f"{call.bucket}/{call.key}" if call.key else call.bucket
    on = "object" if call.key else "bucket" if call.bucket else "service"
    for needs, operation in TABLE.get((on, request.method), ()):
        if all(need in call.query or need in request.headers for need in needs.split()):
            call.operation = operation
            return True
    return False


def handle(call):
    """The reply of an operation."""
    store = call.front.store
    handler = HANDLERS.get(call.operation)
    if handler is None:
        raise Refusal("NotImplemented", f"The stand-in has no {call.operation}", 501)
    if call.operation in ("ListBuckets", "CreateBucket"):
        return handler(call, store, None)
    bucket = store.bucket(call.bucket)
    owner = call.header("x-amz-expected-bucket-owner")
    if owner is not None and owner != call.who.account:
        raise Refusal("AccessDenied", "Access Denied", 403)
    if bucket.region != call.region and call.operation not in ("GetBucketLocation",):
        raise wrong_region(call, bucket)
    if len(call.key.encode("utf-8", "surrogateescape")) > KEY_BYTES:
        raise Refusal("KeyTooLongError", "Your key is too long", 400, MaxSizeAllowed=KEY_BYTES)
    return handler(call, store, bucket)


def wrong_region(call, bucket):
    region = [("x-amz-bucket-region", bucket.region)]
    if call.front.settings["wrong_region"] == "malformed":
        return Refusal("AuthorizationHeaderMalformed", "The authorization header is malformed; the region "
                       f"'{call.region}' is wrong; expecting '{bucket.region}'", 400, region, Region=bucket.region)
    return Refusal("PermanentRedirect", "The bucket you are attempting to access must be addressed using the "
                   "specified endpoint. Please send all future requests to this endpoint.", 301, region,
                   Endpoint=f"{bucket.name}.s3.{bucket.region}.amazonaws.com", Bucket=bucket.name)


def list_buckets(call, store, _):
    entries = [element("Bucket", element("Name", each.name), element("CreationDate", stamp(each.created)),
                       element("BucketRegion", each.region)) for each in sorted(store.buckets.values(),
                                                                               key=lambda each: each.name)]
    return document("ListAllMyBucketsResult", element("Owner", element("ID", call.who.account)),
                    element("Buckets", *entries))


def create_bucket(call, store, _):
    if not BUCKET_NAME.fullmatch(call.bucket) or call.bucket in ("standin", "latest", "federation"):
        raise Refusal("InvalidBucketName", "The specified bucket is not valid.", BucketName=call.bucket)
    region = "us-east-1"
    if call.request.body.size:
        region = parse(call.request.body.bytes()).get("LocationConstraint", region)
        if region == "us-east-1" or (region != call.region and call.region != "us-east-1"):
            raise Refusal("IllegalLocationConstraintException", f"The {region} location constraint is incompatible "
                          "for the region specific endpoint this request was sent to.")
    elif call.region != "us-east-1":
        raise Refusal("IllegalLocationConstraintException", "The unspecified location constraint is incompatible "
                      "for the region specific endpoint this request was sent to.")
    store.create(call.bucket, region)
    call.effect = True
    return Reply(200, [("Location", f"/{call.bucket}")])


def delete_bucket(call, store, bucket):
    store.drop(bucket.name)
    call.effect = True
    return Reply(204)


def head_bucket(call, store, bucket):
    return Reply(200, [("x-amz-bucket-region", bucket.region), ("Content-Type", "application/xml")])


def bucket_location(call, store, bucket):
    return document("LocationConstraint", "" if bucket.region == "us-east-1" else bucket.region)


def bucket_versioning(call, store, bucket):
    return document("VersioningConfiguration")


def put_object(call, store, bucket):
    request = call.request
    if request.header("content-length") is None and request.header("x-amz-decoded-content-length") is None:
        raise Refusal("MissingContentLength", "You must provide the Content-Length HTTP header.", 411)
    algorithm, value = checksums.verify(request)
    etag = tag_of(call, request.body.md5.hexdigest())
    thing = Object(call.key, [blob_of(request.body)], etag, stored_headers(call),
                   {algorithm: value} if algorithm else {})
    store.put(bucket, thing, faults.conditions_of(call))
    call.effect = True
    return Reply(200, [("ETag", etag), *encryption_of(thing), *(checksum_headers(thing) if algorithm else ())])


def conditions_of_read(call, thing):
    """A 304 to give back, or None; a condition that does not hold is refused."""
    match, none = call.header("if-match"), call.header("if-none-match")
    since, unmodified = call.header("if-modified-since"), call.header("if-unmodified-since")

    def names(header):
        return [word.strip().strip('"') for word in header.split(",")]

    def seconds(header):
        try:
            return parsedate_to_datetime(header).timestamp()
        except ValueError:
            return None

    bare = thing.etag.strip('"')
    if match is not None and match != "*" and bare not in names(match):
        raise Refusal("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", 412,
                      Condition="If-Match")
    if match is None and unmodified and (at := seconds(unmodified)) is not None and int(thing.modified) > at:
        raise Refusal("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", 412,
                      Condition="If-Unmodified-Since")
    unchanged = none is not None and (none == "*" or bare in names(none))
    if none is None and since and (at := seconds(since)) is not None:
        unchanged = int(thing.modified) <= at
    return Reply(304, [("ETag", thing.etag)]) if unchanged else None


def range_of(text, size):
    """(start, end) of a Range header; None: the whole."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", text or "")
    if not match or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1 if last else size, size)
        if last and int(last) < int(first):
            return None
    if start >= size or (not first and not int(last)):
        raise Refusal("InvalidRange", "The requested range is not satisfiable", 416,
                      [("Content-Range", f"bytes */{size}")], ActualObjectSize=size, RangeRequested=text)
    return start, end


def get_object(call, store, bucket):
    thing = store.object(bucket, call.key)
    unchanged = conditions_of_read(call, thing)
    if unchanged:
        return unchanged
    status, start, end = 200, 0, thing.size
    headers = [("ETag", thing.etag), ("Last-Modified", formatdate(thing.modified, usegmt=True)),
               ("Accept-Ranges", "bytes"), *thing.headers.items()]
    headers += [pair for pair in encryption_of(thing) if pair[0] not in thing.headers]
    part = call.query.get("partNumber")
    if part is not None:
        sizes = thing.part_sizes or [thing.size]
        if not 1 <= int(part) <= len(sizes):
            raise Refusal("InvalidPartNumber", "The requested partnumber is not satisfiable", 416)
        start = sum(sizes[:int(part) - 1])
        end, status = start + sizes[int(part) - 1], 206
        headers.append(("x-amz-mp-parts-count", str(len(sizes))))
    elif stretch := range_of(call.header("range"), thing.size):
        (start, end), status = stretch, 206
    if status == 206:
        headers.append(("Content-Range", f"bytes {start}-{end - 1}/{thing.size}"))
    elif call.header("x-amz-checksum-mode", "").upper() == "ENABLED":
        headers += checksum_headers(thing)
    for name, value in call.query.items():
        if name.startswith("response-"):
            headers = [pair for pair in headers if pair[0] != name[9:]] + [(name[9:], value)]
    if call.request.method == "HEAD":
        return Reply(status, headers, length=end - start)
    return Reply(status, headers, thing.read(start, end), end - start)


def delete_object(call, store, bucket):
    match = call.header("if-match")
    with store.lock:
        if match is not None:
            store.may_write(bucket, call.key, {"if-match": match})
        call.effect = bucket.remove(call.key) is not None
    return Reply(204)


def delete_objects(call, store, bucket):
    if call.header("content-md5") is None and checksums.given(call.request)[0] is None:
        raise Refusal("InvalidRequest", "Missing required header for this request: Content-MD5")
    checksums.verify(call.request)
    wanted = parse(call.request.body.bytes(), many={"Object"})
    objects, quiet = wanted.get("Object", []), wanted.get("Quiet") == "true"
    if not 1 <= len(objects) <= 1000:
        raise Refusal("MalformedXML", "The XML you provided was not well-formed or did not validate against our "
                      "published schema")
    lines = []
    for each in objects:
        key = each.get("Key", "")
        with store.lock:
            try:
                if each.get("ETag") is not None:
                    store.may_write(bucket, key, {"if-match": each["ETag"]})
                call.effect |= bucket.remove(key) is not None
                if not quiet:
                    lines.append(element("Deleted", element("Key", key)))
            except Refusal as refusal:
                lines.append(element("Error", element("Key", key), element("Code", refusal.code),
                                     element("Message", refusal.message)))
    return document("DeleteResult", *lines)


def copy_object(call, store, bucket):
    thing = source_of_copy(call, store)
    if thing.size > 5 << 30:
        raise Refusal("InvalidRequest", "The specified copy source is larger than the maximum allowable size for a "
                      "copy source: 5368709120")
    replace = call.header("x-amz-metadata-directive", "COPY") == "REPLACE"
    wanted = call.header("x-amz-checksum-algorithm", "").upper()
    if wanted and wanted not in checksums.ALGORITHMS:
        raise Refusal("InvalidRequest", "Checksum algorithm provided is unsupported.")
    kept = dict(thing.checksums) if thing.checksum_type == "FULL_OBJECT" else {}
    made = Object(call.key, thing.blobs, thing.etag if "-" not in thing.etag else etag_of(thing),
                  stored_headers(call) if replace else copied_headers(call, thing),
                  {wanted: checksums.over(wanted, thing.read())} if wanted else kept)
    store.put(bucket, made, {"if-none-match": call.header("if-none-match"), "if-match": call.header("if-match")})
    call.effect = True
    algorithm, value = made.checksum()
    return document("CopyObjectResult", element("ETag", made.etag), element("LastModified", stamp(made.modified)),
                    element("ChecksumType", made.checksum_type), element(f"Checksum{algorithm}", value))


def etag_of(thing):
    """What a single PUT of these bytes would have given."""
    digest = hashlib.md5()
    for piece in thing.read():
        digest.update(piece)
    return f'"{digest.hexdigest()}"'


def object_tagging(call, store, bucket):
    store.object(bucket, call.key)
    return document("Tagging", element("TagSet"))


HANDLERS = {
    "ListBuckets": list_buckets, "CreateBucket": create_bucket, "DeleteBucket": delete_bucket,
    "HeadBucket": head_bucket, "GetBucketLocation": bucket_location, "GetBucketVersioning": bucket_versioning,
    "ListObjectsV2": s3_list.objects, "ListObjects": s3_list.objects_old, "PutObject": put_object,
    "GetObject": get_object, "HeadObject": get_object, "DeleteObject": delete_object,
    "DeleteObjects": delete_objects, "CopyObject": copy_object, "GetObjectTagging": object_tagging,
    "CreateMultipartUpload": s3_parts.begin, "UploadPart": s3_parts.part, "UploadPartCopy": s3_parts.part_copy,
    "CompleteMultipartUpload": s3_parts.complete, "AbortMultipartUpload": s3_parts.abort,
    "ListParts": s3_parts.parts, "ListMultipartUploads": s3_parts.uploads,
}
# What is known without the model: nobody sends it, or it has no parameters worth a look.
UNMODELLED = frozenset(("PutToken", "GetMetadata", "GetCredentials"))
