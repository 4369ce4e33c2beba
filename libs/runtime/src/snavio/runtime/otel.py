"""OpenTelemetry behind the telemetry port, exported by OTLP over HTTP. Imported only when an endpoint is set."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

from snavio.runtime.daemon_thread import in_daemon_thread
from snavio.runtime.metrics import ALL
from snavio.runtime.tracecontext import TraceContext

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from opentelemetry.metrics import _Gauge as Gauge
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import SpanProcessor

    from snavio.runtime.metrics import Metric
    from snavio.runtime.telemetry import Attribute, SpanKind

_KINDS: dict[SpanKind, trace.SpanKind] = {
    "internal": trace.SpanKind.INTERNAL,
    "client": trace.SpanKind.CLIENT,
    "producer": trace.SpanKind.PRODUCER,
    "consumer": trace.SpanKind.CONSUMER,
}
_SCOPE = "snavio"
_EXPORT_SECONDS = 4

Instrument: TypeAlias = "Counter | Histogram | Gauge"


class OtelSpan:
    """A span of the SDK."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def annotate(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes."""
        self._span.set_attributes(attributes)

    def fail(self, reason: str) -> None:
        """Mark as failed."""
        self._span.set_status(Status(StatusCode.ERROR, reason))
        self._span.set_attribute("error.type", reason)

    @property
    def context(self) -> TraceContext | None:
        """What to carry in messages."""
        own = self._span.get_span_context()
        return TraceContext(
            trace.format_trace_id(own.trace_id),
            trace.format_span_id(own.span_id),
            own.trace_flags.sampled,
            own.trace_state.to_header(),
        )


class OtelTelemetry:
    """Measures and traces with the OpenTelemetry SDK."""

    measuring = True
    tracing = True

    def __init__(
        self, *, resource: Mapping[str, str], reader: MetricReader, processor: SpanProcessor
    ) -> None:
        described = Resource.create(dict(resource))
        # Closing is the worker's, in its flush; an exit hook could hang on a collector that is gone.
        self._tracers = TracerProvider(resource=described, shutdown_on_exit=False)
        self._tracers.add_span_processor(processor)
        self._meters = MeterProvider(
            metric_readers=[reader],
            resource=described,
            shutdown_on_exit=False,
            views=[_view(metric) for metric in ALL.values()],
        )
        self._tracer = self._tracers.get_tracer(_SCOPE)
        self._meter = self._meters.get_meter(_SCOPE)
        self._instruments: dict[str, Instrument] = {}

    def measure(self, metric: Metric, value: float = 1, /, **attributes: str) -> None:
        """Pass a measurement on."""
        instrument = self._instruments.get(metric.name)
        if instrument is None:
            instrument = self._instruments[metric.name] = self._instrument(metric)
        match instrument:
            case Counter():
                instrument.add(value, attributes)
            case Histogram():
                instrument.record(value, attributes)
            case _:
                instrument.set(value, attributes)

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
    ) -> Generator[OtelSpan]:
        """A span around a block."""
        with self._tracer.start_as_current_span(
            name,
            context=trace.set_span_in_context(NonRecordingSpan(_remote(parent))) if parent else None,
            kind=_KINDS[kind],
            links=[Link(_remote(link)) for link in links],
            attributes=attributes,
            start_time=None if started_at is None else int(started_at * 1e9),
        ) as span:
            yield OtelSpan(span)

    async def close(self) -> None:
        """Export what is left and stop. Nothing may be measured afterwards."""
        await in_daemon_thread(self._shut_down, name="close-telemetry")

    def _shut_down(self) -> None:
        self._meters.shutdown()
        self._tracers.shutdown()

    def _instrument(self, metric: Metric) -> Instrument:
        match metric.kind:
            case "counter":
                return self._meter.create_counter(metric.name, metric.unit, metric.description)
            case "histogram":
                return self._meter.create_histogram(metric.name, metric.unit, metric.description)
            case "gauge":
                return self._meter.create_gauge(metric.name, metric.unit, metric.description)


def open_otlp(endpoint: str, *, resource: Mapping[str, str], interval_seconds: float) -> OtelTelemetry:
    """Telemetry to a collector at `endpoint`; the standard `OTEL_*` variables govern sampling and headers."""
    base = endpoint.rstrip("/")
    metrics = OTLPMetricExporter(endpoint=f"{base}/v1/metrics", timeout=_EXPORT_SECONDS)
    spans = OTLPSpanExporter(endpoint=f"{base}/v1/traces", timeout=_EXPORT_SECONDS)
    return OtelTelemetry(
        resource=resource,
        reader=PeriodicExportingMetricReader(metrics, export_interval_millis=interval_seconds * 1000),
        processor=BatchSpanProcessor(spans),
    )


def _remote(context: TraceContext) -> SpanContext:
    return SpanContext(
        int(context.trace_id, 16),
        int(context.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT),
        trace_state=TraceState.from_header([context.state]) if context.state else None,
    )


def _view(metric: Metric) -> View:
    # The SDK puts instrument names into lower case; the view gives the documents' spelling back.
    aggregation = ExponentialBucketHistogramAggregation() if metric.kind == "histogram" else None
    return View(instrument_name=metric.name.lower(), name=metric.name, aggregation=aggregation)
