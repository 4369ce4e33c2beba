"""W3C trace context as it travels inside messages: parsed and written without any tracing library."""

from __future__ import annotations

import re

import msgspec

ATTRIBUTE = "traceparent"
"""Name of the message attribute and of the metadata field that carries it."""

# Version 00 has exactly four fields; a later version may append more, which a reader of 00 ignores.
_TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?P<rest>-.*)?"
)
_NO_TRACE = "0" * 32
_NO_SPAN = "0" * 16


class TraceContext(msgspec.Struct, frozen=True):
    """Where a message was created: its trace and the span in it, in lower-case hex."""

    trace_id: str
    span_id: str
    sampled: bool = True
    state: str = ""
    """The `tracestate` that came with it, untouched."""

    @property
    def traceparent(self) -> str:
        """As the header writes it, version 00."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"


def parse_traceparent(text: str | None, tracestate: str = "") -> TraceContext | None:
    """The context, or None for anything the specification tells a reader to ignore."""
    if not text or not (found := _TRACEPARENT.fullmatch(text)):
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest) or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & 1), tracestate)
