"""The registry of the in-memory Snavio: always fresh, answering what the platform's decisions ask."""

from __future__ import annotations

import base64
import secrets

import msgspec

from snavio.domain.freshness import Phase
from snavio.domain.models import Ban, BanMode, Quota, Route
from snavio.domain.screening import HeldKey, Validator
from snavio.sdk.tenant_config import CURRENT, KeyVersion, Service
from snavio.wire.signing import SigningKey
from snavio.wire.times import format_time


class MemoryRegistry:
    """Routes, grants, keys, bans and quotas of a test."""

    def __init__(self) -> None:
        self.routes: dict[tuple[str, str], Route] = {}
        self.validators: dict[tuple[str, str], Validator] = {}
        self.grants: set[tuple[str, str, str]] = set()
        self.bans: list[Ban] = []
        self.quotas: dict[tuple[str, str, str], Quota] = {}
        self._keys: dict[str, list[KeyVersion]] = {}

    # What screening asks
    def knows_source(self, source: str) -> bool:
        """Whether the source is registered."""
        return source in self._keys

    def key(self, source: str, version_id: str) -> HeldKey | None:
        """One version of a source's key."""
        for key in self._keys.get(source, ()):
            if key.version_id == version_id:
                ends_at = None if key.not_after is None else key.ends_at
                return HeldKey(SigningKey(base64.b64decode(key.secret_b64)), ends_at, key.state != CURRENT)
        return None

    def ban_mode(self, source: str, now: float) -> BanMode | None:
        """The ban in force against everything the source sends."""
        modes = [ban.mode for ban in self._in_force(source, now) if ban.target is None]
        return max(modes, key=lambda mode: mode.strictness, default=None)

    def validator(self, target: str, command: str, now: float) -> Validator | None:
        """The check of the payload, where the route has one."""
        return self.validators.get((target, command)) if self.route(target, command, now) else None

    # What dispatch asks
    def routing_phase(self, now: float) -> Phase:
        """Always fresh: the registry is the truth itself."""
        del now
        return Phase.FRESH

    def route(self, target: str, command: str, now: float) -> Route | None:
        """The route, unless it has ended."""
        route = self.routes.get((target, command))
        ended = route is not None and route.expires_at is not None and now >= route.expires_at
        return None if ended else route

    def grant_phase(self, source: str, route: Route, now: float) -> Phase | None:
        """Fresh where there is a grant."""
        del now
        return Phase.FRESH if (source, route.target, route.command) in self.grants else None

    def ban(self, source: str, target: str, command: str, now: float) -> Ban | None:
        """The strictest ban in force for this (target, command)."""
        found = [
            ban
            for ban in self._in_force(source, now)
            if ban.target in (None, target) and ban.command in (None, command)
        ]
        return max(found, key=lambda ban: ban.mode.strictness, default=None)

    def _in_force(self, source: str, now: float) -> list[Ban]:
        return [ban for ban in self.bans if ban.source == source and (ban.until is None or now < ban.until)]

    # How keys change
    def add_key(self, source: str, *, previous_ends_at: float) -> None:
        """Give a source a new key; the one before ends then."""
        ended = format_time(previous_ends_at)
        older = [
            msgspec.structs.replace(key, state="previous", not_after=key.not_after or ended)
            for key in self._keys.get(source, [])
        ]
        secret = base64.b64encode(secrets.token_bytes(32)).decode()
        self._keys[source] = [*older, KeyVersion(f"hmac-v{len(older) + 1}", secret)]

    def services_of(self, tenant: str) -> list[Service]:
        """A tenant's services with their keys."""
        return [
            Service(source, keys) for source, keys in self._keys.items() if source.startswith(f"{tenant}/")
        ]
