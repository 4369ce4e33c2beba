"""What a leader does, each duty on its own clock, all from one registry."""

from __future__ import annotations

import anyio

from snavio.aws.errors import ConditionFailed, SnavioError, Transient
from snavio.monitor.route_watch import RouteWatch
from snavio.monitor.snapshotting import Snapshotting
from snavio.monitor.upkeep import Upkeep
from snavio.registry.keeper import Keeper
from snavio.registry.view import Registry
from snavio.runtime.leadership import Leadership
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log


class Duties:
    """Does nothing while another monitor leads."""

    def __init__(
        self,
        leadership: Leadership,
        keeper: Keeper,
        watch: RouteWatch,
        snapshotting: Snapshotting,
        upkeep: Upkeep,
        *,
        log: Log,
    ) -> None:
        self._leadership = leadership
        self._keeper = keeper
        self._watch = watch
        self._snapshotting = snapshotting
        self._upkeep = upkeep
        self._log = log
        # A snapshot is packed in a thread: nobody may bring the registry up to date meanwhile.
        self._registry = anyio.Lock()

    async def lead(self) -> None:
        """Take or keep the lead."""
        led = self._leadership.leads
        leads = await self._leadership.held()
        if leads != led:
            event = LogEvent.LEASE_ACQUIRED if leads else LogEvent.LEASE_LOST
            self._log.info(event, term=self._leadership.term)

    async def watch_routes(self) -> None:
        """Look at every route's queue."""
        if not self._leadership.leads:
            return
        async with self._registry:
            routes = list((await self._current()).routes.values())
        try:
            await self._watch.look(routes)
        except ConditionFailed:
            # A later leader has written: what it finds stands.
            return

    async def publish_snapshot(self) -> None:
        """Publish a snapshot of the registry as it is now."""
        if not self._leadership.leads:
            return
        async with self._registry:
            try:
                registry = await self._current()
            except SnavioError as error:
                await self._snapshotting.failed("registry", str(error))
                return
            if self._leadership.leads:
                await self._snapshotting.publish(registry)

    async def keep_up(self) -> None:
        """Rotate keys and clear what is over."""
        if not self._leadership.leads:
            return
        async with self._registry:
            await self._upkeep.round(await self._current())

    async def _current(self) -> Registry:
        if not await self._keeper.refresh():
            raise Transient("the registry could not be read")
        return self._keeper.registry
