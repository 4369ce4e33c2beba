"""Times as documents write them."""

from __future__ import annotations

from snavio.wire.times import format_time


def time_text(seconds: float | None) -> str | None:
    """RFC 3339 in UTC; None stays None."""
    return None if seconds is None else format_time(seconds)
