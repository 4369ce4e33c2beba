"""Tenants, services and keys over HTTP."""

from __future__ import annotations

from litestar import Controller, delete, get, patch, post, put
from litestar.params import FromPath, FromQuery, JSONBody

from snavio.control.problems import Conflict
from snavio.control.tenants import ServiceSpec, TenantChange, TenantSpec
from snavio.gateway.site import Caller, Here
from snavio.gateway.tenant_documents import (
    ConfigDocument,
    ConfigService,
    FirstKey,
    KeysDocument,
    KeyVersion,
    ServiceRegistered,
    TenantDocument,
    TenantRegistered,
    TokenDocument,
)
from snavio.telemetry.channels import AlertSettings


class TenantsApi(Controller):
    """Who the tenants are."""

    path = "/api/v1/tenants"
    tags = ("tenants",)

    @post()
    async def register_tenant(
        self, here: Here, caller: Caller, data: JSONBody[TenantSpec]
    ) -> TenantRegistered:
        """Register a tenant. Repeating the request finishes what stopped half-way and changes nothing else."""
        control = here.control
        tenant = await control.tenants.register(caller, data)
        await control.alerts.default(caller, tenant.tenant, tenant.contact_email)
        topic = here.names.topic_arn(here.names.telemetry(tenant.tenant))
        return TenantRegistered(
            tenant.tenant,
            here.emit_role_arn(tenant.tenant),
            topic,
            here.telemetry_queue_url(tenant.tenant),
            here.tokens.issue(tenant.tenant, tenant.registration),
        )

    @get()
    async def list_tenants(self, here: Here, caller: Caller) -> list[TenantDocument]:
        """Every tenant the caller may see."""
        found = await here.control.tenants.list(caller)
        return [TenantDocument.of(tenant, here.emit_role_arn(tenant.tenant)) for tenant in found]

    @get("/{tenant:str}")
    async def get_tenant(self, here: Here, caller: Caller, tenant: FromPath[str]) -> TenantDocument:
        """One tenant with its services."""
        found, services = await here.control.tenants.get(caller, tenant)
        return TenantDocument.of(found, here.emit_role_arn(tenant), services)

    @patch("/{tenant:str}")
    async def change_tenant(
        self, here: Here, caller: Caller, tenant: FromPath[str], data: JSONBody[TenantChange]
    ) -> TenantDocument:
        """Change a tenant's address or the roles that may emit for it; effective at once."""
        changed = await here.control.tenants.change(caller, tenant, data)
        return TenantDocument.of(changed, here.emit_role_arn(tenant))

    @delete("/{tenant:str}")
    async def delete_tenant(self, here: Here, caller: Caller, tenant: FromPath[str]) -> None:
        """Shut a tenant out and remove everything of it. Repeating the request finishes what stopped half-way."""
        await here.control.offboarding.delete_tenant(caller, tenant)

    @post("/{tenant:str}/token")
    async def issue_token(self, here: Here, caller: Caller, tenant: FromPath[str]) -> TokenDocument:
        """A new token of a tenant. The older ones stay valid until they expire."""
        caller.require_admin()
        found, _ = await here.control.tenants.get(caller, tenant)
        token = here.tokens.issue(tenant, found.registration)
        if token is None:
            raise Conflict("tokens-elsewhere", "Tokens are issued by the identity provider.")
        await here.control.directory.note(
            actor=caller.subject, action="token.issue", subject=f"tenants#{tenant}", tenant=tenant
        )
        return TokenDocument(tenant, token)

    @put("/{tenant:str}/alerts")
    async def choose_alerts(
        self, here: Here, caller: Caller, tenant: FromPath[str], data: JSONBody[AlertSettings]
    ) -> AlertSettings:
        """Choose the channels for each event type."""
        return await here.control.alerts.choose(caller, tenant, data)

    @get("/{tenant:str}/alerts")
    async def get_alerts(self, here: Here, caller: Caller, tenant: FromPath[str]) -> AlertSettings:
        """The channels chosen."""
        return await here.control.alerts.chosen(caller, tenant)


class ServicesApi(Controller):
    """The producers of a tenant and their keys."""

    path = "/api/v1/tenants/{tenant:str}/services"
    tags = ("services",)

    @post()
    async def register_service(
        self, here: Here, caller: Caller, tenant: FromPath[str], data: JSONBody[ServiceSpec]
    ) -> ServiceRegistered:
        """Register a service. Repeating the request finishes what stopped half-way and changes nothing else."""
        key = await here.control.tenants.register_service(caller, tenant, data)
        return ServiceRegistered(f"{tenant}/{data.service}", FirstKey(key.version_id, key.secret_b64))

    @delete("/{service:str}")
    async def delete_service(
        self, here: Here, caller: Caller, tenant: FromPath[str], service: FromPath[str]
    ) -> None:
        """Shut a service out and remove its keys, grants and quotas."""
        await here.control.offboarding.delete_service(caller, tenant, service)

    @get("/{service:str}/keys")
    async def list_keys(
        self, here: Here, caller: Caller, tenant: FromPath[str], service: FromPath[str]
    ) -> KeysDocument:
        """The versions of a service's key, without secrets."""
        found = await here.control.keys.versions(caller, f"{tenant}/{service}")
        return KeysDocument(
            f"{tenant}/{service}", [KeyVersion.of(key, current=key is found[-1]) for key in found]
        )

    @post("/{service:str}/keys/rotate", status_code=200)
    async def rotate_key(
        self,
        here: Here,
        caller: Caller,
        tenant: FromPath[str],
        service: FromPath[str],
        expected: FromQuery[str | None] = None,
    ) -> KeysDocument:
        """Make a new version; the previous one keeps its grace. `expected` makes repeating the request harmless."""
        source = f"{tenant}/{service}"
        newest, previous = await here.control.keys.rotate(caller, source, expected=expected)
        return KeysDocument(
            source, [KeyVersion.of(previous, current=False), KeyVersion.of(newest, current=True)]
        )


@get("/api/v1/tenant-config", tags=["services"])
async def tenant_config(here: Here, caller: Caller) -> ConfigDocument:
    """Everything the caller's producers need to send. Fetch it about every `poll_interval_seconds`."""
    tenant, sources = await here.control.config.fetch(caller)
    return ConfigDocument(
        tenant=tenant,
        services=[ConfigService.of(source) for source in sources],
        bus=here.names.bus,
        emit_role_arn=here.emit_role_arn(tenant),
        telemetry_queue_url=here.telemetry_queue_url(tenant),
        replay_window_seconds=here.replay_window_seconds,
        poll_interval_seconds=here.poll_interval_seconds,
    )
