"""Who may send what, and how much: grants, quotas, bans and the platform's settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from snavio.control.authority import Principal
from snavio.control.catalogue import Catalogue
from snavio.control.directory import Directory
from snavio.control.models import State
from snavio.control.problems import Fault, Missing, raise_faults
from snavio.control.routes import Moment, Routes, require_in_utc
from snavio.domain.models import (
    Ban,
    BanMode,
    Command,
    DispatchMode,
    Grant,
    Name,
    Quota,
    RateLimit,
    Sensitivity,
    Settings,
)
from snavio.registry.store import RegistryStore
from snavio.wire.names import tenant_of


class GrantSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of a grant."""

    sensitivity: Sensitivity | None = None
    """The route's when not given."""
    expires_at: Moment | None = None

    def __post_init__(self) -> None:
        require_in_utc(self.expires_at)


class BanSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of a ban."""

    mode: BanMode = BanMode.OUTRIGHT
    target: Name | None = None
    command: Command | None = None
    until: Moment | None = None
    """Open-ended when not given."""
    reason: Annotated[str, msgspec.Meta(max_length=500)] = ""

    def __post_init__(self) -> None:
        require_in_utc(self.until)


class SettingsSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The platform's settings, all of them."""

    dispatch_mode: DispatchMode | None = None
    """The configured mode when not given."""


class Rules:
    """Grants by the target's owner; quotas, bans and settings by administrators."""

    def __init__(
        self,
        store: RegistryStore,
        directory: Directory,
        catalogue: Catalogue,
        routes: Routes,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._directory = directory
        self._catalogue = catalogue
        self._routes = routes
        self._clock = clock

    # Grants
    async def grant(
        self, principal: Principal, source: str, target: str, command: str, spec: GrantSpec
    ) -> Grant:
        """Let a source send a command to a target."""
        await self._routes.require_owner(principal, target)
        faults = await self._source_faults(source)
        if await self._store.route(target, command) is None:
            faults.append(Fault("unknown-route", f"No route {target} {command} is registered.", "/command"))
        if spec.expires_at is not None and spec.expires_at.timestamp() <= self._clock():
            faults.append(Fault("bad-value", "expires_at is in the past.", "/expires_at"))
        raise_faults(faults)
        grant = Grant(
            source=source,
            target=target,
            command=command,
            sensitivity=spec.sensitivity,
            expires_at=spec.expires_at.timestamp() if spec.expires_at else None,
        )
        await self._store.put_grant(grant, actor=principal.subject)
        return grant

    async def revoke(self, principal: Principal, source: str, target: str, command: str) -> None:
        """Take a grant back."""
        await self._routes.require_owner(principal, target)
        if not await self._store.revoke_grant(source, target, command, actor=principal.subject):
            raise Missing("unknown-grant", f"{source} has no grant for {target} {command}.")

    async def grants(self, principal: Principal, target: str, command: str) -> list[Grant]:
        """The grants for one command, to the target's owner and to whoever sees the whole platform."""
        owner = await self._directory.owner(target)
        if owner is None or not principal.sees(owner.tenant):
            raise Missing("unknown-target", f"No route for target {target} was ever registered.")
        return await self._store.grants_of(target, command)

    async def forget_source(self, principal: Principal, source: str) -> None:
        """Remove every grant and quota of a source that leaves. Its bans stay: a new name would not lift them."""
        for target, command in (await self._catalogue.current()).grants.of_source(source):
            await self._store.revoke_grant(source, target, command, actor=principal.subject)
        for quota in await self._store.quotas_of(source):
            await self._store.delete_quota(source, quota.target, quota.command, actor=principal.subject)

    # Quotas
    async def set_quota(
        self, principal: Principal, source: str, target: str, command: str, limit: RateLimit
    ) -> Quota:
        """Limit one source for one (target, command)."""
        principal.require_admin()
        raise_faults(await self._source_faults(source))
        quota = Quota(source=source, target=target, command=command, rate_limit=limit)
        await self._store.put_quota(quota, actor=principal.subject)
        return quota

    async def delete_quota(self, principal: Principal, source: str, target: str, command: str) -> None:
        """Remove a source's own limit."""
        principal.require_admin()
        if not await self._store.delete_quota(source, target, command, actor=principal.subject):
            raise Missing("unknown-quota", f"{source} has no quota for {target} {command}.")

    async def quotas(self, principal: Principal, source: str) -> list[Quota]:
        """The quotas of a source."""
        if not principal.sees(tenant_of(source)):
            raise Missing("unknown-source", f"No service {source} is registered.")
        return await self._store.quotas_of(source)

    # Bans
    async def ban(self, principal: Principal, source: str, spec: BanSpec) -> Ban:
        """Shut a source out."""
        principal.require_admin()
        faults = await self._source_faults(source)
        if spec.command is not None and spec.target is None:
            faults.append(Fault("missing-field", "A ban from a command also names its target.", "/target"))
        if spec.until is not None and spec.until.timestamp() <= self._clock():
            faults.append(Fault("bad-value", "until is in the past.", "/until"))
        raise_faults(faults)
        ban = Ban(
            source=source,
            mode=spec.mode,
            target=spec.target,
            command=spec.command,
            until=spec.until.timestamp() if spec.until else None,
            reason=spec.reason,
        )
        await self._store.put_ban(ban, actor=principal.subject)
        return ban

    async def lift(self, principal: Principal, source: str, target: str | None, command: str | None) -> None:
        """End a ban."""
        principal.require_admin()
        if not await self._store.lift_ban(source, target, command, actor=principal.subject):
            raise Missing("unknown-ban", f"{source} has no such ban.")

    async def bans(self, principal: Principal) -> list[Ban]:
        """Every ban in force against a source, or for a target, of the caller's."""
        principal.require_viewer()
        registry = await self._catalogue.current()
        bans = registry.bans(self._clock())
        if principal.tenant is not None:
            own = {
                owner.target for owner in await self._directory.targets() if owner.tenant == principal.tenant
            }
            bans = [ban for ban in bans if tenant_of(ban.source) == principal.tenant or ban.target in own]
        return sorted(bans, key=lambda ban: (ban.source, ban.target or "", ban.command or ""))

    # Settings
    async def settings(self, principal: Principal) -> Settings:
        """The platform's settings."""
        if not principal.sees(None):
            principal.require_admin()
        return await self._store.settings()

    async def change_settings(self, principal: Principal, spec: SettingsSpec) -> Settings:
        """Change the platform's settings."""
        principal.require_admin()
        settings = Settings(dispatch_mode=spec.dispatch_mode)
        await self._store.put_settings(settings, actor=principal.subject)
        return settings

    async def _source_faults(self, source: str) -> list[Fault]:
        tenant, _, name = source.partition("/")
        service = await self._directory.service(tenant, name)
        if service is None or service.state is State.DELETING:
            return [Fault("unknown-source", f"No service {source} is registered.", "/service")]
        return []
