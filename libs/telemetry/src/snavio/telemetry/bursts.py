"""Bursts of alerts: one notification for many events of a kind. A pure state machine.

A first event opens a burst; after a moment, in which its fellows gather, it is told with a count. While the burst goes
on, what comes is told once a window. A window in which nothing came closes it.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from snavio.wire.names import is_name

ANY_TARGET = "*"
"""Stands for events about no one target, and for targets too many or too strange to be told apart."""


class BurstKey(msgspec.Struct, frozen=True, order=True):
    """What is told together."""

    tenant: str
    event_type: str
    target: str = ANY_TARGET


class Sighting(msgspec.Struct, frozen=True):
    """Some events of one key, seen together."""

    count: int
    first_at: float
    last_at: float
    sample: str
    """One of the events, as JSON: something concrete to look at."""


class BurstSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How patient a burst is."""

    gather_seconds: float = 5.0
    window_seconds: float = 300.0


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """The events of one key since the burst began."""

    key: BurstKey
    count: int
    told: int = 0
    """How many of them have been told."""
    notices: int = 0
    """How often it has been told."""
    first_at: float
    last_at: float
    due_at: float
    sample: str


class Wait(msgspec.Struct, frozen=True, tag=True):
    """Nothing to do yet."""


class Tell(msgspec.Struct, frozen=True, tag=True):
    """Tell `count` events; `then` is the burst once that is done."""

    count: int
    then: Burst


class Close(msgspec.Struct, frozen=True, tag=True):
    """Nothing came for a whole window: forget it."""


Step: TypeAlias = Wait | Tell | Close


def burst_key(tenant: str, event_type: str, target: object) -> BurstKey:
    """The key of an event. A target that is not a target's name could be anything, and as many as anyone likes."""
    known = isinstance(target, str) and is_name(target)
    return BurstKey(tenant, event_type, target if known and isinstance(target, str) else ANY_TARGET)


def joined(one: Sighting, other: Sighting) -> Sighting:
    """Two sightings of the same key as one."""
    return Sighting(
        one.count + other.count,
        min(one.first_at, other.first_at),
        max(one.last_at, other.last_at),
        one.sample,
    )


def opened(key: BurstKey, seen: Sighting, now: float, settings: BurstSettings) -> Burst:
    """A burst that begins."""
    return Burst(
        key=key,
        count=seen.count,
        first_at=seen.first_at,
        last_at=seen.last_at,
        due_at=now + settings.gather_seconds,
        sample=seen.sample,
    )


def step(burst: Burst, now: float, settings: BurstSettings) -> Step:
    """What to do with a burst now."""
    if now < burst.due_at:
        return Wait()
    untold = burst.count - burst.told
    if untold == 0:
        return Close()
    then = msgspec.structs.replace(
        burst, told=burst.count, notices=burst.notices + 1, due_at=now + settings.window_seconds
    )
    return Tell(untold, then)
