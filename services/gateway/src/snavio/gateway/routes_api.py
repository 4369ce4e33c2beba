"""Routes and grants over HTTP: what the owner of a target decides."""

from __future__ import annotations

from litestar import Controller, delete, get, put
from litestar.params import FromPath, FromQuery, JSONBody

from snavio.control.routes import RouteSpec
from snavio.control.rules import GrantSpec
from snavio.gateway.route_documents import GrantDocument, HealthDocument, RouteDocument
from snavio.gateway.site import Caller, Here


class RoutesApi(Controller):
    """Where commands go."""

    path = "/api/v1/routes"
    tags = ("routes",)

    @get()
    async def list_routes(
        self, here: Here, caller: Caller, target: FromQuery[str | None] = None
    ) -> list[RouteDocument]:
        """Every route the caller may see, of one target where given."""
        return [RouteDocument.of(route) for route in await here.control.routes.list(caller, target)]

    @put("/{target:str}/{command:str}")
    async def put_route(
        self,
        here: Here,
        caller: Caller,
        target: FromPath[str],
        command: FromPath[str],
        data: JSONBody[RouteSpec],
        dry_run: FromQuery[bool] = False,  # noqa: FBT002 - a query parameter
    ) -> RouteDocument:
        """Register or change a route. A target belongs to the tenant that registers its first route.

        With `dry_run` everything is checked and a test command is sent through the dispatchers' own decisions, and
        nothing is written.
        """
        report = await here.control.routes.put(caller, target, command, data, dry_run=dry_run)
        return RouteDocument.reported(report, dry_run=dry_run)

    @get("/{target:str}/{command:str}")
    async def get_route(
        self, here: Here, caller: Caller, target: FromPath[str], command: FromPath[str]
    ) -> RouteDocument:
        """One route."""
        return RouteDocument.of(await here.control.routes.get(caller, target, command))

    @delete("/{target:str}/{command:str}")
    async def delete_route(
        self, here: Here, caller: Caller, target: FromPath[str], command: FromPath[str]
    ) -> None:
        """Remove a route. The target stays its owner's."""
        await here.control.routes.delete(caller, target, command)

    @get("/{target:str}/{command:str}/health")
    async def route_health(
        self, here: Here, caller: Caller, target: FromPath[str], command: FromPath[str]
    ) -> HealthDocument:
        """How the route's queue is doing."""
        return HealthDocument.of(target, command, await here.control.health.of(caller, target, command))

    @get("/{target:str}/{command:str}/acls")
    async def list_grants(
        self, here: Here, caller: Caller, target: FromPath[str], command: FromPath[str]
    ) -> list[GrantDocument]:
        """Who may send the command."""
        return [GrantDocument.of(grant) for grant in await here.control.rules.grants(caller, target, command)]


class GrantsApi(Controller):
    """Who may send what to whom."""

    path = "/api/v1/acls/{tenant:str}/{service:str}/{target:str}/{command:str}"
    tags = ("grants",)

    @put()
    async def grant(
        self,
        here: Here,
        caller: Caller,
        tenant: FromPath[str],
        service: FromPath[str],
        target: FromPath[str],
        command: FromPath[str],
        data: JSONBody[GrantSpec | None] = None,
    ) -> GrantDocument:
        """Let a source send a command to a target of the caller's."""
        source = f"{tenant}/{service}"
        return GrantDocument.of(
            await here.control.rules.grant(caller, source, target, command, data or GrantSpec())
        )

    @delete()
    async def revoke(
        self,
        here: Here,
        caller: Caller,
        tenant: FromPath[str],
        service: FromPath[str],
        target: FromPath[str],
        command: FromPath[str],
    ) -> None:
        """Take a grant back."""
        await here.control.rules.revoke(caller, f"{tenant}/{service}", target, command)
