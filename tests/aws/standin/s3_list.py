"""S3's lists of objects: pages, delimiters, opaque tokens, and lists that are wrong on
demand (stale, without an end)."""

import base64
import uuid
from urllib.parse import quote

from standin.errors import Refusal
from standin.s3_xml import document, element, stamp

PAGE = 1000


def token_of(key):
    return base64.urlsafe_b64encode(b"1" + key.encode("utf-8", "surrogateescape")).decode()


def key_of(token):
    try:
        raw = base64.urlsafe_b64decode(token.encode())
        if raw[:1] != b"1":
            raise ValueError
        return raw[1:].decode("utf-8", "surrogateescape")
    except ValueError:
        raise Refusal("InvalidArgument", "The continuation token provided is incorrect",
                      ArgumentName="continuation-token") from None


def page_size(call):
    text = call.query.get("max-keys", str(PAGE))
    if not text.isdigit():
        raise Refusal("InvalidArgument", "Provided max-keys not an integer or within integer range",
                      ArgumentName="max-keys", ArgumentValue=text)
    return min(int(text), call.front.settings["page_size"])


def writer(call):
    kind = call.query.get("encoding-type")
    if kind not in (None, "url"):
        raise Refusal("InvalidArgument", "Invalid Encoding Method specified in Request", ArgumentName="encoding-type")
    if kind:
        return lambda text: quote(text, safe="/-_.~*", errors="surrogateescape")
    return lambda text: text


def page(call, bucket, after):
    """(entries, common prefixes, last name or None): a page's worth beyond `after`."""
    prefix, delimiter = call.query.get("prefix", ""), call.query.get("delimiter", "")
    limit, entries, groups, last = page_size(call), [], [], None
    lag = call.fault.number("lag", 3600) if call.fault and call.fault.kind == "stale" else 0
    for thing in bucket.keys_of(prefix, after, lag):
        cut = thing.key.find(delimiter, len(prefix)) if delimiter else -1
        group = thing.key[:cut + len(delimiter)] if cut >= 0 else None
        if group and (group in groups[-1:] or (after and after.startswith(group))):
            continue
        if len(entries) + len(groups) >= limit:
            return entries, groups, last
        if group:
            groups.append(group)
            last = group
        else:
            entries.append(thing)
            last = thing.key
    return entries, groups, None


def rows(call, entries, groups):
    write = writer(call)
    out = []
    for thing in entries:
        names = [element("ChecksumAlgorithm", name) for name in thing.checksums]
        out.append(element("Contents", element("Key", write(thing.key)), element("LastModified", stamp(thing.modified)),
                           element("ETag", thing.etag), *names, element("Size", thing.size),
                           element("StorageClass", thing.headers.get("x-amz-storage-class", "STANDARD"))))
    out += [element("CommonPrefixes", element("Prefix", write(group))) for group in groups]
    return out


def objects(call, store, bucket):
    if call.query.get("list-type") != "2":
        raise Refusal("InvalidArgument", "Invalid List Type specified in Request", ArgumentName="list-type")
    token, write = call.query.get("continuation-token"), writer(call)
    after = key_of(token) if token else call.query.get("start-after", "")
    if call.fault and call.fault.kind == "endless":
        after = ""
    with store.lock:
        entries, groups, last = page(call, bucket, after)
    more = last is not None and page_size(call) > 0
    following = token_of(last) if more else None
    if call.fault and call.fault.kind in ("endless", "repeat_token"):
        more, following = True, token or token_of(entries[-1].key if entries else "0")
        if call.fault.fields.get("fresh"):
            following = token_of(uuid.uuid4().hex)
    head = [element("Name", bucket.name), element("Prefix", write(call.query.get("prefix", "")))]
    for name, query in (("Delimiter", "delimiter"), ("StartAfter", "start-after"), ("EncodingType", "encoding-type")):
        if query in call.query:
            value = call.query[query]
            head.append(element(name, value if query == "encoding-type" else write(value)))
    if token:
        head.append(element("ContinuationToken", token))
    return document("ListBucketResult", *head, element("MaxKeys", call.query.get("max-keys", PAGE)),
                    element("KeyCount", len(entries) + len(groups)), element("IsTruncated", str(more).lower()),
                    *([element("NextContinuationToken", following)] if more else []), *rows(call, entries, groups))


def objects_old(call, store, bucket):
    write = writer(call)
    with store.lock:
        entries, groups, last = page(call, bucket, call.query.get("marker", ""))
    more = last is not None
    head = [element("Name", bucket.name), element("Prefix", write(call.query.get("prefix", ""))),
            element("Marker", write(call.query.get("marker", "")))]
    if "delimiter" in call.query:
        head.append(element("Delimiter", write(call.query["delimiter"])))
        if more:
            head.append(element("NextMarker", write(last)))
    if "encoding-type" in call.query:
        head.append(element("EncodingType", "url"))
    return document("ListBucketResult", *head, element("MaxKeys", call.query.get("max-keys", PAGE)),
                    element("IsTruncated", str(more).lower()), *rows(call, entries, groups))
