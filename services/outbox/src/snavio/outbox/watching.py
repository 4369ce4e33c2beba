"""The outbox worker's turn at watching telemetry queues: look, report, remember."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snavio.aws.ports import MAX_BATCH_WRITE
from snavio.runtime import metrics
from snavio.runtime.telemetry import SILENT
from snavio.wire.events import TelemetryDropped
from snavio.wire.outbox import outbox_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from snavio.outbox.ports import Rows
    from snavio.runtime.leadership import Leadership
    from snavio.runtime.telemetry import Telemetry
    from snavio.telemetry.queue_watch import QueueWatch


class Watching:
    """Watches when this worker leads."""

    def __init__(
        self,
        watch: QueueWatch,
        rows: Rows,
        leadership: Leadership,
        *,
        now: Callable[[], float],
        retention_seconds: int,
        telemetry: Telemetry = SILENT,
    ) -> None:
        self._watch = watch
        self._rows = rows
        self._leadership = leadership
        self._now = now
        self._retention = retention_seconds
        self._telemetry = telemetry

    async def look(self) -> None:
        """Look once, if it is this worker's turn."""
        if not await self._leadership.held():
            return
        now = self._now()
        looked = await self._watch.look(now)
        if looked is None:
            return
        rows = [outbox_row(event, now, retention_seconds=self._retention) for event in looked.events]
        for start in range(0, len(rows), MAX_BATCH_WRITE):
            await self._rows.write(rows[start : start + MAX_BATCH_WRITE])
        for event in looked.events:
            if isinstance(event, TelemetryDropped):
                self._telemetry.measure(metrics.TELEMETRY_DROPPED, event.dropped_events)
        await self._watch.remember(looked)
