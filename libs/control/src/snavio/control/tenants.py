"""Registering tenants and their services, and undoing it.

Each registration first records what is meant, then brings AWS to it by steps that may be repeated, then says so. What
stopped half-way goes on when the request is sent again; `resume` finds and finishes it without being asked.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Awaitable, Callable
from typing import Annotated

import anyio
import msgspec

from snavio.control.authority import Principal
from snavio.control.convergence import Convergence
from snavio.control.directory import CHANGED_MEANWHILE, Directory, Edit
from snavio.control.emit_policy import emit_faults
from snavio.control.keys import IssuedKey, Keys
from snavio.control.models import Email, RoleArn, Service, State, Tenant
from snavio.control.problems import Conflict, Fault, Invalid, Missing, raise_faults
from snavio.domain.models import Name
from snavio.wire.names import Names

_ROLE_NAME_CHARACTERS = 64
_QUEUE_NAME_CHARACTERS = 80
_ROUNDS = 5


class TenantSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of a tenant's registration."""

    tenant: Name
    contact_email: Email | None = None
    sender_role_arns: Annotated[tuple[RoleArn, ...], msgspec.Meta(max_length=100)] = ()


class TenantChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be changed of a tenant; what is not given stays."""

    contact_email: Email | msgspec.UnsetType | None = msgspec.UNSET
    sender_role_arns: Annotated[tuple[RoleArn, ...], msgspec.Meta(max_length=100)] | msgspec.UnsetType = (
        msgspec.UNSET
    )


class ServiceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of a service's registration."""

    service: Name
    sender_role_arn: RoleArn | None = None


class Tenants:
    """Tenants and services, from the intent to the last AWS resource."""

    def __init__(
        self,
        directory: Directory,
        keys: Keys,
        convergence: Convergence,
        names: Names,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._directory = directory
        self._keys = keys
        self._convergence = convergence
        self._names = names
        self._clock = clock

    async def register(self, principal: Principal, spec: TenantSpec) -> Tenant:
        """Register a tenant, or go on with a registration that stopped. The same registration again changes nothing."""
        principal.require_admin()
        tenant = Tenant(
            tenant=spec.tenant,
            registration=uuid.uuid4().hex,
            created_at=self._clock(),
            contact_email=spec.contact_email,
            sender_role_arns=tuple(sorted(set(spec.sender_role_arns))),
        )
        raise_faults(tenant_faults(self._names, tenant))
        standing = await self._directory.tenant(spec.tenant)
        if standing is None:
            await self._edit(principal, "tenant.register", Edit(None, tenant))
        elif standing.state is State.DELETING:
            raise Conflict("tenant-being-deleted", f"Tenant {spec.tenant} is being deleted.")
        elif not _same_request(standing, tenant):
            raise Conflict("tenant-exists", f"Tenant {spec.tenant} is registered with other particulars.")
        try:
            return await self._convergence.apply(principal, spec.tenant)
        except Invalid:
            # IAM knows no such sender, and nothing was made: what was meant must not stand in the way of another try.
            refused = await self._convergence.standing(spec.tenant)
            if refused.state is State.REGISTERING:
                await self._edit(principal, "tenant.refused", Edit(refused, None))
            raise

    async def change(self, principal: Principal, name: str, change: TenantChange) -> Tenant:
        """Change a tenant's address or the roles that may emit for it."""
        principal.require_admin()
        tenant = await self._convergence.standing(name)
        changed = msgspec.structs.replace(
            tenant,
            contact_email=tenant.contact_email
            if change.contact_email is msgspec.UNSET
            else change.contact_email,
            sender_role_arns=(
                tenant.sender_role_arns
                if change.sender_role_arns is msgspec.UNSET
                else tuple(sorted(set(change.sender_role_arns)))
            ),
            revision=tenant.revision + 1,
        )
        raise_faults(emit_faults(self._names, changed, await self._directory.services(name)))
        await self._edit(principal, "tenant.change", Edit(tenant, changed))
        try:
            return await self._convergence.apply(principal, name)
        except Invalid:
            restored = msgspec.structs.replace(tenant, revision=changed.revision + 1)
            await self._edit(
                principal, "tenant.refused", Edit(await self._convergence.standing(name), restored)
            )
            await self._convergence.apply(principal, name)
            raise

    async def register_service(self, principal: Principal, name: str, spec: ServiceSpec) -> IssuedKey:
        """Register a service, or go on with a registration that stopped; gives its current key."""
        principal.require_tenant(name)
        service = await _insisting(lambda: self._intend_service(principal, name, spec))
        key = await self._keys.first(service.source, actor=principal.subject)
        try:
            await self._convergence.apply(principal, name)
        except Invalid:
            # Left as it is, a sender IAM does not know would keep every other service of the tenant from its role.
            leaving = await self.begin_delete_service(principal, name, spec.service)
            await self.finish_delete_service(principal, leaving)
            raise
        return key

    async def begin_delete_service(self, principal: Principal, name: str, service_name: str) -> Service:
        """Shut a service out: its keys are unknown and the emit role no longer carries its source."""
        principal.require_tenant(name)
        service = await _insisting(lambda: self._intend_delete_service(principal, name, service_name))
        await self._keys.revoke(service.source, actor=principal.subject)
        await self._convergence.apply(principal, name)
        return service

    async def finish_delete_service(self, principal: Principal, service: Service) -> None:
        """Forget a service that was shut out."""
        await self._edit(principal, "service.deleted", Edit(service, None))

    async def begin_delete(self, principal: Principal, name: str) -> Tenant:
        """Shut a tenant out: no key of it is accepted and no session of its emit role may emit any more."""
        principal.require_admin()
        tenant = await self._directory.tenant(name)
        if tenant is None:
            raise Missing("unknown-tenant", f"No tenant {name} is registered.")
        if tenant.state is not State.DELETING:
            leaving = msgspec.structs.replace(tenant, state=State.DELETING)
            await self._edit(principal, "tenant.delete", Edit(tenant, leaving))
            tenant = leaving
        for service in await self._directory.services(name):
            await self._keys.revoke(service.source, actor=principal.subject)
        await self._convergence.shut(name)
        return tenant

    async def finish_delete(self, principal: Principal, tenant: Tenant) -> None:
        """Remove what is left of a tenant that was shut out."""
        await self._convergence.clear(tenant.tenant)
        for service in await self._directory.services(tenant.tenant):
            await self._edit(principal, "service.deleted", Edit(service, None))
        await self._edit(principal, "tenant.deleted", Edit(tenant, None))

    async def get(self, principal: Principal, name: str) -> tuple[Tenant, list[Service]]:
        """A tenant and its services."""
        tenant = await self._directory.tenant(name) if principal.sees(name) else None
        if tenant is None:
            raise Missing("unknown-tenant", f"No tenant {name} is registered.")
        return tenant, await self._directory.services(name)

    async def list(self, principal: Principal) -> list[Tenant]:
        """Every tenant the caller may see."""
        principal.require_viewer()
        if principal.tenant is not None:
            own = await self._directory.tenant(principal.tenant)
            return [own] if own else []
        return await self._directory.tenants()

    async def unfinished(self) -> list[str]:
        """The tenants with a registration that stopped half-way."""
        return [
            tenant.tenant
            for tenant in await self._directory.tenants()
            if tenant.state is State.REGISTERING
            or (tenant.state is State.ACTIVE and tenant.applied < tenant.revision)
        ]

    async def resume(self, principal: Principal, name: str) -> None:
        """Finish a tenant's registrations that stopped half-way."""
        for service in await self._directory.services(name):
            if service.state is State.REGISTERING:
                await self._keys.first(service.source, actor=principal.subject)
        await self._convergence.apply(principal, name)

    async def _intend_service(self, principal: Principal, name: str, spec: ServiceSpec) -> Service:
        tenant = await self._convergence.standing(name)
        services = await self._directory.services(name)
        standing = next((each for each in services if each.service == spec.service), None)
        if standing is None:
            service = Service(
                tenant=name,
                service=spec.service,
                created_at=self._clock(),
                sender_role_arn=spec.sender_role_arn,
            )
            raise_faults(emit_faults(self._names, tenant, [*services, service]))
            await self._edit(principal, "service.register", Edit(None, service), _raised(tenant))
            return service
        if standing.state is State.DELETING:
            raise Conflict("service-being-deleted", f"Service {standing.source} is being deleted.")
        if standing.sender_role_arn != spec.sender_role_arn:
            raise Conflict(
                "service-exists", f"Service {standing.source} is registered with another sender role."
            )
        return standing

    async def _intend_delete_service(self, principal: Principal, name: str, service_name: str) -> Service:
        service = await self._directory.service(name, service_name)
        if service is None:
            raise Missing("unknown-service", f"No service {name}/{service_name} is registered.")
        if service.state is State.DELETING:
            return service
        leaving = msgspec.structs.replace(service, state=State.DELETING)
        tenant = await self._convergence.standing(name)
        await self._edit(principal, "service.delete", Edit(service, leaving), _raised(tenant))
        return leaving

    async def _edit(self, principal: Principal, action: str, *edits: Edit) -> None:
        await self._directory.change(edits, actor=principal.subject, action=action)


async def _insisting(act: Callable[[], Awaitable[Service]]) -> Service:
    """Try again what lost a race: two services of one tenant may be registered at the same time."""
    for attempt in range(_ROUNDS):
        try:
            return await act()
        except Conflict as conflict:
            if conflict.kind != CHANGED_MEANWHILE or attempt == _ROUNDS - 1:
                raise
        await anyio.sleep(random.uniform(0, 0.02 * 2**attempt))
    raise AssertionError("unreachable")


def _raised(tenant: Tenant) -> Edit:
    return Edit(tenant, msgspec.structs.replace(tenant, revision=tenant.revision + 1))


def tenant_faults(names: Names, tenant: Tenant) -> list[Fault]:
    """What keeps a tenant from having its role and queues under its name."""
    faults: list[Fault] = []
    room = min(
        _ROLE_NAME_CHARACTERS - len(names.emit_role("")),
        _QUEUE_NAME_CHARACTERS - len(names.dlq(names.telemetry(""))),
    )
    if len(tenant.tenant) > room:
        faults.append(Fault("bad-name", f"Here a tenant's name has at most {room} characters.", "/tenant"))
    if tenant.tenant.endswith("-dlq"):
        detail = (
            "A tenant's name may not end in -dlq: its telemetry queue would be another's dead-letter queue."
        )
        faults.append(Fault("bad-name", detail, "/tenant"))
    return faults + emit_faults(names, tenant, [])


def _same_request(standing: Tenant, asked: Tenant) -> bool:
    return (
        standing.contact_email == asked.contact_email and standing.sender_role_arns == asked.sender_role_arns
    )
