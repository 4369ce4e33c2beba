"""Tenants' alert channels, remembered for a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from snavio.runtime.log_events import LogEvent
from snavio.telemetry.channels import AlertSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from snavio.runtime.logs import Log
    from snavio.telemetry.alert_store import AlertStore

_MOST = 10_000


class AlertChoices:
    """What a tenant chose; nothing chosen and nothing readable are both no channel, which critical events survive."""

    def __init__(
        self, store: AlertStore, *, now: Callable[[], float], log: Log, fresh_seconds: float = 60.0
    ) -> None:
        self._store = store
        self._now = now
        self._log = log
        self._fresh = fresh_seconds
        self._known: dict[str, tuple[float, AlertSettings]] = {}

    async def of(self, tenant: str) -> AlertSettings:
        """The tenant's channels, at most a minute old. Raises what the table raises."""
        known = self._known.get(tenant)
        if known is not None and known[0] > self._now() - self._fresh:
            return known[1]
        try:
            chosen = await self._store.settings(tenant)
        except msgspec.ValidationError as error:
            self._log.error(LogEvent.ALERT_FAILED, error=error, tenant=tenant)
            chosen = None
        if len(self._known) >= _MOST:
            self._known.clear()
        settings = chosen or AlertSettings()
        self._known[tenant] = (self._now(), settings)
        return settings
