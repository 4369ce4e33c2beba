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
from snavio.wire.stats import StatsItem, Tally, encode_window, window_of

_KEEP_WINDOWS = 10
_FIRST_PAUSE = 0.05


class StatsFeed:
    """Counts of one worker. A closed window is written whole; one that cannot be written is kept for the next time."""

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
        self._sequence = 0
        self._unwritten: list[list[StatsItem]] = []
        self.tally = Tally()

    async def push(self) -> None:
        """Close the open window when its minute is over, and write what is closed."""
        window = window_of(self._clock())
        # A clock that was set back must not reopen a window: its item is written and would be replaced. What is counted
        # meanwhile belongs to the open window, until the clock is past it again.
        if window > self._window:
            self._close(last=False)
            self._window = window
        await self._write()

    async def finish(self) -> None:
        """Close the open window as this worker's last, and write what is closed."""
        self._close(last=True)
        await self._write()

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
        self._unwritten.append(items)
        if len(self._unwritten) > _KEEP_WINDOWS:
            dropped = self._unwritten.pop(0)
            self._telemetry.measure(metrics.STATS_LOST, len(dropped))
            self._log.warning(LogEvent.STATS_LOST, window=dropped[0].window)

    async def _write(self) -> None:
        while self._unwritten:
            left: list[Item] = [msgspec.structs.asdict(item) for item in self._unwritten[0]]
            pause = _FIRST_PAUSE
            while left:
                try:
                    batch, rest = left[:MAX_BATCH_WRITE], left[MAX_BATCH_WRITE:]
                    left = [*await self._tables.put_batch(self._table, batch), *rest]
                except SnavioError:
                    return  # kept, and written with the next window
                if left:
                    await anyio.sleep(pause)
                    pause = min(1.0, pause * 2)
            self._unwritten.pop(0)
