"""Puts together the telemetry a worker was configured for, and sees that the last of it is sent."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from snavio.runtime.cloudwatch import CloudWatchMeter, CloudWatchPublisher
from snavio.runtime.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snavio.runtime.common_config import CommonConfig
    from snavio.runtime.metrics import Metric
    from snavio.runtime.otel import OtelTelemetry
    from snavio.runtime.telemetry import Attribute, Span, SpanKind, Telemetry
    from snavio.runtime.tracecontext import TraceContext
    from snavio.runtime.worker import Worker


class Both:
    """Measures with two, traces with the first."""

    measuring = True
    tracing = True

    def __init__(self, first: Telemetry, second: Telemetry) -> None:
        self._first = first
        self._second = second

    def measure(self, metric: Metric, value: float = 1, /, **attributes: str) -> None:
        """Measure with both."""
        self._first.measure(metric, value, **attributes)
        self._second.measure(metric, value, **attributes)

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
        """Trace with the first."""
        return self._first.span(
            name, kind, parent=parent, links=links, attributes=attributes, started_at=started_at
        )


class Observing:
    """What a worker's settings ask for: an OTLP endpoint, CloudWatch, both, or silence."""

    def __init__(self, service: str, worker_id: str, config: CommonConfig) -> None:
        self._config = config
        self._otel: OtelTelemetry | None = None
        self._meter = CloudWatchMeter() if config.cloudwatch_metrics else None
        if config.otlp_endpoint:
            # The SDK is a slow import that a worker without a collector can do without.
            from snavio.runtime.otel import open_otlp  # noqa: PLC0415

            self._otel = open_otlp(
                config.otlp_endpoint,
                resource={
                    "service.namespace": "snavio",
                    "service.name": f"snavio-{service}",
                    "service.instance.id": worker_id,
                    "deployment.environment.name": config.stage,
                    "cloud.region": config.region,
                },
                interval_seconds=config.metrics_interval_seconds,
            )

    @property
    def telemetry(self) -> Telemetry:
        """What code measures and traces with."""
        if self._otel and self._meter:
            return Both(self._otel, self._meter)
        return self._otel or self._meter or SILENT

    async def wire(self, worker: Worker) -> None:
        """Publish while the worker lives and once more at its end, after everything else has been flushed."""
        if self._meter:
            # Together with the adapters, which a worker that publishes nothing need not load.
            from snavio.aws.boto.session import open_aws  # noqa: PLC0415
            from snavio.runtime.cloudwatch_sink import CloudWatchSink  # noqa: PLC0415

            aws = await worker.enter(open_aws(region=self._config.region, endpoint_url=self._config.endpoint))
            sink = CloudWatchSink(await aws.client("cloudwatch"))
            publisher = CloudWatchPublisher(self._meter, sink, log=worker.log, now=worker.now)
            worker.every(self._config.metrics_interval_seconds, publisher.publish, name="publish-metrics")
            worker.on_flush("metrics", publisher.publish)
        if self._otel:
            worker.on_flush("spans", self._otel.close)
