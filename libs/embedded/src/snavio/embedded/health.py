"""Asking a process whether it is ready."""

from __future__ import annotations

import asyncio

_PATIENCE_SECONDS = 2.0
_POLL_SECONDS = 0.1


async def until_ready(port: int) -> None:
    """Return when the health port on 127.0.0.1 answers that the process is ready."""
    while not await _is_ready(port):  # noqa: ASYNC110 - another process: there is nothing to be woken by
        await asyncio.sleep(_POLL_SECONDS)


async def _is_ready(port: int) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                return (await reader.readline()).split(b" ")[1:2] == [b"200"]
            finally:
                writer.close()
    except (OSError, ValueError):
        return False
