"""A test routing: what the dispatchers' own decisions say of a command by a route that may not be registered yet."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import msgspec

from snavio.domain.cold import Eligible, Refresh, Refusal, examine
from snavio.domain.dedupe import HandedOn
from snavio.domain.freshness import TtlPolicy
from snavio.domain.models import Ban, DispatchMode, Grant, Route
from snavio.domain.warm import Deliver, DropRepeat, Escalate, decide_warm
from snavio.registry.sealing import Sealer
from snavio.registry.view import Registry
from snavio.wire.commands import Admitted, Dominance, Escalated, EscalationReason
from snavio.wire.times import format_time


class Trial(msgspec.Struct, frozen=True):
    """What would happen to a command of one source."""

    source: str
    fast: str
    """`deliver`, or the reason it would be left to slow."""
    slow: str
    """`deliver`, or the reason it would be refused."""
    detail: str = ""


class _FreshWorker:
    """A worker that has seen nothing yet and holds a lease."""

    def seen_by(self, command: Admitted, now: float) -> HandedOn | None:
        del command, now
        return None

    def local_ban(self, command: Admitted, now: float) -> Dominance | None:
        del command, now
        return None

    def take_unit(self, route: Route, now: float) -> bool:
        del route, now
        return True


def try_route(
    route: Route,
    grants: Sequence[Grant],
    bans: Sequence[Ban],
    sources: Sequence[str],
    *,
    sealer: Sealer,
    mode: DispatchMode,
    now: float,
) -> list[Trial]:
    """Send a test command of each source through both paths, in memory."""
    registry = Registry(TtlPolicy(), sealer)
    registry.as_of = now
    for entry in (route, *grants, *bans):
        registry.put(entry)
    return [_try(route, source, registry, mode, now) for source in sources]


def _try(route: Route, source: str, registry: Registry, mode: DispatchMode, now: float) -> Trial:
    command = Admitted(
        source=source,
        id=str(uuid.UUID(int=0)),
        timestamp=format_time(now),
        target=route.target,
        name=route.command,
        received_at=now,
        payload=msgspec.Raw(b"{}"),
    )
    match decide_warm(command, "", registry, _FreshWorker(), mode, now):
        case Deliver():
            fast = "deliver"
        case Escalate(reason=reason):
            fast = reason.value
        case DropRepeat():
            fast = "duplicate"
    escalated = Escalated(command, EscalationReason.CACHE_MISS, now)
    match examine(escalated, registry, current=True, now=now):
        case Eligible():
            return Trial(source, fast, "deliver")
        case Refusal(reason=reason, detail=detail):
            return Trial(source, fast, reason.value, detail)
        case Refresh():
            return Trial(source, fast, "refresh")
