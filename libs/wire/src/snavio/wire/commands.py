"""The command at each stage of its way: as a producer sent it, as workers pass it on, as a target receives it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

import msgspec

COMMAND_SENT = "snavio.command-sent"
"""The detail type of a command on the bus, and the type in its metadata."""


class Metadata(msgspec.Struct, frozen=True, gc=False):
    """What a producer says about a command."""

    id: str
    timestamp: str
    type: str
    version_id: str
    hmac: str
    correlation_id: str | None = None
    schema_version: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    replayed: bool = False
    replay_id: str | None = None
    replay_reason: str | None = None


class CommandBody(msgspec.Struct, frozen=True, gc=False):
    """What a producer asks for. `source` must not be there: the platform fills it in."""

    target: str
    name: str
    payload: msgspec.Raw
    source: Any = msgspec.UNSET


class CommandSent(msgspec.Struct, frozen=True, gc=False):
    """The `Detail` of a command event."""

    metadata: Metadata
    command: CommandBody


class BusEvent(msgspec.Struct, frozen=True, gc=False):
    """The envelope in which EventBridge delivers a command to the ingress queue. Its `source` is authenticated."""

    source: str
    detail: CommandSent


class Replay(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """That a command was sent again by the platform, and why."""

    id: str
    reason: str | None = None


class Admitted(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A command that shield found genuine, on its way to fast and slow."""

    source: str
    id: str
    timestamp: str
    target: str
    name: str
    received_at: float
    """When it arrived at the platform, seconds since the epoch."""
    payload: msgspec.Raw
    correlation_id: str | None = None
    schema_version: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    replay: Replay | None = None


class EscalationReason(StrEnum):
    """Why fast left a command to slow."""

    CACHE_MISS = "cache_miss"
    CACHE_EXPIRED = "cache_expired"
    DEDUPE_REQUIRED = "dedupe_required"
    TOKEN_REQUIRED = "token_required"
    WARM_PATH_BAN = "warm_path_ban"
    COLD_ONLY = "cold_only"
    CLAIM_CHECK = "claim_check"
    DELIVERY_RETRY = "delivery_retry"


class Dominance(msgspec.Struct, frozen=True):
    """What a fairness window showed of one source when it was banned from the warm path."""

    ban_id: str
    opened_at: float
    until: float
    source_share: float
    competing_share: float
    dispatch_volume: int


class Escalated(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A command on its way from fast to slow, with what fast established."""

    command: Admitted
    reason: EscalationReason
    escalated_at: float
    dominance: Dominance | None = None
    """The warm-path ban it met, where that is the reason."""
    registry_seq: int = 0
    """How far fast's registry had come: slow need not refresh to know at least as much."""


class PayloadRef(msgspec.Struct, frozen=True):
    """Where a payload too large for the target's queue was left."""

    bucket: str
    key: str
    bytes: int
    sha256: str


class DeliveredMetadata(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a target learns about a command."""

    id: str
    timestamp: str
    type: str
    path: str
    dispatched_at: str
    possible_duplicate: bool
    correlation_id: str | None = None
    schema_version: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    replayed: bool = False
    replay_id: str | None = None
    replay_reason: str | None = None


class DeliveredBody(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a target is asked to do, and by whom."""

    source: str
    target: str
    name: str
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    payload_ref: PayloadRef | None = None
    """Instead of the payload, when that was too large for the queue."""


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """The body of the message in a target's queue."""

    metadata: DeliveredMetadata
    command: DeliveredBody


_Message = TypeVar("_Message", Admitted, Escalated)
_encoder = msgspec.json.Encoder()
_admitted = msgspec.json.Decoder(Admitted)
_escalated = msgspec.json.Decoder(Escalated)


def encode(message: Admitted | Escalated | Delivered) -> str:
    """JSON text that SQS accepts: the two characters JSON allows and SQS refuses are escaped."""
    text = _encoder.encode(message).decode()
    if "\ufffe" in text or "\uffff" in text:
        # They can only stand inside strings, where the escape means the same.
        text = text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
    return text


def decode_admitted(body: str) -> Admitted:
    """What shield sent. Raises `msgspec.DecodeError` for anything else."""
    return _read(_admitted, body)


def decode_escalated(body: str) -> Escalated:
    """What fast sent. Raises `msgspec.DecodeError` for anything else."""
    return _read(_escalated, body)


def _read(decoder: msgspec.json.Decoder[_Message], body: str) -> _Message:
    try:
        return decoder.decode(body)
    except (UnicodeError, RecursionError) as problem:
        # What msgspec leaves to Python: a lone surrogate, and what is nested too deeply.
        raise msgspec.DecodeError(str(problem)) from None


def delivered(
    command: Admitted,
    *,
    path: str,
    dispatched_at: str,
    possible_duplicate: bool = False,
    payload_ref: PayloadRef | None = None,
) -> Delivered:
    """The message a target receives for a command."""
    replay = command.replay
    # By position: names would cost half as much again, for every command.
    return Delivered(
        DeliveredMetadata(
            command.id,
            command.timestamp,
            COMMAND_SENT,
            path,
            dispatched_at,
            possible_duplicate,
            command.correlation_id,
            command.schema_version,
            command.traceparent,
            command.tracestate,
            replay is not None,
            replay.id if replay else None,
            replay.reason if replay else None,
        ),
        DeliveredBody(
            command.source,
            command.target,
            command.name,
            msgspec.UNSET if payload_ref else command.payload,
            payload_ref,
        ),
    )
