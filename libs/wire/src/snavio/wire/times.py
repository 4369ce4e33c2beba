"""Points in time as they cross the wire: RFC 3339 with an offset."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_looks_like = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
).fullmatch


def parse_time(text: str) -> float | None:
    """Seconds since the epoch, or None when the text is not RFC 3339 with an offset."""
    if _looks_like(text) is None:
        return None
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except (ValueError, OverflowError):
        return None


def format_time(seconds: float) -> str:
    """Milliseconds precision, in UTC, with the suffix Z."""
    return f"{datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
