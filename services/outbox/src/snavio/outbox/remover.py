"""Removes delivered rows: a row that is gone is a row that was delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from snavio.aws.errors import SnavioError, Transient
from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snavio.outbox.ports import Rows
    from snavio.outbox.values import RowKey
    from snavio.runtime.logs import Log
    from snavio.runtime.telemetry import Telemetry

_TRIES = 3
_PAUSE_SECONDS = 0.2


class Remover:
    """Removes what was published, as well as it can."""

    def __init__(self, rows: Rows, *, log: Log, telemetry: Telemetry = SILENT) -> None:
        self._rows = rows
        self._log = log
        self._telemetry = telemetry

    async def remove(self, keys: Sequence[RowKey]) -> None:
        """Remove up to 25 rows. What cannot be removed will be published again, which readers can tell by its id."""
        for attempt in range(1, _TRIES + 1):
            try:
                await self._rows.remove(keys)
            except SnavioError as error:
                if attempt == _TRIES or not isinstance(error, Transient):
                    self._log.error(LogEvent.OUTBOX_WRITE_FAILED, error=error, rows=len(keys))
                    self._telemetry.measure(metrics.OUTBOX_FAILED, len(keys), reason="not-removed")
                    return
                await anyio.sleep(_PAUSE_SECONDS * attempt)
            else:
                return
