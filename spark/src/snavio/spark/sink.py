"""Bans into the registry and events into the outbox: the one place where the audit changes the platform."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias, TypeVar

import msgspec

from snavio.aws.errors import ConditionFailed
from snavio.aws.ports import Tables
from snavio.aws.values import Absent, Item
from snavio.domain.models import Ban, BanMode, Route
from snavio.registry.rows import MalformedRowError, decode_row
from snavio.registry.store import RegistryStore
from snavio.spark.bans import AbuseBan
from snavio.wire.events import AbuseDetected
from snavio.wire.names import Names
from snavio.wire.outbox import outbox_row

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

    def apply(self, bans: Sequence[AbuseBan], events: Sequence[AbuseDetected], *, now: float) -> None:
        """Make the bans and the events durable. Events first: a ban nobody was told of is worse than the reverse."""
        if bans or events:
            self._run(lambda tables: _apply(tables, self._names, bans, events, now))

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
) -> None:
    for event in events:
        row: Item = msgspec.to_builtins(outbox_row(event, now))
        try:
            # A row that is there already is on its way: a run done again has nothing to add.
            await tables.put(names.outbox, row, condition=Absent("pk"))
        except ConditionFailed:
            continue
    registry = RegistryStore(tables, names, clock=lambda: now)
    for ban in bans:
        entry = Ban(
            source=ban.source,
            mode=BanMode.WARM,
            until=float(ban.until),
            reason=f"dominated {', '.join(ban.targets)} in the ban window of {ban.window}",
        )
        await registry.put_ban(entry, actor=ACTOR)


def _route(item: Item) -> Route | None:
    try:
        entry = decode_row(item)
    except MalformedRowError:
        return None
    return entry if isinstance(entry, Route) else None
