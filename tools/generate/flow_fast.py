"""Fast's decision, as a tree."""

from __future__ import annotations

from typing import Any

import msgspec
from exploring import Leaf, Oracle, Question, Tree, continued, explore

from snavio.domain.dedupe import HandedOn
from snavio.domain.freshness import Phase
from snavio.domain.models import Ban, BanMode, DedupeMode, DispatchMode, RateLimit
from snavio.domain.warm import Deliver, DropRepeat, WarmDecision, decide_warm
from snavio.wire.commands import Admitted, Dominance, EscalationReason

_MESSAGE = "this message"
PHASES = {"fresh": Phase.FRESH, "stale": Phase.STALE, "expired": Phase.EXPIRED}
SEND = Leaf("send")
COMMAND = Admitted(
    source="acme/billing",
    id="6f8a1c1e-0000-4000-8000-000000000000",
    timestamp="2026-01-01T00:00:00Z",
    target="bot",
    name="notify",
    received_at=0.0,
    payload=msgspec.Raw(b"{}"),
)
DOMINANCE = Dominance(
    ban_id="b", opened_at=0.0, until=1.0, source_share=0.9, competing_share=0.1, dispatch_volume=100
)


class AskedRoute:
    """A route whose rules are asked for when they are looked at."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    @property
    def dedupe_mode(self) -> DedupeMode:
        """Whether it is strict."""
        return self._oracle.ask("Is the route strict?", {"no": DedupeMode.NONE, "yes": DedupeMode.STRICT})

    @property
    def max_message_bytes(self) -> int:
        """What its queue takes."""
        return self._oracle.ask(
            "Does the payload fit\ninto the target's queue?", {"yes": 1_048_576, "no": 1024}
        )

    @property
    def rate_limit(self) -> RateLimit | None:
        """Its limit."""
        return self._oracle.ask("Has the route a limit?", {"no": None, "yes": RateLimit(1)})


class AskedRegistry:
    """A registry that asks."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def routing_phase(self, now: float) -> Phase:
        """How old routes are."""
        del now
        return self._oracle.ask("How old is what is\nknown of routes?", PHASES)

    def route(self, target: str, command: str, now: float) -> Any:
        """Whether there is one."""
        del target, command, now
        return self._oracle.ask("Is there a route?", {"yes": AskedRoute(self._oracle), "no": None})

    def grant_phase(self, source: str, route: Any, now: float) -> Phase | None:
        """Whether there is a grant, and how old it is."""
        del source, route, now
        return self._oracle.ask("Has the source a grant?", {**PHASES, "no": None})

    def ban(self, source: str, target: str, command: str, now: float) -> Ban | None:
        """The ban in force."""
        del target, command, now
        bans = {f"{mode.value}": Ban(source=source, mode=mode) for mode in BanMode}
        return self._oracle.ask("Is the source banned,\nby the registry?", {"no": None, **bans})


class AskedState:
    """A worker's memory that asks."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def seen_by(self, command: Admitted, now: float) -> HandedOn | None:
        """Whether it handed on the same id."""
        del command, now
        why = EscalationReason.DEDUPE_REQUIRED
        seen = {
            "no": None,
            "for this message": HandedOn(_MESSAGE, why),
            "for another": HandedOn("another", why),
        }
        return self._oracle.ask("Has this worker handed\nthe same id on before?", seen)

    def local_ban(self, command: Admitted, now: float) -> Dominance | None:
        """Whether it bans the source itself."""
        del command, now
        return self._oracle.ask("Has it been dominating\nat this worker?", {"no": None, "yes": DOMINANCE})

    def take_unit(self, route: Any, now: float) -> bool:
        """Whether there is a unit."""
        del route, now
        return self._oracle.ask("Is there a unit of\nthe limit in hand?", {"yes": True, "no": False})


def fast_tree() -> Tree:
    """From the fast queue to the target's, or to slow."""
    sent = Question(
        "Does the target's\nqueue take it?",
        (
            ("yes", Leaf("snavio.command.delivered", "go")),
            ("no", _left(EscalationReason.DELIVERY_RETRY)),
        ),
    )
    return continued(explore(_decide), SEND, sent)


def _decide(oracle: Oracle) -> Leaf:
    mode = oracle.ask(
        "Is dispatching\ncold-only?", {"no": DispatchMode.ADAPTIVE, "yes": DispatchMode.COLD_ONLY}
    )
    registry: Any = AskedRegistry(oracle)
    state: Any = AskedState(oracle)
    return _outcome(decide_warm(COMMAND, _MESSAGE, registry, state, mode, 0.0))


def _outcome(decision: WarmDecision) -> Leaf:
    if isinstance(decision, Deliver):
        return SEND
    if isinstance(decision, DropRepeat):
        if decision.same_message:
            return Leaf("drop: it is with slow,\nacknowledged too late", "again")
        return Leaf("snavio.command.duplicate", "stop")
    return _left(decision.reason)


def _left(reason: EscalationReason) -> Leaf:
    return Leaf(f"leave it to slow:\n{reason.value}", "slow")
