"""Recording telemetry durably, many callers to a write.

A batch of messages is acknowledged only after its events are in the outbox, so every batch waits here. Callers that come
while a write is under way are written together with the next one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar, cast

import anyio
import msgspec

from snavio.aws.errors import SnavioError, Transient
from snavio.aws.ports import MAX_BATCH_WRITE, Tables
from snavio.aws.values import Item
from snavio.runtime.together import together
from snavio.wire.events import Event
from snavio.wire.outbox import RETENTION_SECONDS, outbox_row

_ATTEMPTS = 6
_FLUSHES = 4

T = TypeVar("T")


class Unrecorded(Transient):
    """Some events could not be written; all others are durable."""

    def __init__(self, message: str, event_ids: frozenset[str]) -> None:
        super().__init__(message)
        self.event_ids = event_ids


class OutboxWriter:
    """Writes events to the outbox table."""

    def __init__(
        self,
        tables: Tables,
        table: str,
        *,
        clock: Callable[[], float],
        retention_seconds: int = RETENTION_SECONDS,
    ) -> None:
        self._tables = tables
        self._table = table
        self._clock = clock
        self._retention = retention_seconds
        self._pending: list[_Waiting] = []
        # asyncio's own, as the event below: in the path of every batch, and a fraction of what anyio's cost.
        self._flushing = asyncio.Semaphore(_FLUSHES)
        self.written = 0

    async def record(self, told: Sequence[tuple[T, Event]]) -> list[tuple[T, str]]:
        """Write events, each with whom it tells of; returns of whom the telling failed, and why, once all others' are durable."""
        try:
            await self.write([event for _, event in told])
        except Unrecorded as fault:
            why = f"telemetry could not be recorded: {fault}"
            return [(whom, why) for whom, event in told if event.event_id in fault.event_ids]
        return []

    async def write(self, events: Sequence[Event]) -> None:
        """Return once every event is durable. Raises `Unrecorded` when some could not be written."""
        if not events:
            return
        now = self._clock()
        rows = [outbox_row(event, now, retention_seconds=self._retention) for event in events]
        waiting = _Waiting({row.sk: msgspec.to_builtins(row) for row in rows})
        self._pending.append(waiting)
        # Whoever is ready now joins this write: a call holds 25 rows and a batch brings ten.
        await asyncio.sleep(0)
        async with self._flushing:
            if waiting in self._pending:
                await self._flush()
        await waiting.done.wait()
        if waiting.lost:
            message = f"the outbox did not take {len(waiting.lost)} of {len(rows)} events: {waiting.error}"
            raise Unrecorded(message, frozenset(waiting.lost)) from waiting.error

    async def _flush(self) -> None:
        taken, self._pending = self._pending, []
        # A key may be there once in a batch write; the same event twice is the same row.
        rows: dict[str, Item] = {}
        for waiting in taken:
            rows.update(waiting.rows)
        lost, error = rows.keys(), None
        try:
            faults = await self._write_rows(list(rows.values()))
            lost = frozenset[str]().union(*(fault.event_ids for fault in faults))
            error = faults[0] if faults else None
        except BaseException as problem:
            error = problem
            raise
        finally:
            self.written += len(rows) - len(lost)
            for waiting in taken:
                waiting.lost = waiting.rows.keys() & lost if lost else ()
                waiting.error = error
                waiting.done.set()

    async def _write_rows(self, rows: list[Item]) -> list[Unrecorded]:
        chunks = [rows[start : start + MAX_BATCH_WRITE] for start in range(0, len(rows), MAX_BATCH_WRITE)]
        return [fault for fault in await together(*map(self._write_chunk, chunks)) if fault is not None]

    async def _write_chunk(self, chunk: list[Item]) -> Unrecorded | None:
        left, cause = chunk, ""
        try:
            for attempt in range(_ATTEMPTS):
                left = await self._tables.put_batch(self._table, left)
                if not left:
                    return None
                await anyio.sleep(random.uniform(0, min(1.0, 0.05 * 2**attempt)))
            cause = f"left unwritten after {_ATTEMPTS} attempts"
        except SnavioError as error:
            cause = str(error)
        return Unrecorded(cause, frozenset(cast("str", item["sk"]) for item in left))


class _Waiting:
    """One caller's rows by event id, and what became of them."""

    __slots__ = ("done", "error", "lost", "rows")

    def __init__(self, rows: dict[str, Item]) -> None:
        self.rows = rows
        self.done = asyncio.Event()
        self.lost: Collection[str] = ()
        self.error: BaseException | None = None
