"""How the registry's caches are doing, in the metrics and log lines the documents name."""

from __future__ import annotations

from collections.abc import Callable

from snavio.aws.errors import SnavioError
from snavio.domain.freshness import TtlPolicy
from snavio.registry.view import Registry
from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log
from snavio.runtime.metrics import Metric
from snavio.runtime.telemetry import Telemetry

_PHASES = (metrics.CACHE_FRESH, metrics.CACHE_STALE, metrics.CACHE_EXPIRED)


class CacheMetrics:
    """Observes a `Keeper`, and reports the use of its registry."""

    def __init__(self, telemetry: Telemetry, log: Log, ttls: TtlPolicy) -> None:
        self._telemetry = telemetry
        self._log = log
        # Grants have an age for each profile; the tightest is the one to watch.
        self._caches: tuple[tuple[str, float, float, Metric, Metric, Metric], ...] = (
            (
                "ACL",
                ttls.critical.fresh_seconds,
                ttls.critical.stale_seconds,
                metrics.ACL_REFRESH,
                metrics.ACL_STALE,
                metrics.ACL_STALE_WINDOW,
            ),
            (
                "Routing",
                ttls.routing.fresh_seconds,
                ttls.routing.stale_seconds,
                metrics.ROUTING_REFRESH,
                metrics.ROUTING_STALE,
                metrics.ROUTING_STALE_WINDOW,
            ),
            (
                "HMAC",
                ttls.keys.fresh_seconds,
                ttls.keys.stale_seconds,
                metrics.HMAC_REFRESH,
                metrics.HMAC_STALE,
                metrics.HMAC_STALE_WINDOW,
            ),
        )
        self.last_failure: str | None = None

    def loaded(self, *, entries: int, malformed: int, seconds: float, from_snapshot: bool) -> None:
        """The registry was loaded whole."""
        self._log.info(
            LogEvent.CACHE_LOADED,
            entries=entries,
            malformed=malformed,
            seconds=round(seconds, 3),
            from_snapshot=from_snapshot,
        )

    def refreshed(self, *, changes: int, age_before: float, seconds: float) -> None:
        """The registry was brought up to date: one read refreshes every cache."""
        self.last_failure = None
        for cache, fresh, stale, refresh, _, window in self._caches:
            self._telemetry.measure(refresh, seconds)
            if age_before > fresh:
                self._telemetry.measure(window, age_before - fresh)
            if changes and self._log.enabled("debug"):
                self._log.debug(
                    LogEvent.CACHE_REFRESHED,
                    cache_type=cache,
                    age_seconds=round(age_before, 3),
                    fresh_ttl=fresh,
                    stale_ttl=stale,
                    changes=changes,
                )

    def refresh_failed(self, error: SnavioError) -> None:
        """It could not be brought up to date."""
        self.last_failure = str(error)
        self._log.warning(LogEvent.REFRESH_FAILED, error=error)
        for cache, *_ in self._caches:
            self._telemetry.measure(metrics.CACHE_REFRESH_FAILED, cache=cache)

    def report_usage(self, registry: Callable[[], Registry]) -> Callable[[], None]:
        """A function that reports how often answers were fresh, stale and expired since it was last called."""

        def report() -> None:
            usage = registry().usage
            for (cache, _, _, _, stale, _), counts in zip(
                self._caches, (usage.acl, usage.routing, usage.hmac), strict=True
            ):
                for phase, metric in enumerate(_PHASES):
                    if counts[phase]:
                        self._telemetry.measure(metric, counts[phase], cache=cache)
                if counts[1]:
                    self._telemetry.measure(stale, counts[1])
                counts[:] = [0, 0, 0]

        return report
