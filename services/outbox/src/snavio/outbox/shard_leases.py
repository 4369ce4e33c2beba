"""Shard leases and checkpoints in the leases table. A checkpoint is written only by who holds the lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from snavio.aws.errors import ConditionFailed
from snavio.aws.values import Absent, AllOf, AnyOf, AtMost, Change, Differs, Equals
from snavio.outbox.shards import ShardLease

if TYPE_CHECKING:
    from collections.abc import Callable

    from snavio.aws.ports import Tables
    from snavio.aws.values import Item

_SHARD = "stream#"
_WORKER = "outbox-worker#"


class LeaseBook(msgspec.Struct, frozen=True):
    """All that is known of the fleet at one moment."""

    leases: dict[str, ShardLease]
    """By shard, of the present stream."""
    workers: frozenset[str]
    stale_workers: tuple[str, ...]


class ShardLeases:
    """One worker's view of the leases of one stream."""

    def __init__(
        self, tables: Tables, table: str, *, me: str, lease_seconds: float, now: Callable[[], float]
    ) -> None:
        self._tables = tables
        self._table = table
        self._me = me
        self._seconds = lease_seconds
        self._now = now

    async def read(self, stream: str) -> LeaseBook:
        """Everybody's leases and who is alive. The table is small: a few rows a shard and worker."""
        now = self._now()
        leases: dict[str, ShardLease] = {}
        live: set[str] = set()
        stale: list[str] = []
        async for page in self._tables.scan(self._table):
            for item in page:
                pk = str(item["pk"])
                if pk.startswith(_SHARD) and item.get("stream") == stream:
                    lease = _lease(item)
                    leases[lease.shard] = lease
                elif pk.startswith(_WORKER):
                    worker = pk.removeprefix(_WORKER)
                    if _number(item, "until") > now:
                        live.add(worker)
                    else:
                        stale.append(worker)
        return LeaseBook(leases, frozenset(live), tuple(stale))

    async def announce(self) -> None:
        """Say that this worker is alive and wants its share."""
        await self._tables.put(
            self._table, {"pk": f"{_WORKER}{self._me}", "until": self._now() + self._seconds}
        )

    async def depart(self, worker: str | None = None) -> None:
        """Strike this worker, or one long silent, from the list."""
        await self._tables.delete(self._table, {"pk": f"{_WORKER}{worker or self._me}"})

    async def claim(self, shard: str, stream: str) -> ShardLease | None:
        """Take a shard nobody holds; None when somebody was quicker. What was read of another stream is forgotten."""
        now = self._now()
        fresh = AnyOf((Absent("stream"), Differs("stream", stream)))
        held_by_none = AnyOf(
            (Absent("owner"), Equals("owner", ""), Equals("owner", self._me), AtMost("until", now))
        )
        key = {"pk": f"{_SHARD}{shard}"}
        taken: Item = {"shard": shard, "stream": stream, "owner": self._me, "until": now + self._seconds}
        try:
            item = await self._tables.update(
                self._table,
                key,
                Change(assign=taken),
                condition=AllOf((Equals("stream", stream), Equals("finished", False), held_by_none)),
            )
        except ConditionFailed as conflict:
            if conflict.old is not None and conflict.old.get("stream") == stream:
                return None
        else:
            return _lease(item)
        item = {**key, **taken, "finished": False, "position": 0}
        try:
            await self._tables.put(self._table, item, condition=fresh)
        except ConditionFailed:
            return None
        return _lease(item)

    async def renew(
        self, lease: ShardLease, *, checkpoint: str | None, position: float, finished: bool = False
    ) -> ShardLease | None:
        """Keep a lease and record how far the shard is settled; None when it is no longer ours."""
        return await self._write(
            lease,
            until=self._now() + self._seconds,
            owner="" if finished else self._me,
            checkpoint=checkpoint,
            position=position,
            finished=finished,
        )

    async def release(self, lease: ShardLease, *, checkpoint: str | None, position: float) -> None:
        """Give a shard back with how far it is settled; anyone may take it at once."""
        await self._write(
            lease, until=0.0, owner="", checkpoint=checkpoint, position=position, finished=False
        )

    async def forget(self, lease: ShardLease) -> None:
        """Remove the lease of a shard that is gone from the stream."""
        try:
            await self._tables.delete(
                self._table, {"pk": f"{_SHARD}{lease.shard}"}, condition=Equals("owner", lease.owner)
            )
        except ConditionFailed:
            return

    async def _write(
        self,
        lease: ShardLease,
        *,
        until: float,
        owner: str,
        checkpoint: str | None,
        position: float,
        finished: bool,
    ) -> ShardLease | None:
        change = Change(
            assign={
                "owner": owner,
                "until": until,
                "position": position,
                "finished": finished,
                **({} if checkpoint is None else {"checkpoint": checkpoint}),
            }
        )
        mine = AllOf((Equals("owner", self._me), Equals("stream", lease.stream)))
        try:
            item = await self._tables.update(
                self._table, {"pk": f"{_SHARD}{lease.shard}"}, change, condition=mine
            )
        except ConditionFailed:
            return None
        return _lease(item)


def _lease(item: Item) -> ShardLease:
    return msgspec.convert({name: value for name, value in item.items() if name != "pk"}, ShardLease)


def _number(item: Item, name: str) -> float:
    value = item.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
