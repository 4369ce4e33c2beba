"""Which windows a run of the audit looks at. Pure."""

from __future__ import annotations

import msgspec

from snavio.spark.table import HOUR_SECONDS
from snavio.spark.watermark import State
from snavio.wire.stats import RETENTION_SECONDS, WINDOW_SECONDS, window_of


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """How long windows are waited for, and how often they are looked at."""

    settle_seconds: int = 15
    """How long after a window closed its items are waited for before it is first read."""
    windows: int = 10
    """How many windows before the watermark are looked at again."""
    most_windows: int = 360
    """How many windows one run takes at most; after an outage, several runs catch up."""


class Plan(msgspec.Struct, frozen=True):
    """The windows a run looks at, [start, end), and those it does not."""

    start: int
    end: int
    behind: int
    """How many more have closed since, and are left to the next run."""
    expired: int
    """How many were never looked at and never will be, since the store no longer holds them for certain."""


def plan(now: float, state: State | None, lateness: Lateness, *, since: float | None = None) -> Plan:
    """The windows to look at. `since` is where a first run begins: without it, as far back as any run looks again."""
    closed = window_of(now - lateness.settle_seconds)
    # What the store may already have let go of must not be mistaken for an empty window.
    oldest = window_of(now - RETENTION_SECONDS) + HOUR_SECONDS
    again = lateness.windows * WINDOW_SECONDS
    if state is not None:
        watermark = state.audited_until
    elif since is not None:
        # Nothing before it was looked at, so there is nothing to look at again.
        watermark, again = min(window_of(since), closed), 0
    else:
        watermark = closed
    start = max(watermark - again, oldest)
    end = min(closed, max(watermark, start) + lateness.most_windows * WINDOW_SECONDS)
    return Plan(
        start=start,
        end=max(start, end),
        behind=max(0, closed - end) // WINDOW_SECONDS,
        expired=max(0, oldest - watermark) // WINDOW_SECONDS,
    )
