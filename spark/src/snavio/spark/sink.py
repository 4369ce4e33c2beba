"""Bans into the registry and events into the outbox: the one place where the audit changes the platform."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias, TypeVar

import msgspec

from snavio.aws.errors import ConditionFailed
from snavio.aws.ports import Tables
from snavio.aws.values import Absent, Item, Put
from snavio.domain.models import Ban, BanMode, Route
from snavio.registry.rows import MalformedRowError, decode_row
from snavio.registry.store import RegistryStore
from snavio.spark.bans import AbuseBan
from snavio.wire.events import AbuseDetected
from snavio.wire.names import Names
from snavio.wire.outbox import outbox_row
from snavio.wire.stats import RETENTION_SECONDS

ACTOR = "snavio-auditor"
"""Who changed the registry, in its changelog."""

OpenTables: TypeAlias = Callable[[], AbstractAsyncContextManager[Tables]]
T = TypeVar("T")


class RegistrySink:
    """The sink on DynamoDB. Spark's driver is synchronous, so each call runs a loop of its own."""

    def __init__(self, open_tables: OpenTables, names: Names) -> None:
        self._open = open_tables
        self._names = names

    def owners(self, targets: Iterable[str]) -> Mapping[str, str]:
        """The tenant of each target that is registered."""
        return self._run(lambda tables: _owners(tables, self._names, sorted(set(targets))))

    def apply(self, bans: Sequence[AbuseBan], events: Sequence[AbuseDetected], *, now: float) -> int:
        """Make the bans and the events durable; returns how many of the events had not been told before.

        Events first: a ban nobody was told of is worse than the reverse.
        """
        return self._run(lambda tables: _apply(tables, self._names, bans, events, now))

    def lift(self, bans: Sequence[AbuseBan], *, now: float) -> None:
        """End these bans, where they still stand as they were placed."""
        self._run(lambda tables: _lift(tables, self._names, bans, now))

    def _run(self, work: Callable[[Tables], Awaitable[T]]) -> T:
        async def connected() -> T:
            async with self._open() as tables:
                return await work(tables)

        return asyncio.run(connected())


async def _owners(tables: Tables, names: Names, targets: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for target in targets:
        page = await tables.query(names.registry, ("pk", f"route#{target}"), limit=5)
        for item in page.items:
            route = _route(item)
            if route is not None:
                found[target] = route.tenant
                break
    return found


async def _apply(
    tables: Tables, names: Names, bans: Sequence[AbuseBan], events: Sequence[AbuseDetected], now: float
) -> int:
    told = [await _tell(tables, names, event, now) for event in events]
    registry = RegistryStore(tables, names, clock=lambda: now)
    for ban in bans:
        await registry.add_ban(_entry(ban), actor=ACTOR)
    return sum(told)


async def _tell(tables: Tables, names: Names, event: AbuseDetected, now: float) -> bool:
    """Put an event into the outbox, unless that has been done before; whether it was new.

    The row itself is no proof, since it goes when it is published: what was told is kept beside it, for as long as any
    window is read again.
    """
    row: Item = msgspec.to_builtins(outbox_row(event, now))
    mark: Item = {
        "pk": f"told#{event.event_id}",
        "sk": "abuse_detected",
        "expires_at": int(now) + RETENTION_SECONDS,
    }
    try:
        await tables.transact([Put(names.bans, mark, Absent("pk")), Put(names.outbox, row)])
    except ConditionFailed:
        return False
    return True


async def _lift(tables: Tables, names: Names, bans: Sequence[AbuseBan], now: float) -> None:
    registry = RegistryStore(tables, names, clock=lambda: now)
    for ban in bans:
        for standing in await registry.bans_of(ban.source):
            if _is_for(standing, ban):
                note = "what came late shows no abuse"
                await registry.remove_if_same(standing, actor=ACTOR, note=note)


def _entry(ban: AbuseBan) -> Ban:
    return Ban(
        source=ban.source,
        mode=BanMode.WARM,
        until=float(ban.until),
        reason=f"dominated {', '.join(ban.targets)}{_of(ban)}",
    )


def _is_for(standing: Ban, ban: AbuseBan) -> bool:
    """Whether this is the entry of that ban. Its targets may be others by now, nothing else; and nobody may have touched it."""
    entry = _entry(ban)
    return standing.reason.endswith(_of(ban)) and entry == msgspec.structs.replace(
        standing, reason=entry.reason
    )


def _of(ban: AbuseBan) -> str:
    return f" in the ban window of {ban.window}"


def _route(item: Item) -> Route | None:
    try:
        entry = decode_row(item)
    except MalformedRowError:
        return None
    return entry if isinstance(entry, Route) else None
