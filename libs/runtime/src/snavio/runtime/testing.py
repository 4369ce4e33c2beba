"""Doubles for tests of workers: virtual time, recorded telemetry, signals sent by hand."""

from __future__ import annotations

import asyncio
import functools
import selectors
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import msgspec

from snavio.runtime.bell import Bell
from snavio.runtime.telemetry import Attribute, SpanKind
from snavio.runtime.tracecontext import TraceContext

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping, Sequence

    from snavio.runtime.metrics import Metric

P = ParamSpec("P")
R = TypeVar("R")

EPOCH = 1_795_000_000.0
"""Virtual time begins here."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: when no task can run, time jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("every task waits and no timer is set: nothing would ever happen")
            self.elapsed += max(timeout, 0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on which sleeping takes no time. Not for code that waits for sockets or threads."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Seconds slept through so far."""
        return self._jumping.elapsed


def virtual_now() -> float:
    """The time of day on a virtual loop: what `time.time` is elsewhere."""
    return EPOCH + asyncio.get_running_loop().time()


def virtual_time(test: Callable[P, Coroutine[None, None, R]]) -> Callable[P, R]:
    """Run an async test on a virtual loop: exact, repeatable, and as fast as the code it tests."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(test(*args, **kwargs))

    return run


class Measured(msgspec.Struct, frozen=True):
    """One call of `measure`."""

    name: str
    value: float
    attributes: dict[str, str]


class RecordedSpan(msgspec.Struct):
    """One span, as it was left."""

    name: str
    kind: SpanKind
    context: TraceContext
    parent: TraceContext | None
    links: tuple[TraceContext, ...]
    attributes: dict[str, Attribute]
    started_at: float | None = None
    failure: str | None = None
    ended: bool = False

    def annotate(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes."""
        self.attributes.update(attributes)

    def fail(self, reason: str) -> None:
        """Mark as failed."""
        self.failure = reason


class RecordingTelemetry:
    """Keeps everything in memory and refuses attributes a metric does not permit."""

    measuring = True
    tracing = True

    def __init__(self) -> None:
        self.measured: list[Measured] = []
        self.spans: list[RecordedSpan] = []

    def measure(self, metric: Metric, value: float = 1, /, **attributes: str) -> None:
        """Record."""
        if extra := attributes.keys() - metric.attributes:
            raise ValueError(f"{metric.name} does not permit {', '.join(sorted(extra))}")
        self.measured.append(Measured(metric.name, value, attributes))

    def total(self, metric: Metric, **attributes: str) -> float:
        """The sum of what was measured with at least these attributes."""
        return sum(
            one.value
            for one in self.measured
            if one.name == metric.name and attributes.items() <= one.attributes.items()
        )

    @contextmanager
    def span(
        self,
        name: str,
        kind: SpanKind = "internal",
        *,
        parent: TraceContext | None = None,
        links: Sequence[TraceContext] = (),
        attributes: Mapping[str, Attribute] | None = None,
        started_at: float | None = None,
    ) -> Generator[RecordedSpan]:
        """Record a span around the block."""
        number = len(self.spans) + 1
        context = TraceContext(f"{number:032x}", f"{number:016x}")
        span = RecordedSpan(name, kind, context, parent, tuple(links), dict(attributes or {}), started_at)
        self.spans.append(span)
        try:
            yield span
        except BaseException as error:
            span.fail(type(error).__name__)
            raise
        finally:
            span.ended = True


class FakeSignals:
    """Signals sent by a test instead of the operating system."""

    def __init__(self) -> None:
        self._pending: list[int] = []
        self._sent = Bell()

    def send(self, number: int) -> None:
        """Deliver a signal."""
        self._pending.append(number)
        self._sent.ring()

    @contextmanager
    def __call__(self) -> Generator[AsyncIterator[int]]:
        """Open the stream."""
        yield self._stream()

    async def _stream(self) -> AsyncIterator[int]:
        while True:
            while self._pending:
                yield self._pending.pop(0)
            await self._sent.wait()
