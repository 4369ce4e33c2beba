"""Undoing registrations. What could still send is shut out before anything else is touched."""

from __future__ import annotations

from snavio.control.alerts import Alerts
from snavio.control.authority import Principal
from snavio.control.directory import Directory
from snavio.control.routes import Routes
from snavio.control.rules import Rules
from snavio.control.tenants import Tenants


class Offboarding:
    """Deletes services and tenants; each may be repeated until it is done."""

    def __init__(
        self, tenants: Tenants, routes: Routes, rules: Rules, alerts: Alerts, directory: Directory
    ) -> None:
        self._tenants = tenants
        self._routes = routes
        self._rules = rules
        self._alerts = alerts
        self._directory = directory

    async def delete_service(self, principal: Principal, tenant: str, service: str) -> None:
        """Revoke a service, then remove its grants and quotas, then forget it."""
        leaving = await self._tenants.begin_delete_service(principal, tenant, service)
        await self._rules.forget_source(principal, leaving.source)
        await self._tenants.finish_delete_service(principal, leaving)

    async def delete_tenant(self, principal: Principal, tenant: str) -> None:
        """Revoke a tenant, then remove what others granted it, its targets, its telemetry and its role."""
        leaving = await self._tenants.begin_delete(principal, tenant)
        for service in await self._directory.services(tenant):
            await self._rules.forget_source(principal, service.source)
        await self._routes.forget_targets(principal, tenant)
        await self._alerts.forget(tenant)
        await self._tenants.finish_delete(principal, leaving)
