"""Payloads too large for a queue, fetched from where the platform left them and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from snavio.sdk.errors import RejectCommand
from snavio.wire.commands import PayloadRef


class Payloads(Protocol):
    """Where large payloads lie."""

    async def read(self, bucket: str, key: str, most_bytes: int) -> bytes:
        """The object, or its beginning when it is longer than that. Raises when it cannot be had."""
        ...


class S3Payloads:
    """Payloads in S3. `opened` gives an aiobotocore S3 client, when one is first needed."""

    def __init__(self, opened: Callable[[], Awaitable[Any]]) -> None:
        self._opened = opened
        self._client: Any = None

    async def read(self, bucket: str, key: str, most_bytes: int) -> bytes:
        """Fetch an object, reading no more of it than allowed."""
        if self._client is None:
            self._client = await self._opened()
        answer = await self._client.get_object(Bucket=bucket, Key=key)
        found = bytearray()
        async with answer["Body"] as stream:
            # A read gives what has arrived, which may be less than what was asked for.
            while len(found) < most_bytes and (part := await stream.read(most_bytes - len(found))):
                found += part
        return bytes(found)


async def fetch(ref: PayloadRef, payloads: Payloads) -> bytes:
    """The payload a reference means. Raises `RejectCommand` when something else lies there."""
    found = await payloads.read(ref.bucket, ref.key, ref.bytes + 1)
    if len(found) != ref.bytes or hashlib.sha256(found).hexdigest() != ref.sha256:
        raise RejectCommand(f"the payload at s3://{ref.bucket}/{ref.key} is not the one that was sent")
    return found
