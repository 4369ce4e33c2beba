"""Screening: whether what arrived on ingress is a genuine command, and if not, exactly why.

The order is fixed: structure, time window, signature, bans, schema. Anything may arrive; every input gets an answer.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec

from snavio.domain.diagnosis import Facts, clipped, diagnose
from snavio.domain.models import BanMode
from snavio.wire.canonical import NotCanonicalisableError
from snavio.wire.commands import COMMAND_SENT, Admitted, BusEvent, CommandSent, Replay
from snavio.wire.events import InvalidReason
from snavio.wire.names import is_command, is_name, is_source
from snavio.wire.signing import UUID_PATTERN, SigningKey, framed, framed_replay, is_framed
from snavio.wire.times import parse_time, seconds_of

REPLAYER = "_platform/replayer"
"""Whose keys sign replayed commands. No producer can be registered under this name."""

_is_uuid = re.compile(UUID_PATTERN).fullmatch
_is_traceparent = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}").fullmatch
_decode = msgspec.json.Decoder(BusEvent).decode


class HeldKey(msgspec.Struct, frozen=True):
    """A key ready for use, with what matters about its age."""

    signing: SigningKey
    not_after: float | None
    legacy: bool
    """A newer version exists."""
    last_poll_at: float | None = None


Validator: TypeAlias = Callable[[msgspec.Raw], "str | None"]
"""The fault of a payload in one sentence, or None."""


class Screen(Protocol):
    """What screening may ask of a worker's registry. Answers come from memory."""

    def knows_source(self, source: str) -> bool:
        """Whether any key is registered for the source."""
        ...

    def key(self, source: str, version_id: str) -> HeldKey | None:
        """One version of a source's key, expired or not."""
        ...

    def ban_mode(self, source: str, now: float) -> BanMode | None:
        """The ban in force against everything the source sends."""
        ...

    def validator(self, target: str, command: str, now: float) -> Validator | None:
        """The check of the payload, where the route has a schema."""
        ...


class ScreeningPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of screening."""

    window_seconds: float = 60.0
    near_limit: float = 0.8
    """The part of the window from which a skew is reported."""
    sample_rate: float = 0.01
    expiry_warning_seconds: float = 24 * 3600.0
    """How long before a key ends its continued use is alarming."""
    poll_seconds: float = 12 * 3600.0
    """How often producers are expected to fetch their configuration."""
    max_bytes: int = 1_048_576 - 8192
    """What can be carried on through the platform's own queues with room for what is added."""


class SkewReport(msgspec.Struct, frozen=True, tag=True):
    """The producer's clock against the platform's: `near_limit`, or merely sampled."""

    sent_at: float
    skew_seconds: float
    near_limit: bool


class KeyReport(msgspec.Struct, frozen=True, tag=True):
    """The previous key was used; `expiring` when it is about to end and the producer has not polled."""

    version_id: str
    expiring: bool
    last_poll_at: float | None


class Passed(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Genuine."""

    command: Admitted
    skew: SkewReport | None = None
    key: KeyReport | None = None


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Not a command, and its sender can be told."""

    reason: InvalidReason
    detail: str
    facts: Facts
    provisional: bool = False
    """A newer registry might say otherwise: a key or a source not known yet."""
    skew_seconds: float | None = None


class Unreadable(msgspec.Struct, frozen=True, tag=True):
    """Not even a bus event: nobody can be told but operators."""

    reason: InvalidReason
    detail: str


Screening: TypeAlias = Passed | Refused | Unreadable


def screen(body: str, received_at: float, registry: Screen, policy: ScreeningPolicy) -> Screening:
    """Screen one message that arrived at `received_at` by the queue's clock.

    Arrival counts, not the moment of screening: a backlog of the platform's own must not make good commands late.
    """
    try:
        event = _decode(body)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        found = diagnose(body)
        if found.facts is None:
            return Unreadable(found.reason, found.detail)
        return Refused(found.reason, found.detail, found.facts)
    return _screen_event(event.source, event.detail, len(body), received_at, registry, policy)


def _screen_event(
    source: str, sent: CommandSent, size: int, received_at: float, registry: Screen, policy: ScreeningPolicy
) -> Passed | Refused:
    metadata, body = sent.metadata, sent.command
    frame = framed(metadata.version_id, metadata.id, metadata.timestamp, body.target, body.name)
    well_framed = is_framed(frame) is not None
    if (
        not well_framed
        or metadata.type != COMMAND_SENT
        or not metadata.hmac
        or body.source is not msgspec.UNSET
    ):
        fault = _structural_fault(sent)
        if fault is not None:
            return Refused(*fault, _facts(source, sent))
    if size > policy.max_bytes:
        detail = f"the event has {size} characters, the most that can be carried is {policy.max_bytes}"
        return Refused(InvalidReason.TOO_LARGE, detail, _facts(source, sent))
    sent_at = seconds_of(metadata.timestamp) if well_framed else parse_time(metadata.timestamp)
    if sent_at is None:
        detail = "metadata.timestamp is not RFC 3339 with an offset"
        return Refused(InvalidReason.BAD_FIELD, detail, _facts(source, sent))
    skew = received_at - sent_at
    if abs(skew) > policy.window_seconds:
        side = "behind" if skew > 0 else "ahead of"
        detail = f"metadata.timestamp is {abs(skew):.1f} s {side} its arrival; the window is {policy.window_seconds:g} s"
        return Refused(InvalidReason.TIMESTAMP_OUT_OF_WINDOW, detail, _facts(source, sent), skew_seconds=skew)
    held = _find_key(source, sent, received_at, registry)
    if type(held) is Refused:
        return held
    try:
        signed = framed_replay(source, frame) if metadata.replayed else frame
        genuine = held.signing.verify(metadata.hmac, signed, body.payload)
    except NotCanonicalisableError as problem:
        detail = f"command.payload has no canonical form: {problem}"
        return Refused(InvalidReason.BAD_FIELD, detail, _facts(source, sent))
    if not genuine:
        detail = f"the signature does not match under key {metadata.version_id}"
        return Refused(InvalidReason.HMAC_MISMATCH, detail, _facts(source, sent))
    mode = registry.ban_mode(source, received_at)
    if mode is not None and mode is BanMode.OUTRIGHT:
        return Refused(InvalidReason.SOURCE_BANNED, "the source is banned", _facts(source, sent))
    validate = registry.validator(body.target, body.name, received_at)
    if validate is not None:
        problem = validate(body.payload)
        if problem is not None:
            return Refused(InvalidReason.SCHEMA_VIOLATION, problem, _facts(source, sent))
    return Passed(
        _admitted(source, sent, received_at),
        _skew_report(frame, sent_at, skew, policy),
        _key_report(metadata.version_id, held, received_at, policy) if held.legacy else None,
    )


def _structural_fault(sent: CommandSent) -> tuple[InvalidReason, str] | None:
    metadata, command = sent.metadata, sent.command
    if command.source is not msgspec.UNSET:
        return (
            InvalidReason.SOURCE_IN_PAYLOAD,
            "command.source is filled in by the platform and must not be sent",
        )
    if metadata.type != COMMAND_SENT:
        return InvalidReason.BAD_FIELD, f"metadata.type must be {COMMAND_SENT}"
    if _is_uuid(metadata.id) is None:
        return InvalidReason.BAD_FIELD, "metadata.id is not a UUID"
    if not metadata.hmac:
        return InvalidReason.HMAC_MISSING, "metadata.hmac is empty"
    if is_name(command.target) is None:
        return InvalidReason.BAD_FIELD, "command.target is not the name of a target"
    if is_command(command.name) is None:
        return InvalidReason.BAD_FIELD, "command.name is not the name of a command"
    return None


def _find_key(source: str, sent: CommandSent, at: float, registry: Screen) -> HeldKey | Refused:
    metadata = sent.metadata
    replayed = metadata.replayed or metadata.replay_id is not None or metadata.replay_reason is not None
    # A replayed command is signed with the platform's own key, so a producer cannot pass one off as replayed,
    # nor a replayer pass one off as live.
    held = registry.key(REPLAYER if replayed else source, metadata.version_id)
    if held is None:
        return _without_key(source, sent, registry, replayed=replayed)
    if replayed or source == REPLAYER:
        # Any other source is registered, since it has a key: its form needs no second look.
        if is_source(source) is None:
            return Refused(InvalidReason.UNKNOWN_SOURCE, _NO_SOURCE, _facts(source, sent))
        if not (metadata.replayed and metadata.replay_id):
            detail = "a replayed command needs both metadata.replayed and metadata.replay_id"
            return Refused(InvalidReason.BAD_FIELD, detail, _facts(source, sent))
    if held.not_after is not None and at >= held.not_after:
        detail = f"key {metadata.version_id} has expired"
        return Refused(InvalidReason.HMAC_EXPIRED_KEY, detail, _facts(source, sent), provisional=True)
    return held


_NO_SOURCE = "the event's source is not of the form <tenant>/<service>"


def _without_key(source: str, sent: CommandSent, registry: Screen, *, replayed: bool) -> Refused:
    facts = _facts(source, sent)
    if is_source(source) is None:
        return Refused(InvalidReason.UNKNOWN_SOURCE, _NO_SOURCE, facts)
    if replayed:
        detail = "only the platform's replayer may set metadata.replayed, replay_id or replay_reason"
        return Refused(InvalidReason.BAD_FIELD, detail, facts, provisional=True)
    if not registry.knows_source(source):
        detail = "no such source is registered"
        return Refused(InvalidReason.UNKNOWN_SOURCE, detail, facts, provisional=True)
    detail = "metadata.version_id names no key of this source"
    return Refused(InvalidReason.HMAC_UNKNOWN_KEY, detail, facts, provisional=True)


def _admitted(source: str, sent: CommandSent, received_at: float) -> Admitted:
    metadata, command = sent.metadata, sent.command
    traced = metadata.traceparent is not None and _is_traceparent(metadata.traceparent) is not None
    return Admitted(
        source=source,
        id=metadata.id,
        timestamp=metadata.timestamp,
        target=command.target,
        name=command.name,
        received_at=received_at,
        payload=command.payload,
        correlation_id=metadata.correlation_id,
        schema_version=metadata.schema_version,
        traceparent=metadata.traceparent if traced else None,
        tracestate=metadata.tracestate if traced else None,
        replay=Replay(metadata.replay_id, metadata.replay_reason) if metadata.replay_id else None,
    )


def _skew_report(frame: bytes, sent_at: float, skew: float, policy: ScreeningPolicy) -> SkewReport | None:
    near = abs(skew) >= policy.near_limit * policy.window_seconds
    # Sampled by what was signed, so that the same message screened again is sampled again.
    if near or zlib.crc32(frame) < policy.sample_rate * 2**32:
        return SkewReport(sent_at, skew, near)
    return None


def _key_report(version_id: str, held: HeldKey, at: float, policy: ScreeningPolicy) -> KeyReport:
    ending = held.not_after is not None and held.not_after - at <= policy.expiry_warning_seconds
    polled = held.last_poll_at is not None and at - held.last_poll_at <= policy.poll_seconds
    return KeyReport(version_id, expiring=ending and not polled, last_poll_at=held.last_poll_at)


def _facts(source: str, sent: CommandSent) -> Facts:
    return clipped(source, sent.metadata.id, sent.command.target, sent.command.name, sent.metadata.timestamp)
