"""The documents of tenants, services and keys. Times are RFC 3339, as people and programs write them."""

from __future__ import annotations

import msgspec

from snavio.control.config import SourceKeys
from snavio.control.keys import IssuedKey
from snavio.control.models import Service, State, Tenant
from snavio.domain.models import (
    Key,
)
from snavio.gateway.texts import time_text
from snavio.wire.times import format_time


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
            time_text(key.not_after),
            time_text(key.last_poll_at),
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
            key.version_id, key.secret_b64, "current" if key.current else "previous", time_text(key.not_after)
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
