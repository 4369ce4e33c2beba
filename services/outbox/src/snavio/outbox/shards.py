"""Who reads which shard: pure decisions over the list of shards and the leases in the table."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import msgspec

from snavio.outbox.values import Shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class ShardLease(msgspec.Struct, frozen=True, kw_only=True):
    """One worker's right to read a shard for a while, and how far the shard has been read."""

    shard: str
    stream: str
    """The ARN of the stream: a table made anew has other records under what may be the same shard id."""
    owner: str = ""
    until: float = 0.0
    checkpoint: str | None = None
    position: float = 0.0
    """Everything written to the shard before this time is settled."""
    finished: bool = False
    """Closed, read to its end and settled: its children may be read."""

    def held(self, now: float) -> bool:
        """Whether somebody may be reading it."""
        return bool(self.owner) and self.until > now


class Plan(msgspec.Struct, frozen=True):
    """What one worker should do now."""

    claim: tuple[str, ...] = ()
    release: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    """Leases of shards that are gone from the stream."""


def readable(shards: Iterable[Shard], leases: Mapping[str, ShardLease]) -> list[str]:
    """Shards that may be read now: unfinished, and their parent finished or gone."""
    shards = list(shards)
    finished = {shard.id for shard in shards if shard.id in leases and leases[shard.id].finished}
    present = {shard.id for shard in shards}
    return [
        shard.id
        for shard in shards
        if shard.id not in finished
        and (shard.parent is None or shard.parent not in present or shard.parent in finished)
    ]


def plan(
    shards: Sequence[Shard],
    leases: Mapping[str, ShardLease],
    *,
    me: str,
    workers: Iterable[str],
    now: float,
) -> Plan:
    """What `me` should claim and release for the live `workers` to share the readable shards evenly.

    `leases` are those of the present stream by shard. Each worker looks at free shards in an order of its own, so that
    workers that decide at the same moment rarely reach for the same one.
    """
    open_shards = readable(shards, leases)
    mine = [shard for shard in open_shards if shard in leases and _is_mine(leases[shard], me, now)]
    owners = {lease.owner for lease in leases.values() if lease.held(now)}
    share = math.ceil(len(open_shards) / len({me, *workers, *owners}))
    if len(mine) > share:
        surplus = sorted(mine, key=lambda shard: _rank(me, shard))[share:]
        return Plan(release=tuple(surplus), forget=_gone(shards, leases, now))
    free = [shard for shard in open_shards if shard not in leases or not leases[shard].held(now)]
    free.sort(key=lambda shard: _rank(me, shard))
    return Plan(claim=tuple(free[: share - len(mine)]), forget=_gone(shards, leases, now))


def swept_before(
    now: float,
    shards: Iterable[Shard],
    leases: Mapping[str, ShardLease],
    *,
    missed_after: float,
    patience: float,
) -> float:
    """Rows written before this time are the sweeper's; the stream has passed them, or had its chance.

    A row is the stream's while any shard that may hold it has not been settled past the time it was written, unless
    the stream has been stuck for longer than `patience`.
    """
    positions = [leases[shard].position if shard in leases else 0.0 for shard in readable(shards, leases)]
    passed = min([now, *positions])
    return min(now - missed_after, max(passed, now - patience))


def _is_mine(lease: ShardLease, me: str, now: float) -> bool:
    return lease.owner == me and lease.held(now)


def _gone(shards: Iterable[Shard], leases: Mapping[str, ShardLease], now: float) -> tuple[str, ...]:
    present = {shard.id for shard in shards}
    return tuple(shard for shard, lease in leases.items() if shard not in present and not lease.held(now))


def _rank(me: str, shard: str) -> bytes:
    return hashlib.blake2b(f"{me}\0{shard}".encode(), digest_size=8).digest()
