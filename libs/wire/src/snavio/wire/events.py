"""The catalogue of telemetry: every event Snavio tells a tenant or its operators, with all its fields.

An event is flat JSON with its type under `event`; an optional field that does not apply is left out.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TypeAlias, get_args

import msgspec
from msgspec import UNSET, UnsetType

SCHEMA_VERSION = "1.0"
_NAMESPACE = bytes.fromhex("5c1f0f6d6f0b5d0e9a4e7d3c2b1a0918")
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


class InvalidReason(StrEnum):
    """Why a message was refused before it became a command."""

    MALFORMED_JSON = "malformed-json"
    MISSING_FIELD = "missing-field"
    BAD_FIELD = "bad-field"
    WRONG_TYPE = "wrong-type"
    SOURCE_IN_PAYLOAD = "source-in-payload"
    TIMESTAMP_OUT_OF_WINDOW = "timestamp-out-of-window"
    HMAC_MISSING = "hmac-missing"
    HMAC_UNKNOWN_KEY = "hmac-unknown-key"
    HMAC_EXPIRED_KEY = "hmac-expired-key"
    HMAC_MISMATCH = "hmac-mismatch"
    UNKNOWN_SOURCE = "unknown-source"
    SOURCE_BANNED = "source-banned"
    SCHEMA_VIOLATION = "schema-violation"
    TOO_LARGE = "too-large"


class FailedReason(StrEnum):
    """Why a genuine command was not delivered."""

    RATE_LIMIT_EXCEEDED = "rate-limit-exceeded"
    ACL_DENY = "acl-deny"
    ROUTE_MISSING = "route-missing"
    DELIVERY_FAILURE = "delivery-failure"
    FAIRNESS_VIOLATION = "fairness-violation"


SOURCE_QUOTA = "source-quota"
"""The sub-reason of a rate limit that is the source's own quota."""


class CommandName(msgspec.Struct, frozen=True, gc=False):
    """The name of the command an event is about, nested as tenants expect it."""

    name: str


class _Event(msgspec.Struct, frozen=True, gc=False, kw_only=True, tag_field="event"):
    """What every event says."""

    event_id: str
    tenant: str
    emitted_at: str
    schema_version: str = SCHEMA_VERSION


class _OfCommand(_Event, frozen=True, gc=False, kw_only=True):
    """What every event about one genuine command says."""

    command_id: str
    source: str
    target: str
    command: CommandName
    timestamp: str
    replay: bool | UnsetType = UNSET
    replay_reason: str | UnsetType = UNSET
    replay_id: str | UnsetType = UNSET


class CommandDelivered(_OfCommand, frozen=True, gc=False, kw_only=True, tag="snavio.command.delivered"):
    """A command passed every check and is in its target's queue."""

    path: str
    """`fast` or `slow`."""
    dispatch_latency_ms: float
    possible_duplicate: bool | UnsetType = UNSET


class CommandInvalid(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.command.invalid"):
    """A message failed validation. It says of the command what the message said of it."""

    reason: InvalidReason
    detail: str
    """One sentence for a person, without secrets."""
    command_id: str | UnsetType = UNSET
    source: str | UnsetType = UNSET
    target: str | UnsetType = UNSET
    command: CommandName | UnsetType = UNSET
    timestamp: str | UnsetType = UNSET
    skew_seconds: float | UnsetType = UNSET
    """With `timestamp-out-of-window`: how far off it was."""
    sent_at: str | UnsetType = UNSET
    received_at: str | UnsetType = UNSET


class CommandFailed(_OfCommand, frozen=True, gc=False, kw_only=True, tag="snavio.command.failed"):
    """A genuine command was not delivered."""

    reason: FailedReason
    sub_reason: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    retry_after_ms: int | UnsetType = UNSET
    throttle_until: str | UnsetType = UNSET
    source_share: float | UnsetType = UNSET
    competing_share: float | UnsetType = UNSET
    dispatch_volume: int | UnsetType = UNSET


class CommandDuplicate(_OfCommand, frozen=True, gc=False, kw_only=True, tag="snavio.command.duplicate"):
    """A strict command's id had been seen before."""

    dedupe_mode: str = "strict"


class CommandEscalated(_OfCommand, frozen=True, gc=False, kw_only=True, tag="snavio.command.escalated"):
    """Fast left a command to slow."""

    reason: str


class CommandOverLimit(_OfCommand, frozen=True, gc=False, kw_only=True, tag="snavio.command.over_limit"):
    """A limit in shadow mode would have refused this command; it was delivered."""

    retry_after_ms: int
    throttle_until: str


class ExecutedAfterAclRevoked(
    _Event, frozen=True, gc=False, kw_only=True, tag="snavio.command.executed_after_acl_revoked"
):
    """A command was dispatched on a remembered grant that had been revoked."""

    source: str
    target: str
    command: CommandName
    command_id: str
    stale_duration_seconds: float
    acl_revocation_timestamp: str


class WarmPathBan(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.fairness.warm-path-ban"):
    """A source took more than its share of a contended (target, command) and is off the warm path for a while."""

    source: str
    target: str
    command: CommandName
    source_share: float
    competing_share: float
    retry_after_ms: int
    throttle_until: str


class AbuseDetected(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.fairness.abuse_detected"):
    """The auditor found a source dominating one or more targets and banned it everywhere from the warm path."""

    source: str
    affected_targets: list[str]
    total_violations: int
    ban_applied_until: str


class LegacyKeyUsed(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.secret.legacy_key_used"):
    """A producer signs with the previous key, which is still in its grace."""

    version_id: str
    source: str
    time_of_last_config_poll: str | UnsetType = UNSET


class KeyExpiryImminent(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.secret.key_expiry_imminent"):
    """A producer goes on using a key about to expire and has not polled for the new one."""

    version_id: str
    source: str
    time_of_last_config_poll: str | UnsetType = UNSET


class SkewNearLimit(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.telemetry.skew_near_limit"):
    """A producer's clock is close to being refused."""

    command_id: str
    source: str
    sent_at: str
    received_at: str
    skew_seconds: float


class SkewSample(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.telemetry.skew_sample"):
    """One message in about a hundred, to follow producers' clocks."""

    source: str
    skew_seconds: float
    sent_at: str
    received_at: str


class TelemetryDropped(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.telemetry.dropped"):
    """Telemetry aged out of a tenant's queue unread."""

    dropped_events: int
    reason: str
    queue_age_seconds: int
    last_received_at: str | UnsetType = UNSET


class TelemetryDeliveryFailed(
    _Event, frozen=True, gc=False, kw_only=True, tag="snavio.telemetry.delivery_failed"
):
    """For operators: telemetry could not be published to a tenant's topic."""

    affected_tenant: str
    reason: str
    undelivered_events: int


class TelemetryQueueUnhealthy(
    _Event, frozen=True, gc=False, kw_only=True, tag="snavio.telemetry.queue_unhealthy"
):
    """For operators: a tenant's telemetry queue is not being read, or its dead-letter queue grows."""

    affected_tenant: str
    finding: str
    """`unconsumed`, `stalled` or `dlq-growing`."""
    waiting: int
    dead_letters: int
    queue_age_seconds: int


class SnapshotTooLarge(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.snapshot.too_large"):
    """For operators: a snapshot exceeded its cap and was not published."""

    kind: str
    size_bytes: int
    limit_bytes: int


class SnapshotFailed(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.snapshot.failed"):
    """For operators: no snapshot could be published, and the last one grows old."""

    reason: str
    last_published_at: str | UnsetType = UNSET


class RouteHealthChanged(_Event, frozen=True, gc=False, kw_only=True, tag="snavio.route.health_changed"):
    """The queue of a route fell behind, was not reached, or is well again."""

    target: str
    command: CommandName
    health: str
    """`healthy`, `unhealthy`, `stalled`, `unpolled` or `unreachable`."""
    previous: str
    detail: str
    oldest_age_seconds: float | UnsetType = UNSET


Event: TypeAlias = (
    CommandDelivered
    | CommandInvalid
    | CommandFailed
    | CommandDuplicate
    | CommandEscalated
    | CommandOverLimit
    | ExecutedAfterAclRevoked
    | WarmPathBan
    | AbuseDetected
    | LegacyKeyUsed
    | KeyExpiryImminent
    | SkewNearLimit
    | SkewSample
    | TelemetryDropped
    | TelemetryDeliveryFailed
    | TelemetryQueueUnhealthy
    | SnapshotTooLarge
    | SnapshotFailed
    | RouteHealthChanged
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def event_types() -> dict[str, type[msgspec.Struct]]:
    """Every event of the catalogue by its name, in their order."""
    kinds = {str(kind.__struct_config__.tag): kind for kind in get_args(Event)}
    return dict(sorted(kinds.items()))


def event_type(event: Event) -> str:
    """The name of an event's type, as in its `event` field."""
    return str(event.__struct_config__.tag)


def encode_event(event: Event) -> bytes:
    """An event as the JSON a tenant receives."""
    return _encoder.encode(event)


def decode_event(body: bytes | str) -> Event:
    """The event in a telemetry message. Raises `msgspec.DecodeError` for what is not one."""
    try:
        return _decoder.decode(body)
    except (UnicodeError, RecursionError) as problem:
        # What msgspec leaves to Python: text that is no UTF-8, and what is nested too deeply.
        raise msgspec.DecodeError(str(problem)) from None


def derived_id(*parts: str) -> str:
    """A UUID (version 5) derived from what the event is about, so that a step done again reports the same event."""
    digest = hashlib.sha1(_NAMESPACE + "\0".join(parts).encode(), usedforsecurity=False).hexdigest()
    return (
        f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{_VARIANT[digest[16]]}{digest[17:20]}-{digest[20:32]}"
    )
