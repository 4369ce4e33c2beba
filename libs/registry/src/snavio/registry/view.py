"""A worker's registry in memory: what decisions ask, answered without a call.

Every answer is as good as one moment, `as_of`: the start of the last read that proved the whole of it current.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from snavio.domain.freshness import Phase, TtlPolicy
from snavio.domain.models import Ban, BanMode, Grant, Key, Quota, Route, Settings
from snavio.domain.screening import HeldKey, Validator
from snavio.registry.grants import GrantTable
from snavio.registry.rows import Entry, RowKey, SealKey, key_of, kind_of
from snavio.registry.schemas import SchemaError, compile_schema
from snavio.registry.sealing import Sealer, UnsealError
from snavio.wire.names import tenant_of
from snavio.wire.signing import SigningKey


class Usage(msgspec.Struct):
    """How often answers were fresh, stale and expired, by cache, since last asked."""

    routing: list[int]
    acl: list[int]
    hmac: list[int]


class Registry:
    """Routes, grants, keys, bans, quotas and settings, with the phases of their age."""

    def __init__(self, ttls: TtlPolicy, sealer: Sealer | None) -> None:
        self.ttls = ttls
        self.as_of = 0.0
        self.seq = 0
        self.settings = Settings()
        self.routes: dict[tuple[str, str], Route] = {}
        self.grants = GrantTable()
        self.seals: dict[str, SealKey] = {}
        self._sealer = sealer
        self._keys: dict[str, dict[str, Key]] = {}
        self._held: dict[tuple[str, str], HeldKey] = {}
        self._tenants: Counter[str] = Counter()
        self._bans: dict[str, list[Ban]] = {}
        self._quotas: dict[tuple[str, str, str], Quota] = {}
        self._validators: dict[tuple[str, str], Validator] = {}
        self.usage = Usage([0, 0, 0], [0, 0, 0], [0, 0, 0])

    # What decisions ask
    def routing_phase(self, now: float) -> Phase:
        """How far what is known of routes may be relied on."""
        phase = self.ttls.routing.phase(now - self.as_of)
        self.usage.routing[phase] += 1
        return phase

    def keys_phase(self, now: float) -> Phase:
        """How far what is known of keys and bans may be relied on."""
        phase = self.ttls.keys.phase(now - self.as_of)
        self.usage.hmac[phase] += 1
        return phase

    def route(self, target: str, command: str, now: float) -> Route | None:
        """The route, unless it has ended."""
        route = self.routes.get((target, command))
        if route is not None and route.expires_at is not None and now >= route.expires_at:
            return None
        return route

    def grant_phase(self, source: str, route: Route, now: float) -> Phase | None:
        """How far the source's grant for this route may be relied on; None where there is none."""
        profile = self.grants.find(source, route.target, route.command, now, route.sensitivity)
        if profile is None:
            return None
        phase = self.ttls.of(profile).phase(now - self.as_of)
        self.usage.acl[phase] += 1
        return phase

    def ban(self, source: str, target: str, command: str, now: float) -> Ban | None:
        """The strictest ban in force against the source for this (target, command)."""
        bans = self._bans.get(source) if self._bans else None
        if not bans:
            return None
        found = [
            ban
            for ban in bans
            if (ban.until is None or now < ban.until)
            and (ban.target is None or ban.target == target)
            and (ban.command is None or ban.command == command)
        ]
        return max(found, key=lambda ban: ban.mode.strictness, default=None)

    def bans(self, now: float) -> list[Ban]:
        """Every ban in force."""
        return [ban for bans in self._bans.values() for ban in bans if ban.until is None or now < ban.until]

    def ban_mode(self, source: str, now: float) -> BanMode | None:
        """The ban in force against everything the source sends."""
        bans = self._bans.get(source) if self._bans else None
        if not bans:
            return None
        whole = [ban.mode for ban in bans if ban.target is None and (ban.until is None or now < ban.until)]
        return max(whole, key=lambda mode: mode.strictness, default=None)

    def quota(self, source: str, target: str, command: str) -> Quota | None:
        """The source's own quota for this (target, command)."""
        return self._quotas.get((source, target, command))

    def knows_source(self, source: str) -> bool:
        """Whether any key is registered for the source."""
        return source in self._keys

    def knows_tenant(self, tenant: str) -> bool:
        """Whether any source of the tenant is registered."""
        return tenant in self._tenants

    def key(self, source: str, version_id: str) -> HeldKey | None:
        """One version of a source's key, opened when first used."""
        held = self._held.get((source, version_id))
        if held is not None:
            return held
        key = self._keys.get(source, {}).get(version_id)
        if key is None or self._sealer is None:
            return None
        try:
            secret = self._sealer.unseal(key.sealed, source=source, version_id=version_id)
        except UnsealError:
            return None
        held = HeldKey(SigningKey(secret), key.not_after, key.not_after is not None, key.last_poll_at)
        self._held[source, version_id] = held
        return held

    def validator(self, target: str, command: str, now: float) -> Validator | None:
        """The check of the payload, where the route has a schema; compiled when first used."""
        route = self.route(target, command, now)
        if route is None or route.schema is None:
            return None
        check = self._validators.get((target, command))
        if check is None:
            check = self._validators[target, command] = _compiled(route.schema)
        return check

    @property
    def keeps_keys(self) -> bool:
        """Whether it holds keys at all: only who verifies signatures needs them."""
        return self._sealer is not None

    def entries(self) -> list[Entry]:
        """Everything but grants and settings, ordered by where it lies."""
        found: list[Entry] = [*self.routes.values(), *self.seals.values(), *self._quotas.values()]
        found += [key for versions in self._keys.values() for key in versions.values()]
        found += [ban for bans in self._bans.values() for ban in bans]
        return sorted(found, key=key_of)

    # How it changes
    def load(self, entries: list[Entry]) -> None:
        """Take the place of everything by these entries."""
        self.grants.load(entry for entry in entries if isinstance(entry, Grant))
        for entry in entries:
            if not isinstance(entry, Grant):
                self.put(entry)

    def put(self, entry: Entry) -> None:
        """Add or change one entry."""
        match entry:
            case Route():
                self.routes[entry.target, entry.command] = entry
                self._validators.pop((entry.target, entry.command), None)
            case Grant():
                self.grants.put(entry)
            case Key():
                if self._sealer is None:
                    return
                if entry.source not in self._keys:
                    self._tenants[tenant_of(entry.source)] += 1
                self._keys.setdefault(entry.source, {})[entry.version_id] = entry
                self._held.pop((entry.source, entry.version_id), None)
            case Ban():
                self._drop_ban(entry.source, entry.target, entry.command)
                self._bans.setdefault(entry.source, []).append(entry)
            case Quota():
                self._quotas[entry.source, entry.target, entry.command] = entry
            case SealKey():
                self.seals[entry.id] = entry
            case Settings():
                self.settings = entry

    def remove(self, key: RowKey) -> None:
        """Take away the entry that lay at this key."""
        pk, sk = key
        names = pk.split("#")
        match kind_of(pk):
            case "route":
                self.routes.pop((names[1], sk), None)
                self._validators.pop((names[1], sk), None)
            case "grant":
                self.grants.revoke(sk, names[1], names[2])
            case "key":
                self._drop_key(names[1], sk)
            case "ban":
                target, _, command = sk.partition("#")
                self._drop_ban(names[1], _unstarred(target), _unstarred(command))
            case "quota":
                target, _, command = sk.partition("#")
                self._quotas.pop((names[1], target, command), None)
            case "seal":
                self.seals.pop(sk, None)
            case "settings":
                self.settings = Settings()
            case _:
                pass

    def _drop_key(self, source: str, version_id: str) -> None:
        self._held.pop((source, version_id), None)
        versions = self._keys.get(source, {})
        versions.pop(version_id, None)
        if not versions and self._keys.pop(source, None) is not None:
            tenant = tenant_of(source)
            self._tenants[tenant] -= 1
            if not self._tenants[tenant]:
                del self._tenants[tenant]

    def _drop_ban(self, source: str, target: str | None, command: str | None) -> None:
        kept = [ban for ban in self._bans.get(source, []) if (ban.target, ban.command) != (target, command)]
        if kept:
            self._bans[source] = kept
        else:
            self._bans.pop(source, None)


def _compiled(schema: dict[str, Any] | bool) -> Validator:  # noqa: FBT001 - true and false are schemas
    try:
        return compile_schema(schema)
    except SchemaError:
        # Registration refuses such schemas; one that got here all the same lets nothing through.
        return lambda _payload: "the schema registered for this command cannot be used"


def _unstarred(name: str) -> str | None:
    return None if name == "*" else name
