"""Which events alert whom: a tenant's own choice."""

from __future__ import annotations

import msgspec

from snavio.control.authority import Principal
from snavio.control.directory import Directory
from snavio.control.problems import Fault, Missing, raise_faults
from snavio.telemetry.alert_store import AlertStore, BadSettings
from snavio.telemetry.channels import CRITICAL, AlertSettings, Dashboard, Email


class Alerts:
    """Alert channels, changed by the tenant, audited."""

    def __init__(self, store: AlertStore, directory: Directory) -> None:
        self._store = store
        self._directory = directory

    async def choose(self, principal: Principal, tenant: str, settings: AlertSettings) -> AlertSettings:
        """Replace a tenant's channels."""
        principal.require_tenant(tenant)
        if await self._directory.tenant(tenant) is None:
            raise Missing("unknown-tenant", f"No tenant {tenant} is registered.")
        try:
            await self._store.choose(tenant, settings)
        except BadSettings as refused:
            raise_faults([Fault("bad-channel", problem, "/channels") for problem in refused.problems])
        await self._directory.note(
            actor=principal.subject,
            action="alerts.choose",
            subject=f"alerts#{tenant}",
            tenant=tenant,
            after=msgspec.json.encode(settings).decode(),
        )
        return settings

    async def chosen(self, principal: Principal, tenant: str) -> AlertSettings:
        """A tenant's channels."""
        if not principal.sees(tenant):
            raise Missing("unknown-tenant", f"No tenant {tenant} is registered.")
        return await self._store.settings(tenant) or AlertSettings()

    async def default(self, principal: Principal, tenant: str, email: str | None) -> None:
        """Have critical events mailed to the tenant's contact, unless it has chosen already."""
        if email is None or await self._store.settings(tenant) is not None:
            return
        channels = (Dashboard(), Email((email,)))
        await self.choose(principal, tenant, AlertSettings(dict.fromkeys(sorted(CRITICAL), channels)))

    async def forget(self, tenant: str) -> None:
        """Let the next tenant of this name begin with no channels and a signing secret of its own."""
        await self._store.choose(tenant, AlertSettings())
        await self._store.replace_secret(tenant)
