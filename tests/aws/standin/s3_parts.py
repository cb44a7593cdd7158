"""S3's uploads in parts: verified part by part and as a whole, completed at one moment,
forgotten when they are aborted."""

import hashlib
import re

from standin import checksums, faults
from standin.errors import Refusal
from standin.s3_headers import encryption_of, source_of_copy, stored_headers, tag_of
from standin.s3_store import Blob, Object, Part, Upload, blob_of, new_upload_id
from standin.s3_xml import document, element, malformed, parse, stamp
from standin.wire import Reply

PARTS = 10000


def begin(call, store, bucket):
    algorithm = call.header("x-amz-checksum-algorithm", "").upper() or None
    if algorithm and algorithm not in checksums.ALGORITHMS:
        raise Refusal("InvalidRequest", "Checksum algorithm provided is unsupported.")
    kind = call.header("x-amz-checksum-type", "").upper()
    if kind and not algorithm:
        raise Refusal("InvalidRequest", "The x-amz-checksum-type header can only be used with the "
                      "x-amz-checksum-algorithm header.")
    if not kind:
        kind = "FULL_OBJECT" if algorithm in (None, "CRC64NVME") else "COMPOSITE"
    if (kind == "FULL_OBJECT" and algorithm and algorithm not in checksums.LINEAR) or (
            kind == "COMPOSITE" and algorithm == "CRC64NVME"):
        raise Refusal("InvalidRequest", f"The {kind} checksum type cannot be used with the {algorithm} checksum "
                      "algorithm.")
    upload = Upload(new_upload_id(), call.key, stored_headers(call), algorithm, kind)
    store.begin(bucket, upload)
    call.effect = True
    reply = document("InitiateMultipartUploadResult", element("Bucket", bucket.name), element("Key", call.key),
                     element("UploadId", upload.id))
    reply.headers += encryption_of(upload)
    if algorithm:
        reply.headers += [("x-amz-checksum-algorithm", algorithm), ("x-amz-checksum-type", kind)]
    return reply


def number_of(call):
    text = call.query.get("partNumber", "")
    if not text.isdigit() or not 1 <= int(text) <= PARTS:
        raise Refusal("InvalidArgument", f"Part number must be an integer between 1 and {PARTS}, inclusive",
                      ArgumentName="partNumber", ArgumentValue=text)
    return int(text)


def keep(call, store, bucket, part):
    with store.lock:
        upload = store.upload(bucket, call.key, call.query["uploadId"])
        part.modified = store.clock()
        upload.parts[part.number] = part
    call.effect = True


def part(call, store, bucket):
    request = call.request
    upload = store.upload(bucket, call.key, call.query.get("uploadId", ""))
    if request.header("content-length") is None and request.header("x-amz-decoded-content-length") is None:
        raise Refusal("MissingContentLength", "You must provide the Content-Length HTTP header.", 411)
    number = number_of(call)
    algorithm, value = checksums.verify(request)
    if algorithm and upload.algorithm and algorithm != upload.algorithm:
        raise Refusal("InvalidRequest", f"Checksum Type mismatch occurred, expected checksum Type: "
                      f"{upload.algorithm.lower()}, actual checksum Type: {algorithm.lower()}")
    if upload.algorithm and upload.kind == "COMPOSITE" and not algorithm:
        raise Refusal("InvalidRequest", "Checksum Type mismatch occurred, expected checksum Type: "
                      f"{upload.algorithm.lower()}, actual checksum Type: null")
    etag = tag_of(call, request.body.md5.hexdigest())
    keep(call, store, bucket, Part(number, blob_of(request.body), etag, {algorithm: value} if algorithm else {}, 0))
    reply = Reply(200, [("ETag", etag)])
    if algorithm:
        reply.headers.append((checksums.HEADER + algorithm.lower(), value))
    return reply


def part_copy(call, store, bucket):
    store.upload(bucket, call.key, call.query.get("uploadId", ""))
    thing = source_of_copy(call, store)
    start, end = 0, thing.size
    if stretch := call.header("x-amz-copy-source-range"):
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", stretch)
        if not match or int(match[2]) >= thing.size:
            raise Refusal("InvalidArgument", "The x-amz-copy-source-range value must be of the form bytes=first-last")
        start, end = int(match[1]), int(match[2]) + 1
    data = b"".join(thing.read(start, end))
    etag = f'"{hashlib.md5(data).hexdigest()}"'
    keep(call, store, bucket, Part(number_of(call), Blob(data), etag, {}, 0))
    return document("CopyPartResult", element("ETag", etag), element("LastModified", stamp(store.clock())))


def chosen_parts(call, upload):
    """The parts that the request lists, if they are what was uploaded."""
    listed = parse(call.request.body.bytes(), many={"Part"}).get("Part", [])
    if not listed:
        raise malformed()
    numbers, chosen = [], []
    for each in listed:
        if not isinstance(each, dict) or not each.get("PartNumber", "").isdigit():
            raise malformed()
        number = int(each["PartNumber"])
        there = upload.parts.get(number)
        said = {name: each[f"Checksum{name}"] for name in checksums.ALGORITHMS if f"Checksum{name}" in each}
        if there is None or each.get("ETag", "").strip('"') != there.etag.strip('"') or any(
                there.checksums.get(name) not in (None, value) for name, value in said.items()):
            raise Refusal("InvalidPart", "One or more of the specified parts could not be found. The part may not "
                          "have been uploaded, or the specified entity tag may not match the part's entity tag.",
                          UploadId=upload.id, PartNumber=number)
        if upload.kind == "COMPOSITE" and upload.algorithm not in said:
            raise Refusal("InvalidRequest", f"The upload was created using a {upload.algorithm.lower()} checksum. The "
                          "complete request must include the checksum for each part. It was missing for part "
                          f"{number} in the request.")
        numbers.append(number)
        chosen.append(there)
    if numbers != sorted(set(numbers)):
        raise Refusal("InvalidPartOrder", "The list of parts was not in ascending order. The parts list must be "
                      "specified in order by part number.", UploadId=upload.id)
    smallest = call.front.settings["min_part"]
    for each in chosen[:-1]:
        if each.blob.size < smallest:
            raise Refusal("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size",
                          ProposedSize=each.blob.size, MinSizeAllowed=smallest, PartNumber=each.number)
    return chosen


def assemble(call, upload, chosen):
    digest = hashlib.md5(b"".join(bytes.fromhex(each.etag.strip('"')) for each in chosen)).hexdigest()
    thing = Object(call.key, [each.blob for each in chosen], f'"{digest}-{len(chosen)}"', upload.headers,
                   part_sizes=[each.blob.size for each in chosen], checksum_type=upload.kind)
    if upload.algorithm and upload.kind == "COMPOSITE":
        values = [each.checksums[upload.algorithm] for each in chosen]
        thing.checksums[upload.algorithm] = checksums.composite(upload.algorithm, values)
    elif upload.algorithm:
        thing.checksums[upload.algorithm] = checksums.over(upload.algorithm, thing.read())
    algorithm, value = checksums.given(call.request)
    if algorithm:
        if algorithm not in thing.checksums and thing.checksum_type == "FULL_OBJECT":
            thing.checksums = {algorithm: checksums.over(algorithm, thing.read())}
        if thing.checksums.get(algorithm) != value:
            raise Refusal("BadDigest", f"The {algorithm.lower()} you specified did not match the calculated checksum.")
    size = call.header("x-amz-mp-object-size")
    if size is not None and size != str(thing.size):
        raise Refusal("InvalidRequest", "The provided 'x-amz-mp-object-size' header does not match what was computed.")
    return thing


def complete(call, store, bucket):
    upload = store.upload(bucket, call.key, call.query["uploadId"])
    chosen = chosen_parts(call, upload)
    thing = assemble(call, upload, chosen)
    with store.lock:
        store.upload(bucket, call.key, upload.id)
        store.put(bucket, thing, faults.conditions_of(call))
        del bucket.uploads[upload.id]
    call.effect = True
    names = [element(f"Checksum{name}", value) for name, value in thing.checksums.items()]
    if names:
        names.append(element("ChecksumType", thing.checksum_type))
    return document("CompleteMultipartUploadResult", element("Location", f"/{bucket.name}/{call.key}"),
                    element("Bucket", bucket.name), element("Key", call.key), element("ETag", thing.etag), *names)


def abort(call, store, bucket):
    with store.lock:
        upload = store.upload(bucket, call.key, call.query["uploadId"])
        del bucket.uploads[upload.id]
    call.effect = True
    return Reply(204)


def parts(call, store, bucket):
    upload = store.upload(bucket, call.key, call.query["uploadId"])
    limit = min(int(call.query.get("max-parts", "1000")), 1000)
    after = int(call.query.get("part-number-marker", "0"))
    numbers = sorted(number for number in list(upload.parts) if number > after)
    rows = []
    for number in numbers[:limit]:
        each = upload.parts[number]
        sums = [element(f"Checksum{name}", value) for name, value in each.checksums.items()]
        rows.append(element("Part", element("PartNumber", number), element("LastModified", stamp(each.modified)),
                            element("ETag", each.etag), element("Size", each.blob.size), *sums))
    more = len(numbers) > limit
    return document("ListPartsResult", element("Bucket", bucket.name), element("Key", call.key),
                    element("UploadId", upload.id), element("PartNumberMarker", after),
                    *([element("NextPartNumberMarker", numbers[limit - 1])] if more else []),
                    element("MaxParts", limit), element("IsTruncated", str(more).lower()), *rows)


def uploads(call, store, bucket):
    prefix = call.query.get("prefix", "")
    with store.lock:
        found = sorted((each for each in bucket.uploads.values() if each.key.startswith(prefix)),
                       key=lambda each: (each.key, each.initiated))
    rows = [element("Upload", element("Key", each.key), element("UploadId", each.id),
                    element("Initiated", stamp(each.initiated))) for each in found]
    return document("ListMultipartUploadsResult", element("Bucket", bucket.name), element("Prefix", prefix),
                    element("MaxUploads", 1000), element("IsTruncated", "false"), *rows)
