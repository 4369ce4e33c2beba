"""The tenant's configuration as the gateway serves it, and which key to sign with at a given moment."""

from __future__ import annotations

import base64
import binascii
import json

import msgspec

from snavio.sdk.errors import ConfigError
from snavio.wire.signing import SigningKey
from snavio.wire.times import parse_time

CURRENT = "current"


class KeyVersion(msgspec.Struct, frozen=True):
    """One version of a source's secret."""

    version_id: str
    secret_b64: str
    state: str = CURRENT
    not_after: str | float | None = None

    def __repr__(self) -> str:
        return f"KeyVersion({self.version_id!r}, state={self.state!r})"

    @property
    def ends_at(self) -> float:
        """When it stops being accepted, seconds since the epoch; infinity when nobody said."""
        if self.not_after is None:
            return float("inf")
        if isinstance(self.not_after, str):
            parsed = parse_time(self.not_after)
            return float("inf") if parsed is None else parsed
        return float(self.not_after)


class Service(msgspec.Struct, frozen=True):
    """A source of the tenant with its keys."""

    source: str
    keys: list[KeyVersion]


class TenantConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What `GET /api/v1/tenant-config` answers."""

    tenant: str
    services: list[Service]
    bus: str
    emit_role_arn: str | None = None
    telemetry_queue_url: str | None = None
    replay_window_seconds: float = 60.0
    poll_interval_seconds: float = 12 * 3600.0


class Signer(msgspec.Struct, frozen=True):
    """A key ready to sign with."""

    version_id: str
    version_json: str
    """The version id as a JSON string."""
    key: SigningKey
    ends_at: float


_decoder = msgspec.json.Decoder(TenantConfig)


def decode_config(body: bytes) -> TenantConfig:
    """The configuration in an answer of the gateway."""
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        # The answer holds secrets, so nothing of it is repeated.
        raise ConfigError(f"The tenant configuration cannot be read: {problem}.") from None


def only_source(config: TenantConfig, wanted: str | None) -> str:
    """The source to send as: the one wanted, or the tenant's only one."""
    known = [service.source for service in config.services]
    if wanted is None:
        if len(known) == 1:
            return known[0]
        raise ConfigError(f"Say which source to send as: tenant {config.tenant} has {len(known)} services.")
    if wanted not in known:
        raise ConfigError(f"{wanted} is not a registered service of tenant {config.tenant}.")
    return wanted


def choose_signer(config: TenantConfig, source: str, now: float) -> Signer:
    """The key to sign with: the current one, or while none is marked so, the one that lasts longest."""
    keys = [key for service in config.services if service.source == source for key in service.keys]
    usable = [key for key in keys if key.ends_at > now]
    if not usable:
        raise ConfigError(f"No key of {source} is valid any more.")
    best = max(usable, key=lambda key: (key.state == CURRENT, key.ends_at, _number(key.version_id)))
    try:
        secret = base64.b64decode(best.secret_b64, validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"Key {best.version_id} of {source} is not base64.") from None
    return Signer(best.version_id, json.dumps(best.version_id), SigningKey(secret), best.ends_at)


def _number(version_id: str) -> int:
    digits = version_id.rpartition("v")[2]
    return int(digits) if digits.isdecimal() else 0
