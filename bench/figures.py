"""The form of what is measured: rows of one table, beside what they are to be compared with."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure."""

    section: str
    what: str
    value: float
    unit: str
    beside: str = ""
    """What the ratio is to."""
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    note: str = ""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything: `FULL` for figures, `TINY` to see that it runs."""

    rounds: int = 9
    calls: int = 2_000
    """Of a decision, in one round."""
    dispatch_rounds: int = 5
    window_seconds: float = 1.0
    warm_seconds: float = 0.4
    growth: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    tenants: tuple[int, ...] = (1, 100, 10_000)
    target_queues: tuple[int, ...] = (1, 10)
    depths: tuple[int, ...] = (100, 1_000, 4_000)
    growth_rounds: int = 3
    grants: int = 1_000_000
    routes: int = 50_000
    schedule_seconds: float = 5.0
    embedded_messages: int = 600
    embedded_rate: float = 20.0
    embedded_seconds: float = 15.0


FULL = Sizes()
TINY = Sizes(
    rounds=1,
    calls=20,
    dispatch_rounds=1,
    window_seconds=0.2,
    warm_seconds=0.1,
    growth=(1_000,),
    tenants=(1,),
    target_queues=(1,),
    depths=(10, 40),
    growth_rounds=1,
    grants=5_000,
    routes=250,
    schedule_seconds=0.3,
    embedded_messages=40,
    embedded_rate=10.0,
    embedded_seconds=1.0,
)


def alternating(works: dict[str, Callable[[], object]], *, rounds: int, calls: int) -> dict[str, float]:
    """Microseconds of CPU a call, the median of rounds in which all take turns: what slows one slows the others too."""
    samples: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(rounds):
        for name, work in works.items():
            started = time.process_time_ns()
            for _ in range(calls):
                work()
            samples[name].append((time.process_time_ns() - started) / calls / 1000)
    return {name: statistics.median(found) for name, found in samples.items()}


def quantile(sorted_values: list[float], share: float) -> float:
    """The value that this share of all stays at or below."""
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def spread(latencies: Iterable[float]) -> dict[str, float]:
    """Mean and percentiles, in milliseconds."""
    found = sorted(latency * 1000 for latency in latencies)
    return {
        "mean": statistics.fmean(found),
        "p50": quantile(found, 0.5),
        "p95": quantile(found, 0.95),
        "p99": quantile(found, 0.99),
    }
