"""The port through which code is measured and traced, and the silent one used when nothing listens.

Measure with `telemetry.measure(metrics.COMMANDS, 1, outcome="delivered")`. The silent port costs one call; where even
building the arguments would cost, ask `telemetry.measuring` or `telemetry.tracing` first.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snavio.runtime.metrics import Metric
    from snavio.runtime.tracecontext import TraceContext

SpanKind = Literal["internal", "client", "producer", "consumer"]
Attribute: TypeAlias = str | int | float | bool


class Span(Protocol):
    """A span in progress."""

    def annotate(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes."""
        ...

    def fail(self, reason: str) -> None:
        """Mark the span as failed, for a reason from a bounded set."""
        ...

    @property
    def context(self) -> TraceContext | None:
        """What to carry in messages sent from here; None when nothing is traced."""
        ...


class Telemetry(Protocol):
    """Metrics and spans."""

    @property
    def measuring(self) -> bool:
        """Whether anything keeps measurements."""
        ...

    @property
    def tracing(self) -> bool:
        """Whether anything keeps spans."""
        ...

    def measure(self, metric: Metric, value: float = 1, /, **attributes: str) -> None:
        """Add to a counter, record in a histogram or set a gauge, by the metric's kind."""
        ...

    def span(
        self,
        name: str,
        kind: SpanKind = "internal",
        *,
        parent: TraceContext | None = None,
        links: Sequence[TraceContext] = (),
        attributes: Mapping[str, Attribute] | None = None,
        started_at: float | None = None,
    ) -> AbstractContextManager[Span]:
        """A span around a block: a child of `parent`, or else of the current one; an exception marks it failed.

        `started_at`, in seconds since the epoch, dates it back to when its work began.
        """
        ...


class SilentSpan:
    """A span nobody sees."""

    context = None

    def annotate(self, attributes: Mapping[str, Attribute]) -> None:
        """Nothing."""

    def fail(self, reason: str) -> None:
        """Nothing."""


_SILENT_SPAN = SilentSpan()


class SilentTelemetry:
    """Keeps nothing, costs next to nothing."""

    measuring = False
    tracing = False

    def measure(self, metric: Metric, value: float = 1, /, **attributes: str) -> None:
        """Nothing."""

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
        return nullcontext(_SILENT_SPAN)


SILENT: Telemetry = SilentTelemetry()
