"""Points in time as they cross the wire: RFC 3339 with an offset."""

from __future__ import annotations

import re
from datetime import UTC, datetime

TIME_PATTERN = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
"""The form of a time, though not yet that there is such a day and hour."""
_looks_like = re.compile(TIME_PATTERN).fullmatch


def parse_time(text: str) -> float | None:
    """Seconds since the epoch, or None when the text is not RFC 3339 with an offset."""
    return None if _looks_like(text) is None else seconds_of(text)


def seconds_of(text: str) -> float | None:
    """The same for a text already known to have the form, or None when there is no such time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except OverflowError:
        return None
    except ValueError:
        # RFC 3339 allows a small z, which Python does not know; nearly nobody writes it.
        capital = text.upper()
        return None if capital == text else seconds_of(capital)


def format_time(seconds: float) -> str:
    """Milliseconds precision, in UTC, with the suffix Z."""
    return f"{datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
