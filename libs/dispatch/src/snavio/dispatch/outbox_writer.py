"""Recording telemetry durably, many callers to a write.

A batch of messages is acknowledged only after its events are in the outbox, so every batch waits here. Callers that come
while a write is under way are written together with the next one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

import anyio
import msgspec

from snavio.aws.errors import SnavioError, Transient
from snavio.aws.ports import MAX_BATCH_WRITE, Tables
from snavio.aws.values import Item
from snavio.wire.events import Event
from snavio.wire.outbox import RETENTION_SECONDS, outbox_row

_ATTEMPTS = 6
_FLUSHES = 4


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

    async def write(self, events: Sequence[Event]) -> None:
        """Return once every event is durable. Raises `Transient` when some could not be written."""
        if not events:
            return
        now = self._clock()
        rows = [outbox_row(event, now, retention_seconds=self._retention) for event in events]
        waiting = _Waiting({(row.pk, row.sk): msgspec.to_builtins(row) for row in rows})
        self._pending.append(waiting)
        # Whoever is ready now joins this write: a call holds 25 rows and a batch brings ten.
        await asyncio.sleep(0)
        async with self._flushing:
            if waiting in self._pending:
                await self._flush()
        await waiting.done.wait()
        if waiting.error is not None:
            raise Transient(f"the outbox did not take {len(rows)} events") from waiting.error

    async def _flush(self) -> None:
        taken, self._pending = self._pending, []
        error: BaseException | None = None
        try:
            # A key may be there once in a batch write; the same event twice is the same row.
            rows: dict[tuple[str, str], Item] = {}
            for waiting in taken:
                rows.update(waiting.rows)
            await self._write_rows(list(rows.values()))
            self.written += len(rows)
        except BaseException as problem:
            error = problem
            raise
        finally:
            for waiting in taken:
                waiting.error = error
                waiting.done.set()

    async def _write_rows(self, rows: list[Item]) -> None:
        chunks = [rows[start : start + MAX_BATCH_WRITE] for start in range(0, len(rows), MAX_BATCH_WRITE)]
        if len(chunks) == 1:
            await self._write_chunk(chunks[0])
            return
        try:
            async with anyio.create_task_group() as group:
                for chunk in chunks:
                    group.start_soon(self._write_chunk, chunk)
        except* SnavioError as failures:
            raise failures.exceptions[0] from None

    async def _write_chunk(self, chunk: list[Item]) -> None:
        left = chunk
        for attempt in range(_ATTEMPTS):
            left = await self._tables.put_batch(self._table, left)
            if not left:
                return
            await anyio.sleep(random.uniform(0, min(1.0, 0.05 * 2**attempt)))
        raise Transient(f"the outbox left {len(left)} rows unwritten after {_ATTEMPTS} attempts")


class _Waiting:
    """One caller's rows, and what became of them."""

    __slots__ = ("done", "error", "rows")

    def __init__(self, rows: dict[tuple[str, str], Item]) -> None:
        self.rows = rows
        self.done = asyncio.Event()
        self.error: BaseException | None = None
