"""What a producer should do about an event of telemetry, decided from values."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from snavio.wire.events import (
    CommandFailed,
    Event,
    KeyExpiryImminent,
    LegacyKeyUsed,
    WarmPathBan,
)
from snavio.wire.times import parse_time


class FetchKeys(msgspec.Struct, frozen=True, tag=True):
    """A newer key exists: fetch the configuration now, not at the next poll."""


class Pause(msgspec.Struct, frozen=True, tag=True):
    """Hold a command back for a while."""

    target: str
    name: str
    until: float


Reaction: TypeAlias = FetchKeys | Pause


def reaction(event: Event, *, source: str, key_version: str) -> Reaction | None:
    """What this source should do. Events of other sources, and of a key no longer in use, ask for nothing."""
    match event:
        case LegacyKeyUsed() | KeyExpiryImminent():
            mine = event.source == source and event.version_id == key_version
            return FetchKeys() if mine else None
        case CommandFailed() | WarmPathBan() if event.source == source:
            until = parse_time(event.throttle_until) if isinstance(event.throttle_until, str) else None
            return None if until is None else Pause(event.target, event.command.name, until)
        case _:
            return None
