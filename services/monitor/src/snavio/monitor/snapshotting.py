"""The leader's turn at publishing snapshots: publish, measure, and tell operators when that fails."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from snavio.aws.errors import SnavioError
from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.registry.snapshot_publisher import Published, SnapshotPublisher, Superseded, TooLarge
from snavio.registry.view import Registry
from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log
from snavio.runtime.telemetry import Telemetry
from snavio.wire.events import Event, SnapshotFailed, SnapshotTooLarge, derived_id
from snavio.wire.names import PLATFORM_TENANT
from snavio.wire.times import format_time

_ALL = "all"


class Snapshotting:
    """Publishes, and never fails louder than by an event: workers start without snapshots as well."""

    def __init__(
        self,
        publisher: SnapshotPublisher,
        outbox: OutboxWriter,
        *,
        clock: Callable[[], float],
        log: Log,
        telemetry: Telemetry,
        again_seconds: float,
    ) -> None:
        self._publisher = publisher
        self._outbox = outbox
        self._clock = clock
        self._log = log
        self._telemetry = telemetry
        self._again = again_seconds
        self._published_at: float | None = None
        self._told: dict[str, float] = {}

    async def publish(self, registry: Registry) -> None:
        """Publish what the registry holds, which nobody may change meanwhile."""
        started = self._clock()
        try:
            outcome = await self._publisher.publish(registry)
        except SnavioError as error:
            self._log.error(LogEvent.SNAPSHOT_FAILED, error=error)
            await self.failed(type(error).__name__, str(error))
            return
        match outcome:
            case Published(pointer):
                self._published_at = pointer.generated_at
                seconds = self._clock() - started
                for kind, part in pointer.parts.items():
                    self._telemetry.measure(metrics.SNAPSHOT_GENERATED, snapshot=str(kind))
                    self._telemetry.measure(metrics.SNAPSHOT_SIZE, part.size_bytes, snapshot=str(kind))
                    self._telemetry.measure(metrics.SNAPSHOT_WRITE, seconds, snapshot=str(kind))
                self._log.debug(
                    LogEvent.SNAPSHOT_PUBLISHED, version_id=pointer.version_id, seconds=round(seconds, 3)
                )
            case TooLarge():
                self._telemetry.measure(
                    metrics.SNAPSHOT_FAILED, snapshot=str(outcome.kind), reason="too-large"
                )
                self._log.error(
                    LogEvent.SNAPSHOT_TOO_LARGE, snapshot=str(outcome.kind), size_bytes=outcome.size_bytes
                )
                await self._tell("too-large", self._too_large(outcome))
            case Superseded():
                self._telemetry.measure(metrics.SNAPSHOT_FAILED, snapshot=_ALL, reason="superseded")

    async def failed(self, reason: str, detail: str) -> None:
        """No snapshot could be published."""
        self._telemetry.measure(metrics.SNAPSHOT_FAILED, snapshot=_ALL, reason=reason)
        now = self._clock()
        last = self._published_at
        event = SnapshotFailed(
            event_id=derived_id("snapshot-failed", str(int(now * 1000))),
            tenant=PLATFORM_TENANT,
            emitted_at=format_time(now),
            reason=detail,
            last_published_at=msgspec.UNSET if last is None else format_time(last),
        )
        await self._tell(reason, event)

    def _too_large(self, outcome: TooLarge) -> Event:
        now = self._clock()
        return SnapshotTooLarge(
            event_id=derived_id("snapshot-too-large", str(int(now * 1000))),
            tenant=PLATFORM_TENANT,
            emitted_at=format_time(now),
            kind=str(outcome.kind),
            size_bytes=outcome.size_bytes,
            limit_bytes=outcome.limit_bytes,
        )

    async def _tell(self, about: str, event: Event) -> None:
        """Tell it once, and again only after a while."""
        now = self._clock()
        if now - self._told.get(about, float("-inf")) < self._again:
            return
        await self._outbox.write([event])
        self._told[about] = now
