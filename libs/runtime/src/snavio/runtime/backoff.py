"""How long to wait before the next attempt: pure functions, the dice thrown by the caller."""

from __future__ import annotations

import math

MAX_VISIBILITY_SECONDS = 43_200
"""SQS hides a message for at most twelve hours."""
_MAX_DOUBLINGS = 32


def backoff_seconds(attempt: int, roll: float, *, base: float = 2.0, cap: float = 300.0) -> float:
    """The wait after the `attempt`-th failure (from 1): doubled each time up to `cap`, of which half is jitter.

    `roll` is uniform in [0, 1). Half the wait is kept whatever the roll, so that a fleet spreads out without any
    member coming back at once.
    """
    full = min(cap, base * 2.0 ** min(max(attempt - 1, 0), _MAX_DOUBLINGS))
    return full / 2 + full / 2 * roll


def visibility_timeout(seconds: float) -> int:
    """The whole seconds SQS accepts, never less than asked for except at its own limit."""
    return max(0, min(MAX_VISIBILITY_SECONDS, math.ceil(seconds)))


def jittered(seconds: float, roll: float, jitter: float) -> float:
    """`seconds` moved by at most the fraction `jitter` either way; `roll` is uniform in [0, 1)."""
    return seconds * (1 + jitter * (2 * roll - 1))
