"""Reserving units of a limit with one conditional write, exact under any concurrency.

The table keeps `issued`, the position up to which a limit's units have been handed out (see `snavio.domain.bucket`). A
reservation adds to it on the condition that the result still lies within the window of this moment. Each reservation has
an id: a retry after a lost answer finds its own id and does not charge again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

import msgspec

from snavio.aws.errors import ConditionFailed, Transient
from snavio.aws.ports import Tables
from snavio.aws.values import Absent, AllOf, AnyOf, AtLeast, AtMost, Below, Change, Differs, Item
from snavio.domain.bucket import UNIT, Bucket, Window, microseconds
from snavio.domain.models import RateLimit

_ROUNDS = 8
_SPARE_SECONDS = 3600


class Reservation(msgspec.Struct, frozen=True):
    """What was reserved: `units` from position `start`; when fewer than wanted, how long until the next."""

    units: int
    start: int
    room: int
    """What was left for others at that moment."""
    retry_after_ms: int


class LimitStore:
    """The authoritative counters of every limit and quota, and the slots of those who prefetch."""

    def __init__(
        self, tables: Tables, table: str, *, clock: Callable[[], float], tolerance_seconds: float = 0.0
    ) -> None:
        self._tables = tables
        self._table = table
        self._clock = clock
        self._tolerance = tolerance_seconds

    def bucket(self, limit: RateLimit) -> Bucket:
        """The line of units of a limit, with this platform's clock tolerance."""
        return Bucket.of(limit, tolerance_seconds=self._tolerance)

    async def reserve(self, name: str, limit: RateLimit, wanted: int) -> Reservation:
        """Reserve as many as there are of so many units.

        Raises `Transient` when it cannot be told; units that may have been charged then are lost to the limit.
        """
        bucket = self.bucket(limit)
        key = limit_key(name, limit)
        attempt_id = uuid.uuid4().hex
        mine: Item = {"reservation": attempt_id, "expires_at": _forgotten_at(limit, self._clock())}
        asked = min(wanted, limit.capacity)
        for _ in range(_ROUNDS):
            now_us = microseconds(self._clock())
            window = bucket.window(now_us)
            try:
                issued = await self._advance(key, window, asked, mine)
            except ConditionFailed as refused:
                old = refused.old
                if old is not None and old.get("reservation") == attempt_id:
                    # The earlier answer was lost, the charge was not.
                    return _granted(asked, _issued(old) or 0, window)
                issued = _issued(old)
                room = window.room_after(issued)
                if issued is not None and room == 0:
                    return Reservation(0, 0, room, max(1, -(-bucket.wait_us(issued, now_us) // 1000)))
                asked = min(asked, room) if room else asked
                continue
            return _granted(asked, issued, window)
        raise Transient(f"the counter of {name} changed too often to reserve from it")

    async def _advance(self, key: str, window: Window, units: int, mine: Item) -> int:
        """Advance `issued` from within the window, or else from below it; the new position."""
        size = units * UNIT
        within = AllOf(
            (
                AtLeast("issued", window.floor),
                AtMost("issued", window.cap - size),
                Differs("reservation", str(mine["reservation"])),
            )
        )
        try:
            item = await self._tables.update(
                self._table, {"pk": key}, Change(assign={**mine}, add={"issued": size}), condition=within
            )
        except ConditionFailed as refused:
            issued = _issued(refused.old)
            idle = issued is None or issued < window.floor
            if not idle or window.floor + size > window.cap:
                raise
            below = AnyOf((Absent("issued"), Below("issued", window.floor)))
            item = await self._tables.update(
                self._table,
                {"pk": key},
                Change(assign={**mine, "issued": window.floor + size}),
                condition=below,
            )
        return _issued(item) or 0

    async def take_slot(self, name: str, most: int) -> bool:
        """Become one of at most `most` workers that prefetch for this limit in this second."""
        now = int(self._clock())
        try:
            await self._tables.update(
                self._table,
                {"pk": f"slot#{name}#{now}"},
                Change(add={"holders": 1}, assign={"expires_at": now + 60}),
                condition=AnyOf((Absent("holders"), Below("holders", most))),
            )
        except ConditionFailed:
            return False
        return True


def limit_key(name: str, limit: RateLimit) -> str:
    """Where a limit is counted. A limit that changes starts a new line: positions on the old one mean nothing to it."""
    return f"limit#{name}#{limit.limit}/{limit.interval_seconds}/{limit.capacity}"


def pair_name(target: str, command: str) -> str:
    """The name under which a (target, command) is counted."""
    return f"{target}#{command}"


def quota_name(source: str, target: str, command: str) -> str:
    """The name under which a source's own quota is counted."""
    return f"{source}#{target}#{command}"


def _forgotten_at(limit: RateLimit, now: float) -> int:
    """When a counter may be forgotten: once the line has outgrown every unit handed out, nothing is lost with it."""
    return int(now) + _SPARE_SECONDS + 2 * limit.capacity * limit.interval_seconds // limit.limit


def _granted(units: int, issued: int, window: Window) -> Reservation:
    return Reservation(units, issued - units * UNIT, window.room_after(issued), 0)


def _issued(item: Item | None) -> int | None:
    value = item.get("issued") if item else None
    return value if isinstance(value, int) else None
