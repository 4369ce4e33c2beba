"""Whether a tenant's telemetry queue is read, and what it lost. Pure.

SQS does not say how many messages it let expire. What is missing from the books does: what waited before, plus what was
sent, less what was deleted, less what waits now. It is believed only of a queue old enough for messages to expire.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

QUEUE_UNCONSUMED = "queue_unconsumed"
"""Why telemetry is dropped."""


class QueueReading(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at a tenant's queues showed. None is what could not be learned."""

    tenant: str
    waiting: int
    in_flight: int
    delayed: int
    dead_letters: int
    retention_seconds: int
    oldest_seconds: float | None = None
    """Age of the oldest message, from CloudWatch."""
    sent: int | None = None
    """Messages sent since the last reading."""
    deleted: int | None = None
    """Messages deleted since the last reading."""

    @property
    def held(self) -> int:
        """Every message in the queue."""
        return self.waiting + self.in_flight + self.delayed


class QueueMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of a tenant's queues from one reading to the next."""

    read_at: float
    held: int = 0
    dead_letters: int = 0
    empty_at: float
    """When the queue was last seen empty, or first seen at all."""
    consumed_at: float | None = None
    """When the tenant was last seen to take messages."""
    said: dict[str, float] = {}
    """When each finding was last reported."""


class Finding(StrEnum):
    """What operators are told about."""

    UNCONSUMED = "unconsumed"
    """Messages wait and nobody takes any."""
    STALLED = "stalled"
    """Messages are taken, and yet the oldest grows old."""
    DLQ_GROWING = "dlq-growing"


class HealthSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When a queue is in trouble."""

    old_seconds: float = 24 * 3600.0
    """A queue whose oldest message is older is not being read, or not fast enough."""
    again_seconds: float = 24 * 3600.0
    """The same finding is not reported again sooner."""
    consuming_seconds: float = 3600.0
    """Who took a message this recently is reading."""


class Verdict(msgspec.Struct, frozen=True):
    """What to report of one tenant, and what to remember."""

    memory: QueueMemory
    age_seconds: float
    findings: tuple[Finding, ...] = ()
    dropped: int = 0


def judge(reading: QueueReading, before: QueueMemory | None, now: float, settings: HealthSettings) -> Verdict:
    """What a reading means, given what is remembered."""
    known = before or QueueMemory(
        read_at=now, empty_at=now, held=reading.held, dead_letters=reading.dead_letters
    )
    empty_at = now if reading.held == 0 else known.empty_at
    age = now - empty_at if reading.oldest_seconds is None else reading.oldest_seconds
    dropped = _dropped(reading, known, age, now)
    consumed = (reading.deleted or 0) > 0 or (
        reading.deleted is None and dropped == 0 and (reading.in_flight > 0 or reading.held < known.held)
    )
    consumed_at = now if consumed else known.consumed_at
    troubles = _troubles(reading, known, age, now, consumed_at, settings)
    findings = tuple(
        finding
        for finding in troubles
        if known.said.get(finding, float("-inf")) <= now - settings.again_seconds
    )
    said = {finding: (now if finding in findings else known.said[finding]) for finding in troubles}
    memory = QueueMemory(
        read_at=now,
        held=reading.held,
        dead_letters=reading.dead_letters,
        empty_at=empty_at,
        consumed_at=consumed_at,
        said={str(finding): at for finding, at in said.items()},
    )
    return Verdict(memory, age, findings, dropped)


def _dropped(reading: QueueReading, known: QueueMemory, age: float, now: float) -> int:
    """How many messages expired since the last reading."""
    # What reached its retention since the last reading was at least this old then.
    if age < reading.retention_seconds - (now - known.read_at) - 60:
        return 0
    gone_to_dlq = max(0, reading.dead_letters - known.dead_letters)
    expected = known.held + (reading.sent or 0) - (reading.deleted or 0) - gone_to_dlq
    return max(0, expected - reading.held)


def _troubles(
    reading: QueueReading,
    known: QueueMemory,
    age: float,
    now: float,
    consumed_at: float | None,
    settings: HealthSettings,
) -> list[Finding]:
    found: list[Finding] = []
    if reading.held and age >= settings.old_seconds:
        reading_now = consumed_at is not None and consumed_at > now - settings.consuming_seconds
        found.append(Finding.STALLED if reading_now else Finding.UNCONSUMED)
    if reading.dead_letters > known.dead_letters:
        found.append(Finding.DLQ_GROWING)
    return found
