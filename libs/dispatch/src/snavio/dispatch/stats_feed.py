"""The fairness feed of one worker: what it dispatched and refused, minute by minute, to the aggregation store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import anyio
import msgspec

from snavio.aws.errors import SnavioError
from snavio.aws.ports import MAX_BATCH_WRITE, Tables
from snavio.aws.values import Item
from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log
from snavio.runtime.telemetry import Telemetry
from snavio.wire.stats import WINDOW_SECONDS, Tally, encode_window, window_of

_KEEP_WINDOWS = 10
_PAUSES = (0.05, 0.1, 0.2, 0.4)
"""Between tries to write what the store left: so few that the next window is closed in time."""
_LAST_PAUSE_SECONDS = 0.2


class StatsFeed:
    """Counts of one worker. A closed window is written whole; what of it cannot be written is kept for the next time."""

    def __init__(
        self,
        tables: Tables,
        table: str,
        *,
        worker: str,
        service: Literal["fast", "slow"],
        clock: Callable[[], float],
        log: Log,
        telemetry: Telemetry,
    ) -> None:
        self._tables = tables
        self._table = table
        self._worker = worker
        self._service: Literal["fast", "slow"] = service
        self._clock = clock
        self._log = log
        self._telemetry = telemetry
        self._window = window_of(clock())
        self._closed = self._window - WINDOW_SECONDS
        self._sequence = 0
        # What of each closed window is not written yet.
        self._unwritten: list[list[Item]] = []
        self.tally = Tally()

    async def push(self) -> None:
        """Close the open window when its minute is over, and write what is closed."""
        window = window_of(self._clock())
        if window > self._window:
            self._close(last=False)
            self._closed, self._window = self._window, window
        elif window > self._closed:
            # The clock was ahead when this window was opened.
            self._window = window
        # Further back no clock reopens a window: its item is written and would be replaced. What is counted meanwhile
        # belongs to the open window, until the clock is past it again.
        await self._write()

    async def finish(self) -> None:
        """Close the open window as this worker's last, and write what is closed, for as long as that takes."""
        self._close(last=True)
        while not await self._write():  # noqa: ASYNC110 - nobody would tell when the store takes writes again
            await anyio.sleep(_LAST_PAUSE_SECONDS)

    def _close(self, *, last: bool) -> None:
        items = encode_window(
            self.tally.close(),
            worker=self._worker,
            service=self._service,
            window=self._window,
            sequence=self._sequence,
            last=last,
        )
        self._sequence += 1
        self._unwritten.append([msgspec.structs.asdict(item) for item in items])
        if len(self._unwritten) > _KEEP_WINDOWS:
            dropped = self._unwritten.pop(0)
            self._telemetry.measure(metrics.STATS_LOST)
            self._log.warning(LogEvent.STATS_LOST, window=dropped[0]["window"])

    async def _write(self) -> bool:
        """Write what is closed, the oldest first, until the store takes no more; whether it took all."""
        while self._unwritten:
            self._unwritten[0] = await self._put(self._unwritten[0])
            if self._unwritten[0]:
                return False
            self._unwritten.pop(0)
        return True

    async def _put(self, items: list[Item]) -> list[Item]:
        """Write items of one window; returns those the store did not take in a few tries."""
        pauses = iter(_PAUSES)
        while items:
            batch, rest = items[:MAX_BATCH_WRITE], items[MAX_BATCH_WRITE:]
            try:
                left = await self._tables.put_batch(self._table, batch)
            except SnavioError:
                return items
            items = [*left, *rest]
            if left:
                pause = next(pauses, None)
                if pause is None:
                    return items
                await anyio.sleep(pause)
        return items
