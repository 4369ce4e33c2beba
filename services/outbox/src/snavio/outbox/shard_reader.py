"""Reads one shard from its checkpoint to its end, or until told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from snavio.aws.errors import NotFound, Permanent, Transient
from snavio.outbox.ports import EXPIRED, TRIMMED
from snavio.outbox.progress import Progress
from snavio.runtime import metrics
from snavio.runtime.backoff import backoff_seconds
from snavio.runtime.bell import Bell
from snavio.runtime.log_events import LogEvent
from snavio.runtime.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snavio.outbox.carrier import Carrier
    from snavio.outbox.lanes import Lanes
    from snavio.outbox.ports import Rows, Stream
    from snavio.outbox.shards import ShardLease
    from snavio.outbox.values import Record, RowKey
    from snavio.runtime.logs import Log
    from snavio.runtime.telemetry import Telemetry

PAGE = 1000
_KEYS_A_READ = 100
_DOUBTFUL_SECONDS = 30.0
_CLOCK_GRAIN_SECONDS = 1.0
_NEWS_SECONDS = 300.0


class ShardReader:
    """One shard being read. `progress` says how far it is settled, `position` up to when."""

    def __init__(
        self,
        lease: ShardLease,
        *,
        stream: Stream,
        carrier: Carrier,
        lanes: Lanes,
        rows: Rows,
        log: Log,
        now: Callable[[], float],
        roll: Callable[[], float],
        telemetry: Telemetry = SILENT,
        poll_seconds: float = 0.25,
        rows_in_hand: int = 20_000,
    ) -> None:
        self.lease = lease
        self.progress = Progress(lease.checkpoint)
        self.ended = False
        self.lost = False
        """Set when the lease is somebody else's: what is still waiting is theirs to publish."""
        self._stream = stream
        self._carrier = carrier
        self._lanes = lanes
        self._rows = rows
        self._log = log.bind(shard=lease.shard)
        self._now = now
        self._roll = roll
        self._telemetry = telemetry
        self._poll = poll_seconds
        self._most = rows_in_hand
        # What was written before we took over may have been delivered by the one before us.
        self._doubtful_before = now() + _CLOCK_GRAIN_SECONDS
        self._read_through = lease.position
        self._last_read: str | None = lease.checkpoint
        self._settled = Bell()

    @property
    def position(self) -> float:
        """Everything written to the shard before this time is settled."""
        return self.progress.position(self._read_through)

    async def run(self, stop: anyio.Event) -> None:
        """Read until told to stop or the shard ends; returns with records still in hand."""
        failures = 0
        iterator: str | None = None
        while not stop.is_set():
            await self._lanes.below(self._most)
            began = self._now()
            try:
                if iterator is None:
                    iterator = await self._start()
                page = await self._stream.read(iterator, limit=PAGE)
                await self._take(page.records)
            except Transient as error:
                failures += 1
                self._log.warning(LogEvent.STREAM_READ_FAILED, error=error, failures=failures)
                await _pause(stop, backoff_seconds(failures, self._roll(), base=0.2, cap=5.0))
                continue
            except NotFound as error:
                # The shard, and all it held, is older than the stream keeps.
                self._log.warning(LogEvent.STREAM_TRIMMED, error=error)
                self.ended = True
                return
            except Permanent as error:
                if error.code not in {EXPIRED, TRIMMED}:
                    raise
                if error.code == TRIMMED:
                    self._skip_to_oldest(error)
                iterator = None
                continue
            failures = 0
            iterator = page.next_iterator
            if iterator is None:
                self.ended = True
                return
            if not page.records:
                self._read_through = began
                await _pause(stop, self._poll)
            else:
                self._read_through = max(self._read_through, page.records[-1].created_at)

    async def all_settled(self) -> None:
        """Return once nothing that was read is in hand."""
        while self.progress.in_hand:
            await self._settled.wait()

    def _is_ours(self) -> bool:
        return not self.lost

    async def _start(self) -> str:
        lease = self.lease
        return await self._stream.iterator(lease.stream, lease.shard, after=self._last_read)

    def _skip_to_oldest(self, error: Permanent) -> None:
        """Rows whose records are gone are still in the table, where the sweeper finds them."""
        self._log.warning(LogEvent.STREAM_TRIMMED, error=error)
        self._telemetry.measure(metrics.OUTBOX_FAILED, 1, reason="stream-trimmed")
        self._last_read = None

    async def _take(self, records: Sequence[Record]) -> None:
        gone = await self._gone(records)
        for record in records:
            self.progress.take(record.sequence, record.created_at)
            self._last_read = record.sequence
            row = record.row
            if row is None:
                if record.unreadable is not None:
                    self._log.error(LogEvent.OUTBOX_ROW_UNREADABLE, reason=record.unreadable)
                    self._telemetry.measure(metrics.OUTBOX_FAILED, 1, reason="unreadable")
                self.progress.settle(record.sequence)
            elif row.key not in gone:
                self._carrier.carry(row, self._settling(record.sequence), wanted=self._is_ours)
            elif record.created_at > self._now() - _NEWS_SECONDS:
                self._carrier.note_only(row, self._settling(record.sequence))
            else:
                self.progress.settle(record.sequence)

    async def _gone(self, records: Sequence[Record]) -> set[RowKey]:
        """Of the rows that somebody else may have delivered already, those that are no longer in the table."""
        horizon = max(self._doubtful_before, self._now() - _DOUBTFUL_SECONDS)
        doubtful = list({r.row.key for r in records if r.row is not None and r.created_at <= horizon})
        there: set[RowKey] = set()
        for start in range(0, len(doubtful), _KEYS_A_READ):
            there |= await self._rows.existing(doubtful[start : start + _KEYS_A_READ])
        return set(doubtful) - there

    def _settling(self, sequence: str) -> Callable[[], None]:
        def settle() -> None:
            self.progress.settle(sequence)
            self._settled.ring()

        return settle


async def _pause(stop: anyio.Event, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await stop.wait()
