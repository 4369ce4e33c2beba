"""The watch over every route's queue: look, judge, tell, remember."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from snavio.aws.ports import Tables
from snavio.aws.values import Absent, AnyOf, AtMost, Item
from snavio.control.health import HealthStatus, Verdict, verdict_key
from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.domain.models import Route
from snavio.monitor.queue_health import Memory, Reading, Unreachable, first_memory, judge
from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log
from snavio.runtime.telemetry import Telemetry
from snavio.wire.events import CommandName, Event, RouteHealthChanged, derived_id
from snavio.wire.times import format_time

_KEEP_SECONDS = 24 * 3600
_WELL = (HealthStatus.HEALTHY, HealthStatus.UNKNOWN)


class Readings(Protocol):
    """Where readings come from."""

    async def read(self, arns: Sequence[str], now: float) -> dict[str, Reading | Unreachable]:
        """What each queue shows, by its ARN."""
        ...


class RouteWatch:
    """One leader's watch. What it finds lies in the control table, for the API and for whoever leads next."""

    def __init__(
        self,
        reader: Readings,
        tables: Tables,
        table: str,
        outbox: OutboxWriter,
        *,
        term: Callable[[], int],
        clock: Callable[[], float],
        log: Log,
        telemetry: Telemetry,
        rewrite_seconds: float,
    ) -> None:
        self._reader = reader
        self._tables = tables
        self._table = table
        self._outbox = outbox
        self._term = term
        self._clock = clock
        self._log = log
        self._telemetry = telemetry
        self._rewrite = rewrite_seconds
        self._watched_in = 0
        self._memories: dict[tuple[str, str], Memory] = {}
        self._written: dict[tuple[str, str], float] = {}

    async def look(self, routes: Sequence[Route]) -> None:
        """Look at every route once. Raises `ConditionFailed` when a later leader has written."""
        now = self._clock()
        if self._watched_in != self._term():
            # What was remembered in an earlier term may have been overtaken by another leader's.
            self._watched_in = self._term()
            self._memories = {}
            self._written = {}
        live = [route for route in routes if route.expires_at is None or now < route.expires_at]
        readings = await self._reader.read(sorted({route.queue_arn for route in live}), now)
        self._forget({(route.target, route.command) for route in live})
        counts: Counter[HealthStatus] = Counter(dict.fromkeys(HealthStatus, 0))
        for route in live:
            before = await self._memory(route, now)
            verdict, memory = judge(readings[route.queue_arn], before, now, route.expected_drain_seconds)
            counts[verdict.status] += 1
            if verdict.oldest_age_seconds is not None:
                self._telemetry.measure(metrics.ROUTE_OLDEST, verdict.oldest_age_seconds)
            await self._settle(route, before, verdict, memory, now)
        for status, count in counts.items():
            self._telemetry.measure(metrics.ROUTE_HEALTH, count, health=str(status))

    async def _settle(
        self, route: Route, before: Memory, verdict: Verdict, memory: Memory, now: float
    ) -> None:
        key = (route.target, route.command)
        changed = verdict.status is not before.status
        if changed and not (before.status in _WELL and verdict.status in _WELL):
            # Told before it is written: a crash between the two tells it twice rather than never.
            await self._outbox.write([_told(route, before, verdict)])
            self._log.info(
                LogEvent.ROUTE_HEALTH_CHANGED,
                target=route.target,
                command=route.command,
                health=str(verdict.status),
                previous=str(before.status),
                detail=verdict.detail,
            )
        # A healthy route is written now and then; of one in trouble everything is kept for the next leader.
        due = now - self._written.get(key, 0.0) >= self._rewrite
        if changed or due or verdict.status not in _WELL:
            await self._write(route, verdict, memory, now)
            self._written[key] = now
        self._memories[key] = memory

    async def _write(self, route: Route, verdict: Verdict, memory: Memory, now: float) -> None:
        term = self._term()
        item: Item = {
            **verdict_key(route.target, route.command),
            "body": msgspec.json.encode(verdict).decode(),
            "memory": msgspec.json.encode(memory).decode(),
            "term": term,
            "expires_at": int(now) + _KEEP_SECONDS,
        }
        not_overtaken = AnyOf((Absent("term"), AtMost("term", term)))
        await self._tables.put(self._table, item, condition=not_overtaken)

    async def _memory(self, route: Route, now: float) -> Memory:
        known = self._memories.get((route.target, route.command))
        if known is not None:
            return known
        item = await self._tables.get(self._table, verdict_key(route.target, route.command))
        kept = item.get("memory") if item else None
        if not isinstance(kept, str):
            return first_memory(now)
        memory = msgspec.json.decode(kept, type=Memory)
        # The note on a healthy route may be old, and the queue empty since: only trouble is carried on.
        return (
            Memory(status=memory.status, empty_at=now, held=memory.held) if memory.status in _WELL else memory
        )

    def _forget(self, live: set[tuple[str, str]]) -> None:
        for key in self._memories.keys() - live:
            del self._memories[key]
            self._written.pop(key, None)


def _told(route: Route, before: Memory, verdict: Verdict) -> Event:
    moment = str(int(verdict.checked_at * 1000))
    age = verdict.oldest_age_seconds
    return RouteHealthChanged(
        event_id=derived_id("route-health", route.target, route.command, str(verdict.status), moment),
        tenant=route.tenant,
        emitted_at=format_time(verdict.checked_at),
        target=route.target,
        command=CommandName(route.command),
        health=str(verdict.status),
        previous=str(before.status),
        detail=verdict.detail,
        oldest_age_seconds=msgspec.UNSET if age is None else age,
    )
