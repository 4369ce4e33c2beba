"""Registering routes: whose target it is, whether its queue is fit, what a test command would meet."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from snavio.aws.errors import NotFound, Permanent
from snavio.control.authority import Principal
from snavio.control.catalogue import Catalogue
from snavio.control.directory import Directory, Edit
from snavio.control.models import Owner, State
from snavio.control.ports import TargetQueues
from snavio.control.problems import Conflict, Fault, Forbidden, Invalid, Missing
from snavio.control.route_checks import (
    Check,
    Look,
    QueueAbsent,
    QueueClosed,
    QueueFound,
    arn_check,
    dlq_of,
    faults_of,
    queue_checks,
)
from snavio.control.trial import Trial, try_route
from snavio.domain.models import (
    DedupeMode,
    DispatchMode,
    FairnessPolicy,
    Name,
    Positive,
    RateLimit,
    Route,
    Sensitivity,
)
from snavio.registry.schemas import SchemaError, compile_schema
from snavio.registry.sealing import Sealer
from snavio.registry.store import RegistryStore
from snavio.wire.names import Names

_SCHEMA_BYTES = 65_536
_SOURCES_TRIED = 20
_LEAST_MESSAGE_BYTES = 1024

Moment = Annotated[datetime, msgspec.Meta(tz=True)]


def require_in_utc(moment: datetime | None) -> None:
    """Raise `ValueError` for a moment the calendar has with its offset and not in UTC, in which it is told."""
    try:
        if moment is not None:
            moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("The moment lies outside the years 1 to 9999 in UTC") from None


class RouteSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of a route."""

    queue_arn: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
    dlq_arn: Annotated[str, msgspec.Meta(min_length=1, max_length=300)] | None = None
    dedupe_mode: DedupeMode = DedupeMode.NONE
    expected_drain_seconds: Positive = 300
    sensitivity: Sensitivity = Sensitivity.MODERATE
    rate_limit: RateLimit | None = None
    fairness: FairnessPolicy | None = None
    schema: dict[str, Any] | bool | None = None
    """JSON Schema of the payload."""
    expires_at: Moment | None = None
    """When an ephemeral route ends."""
    tenant: Name | None = None
    """Whose target it is, where an administrator registers its first route."""

    def __post_init__(self) -> None:
        require_in_utc(self.expires_at)


class RouteReport(msgspec.Struct, frozen=True):
    """A route as it is or would be, what was checked, and what a test command would meet."""

    route: Route
    checks: list[Check]
    trials: list[Trial]


class Routes:
    """Routes of targets, each changed by its owner alone."""

    def __init__(
        self,
        store: RegistryStore,
        directory: Directory,
        catalogue: Catalogue,
        queues: TargetQueues,
        sealer: Sealer,
        names: Names,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._directory = directory
        self._catalogue = catalogue
        self._queues = queues
        self._sealer = sealer
        self._names = names
        self._clock = clock

    async def put(
        self, principal: Principal, target: str, command: str, spec: RouteSpec, *, dry_run: bool = False
    ) -> RouteReport:
        """Register or change a route; with `dry_run` only say what would come of it. Raises `Invalid` by check."""
        owner = await self._directory.owner(target)
        tenant = await self._tenant_for(principal, target, owner, spec)
        report, faults = await self._examine(target, command, tenant, spec)
        if faults:
            count = "one check" if len(faults) == 1 else f"{len(faults)} checks"
            raise Invalid("route-refused", f"The route fails {count}.", faults, report=report)
        if dry_run:
            return report
        if owner is None:
            await self._claim(principal, target, tenant)
        route = await self._store.put_route(report.route, actor=principal.subject)
        return msgspec.structs.replace(report, route=route)

    async def verify(self, route: Route) -> list[Fault]:
        """Make the checks of a route that is to come back."""
        owner = await self._directory.owner(route.target)
        if owner is None or owner.tenant != route.tenant:
            return [Fault("target-taken", f"Target {route.target} no longer belongs to {route.tenant}.")]
        checks, _ = await self._check_queue(route.queue_arn, route.dlq_arn)
        return faults_of(checks)

    async def get(self, principal: Principal, target: str, command: str) -> Route:
        """One route."""
        route = await self._store.route(target, command)
        if route is None or not principal.sees(route.tenant):
            raise Missing("unknown-route", f"No route {target} {command} is registered.")
        return route

    async def list(self, principal: Principal, target: str | None = None) -> list[Route]:
        """Every route the caller may see, by target and command."""
        principal.require_viewer()
        if target is not None:
            routes = await self._store.routes_of(target)
        else:
            routes = list((await self._catalogue.current()).routes.values())
        return sorted(
            (route for route in routes if principal.sees(route.tenant)),
            key=lambda route: (route.target, route.command),
        )

    async def delete(self, principal: Principal, target: str, command: str) -> None:
        """Remove a route. The target stays its owner's."""
        await self.require_owner(principal, target)
        if not await self._store.delete_route(target, command, actor=principal.subject):
            raise Missing("unknown-route", f"No route {target} {command} is registered.")

    async def require_owner(self, principal: Principal, target: str) -> Owner:
        """Whose target it is; raises unless the caller acts for them."""
        owner = await self._directory.owner(target)
        if owner is None:
            raise Missing("unknown-target", f"No route for target {target} was ever registered.")
        if not principal.acts_for(owner.tenant):
            raise Forbidden("not-your-target", f"Target {target} belongs to another tenant.")
        return owner

    async def forget_targets(self, principal: Principal, tenant: str) -> None:
        """Remove every target of a tenant that leaves: grants first, then routes, then the claim."""
        actor = principal.subject
        for owner in await self._directory.targets():
            if owner.tenant != tenant:
                continue
            # Also those whose route is gone: the next owner of the name must not inherit them.
            for source, command in (await self._catalogue.current()).grants.of_target(owner.target):
                await self._store.revoke_grant(source, owner.target, command, actor=actor)
            for route in await self._store.routes_of(owner.target):
                await self._store.delete_route(route.target, route.command, actor=actor)
            await self._directory.change([Edit(owner, None)], actor=actor, action="target.release")

    async def _tenant_for(
        self, principal: Principal, target: str, owner: Owner | None, spec: RouteSpec
    ) -> str:
        tenant = owner.tenant if owner else principal.tenant or spec.tenant
        if tenant is None:
            fault = Fault("missing-field", f"Say whose target {target} is to be.", "/tenant")
            raise Invalid("invalid-request", "The target belongs to nobody yet.", [fault])
        if not principal.acts_for(tenant):
            raise Forbidden("not-your-target", f"Target {target} belongs to another tenant.")
        if spec.tenant not in {None, tenant}:
            raise Conflict("target-taken", f"Target {target} belongs to tenant {tenant}.")
        found = await self._directory.tenant(tenant)
        if found is None or found.state is State.DELETING:
            raise Missing("unknown-tenant", f"No tenant {tenant} is registered.")
        return tenant

    async def _claim(self, principal: Principal, target: str, tenant: str) -> None:
        claim = Owner(target=target, tenant=tenant, since=self._clock())
        try:
            await self._directory.change([Edit(None, claim)], actor=principal.subject, action="target.claim")
        except Conflict:
            first = await self._directory.owner(target)
            if first is None or first.tenant != tenant:
                raise Forbidden("not-your-target", f"Target {target} belongs to another tenant.") from None

    async def _examine(
        self, target: str, command: str, tenant: str, spec: RouteSpec
    ) -> tuple[RouteReport, list[Fault]]:
        now = self._clock()
        faults = _schema_faults(spec.schema)
        if spec.expires_at is not None and spec.expires_at.timestamp() <= now:
            faults.append(Fault("bad-value", "expires_at is in the past.", "/expires_at"))
        checks, attributes = await self._check_queue(spec.queue_arn, spec.dlq_arn)
        checks.append(await self._check_sharing(spec.queue_arn, tenant))
        route = Route(
            target=target,
            command=command,
            tenant=tenant,
            queue_arn=spec.queue_arn,
            dlq_arn=dlq_of(attributes) or spec.dlq_arn,
            dedupe_mode=spec.dedupe_mode,
            expected_drain_seconds=spec.expected_drain_seconds,
            sensitivity=spec.sensitivity,
            rate_limit=spec.rate_limit,
            fairness=spec.fairness or FairnessPolicy(),
            schema=spec.schema,
            expires_at=spec.expires_at.timestamp() if spec.expires_at else None,
            max_message_bytes=_message_bytes(attributes),
        )
        standing = await self._store.route(target, command)
        route = msgspec.structs.replace(route, version=standing.version + 1 if standing else 1)
        return RouteReport(route, checks, await self._try(route, now)), faults + faults_of(checks)

    async def _try(self, route: Route, now: float) -> list[Trial]:
        grants = (await self._store.grants_of(route.target, route.command))[:_SOURCES_TRIED]
        sources = [grant.source for grant in grants] or [f"{route.tenant}/anybody"]
        bans = [ban for source in sources for ban in await self._store.bans_of(source)]
        mode = (await self._store.settings()).dispatch_mode or DispatchMode.ADAPTIVE
        return try_route(route, grants, bans, sources, sealer=self._sealer, mode=mode, now=now)

    async def _check_queue(self, arn: str, dlq_arn: str | None) -> tuple[list[Check], dict[str, str]]:
        named = arn_check(self._names, arn)
        if not named.passed:
            return [named], {}
        queue = await self._look(arn)
        attributes = dict(queue.attributes) if isinstance(queue, QueueFound) else {}
        attached = dlq_of(attributes)
        dlq = await self._look(attached) if attached else None
        return [named, *queue_checks(self._names, arn, dlq_arn, queue, dlq)], attributes

    async def _look(self, arn: str) -> Look:
        try:
            return QueueFound(await self._queues.attributes(arn))
        except NotFound:
            return QueueAbsent()
        except Permanent:
            return QueueClosed()

    async def _check_sharing(self, arn: str, tenant: str) -> Check:
        """A queue carries one tenant's commands: else registering another's queue would be a way to write to it."""
        routes = (await self._catalogue.current()).routes.values()
        taken = any(route.queue_arn == arn and route.tenant != tenant for route in routes)
        detail = (
            "Another tenant's route leads to this queue." if taken else "No other tenant's route leads there."
        )
        return Check("queue-not-shared", not taken, detail)


def _schema_faults(schema: dict[str, Any] | bool | None) -> list[Fault]:  # noqa: FBT001 - true and false are schemas
    if schema is None:
        return []
    if len(msgspec.json.encode(schema)) > _SCHEMA_BYTES:
        return [Fault("bad-schema", f"The schema has more than {_SCHEMA_BYTES} bytes.", "/schema")]
    try:
        compile_schema(schema)
    except SchemaError as problem:
        return [Fault("bad-schema", f"{str(problem)[:1].upper()}{str(problem)[1:]}.", "/schema")]
    return []


def _message_bytes(attributes: dict[str, str]) -> int:
    try:
        size = int(attributes.get("MaximumMessageSize", ""))
    except ValueError:
        return 262_144
    return min(max(size, _LEAST_MESSAGE_BYTES), 1_048_576)
