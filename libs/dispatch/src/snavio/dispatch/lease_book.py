"""The leases of one fast worker: spent from memory, replenished in the background."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio

from snavio.aws.errors import SnavioError
from snavio.dispatch.limit_store import LimitStore, limit_key, pair_name
from snavio.domain.bucket import microseconds
from snavio.domain.lease import Demand, Lease, LeasePolicy, lease_size
from snavio.domain.models import RateLimit, Route
from snavio.runtime import metrics
from snavio.runtime.telemetry import SILENT, Telemetry

_IDLE_SECONDS = 60.0
_PAUSE_SECONDS = 0.05


class _Line:
    """One limited (target, command) this worker serves."""

    __slots__ = ("asked_at", "demand", "leases", "limit", "name", "not_before", "room", "size", "wanted")

    def __init__(self, name: str, limit: RateLimit, now: float) -> None:
        self.name = name
        self.limit = limit
        self.demand = Demand(now)
        self.leases: deque[Lease] = deque()
        """The oldest first: its units are the first to grow too old."""
        self.size = 0
        self.room: int | None = None
        self.wanted = False
        self.not_before = 0.0
        self.asked_at = now

    def take(self, now_us: int) -> bool:
        while self.leases:
            if self.leases[0].take(now_us):
                return True
            self.leases.popleft()
        return False

    def units_left(self, now_us: int) -> int:
        return sum(lease.units_left(now_us) for lease in self.leases)


class LeaseBook:
    """Units held for each (target, command). `take` never waits and never asks anyone."""

    def __init__(
        self,
        limits: LimitStore,
        policy: LeasePolicy,
        *,
        prefetchers: int,
        clock: Callable[[], float],
        telemetry: Telemetry = SILENT,
    ) -> None:
        self._limits = limits
        self._policy = policy
        self._prefetchers = prefetchers
        self._clock = clock
        self._lines: dict[str, _Line] = {}
        self._wake = anyio.Event()
        self._telemetry = telemetry

    def take(self, route: Route, now: float) -> bool:
        """Spend a unit, if one is held; ask for more when few are left."""
        limit = route.rate_limit
        if limit is None:
            return True
        key = limit_key(pair_name(route.target, route.command), limit)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(pair_name(route.target, route.command), limit, now)
        line.demand.note()
        line.asked_at = now
        now_us = microseconds(now)
        taken = line.take(now_us)
        if not line.wanted and (not taken or line.units_left(now_us) < self._policy.low_water * line.size):
            line.wanted = True
            self._wake.set()
        return taken

    def units_held(self, now: float) -> int:
        """How many units could be spent right now, over all limits."""
        now_us = microseconds(now)
        return sum(line.units_left(now_us) for line in self._lines.values())

    async def replenish(self) -> None:
        """Prefetch for ever, for whatever is wanted."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            await self.prefetch_due()
            if any(line.wanted for line in self._lines.values()):
                await anyio.sleep(_PAUSE_SECONDS)
                self._wake.set()

    async def prefetch_due(self) -> None:
        """Prefetch once for whatever is wanted now."""
        now = self._clock()
        async with anyio.create_task_group() as group:
            for line in self._lines.values():
                if line.wanted and now >= line.not_before:
                    group.start_soon(self._prefetch, line)
        self._forget_idle(now)

    async def _prefetch(self, line: _Line) -> None:
        now = self._clock()
        bucket = self._limits.bucket(line.limit)
        size = lease_size(bucket, self._policy, demand_per_second=line.demand.settle(now), room=line.room)
        if size == 0:
            # This limit's units do not keep: slow will reserve each one.
            line.wanted = False
            line.not_before = now + 1.0
            return
        try:
            if not await self._limits.take_slot(line.name, line.limit.prefetchers or self._prefetchers):
                line.not_before = int(now) + 1.0
                return
            reservation = await self._limits.reserve(line.name, line.limit, size)
        except SnavioError:
            line.not_before = now + 1.0
            self._telemetry.measure(metrics.LEASES, outcome="failed")
            return
        line.room = reservation.room
        line.wanted = False
        if reservation.units == 0:
            line.not_before = now + reservation.retry_after_ms / 1000
            self._telemetry.measure(metrics.LEASES, outcome="exhausted")
            return
        until_us = microseconds(now + self._policy.seconds)
        line.leases.append(Lease(bucket, reservation.start, reservation.units, until_us=until_us))
        line.size = reservation.units
        self._telemetry.measure(metrics.LEASES, outcome="granted")

    def _forget_idle(self, now: float) -> None:
        idle = [key for key, line in self._lines.items() if now - line.asked_at > _IDLE_SECONDS]
        for key in idle:
            del self._lines[key]
