"""The decisions of the fast and the slow path, over every combination of what can stand in the way."""

import itertools

import msgspec
import pytest

from snavio.domain.cold import (
    Eligible,
    Refresh,
    Refusal,
    RetryPolicy,
    TryAgain,
    after_failed_send,
    examine,
    over_limit,
    over_quota,
)
from snavio.domain.dedupe import HandedOn
from snavio.domain.fairness import Shares
from snavio.domain.freshness import Phase
from snavio.domain.models import Ban, BanMode, DedupeMode, DispatchMode, RateLimit, Route
from snavio.domain.warm import Deliver, DropRepeat, Escalate, decide_warm
from snavio.wire.commands import Admitted, Dominance, Escalated, EscalationReason
from snavio.wire.events import FailedReason

NOW = 1000.0
DOMINANCE = Dominance("b", 990.0, 1020.0, 0.9, 0.1, 50)


def command(size=10):
    return Admitted(
        "acme/billing", "id", "ts", "discord-bot", "notify-user", NOW, msgspec.Raw(b'"' + b"x" * size + b'"')
    )


def route(**fields):
    return Route(target="discord-bot", command="notify-user", tenant="owner", queue_arn="arn", **fields)


class Registry:
    def __init__(self, *, routing=Phase.FRESH, route=None, grant=Phase.FRESH, ban=None):
        self._routing, self._route, self._grant, self._ban = routing, route, grant, ban

    def routing_phase(self, now):
        return self._routing

    def route(self, target, command, now):
        return self._route

    def grant_phase(self, source, route, now):
        return self._grant

    def ban(self, source, target, command, now):
        return self._ban


class Local:
    def __init__(self, *, seen=None, banned=None, units=1):
        self._seen, self._banned, self.units = seen, banned, units

    def seen_by(self, command, now):
        return self._seen

    def local_ban(self, command, now):
        return self._banned

    def take_unit(self, route, now):
        self.units -= 1
        return self.units >= 0


WARM = Ban(source="acme/billing", mode=BanMode.WARM)
COLD = Ban(source="acme/billing", mode=BanMode.COLD_ONLY)


def expected(mode, routing, has_route, grant, strict, seen, ban, local_ban, large, limited, units):
    """The order of checks, told independently of the code."""
    if mode is DispatchMode.COLD_ONLY:
        return "cold_only"
    if routing is Phase.EXPIRED:
        return "cache_expired"
    if not has_route or grant is None:
        return "cache_miss"
    if grant is Phase.EXPIRED:
        return "cache_expired"
    if strict and seen:
        return "drop-same" if seen == "m1" else "drop-other"
    if ban is not None:
        return "cold_only" if ban is COLD else "warm_path_ban"
    if local_ban:
        return "warm_path_ban"
    if strict:
        return "dedupe_required"
    if large:
        return "claim_check"
    if limited and not units:
        return "token_required"
    return "deliver-stale" if grant is Phase.STALE else "deliver"


def outcome(decision):
    match decision:
        case Deliver():
            return "deliver-stale" if decision.stale else "deliver"
        case Escalate():
            return decision.reason.value
        case DropRepeat():
            assert decision.escalated in {None, EscalationReason.TOKEN_REQUIRED}
            return "drop-same" if decision.same_message else "drop-other"


def test_the_warm_decision_over_every_combination():
    seen_outcomes = set()
    for combination in itertools.product(
        DispatchMode, Phase, (True, False), (None, *Phase), (True, False), (None, "m1", "m2"), (None, WARM, COLD), (None, DOMINANCE), (True, False), (True, False), (0, 1),
    ):  # fmt: skip
        mode, routing, has_route, grant, strict, seen, ban, local_ban, large, limited, units = combination
        found = route(
            dedupe_mode=DedupeMode.STRICT if strict else DedupeMode.NONE,
            rate_limit=RateLimit(1) if limited else None,
            max_message_bytes=8192,
        )
        registry = Registry(routing=routing, route=found if has_route else None, grant=grant, ban=ban)
        handed = HandedOn(seen, EscalationReason.TOKEN_REQUIRED) if seen else None
        local = Local(seen=handed, banned=local_ban, units=units)
        decision = decide_warm(command(9000 if large else 10), "m1", registry, local, mode, NOW)
        assert outcome(decision) == expected(*combination), combination
        seen_outcomes.add(outcome(decision))
        took = local.units != units
        assert took == (limited and outcome(decision) in {"deliver", "deliver-stale", "token_required"}), (
            "a unit is spent only to deliver"
        )
    assert seen_outcomes >= {reason.value for reason in EscalationReason} - {"delivery_retry"}


def test_an_escalation_for_dominance_carries_what_was_seen():
    decision = decide_warm(
        command(), "m1", Registry(route=route()), Local(banned=DOMINANCE), DispatchMode.ADAPTIVE, NOW
    )
    assert decision == Escalate(EscalationReason.WARM_PATH_BAN, DOMINANCE, strict=False)


def escalated(reason=EscalationReason.CACHE_MISS, dominance=None):
    return Escalated(command(), reason, NOW, dominance)


@pytest.mark.parametrize("current", [True, False])
@pytest.mark.parametrize("routing", Phase)
@pytest.mark.parametrize("has_route", [True, False])
@pytest.mark.parametrize("grant", [None, *Phase])
def test_slow_refuses_only_on_current_knowledge_and_allows_only_on_unexpired(
    current, routing, has_route, grant
):
    registry = Registry(routing=routing, route=route() if has_route else None, grant=grant)
    verdict = examine(escalated(), registry, current=current, now=NOW)
    if isinstance(verdict, Refusal):
        assert current
        assert verdict.reason is (FailedReason.ACL_DENY if has_route else FailedReason.ROUTE_MISSING)
    elif isinstance(verdict, Eligible):
        assert has_route
        assert grant in (Phase.FRESH, Phase.STALE)
        assert current or routing is not Phase.EXPIRED
    else:
        assert isinstance(verdict, Refresh)
        assert grant is Phase.EXPIRED or not current


@pytest.mark.parametrize(
    ("reason", "ban", "banned"),
    [
        (EscalationReason.WARM_PATH_BAN, None, True),
        (EscalationReason.TOKEN_REQUIRED, WARM, True),
        (EscalationReason.TOKEN_REQUIRED, COLD, False),
        (EscalationReason.TOKEN_REQUIRED, None, False),
    ],
)
def test_slow_knows_who_is_off_the_warm_path(reason, ban, banned):
    verdict = examine(escalated(reason), Registry(route=route(), ban=ban), current=True, now=NOW)
    assert isinstance(verdict, Eligible)
    assert verdict.banned is banned


ALONE, CROWD = Shares(1.0, 0.0, 0, 40), Shares(0.5, 0.5, 3, 40)


@pytest.mark.parametrize(
    ("banned", "shares", "dominance", "reason"),
    [
        (False, ALONE, None, FailedReason.RATE_LIMIT_EXCEEDED),
        (False, Shares(0.9, 0.1, 3, 40), DOMINANCE, FailedReason.RATE_LIMIT_EXCEEDED),
        (True, ALONE, DOMINANCE, FailedReason.FAIRNESS_VIOLATION),
        (True, CROWD, DOMINANCE, FailedReason.RATE_LIMIT_EXCEEDED),
        (True, ALONE, None, FailedReason.RATE_LIMIT_EXCEEDED),
        (True, Shares(0.9, 0.1, 1, 40), None, FailedReason.FAIRNESS_VIOLATION),
    ],
)
def test_saturation_is_a_hard_rejection_only_for_who_goes_on_dominating(banned, shares, dominance, reason):
    refusal = over_limit(
        route(), RateLimit(10), 1500, banned=banned, shares=shares, dominance=dominance, now=NOW
    )
    assert refusal.reason is reason
    assert refusal.retry_after_ms >= 1500
    assert refusal.throttle_until
    assert (refusal.dominance is not None) == (reason is FailedReason.FAIRNESS_VIOLATION)


def test_an_exhausted_quota_names_itself():
    refusal = over_quota(RateLimit(10), 1500, NOW)
    assert (refusal.reason, refusal.sub_reason) == (FailedReason.RATE_LIMIT_EXCEEDED, "source-quota")


@pytest.mark.parametrize(
    ("attempt", "permanent", "expected"),
    [(1, False, 1.0), (2, False, 2.0), (5, False, 16.0), (6, False, None), (1, True, None)],
)
def test_a_failed_delivery_is_tried_again_with_patience_and_then_told(attempt, permanent, expected):
    verdict = after_failed_send(
        command(), attempt=attempt, permanent=permanent, cause="gone", policy=RetryPolicy()
    )
    if expected is None:
        assert verdict.reason is FailedReason.DELIVERY_FAILURE
        assert "gone" in verdict.detail
    else:
        assert verdict == TryAgain(expected)
