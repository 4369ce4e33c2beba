"""How many requests a caller may make: a token bucket each, in memory of this process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable


class RateLimiter:
    """Remembers the callers seen last; one that is forgotten begins with a full bucket."""

    def __init__(
        self, *, per_minute: int, burst: int, clock: Callable[[], float], most_callers: int = 10_000
    ) -> None:
        self._per_second = per_minute / 60
        self._burst = burst
        self._clock = clock
        self._most = most_callers
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Spend one request: 0 when granted, else the seconds until one would be."""
        now = self._clock()
        left, since = self._buckets.pop(caller, (float(self._burst), now))
        left = min(float(self._burst), left + max(0.0, now - since) * self._per_second)
        granted = left >= 1
        self._buckets[caller] = (left - 1 if granted else left, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if granted else (1 - left) / self._per_second
