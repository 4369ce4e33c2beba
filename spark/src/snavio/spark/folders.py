"""Small files beside the data: manifests and state, in a folder or under a prefix of a bucket.

Spark writes and reads the Parquet itself; what must change in one step goes through here. A write replaces the whole
file or does nothing, on both kinds. What several processes may change at once is changed by `update`, which nobody's
change gets lost in.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import unquote, urlsplit

import msgspec
from botocore.exceptions import ClientError

from snavio.spark.clients import client_of

_MOST_TRIES = 100
"""Every try but one's own last is somebody's success: so many in a row mean something else is wrong."""
_LOST = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"})
"""There is another version, or another write at this very moment, or no file any more."""
_SCHEMES = frozenset({"", "file", "s3", "s3a"})
_PATTERN = frozenset("{}[]*?\\")
"""What makes a pattern of a path where Spark reads, and not where it writes."""


class Entry(msgspec.Struct, frozen=True):
    """A file of a folder."""

    path: str
    """Relative to the folder, with forward slashes."""
    modified: float
    """Seconds since the epoch."""


class Version(msgspec.Struct, frozen=True):
    """A file as somebody read it, for `Folder.replace` to compare with."""

    body: bytes | None
    """None where there was no file."""
    tag: str = ""


class Folder(Protocol):
    """Files named by relative paths."""

    @property
    def uri(self) -> str:
        """The folder as Spark names it."""
        ...

    def read(self, path: str) -> bytes | None:
        """The file, or None."""
        ...

    def version(self, path: str) -> Version:
        """The file, and what tells this version of it from others."""
        ...

    def write(self, path: str, body: bytes) -> None:
        """Replace the file in one step, whatever it was: for what only one process writes, or any may."""
        ...

    def replace(self, path: str, body: bytes, seen: Version) -> bool:
        """Replace the file in one step if it still is what was seen. False if it is not, and nothing was done.

        On S3 False may also follow a replacement whose answer was lost: look before doing it again.
        """
        ...

    def entries(self, start: str) -> Iterator[Entry]:
        """Every file, at any depth, whose path starts with this text."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; removing nothing is no error."""
        ...


def update(folder: Folder, path: str, change: Callable[[bytes | None], bytes]) -> None:
    """Make the file what `change` makes of it, undoing nobody else's change.

    `change` is called again, with what the file has become, whenever somebody else was quicker; it may then meet its own
    work, and must leave that as it is.
    """
    for tried in range(_MOST_TRIES):
        seen = folder.version(path)
        if folder.replace(path, change(seen.body), seen):
            return
        time.sleep(random.uniform(0, min(0.001 * 2**tried, 0.2)))
    raise TimeoutError(f"{folder.uri}/{path} was replaced by others {_MOST_TRIES} times in a row.")


class LocalFolder:
    """A folder of this machine. Processes that share it keep out of each other's way by a lock on the folder of a file."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @property
    def uri(self) -> str:
        """The folder as Spark names it: a URI in which nothing is encoded, since Spark decodes nothing."""
        return f"file://{self._root.as_posix()}"

    def read(self, path: str) -> bytes | None:
        """The file, or None."""
        try:
            return (self._root / path).read_bytes()
        except FileNotFoundError:
            return None

    def version(self, path: str) -> Version:
        """The file; its content is what tells it from others."""
        return Version(self.read(path))

    def write(self, path: str, body: bytes) -> None:
        """Replace the file in one step, whatever it was."""
        with self._locked(path):
            self._put(path, body)

    def replace(self, path: str, body: bytes, seen: Version) -> bool:
        """Replace the file in one step if it still is what was seen."""
        with self._locked(path):
            unchanged = self.read(path) == seen.body
            if unchanged:
                self._put(path, body)
            return unchanged

    def entries(self, start: str) -> Iterator[Entry]:
        """Every file, at any depth, whose path starts with this text."""
        above, _, name = start.rpartition("/")
        tops = [top for top in sorted((self._root / above).glob("*")) if top.name.startswith(name)]
        found = [top for top in tops if top.is_file()]
        for top in tops:
            for place, folders, files in os.walk(top, onerror=_raise_unless_gone):
                folders.sort()
                found += [Path(place, file) for file in sorted(files)]
        for path in found:
            with suppress(FileNotFoundError):
                yield Entry(path.relative_to(self._root).as_posix(), path.stat().st_mtime)

    def remove(self, path: str) -> None:
        """Remove a file, and the folder it leaves empty."""
        target = self._root / path
        target.unlink(missing_ok=True)
        with suppress(OSError):
            target.parent.rmdir()

    @contextmanager
    def _locked(self, path: str) -> Generator[None]:
        above = (self._root / path).parent
        above.mkdir(parents=True, exist_ok=True)
        # Locks the folder itself: a lock file could never be removed again. Closing, or dying, unlocks.
        folder = os.open(above, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _put(self, path: str, body: bytes) -> None:
        target = self._root / path
        aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        with aside.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(target)


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
        return self.version(path).body

    def version(self, path: str) -> Version:
        """The file and its ETag."""
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + path)
        except ClientError as error:
            if _code(error) == "NoSuchKey":
                return Version(None)
            raise
        return Version(answer["Body"].read(), answer["ETag"])

    def write(self, path: str, body: bytes) -> None:
        """Replace the file in one step, whatever it was."""
        self._client.put_object(Bucket=self._bucket, Key=self._prefix + path, Body=body)

    def replace(self, path: str, body: bytes, seen: Version) -> bool:
        """Replace the file in one step if it still is what was seen."""
        unchanged = {"IfNoneMatch": "*"} if seen.body is None else {"IfMatch": seen.tag}
        try:
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + path, Body=body, **unchanged)
        except ClientError as error:
            if _code(error) in _LOST:
                return False
            raise
        return True

    def entries(self, start: str) -> Iterator[Entry]:
        """Every file, at any depth, whose path starts with this text."""
        pages = self._client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + start):
            for found in page.get("Contents", []):
                yield Entry(found["Key"][len(self._prefix) :], found["LastModified"].timestamp())

    def remove(self, path: str) -> None:
        """Remove a file; removing nothing is no error."""
        self._client.delete_object(Bucket=self._bucket, Key=self._prefix + path)


def fault_of(uri: str) -> str | None:
    """Why no lake can be there, in a sentence; None where one can. Opens nothing."""
    odd = sorted(_PATTERN.intersection(unquote(uri) if uri.startswith("file:") else uri))
    if odd:
        return f"Spark would take {' '.join(odd)} in the path of a lake for a pattern: name another folder."
    scheme = urlsplit(uri).scheme
    if scheme not in _SCHEMES:
        return f"The lake is a folder or an s3:// URI, not {scheme}://."
    return None


def open_folder(uri: str) -> Folder:
    """The folder at a path, a `file:` or an `s3:` URI. Raises `ValueError` for what `fault_of` tells."""
    fault = fault_of(uri)
    if fault:
        raise ValueError(fault)
    parts = urlsplit(uri, allow_fragments=False)
    match parts.scheme:
        case "":
            return LocalFolder(Path(uri))
        case "file":
            return LocalFolder(Path(unquote(parts.path)))
        case bucket_scheme:
            return BucketFolder(bucket_scheme, parts.netloc, parts.path, client_of("s3"))


def _raise_unless_gone(error: OSError) -> None:
    """Others may sweep while files are listed."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _code(error: ClientError) -> str:
    return cast("Any", error).response["Error"]["Code"]
