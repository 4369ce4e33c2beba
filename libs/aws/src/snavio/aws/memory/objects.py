"""The `Objects` port in memory."""

from __future__ import annotations

import hashlib

from anyio.lowlevel import checkpoint

from snavio.aws.errors import ConditionFailed, NotFound, Permanent
from snavio.aws.values import StoredObject


class MemoryObjects:
    """`Objects` in memory; `buckets` may be looked into and added to."""

    def __init__(self, *buckets: str) -> None:
        self.buckets: dict[str, dict[str, StoredObject]] = {name: {} for name in buckets}

    async def get(self, bucket: str, key: str, *, max_bytes: int | None = None) -> StoredObject:
        """The object."""
        await checkpoint()
        found = self._bucket(bucket).get(key)
        if found is None:
            raise NotFound(f"There is no object {key} in {bucket}.", code="NoSuchKey")
        if max_bytes is not None and len(found.body) > max_bytes:
            raise Permanent(f"{key} holds {len(found.body)} bytes, more than {max_bytes}.", code="TooLarge")
        return found

    async def put(
        self, bucket: str, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False
    ) -> str:
        """Write and return the new entity tag; `ConditionFailed` when another writer was first."""
        if if_match is not None and if_absent:
            raise Permanent("An object cannot both match a tag and be absent.", code="InvalidRequest")
        await checkpoint()
        objects = self._bucket(bucket)
        found = objects.get(key)
        if (if_absent and found is not None) or (
            if_match is not None and (found is None or found.etag != if_match)
        ):
            raise ConditionFailed(f"{key} in {bucket} is not as expected.")
        etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
        objects[key] = StoredObject(bytes(body), etag)
        return etag

    async def delete(self, bucket: str, key: str) -> None:
        """Remove the object; removing an absent one is no error."""
        await checkpoint()
        self._bucket(bucket).pop(key, None)

    def _bucket(self, name: str) -> dict[str, StoredObject]:
        found = self.buckets.get(name)
        if found is None:
            raise NotFound(f"There is no bucket {name}.", code="NoSuchBucket")
        return found
