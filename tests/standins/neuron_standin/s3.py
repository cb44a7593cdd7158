"""A cache whose URL begins with s3://, read and written as the real tools do it: by boto3, with the keys
that the process finds for itself, where the environment says that it should. Without any it ends with
boto3's own NoCredentialsError."""

import functools
import os
import types

from neuron_standin import settings

MISSING = ("404", "NoSuchKey", "NotFound")
TAKEN = ("PreconditionFailed", "ConditionalRequestConflict")


@functools.lru_cache(maxsize=None)
def client(process: int):
    """One a process: what a fork brings along is its parent's."""
    import boto3  # slow, and not there in every installation
    session = boto3.session.Session()
    if settings.choice("STANDIN_CACHE_KEYS", "none"):
        session._session.get_component("credential_provider").providers.clear()
    return session.client("s3")


def code_of(error: Exception) -> str:
    """Of botocore's ClientError; "" of any other."""
    return getattr(error, "response", {}).get("Error", {}).get("Code", "")


class S3Path:
    """As much of pathlib.Path as the cache goes by. There are no folders."""

    def __init__(self, url: str):
        self.url = url.rstrip("/")
        self.bucket, _, self.key = self.url.removeprefix("s3://").partition("/")

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "S3Path":
        return S3Path(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> "S3Path":
        return S3Path(self.url.rpartition("/")[0])

    @property
    def s3(self):
        return client(os.getpid())

    @property
    def place(self) -> dict:
        return {"Bucket": self.bucket, "Key": self.key}

    def mkdir(self, **_) -> None:
        pass

    def head(self) -> dict | None:
        from botocore.exceptions import ClientError
        try:
            return self.s3.head_object(**self.place)
        except ClientError as error:
            if code_of(error) in MISSING:
                return None
            raise

    def exists(self) -> bool:
        return self.head() is not None

    def stat(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(st_size=self.head()["ContentLength"])

    def read_bytes(self) -> bytes:
        return self.s3.get_object(**self.place)["Body"].read()

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, data: bytes) -> None:
        self.s3.put_object(**self.place, Body=data)

    def write_text(self, text: str) -> None:
        self.write_bytes(text.encode())

    def touch(self) -> None:
        self.write_bytes(b"")

    def unlink(self, **_) -> None:
        self.s3.delete_object(**self.place)

    def rename(self, to: "S3Path") -> None:
        to.write_bytes(self.read_bytes())
        self.unlink()

    def try_create(self) -> bool:
        """Only if nothing is there."""
        from botocore.exceptions import ClientError
        try:
            self.s3.put_object(**self.place, Body=b"", IfNoneMatch="*")
        except ClientError as error:
            if code_of(error) in TAKEN:
                return False
            raise
        return True

    def below(self) -> list["S3Path"]:
        """All that lies beneath it."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=f"{self.key}/")
        return [S3Path(f"s3://{self.bucket}/{row['Key']}") for page in pages for row in page.get("Contents", [])]

    def glob(self, pattern: str) -> list["S3Path"]:
        """MODULE_*/NAME and no other."""
        name = pattern.rpartition("/")[2]
        return [path for path in self.below() if path.name == name and path.parent.parent.url == self.url]
