"""One log line and one measurement a request."""

from __future__ import annotations

import time
from typing import Any

from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log
from snavio.runtime.telemetry import Telemetry

_QUIET = {"/healthz", "/readyz"}


class AccessLog:
    """Wraps an ASGI application. Paths are logged; bodies, headers and queries never are."""

    def __init__(self, app: Any, log: Log, telemetry: Telemetry) -> None:
        self._app = app
        self._log = log
        self._telemetry = telemetry

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve, then say how it went."""
        if scope["type"] != "http" or scope["path"] in _QUIET:
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def note(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            seconds = time.perf_counter() - started
            caller = scope.get("user")
            self._log.info(
                LogEvent.HTTP_REQUEST,
                method=scope["method"],
                path=scope["path"],
                status=status,
                seconds=round(seconds, 4),
                actor=getattr(caller, "subject", None),
                tenant=getattr(caller, "tenant", None),
            )
            outcome = f"{status // 100}xx"
            self._telemetry.measure(metrics.GATEWAY_REQUESTS, 1, status=outcome)
            self._telemetry.measure(metrics.GATEWAY_DURATION, seconds, status=outcome)
