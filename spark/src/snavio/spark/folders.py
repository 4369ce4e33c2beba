"""Small files beside the data: manifests and state, in a folder or under a prefix of a bucket.

Spark writes and reads the Parquet itself; what must change in one step goes through here. A write replaces the whole
file or does nothing, on both kinds.
"""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

import msgspec
from botocore.exceptions import ClientError

from snavio.spark.clients import client_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class Entry(msgspec.Struct, frozen=True):
    """A file below a folder."""

    path: str
    """Relative to the folder, with forward slashes."""
    size: int
    modified: float
    """Seconds since the epoch."""


class Folder(Protocol):
    """Files named by relative paths."""

    @property
    def uri(self) -> str:
        """The folder as Spark names it."""
        ...

    def read(self, path: str) -> bytes | None:
        """The file, or None."""
        ...

    def write(self, path: str, body: bytes) -> None:
        """Replace the file in one step."""
        ...

    def entries(self, below: str) -> Iterator[Entry]:
        """Every file below a path, at any depth."""
        ...

    def remove(self, below: str) -> None:
        """Remove a path and all below it; removing nothing is no error."""
        ...


class LocalFolder:
    """A folder of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @property
    def uri(self) -> str:
        """The folder as Spark names it."""
        return self._root.as_uri()

    def read(self, path: str) -> bytes | None:
        """The file, or None."""
        try:
            return (self._root / path).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, path: str, body: bytes) -> None:
        """Replace the file in one step."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        with aside.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(target)

    def entries(self, below: str) -> Iterator[Entry]:
        """Every file below a path, at any depth."""
        for path in sorted((self._root / below).rglob("*")):
            if path.is_file():
                status = path.stat()
                yield Entry(path.relative_to(self._root).as_posix(), status.st_size, status.st_mtime)

    def remove(self, below: str) -> None:
        """Remove a path and all below it; removing nothing is no error."""
        path = self._root / below
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class BucketFolder:
    """A prefix of an S3 bucket."""

    def __init__(self, scheme: str, bucket: str, prefix: str, client: Any) -> None:
        self._scheme = scheme
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._client = client

    @property
    def uri(self) -> str:
        """The folder as Spark names it."""
        return f"{self._scheme}://{self._bucket}/{self._prefix}".rstrip("/")

    def read(self, path: str) -> bytes | None:
        """The file, or None."""
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + path)
        except ClientError as error:
            if cast("Any", error).response["Error"]["Code"] in ("NoSuchKey", "404"):
                return None
            raise
        return answer["Body"].read()

    def write(self, path: str, body: bytes) -> None:
        """Replace the file in one step."""
        self._client.put_object(Bucket=self._bucket, Key=self._prefix + path, Body=body)

    def entries(self, below: str) -> Iterator[Entry]:
        """Every file below a path, at any depth."""
        pages = self._client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self._bucket, Prefix=f"{self._prefix}{below.rstrip('/')}/"):
            for found in page.get("Contents", []):
                yield Entry(
                    found["Key"][len(self._prefix) :], found["Size"], found["LastModified"].timestamp()
                )

    def remove(self, below: str) -> None:
        """Remove a path and all below it; removing nothing is no error."""
        for entry in list(self.entries(below)):
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + entry.path)
        self._client.delete_object(Bucket=self._bucket, Key=self._prefix + below)


def open_folder(uri: str) -> Folder:
    """The folder at a path, a `file:` or an `s3:` URI. Raises `ValueError` for any other scheme."""
    parts = urlsplit(uri)
    match parts.scheme:
        case "" | "file":
            return LocalFolder(Path(parts.path if parts.scheme else uri))
        case "s3" | "s3a":
            return BucketFolder(parts.scheme, parts.netloc, parts.path, client_of("s3"))
        case other:
            raise ValueError(f"The lake is a folder or an s3:// URI, not {other}://.")
