"""Results as the telemetry a tenant would receive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from msgspec import UNSET

from snavio.domain.cold import Refusal
from snavio.domain.screening import Passed, Refused
from snavio.sdk.testing.registry import MemoryRegistry
from snavio.wire.commands import Admitted, Delivered, Dominance, EscalationReason
from snavio.wire.events import (
    CommandDelivered,
    CommandDuplicate,
    CommandEscalated,
    CommandFailed,
    CommandInvalid,
    CommandName,
    CommandOverLimit,
    Event,
    KeyExpiryImminent,
    LegacyKeyUsed,
    SkewNearLimit,
    SkewSample,
    WarmPathBan,
)
from snavio.wire.names import tenant_of
from snavio.wire.times import format_time


class TelemetryReports:
    """Makes events and tells them to whom they belong."""

    def __init__(
        self,
        registry: MemoryRegistry,
        tell: Callable[[str, Event], None],
        hand_over: Callable[[Admitted, Delivered], None],
        now: Callable[[], float],
    ) -> None:
        self._registry = registry
        self._tell = tell
        self._hand_over = hand_over
        self._now = now

    def delivered(self, command: Admitted, message: Delivered) -> None:
        """It is in the target's queue."""
        self._hand_over(command, message)
        latency = max(0.0, self._now() - command.received_at) * 1000
        self._about(command, CommandDelivered, path=message.metadata.path, dispatch_latency_ms=latency)

    def invalid(self, source: str, refused: Refused) -> None:
        """It was not a genuine command."""
        facts, tenant = refused.facts, tenant_of(source)
        event = CommandInvalid(
            **self._head(tenant),
            reason=refused.reason,
            detail=refused.detail,
            source=source,
            command_id=_or_unset(facts.command_id),
            target=_or_unset(facts.target),
            command=UNSET if facts.name is None else CommandName(facts.name),
            timestamp=_or_unset(facts.timestamp),
            skew_seconds=_or_unset(refused.skew_seconds),
        )
        self._tell(tenant, event)

    def passed(self, passed: Passed) -> None:
        """What there is to say of a genuine command's key and clock."""
        command = passed.command
        tenant = tenant_of(command.source)
        if passed.key is not None:
            kind = KeyExpiryImminent if passed.key.expiring else LegacyKeyUsed
            event = kind(**self._head(tenant), version_id=passed.key.version_id, source=command.source)
            self._tell(tenant, event)
        if passed.skew is not None:
            seen: dict[str, Any] = {
                "source": command.source,
                "sent_at": format_time(passed.skew.sent_at),
                "received_at": format_time(command.received_at),
                "skew_seconds": passed.skew.skew_seconds,
            }
            if passed.skew.near_limit:
                self._tell(tenant, SkewNearLimit(**self._head(tenant), command_id=command.id, **seen))
            else:
                self._tell(tenant, SkewSample(**self._head(tenant), **seen))

    def failed(self, command: Admitted, refusal: Refusal) -> None:
        """It was not delivered."""
        dominance = refusal.dominance
        shares: dict[str, Any] = {}
        if dominance is not None:
            shares = {
                "source_share": dominance.source_share,
                "competing_share": dominance.competing_share,
                "dispatch_volume": dominance.dispatch_volume,
            }
        self._about(
            command,
            CommandFailed,
            reason=refusal.reason,
            detail=refusal.detail,
            sub_reason=_or_unset(refusal.sub_reason),
            retry_after_ms=_or_unset(refusal.retry_after_ms),
            throttle_until=_or_unset(refusal.throttle_until),
            **shares,
        )

    def duplicate(self, command: Admitted) -> None:
        """It had been delivered before."""
        self._about(command, CommandDuplicate)

    def escalated(self, command: Admitted, reason: EscalationReason) -> None:
        """Fast left it to slow."""
        self._about(command, CommandEscalated, reason=reason)

    def over_limit(self, command: Admitted, refusal: Refusal) -> None:
        """A limit in shadow mode would have refused it."""
        self._about(
            command,
            CommandOverLimit,
            retry_after_ms=refusal.retry_after_ms,
            throttle_until=refusal.throttle_until,
        )

    def banned(self, command: Admitted, ban: Dominance) -> None:
        """Its source lost the warm path: the offender and the target's tenant are told."""
        route = self._registry.routes[command.target, command.name]
        for tenant in {tenant_of(command.source): None, route.tenant: None}:
            event = WarmPathBan(
                **self._head(tenant),
                source=command.source,
                target=command.target,
                command=CommandName(command.name),
                source_share=ban.source_share,
                competing_share=ban.competing_share,
                retry_after_ms=int((ban.until - ban.opened_at) * 1000),
                throttle_until=format_time(ban.until),
            )
            self._tell(tenant, event)

    def _about(self, command: Admitted, kind: Callable[..., Event], **fields: Any) -> None:
        tenant = tenant_of(command.source)
        event = kind(
            **self._head(tenant),
            command_id=command.id,
            source=command.source,
            target=command.target,
            command=CommandName(command.name),
            timestamp=command.timestamp,
            **fields,
        )
        self._tell(tenant, event)

    def _head(self, tenant: str) -> dict[str, Any]:
        return {"event_id": str(uuid4()), "tenant": tenant, "emitted_at": format_time(self._now())}


def _or_unset(value: Any) -> Any:
    return UNSET if value is None else value
