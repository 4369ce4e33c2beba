"""What is told of a command: the event for each thing that can become of it. Pure."""

from __future__ import annotations

from msgspec import UNSET

from snavio.domain.cold import Refusal
from snavio.domain.diagnosis import Facts
from snavio.domain.models import Route
from snavio.domain.screening import KeyReport, Refused, SkewReport, Unreadable
from snavio.registry.uses import GrantUse
from snavio.wire.commands import Admitted, Dominance, EscalationReason
from snavio.wire.events import (
    CommandDelivered,
    CommandDuplicate,
    CommandEscalated,
    CommandFailed,
    CommandInvalid,
    CommandName,
    CommandOverLimit,
    Event,
    ExecutedAfterAclRevoked,
    KeyExpiryImminent,
    LegacyKeyUsed,
    SkewNearLimit,
    SkewSample,
    WarmPathBan,
    derived_id,
)
from snavio.wire.names import PLATFORM_TENANT, tenant_of
from snavio.wire.times import format_time


def delivered_event(
    command: Admitted,
    message_id: str,
    *,
    path: str,
    at: float,
    at_text: str,
    possible_duplicate: bool = False,
) -> CommandDelivered:
    """It is in its target's queue. Fast reports one for every command, so this is written out for speed."""
    replay = command.replay
    source = command.source
    return CommandDelivered(
        event_id=derived_id(message_id, "delivered"),
        tenant=tenant_of(source),
        emitted_at=at_text,
        command_id=command.id,
        source=source,
        target=command.target,
        command=CommandName(command.name),
        timestamp=command.timestamp,
        path=path,
        dispatch_latency_ms=round((at - command.received_at) * 1000, 3),
        possible_duplicate=True if possible_duplicate else UNSET,
        replay=True if replay else UNSET,
        replay_id=replay.id if replay else UNSET,
        replay_reason=(replay.reason or UNSET) if replay else UNSET,
    )


def _about(command: Admitted, message_id: str, what: str, at: float) -> dict[str, object]:
    replay = command.replay
    return {
        "event_id": derived_id(message_id, what),
        "tenant": tenant_of(command.source),
        "emitted_at": format_time(at),
        "command_id": command.id,
        "source": command.source,
        "target": command.target,
        "command": CommandName(command.name),
        "timestamp": command.timestamp,
        "replay": True if replay else UNSET,
        "replay_id": replay.id if replay else UNSET,
        "replay_reason": (replay.reason or UNSET) if replay else UNSET,
    }


def failed_event(command: Admitted, message_id: str, refusal: Refusal, at: float) -> CommandFailed:
    """It was refused, or could not be delivered."""
    dominance = refusal.dominance
    return CommandFailed(
        **_about(command, message_id, "failed", at),  # pyright: ignore[reportArgumentType]
        reason=refusal.reason,
        sub_reason=refusal.sub_reason or UNSET,
        detail=refusal.detail or UNSET,
        retry_after_ms=UNSET if refusal.retry_after_ms is None else refusal.retry_after_ms,
        throttle_until=refusal.throttle_until or UNSET,
        source_share=round(dominance.source_share, 4) if dominance else UNSET,
        competing_share=round(dominance.competing_share, 4) if dominance else UNSET,
        dispatch_volume=dominance.dispatch_volume if dominance else UNSET,
    )


def duplicate_event(command: Admitted, message_id: str, at: float) -> CommandDuplicate:
    """Its id had been delivered before."""
    return CommandDuplicate(**_about(command, message_id, "duplicate", at))  # pyright: ignore[reportArgumentType]


def escalated_event(
    command: Admitted, message_id: str, reason: EscalationReason, at: float
) -> CommandEscalated:
    """Fast left it to slow."""
    return CommandEscalated(**_about(command, message_id, "escalated", at), reason=reason.value)  # pyright: ignore[reportArgumentType]


def over_limit_event(command: Admitted, message_id: str, retry_after_ms: int, at: float) -> CommandOverLimit:
    """A limit in shadow mode would have refused it."""
    return CommandOverLimit(
        **_about(command, message_id, "over_limit", at),  # pyright: ignore[reportArgumentType]
        retry_after_ms=retry_after_ms,
        throttle_until=format_time(at + retry_after_ms / 1000),
    )


def ban_events(command: Admitted, route: Route, ban: Dominance, at: float) -> list[Event]:
    """A source is off the warm path: told to it and to the owner of the target."""
    wait_ms = max(0, int((ban.until - at) * 1000))
    return [
        WarmPathBan(
            event_id=derived_id(ban.ban_id, tenant),
            tenant=tenant,
            emitted_at=format_time(at),
            source=command.source,
            target=command.target,
            command=CommandName(command.name),
            source_share=round(ban.source_share, 4),
            competing_share=round(ban.competing_share, 4),
            retry_after_ms=wait_ms,
            throttle_until=format_time(ban.until),
        )
        for tenant in dict.fromkeys((tenant_of(command.source), route.tenant))
    ]


def slipped_event(use: GrantUse, revoked_at: float, at: float) -> ExecutedAfterAclRevoked:
    """A command went through on a grant that had been revoked."""
    return ExecutedAfterAclRevoked(
        event_id=derived_id(use.command_id, use.source, use.target, use.command, f"slipped {use.at:.6f}"),
        tenant=tenant_of(use.source),
        emitted_at=format_time(at),
        source=use.source,
        target=use.target,
        command=CommandName(use.command),
        command_id=use.command_id,
        stale_duration_seconds=round(use.age, 3),
        acl_revocation_timestamp=format_time(revoked_at),
    )


def invalid_event(
    refused: Refused, message_id: str, *, tenant: str, received_at: float, at: float
) -> CommandInvalid:
    """A message was refused; told with whatever it said of itself."""
    facts: Facts = refused.facts
    late = refused.skew_seconds is not None
    return CommandInvalid(
        event_id=derived_id(message_id, "invalid"),
        tenant=tenant,
        emitted_at=format_time(at),
        reason=refused.reason,
        detail=refused.detail,
        command_id=facts.command_id or UNSET,
        source=facts.source or UNSET,
        target=facts.target or UNSET,
        command=CommandName(facts.name) if facts.name else UNSET,
        timestamp=facts.timestamp or UNSET,
        skew_seconds=round(refused.skew_seconds, 3) if refused.skew_seconds is not None else UNSET,
        sent_at=(facts.timestamp or UNSET) if late else UNSET,
        received_at=format_time(received_at) if late else UNSET,
    )


def unreadable_event(unreadable: Unreadable, message_id: str, at: float) -> CommandInvalid:
    """Something arrived that nobody can be told of but operators."""
    return CommandInvalid(
        event_id=derived_id(message_id, "invalid"),
        tenant=PLATFORM_TENANT,
        emitted_at=format_time(at),
        reason=unreadable.reason,
        detail=unreadable.detail,
    )


def skew_event(command: Admitted, message_id: str, skew: SkewReport, at: float) -> SkewNearLimit | SkewSample:
    """How far a producer's clock is off."""
    tenant = tenant_of(command.source)
    sent_at, received_at = format_time(skew.sent_at), format_time(command.received_at)
    if skew.near_limit:
        return SkewNearLimit(
            event_id=derived_id(message_id, "skew"),
            tenant=tenant,
            emitted_at=format_time(at),
            command_id=command.id,
            source=command.source,
            sent_at=sent_at,
            received_at=received_at,
            skew_seconds=round(skew.skew_seconds, 3),
        )
    return SkewSample(
        event_id=derived_id(message_id, "skew"),
        tenant=tenant,
        emitted_at=format_time(at),
        source=command.source,
        skew_seconds=round(skew.skew_seconds, 3),
        sent_at=sent_at,
        received_at=received_at,
    )


def key_event(
    command: Admitted, message_id: str, key: KeyReport, at: float
) -> LegacyKeyUsed | KeyExpiryImminent:
    """A producer signs with its previous key."""
    kind = KeyExpiryImminent if key.expiring else LegacyKeyUsed
    return kind(
        event_id=derived_id(message_id, "key expiring" if key.expiring else "key"),
        tenant=tenant_of(command.source),
        emitted_at=format_time(at),
        version_id=key.version_id,
        source=command.source,
        time_of_last_config_poll=UNSET if key.last_poll_at is None else format_time(key.last_poll_at),
    )
