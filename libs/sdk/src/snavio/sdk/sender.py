"""From single commands to full requests: linger, batches, several in flight, failed entries sent again.

A command keeps its id through every attempt and is signed anew for each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from snavio.sdk.batching import MAX_ENTRIES, Accepted, Failed, PutResult, backoff_seconds, take_batch
from snavio.sdk.bus import Bus
from snavio.sdk.errors import ClosedError, ConfigError, SendError
from snavio.sdk.outgoing import MAX_ENTRY_BYTES, Outgoing, detail
from snavio.sdk.tenant_config import Signer
from snavio.wire.times import format_time

_WHOLE_REQUEST = frozenset(
    {"ValidationException", "RequestEntityTooLarge", "RequestEntityTooLargeException", "413"}
)
"""Codes that refuse a request for what one or all of its entries are."""


class SenderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How commands are gathered and how long they are tried."""

    linger_seconds: float = 0.005
    """How long a command waits for company."""
    in_flight: int = 8
    """How many requests may be under way."""
    most_waiting: int = 10_000
    """How many commands may wait before `send` makes its caller wait."""
    give_up_seconds: float = 60.0
    """How long a command is tried."""
    close_seconds: float = 30.0
    """How long closing waits for what is under way."""


class Sent(msgspec.Struct, frozen=True, gc=False):
    """The bus has the command."""

    id: str
    event_id: str


class _Waiting:
    __slots__ = ("attempts", "command", "deadline", "future", "size")

    def __init__(self, command: Outgoing, future: asyncio.Future[Sent], deadline: float) -> None:
        self.command = command
        self.future = future
        self.deadline = deadline
        self.size = command.size
        self.attempts = 0


class Sender:
    """Sends what it is given; made inside the event loop."""

    def __init__(
        self,
        bus: Bus,
        signer: Callable[[], Signer],
        *,
        options: SenderOptions,
        now: Callable[[], float],
        roll: Callable[[], float],
        on_no_key: Callable[[], None],
    ) -> None:
        self._bus = bus
        self._signer = signer
        self._options = options
        self._now = now
        self._roll = roll
        self._on_no_key = on_no_key
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._in_flight: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    async def room(self) -> None:
        """Wait until another command may be submitted without piling up."""
        while len(self._waiting) >= self._options.most_waiting:
            self._room.clear()
            await self._room.wait()

    def submit(self, command: Outgoing) -> asyncio.Future[Sent]:
        """Take a command to send; the future ends when the bus has it or will not have it."""
        if self._closed:
            raise ClosedError("The producer is closed.")
        future: asyncio.Future[Sent] = self._loop.create_future()
        self._waiting.append(_Waiting(command, future, self._loop.time() + self._options.give_up_seconds))
        self._waiting_bytes += command.size
        self._idle.clear()
        if len(self._waiting) >= MAX_ENTRIES or self._waiting_bytes >= MAX_ENTRY_BYTES:
            self._start_requests(partial=False)
        if self._timer is None and self._waiting:
            self._timer = self._loop.call_later(self._options.linger_seconds, self._lingered)
        return future

    async def close(self) -> None:
        """Send all that waits, without lingering. What is not sent in time fails with `ClosedError`."""
        self._closed = True
        self._start_requests(partial=True)
        try:
            async with asyncio.timeout(self._options.close_seconds):
                await self._idle.wait()
        except TimeoutError:
            for task in list(self._in_flight):
                task.cancel()
            await asyncio.gather(*self._in_flight, return_exceptions=True)
            while self._waiting:
                _fail(
                    self._waiting.popleft(),
                    ClosedError("The producer was closed before the command was sent."),
                )
        if self._timer is not None:
            self._timer.cancel()

    def _lingered(self) -> None:
        self._timer = None
        self._start_requests(partial=True)

    def _start_requests(self, *, partial: bool) -> None:
        waiting = self._waiting
        while waiting and len(self._in_flight) < self._options.in_flight:
            if not partial and len(waiting) < MAX_ENTRIES and self._waiting_bytes < MAX_ENTRY_BYTES:
                break
            batch = take_batch(waiting, max_bytes=MAX_ENTRY_BYTES)
            self._waiting_bytes -= sum(item.size for item in batch)
            task = self._loop.create_task(self._carry(batch))
            self._in_flight.add(task)
            task.add_done_callback(self._carried)
        if not self._room.is_set() and len(waiting) < self._options.most_waiting:
            self._room.set()

    def _carried(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        # Whatever waited for a free request has lingered long enough.
        self._start_requests(partial=True)
        if not self._in_flight and not self._waiting:
            self._idle.set()

    async def _carry(self, batch: list[_Waiting]) -> None:
        attempt = 1
        lost: Exception = ClosedError("The producer was closed before the command was sent.")
        try:
            while batch := [item for item in batch if not item.future.done()]:
                batch = self._settle(batch, await self._attempt(batch))
                if batch:
                    await asyncio.sleep(backoff_seconds(attempt, self._roll()))
                    attempt += 1
        except Exception as error:  # noqa: BLE001 - nobody awaits this task: those who wait for the commands must hear
            lost = error
        finally:
            for item in batch:
                _fail(item, lost)

    async def _attempt(self, batch: list[_Waiting]) -> list[PutResult]:
        try:
            signer = self._signer()
        except ConfigError as error:
            self._on_no_key()
            return [Failed("NoKey", str(error))] * len(batch)
        timestamp = format_time(self._now())
        return await self._put([detail(item.command, signer, timestamp) for item in batch])

    async def _put(self, details: list[str]) -> list[PutResult]:
        results = await self._bus.put(details)
        if len(details) > 1 and all(isinstance(r, Failed) and r.code in _WHOLE_REQUEST for r in results):
            # One entry must not take the others with it: halve until it stands alone.
            middle = len(details) // 2
            return [*await self._put(details[:middle]), *await self._put(details[middle:])]
        return results

    def _settle(self, batch: list[_Waiting], results: list[PutResult]) -> list[_Waiting]:
        """End what is decided; give back what is worth another attempt."""
        again: list[_Waiting] = []
        for item, result in zip(batch, results, strict=True):
            if isinstance(result, Accepted):
                if not item.future.done():
                    item.future.set_result(Sent(item.command.id, result.event_id))
            elif result.permanent or self._loop.time() >= item.deadline:
                _fail(
                    item, SendError(item.command.id, result.code, result.detail, uncertain=result.uncertain)
                )
            else:
                again.append(item)
        return again


def _fail(item: _Waiting, error: Exception) -> None:
    if not item.future.done():
        item.future.set_exception(error)
