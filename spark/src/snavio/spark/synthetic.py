"""A deterministic feed of any size: the traffic of a platform, with a few who take too much of it.

Tenants and targets follow Zipf's law. Every number follows from the seed, the worker and the window, so any part of the
feed can be made anywhere, in any order, and is always the same.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import cached_property

import msgspec

from snavio.wire.latency import latency_bucket
from snavio.wire.stats import (
    DISPATCHED,
    NO_BUCKET,
    WINDOW_SECONDS,
    Service,
    StatRow,
    StatsItem,
    encode_window,
    window_of,
)

_REASONS = ("rate-limit-exceeded", "acl-deny", "route-missing", "delivery-failure", "fairness-violation")
_REASON_WEIGHTS = (8, 3, 1, 2, 1)


class Abuser(msgspec.Struct, frozen=True):
    """A source that floods some targets from one moment on."""

    source: str
    targets: tuple[str, ...]
    factor: float
    """Its dispatches to each of them, over those of all the others together."""
    start: int = 0
    end: int = 2**53


class Spec(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """How much traffic, from whom."""

    seed: int = 1
    start: int
    windows: int = 5
    workers: int = 4
    tenants: int = 20
    services_a_tenant: int = 3
    targets: int = 8
    commands_a_target: int = 4
    rows_a_window: int = 400
    """About how many rows each worker writes a window."""
    rejected: float = 0.04
    abusers: tuple[Abuser, ...] = ()
    late: float = 0.0
    """The part of items that come minutes after their window."""
    repeated: float = 0.0
    """The part of items that are written twice."""

    @cached_property
    def sources(self) -> list[str]:
        """Every honest source, the busiest first."""
        return [
            f"tenant-{i % self.tenants}/service-{i // self.tenants}"
            for i in range(self.tenants * self.services_a_tenant)
        ]

    @cached_property
    def routes(self) -> list[tuple[str, str]]:
        """Every (target, command), the busiest first."""
        return [
            (f"target-{i % self.targets}", f"command-{i // self.targets}")
            for i in range(self.targets * self.commands_a_target)
        ]

    @cached_property
    def keys(self) -> list[tuple[str, str, str]]:
        """Every (source, target, command)."""
        return [(source, *route) for source in self.sources for route in self.routes]

    @cached_property
    def key_weights(self) -> list[float]:
        """Cumulative weights of `keys`: a source's by its rank, times a route's by its."""
        sources = [(rank + 1) ** -0.7 for rank in range(len(self.sources))]
        routes = [(rank + 1) ** -0.6 for rank in range(len(self.routes))]
        return list(itertools.accumulate(s * r for s in sources for r in routes))

    def worker(self, number: int) -> str:
        """The id of a worker; one in four is slow."""
        return f"{self.service(number)}-{number:04d}-{self.seed}"

    def service(self, number: int) -> Service:
        """What kind of worker it is."""
        return "slow" if number % 4 == 3 else "fast"  # noqa: PLR2004


class Arrival(msgspec.Struct, frozen=True):
    """An item and when it reaches the store."""

    at: int
    item: StatsItem


def worker_rows(spec: Spec, number: int, window: int) -> list[StatRow]:
    """What one worker counted in one window."""
    rng = random.Random(f"{spec.seed}/{number}/{window}")
    slow = spec.service(number) == "slow"
    counts: dict[tuple[str, str, str, str, int], int] = {}
    # A drawn key makes about two rows, dispatches near its usual latency.
    drawn = rng.choices(
        range(len(spec.keys)), cum_weights=spec.key_weights, k=max(1, spec.rows_a_window // 2)
    )
    for index in drawn:
        key = spec.keys[index]
        usual = (40.0 if slow else 6.0) * (1 + index % 7)
        for _ in range(2):
            if rng.random() < spec.rejected:
                cell = (*key, rng.choices(_REASONS, _REASON_WEIGHTS)[0], NO_BUCKET)
            else:
                cell = (*key, DISPATCHED, latency_bucket(usual * rng.lognormvariate(0, 0.6)))
            counts[cell] = counts.get(cell, 0) + rng.randint(1, 9)
    for abuser in spec.abusers:
        if abuser.start <= window < abuser.end:
            _flood(counts, abuser, rng)
    return [StatRow(*cell, count) for cell, count in sorted(counts.items())]


def _flood(counts: dict[tuple[str, str, str, str, int], int], abuser: Abuser, rng: random.Random) -> None:
    for target in abuser.targets:
        others = sum(
            n
            for (source, to, _, what, _), n in counts.items()
            if to == target and what == DISPATCHED and source != abuser.source
        )
        cell = (abuser.source, target, "command-0", DISPATCHED, latency_bucket(rng.uniform(5, 20)))
        counts[cell] = counts.get(cell, 0) + int(others * abuser.factor) + 1


def arrivals(spec: Spec) -> Iterator[Arrival]:
    """Every item of the feed, worker by worker; late and repeated ones come when they come."""
    first = window_of(spec.start)
    for number in range(spec.workers):
        for sequence in range(spec.windows):
            window = first + sequence * WINDOW_SECONDS
            rng = random.Random(f"{spec.seed}/arrival/{number}/{window}")
            items = encode_window(
                worker_rows(spec, number, window),
                worker=spec.worker(number),
                service=spec.service(number),
                window=window,
                sequence=sequence,
                last=sequence == spec.windows - 1,
            )
            for item in items:
                delay = rng.randint(2, 6) * WINDOW_SECONDS if rng.random() < spec.late else 0
                yield Arrival(window + WINDOW_SECONDS + delay, item)
                if rng.random() < spec.repeated:
                    yield Arrival(window + 2 * WINDOW_SECONDS + delay, item)
