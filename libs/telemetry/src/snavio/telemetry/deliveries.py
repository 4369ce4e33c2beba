"""One alert on its way to one channel: attempts, when the next is due, and when to give up. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from snavio.telemetry.channels import Channel
from snavio.wire.times import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence


class Sent(msgspec.Struct, frozen=True, tag=True):
    """The channel took it."""

    detail: str = ""


class TryAgain(msgspec.Struct, frozen=True, tag=True):
    """The channel did not take it this time."""

    detail: str


class GiveUp(msgspec.Struct, frozen=True, tag=True):
    """The channel will never take it."""

    detail: str


Result: TypeAlias = Sent | TryAgain | GiveUp


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"


class Attempt(msgspec.Struct, frozen=True):
    """What happened once, for the record."""

    at: str
    outcome: str
    detail: str


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One alert on its way to one channel."""

    channel: Channel
    state: DeliveryState = DeliveryState.PENDING
    due_at: float = 0.0
    attempts: tuple[Attempt, ...] = ()


class DeliverySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How persistent a delivery is."""

    attempts: int = 6
    base_seconds: float = 5.0
    cap_seconds: float = 600.0


def attempted(
    delivery: Delivery, result: Result, *, now: float, roll: float, settings: DeliverySettings
) -> Delivery:
    """The delivery after an attempt; `roll`, uniform in [0, 1), spreads the retries of a fleet."""
    made = len(delivery.attempts) + 1
    match result:
        case Sent():
            state, due_at = DeliveryState.SENT, 0.0
        case TryAgain() if made < settings.attempts:
            pause = min(settings.cap_seconds, settings.base_seconds * 2.0 ** (made - 1))
            state, due_at = DeliveryState.PENDING, now + pause / 2 + pause / 2 * roll
        case TryAgain() | GiveUp():
            state, due_at = DeliveryState.FAILED, 0.0
    outcome = {"Sent": "sent", "TryAgain": "try-again", "GiveUp": "give-up"}[type(result).__name__]
    entry = Attempt(format_time(now), outcome, result.detail[:200])
    return msgspec.structs.replace(delivery, state=state, due_at=due_at, attempts=(*delivery.attempts, entry))


def next_due(deliveries: Sequence[Delivery]) -> float | None:
    """When to look at an alert again; None when all its deliveries are over."""
    return min((d.due_at for d in deliveries if d.state is DeliveryState.PENDING), default=None)


def reached_somebody(deliveries: Sequence[Delivery]) -> bool:
    """Whether any channel took it."""
    return any(delivery.state is DeliveryState.SENT for delivery in deliveries)
