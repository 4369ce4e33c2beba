"""What a look at a route's queue means. Pure.

CloudWatch knows the age of the oldest message, some minutes late and not everywhere. Where it does not, the time since the
queue was last seen empty is the most that any message in it can be old.
"""

from __future__ import annotations

import msgspec

from snavio.control.health import HealthStatus, Verdict

_LATE = 2
"""So many times the expected time to drain is too long."""
_STEADILY = 5
"""So many looks in a row with more messages each time are no chance."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at a queue showed."""

    waiting: int
    in_flight: int
    delayed: int = 0
    oldest_seconds: float | None = None
    """From CloudWatch, where it knows."""

    @property
    def held(self) -> int:
        """Every message in the queue that could be taken, or has been."""
        return self.waiting + self.in_flight


class Unreachable(msgspec.Struct, frozen=True):
    """The queue did not let itself be looked at."""

    reason: str


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of a route's queue from one look to the next."""

    status: HealthStatus = HealthStatus.UNKNOWN
    empty_at: float
    """When the queue was last seen empty, or first seen at all."""
    taken_at: float | None = None
    """When somebody was last seen to take messages."""
    held: int = 0
    rises: int = 0
    """How many looks in a row found more messages than the one before."""


def first_memory(now: float) -> Memory:
    """What is remembered of a queue never seen before: that nothing is known against it."""
    return Memory(empty_at=now)


def judge(
    reading: Reading | Unreachable, before: Memory, now: float, expected_drain_seconds: int
) -> tuple[Verdict, Memory]:
    """The route's health, and what to remember."""
    if isinstance(reading, Unreachable):
        verdict = Verdict(status=HealthStatus.UNREACHABLE, checked_at=now, detail=reading.reason)
        # Nobody can say what happened meanwhile: the measure begins anew when it is reached again.
        return verdict, Memory(status=HealthStatus.UNREACHABLE, empty_at=now)
    known = before if before.status is not HealthStatus.UNREACHABLE else first_memory(now)
    empty_at = now if reading.held == 0 else known.empty_at
    age = _age(reading, empty_at, now)
    taken = reading.in_flight > 0 or reading.held < known.held
    memory = Memory(
        empty_at=empty_at,
        taken_at=now if taken else known.taken_at,
        held=reading.held,
        rises=known.rises + 1 if reading.held > known.held else 0,
    )
    status, detail = _status(reading, memory, age, expected_drain_seconds)
    verdict = Verdict(status=status, checked_at=now, oldest_age_seconds=round(age, 1), detail=detail)
    return verdict, msgspec.structs.replace(memory, status=status)


def _age(reading: Reading, empty_at: float, now: float) -> float:
    if reading.held == 0:
        return 0.0
    return now - empty_at if reading.oldest_seconds is None else reading.oldest_seconds


def _status(reading: Reading, memory: Memory, age: float, expected: int) -> tuple[HealthStatus, str]:
    untouched = memory.taken_at is None or memory.taken_at < memory.empty_at
    waiting = f"{reading.waiting} messages wait"
    if age > _LATE * expected:
        taking = "nobody takes any" if untouched else "they are taken too slowly"
        return HealthStatus.UNHEALTHY, f"{waiting}, the oldest for {age:.0f} s, and {taking}"
    if age > expected and untouched:
        return HealthStatus.UNPOLLED, f"{waiting} and nobody takes any"
    if age > expected and memory.rises >= _STEADILY:
        return HealthStatus.STALLED, f"{waiting}, more at each of the last {memory.rises} looks"
    return HealthStatus.HEALTHY, ""
