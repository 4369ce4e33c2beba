"""What became of a snapshot at cold start, in the metric and log lines the documents name."""

from __future__ import annotations

from snavio.registry.snapshot_pointer import Pointer
from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log
from snavio.runtime.telemetry import Telemetry


class SnapshotMetrics:
    """Observes a `SnapshotReader`."""

    def __init__(self, telemetry: Telemetry, log: Log) -> None:
        self._telemetry = telemetry
        self._log = log

    def snapshot_loaded(self, pointer: Pointer) -> None:
        """It was used."""
        self._log.info(LogEvent.SNAPSHOT_LOADED, version_id=pointer.version_id, seq=pointer.seq)

    def snapshot_refused(self, kind: str, reason: str, detail: str) -> None:
        """It was not, and the table is read instead."""
        self._telemetry.measure(metrics.SNAPSHOT_LOAD_FAILED, snapshot=kind, reason=reason)
        self._log.warning(LogEvent.SNAPSHOT_REFUSED, snapshot=kind, reason=reason, detail=detail)
