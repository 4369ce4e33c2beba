"""Where a command's trace began: the producer's context travels inside its message."""

from __future__ import annotations

import msgspec

from snavio.aws.values import Received
from snavio.runtime.tracecontext import TraceContext, parse_traceparent


class _Metadata(msgspec.Struct, gc=False):
    traceparent: str | None = None
    tracestate: str | None = None


class _Detail(msgspec.Struct, gc=False):
    metadata: _Metadata


class _Event(msgspec.Struct, gc=False):
    detail: _Detail


_decode = msgspec.json.Decoder(_Event).decode


def producer_context(message: Received) -> TraceContext | None:
    """The context of the producer that sent a command; None when there is none to be read."""
    try:
        metadata = _decode(message.body).detail.metadata
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    return parse_traceparent(metadata.traceparent, metadata.tracestate or "")
