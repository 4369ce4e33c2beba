"""One connection, carrying one request at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from snavio.aws.lean.http import Malformed, Response, ResponseReader

if TYPE_CHECKING:
    from collections.abc import Callable


class Interrupted(Exception):  # noqa: N818 - says what became of the request
    """The connection ended, or time ran out, before the whole response came. The request may have acted."""


class Connection(asyncio.Protocol):
    """The asyncio side of a connection; `exchange` is all a pool needs."""

    def __init__(self, on_lost: Callable[[Connection], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_lost = on_lost
        self._reader = ResponseReader()
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Response] | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._ended_by_peer = False
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether another request may be tried."""
        return self._transport is not None and not self._transport.is_closing()

    async def exchange(self, request: bytes, timeout: float) -> Response:
        """Send a request and give its response. All requests of a connection have the same timeout.

        When interrupted, by cancellation too, the connection is closed: a late response must not be taken for the
        answer to another request.
        """
        transport = self._transport
        if transport is None:
            raise Interrupted("The connection was closed.")
        self._waiting = waiting = self._loop.create_future()
        self._deadline = self._loop.time() + timeout
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._look_at_time)
        try:
            transport.write(request)
            response = await waiting
        except BaseException:
            self.close()
            raise
        finally:
            self._waiting = None
        if not response.keep_alive or transport.get_write_buffer_size():
            self.close()
        return response

    def close(self) -> None:
        """End the connection at once, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        waiting = self._waiting
        if waiting is None or waiting.done():
            # Nobody asked: whatever this is, it must not answer the next request.
            self.close()
            return
        try:
            response = self._reader.feed(data)
        except Malformed as fault:
            waiting.set_exception(Interrupted(str(fault)))
            return
        if response is not None:
            waiting.set_result(response)

    def eof_received(self) -> bool:
        """Called by asyncio; the answer has it close the transport."""
        self._ended_by_peer = True
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        waiting = self._waiting
        if waiting is not None and not waiting.done():
            response = self._reader.feed_eof() if self._ended_by_peer else None
            if response is not None:
                waiting.set_result(response)
            else:
                waiting.set_exception(
                    Interrupted(f"The connection ended early: {exc or 'closed by the peer'}.")
                )
        self._on_lost(self)

    def _look_at_time(self) -> None:
        # One timer serves many requests: setting and cancelling one for each costs more than looking now and then.
        self._timer = None
        if self._waiting is None or self._waiting.done():
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._look_at_time)
        else:
            self._waiting.set_exception(Interrupted("No response in time."))
