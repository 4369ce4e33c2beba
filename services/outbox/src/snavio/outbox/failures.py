"""What could not be published, told to operators: at once for a tenant that begins to fail, then every so often."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from snavio.aws.errors import SnavioError
from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.telemetry import SILENT
from snavio.wire.events import TelemetryDeliveryFailed, derived_id
from snavio.wire.names import PLATFORM_TENANT
from snavio.wire.outbox import RETENTION_SECONDS, outbox_row
from snavio.wire.times import format_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from snavio.outbox.ports import Rows
    from snavio.runtime.logs import Log
    from snavio.runtime.telemetry import Telemetry


class _Failing(msgspec.Struct):
    undelivered: int = 0
    report_at: float = 0.0


class Failures:
    """Gathers failures by tenant and reason, and reports each as one event for operators.

    A failure of the operators' own pipeline is logged and measured only: reporting it there would never arrive.
    """

    def __init__(
        self,
        rows: Rows,
        *,
        worker_id: str,
        now: Callable[[], float],
        log: Log,
        telemetry: Telemetry = SILENT,
        every_seconds: float = 900.0,
        retention_seconds: int = RETENTION_SECONDS,
    ) -> None:
        self._rows = rows
        self._worker_id = worker_id
        self._now = now
        self._log = log
        self._telemetry = telemetry
        self._every = every_seconds
        self._retention = retention_seconds
        self._failing: dict[tuple[str, str], _Failing] = {}

    def note(self, tenant: str, reason: str, rows: int) -> None:
        """So many rows were not published; they stay in the table."""
        self._telemetry.measure(metrics.OUTBOX_FAILED, rows, reason=reason)
        if tenant != PLATFORM_TENANT:
            self._failing.setdefault((tenant, reason), _Failing()).undelivered += rows

    async def report(self) -> None:
        """Write the events that are due to the outbox; what cannot be written is kept for the next time."""
        now = self._now()
        for (tenant, reason), failing in list(self._failing.items()):
            if failing.report_at > now:
                continue
            if not failing.undelivered:
                del self._failing[tenant, reason]
                continue
            event = TelemetryDeliveryFailed(
                event_id=derived_id("delivery-failed", self._worker_id, tenant, reason, str(int(now * 1000))),
                tenant=PLATFORM_TENANT,
                emitted_at=format_time(now),
                affected_tenant=tenant,
                reason=reason,
                undelivered_events=failing.undelivered,
            )
            try:
                await self._rows.write([outbox_row(event, now, retention_seconds=self._retention)])
            except SnavioError as error:
                self._log.error(LogEvent.OUTBOX_WRITE_FAILED, error=error, tenant=tenant)
                return
            failing.undelivered = 0
            failing.report_at = now + self._every
