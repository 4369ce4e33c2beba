"""A recovered command as a new event: the same id, a new timestamp, the platform's signature. Pure."""

from __future__ import annotations

import msgspec

from snavio.replay.recovered import Recovered
from snavio.wire.canonical import canonicalise
from snavio.wire.commands import COMMAND_SENT
from snavio.wire.signing import SigningKey, framed, framed_replay
from snavio.wire.times import format_time


class ReplayKey(msgspec.Struct, frozen=True):
    """The key replayed commands are signed with."""

    version_id: str
    signing: SigningKey


class Stamp(msgspec.Struct, frozen=True):
    """What marks every command of one replay."""

    replay_id: str
    reason: str


class Emission(msgspec.Struct, frozen=True):
    """One entry of PutEvents."""

    source: str
    detail: str


def resigned(command: Recovered, stamp: Stamp, key: ReplayKey, now: float) -> Emission:
    """The event to emit. Raises `NotCanonicalisableError` for a payload that cannot be signed."""
    timestamp = format_time(now)
    payload = canonicalise(bytes(command.payload))
    frame = framed_replay(
        command.source, framed(key.version_id, command.id, timestamp, command.target, command.name)
    )
    kept = {
        name: value
        for name in ("correlation_id", "schema_version", "traceparent", "tracestate")
        if (value := getattr(command, name)) is not None
    }
    detail = {
        "metadata": {
            "id": command.id,
            "timestamp": timestamp,
            "type": COMMAND_SENT,
            "version_id": key.version_id,
            "hmac": key.signing.sign(frame, payload),
            **kept,
            "replayed": True,
            "replay_id": stamp.replay_id,
            "replay_reason": stamp.reason,
        },
        "command": {"target": command.target, "name": command.name, "payload": msgspec.Raw(payload)},
    }
    return Emission(command.source, msgspec.json.encode(detail).decode())
