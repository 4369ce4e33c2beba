"""Watching the watchers: looks at every telemetry queue, remembers, and tells what is wrong as events.

Runs in the outbox worker under a leader lease. Tenants hear of what they lost; operators hear of queues in trouble.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from snavio.telemetry.queue_health import QUEUE_UNCONSUMED, HealthSettings, QueueMemory, Verdict, judge
from snavio.wire.events import Event, TelemetryDropped, TelemetryQueueUnhealthy, derived_id
from snavio.wire.names import PLATFORM_TENANT
from snavio.wire.times import format_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from snavio.aws.ports import Tables
    from snavio.aws.values import Item
    from snavio.telemetry.queue_health import QueueReading

_PARTITION = "watch"
_LAST = "_last"


class Readings(Protocol):
    """Where readings come from."""

    def readings(self, since: float, now: float) -> AsyncIterator[QueueReading]:
        """A reading of each tenant's queues."""
        ...


class Looked(msgspec.Struct, frozen=True):
    """What one look at all queues showed."""

    at: float
    events: list[Event]
    memories: dict[str, QueueMemory]


class QueueWatch:
    """Keeps its memory in the alerts table, so that any worker may go on where another stopped."""

    def __init__(
        self,
        reader: Readings,
        tables: Tables,
        table: str,
        *,
        every_seconds: float,
        settings: HealthSettings | None = None,
    ) -> None:
        self._reader = reader
        self._tables = tables
        self._table = table
        self._every = every_seconds
        self._settings = settings or HealthSettings()

    async def look(self, now: float) -> Looked | None:
        """What was seen; None when somebody looked recently enough.

        Its events must be recorded before it is remembered, or a crash between would lose them.
        """
        last = await self._tables.get(self._table, {"pk": _PARTITION, "sk": _LAST})
        since = float(cast("float", last["at"])) if last else now - self._every
        if last and now - since < self._every / 2:
            return None
        events: list[Event] = []
        memories: dict[str, QueueMemory] = {}
        async for reading in self._reader.readings(since, now):
            verdict = judge(reading, await self._memory(reading.tenant), now, self._settings)
            memories[reading.tenant] = verdict.memory
            events += events_of(reading, verdict, now)
        return Looked(now, events, memories)

    async def remember(self, looked: Looked) -> None:
        """Keep what was seen."""
        for tenant, memory in looked.memories.items():
            item = cast("Item", {"pk": _PARTITION, "sk": tenant, **msgspec.to_builtins(memory)})
            await self._tables.put(self._table, item)
        await self._tables.put(self._table, {"pk": _PARTITION, "sk": _LAST, "at": looked.at})

    async def _memory(self, tenant: str) -> QueueMemory | None:
        item = await self._tables.get(self._table, {"pk": _PARTITION, "sk": tenant})
        return None if item is None else msgspec.convert(item, QueueMemory)


def events_of(reading: QueueReading, verdict: Verdict, now: float) -> list[Event]:
    """What is told of a verdict."""
    told: list[Event] = []
    at = str(int(now * 1000))
    if verdict.dropped:
        consumed_at = verdict.memory.consumed_at
        told.append(
            TelemetryDropped(
                event_id=derived_id("dropped", reading.tenant, at),
                tenant=reading.tenant,
                emitted_at=format_time(now),
                dropped_events=verdict.dropped,
                reason=QUEUE_UNCONSUMED,
                queue_age_seconds=int(verdict.age_seconds),
                last_received_at=msgspec.UNSET if consumed_at is None else format_time(consumed_at),
            )
        )
    told += [
        TelemetryQueueUnhealthy(
            event_id=derived_id("queue-unhealthy", reading.tenant, finding, at),
            tenant=PLATFORM_TENANT,
            emitted_at=format_time(now),
            affected_tenant=reading.tenant,
            finding=finding,
            waiting=reading.held,
            dead_letters=reading.dead_letters,
            queue_age_seconds=int(verdict.age_seconds),
        )
        for finding in verdict.findings
    ]
    return told
