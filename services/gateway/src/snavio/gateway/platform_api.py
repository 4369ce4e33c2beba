"""What administrators decide, and what happened: quotas, bans, settings, history, health."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Controller, Response, delete, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from snavio.control.rules import BanSpec, SettingsSpec
from snavio.domain.models import DispatchMode, RateLimit
from snavio.gateway.history_documents import AuditDocument, ChangeDocument, ChangelogDocument
from snavio.gateway.route_documents import BanDocument, QuotaDocument
from snavio.gateway.site import Caller, Here

Limit = Annotated[int, QueryParameter(ge=1, le=500)]


class SettingsDocument(msgspec.Struct, frozen=True):
    """The platform's settings."""

    dispatch_mode: DispatchMode | None


class Health(msgspec.Struct, frozen=True):
    """Whether all is well, and if not, why."""

    ok: bool
    reasons: list[str]


class QuotasApi(Controller):
    """Limits on one source."""

    path = "/api/v1/quotas/{tenant:str}/{service:str}"
    tags = ("quotas",)

    @get()
    async def list_quotas(
        self, here: Here, caller: Caller, tenant: FromPath[str], service: FromPath[str]
    ) -> list[QuotaDocument]:
        """The quotas of a source."""
        found = await here.control.rules.quotas(caller, f"{tenant}/{service}")
        return [QuotaDocument.of(quota) for quota in found]

    @put("/{target:str}/{command:str}")
    async def set_quota(
        self,
        here: Here,
        caller: Caller,
        tenant: FromPath[str],
        service: FromPath[str],
        target: FromPath[str],
        command: FromPath[str],
        data: JSONBody[RateLimit],
    ) -> QuotaDocument:
        """Limit one source for one command. Looked at only while the source is off the warm path."""
        source = f"{tenant}/{service}"
        return QuotaDocument.of(await here.control.rules.set_quota(caller, source, target, command, data))

    @delete("/{target:str}/{command:str}")
    async def delete_quota(
        self,
        here: Here,
        caller: Caller,
        tenant: FromPath[str],
        service: FromPath[str],
        target: FromPath[str],
        command: FromPath[str],
    ) -> None:
        """Remove a source's own limit."""
        await here.control.rules.delete_quota(caller, f"{tenant}/{service}", target, command)


class BansApi(Controller):
    """Who is shut out."""

    path = "/api/v1/bans"
    tags = ("bans",)

    @get()
    async def list_bans(self, here: Here, caller: Caller) -> list[BanDocument]:
        """Every ban in force that concerns the caller."""
        return [BanDocument.of(ban) for ban in await here.control.rules.bans(caller)]

    @put("/{tenant:str}/{service:str}")
    async def ban(
        self,
        here: Here,
        caller: Caller,
        tenant: FromPath[str],
        service: FromPath[str],
        data: JSONBody[BanSpec],
    ) -> BanDocument:
        """Shut a source out, everywhere or from one target or command."""
        return BanDocument.of(await here.control.rules.ban(caller, f"{tenant}/{service}", data))

    @delete("/{tenant:str}/{service:str}")
    async def lift(
        self,
        here: Here,
        caller: Caller,
        tenant: FromPath[str],
        service: FromPath[str],
        target: FromQuery[str | None] = None,
        command: FromQuery[str | None] = None,
    ) -> None:
        """End a ban: the one for exactly this target and command."""
        await here.control.rules.lift(caller, f"{tenant}/{service}", target, command)


class PlatformApi(Controller):
    """Settings and history."""

    path = "/api/v1"
    tags = ("platform",)

    @get("/settings")
    async def get_settings(self, here: Here, caller: Caller) -> SettingsDocument:
        """The platform's settings."""
        return SettingsDocument((await here.control.rules.settings(caller)).dispatch_mode)

    @put("/settings")
    async def put_settings(
        self, here: Here, caller: Caller, data: JSONBody[SettingsSpec]
    ) -> SettingsDocument:
        """Change the platform's settings; effective as soon as workers refresh."""
        return SettingsDocument((await here.control.rules.change_settings(caller, data)).dispatch_mode)

    @get("/changelog")
    async def changelog(
        self,
        here: Here,
        caller: Caller,
        after: Annotated[int | None, QueryParameter(ge=0)] = None,
        limit: Limit = 50,
        kind: FromQuery[str | None] = None,
    ) -> ChangelogDocument:
        """Changes of the registry that concern the caller: those after a number, or the latest."""
        history = here.control.history
        if after is None:
            return ChangelogDocument.of(await history.latest(caller, limit=limit, kind=kind))
        return ChangelogDocument.of(await history.changes(caller, after=after, limit=limit, kind=kind))

    @post("/changelog/{seq:int}/rollback", status_code=200)
    async def roll_back(self, here: Here, caller: Caller, seq: FromPath[int]) -> ChangeDocument | None:
        """Put back what was there before a change; null when that is how it is already."""
        made = await here.control.history.roll_back(caller, seq)
        return None if made is None else ChangeDocument.of(made)

    @get("/audit")
    async def audit(
        self,
        here: Here,
        caller: Caller,
        month: Annotated[str | None, QueryParameter(pattern=r"^[0-9]{4}-[0-9]{2}$")] = None,
        limit: Limit = 50,
    ) -> list[AuditDocument]:
        """Changes of tenants, services, owners, tokens and alerts, newest first; of this month unless another is given."""
        return [
            AuditDocument.of(record)
            for record in await here.control.history.audit(caller, month=month, limit=limit)
        ]


@get("/healthz", tags=["platform"], security=[])
async def healthz(here: Here) -> Response[Health]:
    """Whether the process should be kept."""
    return _health(list(here.ailments()))


@get("/readyz", tags=["platform"], security=[])
async def readyz(here: Here) -> Response[Health]:
    """Whether requests should be sent here."""
    return _health(list(here.unready()))


def _health(reasons: list[str]) -> Response[Health]:
    return Response(Health(not reasons, reasons), status_code=503 if reasons else 200)
