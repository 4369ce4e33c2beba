"""Publishes what the stream did not: rows that were left, and rows it missed.

Delivered rows are gone, so what a scan finds is the backlog and costs by the size of the backlog. Only rows are taken
that every shard has been settled past: while the stream is merely behind, they are the stream's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import msgspec

from snavio.outbox.shards import swept_before

if TYPE_CHECKING:
    from collections.abc import Callable

    from snavio.outbox.carrier import Carrier
    from snavio.outbox.lanes import Lanes
    from snavio.outbox.ports import Rows, Stream
    from snavio.outbox.shard_leases import ShardLeases
    from snavio.outbox.values import StoredRow
    from snavio.runtime.leadership import Leadership


class SweepSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the sweeper takes, and how fast."""

    missed_after_seconds: float = 60.0
    patience_seconds: float = 900.0
    """Rows older than this are swept even if the stream is stuck."""
    refused_again_seconds: float = 6 * 3600.0
    """When a row its topic refused is tried again."""
    page_seconds: float = 0.2
    """Pause between two pages of the scan, so that a large backlog never takes the table's whole capacity."""


class Sweeper:
    """One pass at a time, by one worker at a time."""

    def __init__(
        self,
        *,
        stream: Stream,
        leases: ShardLeases,
        rows: Rows,
        carrier: Carrier,
        lanes: Lanes,
        leadership: Leadership,
        now: Callable[[], float],
        settings: SweepSettings | None = None,
    ) -> None:
        self._stream = stream
        self._leases = leases
        self._rows = rows
        self._carrier = carrier
        self._lanes = lanes
        self._leadership = leadership
        self._now = now
        self._settings = settings or SweepSettings()

    async def sweep(self) -> None:
        """Go through the backlog once, if this worker leads."""
        if not await self._leadership.held():
            return
        settings = self._settings
        stream = await self._stream.arn()
        before = swept_before(
            self._now(),
            await self._stream.shards(stream),
            (await self._leases.read(stream)).leases,
            missed_after=settings.missed_after_seconds,
            patience=settings.patience_seconds,
        )
        async for page in self._rows.all():
            for row in page:
                if self._due(row, before) and await self._lanes.room(row.tenant):
                    self._carrier.carry(row, _nothing_more)
            if not await self._leadership.held():
                return
            await anyio.sleep(settings.page_seconds)

    def _due(self, row: StoredRow, before: float) -> bool:
        if row.written_at >= before * 1000:
            return False
        return row.refused_at < (self._now() - self._settings.refused_again_seconds) * 1000


def _nothing_more() -> None:
    """A swept row has no checkpoint to move."""
