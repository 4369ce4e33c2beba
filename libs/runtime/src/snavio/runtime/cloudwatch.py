"""Metrics added up in memory and published to CloudWatch now and then, under the documents' names."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from snavio.aws.errors import SnavioError
from snavio.runtime.log_events import LogEvent
from snavio.runtime.metrics import Metric
from snavio.runtime.telemetry import SilentSpan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from snavio.runtime.logs import Log
    from snavio.runtime.telemetry import Attribute, Span, SpanKind
    from snavio.runtime.tracecontext import TraceContext

NAMESPACE = "Snavio"
MAX_DATA = 1000
"""Data in one PutMetricData."""
MAX_VALUES = 150
"""Distinct values in one datum."""
_GROWTH = math.log(1.05)

Dimensions: TypeAlias = tuple[tuple[str, str], ...]


class Datum(msgspec.Struct, frozen=True):
    """One datum of PutMetricData: a set of values with how often each was seen."""

    name: str
    unit: str
    dimensions: Dimensions
    at: float
    values: tuple[float, ...]
    counts: tuple[int, ...]


class Total(msgspec.Struct, frozen=True):
    """One datum of PutMetricData: a statistic set, for what is only ever summed."""

    name: str
    unit: str
    dimensions: Dimensions
    at: float
    count: int
    total: float
    least: float
    most: float


class MetricsSink(Protocol):
    """Where data go."""

    async def publish(self, namespace: str, data: Sequence[Datum | Total]) -> None:
        """Publish up to 1000 data in one call."""
        ...


class CloudWatchMeter:
    """Counters are kept as statistic sets, gauges as their last value.

    Histograms are kept as values rounded to within 2.5 %, because CloudWatch gives percentiles of values and none of
    statistic sets.
    """

    measuring = True
    tracing = False

    def __init__(self) -> None:
        self._kept: dict[tuple[Metric, Dimensions], _Sum | _Spread | _Last] = {}

    def measure(self, metric: Metric, value: float = 1, /, **attributes: str) -> None:
        """Add to what is kept."""
        key = (metric, tuple(sorted(attributes.items())))
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _KINDS[metric.kind]()
        kept.add(value)

    def span(
        self,
        name: str,  # noqa: ARG002 - the port's signature
        kind: SpanKind = "internal",  # noqa: ARG002
        *,
        parent: TraceContext | None = None,  # noqa: ARG002
        links: Sequence[TraceContext] = (),  # noqa: ARG002
        attributes: Mapping[str, Attribute] | None = None,  # noqa: ARG002
        started_at: float | None = None,  # noqa: ARG002
    ) -> AbstractContextManager[Span]:
        """A block without a span."""
        return nullcontext(SilentSpan())

    def take(self, at: float) -> list[Datum | Total]:
        """What was kept since the last take."""
        kept, self._kept = self._kept, {}
        return [datum for (metric, where), one in kept.items() for datum in one.data(metric, where, at)]


class CloudWatchPublisher:
    """Publishes what a meter keeps. What cannot be published is tried once more with the next lot, then lost, and said."""

    def __init__(
        self, meter: CloudWatchMeter, sink: MetricsSink, *, log: Log, now: Callable[[], float] = time.time
    ) -> None:
        self._meter = meter
        self._sink = sink
        self._log = log
        self._now = now
        self._again: list[Datum | Total] = []

    async def publish(self) -> None:
        """Publish now. Never raises for what CloudWatch does: metrics are not worth a worker."""
        again, self._again = self._again, []
        for lot in _lots(again):
            await self._attempt(lot, keep=False)
        for lot in _lots(self._meter.take(self._now())):
            await self._attempt(lot, keep=True)

    async def _attempt(self, lot: list[Datum | Total], *, keep: bool) -> None:
        try:
            await self._sink.publish(NAMESPACE, lot)
        except SnavioError as error:
            self._log.warning(LogEvent.METRICS_FAILED, error=error, data=len(lot), lost=not keep)
            if keep:
                self._again += lot


class _Sum:
    __slots__ = ("count", "least", "most", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.least = math.inf
        self.most = -math.inf

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.least = min(self.least, value)
        self.most = max(self.most, value)

    def data(self, metric: Metric, where: Dimensions, at: float) -> list[Datum | Total]:
        return [Total(metric.name, metric.unit, where, at, self.count, self.total, self.least, self.most)]


class _Spread:
    __slots__ = ("buckets",)

    def __init__(self) -> None:
        self.buckets: dict[int | None, int] = {}

    def add(self, value: float) -> None:
        # A bucket is a power of 1.05; what is not positive shares one, since durations and sizes are never below 0.
        bucket = round(math.log(value) / _GROWTH) if value > 0 else None
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def data(self, metric: Metric, where: Dimensions, at: float) -> list[Datum | Total]:
        seen = [
            (0.0 if bucket is None else math.exp(bucket * _GROWTH), n) for bucket, n in self.buckets.items()
        ]
        data: list[Datum | Total] = []
        for start in range(0, len(seen), MAX_VALUES):
            values, counts = zip(*seen[start : start + MAX_VALUES], strict=True)
            data.append(Datum(metric.name, metric.unit, where, at, values, counts))
        return data


class _Last:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, value: float) -> None:
        self.value = value

    def data(self, metric: Metric, where: Dimensions, at: float) -> list[Datum | Total]:
        return [Datum(metric.name, metric.unit, where, at, (self.value,), (1,))]


_KINDS = {"counter": _Sum, "histogram": _Spread, "gauge": _Last}


def _lots(data: list[Datum | Total]) -> Iterator[list[Datum | Total]]:
    for start in range(0, len(data), MAX_DATA):
        yield data[start : start + MAX_DATA]
