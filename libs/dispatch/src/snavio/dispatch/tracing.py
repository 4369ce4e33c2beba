"""Spans around sends, linked to the traces the commands came with."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from snavio.aws.values import Outgoing
from snavio.runtime.messaging import sending
from snavio.runtime.telemetry import Telemetry
from snavio.runtime.tracecontext import ATTRIBUTE, TraceContext, parse_traceparent


def send_span(telemetry: Telemetry, queue: str, messages: list[Outgoing]) -> AbstractContextManager[object]:
    """A span around sending these to a queue, by its URL; nothing when nobody traces."""
    if not telemetry.tracing:
        return nullcontext()
    name = queue.rstrip("/").rpartition("/")[2]
    return sending(telemetry, name, len(messages), links=list(_contexts(messages)))


def _contexts(messages: list[Outgoing]) -> Iterable[TraceContext]:
    found = {message.attributes.get(ATTRIBUTE) for message in messages}
    return (context for text in found if (context := parse_traceparent(text, "")) is not None)
