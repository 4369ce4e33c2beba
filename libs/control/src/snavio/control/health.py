"""How a route's queue is doing: what the monitor found last, and what SQS says now."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from snavio.aws.errors import SnavioError
from snavio.aws.ports import Tables
from snavio.control.authority import Principal
from snavio.control.ports import TargetQueues
from snavio.control.routes import Routes
from snavio.wire.names import Names


class HealthStatus(StrEnum):
    """What the monitor makes of a route."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    """The oldest message is older than twice the expected time to drain."""
    STALLED = "stalled"
    """Depth grows steadily."""
    UNPOLLED = "unpolled"
    """Messages wait and none is ever in flight."""
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"
    """Not looked at yet."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the monitor found, as it lies in the control table."""

    status: HealthStatus
    checked_at: float
    oldest_age_seconds: float | None = None
    detail: str = ""


class Depths(msgspec.Struct, frozen=True, kw_only=True):
    """What SQS says of a queue now; approximate, as SQS is."""

    waiting: int
    in_flight: int
    delayed: int


class RouteHealth(msgspec.Struct, frozen=True):
    """Both together. `depths` is None when the queue cannot be reached."""

    verdict: Verdict | None
    depths: Depths | None
    dlq_waiting: int | None


def verdict_key(target: str, command: str) -> dict[str, str | int | bytes]:
    """Where the monitor leaves its verdict in the control table, as JSON in `body`."""
    return {"pk": f"health#{target}", "sk": command}


class Health:
    """Reads the health of routes."""

    def __init__(self, tables: Tables, routes: Routes, queues: TargetQueues, names: Names) -> None:
        self._tables = tables
        self._routes = routes
        self._queues = queues
        self._names = names

    async def of(self, principal: Principal, target: str, command: str) -> RouteHealth:
        """The health of one route."""
        route = await self._routes.get(principal, target, command)
        item = await self._tables.get(self._names.control, verdict_key(target, command))
        verdict = msgspec.json.decode(str(item["body"]), type=Verdict) if item else None
        queue = await self._attributes(route.queue_arn)
        dlq = await self._attributes(route.dlq_arn) if route.dlq_arn else None
        return RouteHealth(verdict, _depths(queue) if queue else None, _depths(dlq).waiting if dlq else None)

    async def _attributes(self, arn: str) -> Mapping[str, str] | None:
        try:
            return await self._queues.attributes(arn)
        except SnavioError:
            return None


def _depths(attributes: Mapping[str, str]) -> Depths:
    return Depths(
        waiting=int(attributes.get("ApproximateNumberOfMessages", "0")),
        in_flight=int(attributes.get("ApproximateNumberOfMessagesNotVisible", "0")),
        delayed=int(attributes.get("ApproximateNumberOfMessagesDelayed", "0")),
    )
