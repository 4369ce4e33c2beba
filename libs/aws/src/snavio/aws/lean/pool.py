"""Connections to one endpoint, kept open between requests."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from snavio.aws.lean.connection import Connection

if TYPE_CHECKING:
    import ssl

    from snavio.aws.lean.http import Response

# Shorter than any server keeps an idle connection, so that the server is hardly ever the one to close it.
IDLE_SECONDS = 10.0
MAX_CONNECTIONS = 256
_GOODBYE_SECONDS = 1.0


class Unreachable(Exception):  # noqa: N818 - says what the endpoint is
    """No connection could be made: the request was never sent."""


class Pool:
    """Hands each request a connection of its own, the one used last first, so that spare ones grow old and close."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None,
        connect_timeout: float,
        size: int = MAX_CONNECTIONS,
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._idle: deque[Connection] = deque()
        self._open: set[Connection] = set()
        self._room = asyncio.Semaphore(size)
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._drained = asyncio.Event()

    async def exchange(self, request: bytes, timeout: float) -> Response:
        """Send a request and give its response; raises `Unreachable` or `Interrupted`."""
        async with self._room:
            connection = self._take() or await self._connect()
            response = await connection.exchange(request, timeout)
            self._give_back(connection)
            return response

    async def aclose(self) -> None:
        """End every connection; requests under way are interrupted."""
        self._closed = True
        for connection in list(self._open):
            connection.close()
        if self._open:
            # Transports say goodbye in a later round of the loop; a loop closed before that warns of them.
            with suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await self._drained.wait()

    def _take(self) -> Connection | None:
        oldest_allowed = self._loop.time() - IDLE_SECONDS
        while self._idle and self._idle[0].idle_since < oldest_allowed:
            self._idle.popleft().close()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        return None

    def _give_back(self, connection: Connection) -> None:
        if self._closed:
            connection.close()
        elif connection.is_open:
            connection.idle_since = self._loop.time()
            self._idle.append(connection)

    async def _connect(self) -> Connection:
        if self._closed:
            raise Unreachable("The client is closed.")
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self._lost), self._host, self._port, ssl=self._tls
                )
        except TimeoutError:
            raise Unreachable(f"No connection to {self._host} within {self._connect_timeout} s.") from None
        except OSError as error:
            raise Unreachable(f"No connection to {self._host}: {error}") from error
        self._open.add(connection)
        return connection

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if self._closed and not self._open:
            self._drained.set()
