"""The decisions of the slow path, each over values: may it go, and if not, what is the sender told."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from snavio.domain.fairness import Shares, dominates
from snavio.domain.freshness import Phase
from snavio.domain.models import BanMode, DedupeMode, RateLimit, Route
from snavio.domain.warm import RegistryView
from snavio.wire.commands import Admitted, Dominance, Escalated, EscalationReason
from snavio.wire.events import SOURCE_QUOTA, FailedReason
from snavio.wire.times import format_time


class Refusal(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """It is not delivered, and why; with hints when trying again later makes sense."""

    reason: FailedReason
    detail: str = ""
    sub_reason: str | None = None
    retry_after_ms: int | None = None
    throttle_until: str | None = None
    dominance: Dominance | None = None


class Eligible(msgspec.Struct, frozen=True, tag=True):
    """Nothing in the registry stands against it. What remains is dedupe, quota and limit."""

    route: Route
    strict: bool
    banned: bool
    """It came here because its source is off the warm path."""


class Refresh(msgspec.Struct, frozen=True, tag=True):
    """The registry is too old to say: refresh it and ask again."""


Eligibility: TypeAlias = Refusal | Eligible | Refresh


def examine(escalated: Escalated, registry: RegistryView, *, current: bool, now: float) -> Eligibility:
    """What the registry says of a command.

    A refusal must rest on a registry read since the escalation (`current`); a permission on one that has not expired.
    """
    command = escalated.command
    if not current and registry.routing_phase(now) is Phase.EXPIRED:
        return Refresh()
    route = registry.route(command.target, command.name, now)
    if route is None:
        return _no_route(command) if current else Refresh()
    grant = registry.grant_phase(command.source, route, now)
    if grant is None:
        return _not_granted(command) if current else Refresh()
    if grant is Phase.EXPIRED:
        return Refresh()
    ban = registry.ban(command.source, command.target, command.name, now)
    banned = escalated.reason is EscalationReason.WARM_PATH_BAN or (
        ban is not None and ban.mode is BanMode.WARM
    )
    return Eligible(route, strict=route.dedupe_mode is DedupeMode.STRICT, banned=banned)


def _no_route(command: Admitted) -> Refusal:
    return Refusal(FailedReason.ROUTE_MISSING, f"no route is registered for {command.target} {command.name}")


def _not_granted(command: Admitted) -> Refusal:
    detail = f"{command.source} has no grant for {command.target} {command.name}"
    return Refusal(FailedReason.ACL_DENY, detail)


def over_quota(quota: RateLimit, retry_after_ms: int, now: float) -> Refusal:
    """The source has used up its own quota."""
    return Refusal(
        FailedReason.RATE_LIMIT_EXCEEDED,
        f"the source's quota of {quota.limit} in {quota.interval_seconds} s is used up",
        sub_reason=SOURCE_QUOTA,
        retry_after_ms=retry_after_ms,
        throttle_until=format_time(now + retry_after_ms / 1000),
    )


def over_limit(
    route: Route,
    limit: RateLimit,
    retry_after_ms: int,
    *,
    banned: bool,
    shares: Shares,
    dominance: Dominance | None,
    now: float,
) -> Refusal:
    """The target's limit is used up: a plain refusal, or a hard one for a source that goes on dominating after its ban.

    `shares` are those of the cold path, where a banned source may be alone; that others suffer was shown by the ban.
    """
    standing = _still_dominating(route, shares, dominance, now) if banned else None
    if standing is not None:
        wait_ms = max(retry_after_ms, int((standing.until - now) * 1000))
        return Refusal(
            FailedReason.FAIRNESS_VIOLATION,
            "the source goes on dominating a saturated target after losing the warm path",
            retry_after_ms=wait_ms,
            throttle_until=format_time(now + wait_ms / 1000),
            dominance=standing,
        )
    return Refusal(
        FailedReason.RATE_LIMIT_EXCEEDED,
        f"the limit of {limit.limit} in {limit.interval_seconds} s for {route.target} {route.command} is used up",
        retry_after_ms=retry_after_ms,
        throttle_until=format_time(now + retry_after_ms / 1000),
    )


def _still_dominating(
    route: Route, shares: Shares, dominance: Dominance | None, now: float
) -> Dominance | None:
    if dominance is not None:
        return dominance if shares.source_share > route.fairness.dominant_share else None
    if not dominates(shares, route.fairness):
        return None
    return Dominance(
        ban_id="",
        opened_at=now,
        until=now,
        source_share=shares.source_share,
        competing_share=shares.competing_share,
        dispatch_volume=shares.volume,
    )


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how patiently a delivery is tried."""

    attempts: int = 6
    base_seconds: float = 1.0
    longest_seconds: float = 60.0


class TryAgain(msgspec.Struct, frozen=True, tag=True):
    """Leave it in the queue for so long."""

    seconds: float


def after_failed_send(
    command: Admitted, *, attempt: int, permanent: bool, cause: str, policy: RetryPolicy
) -> TryAgain | Refusal:
    """Whether a failed delivery is tried again, by how often it has been and by what kind of failure it was."""
    if permanent or attempt >= policy.attempts:
        detail = f"the queue of {command.target} {command.name} could not be reached: {cause}"
        return Refusal(FailedReason.DELIVERY_FAILURE, detail)
    return TryAgain(min(policy.longest_seconds, policy.base_seconds * 2 ** (attempt - 1)))
