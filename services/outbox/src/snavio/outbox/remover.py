"""Removes delivered rows, in batches across tenants: a row that is gone is a row that was delivered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import anyio

from snavio.aws.errors import SnavioError, Transient
from snavio.aws.ports import MAX_BATCH_WRITE
from snavio.runtime import metrics
from snavio.runtime.coalescer import Coalescer
from snavio.runtime.log_events import LogEvent
from snavio.runtime.telemetry import SILENT

if TYPE_CHECKING:
    from snavio.outbox.lanes import Parcel
    from snavio.outbox.ports import Rows
    from snavio.runtime.logs import Log
    from snavio.runtime.telemetry import Telemetry

_TRIES = 3
_PAUSE_SECONDS = 0.2


class Remover:
    """Takes published parcels, removes their rows, then calls `finished` with them."""

    def __init__(
        self,
        rows: Rows,
        finished: Callable[[Sequence[Parcel]], None],
        *,
        log: Log,
        telemetry: Telemetry = SILENT,
        linger_seconds: float = 0.02,
    ) -> None:
        self._rows = rows
        self._finished = finished
        self._log = log
        self._telemetry = telemetry
        self._coalescer: Coalescer[Parcel] = Coalescer(
            self._remove, size=MAX_BATCH_WRITE, linger=linger_seconds
        )

    def add(self, parcels: Sequence[Parcel]) -> None:
        """Take parcels in; returns at once."""
        self._coalescer.add(parcels)

    async def run(self) -> None:
        """Remove what is added, until cancelled."""
        await self._coalescer.run()

    async def _remove(self, parcels: list[Parcel]) -> None:
        keys = list({parcel.row.key for parcel in parcels})
        for attempt in range(1, _TRIES + 1):
            try:
                await self._rows.remove(keys)
                break
            except SnavioError as error:
                if attempt == _TRIES or not isinstance(error, Transient):
                    # Published but still there: the sweeper will publish it again, which consumers can tell by its id.
                    self._log.error(LogEvent.OUTBOX_WRITE_FAILED, error=error, rows=len(keys))
                    self._telemetry.measure(metrics.OUTBOX_FAILED, len(keys), reason="not-removed")
                    break
                await anyio.sleep(_PAUSE_SECONDS * attempt)
        self._finished(parcels)
