"""The documents of routes, grants, quotas and bans. Times are RFC 3339, as people and programs write them."""

from __future__ import annotations

from typing import Any

import msgspec

from snavio.control.health import HealthStatus, RouteHealth
from snavio.control.route_checks import Check
from snavio.control.routes import RouteReport
from snavio.control.trial import Trial
from snavio.domain.models import (
    Ban,
    BanMode,
    DedupeMode,
    FairnessPolicy,
    Grant,
    Quota,
    RateLimit,
    Route,
    Sensitivity,
)
from snavio.gateway.texts import time_text


class RouteDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A route. The last three are there after a registration only."""

    target: str
    command: str
    tenant: str
    version: int
    queue_arn: str
    dlq_arn: str | None
    dedupe_mode: DedupeMode
    expected_drain_seconds: int
    sensitivity: Sensitivity
    rate_limit: dict[str, Any] | None
    fairness: dict[str, Any]
    schema: Any
    expires_at: str | None
    max_message_bytes: int
    dry_run: bool | msgspec.UnsetType = msgspec.UNSET
    checks: list[Check] | msgspec.UnsetType = msgspec.UNSET
    test_routing: list[Trial] | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def of(cls, route: Route) -> RouteDocument:
        """The document of a route, its defaults written out."""
        return cls(
            target=route.target,
            command=route.command,
            tenant=route.tenant,
            version=route.version,
            queue_arn=route.queue_arn,
            dlq_arn=route.dlq_arn,
            dedupe_mode=route.dedupe_mode,
            expected_drain_seconds=route.expected_drain_seconds,
            sensitivity=route.sensitivity,
            rate_limit=_limit(route.rate_limit),
            fairness=_fairness(route.fairness),
            schema=route.schema,
            expires_at=time_text(route.expires_at),
            max_message_bytes=route.max_message_bytes,
        )

    @classmethod
    def reported(cls, report: RouteReport, *, dry_run: bool) -> RouteDocument:
        """The same with what its registration found out."""
        return msgspec.structs.replace(
            cls.of(report.route), dry_run=dry_run, checks=report.checks, test_routing=report.trials
        )


class GrantDocument(msgspec.Struct, frozen=True):
    """A grant."""

    source: str
    target: str
    command: str
    sensitivity: Sensitivity | None
    expires_at: str | None

    @classmethod
    def of(cls, grant: Grant) -> GrantDocument:
        """The document of a grant."""
        return cls(grant.source, grant.target, grant.command, grant.sensitivity, time_text(grant.expires_at))


class QuotaDocument(msgspec.Struct, frozen=True):
    """A source's own limit."""

    source: str
    target: str
    command: str
    rate_limit: dict[str, Any] | None

    @classmethod
    def of(cls, quota: Quota) -> QuotaDocument:
        """The document of a quota."""
        return cls(quota.source, quota.target, quota.command, _limit(quota.rate_limit))


class BanDocument(msgspec.Struct, frozen=True):
    """A ban in force."""

    source: str
    mode: BanMode
    target: str | None
    command: str | None
    until: str | None
    reason: str

    @classmethod
    def of(cls, ban: Ban) -> BanDocument:
        """The document of a ban."""
        return cls(ban.source, ban.mode, ban.target, ban.command, time_text(ban.until), ban.reason)


class HealthDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How a route's queue is doing."""

    target: str
    command: str
    status: HealthStatus
    detail: str
    checked_at: str | None
    oldest_age_seconds: float | None
    waiting: int | None
    in_flight: int | None
    delayed: int | None
    dlq_waiting: int | None

    @classmethod
    def of(cls, target: str, command: str, health: RouteHealth) -> HealthDocument:
        """The document of a route's health."""
        verdict, depths = health.verdict, health.depths
        status = verdict.status if verdict else HealthStatus.UNKNOWN
        return cls(
            target=target,
            command=command,
            status=HealthStatus.UNREACHABLE if depths is None else status,
            detail=verdict.detail if verdict else "",
            checked_at=time_text(verdict.checked_at) if verdict else None,
            oldest_age_seconds=verdict.oldest_age_seconds if verdict else None,
            waiting=depths.waiting if depths else None,
            in_flight=depths.in_flight if depths else None,
            delayed=depths.delayed if depths else None,
            dlq_waiting=health.dlq_waiting,
        )


def _limit(limit: RateLimit | None) -> dict[str, Any] | None:
    if limit is None:
        return None
    return {**msgspec.structs.asdict(limit), "burst": limit.capacity}


def _fairness(policy: FairnessPolicy) -> dict[str, Any]:
    return msgspec.structs.asdict(policy)
