"""What the API answers: the control plane's values as documents, with times as people and programs write them."""

from __future__ import annotations

from typing import Any

import msgspec

from snavio.control.config import SourceKeys
from snavio.control.health import HealthStatus, RouteHealth
from snavio.control.history import ChangesPage
from snavio.control.keys import IssuedKey
from snavio.control.models import AuditRecord, Service, State, Tenant
from snavio.control.route_checks import Check
from snavio.control.routes import RouteReport
from snavio.control.trial import Trial
from snavio.domain.models import (
    Ban,
    BanMode,
    DedupeMode,
    FairnessPolicy,
    Grant,
    Key,
    Quota,
    RateLimit,
    Route,
    Sensitivity,
)
from snavio.registry.changelog import Change
from snavio.wire.times import format_time


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else format_time(seconds)


class TenantRegistered(msgspec.Struct, frozen=True):
    """A tenant just registered."""

    tenant: str
    emit_role_arn: str
    telemetry_topic_arn: str
    telemetry_queue_url: str
    token: str | None
    """None where an identity provider issues all tokens."""


class TokenDocument(msgspec.Struct, frozen=True):
    """A tenant's token."""

    tenant: str
    token: str


class ServiceDocument(msgspec.Struct, frozen=True):
    """A service."""

    source: str
    state: State
    sender_role_arn: str | None
    created_at: str

    @classmethod
    def of(cls, service: Service) -> ServiceDocument:
        """The document of a service."""
        return cls(service.source, service.state, service.sender_role_arn, format_time(service.created_at))


class TenantDocument(msgspec.Struct, frozen=True):
    """A tenant. `services` is filled in where one tenant is asked for."""

    tenant: str
    state: State
    contact_email: str | None
    sender_role_arns: tuple[str, ...]
    emit_role_arn: str
    created_at: str
    services: list[ServiceDocument] | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def of(cls, tenant: Tenant, emit_role_arn: str, services: list[Service] | None = None) -> TenantDocument:
        """The document of a tenant."""
        return cls(
            tenant.tenant,
            tenant.state,
            tenant.contact_email,
            tenant.sender_role_arns,
            emit_role_arn,
            format_time(tenant.created_at),
            msgspec.UNSET if services is None else [ServiceDocument.of(service) for service in services],
        )


class FirstKey(msgspec.Struct, frozen=True):
    """The key a producer begins with."""

    version_id: str
    secret_b64: str


class ServiceRegistered(msgspec.Struct, frozen=True):
    """A service just registered."""

    source: str
    key: FirstKey


class KeyVersion(msgspec.Struct, frozen=True):
    """A version of a key, without its secret."""

    version_id: str
    state: str
    created_at: str
    not_after: str | None
    last_poll_at: str | None

    @classmethod
    def of(cls, key: Key, *, current: bool) -> KeyVersion:
        """The document of a version."""
        return cls(
            key.version_id,
            "current" if current else "previous",
            format_time(key.created_at),
            _time(key.not_after),
            _time(key.last_poll_at),
        )


class KeysDocument(msgspec.Struct, frozen=True):
    """The versions of a source's key, oldest first."""

    source: str
    keys: list[KeyVersion]


class ConfigKey(msgspec.Struct, frozen=True):
    """A version of a key, for the producer."""

    version_id: str
    secret_b64: str
    state: str
    not_after: str | None

    @classmethod
    def of(cls, key: IssuedKey) -> ConfigKey:
        """The document of a version."""
        return cls(
            key.version_id, key.secret_b64, "current" if key.current else "previous", _time(key.not_after)
        )


class ConfigService(msgspec.Struct, frozen=True):
    """A source with its keys."""

    source: str
    keys: list[ConfigKey]

    @classmethod
    def of(cls, source: SourceKeys) -> ConfigService:
        """The document of a source."""
        return cls(source.source, [ConfigKey.of(key) for key in source.keys])


class ConfigDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a tenant's producers need."""

    tenant: str
    services: list[ConfigService]
    bus: str
    emit_role_arn: str
    telemetry_queue_url: str
    replay_window_seconds: float
    poll_interval_seconds: float


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
            expires_at=_time(route.expires_at),
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
        return cls(grant.source, grant.target, grant.command, grant.sensitivity, _time(grant.expires_at))


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
        return cls(ban.source, ban.mode, ban.target, ban.command, _time(ban.until), ban.reason)


class ChangeDocument(msgspec.Struct, frozen=True):
    """A change of the registry. What was there before and after is None where there was nothing."""

    seq: int
    at: str
    actor: str
    kind: str
    key: list[str]
    before: Any
    after: Any
    note: str

    @classmethod
    def of(cls, change: Change) -> ChangeDocument:
        """The document of a change."""
        return cls(
            change.seq,
            format_time(change.at),
            change.actor,
            change.kind,
            [change.pk, change.sk],
            None if change.before is None else msgspec.json.decode(change.before),
            None if change.after is None else msgspec.json.decode(change.after),
            change.note,
        )


class ChangelogDocument(msgspec.Struct, frozen=True):
    """Some changes in order. Ask again with `after` = `next_after` for those that follow."""

    changes: list[ChangeDocument]
    last: int
    next_after: int | None

    @classmethod
    def of(cls, page: ChangesPage) -> ChangelogDocument:
        """The document of a page."""
        return cls([ChangeDocument.of(change) for change in page.changes], page.last, page.next_after)


class AuditDocument(msgspec.Struct, frozen=True):
    """A change beside the registry."""

    at: str
    actor: str
    action: str
    subject: str
    tenant: str | None
    before: Any
    after: Any

    @classmethod
    def of(cls, record: AuditRecord) -> AuditDocument:
        """The document of an audit record."""
        return cls(
            format_time(record.at),
            record.actor,
            record.action,
            record.subject,
            record.tenant,
            None if record.before is None else msgspec.json.decode(record.before),
            None if record.after is None else msgspec.json.decode(record.after),
        )


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
            checked_at=_time(verdict.checked_at) if verdict else None,
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
