"""Spans by the OpenTelemetry messaging conventions: receive, process, send, linked to where messages were created.

Call these only while `telemetry.tracing`; they read every message's context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from snavio.aws.values import Received
from snavio.runtime.tracecontext import ATTRIBUTE, TraceContext, parse_traceparent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from snavio.runtime.telemetry import Attribute, Span, Telemetry

ContextOf: TypeAlias = Callable[[Received], TraceContext | None]
"""Finds the context a message was created in."""

SQS = "aws_sqs"
SNS = "aws.sns"


def context_in_attributes(message: Received) -> TraceContext | None:
    """The context in the message's `traceparent` attribute, where the platform's own sends put it."""
    return parse_traceparent(message.attributes.get(ATTRIBUTE), message.attributes.get("tracestate", ""))


def links_of(messages: Sequence[Received], context_of: ContextOf) -> list[TraceContext]:
    """The creation contexts of the messages that have one, each once."""
    return list(dict.fromkeys(context for message in messages if (context := context_of(message))))


def receiving(
    telemetry: Telemetry, queue: str, links: Sequence[TraceContext], count: int, *, started_at: float
) -> AbstractContextManager[Span]:
    """A span for a poll that brought messages, dated back to its start."""
    return telemetry.span(
        f"receive {queue}",
        "client",
        links=links,
        attributes=_attributes(SQS, queue, "receive", count),
        started_at=started_at,
    )


def processing(
    telemetry: Telemetry, queue: str, links: Sequence[TraceContext], count: int
) -> AbstractContextManager[Span]:
    """A span around handling a batch."""
    return telemetry.span(
        f"process {queue}", "consumer", links=links, attributes=_attributes(SQS, queue, "process", count)
    )


def sending(
    telemetry: Telemetry,
    destination: str,
    count: int,
    *,
    system: str = SQS,
    links: Sequence[TraceContext] = (),
) -> AbstractContextManager[Span]:
    """A span around sending a batch; its `context` is what the messages should carry when they have none of their own."""
    return telemetry.span(
        f"send {destination}",
        "producer",
        links=links,
        attributes=_attributes(system, destination, "send", count),
    )


def _attributes(system: str, destination: str, operation: str, count: int) -> dict[str, Attribute]:
    return {
        "messaging.system": system,
        "messaging.destination.name": destination,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.batch.message_count": count,
    }
