"""The arithmetic of a rate limit.

Think of a number line on which units lie one after another. The limit lets the line grow: at time t it reaches
`cap(t) = rate · t`. A unit at position x may be spent while `cap(t) - burst <= x` and `x + 1 <= cap(t)`; `issued` is the
position up to which units have been handed out. Any unit is handed out once, so in T seconds no more than
`burst + rate · T` of them can be spent, whoever holds them and whenever they took them. A unit kept too long simply
drops out of the window: it is lost to the limit, never added to it.

Positions are whole micro-units and times whole microseconds, so that every worker computes the same numbers.
"""

from __future__ import annotations

import msgspec

from snavio.domain.models import RateLimit

UNIT = 1_000_000
_SECOND = 1_000_000


class Window(msgspec.Struct, frozen=True):
    """Where units may lie at one moment: from `floor`, and ending by `cap`."""

    floor: int
    cap: int

    def room_after(self, issued: int | None) -> int:
        """How many whole units can still be handed out when `issued` have been."""
        start = self.floor if issued is None or issued < self.floor else issued
        return max(0, (self.cap - start) // UNIT)


class Bucket(msgspec.Struct, frozen=True):
    """A rate limit as a line of units.

    `tolerance_us` is how far a worker's clock may be off: the window is trimmed by it at both ends, as far as the burst
    leaves room, so that the limit holds in true time.
    """

    limit: int
    interval_us: int
    burst: int
    tolerance_us: int = 0

    @classmethod
    def of(cls, rate: RateLimit, *, tolerance_seconds: float = 0.0) -> Bucket:
        """The line of a rate limit."""
        interval_us = rate.interval_seconds * _SECOND
        slack_us = (rate.capacity - 1) * interval_us // (2 * rate.limit)
        return cls(rate.limit, interval_us, rate.capacity, min(int(tolerance_seconds * _SECOND), slack_us))

    def window(self, now_us: int) -> Window:
        """Which units may be spent now."""
        return Window(
            floor=self._position(now_us + self.tolerance_us) - self.burst * UNIT,
            cap=self._position(now_us - self.tolerance_us),
        )

    def wait_us(self, issued: int, now_us: int) -> int:
        """How long until one more unit can be handed out after `issued`."""
        missing = issued + UNIT - self.window(now_us).cap
        return max(0, -(-missing * self.interval_us // (self.limit * UNIT)))

    def life_us(self, units: int) -> int:
        """How long the first of so many units handed out at the very end of the line can be kept."""
        return max(0, (self.burst - units) * self.interval_us // self.limit - 2 * self.tolerance_us)

    def _position(self, at_us: int) -> int:
        return at_us * self.limit * UNIT // self.interval_us


def microseconds(seconds: float) -> int:
    """A time as the arithmetic wants it."""
    return int(seconds * _SECOND)
