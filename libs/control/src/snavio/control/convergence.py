"""Bringing AWS to what is registered of a tenant, by steps that may be repeated."""

from __future__ import annotations

import msgspec

from snavio.control.authority import Principal
from snavio.control.directory import CHANGED_MEANWHILE, Directory, Edit
from snavio.control.emit_policy import emit_role, senders_of
from snavio.control.models import State, Tenant
from snavio.control.ports import EmitRoles, Pipelines
from snavio.control.problems import Conflict, Missing
from snavio.wire.names import Names

_ROUNDS = 5


class Convergence:
    """Makes the emit role say what is registered and the telemetry pipeline be there, then records that they are."""

    def __init__(self, directory: Directory, roles: EmitRoles, pipelines: Pipelines, names: Names) -> None:
        self._directory = directory
        self._roles = roles
        self._pipelines = pipelines
        self._names = names

    async def apply(self, principal: Principal, name: str) -> Tenant:
        """Bring AWS to what is registered, and again when that changed meanwhile."""
        for _ in range(_ROUNDS):
            tenant = await self.standing(name)
            services = await self._directory.services(name)
            emitting = [service for service in services if service.state is not State.DELETING]
            # A reader that IAM refuses is refused here first, before a queue's policy would name it.
            await self._roles.ensure(
                self._names.emit_role(name), emit_role(self._names, tenant, emitting), tenant=name
            )
            await self._pipelines.ensure(name, senders_of(tenant, emitting))
            if tenant.state is State.ACTIVE and tenant.applied == tenant.revision:
                if await self._directory.tenant(name) == tenant:
                    return tenant
                continue
            done = msgspec.structs.replace(tenant, state=State.ACTIVE, applied=tenant.revision)
            edits = [Edit(tenant, done)]
            edits += [
                Edit(service, msgspec.structs.replace(service, state=State.ACTIVE))
                for service in emitting
                if service.state is State.REGISTERING
            ]
            try:
                await self._directory.change(edits, actor=principal.subject, action="tenant.applied")
            except Conflict:
                # Another registration moved on: what was just written may be older than what is registered.
                continue
            return done
        raise Conflict(
            CHANGED_MEANWHILE, f"Tenant {name} is being changed by others; send the request again."
        )

    async def standing(self, name: str) -> Tenant:
        """A tenant that is there to stay."""
        tenant = await self._directory.tenant(name)
        if tenant is None:
            raise Missing("unknown-tenant", f"No tenant {name} is registered.")
        if tenant.state is State.DELETING:
            raise Conflict("tenant-being-deleted", f"Tenant {name} is being deleted.")
        return tenant

    async def shut(self, tenant: str) -> None:
        """Take from the emit role, and from its sessions, everything it may do."""
        await self._roles.revoke(self._names.emit_role(tenant))

    async def clear(self, tenant: str) -> None:
        """Remove what was made for a tenant."""
        await self._roles.remove(self._names.emit_role(tenant))
        await self._pipelines.remove(tenant)
