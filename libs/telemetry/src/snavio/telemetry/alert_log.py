"""Alerts in the alerts table: bursts under way, alerts raised with every attempt to deliver them, flags for operators.

| pk | sk | what |
|---|---|---|
| `burst#<0-7>` | `<tenant>#<type>#<target>` | a burst under way |
| `tenant#<tenant>` | `<raised at>#<alert id>` | an alert raised: what a dashboard lists |
| `pending` | `<alert id>` | an alert with deliveries to come |
| `flags` | `<tenant>#<type>` | a critical event nobody could be told of: operators follow up |
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import msgspec

from snavio.aws.errors import ConditionFailed, Refused
from snavio.aws.values import Absent, Change, Equals, Exists, Put, SortRange, Update
from snavio.telemetry.alerts import Alert, body
from snavio.telemetry.bursts import Burst, BurstKey, Sighting, Tell, opened
from snavio.telemetry.deliveries import Delivery, next_due
from snavio.wire.times import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snavio.aws.ports import Tables
    from snavio.aws.values import Item
    from snavio.telemetry.bursts import BurstSettings

_BUCKETS = 8
_BURST_SECONDS = 24 * 3600
ALERT_SECONDS = 90 * 24 * 3600
"""How long an alert can be looked up."""


class RaisedAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert as it is kept."""

    pk: str
    sk: str
    alert: str
    """The alert as JSON, as channels carry it."""
    summary: str
    deliveries: tuple[Delivery, ...] = ()
    expires_at: int
    """Seconds since the epoch, for the table's TTL."""
    on_dashboard: bool = False
    flagged: bool = False

    @property
    def content(self) -> Alert:
        """What the alert says."""
        return msgspec.json.decode(self.alert, type=Alert)


class AlertLog:
    """The alerts table of one installation."""

    def __init__(self, tables: Tables, table: str) -> None:
        self._tables = tables
        self._table = table

    async def see(self, key: BurstKey, seen: Sighting, now: float, settings: BurstSettings) -> None:
        """Add events to the burst under way, or begin one."""
        place = _burst_place(key)
        grow = Change(
            add={"count": seen.count},
            assign={
                "last_at": seen.last_at,
                "sample": seen.sample,
                "expires_at": int(now) + _BURST_SECONDS,
            },
        )
        fresh: Item = {
            **place,
            **_flat(opened(key, seen, now, settings)),
            "expires_at": int(now) + _BURST_SECONDS,
        }
        for _ in range(3):  # it may be closed, or begun by another worker, between the two writes
            try:
                await self._tables.update(self._table, place, grow, condition=Exists("pk"))
            except ConditionFailed:
                pass
            else:
                return
            try:
                await self._tables.put(self._table, fresh, condition=Absent("pk"))
            except ConditionFailed:
                continue
            return
        raise Refused("a burst kept changing hands")

    async def bursts(self) -> list[Burst]:
        """Every burst under way."""
        found: list[Burst] = []
        for bucket in range(_BUCKETS):
            items = await self._partition(f"burst#{bucket}")
            found += [burst for item in items if (burst := _burst(item)) is not None]
        return found

    async def raise_alert(
        self, burst: Burst, told: Tell, alert: Alert, deliveries: Sequence[Delivery], now: float
    ) -> bool:
        """Record an alert and move its burst on, both or neither; False when another worker already did."""
        raised = RaisedAlert(
            pk=f"tenant#{alert.tenant}",
            sk=f"{alert.raised_at}#{alert.alert_id}",
            alert=body(alert).decode(),
            summary=alert.summary,
            deliveries=tuple(deliveries),
            on_dashboard=any(
                delivery.channel.__struct_config__.tag == "dashboard" for delivery in deliveries
            ),
            flagged=not deliveries,
            expires_at=int(now) + ALERT_SECONDS,
        )
        then = told.then
        moved = Change(assign={"told": then.told, "notices": then.notices, "due_at": then.due_at})
        writes = [
            Update(
                self._table, {**_burst_place(burst.key)}, moved, condition=Equals("notices", burst.notices)
            ),
            Put(self._table, _kept(raised)),
        ]
        if deliveries:
            pending: Item = {"pk": "pending", "sk": alert.alert_id, "of_pk": raised.pk, "of_sk": raised.sk}
            writes.append(Put(self._table, {**pending, "due_at": 0}))
        try:
            await self._tables.transact(writes)
        except ConditionFailed:
            return False
        return True

    async def close(self, burst: Burst) -> None:
        """Forget a burst, unless it has just grown."""
        try:
            await self._tables.delete(
                self._table, _burst_place(burst.key), condition=Equals("count", burst.count)
            )
        except ConditionFailed:
            return

    async def due(self, now: float) -> list[RaisedAlert]:
        """Alerts with a delivery to make now."""
        found: list[RaisedAlert] = []
        for item in await self._partition("pending"):
            if cast("float", item["due_at"]) > now:
                continue
            key = {"pk": cast("str", item["of_pk"]), "sk": cast("str", item["of_sk"])}
            kept = await self._tables.get(self._table, key)
            if kept is None:
                await self._tables.delete(self._table, {"pk": "pending", "sk": cast("str", item["sk"])})
                continue
            with suppress(msgspec.ValidationError):  # one that cannot be read must not keep back the others
                found.append(msgspec.convert(kept, RaisedAlert))
        return found

    async def record(self, raised: RaisedAlert) -> None:
        """Keep what became of an alert's deliveries, and when to look at it again."""
        await self._tables.put(self._table, _kept(raised))
        key = {"pk": "pending", "sk": raised.sk.rpartition("#")[2]}
        due_at = next_due(raised.deliveries)
        if due_at is None:
            await self._tables.delete(self._table, key)
        else:
            await self._tables.update(
                self._table, key, Change(assign={"of_pk": raised.pk, "of_sk": raised.sk, "due_at": due_at})
            )

    async def flag(self, alert: Alert, reason: str, now: float) -> None:
        """Leave a critical alert nobody received for operators to follow up."""
        await self._tables.update(
            self._table,
            {"pk": "flags", "sk": f"{alert.tenant}#{alert.event_type}"},
            Change(
                add={"count": alert.count},
                assign={
                    "tenant": alert.tenant,
                    "event_type": alert.event_type,
                    "last_at": alert.last_at,
                    "reason": reason,
                    "alert": body(alert).decode(),
                    "flagged_at": format_time(now),
                },
            ),
        )

    async def raised(self, tenant: str, *, limit: int = 50, since: str | None = None) -> list[RaisedAlert]:
        """A tenant's alerts, newest first."""
        sort = None if since is None else SortRange("sk", low=since)
        page = await self._tables.query(
            self._table,
            ("pk", f"tenant#{tenant}"),
            sort=sort,
            limit=limit,
            descending=True,
            consistent=False,
        )
        return [msgspec.convert(item, RaisedAlert) for item in page.items]

    async def flags(self) -> list[Item]:
        """What operators have to follow up."""
        return await self._partition("flags")

    async def _partition(self, pk: str) -> list[Item]:
        items: list[Item] = []
        cursor: Item | None = None
        while True:
            page = await self._tables.query(self._table, ("pk", pk), cursor=cursor)
            items += page.items
            cursor = page.cursor
            if cursor is None:
                return items


def _kept(raised: RaisedAlert) -> Item:
    # By way of JSON, which like DynamoDB knows lists and no tuples.
    return cast("Item", msgspec.json.decode(msgspec.json.encode(raised)))


def _burst_place(key: BurstKey) -> dict[str, str]:
    sk = f"{key.tenant}#{key.event_type}#{key.target}"
    return {"pk": f"burst#{zlib.crc32(sk.encode()) % _BUCKETS}", "sk": sk}


def _flat(burst: Burst) -> Item:
    item = cast("Item", msgspec.to_builtins(burst))
    item.update(cast("Item", item.pop("key")))
    return item


def _burst(item: Item) -> Burst | None:
    """A burst; None for what is not one, which must not keep the others from being told."""
    try:
        return msgspec.convert({**item, "key": msgspec.convert(item, BurstKey)}, Burst)
    except msgspec.ValidationError:
        return None
