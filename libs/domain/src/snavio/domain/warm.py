"""The decision of the fast path: deliver from memory, drop a repeat, or leave it to slow with a reason."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec

from snavio.domain.dedupe import HandedOn
from snavio.domain.freshness import Phase
from snavio.domain.models import Ban, BanMode, DedupeMode, DispatchMode, Route
from snavio.wire.commands import Admitted, Dominance, EscalationReason


class RegistryView(Protocol):
    """What a decision may ask of a worker's registry. Answers come from memory."""

    def routing_phase(self, now: float) -> Phase:
        """How far what is known of routes may be relied on."""
        ...

    def route(self, target: str, command: str, now: float) -> Route | None:
        """The route, unless it has ended."""
        ...

    def grant_phase(self, source: str, route: Route, now: float) -> Phase | None:
        """How far the source's grant for this route may be relied on; None where there is none."""
        ...

    def ban(self, source: str, target: str, command: str, now: float) -> Ban | None:
        """The strictest ban in force against the source for this (target, command)."""
        ...


class LocalState(Protocol):
    """What a decision may ask of the worker's own memory."""

    def seen_by(self, command: Admitted, now: float) -> HandedOn | None:
        """How this worker handed on the same strict command, if it did."""
        ...

    def local_ban(self, command: Admitted, now: float) -> Dominance | None:
        """The ban this worker holds against the source."""
        ...

    def take_unit(self, route: Route, now: float) -> bool:
        """Spend a unit of the lease for a limited route."""
        ...


class Deliver(msgspec.Struct, frozen=True, tag=True):
    """Send it to the route's queue now. `stale` says the grant should be refreshed afterwards."""

    route: Route
    stale: bool


class Escalate(msgspec.Struct, frozen=True, tag=True):
    """Leave it to slow."""

    reason: EscalationReason
    dominance: Dominance | None = None
    strict: bool = False


class DropRepeat(msgspec.Struct, frozen=True, tag=True):
    """This worker has handed on the same strict command before."""

    escalated: EscalationReason | None
    """Why, if it was for this very message, which was then acknowledged too late, or could not be told of."""

    @property
    def same_message(self) -> bool:
        """Whether nobody sent it twice."""
        return self.escalated is not None


WarmDecision: TypeAlias = Deliver | Escalate | DropRepeat

_CACHE_MISS = Escalate(EscalationReason.CACHE_MISS)
_CACHE_EXPIRED = Escalate(EscalationReason.CACHE_EXPIRED)
_COLD_ONLY = Escalate(EscalationReason.COLD_ONLY)
_TOKEN_REQUIRED = Escalate(EscalationReason.TOKEN_REQUIRED)
_CLAIM_CHECK = Escalate(EscalationReason.CLAIM_CHECK)
ENVELOPE_BYTES = 4096
"""What a delivered message needs beside its payload, attributes included, at the most."""


def needs_claim_check(command: Admitted, route: Route) -> bool:
    """Whether the payload is too large for the target's queue and must be left for it elsewhere."""
    return len(memoryview(command.payload)) + ENVELOPE_BYTES > route.max_message_bytes


def decide_warm(
    command: Admitted,
    message_id: str,
    registry: RegistryView,
    local: LocalState,
    mode: DispatchMode,
    now: float,
) -> WarmDecision:
    """What fast does with a command. A refusal is never decided here: what memory cannot allow, slow decides."""
    if mode is DispatchMode.COLD_ONLY:
        return _COLD_ONLY
    if registry.routing_phase(now) is Phase.EXPIRED:
        return _CACHE_EXPIRED
    route = registry.route(command.target, command.name, now)
    if route is None:
        return _CACHE_MISS
    grant = registry.grant_phase(command.source, route, now)
    if grant is None:
        return _CACHE_MISS
    if grant is Phase.EXPIRED:
        return _CACHE_EXPIRED
    strict = route.dedupe_mode is DedupeMode.STRICT
    if strict:
        handed = local.seen_by(command, now)
        if handed is not None:
            return DropRepeat(handed.reason if handed.message_id == message_id else None)
    ban = registry.ban(command.source, command.target, command.name, now)
    if ban is not None:
        cold_only = ban.mode is BanMode.COLD_ONLY
        reason = EscalationReason.COLD_ONLY if cold_only else EscalationReason.WARM_PATH_BAN
        return Escalate(reason, strict=strict)
    dominance = local.local_ban(command, now)
    if dominance is not None:
        return Escalate(EscalationReason.WARM_PATH_BAN, dominance, strict)
    if strict:
        return Escalate(EscalationReason.DEDUPE_REQUIRED, strict=True)
    if needs_claim_check(command, route):
        return _CLAIM_CHECK
    if route.rate_limit is not None and not local.take_unit(route, now):
        return _TOKEN_REQUIRED
    return Deliver(route, stale=grant is Phase.STALE)
