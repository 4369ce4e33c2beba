"""OpenTelemetry where it is installed (`snavio-sdk[tracing]`), nothing where it is not."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

try:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    _w3c = TraceContextTextMapPropagator()
except ImportError:
    trace = _w3c = None

_NAME = "snavio.sdk"
_NOTHING = nullcontext()


def outgoing_context() -> tuple[str | None, str | None]:
    """The `traceparent` and `tracestate` of the span under way, if any."""
    if trace is None or _w3c is None or not trace.get_current_span().get_span_context().is_valid:
        return None, None
    carrier: dict[str, str] = {}
    _w3c.inject(carrier)
    return carrier.get("traceparent"), carrier.get("tracestate")


def sending(target: str, name: str) -> AbstractContextManager[Any]:
    """A span around the sending of one command: what the command carries on."""
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        # Nobody set up tracing: no reason to pay for spans that go nowhere.
        return _NOTHING
    return trace.get_tracer(_NAME).start_as_current_span(
        f"send {target}",
        kind=trace.SpanKind.PRODUCER,
        attributes={
            "messaging.operation.type": "send",
            "messaging.operation.name": "send",
            "messaging.destination.name": target,
            "snavio.command.name": name,
        },
    )


@contextmanager
def processing(
    *, target: str, name: str, source: str, command_id: str, traceparent: str | None, tracestate: str | None
) -> Generator[None]:
    """A span around the handling of one command, linked to the span that sent it."""
    if trace is None:
        yield
        return
    with trace.get_tracer(_NAME).start_as_current_span(
        f"process {target}",
        kind=trace.SpanKind.CONSUMER,
        links=_links(traceparent, tracestate),
        attributes={
            "messaging.system": "aws_sqs",
            "messaging.operation.type": "process",
            "messaging.operation.name": "process",
            "messaging.destination.name": target,
            "messaging.message.id": command_id,
            "snavio.command.name": name,
            "snavio.source": source,
        },
    ):
        yield


def _links(traceparent: str | None, tracestate: str | None) -> list[Any]:
    if trace is None or _w3c is None or traceparent is None:
        return []
    carrier = {"traceparent": traceparent} | ({"tracestate": tracestate} if tracestate else {})
    context = trace.get_current_span(_w3c.extract(carrier)).get_span_context()
    return [trace.Link(context)] if context.is_valid else []
