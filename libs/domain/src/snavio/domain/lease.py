"""Token leases: units reserved ahead, spent from memory while they last."""

from __future__ import annotations

import math

import msgspec

from snavio.domain.bucket import UNIT, Bucket


class Lease:
    """A run of units one worker holds for one (target, command)."""

    __slots__ = ("_bucket", "_end", "_next", "_until_us")

    def __init__(self, bucket: Bucket, start: int, units: int, *, until_us: int) -> None:
        self._bucket = bucket
        self._next = start
        self._end = start + units * UNIT
        self._until_us = until_us

    def units_left(self, now_us: int) -> int:
        """How many units can still be spent."""
        if now_us >= self._until_us:
            return 0
        return max(0, self._end - max(self._next, self._bucket.window(now_us).floor)) // UNIT

    def take(self, now_us: int) -> bool:
        """Spend one unit, passing over those that have grown too old."""
        if now_us >= self._until_us:
            return False
        position = self._next
        floor = self._bucket.window(now_us).floor
        position = max(position, floor)
        if position + UNIT > self._end:
            self._next = self._end
            return False
        self._next = position + UNIT
        return True


class LeasePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How leases are sized and how long they last."""

    seconds: float = 30.0
    """The longest a lease is used, whatever the limit's burst would allow."""
    horizon_seconds: float = 2.0
    """How much demand one lease should cover."""
    low_water: float = 0.5
    """Prefetch when less than this part of the last lease is left."""
    largest_part: float = 0.25
    """No lease takes more than this part of the burst: others want some too."""
    shortest_seconds: float = 0.25
    """A lease that would be too old sooner than this is not worth a write."""
    tolerance_seconds: float = 0.0
    """How far workers' clocks may be apart."""


def lease_size(bucket: Bucket, policy: LeasePolicy, *, demand_per_second: float, room: int | None) -> int:
    """How many units to reserve: the demand of the horizon, one near exhaustion, none where a lease does not pay.

    A lease that is not used up is lost to the limit, so it never holds more than grows back within the horizon; where
    not even one unit a second does, every unit is better reserved when it is needed. `room` is what was left of the
    limit when last seen.
    """
    per_second = bucket.limit * UNIT / bucket.interval_us
    if per_second < 1.0:
        return 0
    most = max(1, min(int(bucket.burst * policy.largest_part), int(per_second * policy.horizon_seconds)))
    wanted = min(most, max(1, math.ceil(demand_per_second * policy.horizon_seconds)))
    if (room is not None and room < 2 * wanted) or not _lives(bucket, policy, wanted):
        wanted = 1
    return wanted if _lives(bucket, policy, wanted) else 0


def _lives(bucket: Bucket, policy: LeasePolicy, units: int) -> bool:
    return bucket.life_us(units) >= policy.shortest_seconds * UNIT


class Demand:
    """Requests per second for one (target, command), smoothed over a few seconds."""

    __slots__ = ("_at", "_pending", "per_second")

    def __init__(self, now: float) -> None:
        self._at = now
        self._pending = 0
        self.per_second = 0.0

    def note(self) -> None:
        """One more request."""
        self._pending += 1

    def settle(self, now: float, *, memory_seconds: float = 3.0) -> float:
        """Fold what came since the last call into the rate, and return it."""
        elapsed = now - self._at
        if elapsed > 0:
            weight = 1.0 - math.exp(-elapsed / memory_seconds)
            self.per_second += weight * (self._pending / elapsed - self.per_second)
            self._pending = 0
            self._at = now
        return self.per_second
