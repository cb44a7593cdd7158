"""What an S3 client with no part in the comparison finds: objects.py BUCKET PREFIX prints
{key without the prefix: SHA-256 of the content}."""

import hashlib
import json
import sys

import boto3

bucket, prefix = sys.argv[1:]
s3 = boto3.client("s3")
found = {}
for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
    for row in page.get("Contents", []):
        digest = hashlib.sha256()
        for chunk in s3.get_object(Bucket=bucket, Key=row["Key"])["Body"].iter_chunks(1 << 20):
            digest.update(chunk)
        found[row["Key"].removeprefix(prefix)] = digest.hexdigest()
print(json.dumps(found))
